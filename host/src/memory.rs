//! One allocation of device memory: where it is, whose it is, and when it may be freed. It must not
//! know the type of its elements.

use std::fmt;
use std::sync::Arc;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::order::{Order, Use};
use crate::stream::StreamInner;

/// The alignment of every allocation in bytes, on every device.
pub(crate) const ALIGNMENT: usize = 256;

/// What fresh memory holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contents {
    /// Anything; it must be written before it is read.
    Uninitialised,
    /// Bytes of value 0.
    Zeroed,
}

/// An allocation in stream order; dropping it frees it after all work that uses it.
pub(crate) struct Memory {
    /// Null if `bytes` is 0: then nothing was allocated.
    pointer: *mut u8,
    bytes: usize,
    device: Device,
    order: Order<StreamInner>,
}

// SAFETY: the pointer is only an address on the host side; it is read and written by work on
// streams, which `order` orders, and freed once, by `drop`.
unsafe impl Send for Memory {}
// SAFETY: as above; all methods that take `&self` use atomics or a mutex.
unsafe impl Sync for Memory {}

impl Memory {
    pub(crate) fn allocate(stream: &Arc<StreamInner>, bytes: usize, contents: Contents) -> Result<Self> {
        let pointer = match bytes {
            0 => std::ptr::null_mut(),
            _ => stream.allocate(bytes, contents)?,
        };
        Ok(Memory { pointer, bytes, device: stream.device().clone(), order: Order::new(stream.clone()) })
    }

    /// The first byte; null if there is none.
    pub(crate) fn pointer(&self) -> *mut u8 {
        self.pointer
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// Makes what `stream` is about to be given wait for what it must come after.
    ///
    /// # Errors
    /// If the memory is another device's, or the device fails.
    #[inline]
    pub(crate) fn begin(&self, stream: &Arc<StreamInner>, usage: Use) -> Result<()> {
        self.check_device(stream)?;
        if self.bytes == 0 {
            return Ok(());
        }
        self.order.begin(stream, usage)
    }

    #[inline]
    fn check_device(&self, stream: &Arc<StreamInner>) -> Result<()> {
        if self.device == *stream.device() { Ok(()) } else { Err(self.foreign(stream)) }
    }

    #[cold]
    fn foreign(&self, stream: &Arc<StreamInner>) -> Error {
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
        if let Ok(stream) = self.order.end() {
            // SAFETY: `pointer` is from `allocate` on this device, this is the only free of it, and
            // `stream` has been made to run after every use.
            unsafe { stream.free(self.pointer, self.bytes) };
        }
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

/// One use of one allocation by a launch: what, and how.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct Access<'a> {
    pub(crate) memory: &'a Memory,
    pub(crate) usage: Use,
}

impl Access<'_> {
    #[inline]
    pub(crate) fn begin(&self, stream: &Arc<StreamInner>) -> Result<()> {
        self.memory.begin(stream, self.usage)
    }

    /// The part of `begin` that also holds where nothing is launched.
    pub(crate) fn check_device(&self, stream: &Arc<StreamInner>) -> Result<()> {
        self.memory.check_device(stream)
    }
}
