//! Imported tensors: in place as buffers, read-only buffers, page-locked or managed memory; or copied, from
//! any layout.

use std::ptr::NonNull;

use derive_where::derive_where;

use super::abi::{CPU, CUDA, CUDA_HOST, CUDA_MANAGED, DLDevice};
use super::element::DlpackElement;
use super::layout::Gather;
use super::tensor::DlpackTensor;
use crate::backend::{Contents, Place, Rows};
use crate::device::Device;
use crate::error::Result;
use crate::error::dlpack::DlpackError;
use crate::memory::buffer::DeviceBuffer;
use crate::memory::managed::ManagedBuffer;
use crate::memory::pinned::PinnedBuffer;
use crate::stream::Stream;
use crate::view::argument::read_by_view;

/// A tensor of another library in device memory, to read only: launches and copies take `&buffer`, and views of it.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::dlpack::{DlpackTensor, ReadOnlyBuffer};
///
/// let tensor = DlpackTensor::from_buffer(&stream, stream.upload(&[1_u32, 2, 3])?)?.with_read_only();
/// let numbers: ReadOnlyBuffer<u32> = tensor.into_read_only_buffer(&stream)?;
/// let mut copy = stream.zeros(3)?;
/// stream.copy(&numbers, &mut copy)?;
/// assert_eq!((stream.download(&copy)?, stream.download(numbers.slice(1..)?)?), (vec![1, 2, 3], vec![2, 3]));
/// # Ok(()) }
/// ```
///
/// Nothing writes it:
///
/// ```compile_fail,E0277
/// # fn main() -> ferrogrid_host::Result<()> {
/// use ferrogrid_host::dlpack::DlpackTensor;
///
/// let stream = ferrogrid_host::Device::cpu().new_stream()?;
/// let tensor = DlpackTensor::from_buffer(&stream, stream.zeros::<u32>(3)?)?;
/// let mut numbers = tensor.into_read_only_buffer::<u32>(&stream)?;
/// stream.fill_into(7, &mut numbers)?;
/// # Ok(()) }
/// ```
#[derive_where(Debug)]
pub struct ReadOnlyBuffer<T: DlpackElement> {
    /// Never given away, nor borrowed mutably.
    buffer: DeviceBuffer<T>,
}

read_by_view!([] ReadOnlyBuffer<T>, DlpackElement);

deref_to_field!([T: DlpackElement] ReadOnlyBuffer<T> => buffer: DeviceBuffer<T>);

impl DlpackTensor {
    /// The tensor as a buffer of a stream's device, without a copy.
    ///
    /// # Errors
    /// [`DlpackError::ElementType`], [`DlpackError::OtherDevice`], [`DlpackError::ReadOnly`],
    /// [`DlpackError::NotContiguous`], [`DlpackError::Alignment`].
    pub fn into_buffer<T: DlpackElement>(self, stream: &Stream) -> Result<DeviceBuffer<T>> {
        self.check_writable()?;
        self.into_device_memory(stream)
    }

    /// The tensor as a buffer of a stream's device that is only read, without a copy.
    ///
    /// # Errors
    /// As [`DlpackTensor::into_buffer`], but for [`DlpackError::ReadOnly`].
    pub fn into_read_only_buffer<T: DlpackElement>(self, stream: &Stream) -> Result<ReadOnlyBuffer<T>> {
        Ok(ReadOnlyBuffer { buffer: self.into_device_memory(stream)? })
    }

    fn into_device_memory<T: DlpackElement>(self, stream: &Stream) -> Result<DeviceBuffer<T>> {
        self.check::<T>(stream.device(), (&[CUDA, CUDA_MANAGED], &[CPU, CUDA_HOST]))?;
        let len = self.contiguous_len()?;
        self.begin(stream)?;
        let (start, sources) =
            (if len == 0 { std::ptr::null_mut() } else { self.start.cast() }, self.sources());
        // SAFETY: by the contract of the take-over there are as many elements of that type until
        // its owner is dropped, on this device, and no use follows the stream's present work, except reads of what
        // is only read here.
        let buffer = unsafe { DeviceBuffer::foreign(stream, start, len, self.owner)? };
        buffer.memory().writers().receive(sources, true);
        Ok(buffer)
    }

    /// The tensor as managed memory of a stream's device ([`CUDA_MANAGED`]; on the CPU device [`CPU`]), without a copy.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// use ferrogrid_host::dlpack::DlpackTensor;
    ///
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let tensor = DlpackTensor::from_managed(stream.managed_copy(&[1_u32, 2, 3])?)?;
    /// // SAFETY: from `into_raw`, with no other owner.
    /// let back = unsafe { DlpackTensor::from_raw(tensor.into_raw())? };
    /// let mut numbers = back.into_managed::<u32>(&stream)?;
    /// stream.fill_into(7, numbers.slice_mut(2..)?)?;
    /// assert_eq!(numbers.read()?, [1, 2, 7]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`DlpackTensor::into_buffer`]; [`Error::Unsupported`](crate::Error::Unsupported) as
    /// [`Stream::managed_zeros`].
    pub fn into_managed<T: DlpackElement>(self, stream: &Stream) -> Result<ManagedBuffer<T>> {
        self.check_writable()?;
        self.check::<T>(stream.device(), (&[CUDA_MANAGED], &[CPU]))?;
        let buffer = self.into_device_memory(stream)?;
        stream.device().backend().check_managed()?;
        Ok(ManagedBuffer::of(buffer))
    }

