//! Copies between page-locked memory and a device that run in the background: the copy owns the host's memory
//! until it is done.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use ferrogrid_device::DeviceCopy;

use crate::backend::writers::Sources;
use crate::backend::{Place, retired};
use crate::error::Result;
use crate::memory::access::enqueue;
use crate::memory::pinned::PinnedBuffer;
use crate::order::Use;
use crate::stream::Stream;
use crate::stream::completion::Completion;
use crate::view::agree;
use crate::view::argument::{DeviceInput, DeviceOutput};

/// A copy that is under way, and the memory of the host that it uses: made by
/// [`Stream::upload_async`] and [`Stream::download_async`].
///
/// [`Transfer::wait`], or awaiting it, gives the memory back. If it is dropped before the copy has run,
/// the copy still runs, and the memory is freed some time after; if it is forgotten, the memory is
/// never freed.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// let device = Device::cpu();
/// let stream = device.new_stream()?;
/// let mut buffer = stream.zeros::<u32>(1000)?;
/// let upload = stream.upload_async(device.pinned_copy(&[7_u32; 1000])?, &mut buffer)?;
/// // The host does something else, and then needs its memory again.
/// let memory = upload.wait()?;
/// let download = stream.download_async(&buffer, memory)?;
/// assert_eq!(download.wait()?[999], 7);
/// # Ok(()) }
/// ```
#[must_use = "it owns the memory; `wait` gives it back"]
pub struct Transfer<T: DeviceCopy> {
    /// `None` once it has been given back.
    /// The memory, and what is waited for; `None` once the memory has been given back.
    under_way: Option<(PinnedBuffer<T>, Completion<'static>)>,
    sources: Sources,
}

/// Page-locked memory that only waits to be freed, on any thread.
struct Memory<T: DeviceCopy> {
    _buffer: PinnedBuffer<T>,
}

// SAFETY: elements are `Copy`, so that to drop them is to do nothing, and the memory may be freed by any
// thread.
unsafe impl<T: DeviceCopy> Send for Memory<T> {}

impl Stream {
    /// Enqueues a copy of `source` into existing elements of the same number, and returns at once
    /// (`cuMemcpyAsync`). [`Transfer::wait`] returns `source`.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// let device = Device::cpu();
    /// let stream = device.new_stream()?;
    /// let mut buffer = stream.zeros::<u32>(1000)?;
    /// let transfer = stream.upload_async(device.pinned_copy(&[7; 1000])?, &mut buffer)?;
    /// while !transfer.is_complete()? {
    ///     std::thread::yield_now(); // the host does something else
    /// }
    /// let mut memory = transfer.wait()?; // which does not wait now
    /// memory.fill(8); // free for the next part
    /// assert_eq!(stream.download(&buffer)?, [7; 1000]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::LengthMismatch`](crate::Error::LengthMismatch), or a failure of the device; `source` is
    /// dropped then.
    pub fn upload_async<'a, T: DeviceCopy>(
        &self,
        source: PinnedBuffer<T>,
        target: impl DeviceOutput<'a, T>,
    ) -> Result<Transfer<T>> {
        let (host, target) = (source.mapped(), target.into_output());
        agree("upload_async", host.len(), target.len())?;
        self.inner().refuse_host_memory("an upload")?;
        let (from, bytes) = (host.start().as_ptr().cast(), host.memory().bytes());
        enqueue(self.inner(), None, Some(target.access()), bytes, || {
            host.follow(self.inner(), Use::Read)?;
            let places = (target.memory().place(), Place::Host);
            // SAFETY: the view is as many elements of this device as `source` has, ordered for writing
            // here; `source` is kept, and out of reach, until the copy has run, which comes after devices' writes.
            unsafe { self.inner().copy(target.start().cast(), from, bytes, places) }
        })?;
        target.access().receive(host.memory(), self.inner());
        self.transfer(source, Sources::default())
    }

