//! Compile errors for outputs and written shared memory that a program indexes by a number: `y[i] = ..`,
//! `tile[i]`. A number does not say which thread owns the element, so these types implement [`Index`] for no
//! index, and the error explains what to write.

use core::convert::Infallible;
use core::ops::Index;

use crate::memory::disjoint::{DisjointChunks, DisjointRows, DisjointSlice, DisjointTiles};
use crate::shared::{Shared, SharedArray, SharedElement, SharedSlice};

/// An implementation of [`Index`] that no type of index satisfies: the compiler finds it, and its message
/// explains why.
macro_rules! never_indexed {
    (
        $(#[$hint:meta])*
        $place:ident;
        $(impl[$($generics:tt)*] $memory:ty => $output:ty;)*
    ) => {
        $(#[$hint])*
        pub trait $place {
            #[doc(hidden)]
            fn never(self) -> &'static Infallible;
        }

        $(
            #[doc(hidden)]
            impl<I: $place, $($generics)*> Index<I> for $memory {
                type Output = $output;

                fn index(&self, place: I) -> &$output {
                    match *place.never() {}
                }
            }
        )*
    };
}

never_indexed! {
    /// Nothing is one.
    #[diagnostic::on_unimplemented(
        message = "shared memory cannot be indexed while it is written",
        label = "readable by all threads only after `publish`",
        note = "shared memory is written or read, never both: write your own elements by `tile.fill_with(&t, |i| ..)`, `tile.iter_mut(&t)` or `tile.get_mut(&t)`; then `let tile = t.publish(tile);` gives what all threads may read, `tile[i]`"
    )]
    PlaceInWrittenMemory;
    impl[A: SharedArray + Index<usize>, const ID: usize] Shared<'_, A, ID> => <A as Index<usize>>::Output;
    impl[T: SharedElement, const ID: usize] SharedSlice<'_, T, ID> => T;
}

never_indexed! {
    /// Nothing is one.
    #[diagnostic::on_unimplemented(
        message = "a `DisjointSlice` cannot be indexed",
        label = "the element might be another thread's",
        note = "an element is reached by the index of its thread, `i` of `t.index()` or of `t.grid_stride(n)`: `if let Some(y) = y.get_mut(i) {{ *y = .. }}`"
    )]
    PlaceInDisjointSlice;
    impl[T, const R: usize] DisjointSlice<'_, T, R> => T;
}

never_indexed! {
    /// Nothing is one.
    #[diagnostic::on_unimplemented(
        message = "the row, chunk or tile of a block cannot be indexed",
        label = "the element might be another thread's",
        note = "each thread reaches its own elements of its block's row or tile: `rows.fill_with(&t, |place| ..)`, or `for (place, element) in rows.iter_mut(&t)`; for one result of each block, rows of one element: `buffer.view_2d_mut(1, blocks)?` at the launch, `rows.fill_with(&t, |_| result)` in the kernel"
    )]
    PlaceInDisjointRows;
    impl[T] DisjointRows<'_, T> => T;
    impl[T, const N: usize] DisjointChunks<'_, T, N> => T;
    impl[T, const W: usize, const H: usize] DisjointTiles<'_, T, W, H> => T;
}
