//! Windows: memory of NCCL's that all ranks register together.
//!
//! A rank places its windows in a space of addresses, one behind the other, and NCCL takes it for granted that a window has the same place on all
//! ranks. Where it has been freed decides where the next one goes. So a window is ended only when all ranks have returned it, which they agree on
//! before they make another one; until then each rank has the same list.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::{Arc, MutexGuard};

use ferrogrid_host::{Error, Result};

use super::enqueue::{Locked, end};
use super::joining::in_group;
use super::library::{Comm, Windows};
use super::rank::{Rank, in_order_of_locks};
use super::registered::{Allocation, Handle, Registration};
use super::watchdog;
use crate::call::Kind;

/// `NCCL_WIN_COLL_SYMMETRIC`.
const SYMMETRIC: c_int = 1;

/// The windows of a rank, in the order in which all ranks have made them.
#[derive(Default)]
pub(super) struct WindowList {
    all: Vec<Window>,
    next: u64,
}

struct Window {
    id: u64,
    /// Whether nothing uses the memory any more.
    is_returned: bool,
    registration: Registration,
}

impl WindowList {
    fn add(&mut self, registration: Registration) -> u64 {
        let id = self.next;
        self.next += 1;
        self.all.push(Window { id, is_returned: false, registration });
        id
    }

    fn note_returned(&mut self, id: u64) {
        self.all.iter_mut().filter(|window| window.id == id).for_each(|window| window.is_returned = true);
    }

    /// Takes out the windows with these ids.
    fn take(&mut self, ids: &[u64]) -> WindowList {
        let all = self.all.extract_if(.., |window| ids.contains(&window.id)).collect();
        WindowList { all, next: 0 }
    }

    /// Ends all windows, and frees their memory; the device's context is current. Without a communicator, which has ended them.
    pub(super) fn end(self, comm: Option<Comm>) {
        self.all.into_iter().for_each(|window| window.registration.end(comm));
    }
}

/// The memory of a symmetric buffer. When this is dropped, which comes after all work that uses the memory, the rank notes it.
pub(crate) struct Symmetric {
    rank: Arc<Rank>,
    id: u64,
}

impl Drop for Symmetric {
    fn drop(&mut self) {
        self.rank.windows().note_returned(self.id);
    }
}

/// Ranks of this thread that are about to make a symmetric buffer each.
pub(crate) struct Registering<'a> {
    parts: Vec<Part<'a>>,
    bytes: usize,
    /// No other thread makes one of these ranks.
    _alone: Vec<MutexGuard<'a, ()>>,
}

struct Part<'a> {
    rank: &'a Arc<Rank>,
    memory: Result<Option<Allocation>>,
    /// The ids of its windows, and whether they were returned.
    windows: Vec<(u64, bool)>,
}

impl<'a> Registering<'a> {
    /// Allocates `bytes` on each rank.
    pub(crate) fn begin(ranks: &[&'a Arc<Rank>], bytes: usize) -> Self {
        let _alone =
            in_order_of_locks(ranks.to_vec()).into_iter().map(|rank| rank.lock_registering()).collect();
        let part = |rank: &&'a Arc<Rank>| {
            let memory = if bytes == 0 { Ok(None) } else { Allocation::new(rank, bytes).map(Some) };
            let windows = rank.windows().all.iter().map(|window| (window.id, window.is_returned)).collect();
            Part { rank, memory, windows }
        };
        Registering { parts: ranks.iter().map(part).collect(), bytes, _alone }
    }

