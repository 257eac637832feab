//! Page-locked host memory, for asynchronous copies and zero-copy use by devices.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, RangeBounds};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use bytemuck::Zeroable;
use ferrogrid_device::DeviceCopy;

use crate::backend::retired;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::memory::buffer::DeviceBuffer;
use crate::memory::mapped::Mapped;
use crate::memory::{Memory, Origin};
use crate::stream::StreamInner;
use crate::view::argument::pass_by_view;
use crate::view::{DeviceView, DeviceViewMut};

/// `len` elements of type `T` in page-locked memory of the host: a slice that devices can read and write
/// on their own, in the background and at the full speed of the bus.
///
/// [`Stream::upload_async`](crate::Stream::upload_async) and
/// [`Stream::download_async`](crate::Stream::download_async) take it by value and give it back when the
/// copy has run, so that it cannot be accessed meanwhile. On the CPU device it is ordinary memory. It is
/// page-locked for all devices.
///
/// Launches and copies on a device also take `&buffer`, `&mut buffer` and views of it as they take those of a
/// [`DeviceBuffer`](crate::DeviceBuffer): the device then uses the memory in place, over the bus (zero-copy). Such work
/// returns at once and is ordered like that on any buffer. Code that uses the slice waits for the work that it must come
/// after, and as long as the slice is borrowed no work that would conflict with it can be enqueued. If the buffer is
/// dropped, it is freed after that work, now or when some later call finds that it has run; for that the driver waits for
/// whatever else runs on the device (`cuMemFreeHost`, `cuMemHostUnregister`).
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// y <- 2 x
/// #[kernel]
/// pub fn double(t: Thread<1>, x: &[f32], mut y: DisjointSlice<f32>) {
///     let i = t.index();
///     if let Some(y) = y.get_mut(i) {
///         *y = 2.0 * x[i.get()];
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// let device = Device::cpu();
/// let stream = device.new_stream()?;
/// let mut x = device.pinned_copy(&[1.0, 2.0, 3.0])?;
/// let mut y = device.pinned_zeros(3)?;
/// kernels::double(&stream, Grid::cover(3), &x, &mut y)?; // no copy; returns at once
/// assert_eq!(*y, [2.0, 4.0, 6.0]); // waits for the kernel
/// x[0] = 7.0;
/// kernels::double(&stream, Grid::cover(2), x.slice(..2)?, y.slice_mut(1..)?)?;
/// assert_eq!(y.read()?, [2.0, 14.0, 4.0]); // a failed kernel would be an error here, and a panic above
/// # Ok(()) }
/// ```
///
/// The device cannot write while the host reads:
///
/// ```compile_fail,E0502
/// # fn main() -> ferrogrid_host::Result<()> {
/// let device = ferrogrid_host::Device::cpu();
/// let (stream, mut host) = (device.new_stream()?, device.pinned_zeros::<u32>(3)?);
/// let first = &host[0];
/// stream.fill_into(7, &mut host)?;
/// assert_eq!(*first, 0);
/// # Ok(()) }
/// ```
///
/// # Panics
/// The slice panics if a kernel that was to write the memory has failed, or the device has; [`PinnedBuffer::read`] and
/// [`PinnedBuffer::write`] give the error instead. The memory is good again when it is written again as a whole on a
/// stream. A function of [`Stream::launch_host_func`](crate::Stream::launch_host_func) must not wait for its own stream, so it must not use
/// the slice of a buffer that work there uses.
///
/// ```
/// # fn main() -> ferrogrid_host::Result<()> {
/// use ferrogrid_host::Device;
///
/// let device = Device::cpu();
/// let stream = device.new_stream()?;
/// let mut host = device.pinned_zeros::<f32>(1000)?;
/// host.fill(1.5); // it is a slice
///
/// let mut buffer = stream.zeros::<f32>(1000)?;
/// let upload = stream.upload_async(host, &mut buffer)?;
/// // ... the host continues meanwhile ...
/// let host = upload.wait()?;
/// let host = stream.download_async(&buffer, host)?.wait()?;
/// assert_eq!(host[999], 1.5);
/// # Ok(()) }
/// ```
///
/// It cannot be read while a copy writes it:
///
/// ```compile_fail,E0382
/// # fn main() -> ferrogrid_host::Result<()> {
/// let device = ferrogrid_host::Device::cpu();
/// let stream = device.new_stream()?;
/// let (buffer, host) = (stream.zeros::<f32>(2)?, device.pinned_zeros::<f32>(2)?);
/// let download = stream.download_async(&buffer, host)?;
/// assert_eq!(host[0], 0.0);
/// # Ok(()) }
/// ```
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// let device = Device::cpu();
/// let stream = device.new_stream()?;
/// let mut frames = device.pinned_zeros_write_combined::<u8>(4)?; // the host only writes there
/// frames.copy_from_slice(&[1, 2, 3, 4]);
/// let mut buffer = stream.zeros::<u8>(4)?;
/// let frames = stream.upload_async(frames, &mut buffer)?.wait()?;
/// assert_eq!(frames.device(), &device);
///
/// let back = stream.download_async(&buffer, device.pinned_copy(&[0; 4])?)?.wait()?;
/// assert_eq!(back.into_vec(), [1, 2, 3, 4]);
/// # Ok(()) }
/// ```
pub struct PinnedBuffer<T: DeviceCopy> {
    mapped: Mapped<T>,
    /// `None` once they have been given away.
    pages: Option<Pages<T>>,
}

