//! Memory of this crate as cudarc's functions take it.

use std::marker::PhantomData;
use std::sync::Arc;

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaStream, DevicePtr, DevicePtrMut, DeviceSlice, SyncOnDrop};
use ferrogrid_device::DeviceCopy;

use super::calls::Call;
use super::stream::SharedStream;
use crate::error::{Error, Result};
use crate::view::{DeviceView, DeviceViewMut};

/// Elements that cudarc's functions read, from [`SharedStream::read`].
///
/// cudarc's functions take it by `DevicePtr` on the stream that it is of, and also on others: these wait for that stream, and the
/// host waits for them.
///
/// ```compile_fail,E0502
/// # use ferrogrid::Device;
/// # use ferrogrid::interop::SharedStream;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # // SAFETY: nothing captures the stream.
/// # let stream = unsafe { SharedStream::new(&Device::cuda(0)?)? };
/// let mut x = stream.zeros::<f32>(4)?;
/// let view = stream.read(&x)?;
/// stream.fill_into(1.0, &mut x)?; // while a library may still read it
/// drop(view);
/// # Ok(()) }
/// ```
pub struct SharedView<'a, T> {
    elements: Elements<'a>,
    types: PhantomData<&'a [T]>,
}

/// Elements that cudarc's functions write, from [`SharedStream::write`]; they take it by `DevicePtrMut`, or to read by `DevicePtr`.
/// On other streams than the one that it is of it is ordered as [`SharedView`].
pub struct SharedViewMut<'a, T> {
    elements: Elements<'a>,
    types: PhantomData<&'a mut [T]>,
}

struct Elements<'a> {
    start: CUdeviceptr,
    len: usize,
    stream: &'a SharedStream,
    /// Held for its drop.
    _call: Call<'a>,
}

impl Elements<'_> {
    /// Orders the calls that `stream` is about to get, before and, as what it returns is dropped, after.
    fn order<'s>(&self, stream: &'s CudaStream) -> SyncOnDrop<'s> {
        if *stream == **self.stream.cudarc() {
            return SyncOnDrop::Record(None);
        }
        stream.context().record_err(stream.join(self.stream.cudarc()));
        SyncOnDrop::sync_stream(stream)
    }
}

impl<'a, T: DeviceCopy> SharedView<'a, T> {
    pub(super) fn new(stream: &'a SharedStream, view: DeviceView<'a, T>) -> Result<Self> {
        let (start, len) = (view.start().expose_provenance() as CUdeviceptr, view.len());
        let call = stream.begin(view.into_access())?;
        Ok(SharedView { elements: Elements { start, len, stream, _call: call }, types: PhantomData })
    }
}

impl<'a, T: DeviceCopy> SharedViewMut<'a, T> {
    pub(super) fn new(stream: &'a SharedStream, view: DeviceViewMut<'a, T>) -> Result<Self> {
        let (start, len) = (view.start().expose_provenance() as CUdeviceptr, view.len());
        let call = stream.begin(view.into_access())?;
        Ok(SharedViewMut { elements: Elements { start, len, stream, _call: call }, types: PhantomData })
    }
}

macro_rules! shared {
    ($View:ident) => {
        impl<'a, T> $View<'a, T> {
            /// The same elements as those of another type of the same size, such as cuFFT's `float2` for `[f32; 2]`.
            ///
            /// # Errors
            /// [`Error::InvalidPointer`] if the first element is not aligned for the other type.
            ///
            /// # Safety
            /// The bytes are elements of both types.
            pub unsafe fn transmute<U>(self) -> Result<$View<'a, U>> {
                const { assert!(size_of::<T>() == size_of::<U>()) };
                let address = self.elements.start as usize;
                if !address.is_multiple_of(align_of::<U>()) {
                    return Err(Error::InvalidPointer {
                        address,
                        reason: "it is not aligned for its elements",
                    });
                }
                Ok($View { elements: self.elements, types: PhantomData })
            }
        }

        impl<T> DeviceSlice<T> for $View<'_, T> {
            fn len(&self) -> usize {
                self.elements.len
            }

            fn stream(&self) -> &Arc<CudaStream> {
                self.elements.stream.cudarc()
            }
        }

        impl<T> DevicePtr<T> for $View<'_, T> {
            fn device_ptr<'s>(&'s self, stream: &'s CudaStream) -> (CUdeviceptr, SyncOnDrop<'s>) {
                (self.elements.start, self.elements.order(stream))
            }
        }
    };
}

shared!(SharedView);
shared!(SharedViewMut);

impl<T> DevicePtrMut<T> for SharedViewMut<'_, T> {
    fn device_ptr_mut<'s>(&'s mut self, stream: &'s CudaStream) -> (CUdeviceptr, SyncOnDrop<'s>) {
        (self.elements.start, self.elements.order(stream))
    }
}
