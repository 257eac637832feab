//! Copies between borrowed memory of the host and a device that run in the background, until the end of a
//! scope.

use std::marker::PhantomData;
use std::sync::Mutex;

use ferrogrid_device::DeviceCopy;

use crate::backend::Place;
use crate::backend::writers::Sources;
use crate::error::Result;
use crate::memory::access::enqueue;
use crate::stream::Stream;
use crate::sync::lock;
use crate::view::agree;
use crate::view::argument::{DeviceInput, DeviceOutput};

/// A scope in which copies on a stream borrow memory of the host: see [`Stream::scope`].
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// let device = Device::cpu();
/// let stream = device.new_stream()?;
/// let (mut input, mut output) = (device.pinned_copy(&[1_u32, 2, 3])?, device.pinned_zeros::<u32>(3)?);
/// let mut buffer = stream.zeros::<u32>(3)?;
/// stream.scope(|scope| {
///     scope.upload_into(&input, &mut buffer)?;
///     scope.stream().fill_into(7, buffer.slice_mut(..1)?)?; // or a launch
///     scope.download_into(&buffer, &mut output)
/// })??; // all have run
/// input.fill(0);
/// assert_eq!(*output, [7, 2, 3]);
/// # Ok(()) }
/// ```
pub struct StreamScope<'scope, 'env: 'scope> {
    stream: &'env Stream,
    /// The writers of the downloaded memory.
    sources: Mutex<Vec<Sources>>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// Waits for the stream, also on a panic.
struct Wait<'a>(&'a Stream);

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        // A failure stays in the stream, and the next wait reports it.
        let _unwinding = self.0.inner().backend().drain();
    }
}

impl Stream {
    /// Calls `work` with a scope, and waits for this stream after it. In the scope, copies between the
    /// device and *borrowed* memory of the host return at once: like threads in [`std::thread::scope`],
    /// they may use what lives longer than the scope.
    ///
    /// Copies are in the background if the memory is page-locked: a [`PinnedBuffer`](crate::PinnedBuffer),
    /// or within [`Device::with_pinned`](crate::Device::with_pinned). From other memory the driver may copy
    /// before it returns. Scopes of two streams can be nested, to copy and compute at the same time.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let device = ferrogrid_host::Device::cpu();
    /// let stream = device.new_stream()?;
    /// let mut host = device.pinned_copy(&[1_u32, 2, 3, 4])?;
    /// let mut buffer = stream.zeros::<u32>(2)?;
    /// let (input, output) = host.split_at_mut(2);
    /// stream.scope(|scope| {
    ///     scope.upload_into(input, &mut buffer)?;
    ///     // ... launches ...
    ///     scope.download_into(&buffer, output)
    /// })??;
    /// assert_eq!(*host, [1, 2, 1, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// Memory that a copy uses can be neither accessed nor dropped before the end of the scope:
    ///
    /// ```compile_fail,E0499
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let buffer = stream.zeros::<u32>(2)?;
    /// let mut host = [0_u32; 2];
    /// stream.scope(|scope| {
    ///     let copied = scope.download_into(&buffer, &mut host);
    ///     scope.download_into(&buffer, &mut host)
    /// })?
    /// # }
    /// ```
    ///
    /// ```compile_fail,E0597
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let mut buffer = stream.zeros::<u32>(2)?;
    /// stream.scope(|scope| {
    ///     let host = [1_u32, 2];
    ///     scope.upload_into(&host, &mut buffer)
    /// })?
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`Stream::synchronize`] at the end.
    pub fn scope<'env, R>(
        &'env self,
        work: impl for<'scope> FnOnce(&'scope StreamScope<'scope, 'env>) -> R,
    ) -> Result<R> {
        let wait = Wait(self);
        let sources = Mutex::default();
        let scope = StreamScope { stream: self, sources, scope: PhantomData, env: PhantomData };
        let result = work(&scope);
        std::mem::forget(wait);
        self.synchronize()?;
        for sources in lock(&scope.sources).iter() {
            sources.check()?;
        }
        Ok(result)
    }
}

impl<'scope> StreamScope<'scope, '_> {
    /// Enqueues a copy of `source` into existing elements of the same number (`cuMemcpyAsync`).
    ///
    /// # Errors
    /// [`Error::LengthMismatch`](crate::Error::LengthMismatch), or a failure of the device.
    pub fn upload_into<'a, T: DeviceCopy>(
        &'scope self,
        source: &'scope [T],
        target: impl DeviceOutput<'a, T>,
    ) -> Result<()> {
        let (stream, target) = (self.stream.inner(), target.into_output());
        agree("upload_into", source.len(), target.len())?;
        stream.refuse_host_memory("an upload")?;
        let bytes = size_of_val(source);
        // SAFETY: the view is as many elements of this device as `source` has, ordered for writing here;
        // `source` is borrowed until the scope has waited for the stream.
        enqueue(stream, None, Some(target.access()), bytes, || unsafe {
            let places = (Place::Device, Place::Host);
            stream.copy(target.start().cast(), source.as_ptr().cast(), bytes, places)
        })
    }

    /// Enqueues a copy of a buffer or view into `target`, of the same length (`cuMemcpyAsync`); it is
    /// filled after the scope.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`](crate::Error::LengthMismatch), or a failure of the device.
    pub fn download_into<'a, T: DeviceCopy>(
        &'scope self,
        source: impl DeviceInput<'a, T>,
        target: &'scope mut [T],
    ) -> Result<()> {
        let (stream, source) = (self.stream.inner(), source.into_input());
        agree("download_into", source.len(), target.len())?;
        stream.refuse_host_memory("a download")?;
        let bytes = size_of_val(target);
        enqueue(stream, Some(source.access()), None, bytes, || {
            let sources = source.memory().writers().sources();
            lock(&self.sources).push(sources);
            let places = (Place::Host, Place::Device);
            // SAFETY: the view is as many elements of this device as `target` has, ordered for reading here;
            // `target` is borrowed until the scope has waited for the stream.
            unsafe { stream.copy(target.as_mut_ptr().cast(), source.start().cast(), bytes, places) }
        })
    }

    /// The stream.
    pub fn stream(&self) -> &Stream {
        self.stream
    }
}

debug_by_methods!(StreamScope<'_, '_> { stream });
