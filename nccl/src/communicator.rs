//! [`Communicator`]: one rank among devices that communicate. This file makes, splits and ends them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ferrogrid_host::{Device, Error, NcclError, Result};

use crate::options::CommunicatorOptions;
use crate::process::Process;
use crate::unique_id::UniqueId;
use crate::{cpu, gpu};

/// One rank of a set of devices that communicate (`ncclComm_t`): a device, the rank's number and the number of ranks.
///
/// Ranks on GPUs communicate by NCCL, and ranks on CPU devices by the memory of a process. One thread can have all ranks of
/// a process ([`Communicator::all`]); or each has a thread, or a process, of its own ([`Communicator::new`],
/// [`Communicator::from_env`]). Its methods make [`Operation`](crate::Operation)s, which are enqueued on streams of the device.
/// All ranks call the same operations in the same order.
///
/// # Lost ranks
/// A rank that is gone, or calls another operation, is an error of the others within the
/// [time-out](CommunicatorOptions::with_timeout): of the next call that waits for the stream, and of downloads of what the
/// operation was to write. After that the communicator fails all operations; the device remains usable.
///
/// # Dropping
/// Work that has been enqueued still runs, and is waited for in the background; but rank 0 on a CPU device waits until other processes
/// have dropped theirs. Ranks that wait for operations which a dropped one has not enqueued fail. A graph with operations keeps its
/// share of the communicator, and can be launched until it is dropped, too.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::nccl::{Communicator, Group, ReduceOp};
///
/// // All GPUs: `(0..Device::count()).map(Device::cuda).collect::<Result<Vec<_>, _>>()?`
/// let devices = [Device::cpu(), Device::cpu()];
/// let ranks = Communicator::all(&devices)?;
/// let streams = devices.iter().map(Device::new_stream).collect::<Result<Vec<_>, _>>()?;
/// let mut gradients = [streams[0].upload(&[1.0_f32, 2.0])?, streams[1].upload(&[3.0, 4.0])?];
///
/// let mut sum = Group::new();
/// for ((rank, stream), gradients) in ranks.iter().zip(&streams).zip(&mut gradients) {
///     sum.push(stream, rank.all_reduce_in_place(ReduceOp::Sum, gradients));
/// }
/// sum.run()?;
/// assert_eq!(streams[0].download(&gradients[0])?, [4.0, 6.0]);
/// assert_eq!(streams[1].download(&gradients[1])?, [4.0, 6.0]);
/// # Ok(()) }
/// ```
pub struct Communicator {
    device: Device,
    rank: usize,
    size: usize,
    timeout: Duration,
    backend: Backend,
}

/// What ranks communicate by.
pub(crate) enum Backend {
    Cpu(Arc<cpu::Membership>),
    Gpu(Arc<gpu::Rank>),
}

impl Backend {
    fn of_cpu(member: cpu::Member) -> Self {
        Backend::Cpu(cpu::Membership::new(member))
    }
}

impl Communicator {
    /// A communicator for each of `devices`, in their order, all in this process (`ncclCommInitAll`). On GPUs each is another
    /// one; a CPU device may be there several times. GPUs of one process get access to each other's memory
    /// ([`Device::enable_peer_access`]), as NCCL requires.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// use ferrogrid::nccl::Communicator;
    ///
    /// let ranks = Communicator::all(&vec![Device::cpu(); 4])?;
    /// assert_eq!((ranks.len(), ranks[3].rank(), ranks[3].size()), (4, 3, 4));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// For GPUs if NCCL is missing or too old, or fails; [`NcclError::Device`] for devices that are not all GPUs or all the
    /// CPU, and for a GPU that is there twice.
    pub fn all(devices: &[Device]) -> Result<Vec<Communicator>> {
        Self::all_with(devices, CommunicatorOptions::new())
    }

