//! How a barrier changes the phase of regions: from written to read ([`Publish`]) and back ([`Reclaim`]).

use core::marker::PhantomData;

use super::{Published, PublishedSlice, Shared, SharedArray, SharedSlice};

/// The threads of the block read the regions: the barrier is `publish` or `reclaim`.
pub struct ByBlock;

/// The threads of all blocks of the cluster read the regions: the barrier is `publish_cluster` or
/// `reclaim_cluster`.
///
/// Elements must be [`ClusterElement`](crate::ClusterElement)s; atomics with block scope are not:
///
/// ```compile_fail,E0277
/// use ferrogrid_device::shared::{ByCluster, Publish};
/// use ferrogrid_device::{atomic, prelude::*};
///
/// fn is_published<P: Publish<ByCluster>>() {}
/// is_published::<Shared<[DeviceAtomic<u32>; 8]>>(); // for all threads of the device
/// is_published::<(Shared<[f32; 8]>, SharedSlice<f32, 1>)>();
/// is_published::<Shared<[DeviceAtomic<u32, atomic::Block>; 8]>>();
/// ```
///
/// A barrier of one block cannot reclaim what other blocks read:
///
/// ```compile_fail,E0277
/// use ferrogrid_device::ClusterPublished;
/// use ferrogrid_device::shared::{ByBlock, ByCluster, Reclaim};
///
/// fn is_taken_back_by<Readers, P: Reclaim<Readers>>() {}
/// is_taken_back_by::<ByCluster, ClusterPublished<[f32; 8]>>();
/// is_taken_back_by::<ByBlock, ClusterPublished<[f32; 8]>>();
/// ```
pub struct ByCluster;

/// Regions in the write phase, which a barrier makes readable: [`Shared`], [`SharedSlice`], and tuples.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// The product of two matrices of 8 by 8 elements: two regions, one barrier.
/// #[kernel(block = [8, 8])]
/// pub fn product(
///     t: Thread<2>, x: Plane<f32>, y: Plane<f32>, mut z: DisjointSlice<f32, 2>,
///     mut a: Shared<[[f32; 8]; 8]>, mut b: Shared<[[f32; 8]; 8]>,
/// ) {
///     a.fill_with(&t, |[row, column]| x[row][column]);
///     b.fill_with(&t, |[row, column]| y[row][column]);
///     let (a, b) = t.publish((a, b));
///     let [column, row] = t.thread_idx();
///     if let Some(z) = z.get_mut(t.index()) {
///         *z = (0..8).map(|k| a[row as usize][k] * b[k][column as usize]).sum();
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&(0..64).map(|i| i as f32).collect::<Vec<_>>())?;
/// let twice = stream.upload(&(0..64).map(|i| if i % 9 == 0 { 2.0 } else { 0.0 }).collect::<Vec<f32>>())?;
/// let mut z = stream.zeros(64)?;
/// let grid = Grid::new([1, 1], [8, 8]);
/// kernels::product(&stream, grid, x.view_2d(8, 8)?, twice.view_2d(8, 8)?, z.view_2d_mut(8, 8)?)?;
/// assert_eq!(stream.download(&z)?, (0..64).map(|i| 2.0 * i as f32).collect::<Vec<_>>());
/// # Ok(()) }
/// ```
pub trait Publish<Readers = ByBlock>: sealed::Region {
    /// The same regions in the read phase.
    type Published;

    #[doc(hidden)]
    fn published(self) -> Self::Published;
}

/// Regions in the read phase, which a barrier makes writable: [`Published`], [`PublishedSlice`], [`Retyped`],
/// and tuples; or [`ClusterPublished`](crate::ClusterPublished),
/// [`ClusterPublishedSlice`](crate::ClusterPublishedSlice), and tuples.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// In each round every element becomes the sum of the two beside its place in the other region. Both are written,
/// /// read, and written again, with two barriers for both.
/// #[kernel(block = 32)]
/// pub fn rounds(
///     t: Thread<1>, n: u32, mut y: DisjointSlice<u32>, mut a: Shared<[u32; 32]>, mut b: Shared<[u32; 32]>,
/// ) {
///     a.fill_with(&t, |place| u32::from(place == 0));
///     b.fill_with(&t, |place| u32::from(place == 1));
///     for _ in 0..n {
///         let read = t.publish((a, b));
///         let place = t.thread_rank() as usize;
///         let beside = |x: &[u32; 32]| x[(place + 31) % 32] + x[(place + 1) % 32];
///         let sums = [beside(&read.0), beside(&read.1)];
///         (a, b) = t.reclaim(read);
///         a.fill_with(&t, |_| sums[1]); // they swap
///         b.fill_with(&t, |_| sums[0]);
///     }
///     let (a, b) = t.publish((a, b));
///     if let Some(y) = y.get_mut(t.index()) {
///         *y = 10 * a[t.thread_rank() as usize] + b[t.thread_rank() as usize];
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let mut y = stream.zeros(32)?;
/// kernels::rounds(&stream, Grid::new(1, 32), 2, &mut y)?;
/// assert_eq!(stream.download(&y)?[..4], [20, 2, 10, 1]);
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be reclaimed by this barrier",
    label = "not a region of shared memory that `publish` returned",
    note = "`reclaim` takes what `publish` returned; other blocks read what `publish_cluster` returned, so `reclaim_cluster` takes that"
)]
pub trait Reclaim<Readers = ByBlock>: sealed::Region {
    /// The same regions in the write phase.
    type Reclaimed;

    #[doc(hidden)]
    fn reclaimed(self) -> Self::Reclaimed;
}

