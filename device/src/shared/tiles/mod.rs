//! [`BoxStages`]: boxes of tensors, tiles of planes among them, in stages that take turns, which tensor maps fill; `array` says what boxes
//! there are, `hopper` has the instructions of `sm_90a`. `output` has the box that a tensor map stores.

pub(crate) mod array;
#[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
pub(crate) mod hopper;
pub(crate) mod output;

use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ops::Index;

use array::{AXES, BoxArray};

use super::{Advance, Shared, SharedElement, sealed, without_elements};
use crate::element::device_copy::DeviceCopy;
use crate::memory::tensor_map::{BoxSource, MapForm, box_place};
use crate::thread::Thread;

/// The alignment of a tile.
const ALIGNMENT: usize = 128;
/// Regions and rows of tiles begin at multiples of so many bytes.
const STEP: usize = super::ALIGNMENT;

/// Memory for `S` tiles of `H` rows with `W` elements, as [`BoxStages`] of boxes with two axes: `tiles: Shared<TileStages<f32, 32, 8, 2>>`.
pub type TileStages<T, const W: usize, const H: usize, const S: usize> = BoxStages<[[T; W]; H], S>;

/// Memory for [`StagedBoxes`], `S` boxes `A`: `boxes: Shared<BoxStages<[[[f32; 32]; 8]; 4], 2>>`. No thread reads any of it until
/// [`Shared::into_stages`].
///
/// A row has a multiple of 16 bytes. There are at least two stages: one is read while another is copied to.
///
/// ```compile_fail,E0080
/// use ferrogrid_device::prelude::*;
/// use ferrogrid_device::shared::TileStages;
///
/// fn begin(tiles: Shared<TileStages<f32, 32, 8, 1>>) {
///     tiles.into_stages();
/// }
/// # let used: fn(Shared<TileStages<f32, 32, 8, 1>>) = begin;
/// # assert!(used as usize != 0);
/// ```
#[repr(C)]
pub struct BoxStages<A, const S: usize> {
    stages: [Stage<A>; S],
    mark: Mark,
    arrivals: [Arrivals; S],
}

/// A box, which begins at the first multiple of 128 bytes.
#[repr(C)]
struct Stage<A> {
    array: MaybeUninit<A>,
    after: MaybeUninit<[u8; ALIGNMENT - STEP]>,
}

impl<A> Stage<A> {
    /// The box of a stage in memory that is borrowed for `'a`.
    #[inline(always)]
    fn copied<'a>(stage: *const Self) -> CopiedBox<'a, A> {
        let bytes = stage.addr().wrapping_neg() % ALIGNMENT;
        CopiedBox { start: stage.cast::<A>().wrapping_byte_add(bytes), region: PhantomData }
    }
}

/// What tells a thread that panics that there is a region here, in code for `sm_90a`.
#[repr(C)]
struct Mark {
    word: u64,
    stages: usize,
}

/// What threads wait for at a stage, in code for `sm_90a`.
#[repr(C)]
struct Arrivals {
    /// Ends a phase when a box has arrived (`mbarrier`).
    full: u64,
    /// The phases that will have ended when all copies have arrived.
    begun: u64,
}

without_elements!([A: BoxArray<Element: SharedElement>, const S: usize] BoxStages<A, S>, A::Element, {
    const HAS_STATE: bool = true;

    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
    #[inline(always)]
    unsafe fn begin(start: *mut Self) {
        // SAFETY: the caller's.
        unsafe { hopper::begin(start) };
    }

    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
    #[inline(always)]
    unsafe fn end(start: *mut Self) {
        // SAFETY: the caller's.
        unsafe { hopper::end(&raw mut (*start).mark, S) };
    }
});

/// [`StagedBoxes`] of two axes: tiles of planes.
pub type StagedTiles<'b, T, const W: usize, const H: usize, const S: usize, const ID: usize = 0> =
    StagedBoxes<'b, [[T; W]; H], S, ID>;

