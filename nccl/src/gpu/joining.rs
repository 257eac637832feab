//! Makes communicators, and splits them.

use std::ffi::c_int;
use std::ptr::{NonNull, null_mut};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ferrogrid_host::{Device, Result};

use super::library::{Code, Comm, Config, Nccl, RawId};
use super::rank::{Rank, status, timed_out};
use super::watchdog;
use crate::options::deadline;
use crate::unique_id::{BYTES, UniqueId};

/// The color of a rank that is in no part (`NCCL_SPLIT_NOCOLOR`).
const NO_COLOR: c_int = -1;

/// How long a thread sleeps between looks at what NCCL carries on with.
const NAP: Duration = Duration::from_micros(50);

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
    let seats: Vec<Seat<'_>> =
        ranks.iter().map(|&(rank, device)| Seat { rank, size, device, timeout, former: None }).collect();
    let parents = NewComms::of(nccl, ranks.len());
    let (id, mut config) = (RawId(id.to_bytes()), Config::parent());
    in_group(nccl, ranks[0].0, || {
        for (index, (seat, context)) in seats.iter().zip(&contexts).enumerate() {
            context.set_current()?;
            let (comm, rank) = (parents.place(index), number(seat.rank));
            // SAFETY: `comm` stays until NCCL has made the communicator (see `NewComms`); `config` is a configuration, and
            // the current context that of the rank's GPU.
            let code = unsafe { (nccl.comm_init_rank_config)(comm, number(size), id, rank, &mut config) };
            nccl.check("ncclCommInitRankConfig", seat.rank, code)?;
        }
        Ok(())
    })?;
    let making = Making { nccl, operation: "Communicator::new", start };
    for (index, seat) in seats.iter().enumerate() {
        making.settle(parents.get(index), seat)?;
    }
    making.ranks(parents.ready(), &seats)
}

/// A rank whose communicators are being made.
struct Seat<'a> {
    rank: usize,
    size: usize,
    device: &'a Device,
    timeout: Duration,
    /// What it is split from.
    former: Option<&'a Rank>,
}

impl<'a> Seat<'a> {
    /// That of a rank which is split.
    fn of(rank: &'a Rank) -> Self {
        let (size, device, timeout) = (rank.size(), rank.device(), rank.timeout());
        Seat { rank: rank.rank(), size, device, timeout, former: Some(rank) }
    }
}

/// What makes communicators, and since when.
struct Making {
    nccl: &'static Nccl,
    operation: &'static str,
    start: Instant,
}

impl Making {
    /// Waits until NCCL has done what was asked of a live communicator, for the time-out on at most.
    fn settle(&self, comm: Comm, seat: &Seat<'_>) -> Result<()> {
        loop {
            let (function, code) = status(self.nccl, comm);
            if code != Code::IN_PROGRESS {
                return self.nccl.check(function, seat.rank, code);
            }
            seat.former.map_or(Ok(()), Rank::works)?;
            if Instant::now() >= deadline(self.start, seat.timeout) {
                return Err(timed_out(self.operation, seat.rank, seat.timeout));
            }
            std::thread::sleep(NAP);
        }
    }

