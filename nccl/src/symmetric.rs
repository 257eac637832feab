//! Buffers that all ranks of a communicator have alike.

use ferrogrid_device::bytemuck::Pod;
use ferrogrid_host::__private::ExternalWork;
use ferrogrid_host::{DeviceBuffer, DevicePtrMut, GraphError, NcclError, Result, Stream};

use crate::call::Kind;
use crate::communicator::{Backend, Communicator};
use crate::element::Element;
use crate::group::Group;
use crate::reduce_op::ReduceOp;
use crate::registration::bytes_of;
use crate::{gpu, group};

const NAME: &str = Kind::NAMES[Kind::SYMMETRIC_ZEROS];

/// What ranks agree on before they register memory, as the least of what each of them has: the number of a rank that lacks memory, the
/// bytes, their complement, and then for each window whether it is to be ended.
const WINDOWS: usize = 3;

/// A rank, and the stream on which its buffer is used first.
type Place<'a> = (&'a Communicator, &'a Stream);

impl Communicator {
    /// As [`Communicator::registered_zeros`], in a window of symmetric memory (`ncclMemAlloc`, `ncclCommWindowRegister` with
    /// `NCCL_WIN_COLL_SYMMETRIC`): NCCL's kernels read and write the buffers of the other GPUs in place, for which it has algorithms of
    /// lower latency. All ranks call this with the same length, each on a thread of its own, and it returns when all have; for ranks of
    /// one thread there is [`Communicator::symmetric_zeros_all`]. It waits for `stream`.
    ///
    /// In an operation all ranks give the same parts of the same symmetric buffers, by the order in which they made them: NCCL requires it.
    /// The buffers may be dropped in any order. The memory of dropped ones is freed when all ranks have dropped theirs, at the next call
    /// of this, or else with the communicator.
    ///
    /// NCCL has windows from version 2.27 on, among GPUs of one machine that reach each other's memory. Otherwise the buffer is registered
    /// as by `registered_zeros`. On CPU devices it is a buffer like others.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// use ferrogrid::nccl::{Communicator, ReduceOp};
    ///
    /// let communicator = Communicator::from_env()?;
    /// let stream = communicator.device().new_stream()?;
    /// let mut sum = communicator.symmetric_zeros::<f32>(&stream, 256)?;
    /// stream.fill_into(1.0, &mut sum)?;
    /// communicator.all_reduce_in_place(ReduceOp::Sum, &mut sum).enqueue(&stream)?;
    /// assert_eq!(stream.download(&sum)?, vec![communicator.size() as f32; 256]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`NcclError::StreamDevice`] for a stream of another device; [`NcclError::Length`] if ranks ask for different lengths;
    /// [`NcclError::Call`], on all ranks, if one of them cannot allocate so much; [`NcclError::TimedOut`] if others do not come;
    /// [`GraphError::NotRecordable`] on a stream of a recording; what the communicator has failed with; as [`Stream::zeros`].
    pub fn symmetric_zeros<T: Element + Pod>(&self, stream: &Stream, len: usize) -> Result<DeviceBuffer<T>> {
        Ok(zeros(&[(self, stream)], len)?.remove(0))
    }

    /// As [`Communicator::symmetric_zeros`] for several ranks of one thread, each with a stream of its device. The buffers have the
    /// order of `communicators`.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// use ferrogrid::nccl::{Communicator, Group, ReduceOp};
    ///
    /// let ranks = Communicator::all(&[Device::cpu(), Device::cpu()])?;
    /// let streams = [ranks[0].device().new_stream()?, ranks[1].device().new_stream()?];
    /// let mut sums = Communicator::symmetric_zeros_all::<u32>(&ranks, &streams, 2)?;
    /// let mut group = Group::new();
    /// for ((rank, stream), sum) in ranks.iter().zip(&streams).zip(&mut sums) {
    ///     stream.upload_into(&[1, 2], &mut *sum)?;
    ///     group.push(stream, rank.all_reduce_in_place(ReduceOp::Sum, sum));
    /// }
    /// group.run()?;
    /// assert_eq!(streams[1].download(&sums[1])?, [2, 4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As for [`Communicator::symmetric_zeros`].
    ///
    /// # Panics
    /// If there are not as many streams as communicators.
    pub fn symmetric_zeros_all<'s, T: Element + Pod>(
        communicators: &[Communicator],
        streams: impl IntoIterator<Item = &'s Stream>,
        len: usize,
    ) -> Result<Vec<DeviceBuffer<T>>> {
        let streams: Vec<&Stream> = streams.into_iter().collect();
        assert_eq!(streams.len(), communicators.len(), "a stream for each communicator");
        zeros(&communicators.iter().zip(streams).collect::<Vec<_>>(), len)
    }
}