    /// The tensor as page-locked memory for `device` ([`CUDA_HOST`]; on the CPU device [`CPU`] too), without a copy.
    ///
    /// # Errors
    /// As [`DlpackTensor::into_buffer`]; a failure of the driver if the memory is not page-locked.
    pub fn into_pinned<T: DlpackElement>(self, device: &Device) -> Result<PinnedBuffer<T>> {
        self.check_writable()?;
        self.check::<T>(device, (&[CUDA_HOST], &[CPU, CUDA_HOST]))?;
        let len = self.contiguous_len()?;
        self.wait_on_host()?;
        self.sources().check()?;
        let start = NonNull::new(self.start.cast()).filter(|_| len > 0).unwrap_or(NonNull::dangling());
        // SAFETY: by the contract of the take-over there are as many elements of that type until its owner is
        // dropped, page-locked, and not used by others.
        unsafe { PinnedBuffer::foreign(device, start, len, self.owner) }
    }

    /// A copy of the elements, row after row, in a new buffer. The tensor may have any strides, be read-only, or be in
    /// memory of the host while the stream is a GPU's. Waits until the copy has run.
    ///
    /// Elements that lie in rows are copied row by row, others one by one. On a GPU that takes one call of the driver for
    /// each two-dimensional part (`cuMemcpy2DAsync`).
    ///
    /// # Errors
    /// [`DlpackError::ElementType`], [`DlpackError::OtherDevice`], [`DlpackError::Alignment`];
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory), or a failure of the device.
    pub fn copy_to_buffer<T: DlpackElement>(&self, stream: &Stream) -> Result<DeviceBuffer<T>> {
        self.check::<T>(stream.device(), (&[CUDA, CUDA_MANAGED, CUDA_HOST, CPU], &[CPU, CUDA_HOST]))?;
        let mut copy = DeviceBuffer::allocate(stream, self.len()?, Contents::Uninitialised)?;
        if copy.is_empty() {
            return Ok(copy);
        }
        self.begin(stream)?;
        let place = match self.device.device_type {
            CPU | CUDA_HOST => Place::Host,
            _ => Place::Device,
        };
        let size = size_of::<T>();
        let gather = Gather::new(&self.shape, &self.strides, i64::from(i32::MAX) / size as i64);
        let rows = Rows {
            width: gather.block.width * size,
            height: gather.block.height,
            source_pitch: gather.block.source_pitch * size,
            target_pitch: gather.block.target_pitch * size,
        };
        let target = copy.view_mut().start();
        let copied = gather.for_each(|from, to| {
            let (source, target) =
                (self.start.cast::<T>().wrapping_offset(from as isize), target.wrapping_offset(to as isize));
            // SAFETY: the tensor has these elements, by the contract of the take-over, and nothing writes them; `copy` has
            // as many, and was allocated on this stream. The wait below outlasts both.
            unsafe { stream.inner().copy_rows(target.cast(), source.cast(), rows, (Place::Device, place)) }
        });
        // In any case: `self` may be dropped after this.
        let waited = stream.synchronize();
        copied.and(waited).and_then(|()| self.sources().check()).map(|()| copy)
    }

    fn check_writable(&self) -> Result<(), DlpackError> {
        if self.is_read_only() { Err(DlpackError::ReadOnly) } else { Ok(()) }
    }

    /// Whether its elements are `T`s, aligned, in memory of `device`: of one of these types of devices on a GPU, and on the
    /// CPU device.
    fn check<T: DlpackElement>(
        &self,
        device: &Device,
        (on_gpu, on_cpu): (&[i32], &[i32]),
    ) -> Result<(), DlpackError> {
        if self.dtype != T::TYPE {
            return Err(DlpackError::ElementType { found: self.dtype, expected: T::TYPE });
        }
        let DLDevice { device_type, device_id } = self.device;
        let is_here = match device.ordinal() {
            // The host's memory is near all GPUs.
            Some(_) if matches!(device_type, CPU | CUDA_HOST) => on_gpu.contains(&device_type),
            Some(ordinal) => on_gpu.contains(&device_type) && usize::try_from(device_id) == Ok(ordinal),
            None => on_cpu.contains(&device_type),
        };
        if !is_here {
            return Err(DlpackError::OtherDevice { found: self.device, expected: device.to_string().into() });
        }
        let (address, alignment) = (self.start.addr(), align_of::<T>());
        if !self.shape.contains(&0) && !address.is_multiple_of(alignment) {
            return Err(DlpackError::Alignment { address, alignment });
        }
        Ok(())
    }
}
