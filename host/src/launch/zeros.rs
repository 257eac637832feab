//! Zeroed memory for one launch, in addition to its arguments: the claims on elements of a `ScatterSlice<T>`, and the
//! counter and published values of a `BlockOrder<T>`.

use std::ffi::c_void;
use std::ptr::from_ref;

use ferrogrid_device::order::{OrderValue, words_for};

use crate::error::Result;
use crate::kernel::Kernel;
use crate::launch::extent::Extents;
use crate::launch::grid::Grid;
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
        LaunchZeros::new(elements.extents()[0].div_ceil(64).max(1), stream)
    }

    /// A count and a slot for each block of `grid`.
    ///
    /// # Errors
    /// For a grid that cannot be launched; else as `claim_bits`.
    pub fn block_order<T: OrderValue, const R: usize>(
        kernel: &'static Kernel,
        grid: Grid<R>,
        stream: &Stream,
    ) -> Result<Self> {
        let config = grid.resolve(kernel, stream.device().limits())?;
        let blocks = config.map_or(0, |config| config.grid[0] as usize);
        // More than there is room for is an error of the allocation.
        LaunchZeros::new(words_for::<T>(blocks).unwrap_or(usize::MAX / 8), stream)
    }

    fn new(words: usize, stream: &Stream) -> Result<Self> {
        let words = Temporary::<u64>::zeros(stream, words)?;
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
