//! [`BoxArray`]: the arrays that tensor maps copy.

use crate::shared::{ArrayElement, SharedArray};
use crate::thread::Thread;

/// The most axes that a tensor map has.
#[doc(hidden)]
pub const AXES: usize = 5;

/// An array of one to five axes that tensor maps copy, `[T; N]`, `[[T; W]; H]`, `[[[T; W]; H]; D]` and so on: a box of the elements of
/// a tensor, of two axes a tile.
pub trait BoxArray: SharedArray + sealed::BoxArray {
    /// The number of axes.
    const RANK: usize;
    /// The number of elements along each axis, the rows' first; 1 along axes that there are not.
    const EXTENT: [usize; AXES];
    /// Where in a tensor a box begins, before its first element, too: `isize`, `[row, column]`, `[layer, row, column]` and so on.
    type Corner: Copy;

    /// The corner along each axis, the rows' first.
    #[doc(hidden)]
    fn of_corner(corner: Self::Corner) -> [isize; AXES];

    /// A place along each axis, the rows' first.
    #[doc(hidden)]
    fn of_place(place: Self::Place) -> [usize; AXES];

    /// As [`SharedArray::own_place`].
    #[doc(hidden)]
    #[inline(always)]
    fn place_of_thread<const R: usize>(thread: &Thread<'_, R>, first: usize) -> Self::Place {
        Self::place(first + thread.thread_rank() as usize)
    }
}

mod sealed {
    pub trait BoxArray {}
}

/// Lengths or places with the innermost axis first, and `other` along axes that there are not.
#[inline(always)]
const fn inner_first<T: Copy, const R: usize>(outer_first: [T; R], other: T) -> [T; AXES] {
    let (mut all, mut axis) = ([other; AXES], 0);
    while axis < R {
        all[axis] = outer_first[R - 1 - axis];
        axis += 1;
    }
    all
}

macro_rules! arrays {
    ($($rank:literal, $array:ty, [$($length:ident)*], $place:ty, $corner:ty, |$at:ident| $axes:expr $(, $own:item)?;)*) => { $(
        impl<T: ArrayElement, $(const $length: usize),*> sealed::BoxArray for $array {}

        impl<T: ArrayElement, $(const $length: usize),*> BoxArray for $array {
            const RANK: usize = $rank;
            const EXTENT: [usize; AXES] = inner_first([$($length),*], 1);
            type Corner = $corner;

            #[inline(always)]
            fn of_corner($at: $corner) -> [isize; AXES] {
                inner_first($axes, 0)
            }

            #[inline(always)]
            fn of_place($at: $place) -> [usize; AXES] {
                inner_first($axes, 0)
            }

            $($own)?
        }
    )* };
}
arrays! {
    1, [T; N], [N], usize, isize, |at| [at];
    2, [[T; W]; H], [H W], [usize; 2], [isize; 2], |at| at,
        #[inline(always)]
        fn place_of_thread<const R: usize>(thread: &Thread<'_, R>, first: usize) -> [usize; 2] {
            thread.place_in_rows::<W>(first)
        };
    3, [[[T; W]; H]; D], [D H W], [usize; 3], [isize; 3], |at| at;
    4, [[[[T; W]; H]; D]; E], [E D H W], [usize; 4], [isize; 4], |at| at;
    5, [[[[[T; W]; H]; D]; E]; F], [F E D H W], [usize; 5], [isize; 5], |at| at;
}
