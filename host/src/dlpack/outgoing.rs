//! Exported tensors: buffers, pitched, page-locked and managed memory, shared or copied.

use std::sync::Arc;

use super::abi::{CPU, CUDA, CUDA_HOST, CUDA_MANAGED, DLDevice, IS_COPIED};
use super::element::DlpackElement;
use super::layout::row_major;
use super::ready::begin;
use super::tensor::DlpackTensor;
use crate::device::Device;
use crate::error::Result;
use crate::memory::Memory;
use crate::memory::buffer::DeviceBuffer;
use crate::memory::managed::ManagedBuffer;
use crate::memory::pinned::PinnedBuffer;
use crate::memory::pitched::PitchedBuffer;
use crate::order::Use;
use crate::stream::Stream;
use crate::view::argument::DeviceInput;

/// Exported memory; its device is waited for before it is freed, because its consumer may have used it on
/// other streams.
struct GivenAway<M> {
    memory: Option<M>,
    device: Device,
}

impl<M> Drop for GivenAway<M> {
    fn drop(&mut self) {
        let memory = self.memory.take();
        if self.device.is_cuda() && self.device.synchronize().is_err() {
            // The device has failed, and its memory with it.
            std::mem::forget(memory);
        }
    }
}

/// Where memory of `device` is, which on a GPU is of `kind`.
fn place(device: &Device, kind: i32) -> DLDevice {
    let Some(ordinal) = device.ordinal() else { return DLDevice { device_type: CPU, device_id: 0 } };
    // Page-locked memory belongs to the host, not to the device that created it.
    let number = if kind == CUDA_HOST { 0 } else { ordinal };
    DLDevice { device_type: kind, device_id: i32::try_from(number).unwrap_or(i32::MAX) }
}

impl DlpackTensor {
    /// `buffer` as a tensor of one dimension. Waits until all work that uses it has run, because another
    /// library does not know the order kept here.
    ///
    /// # Errors
    /// A failure of that work, as [`Stream::synchronize`]; a stream of another device.
    pub fn from_buffer<T: DlpackElement>(stream: &Stream, buffer: DeviceBuffer<T>) -> Result<Self> {
        finish(stream, buffer.memory(), Use::Write)?;
        Ok(Self::own::<T, _>(parts(&buffer), CUDA, buffer))
    }

    /// The rows of `buffer` as a tensor of two dimensions, `[height, width]`, with its pitch as the stride of rows. Else as
    /// [`DlpackTensor::from_buffer`].
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// use ferrogrid::dlpack::DlpackTensor;
    ///
    /// let image = DlpackTensor::from_pitched(&stream, stream.zeros_pitched::<f32>(100, 20)?)?;
    /// assert_eq!((image.shape(), image.strides()), (&[20, 100][..], &[128, 1][..]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`DlpackTensor::from_buffer`].
    pub fn from_pitched<T: DlpackElement>(stream: &Stream, buffer: PitchedBuffer<T>) -> Result<Self> {
        let rows = buffer.view();
        let (shape, pitch) = ([rows.height(), rows.width()], rows.pitch() as i64);
        Self::from_buffer(stream, buffer.into_buffer())?.with_layout(&shape, &[pitch, 1], 0)
    }

    /// Page-locked memory as a tensor of one dimension ([`CUDA_HOST`]; on the CPU device [`CPU`]), which both host and
    /// GPUs can use. Waits for kernels that use it.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// use ferrogrid_host::Device;
    /// use ferrogrid_host::dlpack::DlpackTensor;
    ///
    /// let device = Device::cpu();
    /// let tensor = DlpackTensor::from_pinned(device.pinned_copy(&[1.0_f32, 2.0])?)?;
    /// // SAFETY: from `into_raw`, with no other owner.
    /// let back = unsafe { DlpackTensor::from_raw(tensor.into_raw())? };
    /// assert_eq!(*back.into_pinned::<f32>(&device)?, [1.0, 2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The failure of a kernel that was to write it, or of the device.
    pub fn from_pinned<T: DlpackElement>(mut memory: PinnedBuffer<T>) -> Result<Self> {
        let elements = memory.write()?;
        let (start, len) = (elements.as_mut_ptr().cast(), elements.len());
        Ok(Self::own::<T, _>((start, len, memory.device().clone()), CUDA_HOST, memory))
    }

    /// Managed memory as a tensor of one dimension ([`CUDA_MANAGED`]; on the CPU device [`CPU`]). Waits for work that uses
    /// it.
    ///
    /// # Errors
    /// As [`DlpackTensor::from_pinned`].
    pub fn from_managed<T: DlpackElement>(mut memory: ManagedBuffer<T>) -> Result<Self> {
        memory.write()?;
        Ok(Self::own::<T, _>(parts(&memory), CUDA_MANAGED, memory))
    }

    /// A buffer that stays in use here as a read-only tensor of one dimension. Waits for work that writes it. As long as
    /// the tensor is there, `buffer` is shared and cannot be written.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// use std::sync::Arc;
    /// use ferrogrid::dlpack::DlpackTensor;
    ///
    /// let mut weights = Arc::new(stream.upload(&[0.5_f32, 1.5])?);
    /// let tensor = DlpackTensor::from_shared(&stream, weights.clone())?;
    /// assert!(tensor.is_read_only() && Arc::get_mut(&mut weights).is_none());
    /// assert_eq!(stream.download(&*weights)?, [0.5, 1.5]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`DlpackTensor::from_buffer`].
    pub fn from_shared<T: DlpackElement + Sync>(
        stream: &Stream,
        buffer: Arc<DeviceBuffer<T>>,
    ) -> Result<Self> {
        finish(stream, buffer.memory(), Use::Read)?;
        buffer.memory().writers().sources().check()?;
        Ok(Self::own::<T, _>(parts(&buffer), CUDA, buffer).with_read_only())
    }

    /// A copy of a buffer or view as a tensor of one dimension, owned by its consumer alone
    /// (`DLPACK_FLAG_BITMASK_IS_COPIED`).
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory), or as [`DlpackTensor::from_buffer`].
    pub fn from_copy<'a, T: DlpackElement>(stream: &Stream, source: impl DeviceInput<'a, T>) -> Result<Self> {
        let tensor = Self::from_buffer(stream, stream.duplicate(source)?)?;
        Ok(DlpackTensor { flags: tensor.flags | IS_COPIED, ..tensor })
    }

    pub(super) fn own<T: DlpackElement, M: Send + 'static>(
        (start, len, device): (*mut u8, usize, Device),
        kind: i32,
        memory: M,
    ) -> Self {
        DlpackTensor {
            start,
            device: place(&device, kind),
            dtype: T::TYPE,
            shape: vec![len],
            strides: row_major(&[len]),
            flags: 0,
            owner: Box::new(GivenAway { memory: Some(memory), device }),
            ready: None,
        }
    }
}

/// Where a buffer is, how many elements it has, and its device.
pub(super) fn parts<T: DlpackElement>(buffer: &DeviceBuffer<T>) -> (*mut u8, usize, Device) {
    (buffer.memory().pointer(), buffer.len(), buffer.device().clone())
}

/// Waits until memory may be used so.
fn finish(stream: &Stream, memory: &Memory, usage: Use) -> Result<()> {
    begin(stream, memory, usage)?;
    stream.synchronize()
}