fn zeros<T: Element + Pod>(places: &[Place<'_>], len: usize) -> Result<Vec<DeviceBuffer<T>>> {
    for (communicator, stream) in places {
        group::check(communicator, stream, NAME)?;
        if ExternalWork::recording_of(stream).is_some() {
            let reason = "make the buffer before, and give it to the graph by `capture.write`";
            return Err(GraphError::NotRecordable { operation: NAME, reason }.into());
        }
    }
    let bytes = bytes_of::<T>(len)?;
    let gpus: Vec<_> = places.iter().filter_map(|(communicator, _)| gpu_of(communicator)).collect();
    // The n-th call of a rank is the n-th of the others, also if several threads call this.
    let registering = gpu::Registering::begin(&gpus, bytes);
    let votes = places.iter().map(|(communicator, _)| {
        let lacking = gpu_of(communicator).is_some_and(|rank| registering.lacks_memory(rank));
        let lacking = if lacking { communicator.rank() as u64 } else { u64::MAX };
        let windows = gpu_of(communicator).map(|rank| registering.returned(rank)).unwrap_or_default();
        let agreement: Vec<u64> =
            [lacking, bytes as u64, !(bytes as u64)].into_iter().chain(windows).collect();
        agreement
    });
    let agreements = agree(places, votes.collect())?;
    for ((communicator, _), agreement) in places.iter().zip(&agreements) {
        check(communicator, len, agreement)?;
    }
    // Those of GPUs have windows; of CPU devices nothing is registered.
    let ended: Vec<&[u64]> = places
        .iter()
        .zip(&agreements)
        .filter(|((communicator, _), _)| gpu_of(communicator).is_some())
        .map(|(_, agreement)| &agreement[WINDOWS..])
        .collect();
    let mut registered = registering.finish(&ended)?.into_iter();
    let buffer = |(communicator, stream): &Place<'_>| {
        if bytes == 0 || gpu_of(communicator).is_none() {
            return stream.zeros(len);
        }
        let (start, memory) = registered.next().expect("one for each rank on a GPU");
        // SAFETY: so many elements of the device, which `memory` keeps, and which nothing else uses; elements are numbers, whose bytes
        // all have values, and the caller sees them zeroed.
        let mut buffer = unsafe {
            DeviceBuffer::from_raw(stream, DevicePtrMut::from_raw(start.cast::<T>()), len, memory)?
        };
        stream.fill_into(T::zeroed(), &mut buffer)?;
        Ok(buffer)
    };
    places.iter().map(buffer).collect()
}

fn gpu_of(communicator: &Communicator) -> Option<&std::sync::Arc<gpu::Rank>> {
    match communicator.backend() {
        Backend::Gpu(rank) => Some(rank),
        Backend::Cpu(_) => None,
    }
}

/// The least of what all ranks have at each place of their votes.
fn agree(places: &[Place<'_>], votes: Vec<Vec<u64>>) -> Result<Vec<Vec<u64>>> {
    let upload = |((_, stream), votes): (&Place<'_>, &Vec<u64>)| stream.upload(votes);
    let mut buffers = places.iter().zip(&votes).map(upload).collect::<Result<Vec<_>>>()?;
    let mut group = Group::new();
    for ((communicator, stream), buffer) in places.iter().zip(&mut buffers) {
        group.push(stream, communicator.all_reduce_in_place(ReduceOp::Min, buffer));
    }
    group.run()?;
    places.iter().zip(&buffers).map(|((_, stream), buffer)| stream.download(buffer)).collect()
}

/// That no rank lacks memory, and all ask for the same length.
fn check(communicator: &Communicator, len: usize, agreement: &[u64]) -> Result<()> {
    let [lacking, least, most] = [agreement[0], agreement[1], !agreement[2]];
    if least != most {
        let expected = format!("the same on all ranks, which ask for {least} to {most} bytes").into();
        let (size, length) = (communicator.size(), len);
        return Err(NcclError::Length { operation: NAME, size, buffer: "buffer", length, expected }.into());
    }
    if lacking == u64::MAX {
        return Ok(());
    }
    let reason = format!("this rank cannot allocate {least} bytes").into();
    Err(NcclError::Call { function: "ncclMemAlloc", rank: lacking as usize, reason }.into())
}
