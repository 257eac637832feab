//! What a launch keeps for a kernel's `BlockOrder<T>`: how many blocks have started, and what each has published.

use std::ffi::c_void;
use std::ptr::from_ref;

use ferrogrid_device::order::words_for;
use ferrogrid_device::warp::Exchange;

use crate::backend::recording::refusal::not_recordable;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::launch::grid::Grid;
use crate::memory::buffer::DeviceBuffer;
use crate::order::Use;
use crate::order::access::Access;
use crate::stream::Stream;

/// The state of one launch.
#[doc(hidden)]
pub struct OrderState {
    buffer: DeviceBuffer<u64>,
    start: *const u64,
}

impl OrderState {
    /// A count and a slot for each block of `grid`, all 0 when the stream comes to what is launched next.
    ///
    /// # Errors
    /// For a grid that cannot be launched, if memory cannot be had, and in a recording, whose launches would find the values of
    /// those before.
    pub fn new<T: Exchange, const R: usize>(
        kernel: &'static Kernel,
        grid: Grid<R>,
        stream: &Stream,
    ) -> Result<Self> {
        if stream.inner().recording().is_some() {
            return Err(not_recordable(
                "a launch with a `BlockOrder`",
                "launches of the graph would find what earlier ones have published; launch it on the stream",
            ));
        }
        let shape = grid.resolve(kernel, stream.inner().device().limits())?;
        let blocks = shape.map_or(0, |shape| shape.grid[0] as usize);
        // More than there is room for is an error of the allocation.
        let buffer = stream.zeros::<u64>(words_for::<T>(blocks).unwrap_or(usize::MAX / 8))?;
        Ok(OrderState { start: buffer.as_device_ptr().as_raw(), buffer })
    }

    /// The host address of the kernel parameter: a pointer.
    pub fn param(&self) -> *const c_void {
        from_ref(&self.start).cast()
    }

    /// What a launch with it uses.
    pub fn access(&self) -> Access<'_> {
        Access::new(self.buffer.memory(), Use::Write)
    }
}
