//! Reductions and scans over the threads of a tile, and of a block, with any associative operation; the
//! operands stay in the order of the threads. It must not know how values get from thread to thread.

use super::{Exchange, Tile, source};
use crate::shared::{Scratch, Shared, SharedElement};
use crate::thread::Thread;

impl<const N: usize> Tile<'_, N> {
    /// The values of all threads of the tile combined by `operation`, which must be associative; every
    /// thread gets the result (cooperative groups' `reduce`). Threads that the last warp of a block lacks
    /// are left out.
    ///
    /// ```
    /// use ferrogrid_device::prelude::*;
    ///
    /// /// The sum of 32 threads' values, in all of them.
    /// fn sum(t: &Thread<1>, x: f32) -> f32 {
    ///     t.warp().reduce(x, |a, b| a + b)
    /// }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn reduce<T: Exchange>(&self, value: T, operation: impl Fn(T, T) -> T) -> T {
        let (rank, present) = (self.rank(), self.present());
        let mut value = value;
        let mut distance = 1;
        while distance < Self::SIZE {
            let (other, exists) = if present == Self::SIZE {
                (self.shuffle_xor(value, distance), true)
            } else {
                // The other half of the pair, all of whose threads hold the same by now.
                let half = (rank ^ distance) & !(distance - 1);
                (self.shuffle(value, half), half < present)
            };
            if exists {
                let first = rank & distance == 0;
                value = if first { operation(value, other) } else { operation(other, value) };
            }
            distance *= 2;
        }
        value
    }

    /// The values of this thread and those before it in the tile combined by `operation`, which must be
    /// associative (cooperative groups' `inclusive_scan`).
    ///
    /// ```
    /// use ferrogrid_device::prelude::*;
    ///
    /// /// The sum of the values of this thread and of those below it in the warp.
    /// fn running_sum(t: &Thread<1>, x: f32) -> f32 {
    ///     t.warp().inclusive_scan(x, |a, b| a + b)
    /// }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn inclusive_scan<T: Exchange>(&self, value: T, operation: impl Fn(T, T) -> T) -> T {
        let rank = self.rank();
        let mut value = value;
        let mut distance = 1;
        while distance < Self::SIZE {
            let before = self.shuffle_up(value, distance);
            if rank >= distance {
                value = operation(before, value);
            }
            distance *= 2;
        }
        value
    }

    /// The values of the threads before this one in the tile combined by `operation`, which must be
    /// associative; `first` for the first thread (cooperative groups' `exclusive_scan`).
    ///
    /// ```
    /// use ferrogrid_device::prelude::*;
    ///
    /// /// Where this thread's `count` elements begin if the warp's threads write theirs one after the other.
    /// fn start(t: &Thread<1>, count: u32) -> u32 {
    ///     t.warp().exclusive_scan(count, 0, |a, b| a + b)
    /// }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn exclusive_scan<T: Exchange>(&self, value: T, first: T, operation: impl Fn(T, T) -> T) -> T {
        let before = self.shuffle_up(self.inclusive_scan(value, operation), 1);
        if self.rank() == 0 { first } else { before }
    }
}