    /// Enqueues a copy of a buffer or view into `target`, of the same length, and returns at once
    /// (`cuMemcpyAsync`). [`Transfer::wait`] returns the filled `target`.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// async fn sum(device: &Device) -> ferrogrid::Result<u32> {
    ///     let stream = device.new_stream()?;
    ///     let ones = stream.fill(1_u32, 1000)?;
    ///     let memory = stream.download_async(&ones, device.pinned_zeros(1000)?)?.await?; // no thread waits
    ///     Ok(memory.iter().sum())
    /// }
    /// assert_eq!(pollster::block_on(sum(&Device::cpu()))?, 1000);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::LengthMismatch`](crate::Error::LengthMismatch), or a failure of the device; `target` is
    /// dropped then.
    pub fn download_async<'a, T: DeviceCopy>(
        &self,
        source: impl DeviceInput<'a, T>,
        target: PinnedBuffer<T>,
    ) -> Result<Transfer<T>> {
        let (source, host) = (source.into_input(), target.mapped());
        agree("download_async", source.len(), host.len())?;
        self.inner().refuse_host_memory("a download")?;
        let sources = source.memory().writers().sources();
        let (to, bytes) = (host.start().as_ptr().cast(), host.memory().bytes());
        enqueue(self.inner(), Some(source.access()), None, bytes, || {
            host.follow(self.inner(), Use::Write)?;
            let places = (Place::Host, source.memory().place());
            // SAFETY: the view is as many elements of this device as `target` has, ordered for reading
            // here; `target` is kept, and out of reach, until the copy has run, which comes after devices' uses.
            unsafe { self.inner().copy(to, source.start().cast(), bytes, places) }
        })?;
        host.memory().writers().overwrite(true);
        self.transfer(target, sources)
    }

    /// The transfer that ends with the work that was just enqueued.
    fn transfer<T: DeviceCopy>(&self, buffer: PinnedBuffer<T>, sources: Sources) -> Result<Transfer<T>> {
        match self.completed() {
            Ok(completion) => Ok(Transfer { under_way: Some((buffer, completion)), sources }),
            Err(error) => {
                // The copy may be under way, and its end cannot be observed.
                std::mem::forget(buffer);
                Err(error)
            }
        }
    }
}

impl<T: DeviceCopy> Transfer<T> {
    /// Whether the copy has run.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// let device = Device::cpu();
    /// let stream = device.new_stream()?;
    /// let ones = stream.fill(1_u8, 1000)?;
    /// let transfer = stream.download_async(&ones, device.pinned_zeros(1000)?)?;
    /// while !transfer.is_complete()? {
    ///     std::thread::yield_now(); // do something else
    /// }
    /// assert_eq!(transfer.wait()?[999], 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the device has failed.
    pub fn is_complete(&self) -> Result<bool> {
        let Some((_, completion)) = &self.under_way else { return Ok(true) };
        let complete = completion.is_complete();
        completion.deliver_output();
        complete
    }

    /// Waits until the copy has run, and returns the host memory.
    ///
    /// # Errors
    /// A failure of the work before, as [`Stream::synchronize`]; that of the kernel that wrote what was downloaded, as
    /// [`Stream::download`]; or of the device. The memory is dropped then.
    pub fn wait(mut self) -> Result<PinnedBuffer<T>> {
        let result = self.under_way.as_ref().map_or(Ok(()), |(_, completion)| completion.finish());
        self.give_back(result)
    }

    /// After the completion has returned `result`: then nothing uses the memory any more.
    fn give_back(&mut self, result: Result<()>) -> Result<PinnedBuffer<T>> {
        let buffer = self.under_way.take().map(|(buffer, _)| buffer);
        retired::collect();
        result?;
        self.sources.check()?;
        Ok(buffer.expect("a transfer is not polled after it has given its memory back"))
    }
}

impl<T: DeviceCopy> Future for Transfer<T> {
    type Output = Result<PinnedBuffer<T>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let transfer = self.get_mut();
        let result = match &mut transfer.under_way {
            None => Poll::Ready(Ok(())),
            Some((_, completion)) => Pin::new(completion).poll(context),
        };
        result.map(|result| transfer.give_back(result))
    }
}

// Nothing in it is ever borrowed across a poll.
impl<T: DeviceCopy> Unpin for Transfer<T> {}

impl<T: DeviceCopy> Drop for Transfer<T> {
    fn drop(&mut self) {
        let Some((buffer, completion)) = self.under_way.take() else { return };
        if let Some(event) = completion.into_event() {
            retired::retire(event, Box::new(Memory { _buffer: buffer }));
        }
    }
}

impl<T: DeviceCopy> fmt::Debug for Transfer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let complete = self.under_way.as_ref().map_or(Some(true), |(_, it)| it.is_complete().ok());
        f.debug_struct("Transfer").field("complete", &complete).finish_non_exhaustive()
    }
}
