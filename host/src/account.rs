//! How much memory buffers use on each device, and how much they may. It must not know where it is from.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::device::Device;
use crate::error::{Error, Result};

/// The bytes that buffers of one device use.
#[derive(Debug)]
pub(crate) struct Account {
    used: AtomicU64,
    /// The most there were since the last reset.
    high: AtomicU64,
    limit: AtomicU64,
    /// That of the device, for a pool: what is entered here is entered there as well.
    whole: Option<Arc<Account>>,
}

/// Bytes that are entered in the account of a device until this is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    account: Arc<Account>,
    bytes: usize,
}

impl Charge {
    /// Enters `bytes`, if the limit allows it.
    pub(crate) fn take(device: &Device, bytes: usize) -> Result<Self> {
        let account = Account::of(device);
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
    fn new(limit: Option<u64>, whole: Option<Arc<Account>>) -> Self {
        let limit = AtomicU64::new(limit.unwrap_or(u64::MAX));
        Account { used: AtomicU64::new(0), high: AtomicU64::new(0), limit, whole }
    }

    /// The account of a new pool of `device`.
    pub(crate) fn of_pool(device: &Device, limit: Option<u64>) -> Arc<Account> {
        Arc::new(Account::new(limit, Some(Account::of(device))))
    }

    /// The account of `device`.
    pub(crate) fn of(device: &Device) -> Arc<Account> {
        static ACCOUNTS: Mutex<Vec<(Device, Arc<Account>)>> = Mutex::new(Vec::new());
        let mut accounts = ACCOUNTS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, account)) = accounts.iter().find(|(known, _)| known == device) {
            return account.clone();
        }
        let account = Arc::new(Account::new(None, None));
        accounts.push((device.clone(), account.clone()));
        account
    }

    /// Enters an allocation, if the limit allows it.
    pub(crate) fn take(&self, bytes: usize, device: &Device) -> Result<()> {
        let Some(whole) = &self.whole else { return self.take_here(bytes, device) };
        whole.take_here(bytes, device)?;
        self.take_here(bytes, device).inspect_err(|_| whole.give_back(bytes))
    }

    fn take_here(&self, bytes: usize, device: &Device) -> Result<()> {
        let (requested, limit) = (bytes as u64, self.limit.load(Ordering::Relaxed));
        let more = |used: u64| used.checked_add(requested).filter(|used| *used <= limit);
        match self.used.try_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(before) => {
                self.high.fetch_max(before + requested, Ordering::Relaxed);
                Ok(())
            }
            Err(used) => {
                Err(Error::MemoryLimit { device: device.to_string().into(), requested, used, limit })
            }
        }
    }

    /// Enters that so much is free again.
    pub(crate) fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes as u64, Ordering::Relaxed);
        if let Some(whole) = &self.whole {
            whole.give_back(bytes);
        }
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) fn high(&self) -> u64 {
        self.high.load(Ordering::Relaxed)
    }

    pub(crate) fn reset_high(&self) {
        self.high.store(self.used(), Ordering::Relaxed);
    }

    pub(crate) fn limit(&self) -> Option<u64> {
        Some(self.limit.load(Ordering::Relaxed)).filter(|limit| *limit < u64::MAX)
    }

    pub(crate) fn set_limit(&self, limit: Option<u64>) {
        self.limit.store(limit.unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}
