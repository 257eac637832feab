//! The streams of a device: ordinary ones, those with options, the default streams, and streams of other libraries.

use std::cell::RefCell;
use std::ffi::c_void;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::backend::{StreamIdentity, retired};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::own_thread::ending_thread;
use crate::profile::{self, Work};
use crate::stream::Stream;
use crate::stream::options::StreamOptions;

impl Device {
    /// A new stream: a queue of work that runs in order, and in parallel to other streams
    /// (`cuStreamCreateWithPriority`, non-blocking).
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// let device = Device::cpu();
    /// let (a, b) = (device.new_stream()?, device.new_stream()?); // at the same time, but for
    /// let x = a.fill(1_u32, 1000)?;
    /// let y = b.duplicate(&x)?; // what uses the same buffer: this comes after the fill
    /// assert_eq!(b.download(&y)?, [1; 1000]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the device cannot be opened, or has no room for a stream.
    pub fn new_stream(&self) -> Result<Stream> {
        self.new_stream_with(StreamOptions::new())
    }

    /// Waits until all work of all streams of this device has run (`cuCtxSynchronize`).
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// let device = Device::cpu();
    /// let (a, b) = (device.new_stream()?, device.new_stream()?);
    /// let (x, y) = (a.fill(1_u32, 1000)?, b.fill(2_u32, 1000)?);
    /// device.synchronize()?; // both have run
    /// # drop((x, y));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If a kernel has failed that this has not reported before. A live stream still reports its failure
    /// itself; those of streams that were dropped are reported here, one at each call.
    pub fn synchronize(&self) -> Result<()> {
        let synchronized = profile::observe_host(self, Work::Synchronize, || self.backend().synchronize());
        retired::collect();
        synchronized
    }

    /// A new stream with flags and priority (`cuStreamCreateWithPriority`).
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// use ferrogrid::StreamOptions;
    ///
    /// let device = Device::best()?;
    /// let (least, greatest) = device.stream_priority_range()?; // (0, -5) on many GPUs
    /// let _urgent = device.new_stream_with(StreamOptions::new().with_priority(greatest))?;
    /// let refused = device.new_stream_with(StreamOptions::new().with_priority(least + 1));
    /// assert!(matches!(refused, Err(Error::PriorityOutOfRange { .. })));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::PriorityOutOfRange`], or as [`Device::new_stream`].
    pub fn new_stream_with(&self, options: StreamOptions) -> Result<Stream> {
        self.check_priority(options.priority)?;
        Ok(Stream::new(self, self.backend().new_stream(options.ordered_with_legacy, options.priority)?))
    }

    /// Whether streams and launches may have that priority.
    pub(crate) fn check_priority(&self, priority: i32) -> Result<()> {
        if priority == 0 {
            return Ok(());
        }
        let (least, greatest) = self.stream_priority_range()?;
        if (greatest..=least).contains(&priority) {
            return Ok(());
        }
        Err(Error::PriorityOutOfRange { priority, least, greatest })
    }

    /// The least and the greatest priority that streams and launches may have (`cuCtxGetStreamPriorityRange`): (0, -5)
    /// on many GPUs; the greater priority is the lower number. (0, 0) where there are no priorities, as on
    /// the CPU.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// let (least, greatest) = Device::best()?.stream_priority_range()?;
    /// assert!(greatest <= least); // the greater priority is the lower number
    /// assert_eq!(Device::cpu().stream_priority_range()?, (0, 0));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the device cannot be opened.
    pub fn stream_priority_range(&self) -> Result<(i32, i32)> {
        self.backend().priority_range()
    }