pass_by_view!([] PinnedBuffer<T>);

/// Borrowed memory that is page-locked, in [`Device::with_pinned`]: a slice that launches and copies on a device also
/// take as `&slice`, `&mut slice` or a view, as they take a [`PinnedBuffer`].
///
/// ```
/// # fn main() -> ferrogrid_host::Result<()> {
/// let device = ferrogrid_host::Device::cpu();
/// let stream = device.new_stream()?;
/// let mut data = [1_u32, 2, 3, 4];
/// let first = device.with_pinned(&mut data, |data| {
///     stream.fill_into(7, data.slice_mut(2..)?)?; // in place
///     stream.download(data.view().slice(..3)?)
/// })??;
/// assert_eq!((first, data), (vec![1, 2, 7], [1, 2, 7, 7]));
/// # Ok(()) }
/// ```
///
/// # Panics
/// The slice panics as that of a [`PinnedBuffer`] does.
pub struct PinnedSlice<'a, T: DeviceCopy> {
    mapped: Mapped<T>,
    _locked: Locked,
    borrow: PhantomData<&'a mut [T]>,
}

pass_by_view!(['b,] PinnedSlice<'b, T>);

/// What page-locked memory belongs to. The lock ends first.
struct Pages<T> {
    /// `None` if another library has locked it.
    locked: Option<Locked>,
    /// The `Vec` that was registered.
    data: Option<Vec<T>>,
    /// What memory of another library belongs to.
    _owner: Option<Box<dyn Send>>,
}

/// Bytes that are page-locked until this is dropped.
struct Locked {
    start: *mut u8,
    bytes: usize,
    device: Device,
    /// Allocated as such, and else registered.
    is_allocated: bool,
}

// SAFETY: a buffer owns its elements, like a `Vec<T>`.
unsafe impl<T: DeviceCopy + Send> Send for PinnedBuffer<T> {}
// SAFETY: as above.
unsafe impl<T: DeviceCopy + Sync> Sync for PinnedBuffer<T> {}
// SAFETY: it is a `&mut [T]`.
unsafe impl<T: DeviceCopy + Send> Send for PinnedSlice<'_, T> {}
// SAFETY: as above.
unsafe impl<T: DeviceCopy + Sync> Sync for PinnedSlice<'_, T> {}
// SAFETY: elements are `Copy`, so that to drop them is to do nothing, and the memory may be freed by any thread.
unsafe impl<T: DeviceCopy> Send for Pages<T> {}

impl Device {
    /// Page-locked memory of the host for `len` elements whose bytes are all 0 (`cuMemHostAlloc`).
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// let device = Device::cpu();
    /// let stream = device.new_stream()?;
    /// let ones = stream.fill(1_u32, 1000)?;
    /// let memory = device.pinned_zeros::<u32>(1000)?;
    /// let copy = stream.download_async(&ones, memory)?; // returns at once
    /// assert_eq!(copy.wait()?[999], 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::SizeOverflow`], [`Error::OutOfMemory`], or a failure of the driver.
    pub fn pinned_zeros<T: DeviceCopy + Zeroable>(&self, len: usize) -> Result<PinnedBuffer<T>> {
        PinnedBuffer::zeroed(self, len, false)
    }

    /// As [`Device::pinned_zeros`], write-combined (`CU_MEMHOSTALLOC_WRITECOMBINED`): faster for a device to
    /// read, and very slow for the host to read. For memory that the host only writes.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// let device = Device::cpu();
    /// let stream = device.new_stream()?;
    /// let mut samples = device.pinned_zeros_write_combined::<f32>(3)?;
    /// samples.copy_from_slice(&[0.5, 1.0, 1.5]); // in order, each once: that is fast
    /// let mut buffer = stream.zeros(3)?;
    /// stream.upload_async(samples, &mut buffer)?.wait()?;
    /// assert_eq!(stream.download(&buffer)?, [0.5, 1.0, 1.5]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Device::pinned_zeros`].
    pub fn pinned_zeros_write_combined<T: DeviceCopy + Zeroable>(
        &self,
        len: usize,
    ) -> Result<PinnedBuffer<T>> {
        PinnedBuffer::zeroed(self, len, true)
    }

    /// Page-locked memory of the host with a copy of `data` (`cuMemHostAlloc`).
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// let device = Device::cpu();
    /// let stream = device.new_stream()?;
    /// let weights = device.pinned_copy(&[0.25_f32, 0.5, 0.25])?;
    /// let mut buffer = stream.zeros(3)?;
    /// let upload = stream.upload_async(weights, &mut buffer)?; // returns at once
    /// upload.wait()?;
    /// assert_eq!(stream.download(&buffer)?, [0.25, 0.5, 0.25]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Device::pinned_zeros`].
    pub fn pinned_copy<T: DeviceCopy>(&self, data: &[T]) -> Result<PinnedBuffer<T>> {
        let buffer = PinnedBuffer::<T>::allocate(self, data.len(), false)?;
        // SAFETY: there is room for as many elements as `data` has, in other memory.
        unsafe { buffer.mapped.start().as_ptr().copy_from_nonoverlapping(data.as_ptr(), data.len()) };
        Ok(buffer)
    }

    /// Page-locks the memory of `data` where it is (`cuMemHostRegister`), which is slow, but makes no
    /// copy. [`PinnedBuffer::into_vec`] gives it back.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let device = ferrogrid_host::Device::cpu();
    /// let stream = device.new_stream()?;
    /// let host = device.pin(vec![1_u32, 2, 3])?;
    /// let mut buffer = stream.zeros::<u32>(3)?;
    /// let data: Vec<u32> = stream.upload_async(host, &mut buffer)?.wait()?.into_vec();
    /// assert_eq!(data, stream.download(&buffer)?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The driver's error; it may refuse memory on a system without paging.
    pub fn pin<T: DeviceCopy>(&self, data: Vec<T>) -> Result<PinnedBuffer<T>> {
        let (bytes, mut data) = (size_of_val(data.as_slice()), data);
        // SAFETY: a `Vec` has no null pointer.
        let start = unsafe { NonNull::new_unchecked(data.as_mut_ptr()) };
        // SAFETY: a `Vec` that is not changed keeps its memory; the lock ends before it is dropped.
        let locked = unsafe { Locked::lock(self, start.as_ptr().cast(), bytes)? };
        let (len, locked) = (data.len(), Some(locked));
        PinnedBuffer::of(self, start, len, Pages { locked, data: Some(data), _owner: None })
    }

    /// Page-locks borrowed memory for the time of `work` (`cuMemHostRegister`, `cuMemHostUnregister`): for
    /// launches and copies that use it in place, and for copies in a [`Stream::scope`](crate::Stream::scope) inside.
    /// At the end it waits for them.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let device = ferrogrid_host::Device::cpu();
    /// let stream = device.new_stream()?;
    /// let mut buffer = stream.zeros::<u32>(3)?;
    /// let mut data = [1_u32, 2, 3];
    /// device.with_pinned(&mut data, |data| {
    ///     stream.scope(|scope| scope.upload_into(data, &mut buffer))?
    /// })??;
    /// assert_eq!(stream.download(&buffer)?, [1, 2, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The driver's error for the memory; `work` is then not called. At the end, the failure of a kernel that was to
    /// write the memory, or of the device.
    pub fn with_pinned<T: DeviceCopy, R>(
        &self,
        memory: &mut [T],
        work: impl FnOnce(&mut PinnedSlice<'_, T>) -> R,
    ) -> Result<R> {
        let mut memory = PinnedSlice::lock(self, memory)?;
        let result = work(&mut memory);
        memory.write()?;
        Ok(result)
    }
}

impl<'a, T: DeviceCopy> PinnedSlice<'a, T> {
    fn lock(device: &Device, memory: &'a mut [T]) -> Result<Self> {
        let (len, bytes) = (memory.len(), size_of_val(memory));
        let start = NonNull::from(memory).cast::<T>();
        // SAFETY: the memory is borrowed as long as the slice, which only `with_pinned` owns, and drops.
        let locked = unsafe { Locked::lock(device, start.as_ptr().cast(), bytes)? };
        // SAFETY: as above; `drop` ends the lock when no device uses it.
        let mapped = unsafe { Mapped::new(device, start, len)? };
        Ok(PinnedSlice { mapped, _locked: locked, borrow: PhantomData })
    }
}

impl<T: DeviceCopy> Drop for PinnedSlice<'_, T> {
    fn drop(&mut self) {
        // The lock ends after this; copies that use the memory have ended with the borrows in `work`.
        self.mapped.settle();
    }
}

impl Locked {
    /// # Safety
    /// `start` leads to `bytes` of memory, which are there until this is dropped and no device uses them any more.
    unsafe fn lock(device: &Device, start: *mut u8, bytes: usize) -> Result<Self> {
        if bytes > 0 {
            // SAFETY: passed on.
            unsafe { device.backend().lock_pages(start, bytes)? };
        }
        Ok(Locked { start, bytes, device: device.clone(), is_allocated: false })
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        let backend = self.device.backend();
        match self.is_allocated {
            _ if self.bytes == 0 => {}
            // SAFETY: allocated there with that size, and nothing uses it: copies own the buffer, and work in place is
            // waited for.
            true => unsafe { backend.free_host(self.start, self.bytes) },
            // SAFETY: as above, and registered there.
            false => unsafe { backend.unlock_pages(self.start) },
        }
    }
}

impl<T: DeviceCopy> PinnedBuffer<T> {
    fn allocate(device: &Device, len: usize, write_combined: bool) -> Result<Self> {
        retired::collect();
        let bytes = DeviceBuffer::<T>::bytes_of(len)?;
        let pointer = match bytes {
            0 => null_mut(),
            _ => device.backend().allocate_host(bytes, write_combined)?,
        };
        let start = NonNull::new(pointer.cast::<T>()).unwrap_or(NonNull::dangling());
        let locked = Some(Locked { start: pointer, bytes, device: device.clone(), is_allocated: true });
        PinnedBuffer::of(device, start, len, Pages { locked, data: None, _owner: None })
    }

    /// Memory of another library.
    ///
    /// # Safety
    /// `start` leads to `len` elements that nothing else uses before `owner` is dropped. If `device` is a GPU they are
    /// page-locked.
    pub(crate) unsafe fn foreign(
        device: &Device,
        start: NonNull<T>,
        len: usize,
        owner: Box<dyn Send>,
    ) -> Result<Self> {
        PinnedBuffer::of(device, start, len, Pages { locked: None, data: None, _owner: Some(owner) })
    }

    /// `len` elements from `start` on, which `pages` keeps.
    fn of(device: &Device, start: NonNull<T>, len: usize, pages: Pages<T>) -> Result<Self> {
        // SAFETY: `pages` has that many elements, page-locked, until `drop` gives it to `keep`.
        let mapped = unsafe { Mapped::new(device, start, len)? };
        Ok(PinnedBuffer { mapped, pages: Some(pages) })
    }

    fn zeroed(device: &Device, len: usize, write_combined: bool) -> Result<Self>
    where
        T: Zeroable,
    {
        let buffer = Self::allocate(device, len, write_combined)?;
        // SAFETY: there is room for `len` elements, for which zero bytes are a value.
        unsafe { buffer.mapped.start().as_ptr().write_bytes(0, len) };
        Ok(buffer)
    }
    /// The elements in ordinary memory: those that were given to [`Device::pin`] (`cuMemHostUnregister`), or a copy. Waits
    /// for devices that use them in place.
    ///
    /// # Panics
    /// As the slice does, if a kernel that was to write the elements has failed.
    pub fn into_vec(mut self) -> Vec<T> {
        // Waits. What is left in `self` owns nothing.
        let elements = self.mapped.write().unwrap_or_else(|error| unreadable(&error));
        match self.pages.take() {
            Some(Pages { locked, data: Some(data), .. }) => {
                drop(locked);
                data
            }
            pages => {
                let copy = elements.to_vec();
                drop(pages);
                copy
            }
        }
    }

    pub(crate) fn mapped(&self) -> &Mapped<T> {
        &self.mapped
    }

    /// The same memory as what graphs of `stream`'s device use, in its order. Waits for devices that use it in place.
    ///
    /// # Errors
    /// [`Error::DeviceMismatch`] if the device cannot use it, [`Error::Unsupported`] if it can under another address only;
    /// the failure of a kernel that was to write it.
    pub(crate) fn into_memory(mut self, stream: &Arc<StreamInner>) -> Result<Memory> {
        let device = stream.device();
        if device.is_cuda() && !self.device().is_cuda() {
            return Err(Error::device_mismatch(self.device(), device));
        }
        let elements = self.mapped.write()?;
        let (start, bytes) = (elements.as_mut_ptr().cast(), size_of_val(elements));
        if bytes > 0
            // SAFETY: it is page-locked.
            && unsafe { device.backend().mapped_address(start)? } != Some(start)
        {
            let reason =
                "the device has it under another address than the host, as it has write-combined memory";
            return Err(Error::unsupported("page-locked memory as a part of a graph", device, reason));
        }
        // SAFETY: it is page-locked for all GPUs, and the device uses it under the host's address. It is not in use now, and
        // the owner is all that could reach it, out of reach from here on.
        Ok(unsafe { Memory::owned(stream, Origin::Pinned, start, bytes, Box::new(self)) })
    }
}

impl<T: DeviceCopy> Drop for PinnedBuffer<T> {
    fn drop(&mut self) {
        if let Some(pages) = self.pages.take() {
            self.mapped.keep(Box::new(pages));
        }
    }
}

/// What host and devices do with page-locked memory in turn.
macro_rules! in_turn {
    ($name:ident $(<$life:lifetime>)?) => {
        impl<T: DeviceCopy> $name<$($life,)? T> {
            /// The elements for the host to read, once all work that writes them in place has run: what the slice is,
            /// with an error instead of a panic.
            ///
            /// # Errors
            /// The failure of a kernel that was to write the memory, until it is written again on a stream; or a failure of
            /// the device.
            pub fn read(&self) -> Result<&[T]> {
                self.mapped.read()
            }

            /// The elements for the host to read and write, once all work that uses them in place has run.
            ///
            /// # Errors
            /// As `read`.
            pub fn write(&mut self) -> Result<&mut [T]> {
                self.mapped.write()
            }

            /// The device that it was page-locked with; all can use it.
            pub fn device(&self) -> &Device {
                self.mapped.memory().device()
            }

            /// All elements, for a device to read in place.
            pub fn view(&self) -> DeviceView<'_, T> {
                self.mapped.view()
            }

            /// All elements, for a device to write in place. From it come views of rank 2 and 3, and atomic ones: whose
            /// changes are atomic among the threads of one GPU.
            pub fn view_mut(&mut self) -> DeviceViewMut<'_, T> {
                self.mapped.view_mut()
            }

            /// The elements of `range`, for a device to read in place.
            ///
            /// # Errors
            /// [`Error::OutOfRange`] if the range does not lie in the memory.
            pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<DeviceView<'_, T>> {
                self.view().slice(range)
            }

            /// The elements of `range`, for a device to write in place.
            ///
            /// # Errors
            /// [`Error::OutOfRange`] if the range does not lie in the memory.
            pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<DeviceViewMut<'_, T>> {
                self.view_mut().slice(range)
            }
        }

        impl<T: DeviceCopy> Deref for $name<$($life,)? T> {
            type Target = [T];

            #[inline]
            #[track_caller]
            fn deref(&self) -> &[T] {
                self.mapped.read().unwrap_or_else(|error| unreadable(&error))
            }
        }

        impl<T: DeviceCopy> DerefMut for $name<$($life,)? T> {
            #[inline]
            #[track_caller]
            fn deref_mut(&mut self) -> &mut [T] {
                self.mapped.write().unwrap_or_else(|error| unreadable(&error))
            }
        }

        impl<T: DeviceCopy> fmt::Debug for $name<$($life,)? T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name))
                    .field("element", &std::any::type_name::<T>())
                    .field("len", &self.mapped.len())
                    .finish_non_exhaustive()
            }
        }
    };
}

in_turn!(PinnedBuffer);
in_turn!(PinnedSlice<'_>);

#[cold]
#[track_caller]
fn unreadable(error: &Error) -> ! {
    panic!("page-locked memory that a device was to use: {error}")
}
