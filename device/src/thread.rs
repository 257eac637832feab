//! Who a thread is: its place in its block and in the grid. On the device these are special
//! registers; natively, values that the CPU device passes in. It must not know what a thread does.

use core::hint::assert_unchecked;
use core::marker::PhantomData;

use crate::index::Index;
#[cfg(not(target_arch = "nvptx64"))]
use crate::native::Block;

/// One thread of a launch whose grid has rank `R` (1, 2 or 3).
///
/// Every kernel takes one; the launch provides it. Arrays that it returns have x, the fastest
/// dimension, first.
///
/// The lifetime ends with the thread, so that none outlives its launch; kernels write `Thread<1>`.
///
/// ```
/// use ferrogrid_device::prelude::*;
///
/// /// Where this thread is, for a message.
/// fn place(t: &Thread<1>) -> [u32; 3] {
///     let ([block], [thread]) = (t.block_idx(), t.thread_idx());
///     [block, thread, t.index().get() as u32]
/// }
/// # let block = ferrogrid_device::native::Block::new([1, 0, 0], [4, 1, 1], [2, 1, 1]);
/// # let mut found = vec![];
/// # // SAFETY: there are no slices to be written.
/// # unsafe { block.for_each_thread::<1>(|t| found.push(place(&t))) };
/// # assert_eq!(found[2], [1, 2, 6]);
/// ```
///
/// How large the launch is:
///
/// ```
/// use ferrogrid_device::prelude::*;
///
/// /// How many threads the grid has along x.
/// fn along_x<const R: usize>(t: &Thread<R>) -> u32 {
///     t.grid_dim()[0] * t.block_dim()[0]
/// }
///
/// /// A number for each thread of a grid of any rank, block by block, as random numbers need.
/// fn number<const R: usize>(t: &Thread<R>) -> u32 {
///     let places = t.block_idx().into_iter().zip(t.grid_dim());
///     let block = places.rev().fold(0, |sum, (place, blocks)| sum * blocks + place);
///     block * t.block_threads() + t.thread_rank()
/// }
/// # let block = ferrogrid_device::native::Block::new([1, 2, 0], [4, 2, 1], [3, 5, 1]);
/// # let mut found = vec![];
/// # // SAFETY: there are no slices to be written.
/// # unsafe { block.for_each_thread::<2>(|t| found.push((along_x(&t), number(&t)))) };
/// # assert_eq!(found, (56..64).map(|number| (12, number)).collect::<Vec<_>>());
/// ```
pub struct Thread<'t, const R: usize> {
    #[cfg(not(target_arch = "nvptx64"))]
    coordinates: Coordinates,
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) block: &'t Block<'t>,
    /// A thread stays where it is: neither `Send` nor `Sync`.
    stays: PhantomData<(&'t (), *mut ())>,
}

/// Where a natively executed thread is.
#[cfg(not(target_arch = "nvptx64"))]
#[derive(Clone, Copy)]
pub(crate) struct Coordinates {
    pub(crate) thread_idx: [u32; 3],
    pub(crate) block_idx: [u32; 3],
    pub(crate) block_dim: [u32; 3],
    pub(crate) grid_dim: [u32; 3],
    /// Where the block ends in the grid: above each thread's index along each axis.
    pub(crate) ends: [usize; 3],
}

