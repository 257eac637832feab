//! Host functions in stream order.

use crate::error::Result;
use crate::profile::{self, Work};
use crate::stream::Stream;

impl Stream {
    /// Calls `function` once all work enqueued here so far has run, on a thread of the device's runtime
    /// (`cuStreamAddCallback`; it is called where `cuLaunchHostFunc` would). Work enqueued later waits
    /// until it has returned.
    ///
    /// A panic is caught, and returned as [`Error::HostFnPanic`](crate::Error::HostFnPanic) from the next
    /// synchronisation. Dropping the stream does not matter: the function is still called. If a kernel
    /// fails on a GPU before, it is dropped without a call.
    ///
    /// The function must be quick, and must not use this crate: no launch, no copy, no waiting, and no
    /// drop of a buffer. CUDA allows none of its functions there, and may refuse or deadlock. Send what
    /// it has found out to another thread instead. A slow one may hold up those of other streams.
    ///
    /// # Errors
    /// If the device fails.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let _ones = stream.fill(1_u32, 1000)?;
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// stream.launch_host_func(move || sender.send("filled").unwrap())?;
    /// assert_eq!(receiver.recv().unwrap(), "filled");
    /// # Ok(()) }
    /// ```
    pub fn launch_host_func(&self, function: impl FnOnce() + Send + 'static) -> Result<()> {
        let stream = self.inner();
        profile::observe(stream, Work::HostFn, || stream.backend().host_fn(Box::new(function)))
    }
}
