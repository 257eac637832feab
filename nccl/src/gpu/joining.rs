//! Makes communicators, and splits them.

use std::ffi::c_int;
use std::ptr::{NonNull, null_mut};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ferrogrid_host::{Device, Result};

use super::library::{Comm, Config, Nccl, RawId};
use super::rank::{Handle, Rank, State, settle};
use super::watchdog;
use crate::unique_id::{BYTES, UniqueId};

/// The color of a rank that is in no part (`NCCL_SPLIT_NOCOLOR`).
const NO_COLOR: c_int = -1;

/// A new id (`ncclGetUniqueId`).
pub(crate) fn unique_id() -> Result<[u8; BYTES]> {
    let nccl = Nccl::load()?;
    let mut id = RawId([0; BYTES]);
    // SAFETY: `id` is valid for the call.
    let code = unsafe { (nccl.get_unique_id)(&mut id) };
    nccl.check("ncclGetUniqueId", 0, code)?;
    Ok(id.0)
}

/// All ranks of a new communicator, on GPUs of this process.
pub(crate) fn all(devices: &[Device], timeout: Duration) -> Result<Vec<Arc<Rank>>> {
    let id = UniqueId::from_bytes(unique_id()?);
    let ranks: Vec<(usize, &Device)> = devices.iter().enumerate().collect();
    init(&id, &ranks, devices.len(), timeout)
}

/// Rank `rank` of `size`.
pub(crate) fn join(
    device: &Device,
    id: &UniqueId,
    rank: usize,
    size: usize,
    timeout: Duration,
) -> Result<Arc<Rank>> {
    Ok(init(id, &[(rank, device)], size, timeout)?.remove(0))
}

/// Those ranks of `size` that this thread has.
fn init(id: &UniqueId, ranks: &[(usize, &Device)], size: usize, timeout: Duration) -> Result<Vec<Arc<Rank>>> {
    let (nccl, start) = (Nccl::load()?, Instant::now());
    ranks.iter().try_for_each(|(_, device)| meet_peers(device))?;
    let contexts = ranks.iter().map(|(_, device)| device.context()).collect::<Result<Vec<_>>>()?;
    let made = NewComms::of(nccl, ranks.len());
    let (id, mut config) = (RawId(id.to_bytes()), Config::non_blocking());
    in_group(nccl, ranks[0].0, || {
        for (index, ((rank, _), context)) in ranks.iter().zip(&contexts).enumerate() {
            context.set_current()?;
            let comm = made.place(index);
            // SAFETY: `comm` stays until NCCL has made the communicator (see `NewComms`); `config` is a configuration, and
            // the current context that of the rank's GPU.
            let code =
                unsafe { (nccl.comm_init_rank_config)(comm, number(size), id, number(*rank), &mut config) };
            nccl.check("ncclCommInitRankConfig", *rank, code)?;
        }
        Ok(())
    })?;
    for (index, (rank, _)) in ranks.iter().enumerate() {
        settle(nccl, made.get(index), "Communicator::new", *rank, (start, timeout))?;
    }
    let of = |((rank, device), comm): (&(usize, &Device), Comm)| {
        Arc::new(Rank::new(nccl, Handle(comm), (*rank, size), device, timeout))
    };
    Ok(ranks.iter().zip(made.take()).map(of).collect())
}

/// Lets this GPU, and all that have communicators in this process, use each other's memory. NCCL takes it for granted among the
/// ranks of a process: kernels of one rank read the buffers of another. It is so for `cudaMalloc`, and not for memory of pools.
///
/// The last rank to come meets all others before NCCL makes a communicator, which waits for all.
fn meet_peers(device: &Device) -> Result<()> {
    static DEVICES: Mutex<Vec<Device>> = Mutex::new(Vec::new());
    let mut devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
    for peer in devices.iter().filter(|peer| *peer != device) {
        for (device, peer) in [(device, peer), (peer, device)] {
            // Without access NCCL copies by way of the host.
            if device.can_access_peer(peer)? {
                device.enable_peer_access(peer)?;
            }
        }
    }
    if !devices.contains(device) {
        devices.push(device.clone());
    }
    Ok(())
}

/// A rank, and the color and the key that it chooses.
type Choice<'a> = (&'a Arc<Rank>, (Option<i32>, i32));