    /// The legacy default stream (`CU_STREAM_LEGACY`, "stream 0"), to work together with code that uses
    /// it. Work on it waits for all streams that are ordered with it, and they wait for it. Other streams of this crate are
    /// not; [`StreamOptions::ordered_with_legacy`] makes one that is. Buffers are ordered on it as on any other.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let device = ferrogrid_host::Device::cpu();
    /// let stream = device.legacy_stream()?;
    /// let buffer = stream.upload(&[1, 2, 3])?;
    /// assert_eq!(device.new_stream()?.download(&buffer)?, [1, 2, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the device cannot be opened.
    pub fn legacy_stream(&self) -> Result<Stream> {
        Ok(Stream::new(self, self.backend().legacy_stream()?))
    }

    /// The calling thread's own default stream on this device (`CU_STREAM_PER_THREAD`), the same at each call in this
    /// thread. It is in order with what other libraries enqueue there, and ordered with the legacy default stream.
    ///
    /// CUDA's handle means another stream in each thread. So only this thread can enqueue work on the stream, or make it
    /// wait; for another thread that is [`Error::StreamOfOtherThread`]. Other threads can wait for it
    /// ([`Stream::synchronize`], [`Stream::is_complete`], [`Stream::record`], [`Stream::wait_stream`] as the other stream): for
    /// what this thread has enqueued with this crate by then. Other threads can use and drop the buffers used on it, in
    /// order, also after this thread has ended.
    ///
    /// For this each call that enqueues work records an event after it, which other streams do not need.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let device = ferrogrid_host::Device::cpu();
    /// let stream = device.per_thread_stream()?;
    /// let buffer = stream.zeros::<u8>(2)?;
    /// assert_eq!(device.per_thread_stream()?.download(&buffer)?, [0, 0]);
    ///
    /// std::thread::scope(|scope| {
    ///     let other = scope.spawn(|| {
    ///         let refused = stream.fill(1_u8, 2); // not on the stream of that thread
    ///         assert!(matches!(refused, Err(ferrogrid_host::Error::StreamOfOtherThread { .. })));
    ///         device.per_thread_stream()?.download(&buffer) // but on its own, after the zeros
    ///     });
    ///     assert_eq!(other.join().unwrap()?, [0, 0]);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Device::new_stream`]; [`Error::Unsupported`] while the thread ends, in the destructor of one of its
    /// thread-local values.
    pub fn per_thread_stream(&self) -> Result<Arc<Stream>> {
        thread_local! {
            static STREAMS: RefCell<Vec<Arc<Stream>>> = const { RefCell::new(Vec::new()) };
        }
        let found = STREAMS.try_with(|streams| {
            let mut streams = streams.borrow_mut();
            if let Some(stream) = streams.iter().find(|stream| stream.device() == self) {
                return Ok(stream.clone());
            }
            let stream = Arc::new(Stream::new(self, self.backend().per_thread_stream()?));
            streams.push(stream.clone());
            Ok(stream)
        });
        found.unwrap_or_else(|_| Err(ending_thread(self)))
    }
}

/// Two handles are equal if work given to them goes into one stream. Such are the handles of a device's legacy default
/// stream, those of a thread's default stream, and one that [`Stream::from_raw`] makes of another's handle.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// let device = Device::best()?;
/// assert_eq!(device.legacy_stream()?, device.legacy_stream()?);
/// assert_eq!(device.per_thread_stream()?, device.per_thread_stream()?);
/// assert_ne!(device.new_stream()?, device.new_stream()?);
/// # Ok(()) }
/// ```
impl PartialEq for Stream {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Stream {}

impl Hash for Stream {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

impl Stream {
    /// Its device, and what distinguishes it from other streams there. Handles of a driver's stream are equal for as long as both
    /// exist; the driver may reuse the address of a destroyed one.
    fn identity(&self) -> (&Device, Option<StreamIdentity>, Option<u64>) {
        let shared = self.inner().backend().identity();
        (self.device(), shared, shared.is_none().then(|| self.id()))
    }

