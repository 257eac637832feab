//! [`OutputTile`]: a tile of results in shared memory, which a [`TensorMapMut`] stores or adds to a plane.

use core::ops::Index;

use super::Stage;
use crate::atomic::AtomicValue;
#[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_90a")))]
use crate::atomic::{DeviceAtomic, Ordering::Relaxed};
use crate::memory::tensor_map::tile_place;
use crate::memory::tensor_map_mut::{MapNumber, TensorMapMut};
use crate::shared::array::ArrayElement;
use crate::shared::{Published, SharedArray};
use crate::thread::Thread;

/// `H` rows of `W` elements in shared memory, from which a [`TensorMapMut`] stores: `tile: Shared<OutputTile<f32, 32, 8>>`. Threads
/// write it as any other region; [`Thread::publish`] makes it readable, as `tile[[row, column]]`, and
/// [`TensorMapMut::store`] and [`TensorMapMut::add`] take it then. [`Thread::reclaim`] waits until it has been read.
///
/// If a row has 128 bytes, the parts of 16 bytes of eight rows are swizzled, so that threads which write a column
/// use more banks.
///
/// A tile that is stored is not written:
///
/// ```compile_fail,E0308
/// # use ferrogrid::prelude::*;
/// #[ferrogrid::module(host_only)]
/// mod kernels {
///     use ferrogrid::device::prelude::*;
///     use ferrogrid::device::shared::OutputTile;
///
///     #[kernel(block = 32)]
///     pub fn early(t: Thread<1>, y: TensorMapMut<u32, 32, 1>, mut tile: Shared<OutputTile<u32, 32, 1>>) {
///         tile.fill_with(&t, |[_, column]| column as u32);
///         y.store(&t, &tile, [0, 0]); // not published
///     }
/// }
/// ```
#[repr(C)]
pub struct OutputTile<T, const W: usize, const H: usize>(Stage<T, W, H>);

// SAFETY: the places of a tile are different elements within its stage.
unsafe impl<T: ArrayElement, const W: usize, const H: usize> SharedArray for OutputTile<T, W, H> {
    type Element = T;
    type Place = [usize; 2];
    const LEN: usize = W * H;
    const HAS_STATE: bool = true;

    #[inline(always)]
    fn place(number: usize) -> [usize; 2] {
        [number / W, number % W]
    }

    #[inline(always)]
    fn own_place<const R: usize>(thread: &Thread<'_, R>, first: usize) -> [usize; 2] {
        thread.place_in_rows::<W>(first)
    }

    #[inline(always)]
    unsafe fn element(start: *mut Self, place: [usize; 2]) -> *mut T {
        Stage::tile(start.cast::<Stage<T, W, H>>()).address(place).cast_mut()
    }

    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
    #[inline(always)]
    unsafe fn begin(_: *mut Self) {
        // SAFETY: no instruction: the mark of kernels whose threads wait before they end by a panic.
        unsafe { core::arch::asm!("ferrogrid.tiles;", options(nostack, preserves_flags)) };
    }

    /// The memory of a block that has ended is another's.
    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
    #[inline(always)]
    unsafe fn end(_: *mut Self) {
        wait_for_reads();
    }

    #[inline(always)]
    fn before_publish() {
        // SAFETY: it orders what the thread has written before what tensor maps read.
        #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
        unsafe {
            core::arch::asm!("fence.proxy.async.shared::cta;", options(nostack, preserves_flags));
        }
    }

    #[inline(always)]
    fn before_reclaim() {
        #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
        wait_for_reads();
    }
}

impl<T, const W: usize, const H: usize> Index<[usize; 2]> for OutputTile<T, W, H> {
    type Output = T;

    #[track_caller]
    #[inline(always)]
    fn index(&self, place: [usize; 2]) -> &T {
        Stage::tile(&raw const self.0).element(place)
    }
}

/// The place of a tile that is stored, as the hardware takes it: one before the first row or column is an illegal instruction.
#[track_caller]
#[inline(always)]
fn stored_place<T>([row, column]: [usize; 2]) -> [i32; 2] {
    assert!(row.max(column) <= i32::MAX as usize, "a tile's place is less than 2^31");
    tile_place::<T>([row as isize, column as isize])
}

