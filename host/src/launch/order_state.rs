//! What a launch keeps for a kernel's `BlockOrder<T>`: how many blocks have started, and what each has published.

use std::ffi::c_void;
use std::ptr::from_ref;

use ferrogrid_device::order::words_for;
use ferrogrid_device::warp::Exchange;

use crate::error::Result;
use crate::kernel::Kernel;
use crate::launch::grid::Grid;
use crate::launch::zeros::LaunchZeros;
use crate::memory::access::Access;
use crate::stream::Stream;

/// The state of one launch.
#[doc(hidden)]
pub struct OrderState {
    words: LaunchZeros,
    start: *const u64,
}

impl OrderState {
    /// A count and a slot for each block of `grid`, all 0 when the stream comes to what is launched next.
    ///
    /// # Errors
    /// For a grid that cannot be launched, if memory cannot be had, and in the update of a graph.
    pub fn new<T: Exchange, const R: usize>(
        kernel: &'static Kernel,
        grid: Grid<R>,
        stream: &Stream,
    ) -> Result<Self> {
        let shape = grid.resolve(kernel, stream.inner().device().limits())?;
        let blocks = shape.map_or(0, |shape| shape.grid[0] as usize);
        // More than there is room for is an error of the allocation.
        let words = LaunchZeros::new(words_for::<T>(blocks).unwrap_or(usize::MAX / 8), stream)?;
        Ok(OrderState { start: words.start(), words })
    }

    /// The host address of the kernel parameter: a pointer.
    pub fn param(&self) -> *const c_void {
        from_ref(&self.start).cast()
    }

    /// What a launch with it uses.
    pub fn access(&self) -> Access<'_> {
        self.words.access()
    }
}