/// What the ranks become, of which this thread has these. If that fails, they fail.
pub(crate) fn split(ranks: &[Choice<'_>]) -> Result<Vec<Option<Arc<Rank>>>> {
    if ranks.is_empty() {
        return Ok(Vec::new());
    }
    let parts = parts(ranks);
    if let Err(error) = &parts {
        ranks.iter().for_each(|(rank, _)| watchdog::fail(rank, error));
    }
    parts
}

fn parts(ranks: &[Choice<'_>]) -> Result<Vec<Option<Arc<Rank>>>> {
    let (nccl, start) = (ranks[0].0.nccl(), Instant::now());
    let made = NewComms::of(nccl, ranks.len());
    // In the order in which every group takes them.
    let mut locks: Vec<_> = ranks.iter().map(|(rank, _)| *rank).enumerate().collect();
    locks.sort_by_key(|(_, rank)| Arc::as_ptr(rank).addr());
    let mut guards: Vec<_> = locks.iter().map(|(index, rank)| (*index, rank.lock())).collect();
    guards.sort_by_key(|(index, _)| *index);
    let parents = guards.iter().map(|(_, state)| live(state)).collect::<Result<Vec<_>>>()?;
    in_group(nccl, ranks[0].0.rank(), || {
        for (index, ((rank, (color, key)), parent)) in ranks.iter().zip(&parents).enumerate() {
            let (color, comm) = (color.unwrap_or(NO_COLOR), made.place(index));
            // SAFETY: the parent is live, and locked; `comm` stays until NCCL has made the communicator (see `NewComms`).
            // Without a configuration the part has the parent's.
            let code = unsafe { (nccl.comm_split)(parent.0, color, *key, comm, null_mut()) };
            nccl.check("ncclCommSplit", rank.rank(), code)?;
        }
        Ok(())
    })?;
    for ((rank, _), parent) in ranks.iter().zip(&parents) {
        rank.settle(*parent, "split", start)?;
    }
    let mut places = Vec::with_capacity(ranks.len());
    for (index, (rank, _)) in ranks.iter().enumerate() {
        let comm = made.get(index);
        if !comm.is_null() {
            settle(nccl, comm, "split", rank.rank(), (start, rank.timeout()))?;
        }
        places.push(place(nccl, rank, comm)?);
    }
    let of = |((place, (rank, _)), comm): ((Place, &Choice<'_>), Comm)| {
        Some(Arc::new(Rank::new(nccl, Handle(comm), place?, rank.device(), rank.timeout())))
    };
    Ok(places.into_iter().zip(ranks).zip(made.take()).map(of).collect())
}

/// The number of a part's rank, and how many there are; none for a rank in no part.
type Place = Option<(usize, usize)>;

fn place(nccl: &Nccl, old: &Rank, comm: Comm) -> Result<Place> {
    if comm.is_null() {
        return Ok(None);
    }
    let (mut rank, mut size) = (0, 0);
    // SAFETY: the communicator is ready, and both are valid for the calls.
    let codes = unsafe { [(nccl.comm_user_rank)(comm, &mut rank), (nccl.comm_count)(comm, &mut size)] };
    nccl.check("ncclCommUserRank", old.rank(), codes[0])?;
    nccl.check("ncclCommCount", old.rank(), codes[1])?;
    Ok(Some((rank.unsigned_abs() as usize, size.unsigned_abs() as usize)))
}

/// The handle of a communicator that works.
pub(super) fn live(state: &State) -> Result<Handle> {
    match state {
        State::Live(handle) => Ok(*handle),
        State::Failed(error) => Err(error.clone()),
    }
}

/// Makes calls as a group.
///
/// # Errors
/// That of a call, or of the group.
pub(super) fn in_group(nccl: &Nccl, rank: usize, calls: impl FnOnce() -> Result<()>) -> Result<()> {
    // SAFETY: each start has its end, on this thread.
    let started = unsafe { (nccl.group_start)() };
    nccl.check("ncclGroupStart", rank, started)?;
    let result = calls();
    // SAFETY: as above.
    let ended = unsafe { (nccl.group_end)() };
    result?;
    nccl.check("ncclGroupEnd", rank, ended)
}

fn number(rank: usize) -> c_int {
    c_int::try_from(rank).unwrap_or(c_int::MAX)
}

/// Communicators that NCCL makes in the background, and writes here. If they fail, they are aborted, and the memory is given up: it
/// may still be written.
struct NewComms {
    nccl: &'static Nccl,
    /// Leaked.
    comms: NonNull<Comm>,
    count: usize,
}

impl NewComms {
    fn of(nccl: &'static Nccl, count: usize) -> Self {
        let comms: &mut [Comm] = Box::leak(vec![null_mut(); count].into_boxed_slice());
        NewComms { nccl, comms: NonNull::from(comms).cast(), count }
    }

    /// Where NCCL writes the communicator of that index.
    fn place(&self, index: usize) -> *mut Comm {
        assert!(index < self.count);
        // SAFETY: there are as many.
        unsafe { self.comms.add(index) }.as_ptr()
    }

    /// What NCCL has written; null if that is nothing yet.
    fn get(&self, index: usize) -> Comm {
        // SAFETY: initialised, and leaked; a pointer is written as a whole.
        unsafe { self.place(index).read_volatile() }
    }

    /// The communicators, all of which are ready.
    fn take(self) -> Vec<Comm> {
        let comms = (0..self.count).map(|index| self.get(index)).collect();
        let memory = NonNull::slice_from_raw_parts(self.comms, self.count);
        std::mem::forget(self);
        // SAFETY: leaked in `of`, and NCCL has done its work.
        drop(unsafe { Box::from_raw(memory.as_ptr()) });
        comms
    }
}

impl Drop for NewComms {
    /// Not all are ready.
    fn drop(&mut self) {
        for comm in (0..self.count).map(|index| self.get(index)).filter(|comm| !comm.is_null()) {
            // SAFETY: NCCL has made it, perhaps not to its end; it is not used again.
            let _aborted = unsafe { (self.nccl.comm_abort)(comm) };
        }
    }
}
