//! The two steps of a reduction: a value of each block, then one of all of them.

use ferrogrid_device::DeviceCopy;
use ferrogrid_device::fold::{BLOCKS, TILE};
use ferrogrid_device::shared::AnyBits;

use crate::backend::Contents;
use crate::error::Result;
use crate::launch::grid::Grid;
use crate::launch::temporary::Temporary;
use crate::memory::buffer::DeviceBuffer;
use crate::stream::Stream;
use crate::view::{DeviceView, DeviceViewMut};

/// Combines `len` elements, in one step if a block can, else in two: `first` leaves a value for each block, which `last`
/// combines.
#[doc(hidden)]
pub fn in_steps<A: DeviceCopy + AnyBits>(
    stream: &Stream,
    len: usize,
    out: DeviceViewMut<A>,
    first: impl FnOnce(Grid<1>, DeviceViewMut<A>) -> Result<()>,
    last: impl FnOnce(Grid<1>, DeviceView<A>, DeviceViewMut<A>) -> Result<()>,
) -> Result<()> {
    if len <= TILE { first(Grid::blocks(1), out) } else { in_two_steps(stream, len, out, first, last) }
}

/// As [`in_steps`], in two steps always, because the result has another form than the values of the blocks.
#[doc(hidden)]
pub fn in_two_steps<A: DeviceCopy + AnyBits, R>(
    stream: &Stream,
    len: usize,
    out: DeviceViewMut<R>,
    first: impl FnOnce(Grid<1>, DeviceViewMut<A>) -> Result<()>,
    last: impl FnOnce(Grid<1>, DeviceView<A>, DeviceViewMut<R>) -> Result<()>,
) -> Result<()> {
    let blocks = len.div_ceil(TILE).clamp(1, BLOCKS);
    let mut of_blocks = Temporary::<A>::arbitrary(stream, blocks)?;
    first(Grid::blocks(blocks), of_blocks.view_mut())?;
    last(Grid::blocks(1), of_blocks.view(), out)
}

/// The one value of a result, after a wait for it.
#[doc(hidden)]
pub fn value_of<R: DeviceCopy + AnyBits>(
    stream: &Stream,
    into: impl FnOnce(DeviceViewMut<R>) -> Result<()>,
) -> Result<R> {
    // Not uninitialised: a copy of padding that nothing wrote looks like a mistake to compute-sanitizer.
    let mut out = DeviceBuffer::<R>::allocate(stream, 1, Contents::Zeroed)?;
    into(out.view_mut())?;
    Ok(stream.download(&out)?[0])
}