pub(crate) mod sealed {
    /// A region that takes part in a barrier; only types of this crate implement it.
    pub trait Region {
        /// Passes the address of each region to `visitor`.
        #[doc(hidden)]
        fn visit(&self, visitor: &mut impl FnMut(*const u8));

        /// What each thread does before the barrier.
        #[doc(hidden)]
        #[inline(always)]
        fn before_barrier(&self) {}
    }
}

/// A region in the read phase that becomes an array of another type when it is reclaimed; see
/// [`Published::retype`].
///
/// ```
/// use ferrogrid_device::shared::{Published, Retyped};
///
/// /// For bytes, when the numbers have been read.
/// fn for_bytes<const ID: usize>(numbers: Published<'_, [f32; 64], ID>) -> Retyped<'_, [u8; 256], ID> {
///     numbers.retype()
/// }
/// # let used: for<'b> fn(Published<'b, [f32; 64], 0>) -> Retyped<'b, [u8; 256], 0> = for_bytes;
/// # assert!(used as usize != 0);
/// ```
///
/// A larger array does not compile:
///
/// ```compile_fail,E0080
/// use ferrogrid_device::shared::{Published, Retyped};
///
/// fn for_doubles<const ID: usize>(numbers: Published<'_, [f32; 64], ID>) -> Retyped<'_, [f64; 64], ID> {
///     numbers.retype()
/// }
/// # let used: for<'b> fn(Published<'b, [f32; 64], 0>) -> Retyped<'b, [f64; 64], 0> = for_doubles;
/// # assert!(used as usize != 0);
/// ```
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

impl<A: SharedArray, const ID: usize> sealed::Region for Shared<'_, A, ID> {
    #[inline(always)]
    fn visit(&self, visitor: &mut impl FnMut(*const u8)) {
        visitor(self.start.cast_const().cast());
    }

    #[inline(always)]
    fn before_barrier(&self) {
        A::before_publish();
    }
}

impl<'b, A: SharedArray, const ID: usize> Publish for Shared<'b, A, ID> {
    type Published = Published<'b, A, ID>;

    #[inline(always)]
    fn published(self) -> Self::Published {
        Published { start: self.start, block: PhantomData }
    }
}

impl<A: SharedArray, const ID: usize> sealed::Region for Published<'_, A, ID> {
    #[inline(always)]
    fn visit(&self, visitor: &mut impl FnMut(*const u8)) {
        visitor(self.start.cast_const().cast());
    }

    #[inline(always)]
    fn before_barrier(&self) {
        A::before_reclaim();
    }
}

impl<'b, A: SharedArray, const ID: usize> Reclaim for Published<'b, A, ID> {
    type Reclaimed = Shared<'b, A, ID>;

    #[inline(always)]
    fn reclaimed(self) -> Self::Reclaimed {
        Shared { start: self.start, block: PhantomData }
    }
}

impl<A: SharedArray, const ID: usize> sealed::Region for Retyped<'_, A, ID> {
    #[inline(always)]
    fn visit(&self, visitor: &mut impl FnMut(*const u8)) {
        visitor(self.start.cast_const().cast());
    }
}

impl<'b, A: SharedArray, const ID: usize> Reclaim for Retyped<'b, A, ID> {
    type Reclaimed = Shared<'b, A, ID>;

    #[inline(always)]
    fn reclaimed(self) -> Self::Reclaimed {
        Shared { start: self.start, block: PhantomData }
    }
}

impl<T: 'static, const ID: usize> sealed::Region for SharedSlice<'_, T, ID> {
    #[inline(always)]
    fn visit(&self, visitor: &mut impl FnMut(*const u8)) {
        visitor(self.start.cast_const().cast());
    }
}

impl<'b, T: 'static, const ID: usize> Publish for SharedSlice<'b, T, ID> {
    type Published = PublishedSlice<'b, T, ID>;

    #[inline(always)]
    fn published(self) -> Self::Published {
        PublishedSlice { start: self.start, length: self.length, block: PhantomData }
    }
}

impl<T: 'static, const ID: usize> sealed::Region for PublishedSlice<'_, T, ID> {
    #[inline(always)]
    fn visit(&self, visitor: &mut impl FnMut(*const u8)) {
        visitor(self.start.cast_const().cast());
    }
}

impl<'b, T: 'static, const ID: usize> Reclaim for PublishedSlice<'b, T, ID> {
    type Reclaimed = SharedSlice<'b, T, ID>;

    #[inline(always)]
    fn reclaimed(self) -> Self::Reclaimed {
        SharedSlice { start: self.start, length: self.length, block: PhantomData }
    }
}

macro_rules! tuple {
    ($($region:ident)*) => {
        #[allow(non_snake_case)]
        impl<$($region: sealed::Region),*> sealed::Region for ($($region,)*) {
            #[inline(always)]
            fn visit(&self, visitor: &mut impl FnMut(*const u8)) {
                let ($($region,)*) = self;
                $($region.visit(visitor);)*
            }

            #[inline(always)]
            fn before_barrier(&self) {
                let ($($region,)*) = self;
                $($region.before_barrier();)*
            }
        }

        #[allow(non_snake_case)]
        impl<Readers, $($region: Publish<Readers>),*> Publish<Readers> for ($($region,)*) {
            type Published = ($($region::Published,)*);

            #[inline(always)]
            fn published(self) -> Self::Published {
                let ($($region,)*) = self;
                ($($region.published(),)*)
            }
        }

        #[allow(non_snake_case)]
        impl<Readers, $($region: Reclaim<Readers>),*> Reclaim<Readers> for ($($region,)*) {
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
