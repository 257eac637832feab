//! Movement of elements: by indices, in another order, along other axes. Kernels move unsigned integers of the elements' size.
//!
//! `indexed` has `gather` and `scatter`, `sequences` what treats elements in a row, and `axes` permutations of axes.

pub(crate) mod axes;
mod indexed;
mod sequences;

pub use axes::{permute, transpose};
pub use indexed::{PlaceNumber, gather, scatter};
pub use sequences::{Differing, adjacent_difference, reverse, roll, sequence};

/// Fails to compile unless elements have 1, 2, 4, 8 or 16 bytes, and no more than `most`.
const fn assert_movable<T>(most: usize) {
    let size = size_of::<T>();
    assert!(
        size.is_power_of_two() && size <= most,
        "elements have 1, 2, 4 or 8 bytes, and for some functions 16"
    );
}

/// Calls a generic function with the unsigned integer that has the size of the elements, one of those listed.
macro_rules! by_size {
    ($element:ty as $($size:literal: $bits:ident),*; $function:ident $arguments:tt) => {
        match size_of::<$element>() {
            $($size => $function::<$bits> $arguments,)*
            size => unreachable!("elements of {size} bytes"),
        }
    };
}
pub(crate) use by_size;

/// Device code for kernels whose threads have several elements each.
#[ferrogrid::module]
pub mod striped {
    use ferrogrid::device::prelude::*;

    /// The threads of a block.
    pub const THREADS: usize = 256;
    /// The elements of a thread: enough loads in flight to hide their latency.
    pub const ROWS: usize = 8;
    /// The consecutive elements of a warp.
    pub const RUN: usize = 32 * ROWS;
    /// The elements of a block.
    pub const TILE: usize = THREADS * ROWS;

    /// What `item` makes of the places of the thread's elements. `first` is that of its warp's. LLVM would not unroll a loop over
    /// a long function, and its items would go to memory.
    #[inline(always)]
    pub fn each<T>(t: &Thread<'_, 1>, first: usize, item: impl Fn(usize) -> T) -> [T; ROWS] {
        let own = first + t.thread_rank() as usize % 32;
        let row = |row: usize| item(own + 32 * row);
        [row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7)]
    }

    /// The element at `place`; the default where there is none. The load has a predicate, and others may pass it.
    #[inline(always)]
    pub fn load<T: Copy + Default>(x: &[T], place: usize) -> T {
        x.get(place).copied().unwrap_or(T::default())
    }
}
