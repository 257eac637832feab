//! How much memory buffers use on each device, and how much they may. `balance` is the arithmetic.

mod balance;

use std::sync::{Arc, Mutex};

use balance::{Balance, Exceeded};

use crate::backend::DeviceBackend;
use crate::error::{Error, Result};
use crate::sync::lock;

/// The bytes that buffers of one device, or of one of its pools, use.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) balance: Arc<Balance>,
}

type Accounts = Mutex<Vec<(DeviceBackend, Arc<Account>)>>;

/// Bytes that are entered in the account of a device until this is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    account: Arc<Account>,
    bytes: usize,
}

impl Charge {
    /// Enters `bytes`, if the limit allows it.
    pub(crate) fn take(device: DeviceBackend, bytes: usize) -> Result<Self> {
        Charge::in_account(Account::of(device), device, bytes)
    }

    /// As `take`, for memory that nodes of a graph allocate.
    pub(crate) fn of_graph(device: DeviceBackend, bytes: usize) -> Result<Self> {
        Charge::in_account(Account::of_graphs(device), device, bytes)
    }

    fn in_account(account: Arc<Account>, device: DeviceBackend, bytes: usize) -> Result<Self> {
        account.take(bytes, device)?;
        Ok(Charge { account, bytes })
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.account.give_back(self.bytes);
    }
}

impl Account {
    fn new(limit: Option<u64>, whole: Option<Arc<Balance>>) -> Arc<Account> {
        Arc::new(Account { balance: Arc::new(Balance::new(limit, whole)) })
    }

    /// The account of a new pool of `device`, in whose own account the pool's bytes count as well.
    pub(crate) fn of_pool(device: DeviceBackend, limit: Option<u64>) -> Arc<Account> {
        Account::new(limit, Some(Account::of(device).balance.clone()))
    }

    /// The account of `device`.
    pub(crate) fn of(device: DeviceBackend) -> Arc<Account> {
        static ACCOUNTS: Accounts = Mutex::new(Vec::new());
        Account::known(&ACCOUNTS, device, || Account::new(None, None))
    }

    /// The account of what nodes of graphs allocate, which counts for `device` as well.
    pub(crate) fn of_graphs(device: DeviceBackend) -> Arc<Account> {
        static ACCOUNTS: Accounts = Mutex::new(Vec::new());
        Account::known(&ACCOUNTS, device, || Account::of_pool(device, None))
    }

    fn known(accounts: &Accounts, device: DeviceBackend, new: impl FnOnce() -> Arc<Account>) -> Arc<Account> {
        let mut accounts = lock(accounts);
        if let Some((_, account)) = accounts.iter().find(|(known, _)| *known == device) {
            return account.clone();
        }
        let account = new();
        accounts.push((device, account.clone()));
        account
    }

    /// Enters an allocation, if the limit allows it.
    pub(crate) fn take(&self, bytes: usize, device: DeviceBackend) -> Result<()> {
        let requested = bytes as u64;
        self.balance.take(requested).map_err(|Exceeded { used, limit }| Error::MemoryLimit {
            device: device.to_string().into(),
            requested,
            used,
            limit,
        })
    }

    /// Enters that so much is free again.
    pub(crate) fn give_back(&self, bytes: usize) {
        self.balance.give_back(bytes as u64);
    }
}
