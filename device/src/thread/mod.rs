//! [`Thread`]: a thread's position in its block and in the grid. On the device these are special registers;
//! natively the CPU device passes them in. `index` has the index that proves ownership, `stride` grid- and
//! block-stride loops, `uniform` values that a block agrees on, and `dependents` programmatic dependent
//! launch.

mod dependents;
pub(crate) mod index;
pub(crate) mod stride;
mod uniform;

use core::hint::assert_unchecked;
use core::marker::PhantomData;

#[cfg(not(target_arch = "nvptx64"))]
use crate::native::Block;
use crate::thread::index::Index;

/// One thread of a launch whose grid has rank `R` (1, 2 or 3).
///
/// Every kernel takes one as its first parameter, and the launch provides it. Arrays that its methods return
/// begin with x, the fastest dimension.
///
/// The lifetime keeps a thread from outliving its launch; kernels write `Thread<1>`.
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
/// The size of the launch:
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
    /// Neither `Send` nor `Sync`.
    stays: PhantomData<(&'t (), *mut ())>,
}

/// The position of a natively executed thread.
#[cfg(not(target_arch = "nvptx64"))]
#[derive(Clone, Copy)]
pub(crate) struct Coordinates {
    pub(crate) thread_idx: [u32; 3],
    pub(crate) block_idx: [u32; 3],
    pub(crate) block_dim: [u32; 3],
    pub(crate) grid_dim: [u32; 3],
    /// The end of the block in the grid: above the index of each of its threads, along each axis.
    pub(crate) ends: [usize; 3],
}

impl<const R: usize> Thread<'_, R> {
    /// The thread's index in the grid, which no other thread of the launch has (CUDA's `blockIdx.x *
    /// blockDim.x + threadIdx.x`, and likewise along the other axes).
    #[inline(always)]
    pub fn index(&self) -> Index<'_, R> {
        let position = self.grid_rank().map(|place| place as usize);
        #[cfg(not(target_arch = "nvptx64"))]
        self.assume_inside(&position);
        Index::new(position)
    }

    /// The thread's index in the grid, in 32 bits and known not to wrap. That saves kernels every second
    /// instruction of what they compute from it.
    #[inline(always)]
    pub(crate) fn grid_rank(&self) -> [u32; R] {
        let (thread, block, dim) = (self.thread_idx(), self.block_idx(), self.block_dim());
        // SAFETY: it is below the number of threads along the axis, which a launch keeps below 2^32.
        core::array::from_fn(|axis| unsafe {
            block[axis].unchecked_mul(dim[axis]).unchecked_add(thread[axis])
        })
    }

    /// The number of threads in the grid along each axis.
    #[inline(always)]
    pub(crate) fn grid_threads(&self) -> [u32; R] {
        let (blocks, threads) = (self.grid_dim(), self.block_dim());
        // SAFETY: a launch keeps it below 2^32.
        core::array::from_fn(|axis| unsafe { blocks[axis].unchecked_mul(threads[axis]) })
    }

    /// The thread's index in its block (CUDA's `threadIdx`, PTX `%tid`).
    #[inline(always)]
    pub fn thread_idx(&self) -> [u32; R] {
        first(registers::thread_idx(self))
    }

    /// The block's index in the grid (CUDA's `blockIdx`, PTX `%ctaid`).
    #[inline(always)]
    pub fn block_idx(&self) -> [u32; R] {
        first(registers::block_idx(self))
    }

    /// Threads per block (CUDA's `blockDim`, PTX `%ntid`).
    #[inline(always)]
    pub fn block_dim(&self) -> [u32; R] {
        first(registers::block_dim(self))
    }

    /// The thread's rank in its block, x fastest (cooperative groups' `thread_rank()`).
    ///
    /// ```
    /// use ferrogrid_device::prelude::*;
    ///
    /// /// One thread of each block, of whatever shape, does the work that is done once.
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

    /// The number of threads in the block (cooperative groups' `num_threads()`).
    #[inline(always)]
    pub fn block_threads(&self) -> u32 {
        let [width, height, depth] = registers::block_dim(self);
        match R {
            1 => width,
            2 => width * height,
            _ => width * height * depth,
        }
    }

    /// Row and column of element `first + rank` in rows of `W`; `first` is a multiple of the number of
    /// threads in the block. With rows as wide as the block these are the thread's own indices, which LLVM
    /// does not find out by itself.
    #[inline(always)]
    pub(crate) fn place_in_rows<const W: usize>(&self, first: usize) -> [usize; 2] {
        let ([x, y, _], [width, _, _]) = (registers::thread_idx(self), registers::block_dim(self));
        if R == 2 && width as usize == W {
            return [first / W + y as usize, x as usize];
        }
        let number = first + self.thread_rank() as usize;
        [number / W, number % W]
    }

    /// The number of blocks in the grid, and whether this is the first. (A cooperative grid has fewer than
    /// 2^31 blocks.)
    #[cfg(target_arch = "nvptx64")]
    #[inline(always)]
    pub(crate) fn blocks(&self) -> (u32, bool) {
        (registers::grid_dim(self).iter().product(), registers::block_idx(self) == [0; 3])
    }

    /// The number of blocks in the grid (CUDA's `gridDim`, PTX `%nctaid`).
    #[inline(always)]
    pub fn grid_dim(&self) -> [u32; R] {
        first(registers::grid_dim(self))
    }
}

/// The block shape that a kernel computes from constants, for the code that `#[kernel]` generates.
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
    /// The launch has rank `R`: every dimension above `R` has size 1. It has fewer than 2^32 threads along
    /// each axis.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn current() -> Self {
        Thread { stays: PhantomData }
    }

    /// The thread that is running, in a block of this shape, x first. The compiler optimises for the shape.
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

    /// Tells the compiler that `position`, the thread's index, is below the end of its block.
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

    /// The thread's index in its block, in all dimensions.
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

/// The same values, passed in by the CPU device.
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