    /// As [`Communicator::all`], with options.
    ///
    /// # Errors
    /// As for [`Communicator::all`].
    pub fn all_with(devices: &[Device], options: CommunicatorOptions) -> Result<Vec<Communicator>> {
        check_devices(devices)?;
        let backends: Vec<Backend> = if devices.iter().any(Device::is_cuda) {
            gpu::all(devices, options.timeout())?.into_iter().map(Backend::Gpu).collect()
        } else {
            cpu::all(devices.len(), options.timeout()).into_iter().map(Backend::of_cpu).collect()
        };
        let of = |(rank, (device, backend))| Communicator::of(device, rank, devices.len(), options, backend);
        Ok(devices.iter().zip(backends).enumerate().map(of).collect())
    }

    /// Rank `rank` of `size`, on `device` (`ncclCommInitRank`). All ranks have the same `id`, made once and passed on by the
    /// program. Returns when all ranks have called this, each on a thread or in a process of its own.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// use ferrogrid::nccl::{Communicator, ReduceOp, UniqueId};
    ///
    /// fn sum_of_ranks(id: UniqueId, rank: usize) -> ferrogrid::Result<Vec<u64>> {
    ///     let communicator = Communicator::new(&Device::cpu(), &id, rank, 3)?;
    ///     let stream = communicator.device().new_stream()?;
    ///     let mut data = stream.upload(&[rank as u64])?;
    ///     communicator.all_reduce_in_place(ReduceOp::Sum, &mut data).enqueue(&stream)?;
    ///     stream.download(&data)
    /// }
    /// let id = UniqueId::new(&Device::cpu())?;
    /// let threads = [0, 1, 2].map(|rank| std::thread::spawn(move || sum_of_ranks(id, rank)));
    /// for thread in threads {
    ///     assert_eq!(thread.join().unwrap()?, [3]);
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`NcclError::Rank`] if there is no such rank; [`NcclError::TimedOut`] if other ranks do not come; for GPUs if NCCL is
    /// missing or too old, or fails; [`Error::Unsupported`] for CPU devices of several processes, which meet by [`Communicator::of_process`].
    pub fn new(device: &Device, id: &UniqueId, rank: usize, size: usize) -> Result<Self> {
        Self::new_with(device, id, rank, size, CommunicatorOptions::new())
    }

    /// As [`Communicator::new`], with options.
    ///
    /// # Errors
    /// As for [`Communicator::new`].
    pub fn new_with(
        device: &Device,
        id: &UniqueId,
        rank: usize,
        size: usize,
        options: CommunicatorOptions,
    ) -> Result<Self> {
        if rank >= size {
            return Err(NcclError::Rank { operation: "Communicator::new", role: "rank", rank, size }.into());
        }
        id.check(device)?;
        let backend = match device.is_cuda() {
            true => Backend::Gpu(gpu::join(device, id, rank, size, options.timeout())?),
            false => Backend::of_cpu(cpu::join(id, rank, size, options.timeout())?),
        };
        Ok(Communicator::of(device, rank, size, options, backend))
    }

    /// This process's rank among those that a launcher has started, on the device that [`Process::device`] chooses; see
    /// [`Process`] for the launchers, and for how processes meet. Without a launcher it is the only rank.
    ///
    /// ```
    /// # fn main() -> ferrogrid::Result<()> {
    /// use ferrogrid::nccl::{Communicator, ReduceOp};
    ///
    /// let communicator = Communicator::from_env()?;
    /// let stream = communicator.device().new_stream()?;
    /// let mut data = stream.upload(&[1_u32])?;
    /// communicator.all_reduce_in_place(ReduceOp::Sum, &mut data).enqueue(&stream)?;
    /// assert_eq!(stream.download(&data)?, [communicator.size() as u32]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As for [`Process::from_env`], [`Process::device`], and [`Communicator::of_process`].
    pub fn from_env() -> Result<Self> {
        let process = Process::from_env()?;
        Self::of_process(&process, &process.device()?, CommunicatorOptions::new())
    }

    /// The rank of `process`, on `device`. Returns when all processes have called this.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// use std::time::Duration;
    /// use ferrogrid::nccl::{Communicator, CommunicatorOptions, Process};
    ///
    /// let options = CommunicatorOptions::new().with_timeout(Duration::from_secs(30));
    /// let communicator = Communicator::of_process(&Process::from_env()?, &Device::cpu(), options)?;
    /// assert_eq!(communicator.rank(), 0); // there is no launcher here
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`NcclError::NoMeetingPoint`] and [`NcclError::File`] if the processes cannot meet; [`Error::Unsupported`] if those with CPU
    /// devices have no file; and as for [`Communicator::new`].
    pub fn of_process(process: &Process, device: &Device, options: CommunicatorOptions) -> Result<Self> {
        let (rank, size) = (process.rank(), process.size());
        if let Some(member) = process.join_on_cpu(device, options.timeout())? {
            return Ok(Self::of(device, rank, size, options, Backend::of_cpu(member)));
        }
        let meeting = process.meet(device, options.timeout())?;
        let communicator = Self::new_with(device, meeting.id(), rank, size, options);
        meeting.end();
        communicator
    }

    fn of(device: &Device, rank: usize, size: usize, options: CommunicatorOptions, backend: Backend) -> Self {
        Communicator { device: device.clone(), rank, size, timeout: options.timeout(), backend }
    }

    /// The number of this rank, from 0 (`ncclCommUserRank`).
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many ranks there are (`ncclCommCount`).
    #[inline]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Its device (`ncclCommCuDevice`).
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// How long an operation waits for other ranks.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// A communicator of those ranks that give the same `color`, in the order of `key`, and of ranks among equal keys
    /// (`ncclCommSplit`); none for a rank without a color. All ranks call this, each on a thread of its own; it returns when
    /// all have. For ranks of one thread there is [`Communicator::split_all`].
    ///
    /// # Errors
    /// [`Error::Argument`] for a color over `i32::MAX`; if the communicator has failed; [`NcclError::TimedOut`] and
    /// [`NcclError::PeerLost`] if other ranks do not come.
    pub fn split(&self, color: Option<u32>, key: i32) -> Result<Option<Communicator>> {
        let split = Self::split_each(&[self], &[(color, key)])?;
        Ok(split.into_iter().next().flatten())
    }

    /// As [`Communicator::split`] for several ranks of one thread: `choose` gives the color and the key of each. The result
    /// has the new communicators, or `None`, in the order of `communicators`.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// use ferrogrid::nccl::Communicator;
    ///
    /// let all = Communicator::all(&vec![Device::cpu(); 5])?;
    /// // Even and odd ranks, backwards; and not the last.
    /// let parts = Communicator::split_all(&all, |rank| ((rank < 4).then_some(rank as u32 % 2), -(rank as i32)))?;
    /// let places: Vec<_> = parts.iter().map(|part| part.as_ref().map(|it| (it.rank(), it.size()))).collect();
    /// assert_eq!(places, [Some((1, 2)), Some((1, 2)), Some((0, 2)), Some((0, 2)), None]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As for [`Communicator::split`].
    pub fn split_all(
        communicators: &[Communicator],
        choose: impl Fn(usize) -> (Option<u32>, i32),
    ) -> Result<Vec<Option<Communicator>>> {
        let choices: Vec<_> = communicators.iter().map(|communicator| choose(communicator.rank)).collect();
        Self::split_each(&communicators.iter().collect::<Vec<_>>(), &choices)
    }

    fn split_each(
        communicators: &[&Communicator],
        choices: &[(Option<u32>, i32)],
    ) -> Result<Vec<Option<Communicator>>> {
        let choices =
            choices.iter().map(|&(color, key)| Ok((checked(color)?, key))).collect::<Result<Vec<_>>>()?;
        communicators.iter().try_for_each(|communicator| communicator.check())?;
        let (mut of_cpus, mut of_gpus) = (Vec::new(), Vec::new());
        for (communicator, choice) in communicators.iter().zip(choices) {
            match &communicator.backend {
                Backend::Cpu(member) => of_cpus.push((&***member, choice)),
                Backend::Gpu(rank) => of_gpus.push((rank, choice)),
            }
        }
        let mut of_cpus = cpu::split(&of_cpus)?.into_iter();
        let mut of_gpus = gpu::split(&of_gpus)?.into_iter();
        let part = |communicator: &&Communicator| {
            let (rank, size, backend) = match &communicator.backend {
                Backend::Cpu(_) => of_cpus.next()?.map(|it| (it.rank(), it.size(), Backend::of_cpu(it)))?,
                Backend::Gpu(_) => of_gpus.next()?.map(|it| (it.rank(), it.size(), Backend::Gpu(it)))?,
            };
            let (device, timeout) = (communicator.device.clone(), communicator.timeout);
            Some(Communicator { device, rank, size, timeout, backend })
        };
        Ok(communicators.iter().map(part).collect())
    }

    /// Ends the communicator, and all of its operations that have not run (`ncclCommAbort`): they fail with
    /// [`NcclError::Aborted`], and so do later ones. Other ranks learn of it at once on CPU devices, and otherwise by their time-outs.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// use ferrogrid::NcclError;
    /// use ferrogrid::nccl::{Communicator, ReduceOp};
    ///
    /// let ranks = Communicator::all(&[Device::cpu(), Device::cpu()])?;
    /// let stream = ranks[0].device().new_stream()?;
    /// let mut data = stream.upload(&[1.0_f32])?;
    /// ranks[0].all_reduce_in_place(ReduceOp::Sum, &mut data).enqueue(&stream)?; // waits for rank 1
    /// ranks[1].abort();
    /// assert_eq!(stream.synchronize(), Err(NcclError::Aborted { rank: 1 }.into()));
    /// assert_eq!(ranks[0].check(), Err(NcclError::Aborted { rank: 1 }.into()));
    /// # Ok(()) }
    /// ```
    pub fn abort(&self) {
        let error = NcclError::Aborted { rank: self.rank };
        match &self.backend {
            Backend::Cpu(member) => member.abort(error),
            Backend::Gpu(rank) => gpu::abort(rank, &error.into()),
        }
    }

    /// Whether the communicator works (`ncclCommGetAsyncError`). Does not wait.
    ///
    /// # Errors
    /// What it has failed with.
    pub fn check(&self) -> Result<()> {
        match &self.backend {
            Backend::Cpu(member) => member.check(),
            Backend::Gpu(rank) => gpu::check(rank),
        }
    }

    #[inline]
    pub(crate) fn backend(&self) -> &Backend {
        &self.backend
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        if let Backend::Gpu(_) = &self.backend {
            gpu::collect();
        }
    }
}

