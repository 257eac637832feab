//! What a launch keeps for a kernel's `ScatterSlice<T>`: a bit for each element, whether a thread has claimed it.

use std::ffi::c_void;
use std::ptr::from_ref;

use crate::error::Result;
use crate::launch::extent::Extents;
use crate::launch::zeros::LaunchZeros;
use crate::memory::access::Access;
use crate::stream::Stream;

/// The claims of one launch.
#[doc(hidden)]
pub struct ClaimBits {
    bits: LaunchZeros,
    start: *const u32,
}

impl ClaimBits {
    /// A bit for each of `elements`, all 0 when the stream comes to what is launched next.
    ///
    /// # Errors
    /// If memory cannot be had, and in the update of a graph.
    pub fn new(elements: &impl Extents, stream: &Stream) -> Result<Self> {
        let bits = LaunchZeros::new(elements.extents()[0].div_ceil(64).max(1), stream)?;
        Ok(ClaimBits { start: bits.start(), bits })
    }

    /// The host address of the kernel parameter: a pointer.
    pub fn param(&self) -> *const c_void {
        from_ref(&self.start).cast()
    }

    /// What a launch with them uses.
    pub fn access(&self) -> Access<'_> {
        self.bits.access()
    }
}
