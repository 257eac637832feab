//! Zero-copy memory: elements in page-locked host memory that the host and devices use in turn.
//!
//! Launches borrow the elements like those of a device buffer, and [`Memory`] orders them. The host has them as a slice:
//! what makes that slice first waits for the devices. Work that conflicts with a slice needs a borrow that the slice
//! excludes, so none can be enqueued while the host uses it.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, Ordering};

use ferrogrid_device::DeviceCopy;

use crate::device::Device;
use crate::error::Result;
use crate::memory::Memory;
use crate::order::Use;
use crate::stream::StreamInner;
use crate::view::{DeviceView, DeviceViewMut};

/// No device uses the elements.
const UNUSED: u8 = 0;
/// Devices may be reading them.
const READ: u8 = 1;
/// Devices may be writing them.
const WRITTEN: u8 = 2;

/// `len` elements at `start`.
pub(crate) struct Mapped<T> {
    start: NonNull<T>,
    len: usize,
    /// The uses by devices that may be running; lowered after waiting for them.
    uses: AtomicU8,
    /// The same memory as devices address it.
    memory: Memory,
}

impl<T: DeviceCopy> Mapped<T> {
    /// # Safety
    /// `start` leads to `len` elements that nothing else uses as long as this exists. They are page-locked if `device` is
    /// a GPU, and stay so until what was passed to `keep` is dropped, or `write` has succeeded.
    pub(crate) unsafe fn new(device: &Device, start: NonNull<T>, len: usize) -> Result<Self> {
        // SAFETY: passed on.
        let memory = unsafe { Memory::of_host(device, start.as_ptr().cast(), len * size_of::<T>())? };
        Ok(Mapped { start, len, uses: AtomicU8::new(UNUSED), memory })
    }

    pub(crate) fn start(&self) -> NonNull<T> {
        self.start
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The elements for the host to read, once no device writes them.
    pub(crate) fn read(&self) -> Result<&[T]> {
        if self.uses.load(Ordering::Acquire) == WRITTEN {
            self.memory.begin_on_host(Use::Read)?;
            // Another thread may have waited as well. A write by a device would need a mutable borrow.
            let _lowered = self.uses.compare_exchange(WRITTEN, READ, Ordering::Release, Ordering::Relaxed);
        }
        // SAFETY: `len` elements that this owns or borrows; devices that write them have been waited for, and more such
        // work needs a mutable borrow.
        Ok(unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) })
    }

    /// The elements for the host to write, once no device uses them.
    pub(crate) fn write(&mut self) -> Result<&mut [T]> {
        if *self.uses.get_mut() != UNUSED {
            self.memory.begin_on_host(Use::Write)?;
            *self.uses.get_mut() = UNUSED;
        }
        // SAFETY: `len` elements that this owns or borrows; devices that use them have been waited for, and more such
        // work needs a borrow.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) })
    }

    /// Makes `stream` wait for what a use there must come after. The use itself is not recorded: the caller must
    /// keep the elements unreachable until it has ended.
    pub(crate) fn follow(&self, stream: &StreamInner, usage: Use) -> Result<()> {
        match self.uses.load(Ordering::Relaxed) {
            UNUSED => Ok(()),
            _ => self.memory.follow(stream, usage),
        }
    }

    /// The elements for a device to read.
    pub(crate) fn view(&self) -> DeviceView<'_, T> {
        if self.memory.bytes() > 0 {
            self.uses.fetch_max(READ, Ordering::Relaxed);
        }
        DeviceView::whole(self.memory.pointer().cast(), self.len, &self.memory)
    }

    /// The elements for a device to write.
    pub(crate) fn view_mut(&mut self) -> DeviceViewMut<'_, T> {
        if self.memory.bytes() > 0 {
            *self.uses.get_mut() = WRITTEN;
        }
        DeviceViewMut::whole(self.memory.pointer().cast(), self.len, &self.memory)
    }

    /// Drops `owner` once no device uses the elements, which belong to it.
    pub(crate) fn keep(&mut self, owner: Box<dyn Send>) {
        match *self.uses.get_mut() {
            UNUSED => drop(owner),
            _ => self.memory.keep(owner),
        }
    }

    /// Waits until no device uses the elements, whatever has failed. A device that cannot be waited for runs no work.
    pub(crate) fn settle(&mut self) {
        if *self.uses.get_mut() != UNUSED {
            let _failed = self.memory.wait_on_host(Use::Write);
        }
    }
}