/// The color in NCCL's type.
fn checked(color: Option<u32>) -> Result<Option<i32>> {
    let Some(color) = color else { return Ok(None) };
    match i32::try_from(color) {
        Ok(color) => Ok(Some(color)),
        Err(_) => Err(Error::Argument {
            function: "Communicator::split",
            argument: "color",
            value: color.to_string().into(),
            expected: "at most 2147483647 (i32::MAX)",
        }),
    }
}

/// That ranks can be on these devices.
fn check_devices(devices: &[Device]) -> Result<()> {
    for (rank, device) in devices.iter().enumerate() {
        let reason = if device.is_cuda() != devices[0].is_cuda() {
            "rank 0 is of another kind; ranks are on GPUs only, or on CPU devices only"
        } else if device.is_cuda() && devices[..rank].contains(device) {
            "it is an earlier rank; each rank has a GPU of its own"
        } else {
            continue;
        };
        return Err(NcclError::Device { device: device.to_string().into(), rank, reason }.into());
    }
    Ok(())
}

impl fmt::Debug for Communicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Communicator { device, rank, size, timeout, .. } = self;
        f.debug_struct("Communicator")
            .field("rank", rank)
            .field("size", size)
            .field("device", device)
            .field("timeout", timeout)
            .finish_non_exhaustive()
    }
}