impl<const N: usize> Tile<'_, N> {
    /// The sum of the values of all threads of the tile, wrapping; every thread gets it (CUDA's
    /// `__reduce_add_sync()`, PTX `redux.sync.add` where the architecture has it, from `sm_80` on).
    ///
    /// ```
    /// use ferrogrid_device::prelude::*;
    ///
    /// /// How many elements the warp has found, by one instruction from compute capability 8.0 on.
    /// fn found(t: &Thread<1>, own: u32) -> u32 {
    ///     t.warp().reduce_add(own)
    /// }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn reduce_add<T: Word32>(&self, value: T) -> T {
        source::redux(self, Redux::Add, value)
    }

    /// The least of the values of all threads of the tile; every thread gets it (CUDA's
    /// `__reduce_min_sync()`, PTX `redux.sync.min` where the architecture has it).
    #[track_caller]
    #[inline(always)]
    pub fn reduce_min<T: Word32>(&self, value: T) -> T {
        source::redux(self, Redux::Min, value)
    }

    /// The greatest of the values of all threads of the tile; every thread gets it (CUDA's
    /// `__reduce_max_sync()`, PTX `redux.sync.max` where the architecture has it).
    #[track_caller]
    #[inline(always)]
    pub fn reduce_max<T: Word32>(&self, value: T) -> T {
        source::redux(self, Redux::Max, value)
    }

    /// The bits that the values of all threads of the tile have in common; every thread gets them (CUDA's
    /// `__reduce_and_sync()`, PTX `redux.sync.and` where the architecture has it).
    #[track_caller]
    #[inline(always)]
    pub fn reduce_and<T: Word32>(&self, value: T) -> T {
        source::redux(self, Redux::And, value)
    }

    /// The bits that any of the values of the threads of the tile has; every thread gets them (CUDA's
    /// `__reduce_or_sync()`, PTX `redux.sync.or` where the architecture has it).
    #[track_caller]
    #[inline(always)]
    pub fn reduce_or<T: Word32>(&self, value: T) -> T {
        source::redux(self, Redux::Or, value)
    }

    /// The bits that an odd number of the values of the threads of the tile has; every thread gets them
    /// (CUDA's `__reduce_xor_sync()`, PTX `redux.sync.xor` where the architecture has it).
    #[track_caller]
    #[inline(always)]
    pub fn reduce_xor<T: Word32>(&self, value: T) -> T {
        source::redux(self, Redux::Xor, value)
    }
}

/// An operation that some architectures reduce by in one instruction.
#[derive(Clone, Copy)]
pub(super) enum Redux {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
}

/// A whole number of 32 bits: `u32`, `i32`.
pub trait Word32: Exchange + sealed::Word {}

impl Word32 for u32 {}
impl Word32 for i32 {}

mod sealed {
    /// How a number is brought into an instruction, and what the instruction does.
    pub trait Word: Copy + Ord {
        const SIGNED: bool;
        fn bits(self) -> u32;
        fn of(bits: u32) -> Self;
    }

    impl Word for u32 {
        const SIGNED: bool = false;
        #[inline(always)]
        fn bits(self) -> u32 {
            self
        }
        #[inline(always)]
        fn of(bits: u32) -> u32 {
            bits
        }
    }

    impl Word for i32 {
        const SIGNED: bool = true;
        #[inline(always)]
        fn bits(self) -> u32 {
            self as u32
        }
        #[inline(always)]
        fn of(bits: u32) -> i32 {
            bits as i32
        }
    }
}

impl Redux {
    /// The operation on two values, for architectures without the instruction.
    #[inline(always)]
    pub(super) fn apply<T: Word32>(self, a: T, b: T) -> T {
        match self {
            Redux::Add => T::of(a.bits().wrapping_add(b.bits())),
            Redux::Min => a.min(b),
            Redux::Max => a.max(b),
            Redux::And => T::of(a.bits() & b.bits()),
            Redux::Or => T::of(a.bits() | b.bits()),
            Redux::Xor => T::of(a.bits() ^ b.bits()),
        }
    }
}

