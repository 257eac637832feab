//! What a barrier makes of regions of shared memory: written ones into read ones, and back. The barrier
//! itself is not its business.

use core::marker::PhantomData;

use super::element::SharedElement;
use super::{Published, PublishedSlice, Shared, SharedArray, SharedSlice};

/// Regions that are written, and that a barrier makes readable: [`Shared`], [`SharedSlice`], and tuples.
pub trait Publish: sealed::Region {
    /// The same regions, read.
    type Published;

    #[doc(hidden)]
    fn published(self) -> Self::Published;
}

/// Regions that are read, and that a barrier makes writable: [`Published`], [`PublishedSlice`],
/// [`Retyped`], and tuples.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not what `reclaim` turns back",
    label = "not a published region of shared memory",
    note = "`reclaim` takes what `publish` gave; what `publish_cluster` gave, other blocks read: `reclaim_cluster` takes that"
)]
pub trait Reclaim: sealed::Region {
    /// The same regions, written.
    type Reclaimed;

    #[doc(hidden)]
    fn reclaimed(self) -> Self::Reclaimed;
}

mod sealed {
    /// Only what this file names takes part in a barrier.
    pub trait Region {}
}

/// A region that is read, and becomes an array of another type when it is reclaimed; see
/// [`Published::retype`].
pub struct Retyped<'b, A: SharedArray, const ID: usize> {
    start: *mut A,
    block: PhantomData<&'b A>,
}

impl<A: SharedArray, const ID: usize> Retyped<'_, A, ID> {
    /// # Safety
    /// After the barrier of `reclaim`, `start` must be as `Shared::from_raw` asks.
    pub(super) unsafe fn new(start: *mut A) -> Self {
        Retyped { start, block: PhantomData }
    }
}

impl<A: SharedArray, const ID: usize> sealed::Region for Shared<'_, A, ID> {}
impl<'b, A: SharedArray, const ID: usize> Publish for Shared<'b, A, ID> {
    type Published = Published<'b, A, ID>;

    #[inline(always)]
    fn published(self) -> Self::Published {
        Published { start: self.start, block: PhantomData }
    }
}

impl<A: SharedArray, const ID: usize> sealed::Region for Published<'_, A, ID> {}
impl<'b, A: SharedArray, const ID: usize> Reclaim for Published<'b, A, ID> {
    type Reclaimed = Shared<'b, A, ID>;

    #[inline(always)]
    fn reclaimed(self) -> Self::Reclaimed {
        Shared { start: self.start, block: PhantomData }
    }
}

impl<A: SharedArray, const ID: usize> sealed::Region for Retyped<'_, A, ID> {}
impl<'b, A: SharedArray, const ID: usize> Reclaim for Retyped<'b, A, ID> {
    type Reclaimed = Shared<'b, A, ID>;

    #[inline(always)]
    fn reclaimed(self) -> Self::Reclaimed {
        Shared { start: self.start, block: PhantomData }
    }
}

impl<T: SharedElement, const ID: usize> sealed::Region for SharedSlice<'_, T, ID> {}
impl<'b, T: SharedElement, const ID: usize> Publish for SharedSlice<'b, T, ID> {
    type Published = PublishedSlice<'b, T, ID>;

    #[inline(always)]
    fn published(self) -> Self::Published {
        PublishedSlice { start: self.start, length: self.length, block: PhantomData }
    }
}

impl<T: SharedElement, const ID: usize> sealed::Region for PublishedSlice<'_, T, ID> {}
impl<'b, T: SharedElement, const ID: usize> Reclaim for PublishedSlice<'b, T, ID> {
    type Reclaimed = SharedSlice<'b, T, ID>;

    #[inline(always)]
    fn reclaimed(self) -> Self::Reclaimed {
        SharedSlice { start: self.start, length: self.length, block: PhantomData }
    }
}

macro_rules! tuple {
    ($($region:ident)*) => {
        impl<$($region: sealed::Region),*> sealed::Region for ($($region,)*) {}

        #[allow(non_snake_case)]
        impl<$($region: Publish),*> Publish for ($($region,)*) {
            type Published = ($($region::Published,)*);

            #[inline(always)]
            fn published(self) -> Self::Published {
                let ($($region,)*) = self;
                ($($region.published(),)*)
            }
        }

        #[allow(non_snake_case)]
        impl<$($region: Reclaim),*> Reclaim for ($($region,)*) {
            type Reclaimed = ($($region::Reclaimed,)*);

            #[inline(always)]
            fn reclaimed(self) -> Self::Reclaimed {
                let ($($region,)*) = self;
                ($($region.reclaimed(),)*)
            }
        }
    };
}

tuple!(A B);
tuple!(A B C);
tuple!(A B C D);
