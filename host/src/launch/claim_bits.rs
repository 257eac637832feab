//! What a launch keeps for a kernel's `ScatterSlice<T>`: a bit for each element, whether a thread has claimed it.

use std::ffi::c_void;
use std::ptr::from_ref;

use crate::backend::recording::refusal::not_recordable;
use crate::error::Result;
use crate::launch::extent::Extents;
use crate::memory::buffer::DeviceBuffer;
use crate::order::Use;
use crate::order::access::Access;
use crate::stream::Stream;

/// The claims of one launch.
#[doc(hidden)]
pub struct ClaimBits {
    buffer: DeviceBuffer<u32>,
    start: *const u32,
}

impl ClaimBits {
    /// A bit for each of `elements`, all 0 when the stream comes to what is launched next.
    ///
    /// # Errors
    /// If memory cannot be had, and in a recording, whose launches would find the claims of those before.
    pub fn new(elements: &impl Extents, stream: &Stream) -> Result<Self> {
        if stream.inner().recording().is_some() {
            return Err(not_recordable(
                "a launch with a `ScatterSlice`",
                "launches of the graph would find what earlier ones have claimed; launch it on the stream",
            ));
        }
        let words = elements.extents()[0].div_ceil(32).max(1);
        let buffer = stream.zeros::<u32>(words)?;
        Ok(ClaimBits { start: buffer.as_device_ptr().as_raw(), buffer })
    }

    /// The host address of the kernel parameter: a pointer.
    pub fn param(&self) -> *const c_void {
        from_ref(&self.start).cast()
    }

    /// What a launch with them uses.
    pub fn access(&self) -> Access<'_> {
        Access::new(self.buffer.memory(), Use::Write)
    }
}