/// Boxes of tensors in shared memory, tiles of planes above all, in stages, a software pipeline: one stage is copied to while all threads
/// read another. Both are the next ones in turn after [`Thread::advance`], a barrier. So a box that is copied is read `S - 1` turns later,
/// and has `S - 2` further turns to arrive.
///
/// On GPUs of compute capability 9.0, in code for `sm_90a`, the block's first thread starts the copy of a whole box (TMA, PTX
/// `cp.async.bulk.tensor`), and no thread computes addresses or edges; `advance` waits for its arrival (PTX `mbarrier`). Elsewhere
/// each thread copies its elements as [`StagedShared::copy_with`](super::StagedShared::copy_with) does.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use ferrogrid::device::shared::TileStages;
///
/// /// The sum of each element and its four neighbours; there are zeros beyond the edges. A block goes down a strip of 32 columns.
/// #[kernel(block = [32, 8])]
/// pub fn sums(t: Thread<2>, x: TensorMap<f32, 40, 10>, mut y: DisjointSlice<f32, 2>, tiles: Shared<TileStages<f32, 40, 10, 3>>) {
///     let [column, row] = t.thread_idx().map(|axis| axis as usize);
///     let [i, j] = [row + 1, column + 4];
///     let first = 32 * t.block_idx()[0] as isize;
///     let (mut tiles, mut places) = (tiles.into_stages(), t.grid_stride(x.width(), x.height()));
///     for step in 0..x.height().div_ceil(8) + 2 {
///         tiles.copy(&t, x, [8 * step as isize - 1, first - 4]); // with a row above, and 16 bytes to the left
///         if step >= 2 {
///             let tile = tiles.current();
///             let sum = tile[[i, j]] + tile[[i - 1, j]] + tile[[i + 1, j]] + tile[[i, j - 1]] + tile[[i, j + 1]];
///             if let Some(y) = places.next().and_then(|place| y.get_mut(place)) {
///                 *y = sum;
///             }
///         }
///         t.advance(&mut tiles); // the only barrier of the step
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.fill(1.0_f32, 40 * 20)?; // 20 rows
/// let mut y = stream.zeros(40 * 20)?;
/// kernels::sums(&stream, Grid::new([2, 1], [32, 8]), x.view_2d(40, 20)?, y.view_2d_mut(40, 20)?)?;
/// let y = stream.download(&y)?;
/// assert_eq!((y[0], y[1], y[41], y[19 * 40 + 39]), (3.0, 4.0, 5.0, 3.0));
/// # Ok(()) }
/// ```
///
/// A tile of the stage that is read is borrowed until the turn ends:
///
/// ```compile_fail,E0502
/// # use ferrogrid::prelude::*;
/// #[ferrogrid::module(host_only)]
/// mod kernels {
///     use ferrogrid::device::prelude::*;
///     use ferrogrid::device::shared::TileStages;
///
///     #[kernel(block = 32)]
///     pub fn kept(t: Thread<1>, tiles: Shared<TileStages<u32, 32, 8, 2>>, mut y: DisjointSlice<u32>) {
///         let mut tiles = tiles.into_stages();
///         let first = tiles.current();
///         t.advance(&mut tiles);
///         if let Some(y) = y.get_mut(t.index()) {
///             *y = first[[0, 0]];
///         }
///     }
/// }
/// ```
pub struct StagedBoxes<'b, A, const S: usize, const ID: usize = 0> {
    memory: *mut BoxStages<A, S>,
    /// The stage that is copied to: the same in all threads of the block, because all of them make each turn.
    written: usize,
    /// How often all stages have been that one.
    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
    round: u64,
    /// Whether it has been copied to in this turn.
    is_copied: bool,
    block: PhantomData<&'b mut A>,
}

impl<'b, A: BoxArray<Element: SharedElement + DeviceCopy>, const S: usize, const ID: usize>
    Shared<'b, BoxStages<A, S>, ID>
{
    /// The stages, of which the first is copied to first. All start with arbitrary bits.
    #[inline(always)]
    pub fn into_stages(self) -> StagedBoxes<'b, A, S, ID> {
        const {
            assert!(S >= 2, "one stage is copied to while another is read: there are at least two");
            assert!(MapForm::new::<A::Element>(A::EXTENT).lengths[0] > 0);
        }
        StagedBoxes {
            memory: self.start,
            written: 0,
            #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
            round: 0,
            is_copied: false,
            block: PhantomData,
        }
    }
}