impl<const R: usize> Thread<'_, R> {
    /// The thread's place in the whole grid, which no other thread of this launch has (CUDA's
    /// `blockIdx.x * blockDim.x + threadIdx.x`, and so along each axis).
    #[inline(always)]
    pub fn index(&self) -> Index<'_, R> {
        let position = self.grid_rank().map(|place| place as usize);
        #[cfg(not(target_arch = "nvptx64"))]
        self.assume_inside(&position);
        Index::new(position)
    }

    /// The thread's place in the whole grid. In 32 bits, and known not to wrap: that spares kernels every second
    /// instruction for what they make of it.
    #[inline(always)]
    pub(crate) fn grid_rank(&self) -> [u32; R] {
        let (thread, block, dim) = (self.thread_idx(), self.block_idx(), self.block_dim());
        // SAFETY: it is below the number of threads along the axis, which a launch keeps below 2^32.
        core::array::from_fn(|axis| unsafe {
            block[axis].unchecked_mul(dim[axis]).unchecked_add(thread[axis])
        })
    }

    /// How many threads the grid has along each axis.
    #[inline(always)]
    pub(crate) fn grid_threads(&self) -> [u32; R] {
        let (blocks, threads) = (self.grid_dim(), self.block_dim());
        // SAFETY: a launch keeps it below 2^32.
        core::array::from_fn(|axis| unsafe { blocks[axis].unchecked_mul(threads[axis]) })
    }

    /// The thread's place in its block (CUDA's `threadIdx`, PTX `%tid`).
    #[inline(always)]
    pub fn thread_idx(&self) -> [u32; R] {
        first(registers::thread_idx(self))
    }

    /// The block's place in the grid (CUDA's `blockIdx`, PTX `%ctaid`).
    #[inline(always)]
    pub fn block_idx(&self) -> [u32; R] {
        first(registers::block_idx(self))
    }

    /// Threads per block (CUDA's `blockDim`, PTX `%ntid`).
    #[inline(always)]
    pub fn block_dim(&self) -> [u32; R] {
        first(registers::block_dim(self))
    }

    /// The thread's number in its block, x fastest (cooperative groups' `thread_rank()`).
    ///
    /// ```
    /// use ferrogrid_device::prelude::*;
    ///
    /// /// One thread of each block, whatever its shape, does what is to be done once.
    /// fn is_first<const R: usize>(t: &Thread<R>) -> bool {
    ///     t.thread_rank() == 0
    /// }
    /// # let block = ferrogrid_device::native::Block::new([1, 0, 0], [4, 1, 1], [2, 1, 1]);
    /// # let mut first = 0;
    /// # // SAFETY: there are no slices to be written.
    /// # unsafe { block.for_each_thread::<1>(|t| first += u32::from(is_first(&t))) };
    /// # assert_eq!(first, 1);
    /// ```
    #[inline(always)]
    pub fn thread_rank(&self) -> u32 {
        let ([x, y, z], [width, height, _]) = (registers::thread_idx(self), registers::block_dim(self));
        match R {
            1 => x,
            2 => x + width * y,
            _ => x + width * (y + height * z),
        }
    }

    /// How many threads the block has (cooperative groups' `num_threads()`).
    #[inline(always)]
    pub fn block_threads(&self) -> u32 {
        let [width, height, depth] = registers::block_dim(self);
        match R {
            1 => width,
            2 => width * height,
            _ => width * height * depth,
        }
    }

    /// Row and column of element `first + rank` in rows of `W`, where `first` is a multiple of the number of threads in
    /// the block. With rows as wide as the block, that is the thread's own place: what LLVM does not find out.
    #[inline(always)]
    pub(crate) fn place_in_rows<const W: usize>(&self, first: usize) -> [usize; 2] {
        let ([x, y, _], [width, _, _]) = (registers::thread_idx(self), registers::block_dim(self));
        if R == 2 && width as usize == W {
            return [first / W + y as usize, x as usize];
        }
        let number = first + self.thread_rank() as usize;
        [number / W, number % W]
    }

    /// How many blocks the grid has, and whether this is its first. (A grid that can wait as a whole has
    /// fewer than 2^31 blocks.)
    #[cfg(target_arch = "nvptx64")]
    #[inline(always)]
    pub(crate) fn blocks(&self) -> (u32, bool) {
        (registers::grid_dim(self).iter().product(), registers::block_idx(self) == [0; 3])
    }

    /// Blocks in the grid (CUDA's `gridDim`, PTX `%nctaid`).
    #[inline(always)]
    pub fn grid_dim(&self) -> [u32; R] {
        first(registers::grid_dim(self))
    }
}

/// The shape of a block that a kernel makes of constants, for the code that `#[kernel]` generates.
#[doc(hidden)]
#[track_caller]
pub const fn block(sizes: [i128; 3]) -> [u32; 3] {
    const LIMITS: [i128; 3] = [1024, 1024, 64];
    let (mut axis, mut threads) = (0, 1);
    while axis < 3 {
        assert!(sizes[axis] >= 1, "a block has no threads along an axis");
        assert!(
            sizes[axis] <= LIMITS[axis],
            "a block has at most 1024 threads along x and y, and 64 along z"
        );
        threads *= sizes[axis];
        axis += 1;
    }
    assert!(threads <= 1024, "a block has at most 1024 threads");
    [sizes[0] as u32, sizes[1] as u32, sizes[2] as u32]
}

#[inline(always)]
pub(crate) fn first<T: Copy, const R: usize>(all: [T; 3]) -> [T; R] {
    const { assert!(R >= 1 && R <= 3, "a grid has rank 1, 2 or 3") };
    core::array::from_fn(|axis| all[axis])
}