/// Waits until all that the thread has started to store has been read.
#[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
#[inline(always)]
pub(super) fn wait_for_reads() {
    // SAFETY: it waits; what is written to shared memory afterwards is not read any more.
    unsafe { core::arch::asm!("cp.async.bulk.wait_group.read 0;", options(nostack, preserves_flags)) };
}

/// Starts to store a tile or, with another instruction, to add it. There is no branch: behind one, LLVM would not see that all threads
/// come to the next call.
#[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
macro_rules! start {
    ($instruction:literal, $plane:expr, $thread:expr, $tile:expr, $place:expr) => {{
        let (from, [row, column]) = (Stage::tile(&raw const $tile.0), $place);
        let (map, is_full) = $plane.map();
        // SAFETY: the map is that of such tiles in the plane, of which all accesses are like this one; one of an empty plane is not used. The
        // tile has been published; before it is reclaimed, and before the block ends, this thread waits until it has been read.
        unsafe {
            core::arch::asm!(
                "{{ .reg .pred %starts; setp.ne.b32 %starts, {starts}, 0;",
                concat!("@%starts ", $instruction, " [{map}, {{{column}, {row}}}], [{from}];"),
                "@%starts cp.async.bulk.commit_group; }}",
                starts = in(reg32) u32::from(is_full & ($thread.thread_rank() == 0)), map = in(reg64) map,
                column = in(reg32) column, row = in(reg32) row,
                from = in(reg32) crate::shared::within_shared(from.start.cast_mut()),
                options(nostack, preserves_flags),
            );
        }
    }};
}

impl<T: MapNumber, const W: usize, const H: usize> TensorMapMut<'_, T, W, H> {
    /// Stores the tile, its first element at `[row, column]`; what would lie beyond the edges of the plane is left out. The column is a
    /// multiple of 16 bytes. All threads of the block make the call together, with the same place; the first one's counts. The tile stays
    /// readable; when it is reclaimed, it has been read. The plane has the elements when the kernel has ended.
    ///
    /// PTX `cp.async.bulk.tensor` from shared to global memory.
    ///
    /// # Panics
    /// If the column is no multiple of 16 bytes, or the place is 2^31 or more.
    #[track_caller]
    #[inline(always)]
    pub fn store<const R: usize, const ID: usize>(
        &self,
        thread: &Thread<'_, R>,
        tile: &Published<'_, OutputTile<T, W, H>, ID>,
        place: [usize; 2],
    ) {
        let place = stored_place::<T>(place);
        thread.agree_on(tile);
        #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
        start!("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group", self, thread, tile, place);
        #[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_90a")))]
        self.for_own_places(thread, tile, place, |element, value| element.store(value, Relaxed));
    }

    /// Adds the tile to the plane's elements, as [`store`](Self::store) stores it: those of several blocks, too, each element at once
    /// (`fetch_add`), in any order.
    ///
    /// PTX `cp.reduce.async.bulk.tensor`, `.add`.
    ///
    /// # Panics
    /// As [`store`](Self::store).
    #[track_caller]
    #[inline(always)]
    pub fn add<const R: usize, const ID: usize>(
        &self,
        thread: &Thread<'_, R>,
        tile: &Published<'_, OutputTile<T, W, H>, ID>,
        place: [usize; 2],
    ) where
        T: AtomicValue,
    {
        let place = stored_place::<T>(place);
        thread.agree_on(tile);
        #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
        start!(
            "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group",
            self,
            thread,
            tile,
            place
        );
        #[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_90a")))]
        self.for_own_places(thread, tile, place, |element, value| {
            element.fetch_add(value, Relaxed);
        });
    }

    /// Calls `f` with each element of the plane that belongs to the thread, and its value in the tile.
    #[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_90a")))]
    #[inline(always)]
    fn for_own_places<const R: usize, const ID: usize>(
        &self,
        thread: &Thread<'_, R>,
        tile: &Published<'_, OutputTile<T, W, H>, ID>,
        place: [i32; 2],
        f: impl Fn(&DeviceAtomic<T>, T),
    ) {
        let [row, column] = place.map(|it| it as usize);
        crate::shared::for_own_places::<OutputTile<T, W, H>, R>(thread, |[in_tile, across]| {
            if let Some(element) = self.get([row + in_tile, column + across]) {
                f(element, tile[[in_tile, across]]);
            }
        });
    }
}
