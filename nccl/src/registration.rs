//! Buffers that are registered with a communicator.

use ferrogrid_device::bytemuck::Pod;
use ferrogrid_host::{DeviceBuffer, DevicePtrMut, Error, Result, Stream};

use crate::communicator::{Backend, Communicator};
use crate::element::Element;
use crate::{gpu, group};

impl Communicator {
    /// A buffer of `len` zeroed elements in memory of NCCL's, registered with this communicator (`ncclMemAlloc`,
    /// `ncclCommRegister`): where NCCL can, operations send from it and receive into it without copies of its own. It is used like any
    /// other buffer, on `stream` first. When it is dropped, it is deregistered and freed after all work that uses it, in
    /// whatever order buffer, graphs and communicator are dropped. Buffers of other origin are not registered: NCCL requires memory that it
    /// can map for other GPUs, which that of the device's pool is not.
    ///
    /// If one rank uses registered buffers in an operation, all do, as long and with the same offsets in them: NCCL requires it. On
    /// CPU devices it is a buffer like others.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// use ferrogrid::nccl::{Communicator, Group, ReduceOp};
    ///
    /// let ranks = Communicator::all(&[Device::cpu(), Device::cpu()])?;
    /// let stream = Device::cpu().new_stream()?;
    /// let mut sums = [ranks[0].registered_zeros::<f32>(&stream, 2)?, ranks[1].registered_zeros(&stream, 2)?];
    /// let mut group = Group::new();
    /// for (rank, sum) in ranks.iter().zip(&mut sums) {
    ///     stream.upload_into(&[1.0, 2.0], &mut *sum)?;
    ///     group.push(&stream, rank.all_reduce_in_place(ReduceOp::Sum, sum));
    /// }
    /// group.run()?;
    /// assert_eq!(stream.download(&sums[0])?, [2.0, 4.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`NcclError::StreamDevice`](ferrogrid_host::NcclError::StreamDevice) for a stream of another device; [`NcclError::Call`](ferrogrid_host::NcclError::Call) if NCCL cannot allocate so much; what the
    /// communicator has failed with; as [`Stream::zeros`].
    pub fn registered_zeros<T: Element + Pod>(&self, stream: &Stream, len: usize) -> Result<DeviceBuffer<T>> {
        group::check(self, stream, "registered_zeros")?;
        let bytes = bytes_of::<T>(len)?;
        let Backend::Gpu(rank) = self.backend() else { return stream.zeros(len) };
        if bytes == 0 {
            return stream.zeros(len);
        }
        let memory = gpu::Registered::new(rank, bytes)?;
        let start = memory.start().cast::<T>();
        // SAFETY: so many elements of the device, which `memory` keeps, and which nothing else uses; elements are numbers, whose bytes
        // all have values, and the caller sees them zeroed.
        let mut buffer =
            unsafe { DeviceBuffer::from_raw(stream, DevicePtrMut::from_raw(start), len, memory)? };
        stream.fill_into(T::zeroed(), &mut buffer)?;
        Ok(buffer)
    }
}

/// The bytes of a buffer.
pub(crate) fn bytes_of<T>(len: usize) -> Result<usize> {
    let bytes = len.checked_mul(size_of::<T>()).filter(|bytes| isize::try_from(*bytes).is_ok());
    bytes.ok_or(Error::SizeOverflow { length: len, element_size: size_of::<T>() })
}
