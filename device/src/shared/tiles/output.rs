//! [`OutputBox`]: a box of results in shared memory, a tile of two axes above all, which a tensor map stores or adds.

use core::ops::Index;

use super::Stage;
use super::array::{AXES, BoxArray};
use crate::atomic::AtomicValue;
#[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_90a")))]
use crate::atomic::{DeviceAtomic, Ordering::Relaxed};
use crate::memory::tensor_map::box_place;
#[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
use crate::memory::tensor_map::{Encoded, by_rank};
use crate::memory::tensor_map_mut::MapNumber;
use crate::shared::{Published, SharedArray};
use crate::thread::Thread;

/// `H` rows of `W` elements in shared memory, from which a [`TensorMapMut`](crate::TensorMapMut) stores, an [`OutputBox`] of two axes:
/// `tile: Shared<OutputTile<f32, 32, 8>>`.
pub type OutputTile<T, const W: usize, const H: usize> = OutputBox<[[T; W]; H]>;

/// An array in shared memory from which a [`TensorMapMut`](crate::TensorMapMut) or a [`BoxMapMut`](crate::BoxMapMut) stores. Threads
/// write it as any other region; [`Thread::publish`] makes it readable, as `tile[[row, column]]`, and the map's `store` and `add`
/// take it then. [`Thread::reclaim`] waits until it has been read.
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
pub struct OutputBox<A>(Stage<A>);

// SAFETY: the places of a box are different elements within its stage.
unsafe impl<A: BoxArray> SharedArray for OutputBox<A> {
    type Element = A::Element;
    type Place = A::Place;
    const LEN: usize = A::LEN;
    const HAS_STATE: bool = true;

    #[inline(always)]
    fn place(number: usize) -> A::Place {
        A::place(number)
    }

    #[inline(always)]
    fn own_place<const R: usize>(thread: &Thread<'_, R>, first: usize) -> A::Place {
        A::place_of_thread(thread, first)
    }

    #[inline(always)]
    unsafe fn element(start: *mut Self, place: A::Place) -> *mut A::Element {
        Stage::copied(start.cast::<Stage<A>>()).address(place).cast_mut()
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

impl<A: BoxArray> Index<A::Place> for OutputBox<A> {
    type Output = A::Element;

    #[track_caller]
    #[inline(always)]
    fn index(&self, place: A::Place) -> &A::Element {
        Stage::copied(&raw const self.0).element(place)
    }
}

/// The place of a box that is stored, the rows' axis first, as the hardware takes it: one before the first element is an illegal
/// instruction.
#[track_caller]
#[inline(always)]
fn stored_place<A: BoxArray>(place: A::Place) -> [i32; AXES] {
    let place = A::of_place(place);
    let is_near = (0..AXES).fold(true, |is_near, axis| is_near & (place[axis] <= i32::MAX as usize));
    assert!(is_near, "a tile's place is less than 2^31");
    box_place::<A>(place.map(|axis| axis as isize))
}

/// Waits until all that the thread has started to store has been read.
#[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
#[inline(always)]
pub(super) fn wait_for_reads() {
    // SAFETY: it waits; what is written to shared memory afterwards is not read any more.
    unsafe { core::arch::asm!("cp.async.bulk.wait_group.read 0;", options(nostack, preserves_flags)) };
}

/// Where boxes are stored: a `TensorMapMut` or a `BoxMapMut`.
pub(crate) trait BoxTarget<A: BoxArray<Element: MapNumber>> {
    /// The element at a place, the rows' axis first, if there is one.
    #[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_90a")))]
    fn element(&self, place: [usize; AXES]) -> Option<&DeviceAtomic<A::Element>>;

    /// The driver's tensor map, and whether there is one: not if there are no elements.
    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
    fn encoded(&self) -> (*const Encoded, bool);
}

/// Starts to store a box or, with another instruction, to add it. There is no branch: behind one, LLVM would not see that all threads
/// come to the next call.
#[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
macro_rules! start {
    ($name:literal, $kind:literal, $target:expr, $thread:expr, $output:expr, $place:expr) => {{
        let (from, (map, is_full)) = (Stage::copied(&raw const $output.0), $target.encoded());
        // SAFETY: the map is that of such boxes in the target, of which all accesses are like this one; one without elements is not used. The
        // box has been published; before it is reclaimed, and before the block ends, this thread waits until it has been read.
        unsafe {
            by_rank!(
                A::RANK,
                $place,
                [
                    concat!("{{ .reg .pred %starts; setp.ne.b32 %starts, {starts}, 0; @%starts ", $name),
                    concat!(".global.shared::cta", $kind, ".tile.bulk_group [{map}, "),
                    "], [{from}]; @%starts cp.async.bulk.commit_group; }}"
                ],
                starts = in(reg32) u32::from(is_full & ($thread.thread_rank() == 0)), map = in(reg64) map,
                from = in(reg32) crate::shared::within_shared(from.start.cast_mut()),
                options(nostack, preserves_flags),
            );
        }
    }};
}

/// Stores a box at a place, as [`TensorMapMut::store`](crate::TensorMapMut::store).
#[track_caller]
#[inline(always)]
pub(crate) fn store<A: BoxArray<Element: MapNumber>, const R: usize, const ID: usize>(
    target: &impl BoxTarget<A>,
    thread: &Thread<'_, R>,
    output: &Published<'_, OutputBox<A>, ID>,
    place: A::Place,
) {
    let place = stored_place::<A>(place);
    thread.agree_on(output);
    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
    start!("cp.async.bulk.tensor", "", target, thread, output, place);
    #[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_90a")))]
    for_own_places(target, thread, output, place, |element, value| element.store(value, Relaxed));
}

/// Adds it, as [`TensorMapMut::add`](crate::TensorMapMut::add).
#[track_caller]
#[inline(always)]
pub(crate) fn add<A: BoxArray<Element: MapNumber + AtomicValue>, const R: usize, const ID: usize>(
    target: &impl BoxTarget<A>,
    thread: &Thread<'_, R>,
    output: &Published<'_, OutputBox<A>, ID>,
    place: A::Place,
) {
    let place = stored_place::<A>(place);
    thread.agree_on(output);
    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
    start!("cp.reduce.async.bulk.tensor", ".add", target, thread, output, place);
    #[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_90a")))]
    for_own_places(target, thread, output, place, |element, value| {
        element.fetch_add(value, Relaxed);
    });
}

/// Calls `f` with each element of the target that belongs to the thread, and its value in the box.
#[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_90a")))]
#[inline(always)]
fn for_own_places<A: BoxArray<Element: MapNumber>, const R: usize, const ID: usize>(
    target: &impl BoxTarget<A>,
    thread: &Thread<'_, R>,
    output: &Published<'_, OutputBox<A>, ID>,
    first: [i32; AXES],
    f: impl Fn(&DeviceAtomic<A::Element>, A::Element),
) {
    crate::shared::for_own_places::<OutputBox<A>, R>(thread, |place| {
        let in_box = A::of_place(place);
        if let Some(element) =
            target.element(core::array::from_fn(|axis| first[axis] as usize + in_box[axis]))
        {
            f(element, output[place]);
        }
    });
}