/// Reductions and scans over a block. Like barriers, which they contain, they are `unsafe` by themselves,
/// and need no `unsafe` block in the body of a `#[kernel]`.
impl<const R: usize> Thread<'_, R> {
    /// The values of all threads of the block combined by `operation`, which must be associative; every
    /// thread gets the result (CUB's `BlockReduce`). `scratch` is a
    /// region for it alone, `mut scratch: Shared<Scratch<f32>>`, which may be used again and again.
    ///
    /// # Safety
    /// All threads of the block make this call together: no control flow on the way to it differs between
    /// them.
    #[track_caller]
    #[inline(always)]
    pub unsafe fn block_reduce<T: Exchange + SharedElement, const ID: usize>(
        &self,
        scratch: &mut Shared<'_, Scratch<T>, ID>,
        value: T,
        operation: impl Fn(T, T) -> T,
    ) -> T {
        let (total, warps) = (self.warp().reduce(value, &operation), self.block_threads().div_ceil(32));
        // SAFETY: the caller vouches that all threads come here together.
        unsafe { self.with_warp_totals(scratch, total, |totals| fold(totals, warps, &operation)) }
    }

    /// The values of this thread and those before it in the block combined by `operation`, which must be
    /// associative (CUB's `BlockScan`). `scratch` is a
    /// region for it alone, `mut scratch: Shared<Scratch<f32>>`, which may be used again and again.
    ///
    /// # Safety
    /// As for [`Thread::block_reduce`].
    #[track_caller]
    #[inline(always)]
    pub unsafe fn block_inclusive_scan<T: Exchange + SharedElement, const ID: usize>(
        &self,
        scratch: &mut Shared<'_, Scratch<T>, ID>,
        value: T,
        operation: impl Fn(T, T) -> T,
    ) -> T {
        let (warp, number) = (self.warp(), self.thread_rank() / 32);
        let mine = warp.inclusive_scan(value, &operation);
        let total = warp.shuffle(mine, warp.present() - 1);
        // SAFETY: the caller vouches that all threads come here together.
        unsafe {
            self.with_warp_totals(scratch, total, |totals| match number {
                0 => mine,
                _ => operation(fold(totals, number, &operation), mine),
            })
        }
    }

    /// The values of the threads before this one in the block combined by `operation`, which must be
    /// associative; `first` for the first thread (CUB's `BlockScan`). `scratch` is a
    /// region for it alone, `mut scratch: Shared<Scratch<f32>>`, which may be used again and again.
    ///
    /// # Safety
    /// As for [`Thread::block_reduce`].
    #[track_caller]
    #[inline(always)]
    pub unsafe fn block_exclusive_scan<T: Exchange + SharedElement, const ID: usize>(
        &self,
        scratch: &mut Shared<'_, Scratch<T>, ID>,
        value: T,
        first: T,
        operation: impl Fn(T, T) -> T,
    ) -> T {
        let (warp, number) = (self.warp(), self.thread_rank() / 32);
        let mine = warp.inclusive_scan(value, &operation);
        let (total, within) = (warp.shuffle(mine, warp.present() - 1), warp.shuffle_up(mine, 1));
        // SAFETY: the caller vouches that all threads come here together.
        unsafe {
            self.with_warp_totals(scratch, total, |totals| match (number, warp.lane()) {
                (0, 0) => first,
                (0, _) => within,
                (_, 0) => fold(totals, number, &operation),
                _ => operation(fold(totals, number, &operation), within),
            })
        }
    }

    /// What `read` makes of the values that the warps brought, by number of the warp.
    ///
    /// # Safety
    /// As for [`Thread::block_reduce`].
    #[track_caller]
    #[inline(always)]
    unsafe fn with_warp_totals<T: Exchange + SharedElement, U, const ID: usize>(
        &self,
        scratch: &mut Shared<'_, Scratch<T>, ID>,
        total: T,
        read: impl FnOnce(&[T; 32]) -> U,
    ) -> U {
        let (rank, region) = (self.thread_rank(), scratch.as_mut_ptr());
        if rank % 32 == 0 {
            // SAFETY: a block has at most 32 warps. Only this function writes such a region, the last call's
            // readers have passed its last barrier, and only this thread writes this place.
            unsafe { region.cast::<T>().add(rank as usize / 32).write(total) };
        }
        // SAFETY: as the caller vouches.
        unsafe { self.sync_threads() };
        // SAFETY: all writing ended at the barrier, and elements take any bits.
        let result = read(unsafe { &*region }.places());
        // SAFETY: as the caller vouches. Nobody goes on to write the region before all have read.
        unsafe { self.sync_threads() };
        result
    }
}

/// The first `count` (not 0) of the totals, combined in order.
#[inline(always)]
fn fold<T: Copy>(totals: &[T; 32], count: u32, operation: impl Fn(T, T) -> T) -> T {
    let mut result = totals[0];
    for &total in &totals[1..(count as usize).min(32)] {
        result = operation(result, total);
    }
    result
}