    /// Splits each parent by its color and key.
    fn split(
        &self,
        parents: &[Comm],
        seats: &[Seat<'_>],
        choose: impl Fn(usize) -> (c_int, c_int),
        mut config: Config,
    ) -> Result<Comms> {
        let (nccl, made) = (self.nccl, NewComms::of(self.nccl, parents.len()));
        in_group(nccl, seats[0].rank, || {
            for (index, (parent, seat)) in parents.iter().zip(seats).enumerate() {
                let (color, key) = choose(index);
                // SAFETY: the parent is live, and no other thread uses it; the new one has a place that stays until NCCL has
                // made it (see `NewComms`).
                let code = unsafe { (nccl.comm_split)(*parent, color, key, made.place(index), &mut config) };
                nccl.check("ncclCommSplit", seat.rank, code)?;
            }
            Ok(())
        })?;
        for (parent, seat) in parents.iter().zip(seats) {
            self.settle(*parent, seat)?;
        }
        for (index, seat) in seats.iter().enumerate() {
            let comm = made.get(index);
            if !comm.is_null() {
                self.settle(comm, seat)?;
            }
        }
        Ok(made.ready())
    }

    /// Ranks of parents, with communicators for operations.
    fn ranks(&self, parents: Comms, seats: &[Seat<'_>]) -> Result<Vec<Arc<Rank>>> {
        if seats.is_empty() {
            return Ok(Vec::new());
        }
        let key = |index: usize| (0, number(seats[index].rank));
        let operations = self.split(&parents.comms, seats, key, Config::blocking())?;
        let comms = parents.take().into_iter().zip(operations.take());
        let of = |(comms, seat): (_, &Seat<'_>)| {
            Arc::new(Rank::new(self.nccl, comms, (seat.rank, seat.size), seat.device, seat.timeout))
        };
        Ok(comms.zip(seats).map(of).collect())
    }
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
    let parts = parts(ranks).and_then(|parts| {
        // One that failed meanwhile was locked then.
        ranks.iter().try_for_each(|(rank, _)| rank.works())?;
        Ok(parts)
    });
    if let Err(error) = &parts {
        ranks.iter().for_each(|(rank, _)| watchdog::fail(rank, error));
    }
    parts
}

fn parts(ranks: &[Choice<'_>]) -> Result<Vec<Option<Arc<Rank>>>> {
    let making = Making { nccl: ranks[0].0.nccl(), operation: "split", start: Instant::now() };
    // In the order in which every split takes them.
    let mut locks: Vec<_> = ranks.iter().map(|(rank, _)| *rank).enumerate().collect();
    locks.sort_by_key(|(_, rank)| Arc::as_ptr(rank).addr());
    let mut guards: Vec<_> = locks.iter().map(|(index, rank)| (*index, rank.lock_parent())).collect();
    guards.sort_by_key(|(index, _)| *index);
    let parents = guards.iter().zip(ranks).map(|((_, guard), (rank, _))| rank.live(**guard));
    let parents = parents.collect::<Result<Vec<_>>>()?;
    let seats: Vec<Seat<'_>> = ranks.iter().map(|(rank, _)| Seat::of(rank)).collect();
    // What is split from a parent shares its flag, and would be ended with it. So parts are split from a copy, which does not share.
    let key = |index: usize| (0, number(seats[index].rank));
    let copies = making.split(&parents, &seats, key, Config::new())?;
    let choose = |index: usize| {
        let (color, key) = ranks[index].1;
        (color.unwrap_or(NO_COLOR), key)
    };
    let mut parts = making.split(&copies.comms, &seats, choose, Config::parent())?;
    copies.destroy();
    let is_in_part: Vec<bool> = parts.comms.iter().map(|comm| !comm.is_null()).collect();
    let mut seats_of_parts = Vec::with_capacity(seats.len());
    for (comm, (rank, _)) in parts.comms.iter().zip(ranks).filter(|(comm, _)| !comm.is_null()) {
        let (number, size) = place(making.nccl, rank, *comm)?;
        seats_of_parts.push(Seat { rank: number, size, ..Seat::of(rank) });
    }
    parts.comms.retain(|comm| !comm.is_null());
    let mut made = making.ranks(parts, &seats_of_parts)?.into_iter();
    Ok(is_in_part.into_iter().map(|is_in_part| is_in_part.then(|| made.next()).flatten()).collect())
}

/// The number of a part's rank, and how many there are.
fn place(nccl: &Nccl, old: &Rank, comm: Comm) -> Result<(usize, usize)> {
    let (mut rank, mut size) = (0, 0);
    // SAFETY: the communicator is ready, and both are valid for the calls.
    let codes = unsafe { [(nccl.comm_user_rank)(comm, &mut rank), (nccl.comm_count)(comm, &mut size)] };
    nccl.check("ncclCommUserRank", old.rank(), codes[0])?;
    nccl.check("ncclCommCount", old.rank(), codes[1])?;
    Ok((rank.unsigned_abs() as usize, size.unsigned_abs() as usize))
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
    fn ready(self) -> Comms {
        let comms = Comms { nccl: self.nccl, comms: (0..self.count).map(|index| self.get(index)).collect() };
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
        let comms = (0..self.count).map(|index| self.get(index)).collect();
        drop(Comms { nccl: self.nccl, comms });
    }
}

/// Communicators that nothing uses yet, and null where there is none. They are aborted unless they are taken.
struct Comms {
    nccl: &'static Nccl,
    comms: Vec<Comm>,
}

impl Comms {
    fn take(mut self) -> Vec<Comm> {
        std::mem::take(&mut self.comms)
    }

    /// Ends those that have done what they were made for.
    fn destroy(self) {
        let nccl = self.nccl;
        for comm in self.take() {
            // SAFETY: it is live, and not used again.
            let _destroyed = unsafe { (nccl.comm_destroy)(comm) };
        }
    }
}

impl Drop for Comms {
    fn drop(&mut self) {
        for comm in self.comms.iter().filter(|comm| !comm.is_null()) {
            // SAFETY: NCCL has created it, completely or in part; it is not used again.
            let _aborted = unsafe { (self.nccl.comm_abort)(*comm) };
        }
    }
}
