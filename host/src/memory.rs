//! One allocation of device memory: where it is, whose it is, and when it may be freed. It must not
//! know the type of its elements.

use std::fmt;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
use std::mem::offset_of;
use std::sync::Arc;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::order::{Order, Use};
use crate::pitched::Place;
use crate::retired::retire;
use crate::stream::StreamInner;
use crate::writers::Writers;

/// The alignment of every allocation in bytes, on every device.
pub(crate) const ALIGNMENT: usize = 256;

/// Where memory of no bytes is: no address of anything, but aligned.
const NOTHING: *mut u8 = std::ptr::without_provenance_mut(ALIGNMENT);

/// What fresh memory holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contents {
    /// Anything; it must be written before it is read.
    Uninitialised,
    /// Bytes of value 0.
    Zeroed,
}

/// An allocation in stream order; dropping it frees it after all work that uses it. What a launch reads of it (the end
/// of the writers, the beginning of the order, and what is between) is in one line of the processor's cache.
#[repr(C, align(32))]
pub(crate) struct Memory {
    writers: Writers,
    bytes: usize,
    /// Never null; `NOTHING` if nothing was allocated, as `bytes` is 0.
    pointer: *mut u8,
    order: Order<StreamInner>,
    device: Device,
    origin: Origin,
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
const _: () = assert!(offset_of!(Memory, bytes) == 40 && offset_of!(Memory, order) == 56);

/// Where memory is from, and so how it is freed.
enum Origin {
    /// Allocated in stream order.
    Stream,
    /// Managed memory.
    Managed,
    /// Somebody else's; the owner is dropped when nothing uses the memory any more.
    Foreign(Option<Box<dyn Send>>),
    /// Page-locked memory of the host; its owner is dropped as that of foreign memory.
    Pinned(Option<Box<dyn Send>>),
}

// SAFETY: the pointer is only an address on the host side; it is read and written by work on
// streams, which `order` orders, and freed once, by `drop`.
unsafe impl Send for Memory {}
// SAFETY: as above; all methods that take `&self` use atomics or a mutex, and none the owner.
unsafe impl Sync for Memory {}

impl Memory {
    pub(crate) fn allocate(stream: &Arc<StreamInner>, bytes: usize, contents: Contents) -> Result<Self> {
        let pointer = match bytes {
            0 => NOTHING,
            _ => stream.allocate(bytes, contents)?,
        };
        Ok(Memory::new(stream, pointer, bytes, Origin::Stream))
    }

    /// Memory that the host can use, too.
    pub(crate) fn managed(stream: &Arc<StreamInner>, bytes: usize, contents: Contents) -> Result<Self> {
        let pointer = match bytes {
            0 => NOTHING,
            _ => stream.allocate_managed(bytes, contents)?,
        };
        Ok(Memory::new(stream, pointer, bytes, Origin::Managed))
    }

    /// Memory of somebody else.
    ///
    /// # Safety
    /// `pointer` leads to `bytes` of memory of the stream's device, until `owner` is dropped; what uses
    /// them already comes before what the stream holds. It may be null if there are none.
    pub(crate) unsafe fn foreign(
        stream: &Arc<StreamInner>,
        pointer: *mut u8,
        bytes: usize,
        owner: Box<dyn Send>,
    ) -> Self {
        let pointer = if pointer.is_null() { NOTHING } else { pointer };
        Memory::new(stream, pointer, bytes, Origin::Foreign(Some(owner)))
    }

    /// Page-locked memory of the host, which the stream's device uses under the same address.
    ///
    /// # Safety
    /// `pointer` leads to `bytes` of memory that the device can use, until `owner` is dropped; nothing uses them yet.
    pub(crate) unsafe fn pinned(
        stream: &Arc<StreamInner>,
        pointer: *mut u8,
        bytes: usize,
        owner: Box<dyn Send>,
    ) -> Self {
        Memory::new(stream, pointer, bytes, Origin::Pinned(Some(owner)))
    }

    fn new(stream: &Arc<StreamInner>, pointer: *mut u8, bytes: usize, origin: Origin) -> Self {
        // A recording must hear of each use.
        let order = match stream.recording() {
            None => Order::new(stream.clone()),
            Some(_) => Order::of_guest(stream.clone()),
        };
        Memory { writers: Writers::default(), bytes, pointer, order, device: stream.device().clone(), origin }
    }

