//! Zeroed memory for one launch, in addition to its arguments: the claims on elements of a `ScatterSlice<T>`.

use std::ffi::c_void;
use std::ptr::from_ref;

use crate::error::Result;
use crate::launch::extent::Extents;
use crate::launch::temporary::Temporary;
use crate::memory::access::Access;
use crate::order::Use;
use crate::stream::Stream;

/// Words that are 0 when the next launch starts.
#[doc(hidden)]
pub struct LaunchZeros {
    words: Temporary<u64>,
    start: *const u8,
}

impl LaunchZeros {
    /// A bit for each of `elements`.
    ///
    /// # Errors
    /// If there is no memory for so many words, and in the update of a graph.
    pub fn claim_bits(elements: &impl Extents, stream: &Stream) -> Result<Self> {
        let words = Temporary::<u64>::zeros(stream, elements.extents()[0].div_ceil(64).max(1))?;
        Ok(LaunchZeros { start: words.memory().pointer(), words })
    }

    /// The host address of the kernel parameter: a pointer.
    pub fn param(&self) -> *const c_void {
        from_ref(&self.start).cast()
    }

    /// The use by a launch.
    pub fn access(&self) -> Access<'_> {
        Access::new(self.words.memory(), Use::Write)
    }
}