impl<'b, A: BoxArray<Element: SharedElement + DeviceCopy>, const S: usize, const ID: usize>
    StagedBoxes<'b, A, S, ID>
{
    /// Copies the box of `from`, a [`TensorMap`](crate::TensorMap) or a [`BoxMap`](crate::BoxMap), whose first element is at `corner`,
    /// `[row, column]` of a plane, to the stage that is written. The column is a multiple of 16 bytes, so a tile with a halo begins at
    /// least that much before. Elements beyond the edges, above the first row too, are zeros. All threads of the block make the call
    /// together, with the same place; the first one's counts.
    ///
    /// What is copied is borrowed as long as the stages are used, so nothing changes it under a copy. The block does not end, by a panic
    /// neither, before its copies have arrived.
    ///
    /// # Panics
    /// If there was a copy in this turn, the column is no multiple of 16 bytes, or the place is 2^31 or more.
    #[track_caller]
    #[inline(always)]
    pub fn copy<const R: usize>(
        &mut self,
        thread: &Thread<'_, R>,
        from: impl BoxSource<'b, A>,
        corner: A::Corner,
    ) {
        assert!(!self.is_copied, "a stage is copied to once in a turn");
        let first = box_place::<A>(A::of_corner(corner));
        thread.agree_on(&&mut *self);
        self.is_copied = true;
        #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
        self.copy_by_map(thread, from, first);
        #[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_90a")))]
        self.for_own_places(thread, |to, place| {
            let place = A::of_place(place);
            // Below 0 becomes large.
            let in_source: [usize; AXES] =
                core::array::from_fn(|axis| (first[axis] as isize as usize).wrapping_add(place[axis]));
            let source = from.element(in_source);
            // SAFETY: an element that belongs to this thread alone in this turn. The thread waits for the copy before a barrier of the
            // block, after which others read it. Sources are borrowed as long as the region; if its value is forgotten before that, no
            // thread reads what was copied.
            unsafe { super::stages::copy_element(to, source) };
        });
    }

    /// Calls `f` with address and place of each element of the stage that is written that belongs to the thread.
    #[inline(always)]
    fn for_own_places<const R: usize>(
        &self,
        thread: &Thread<'_, R>,
        mut f: impl FnMut(*mut A::Element, A::Place),
    ) {
        let written = self.stage(self.written);
        super::for_own_places::<A, R>(thread, |place| f(written.address(place).cast_mut(), place));
    }

    /// The box that all threads read: the one that was copied `S - 1` turns before.
    #[inline(always)]
    pub fn current(&self) -> CopiedBox<'_, A> {
        self.stage(Self::after(self.written))
    }

    #[inline(always)]
    fn stage(&self, stage: usize) -> CopiedBox<'_, A> {
        // SAFETY: one of the stages.
        Stage::copied(unsafe { (&raw const (*self.memory).stages).cast::<Stage<A>>().add(stage) })
    }

    /// The stage after `stage`.
    #[inline(always)]
    fn after(stage: usize) -> usize {
        if stage + 1 == S { 0 } else { stage + 1 }
    }
}

impl<A, const S: usize, const ID: usize> sealed::Region for &mut StagedBoxes<'_, A, S, ID> {
    #[inline(always)]
    fn visit(&self, visitor: &mut impl FnMut(*const u8)) {
        visitor(self.memory.cast_const().cast());
    }
}

impl<A: BoxArray<Element: SharedElement + DeviceCopy>, const S: usize, const ID: usize> Advance
    for &mut StagedBoxes<'_, A, S, ID>
{
    const LAG: usize = S - 2;

    #[inline(always)]
    #[allow(unused_variables)]
    fn advance<const R: usize>(self, thread: &Thread<'_, R>) {
        #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
        if !self.is_copied && thread.thread_rank() == 0 {
            // SAFETY: the stage's phase has not begun to end.
            unsafe { self.arrive(0) };
        }
        self.is_copied = false;
        self.written = StagedBoxes::<A, S, ID>::after(self.written);
        #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
        self.wait();
    }
}

/// A [`CopiedBox`] of two axes: a tile of a plane, `tile[[row, column]]`.
pub type CopiedTile<'a, T, const W: usize, const H: usize> = CopiedBox<'a, [[T; W]; H]>;

/// A box of a tensor in shared memory, which all threads of the block read: `tile[[row, column]]`, `copied[[layer, row, column]]`. Its
/// layout is that of the copy: if a row has 128 bytes, the parts of 16 bytes of eight rows are swizzled, so that fragments
/// ([`FragmentA::load`](crate::matrix::FragmentA::load)) are loaded from tiles without bank conflicts.
pub struct CopiedBox<'a, A> {
    start: *const A,
    region: PhantomData<&'a A>,
}

impl<A> Clone for CopiedBox<'_, A> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for CopiedBox<'_, A> {}

impl<'a, A: BoxArray> CopiedBox<'a, A> {
    /// The element at a place of a box that has been written.
    #[track_caller]
    #[inline(always)]
    fn element(self, place: A::Place) -> &'a A::Element {
        let axes = A::of_place(place);
        // Without branches.
        let is_inside = (0..AXES).fold(true, |is_inside, axis| is_inside & (axes[axis] < A::EXTENT[axis]));
        assert!(is_inside, "a place lies within the tile");
        // SAFETY: within the box, which no thread writes while it is borrowed. Elements take any bits.
        unsafe { &*self.address(place) }
    }

    /// The address of an element within the box.
    #[inline(always)]
    pub(crate) fn address(&self, place: A::Place) -> *const A::Element {
        let ([column, row, z, u, v], [width, height, depth, further, _]) = (A::of_place(place), A::EXTENT);
        let row = ((v * further + u) * depth + z) * height + row;
        let row = self.start.cast::<A::Element>().wrapping_add(row * width);
        let bytes = column * size_of::<A::Element>();
        let is_swizzled = const { A::EXTENT[0] * size_of::<A::Element>() == ALIGNMENT };
        let swizzle = if is_swizzled { row.addr() / ALIGNMENT % 8 * STEP } else { 0 };
        row.wrapping_byte_add(bytes ^ swizzle)
    }
}

impl<A: BoxArray> Index<A::Place> for CopiedBox<'_, A> {
    type Output = A::Element;

    #[track_caller]
    #[inline(always)]
    fn index(&self, place: A::Place) -> &A::Element {
        self.element(place)
    }
}