#[cfg(target_arch = "nvptx64")]
impl<const R: usize> Thread<'_, R> {
    /// The thread that is running.
    ///
    /// # Safety
    /// The launch must have rank `R`: every dimension above `R` has size 1. Along no axis has it 2^32 threads or
    /// more.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn current() -> Self {
        Thread { stays: PhantomData }
    }

    /// The thread that is running, in a block of this shape, x first: the compiler makes use of it.
    ///
    /// # Safety
    /// As for `current`, and the launch has blocks of this shape.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn current_in(block: [u32; 3]) -> Self {
        let ([width, height, depth], thread) = (block, Thread { stays: PhantomData });
        let (dim, [x, y, z]) = (registers::block_dim(&thread), registers::thread_idx(&thread));
        // One by one: LLVM drops a loop of assumptions.
        // SAFETY: the shape is as the caller vouches, and a thread is inside of its block.
        unsafe {
            assert_unchecked(dim[0] == width && dim[1] == height && dim[2] == depth);
            assert_unchecked(x < width);
            assert_unchecked(y < height);
            assert_unchecked(z < depth);
        }
        thread
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl<'t, const R: usize> Thread<'t, R> {
    #[inline(always)]
    pub(crate) fn at(block: &'t Block<'t>, coordinates: Coordinates) -> Self {
        Thread { coordinates, block, stays: PhantomData }
    }

    /// Lets the compiler know that `position`, the thread's index, is below the end of its block.
    #[inline(always)]
    fn assume_inside(&self, position: &[usize; R]) {
        let ends = self.coordinates.ends;
        // One by one: LLVM drops a loop of assumptions.
        // SAFETY: the place in the block is below its extent along each axis, and so what is the block's number
        // times the extent more; `Block` makes no other threads.
        unsafe {
            assert_unchecked(position[0] < ends[0]);
            assert_unchecked(R < 2 || position[1 % R] < ends[1]);
            assert_unchecked(R < 3 || position[2 % R] < ends[2]);
        }
    }

    /// The thread's place in its block, in all dimensions.
    #[inline(always)]
    pub(crate) fn place(&self) -> [u32; 3] {
        self.coordinates.thread_idx
    }
}

/// The special registers, x, y, z.
#[cfg(target_arch = "nvptx64")]
mod registers {
    use core::arch::nvptx::*;

    use super::Thread;

    #[inline(always)]
    pub(super) fn thread_idx<const R: usize>(_: &Thread<'_, R>) -> [u32; 3] {
        // SAFETY: reading a special register has no precondition.
        unsafe { [_thread_idx_x() as u32, _thread_idx_y() as u32, _thread_idx_z() as u32] }
    }

    #[inline(always)]
    pub(super) fn block_idx<const R: usize>(_: &Thread<'_, R>) -> [u32; 3] {
        // SAFETY: reading a special register has no precondition.
        unsafe { [_block_idx_x() as u32, _block_idx_y() as u32, _block_idx_z() as u32] }
    }

    #[inline(always)]
    pub(super) fn block_dim<const R: usize>(_: &Thread<'_, R>) -> [u32; 3] {
        // SAFETY: reading a special register has no precondition.
        unsafe { [_block_dim_x() as u32, _block_dim_y() as u32, _block_dim_z() as u32] }
    }

    #[inline(always)]
    pub(super) fn grid_dim<const R: usize>(_: &Thread<'_, R>) -> [u32; 3] {
        // SAFETY: reading a special register has no precondition.
        unsafe { [_grid_dim_x() as u32, _grid_dim_y() as u32, _grid_dim_z() as u32] }
    }
}

/// The same, from the values that the CPU device passed in.
#[cfg(not(target_arch = "nvptx64"))]
mod registers {
    use super::Thread;

    #[inline(always)]
    pub(super) fn thread_idx<const R: usize>(thread: &Thread<'_, R>) -> [u32; 3] {
        thread.coordinates.thread_idx
    }

    #[inline(always)]
    pub(super) fn block_idx<const R: usize>(thread: &Thread<'_, R>) -> [u32; 3] {
        thread.coordinates.block_idx
    }

    #[inline(always)]
    pub(super) fn block_dim<const R: usize>(thread: &Thread<'_, R>) -> [u32; 3] {
        thread.coordinates.block_dim
    }

    #[inline(always)]
    pub(super) fn grid_dim<const R: usize>(thread: &Thread<'_, R>) -> [u32; 3] {
        thread.coordinates.grid_dim
    }
}