    /// Waits for what the host's own use must come after.
    ///
    /// # Errors
    /// If the device fails.
    pub(crate) fn wait_on_host(&self, usage: Use) -> Result<()> {
        for stream in self.order.earlier(usage) {
            stream.tail()?.synchronize()?;
        }
        Ok(())
    }

    /// The work that wrote what it holds.
    pub(crate) fn writers(&self) -> &Writers {
        &self.writers
    }

    /// The first byte; if there is none, an address that is aligned and not null.
    #[inline]
    pub(crate) fn pointer(&self) -> *mut u8 {
        self.pointer
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// Where it is, as its device sees it.
    pub(crate) fn place(&self) -> Place {
        if matches!(self.origin, Origin::Pinned(_)) { Place::Host } else { Place::Device }
    }

    /// Makes what `stream` is about to be given wait for what it must come after.
    ///
    /// # Errors
    /// If the memory is another device's, or the device fails.
    #[inline]
    pub(crate) fn begin(&self, stream: &Arc<StreamInner>, usage: Use) -> Result<()> {
        // Then its device has been checked, and it is no recording: those are guests.
        if self.order.is_alone(stream, usage) {
            return Ok(());
        }
        self.begin_checked(stream, usage)
    }

    #[inline(never)]
    fn begin_checked(&self, stream: &Arc<StreamInner>, usage: Use) -> Result<()> {
        self.check_device(stream)?;
        if self.bytes == 0 {
            return Ok(());
        }
        match stream.recording() {
            None => self.order.begin(stream, usage),
            // Nothing runs yet: the graph enters its launches into the order.
            Some(recording) => recording.note_use(self, usage),
        }
    }

    /// As `begin`, for a stream of whatever device, which records nothing.
    pub(crate) fn begin_anywhere(&self, stream: &Arc<StreamInner>, usage: Use) -> Result<()> {
        if self.bytes == 0 {
            return Ok(());
        }
        self.order.begin_as_guest(stream, usage)
    }

    pub(crate) fn check_device(&self, stream: &Arc<StreamInner>) -> Result<()> {
        if self.device == *stream.device() { Ok(()) } else { self.check_peer(stream) }
    }

    #[cold]
    fn check_peer(&self, stream: &Arc<StreamInner>) -> Result<()> {
        let reached = stream.device().backend().has_peer(self.device.backend());
        if reached { Ok(()) } else { Err(self.mismatch(stream)) }
    }

    #[cold]
    pub(crate) fn mismatch(&self, stream: &Arc<StreamInner>) -> Error {
        Error::DeviceMismatch {
            buffer: self.device.to_string().into(),
            stream: stream.device().to_string().into(),
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        // If the device is so broken that streams cannot wait for each other, the memory is given up
        // rather than freed under running work.
        let own = &self.device;
        let ended = self.order.end(
            |stream| stream.device() == own,
            // Only streams of other devices have used it of late.
            || own.new_stream().map(|stream| stream.inner().clone()),
        );
        match (&mut self.origin, ended) {
            // SAFETY: `pointer` is from `allocate` on this device, this is the only free of it, and
            // `stream` has been made to run after every use.
            (Origin::Stream, Ok(stream)) => unsafe { stream.free(self.pointer, self.bytes) },
            // SAFETY: as above, from `allocate_managed`.
            (Origin::Managed, Ok(stream)) => unsafe { stream.free_managed(self.pointer, self.bytes) },
            (Origin::Foreign(owner) | Origin::Pinned(owner), ended) => release(owner.take(), ended),
            (_, Err(_)) => {}
        }
    }
}

/// Drops `owner` after all that `stream` holds; or, if nothing tells when that is, never.
fn release(owner: Option<Box<dyn Send>>, stream: Result<Arc<StreamInner>>) {
    let Some(owner) = owner else { return };
    match stream.and_then(|stream| stream.tail()) {
        Ok(event) => retire(event, owner),
        Err(_) => std::mem::forget(owner),
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory")
            .field("pointer", &self.pointer)
            .field("bytes", &self.bytes)
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}
