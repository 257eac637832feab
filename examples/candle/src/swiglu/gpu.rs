//! Memory of candle's tensors on a GPU as buffers of launches.

use std::ops::Deref;

use candle_core::cuda_backend::cudarc::driver::sys::CUdeviceptr;
use candle_core::cuda_backend::cudarc::driver::{DevicePtrMut as _, DeviceRepr, SyncOnDrop};
use candle_core::cuda_backend::{CudaDType, CudaDevice};
use candle_core::{CudaStorage, Error, Layout, Result};
use ferrogrid::interop::SharedStream;
use ferrogrid::{DeviceBuffer, DeviceCopy, DevicePtrMut, DeviceViewMut};

/// Memory that candle lends to launches on its stream.
pub struct Lent<'a, T> {
    buffer: DeviceBuffer<T>,
    /// Tells candle's other streams at its drop, after the launches.
    _use: SyncOnDrop<'a>,
}

impl<T> Deref for Lent<'_, T> {
    type Target = DeviceBuffer<T>;

    fn deref(&self) -> &DeviceBuffer<T> {
        &self.buffer
    }
}

impl<'a, T: DeviceCopy> Lent<'a, T> {
    /// # Safety
    /// At the address there are `len` elements, which candle keeps until the end of `'a`, and which it frees or uses after that in the
    /// order of `stream`. They are used by launches on this stream only.
    unsafe fn new(
        stream: &SharedStream,
        (address, _use): (CUdeviceptr, SyncOnDrop<'a>),
        len: usize,
    ) -> Result<Self> {
        let start = std::ptr::with_exposed_provenance_mut(address as usize);
        // SAFETY: the caller vouches for the memory and its order; the buffer frees nothing.
        let buffer = unsafe { DeviceBuffer::from_raw(stream, DevicePtrMut::from_raw(start), len, ()) };
        Ok(Lent { buffer: buffer.map_err(Error::wrap)?, _use })
    }
}

/// The elements of a tensor, to be read.
pub fn input<'a, T: CudaDType + DeviceCopy>(
    stream: &'a SharedStream,
    storage: &'a CudaStorage,
    layout: &Layout,
) -> Result<Lent<'a, T>> {
    let (start, end) = super::range(layout)?;
    let elements = storage.as_cuda_slice::<T>()?.slice(start..end).view_ptr(stream.cudarc());
    // SAFETY: these are elements of the storage, which is borrowed and whose stream this is. Kernels only read them, so that the memory of
    // two inputs may be the same.
    unsafe { Lent::new(stream, elements, end - start) }
}

/// Memory of candle with `len` elements, all of which `write` sets.
pub fn output<T: CudaDType + DeviceRepr + DeviceCopy>(
    stream: &SharedStream,
    device: &CudaDevice,
    len: usize,
    write: impl FnOnce(DeviceViewMut<'_, T>) -> ferrogrid::Result<()>,
) -> Result<CudaStorage> {
    // SAFETY: the kernels of this module set each element.
    let mut elements = unsafe { device.alloc::<T>(len)? };
    // SAFETY: any bits are numbers; nothing else has the memory, which was allocated in the order of this stream.
    let mut lent = unsafe { Lent::new(stream, elements.device_ptr_mut(stream.cudarc()), len)? };
    write(lent.buffer.view_mut()).map_err(Error::wrap)?;
    drop(lent);
    Ok(CudaStorage::wrap_cuda_slice(elements, device.clone()))
}
