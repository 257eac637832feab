//! [`SharedStream`]: one stream of CUDA, as this crate's and as cudarc's.

use std::ops::Deref;
use std::sync::Arc;

use cudarc::driver::sys::CUstream;
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtrMut as _, DriverError};
use ferrogrid_device::DeviceCopy;

use super::calls::{Call, Calls};
use super::view::{SharedView, SharedViewMut};
use crate::backend::cuda::CudaDevice;
use crate::backend::cuda::stream::per_thread::PER_THREAD;
use crate::device::Device;
use crate::device::context::gpu;
use crate::error::{Error, Result};
use crate::memory::access::Access;
use crate::memory::buffer::DeviceBuffer;
use crate::stream::Stream;
use crate::view::argument::{DeviceInput, DeviceOutput};
use crate::view::pointer::DevicePtrMut;

/// A stream that cudarc owns, with all methods of [`Stream`]. The [module](super) says what it is for.
///
/// It can be sent to other threads and shared by them, as both of its halves.
pub struct SharedStream {
    /// Dropped before the stream of which it is a handle.
    ours: Stream,
    theirs: Arc<CudaStream>,
    calls: Calls,
}

impl Deref for SharedStream {
    type Target = Stream;

    fn deref(&self) -> &Stream {
        &self.ours
    }
}

impl SharedStream {
    /// A new stream on a GPU (`cuStreamCreate`, not ordered with the legacy default stream), in a new [`CudaContext`] of
    /// cudarc for the device's primary context.
    ///
    /// # Errors
    /// [`Error::Unsupported`] on the CPU device; or if the device fails.
    ///
    /// # Safety
    /// As [`SharedStream::from_cudarc`].
    pub unsafe fn new(device: &Device) -> Result<SharedStream> {
        let cuda = gpu(device, "SharedStream::new")?;
        let context = CudaContext::new(cuda.ordinal()).map_err(failed(cuda, "CudaContext::new"))?;
        let stream = context.new_stream().map_err(failed(cuda, "CudaContext::new_stream"))?;
        // SAFETY: passed on.
        unsafe { SharedStream::from_cudarc(stream) }
    }

    /// Shares a stream of cudarc. The legacy default stream can be shared, that of a thread cannot.
    ///
    /// # Errors
    /// [`Error::ForeignContext`] if its context is not a primary one; [`Error::Unsupported`] for the default stream of a thread; or
    /// if the device fails.
    ///
    /// # Safety
    /// As long as this exists, no code captures the stream into a graph, for instance by `CudaStream::begin_capture`, which is safe.
    /// Else the methods of [`Stream`] would return before their work is done.
    pub unsafe fn from_cudarc(theirs: Arc<CudaStream>) -> Result<SharedStream> {
        let device = Device::cuda(theirs.context().ordinal())?;
        if theirs.cu_stream().addr() == PER_THREAD {
            let reason = "it is another stream on each thread: share one of `CudaContext::new_stream`";
            return Err(Error::unsupported(
                "SharedStream::from_cudarc of CU_STREAM_PER_THREAD",
                &device,
                reason,
            ));
        }
        let cuda = gpu(&device, "SharedStream::from_cudarc")?;
        if theirs.context().cu_ctx() != cuda.context()? {
            return Err(cuda.foreign_context());
        }
        // SAFETY: `theirs` keeps the stream, and is dropped after `ours`; the caller vouches for the rest.
        let ours = unsafe { Stream::from_raw(&device, theirs.cu_stream().cast())? };
        Ok(SharedStream { ours, theirs, calls: Calls::default() })
    }

    /// The stream as cudarc's: for [`CudaBlas::new`](https://docs.rs/cudarc/latest/cudarc/cublas/safe/struct.CudaBlas.html) and the like.
    pub fn cudarc(&self) -> &Arc<CudaStream> {
        &self.theirs
    }

    /// The stream's handle, for functions of libraries that cudarc gives no safe form.
    pub fn handle(&self) -> CUstream {
        self.theirs.cu_stream()
    }

    /// Orders the memory of `access` for calls of libraries.
    pub(super) fn begin<'a>(&'a self, access: Access<'a>) -> Result<Call<'a>> {
        self.calls.begin(&self.ours, access)
    }

    /// `x` as an input of cudarc's functions.
    ///
    /// # Errors
    /// If the memory is another device's, or the device fails.
    pub fn read<'a, T: DeviceCopy>(&'a self, x: impl DeviceInput<'a, T>) -> Result<SharedView<'a, T>> {
        SharedView::new(self, x.into_input())
    }

    /// `y` as an output of cudarc's functions, or as what they change in place.
    ///
    /// # Errors
    /// If the memory is another device's, or the device fails.
    pub fn write<'a, T: DeviceCopy>(&'a self, y: impl DeviceOutput<'a, T>) -> Result<SharedViewMut<'a, T>> {
        SharedViewMut::new(self, y.into_output())
    }

    /// Makes a buffer of memory that cudarc has allocated. Work of cudarc that uses it comes first; when the buffer is dropped, cudarc
    /// frees the memory after the last work that uses it.
    ///
    /// ```no_run
    /// # use ferrogrid::Device;
    /// # use ferrogrid::interop::SharedStream;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // SAFETY: nothing captures the stream.
    /// let stream = unsafe { SharedStream::new(&Device::cuda(0)?)? };
    /// let theirs = stream.cudarc().clone_htod(&[1.0_f32, 2.0])?; // a `CudaSlice`
    /// let mut buffer = stream.adopt(theirs)?;
    /// stream.fill_into(5.0, buffer.slice_mut(1..)?)?;
    /// assert_eq!(stream.download(&buffer)?, [1.0, 5.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::DeviceMismatch`] if it is memory of another device, [`Error::ForeignContext`] of another context than the primary
    /// one; or if the device fails. The memory is freed then.
    pub fn adopt<T: DeviceCopy>(&self, mut slice: CudaSlice<T>) -> Result<DeviceBuffer<T>> {
        let cuda = gpu(self.device(), "SharedStream::adopt")?;
        if slice.ordinal() != cuda.ordinal() {
            return Err(Error::device_mismatch(&Device::cuda(slice.ordinal())?, self.device()));
        }
        if slice.context() != self.theirs.context() {
            return Err(cuda.foreign_context());
        }
        // What cudarc knows of uses on other streams, and if it does not keep account of them, the stream of the allocation.
        self.theirs.join(slice.stream()).map_err(failed(cuda, "CudaStream::join"))?;
        let (address, used) = slice.device_ptr_mut(&self.theirs);
        drop(used);
        let address = std::ptr::with_exposed_provenance_mut(address as usize);
        let len = slice.len();
        // SAFETY: cudarc has allocated `len` elements, which `slice` keeps and which are initialised unless `unsafe` code has broken its
        // promise. Nothing else has the slice, and this stream has been made to wait for its uses.
        unsafe { DeviceBuffer::from_raw(self, DevicePtrMut::from_raw(address), len, slice) }
    }
}

debug_by_methods!(SharedStream { id, device });

/// What a failed call of cudarc is as an error of this crate.
fn failed(cuda: &'static CudaDevice, function: &'static str) -> impl FnOnce(DriverError) -> Error {
    move |DriverError(code)| cuda.error_of(function, code)
}