    /// A stream that another library made: `raw` is its `CUstream` (a `cudaStream_t` is the same). Null and
    /// `CU_STREAM_LEGACY` give the stream of [`Device::legacy_stream`], `CU_STREAM_PER_THREAD` that of
    /// [`Device::per_thread_stream`].
    ///
    /// It takes part in the order of buffers like any other. When this handle is dropped, an event is recorded at the end of
    /// its work. From then on `raw` is not used, though buffers may still be freed after that work. The stream itself is
    /// not destroyed.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// let device = Device::best()?;
    /// let theirs = device.new_stream()?; // as if another library had made it
    /// if let Some(raw) = theirs.as_raw() {
    ///     // SAFETY: it is a stream of this device, and lives longer.
    ///     let stream = unsafe { Stream::from_raw(&device, raw)? };
    ///     let ones = stream.fill(1_u32, 3)?; // in order with the other library's work
    ///     assert_eq!(stream.download(&ones)?, [1; 3]);
    /// } else {
    ///     // SAFETY: the CPU device takes no handle.
    ///     let refused = unsafe { Stream::from_raw(&device, std::ptr::null_mut()) };
    ///     assert!(matches!(refused, Err(Error::Unsupported { .. })));
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Unsupported`] on the CPU device; [`Error::ForeignContext`] if the stream is not of the
    /// device's primary context; or the driver's error of the handle (`cuStreamGetCtx`).
    ///
    /// # Safety
    /// - `raw` is a stream, and stays valid until this handle is dropped: forever, if it is forgotten.
    /// - It is not being captured into a graph, now or while this handle is used. Else the synchronous functions of
    ///   [`Stream`] would return before their work is done.
    pub unsafe fn from_raw(device: &Device, raw: *mut c_void) -> Result<Stream> {
        // SAFETY: passed on; the handle's drop closes it.
        let backend = unsafe { device.backend().foreign_stream(raw) };
        let reason = "its streams have no handle";
        let backend =
            backend.unwrap_or_else(|| Err(Error::unsupported("Stream::from_raw", device, reason)))?;
        Ok(Stream::new(device, backend))
    }

    /// The driver's handle (`CUstream`), for other libraries. `None` on the CPU device.
    ///
    /// It is valid while this stream is; that of [`Device::per_thread_stream`] means this stream in its own thread only. This
    /// crate does not see what is enqueued through it. That work is in stream order, but its buffers are not ordered with
    /// other streams, and not kept alive.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// let stream = Device::best()?.new_stream()?;
    /// match stream.as_raw() {
    ///     Some(stream) => println!("cublasSetStream(handle, {stream:?})"),
    ///     None => assert!(!stream.device().is_cuda()),
    /// }
    /// # Ok(()) }
    /// ```
    pub fn as_raw(&self) -> Option<*mut c_void> {
        self.inner().backend().as_raw()
    }

    /// Whether it is not ordered with the legacy default stream (`cuStreamGetFlags`, `CU_STREAM_NON_BLOCKING`). Streams
    /// of this crate are not, but for those of [`StreamOptions::ordered_with_legacy`], of
    /// [`Device::per_thread_stream`], and that stream itself.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// let device = Device::best()?;
    /// assert!(device.new_stream()?.is_nonblocking()?);
    /// assert!(!device.per_thread_stream()?.is_nonblocking()?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the device has failed.
    pub fn is_nonblocking(&self) -> Result<bool> {
        self.inner().backend().is_nonblocking()
    }

    /// The priority (`cuStreamGetPriority`); lower numbers go first. 0 on the CPU device.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// use ferrogrid::StreamOptions;
    ///
    /// let device = Device::best()?;
    /// let (_, greatest) = device.stream_priority_range()?;
    /// let urgent = device.new_stream_with(StreamOptions::new().with_priority(greatest))?;
    /// assert_eq!((urgent.priority()?, device.new_stream()?.priority()?), (greatest, 0));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the device has failed.
    pub fn priority(&self) -> Result<i32> {
        self.inner().backend().priority()
    }
}