    fn part(&self, rank: &Arc<Rank>) -> &Part<'a> {
        self.parts.iter().find(|part| Arc::ptr_eq(part.rank, rank)).expect("one of the ranks")
    }

    /// Whether a rank could not allocate.
    pub(crate) fn lacks_memory(&self, rank: &Arc<Rank>) -> bool {
        self.part(rank).memory.is_err()
    }

    /// For each window of a rank whether it has been returned: 1, or 0.
    pub(crate) fn returned(&self, rank: &Arc<Rank>) -> Vec<u64> {
        self.part(rank).windows.iter().map(|(_, is_returned)| u64::from(*is_returned)).collect()
    }

    /// Ends the windows that all ranks have returned, which `ended` has of each rank as `returned`, and registers the memory. Gives where
    /// it is, in the order of the ranks. If that fails, the ranks fail.
    pub(crate) fn finish(self, ended: &[&[u64]]) -> Result<Vec<(*mut c_void, Symmetric)>> {
        if self.parts.is_empty() {
            return Ok(Vec::new());
        }
        let mut locked = Locked::new(self.parts.iter().map(|part| part.rank).collect());
        let ranks = locked.ranks();
        let registered = register(self.parts, self.bytes, ended, &mut locked);
        drop(locked);
        registered.map_err(|error| end(&ranks, error))
    }
}

fn register(
    parts: Vec<Part<'_>>,
    bytes: usize,
    ended: &[&[u64]],
    locked: &mut Locked<'_>,
) -> Result<Vec<(*mut c_void, Symmetric)>> {
    let mut memories = Vec::with_capacity(parts.len());
    for (part, ended) in parts.into_iter().zip(ended) {
        let comm = part.rank.comm(locked.operations(part.rank))?;
        let is_ended = part.windows.iter().zip(*ended).filter(|(_, is_ended)| **is_ended == 1);
        let ids: Vec<u64> = is_ended.map(|((id, _), _)| *id).collect();
        part.rank.device().context()?.set_current()?;
        // Not under the lock of the list: a buffer may be dropped meanwhile.
        let taken = part.rank.windows().take(&ids);
        taken.end(Some(comm));
        memories.extend(part.memory?.map(|memory| (part.rank, comm, memory)));
    }
    let handles = window_handles(&memories, bytes, &locked.ranks())?;
    let keep = |((rank, _, memory), handle): ((&Arc<Rank>, Comm, Allocation), Handle)| {
        let start = memory.start();
        let id = rank.windows().add(Registration::new(memory, handle));
        (start, Symmetric { rank: rank.clone(), id })
    };
    Ok(memories.into_iter().zip(handles).map(keep).collect())
}

/// Registers memory as windows, or as other memory where there can be none.
fn window_handles(
    memories: &[(&Arc<Rank>, Comm, Allocation)],
    bytes: usize,
    ranks: &[&Arc<Rank>],
) -> Result<Vec<Handle>> {
    let Some((first, ..)) = memories.first() else { return Ok(Vec::new()) };
    let (nccl, number) = (first.nccl(), first.rank());
    // NCCL writes them when the group ends. If that fails, they are given up: a thread of NCCL may still write.
    let windows: &'static mut [*mut c_void] = Box::leak(vec![null_mut(); memories.len()].into_boxed_slice());
    if let Some(functions) = Windows::get() {
        let place = windows.as_mut_ptr();
        let register = || {
            for (index, (rank, comm, memory)) in memories.iter().enumerate() {
                rank.device().context()?.set_current()?;
                // SAFETY: the communicator is live and locked, the memory has so many bytes of its device, and the place of the
                // window, of which there are as many, stays until NCCL has written it.
                let code = unsafe {
                    (functions.register)(*comm, memory.start(), bytes, place.add(index), SYMMETRIC)
                };
                nccl.check("ncclCommWindowRegister", rank.rank(), code)?;
            }
            Ok::<_, Error>(())
        };
        watchdog::during(ranks, Kind::SYMMETRIC_ZEROS, || in_group(nccl, number, register))?;
    }
    // SAFETY: leaked above, and NCCL has written all.
    let windows = unsafe { Box::from_raw(windows) };
    let handle = |((rank, comm, memory), window): (&(&Arc<Rank>, Comm, Allocation), &*mut c_void)| {
        if window.is_null() {
            return Handle::local(rank, *comm, memory, bytes);
        }
        Ok(Handle::Window(*window))
    };
    memories.iter().zip(&windows).map(handle).collect()
}
