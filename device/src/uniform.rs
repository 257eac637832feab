//! What generated code says of barriers: that the values that one depends on are plain numbers, whose operators
//! are the language's and cannot tell threads apart; and that all threads come to it together. It must not know how
//! either was found out.

use crate::exchange::ExchangeScratch;
use crate::shared::{ByCluster, Publish, Reclaim, Scratch, Shared, SharedArray, SharedElement};
use crate::sort::{RadixKey, RadixOrder, SortScratch};
use crate::thread::Thread;
use crate::warp::Exchange;

/// A number, or a few, whose value says all there is.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// Halves, `rounds` times, the distances to the mean of a block's elements: the loop is the same in all threads.
/// #[kernel(block = 4)]
/// pub fn towards_mean(t: Thread<1>, rounds: u32, mut x: DisjointSlice<f32>, mut scratch: Shared<Scratch<f32>>) {
///     let mut mine = x.get_mut(t.index()).map_or(0.0, |x| *x);
///     for _ in 0..rounds {
///         let mean = t.block_reduce(&mut scratch, mine, |a, b| a + b) / 4.0;
///         mine = (mine + mean) / 2.0;
///     }
///     if let Some(x) = x.get_mut(t.index()) {
///         *x = mine;
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let mut x = stream.upload(&[1.0, 1.0, 5.0, 5.0])?;
/// kernels::towards_mean(&stream, Grid::cover(4), 2, &mut x)?;
/// assert_eq!(stream.download(&x)?, [2.5, 2.5, 3.5, 3.5]);
/// # Ok(()) }
/// ```
///
/// Of a struct's operators nothing is known:
///
/// ```compile_fail,E0277
/// #[ferrogrid::module(host_only)]
/// mod kernels {
///     use ferrogrid::device::prelude::*;
///
///     #[derive(Clone, Copy, PartialEq, DeviceCopy)]
///     #[repr(C)]
///     pub struct Mode(u32);
///
///     #[kernel]
///     pub fn by_mode(t: Thread<1>, mode: Mode, other: Mode) {
///         if mode == other {
///             t.sync_threads();
///         }
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "a barrier depends on this value, and `{Self}` is not a plain number",
    label = "expected an integer, a float, a `bool`, a `char`, or an array or a tuple of them",
    note = "threads of a block must agree on the way to a barrier; take the number out of the value before the kernel, or pass it as a parameter of its own"
)]
pub trait UniformScalar {}

macro_rules! uniform_scalar {
    ($($ty:ty),*) => { $(impl UniformScalar for $ty {})* };
}

uniform_scalar!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64, bool, char);

impl<T: UniformScalar, const N: usize> UniformScalar for [T; N] {}
// What cannot change while it is borrowed: a constant.
impl<T: UniformScalar> UniformScalar for &T {}
impl<T: UniformScalar> UniformScalar for core::ops::Range<T> {}
impl<T: UniformScalar> UniformScalar for core::ops::RangeInclusive<T> {}

macro_rules! uniform_tuple {
    ($($first:ident $($member:ident)*;)*) => { $(
        impl<$first: UniformScalar, $($member: UniformScalar),*> UniformScalar for ($first, $($member,)*) {}
    )* };
}

uniform_tuple! { A; A B; A B C; A B C D; A B C D E; A B C D E F; A B C D E F G; A B C D E F G H; }

/// `value`, which rests on `_leaf`.
#[doc(hidden)]
#[inline(always)]
pub fn checked<L: UniformScalar + ?Sized, T>(_leaf: &L, value: T) -> T {
    value
}

/// That all threads which a call waits for make it together.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Shown(());

impl Shown {
    /// # Safety
    /// It goes into a [`Together`] whose next use is one call, which all threads make together that the call waits
    /// for.
    #[inline(always)]
    pub const unsafe fn new() -> Self {
        Shown(())
    }
}

/// A `&Thread` for one call that all threads make together that the call waits for: its barriers are safe.
#[doc(hidden)]
pub struct Together<T>(T);

impl<T> Together<T> {
    /// The thread, of which no more is known.
    #[inline(always)]
    pub fn thread(self) -> T {
        self.0
    }
}

impl<'a, 't, const R: usize> Together<&'a Thread<'t, R>> {
    /// As `_shown` says.
    #[inline(always)]
    pub fn new(thread: &'a Thread<'t, R>, _shown: Shown) -> Self {
        Together(thread)
    }
}

macro_rules! barriers {
    ($(fn $name:ident $(<$($bound:ident: $trait:ident $(<$readers:ident>)? $(+ $more:ident)?),* $(; const $($id:ident),*)?>)? ($($argument:ident: $ty:ty),*) $(-> $result:ty)?;)*) => {
        impl<const R: usize> Together<&Thread<'_, R>> { $(
            #[track_caller]
            #[inline(always)]
            pub fn $name $(<$($bound: $trait $(<$readers>)? $(+ $more)?,)* $($(const $id: usize),*)?>)? (self, $($argument: $ty),*) $(-> $result)? {
                // SAFETY: all threads make the call together: for that `self` stands.
                unsafe { self.0.$name($($argument),*) }
            }
        )* }
    };
}

barriers! {
    fn sync_threads();
    fn sync_threads_count(predicate: bool) -> u32;
    fn sync_threads_and(predicate: bool) -> bool;
    fn sync_threads_or(predicate: bool) -> bool;
    fn publish<P: Publish>(regions: P) -> P::Published;
    fn reclaim<P: Reclaim>(regions: P) -> P::Reclaimed;
    fn publish_and_reclaim<P: Publish, Q: Reclaim>(written: P, read: Q) -> (P::Published, Q::Reclaimed);
    fn with_published<A: SharedArray, U: Sized; const ID>(region: &mut Shared<'_, A, ID>, read: impl FnOnce(&A) -> U) -> U;
    fn block_reduce<T: Exchange + SharedElement; const ID>(scratch: &mut Shared<'_, Scratch<T>, ID>, value: T, operation: impl Fn(T, T) -> T) -> T;
    fn block_inclusive_scan<T: Exchange + SharedElement; const ID>(scratch: &mut Shared<'_, Scratch<T>, ID>, value: T, operation: impl Fn(T, T) -> T) -> T;
    fn block_exclusive_scan<T: Exchange + SharedElement; const ID>(scratch: &mut Shared<'_, Scratch<T>, ID>, value: T, first: T, operation: impl Fn(T, T) -> T) -> T;
    fn block_blocked_to_striped<T: SharedElement + Copy; const ID, B, N>(scratch: &mut Shared<'_, ExchangeScratch<T, B, N>, ID>, items: [T; N]) -> [T; N];
    fn block_striped_to_blocked<T: SharedElement + Copy; const ID, B, N>(scratch: &mut Shared<'_, ExchangeScratch<T, B, N>, ID>, items: [T; N]) -> [T; N];
    fn block_scatter_to_blocked<T: SharedElement + Copy; const ID, B, N>(scratch: &mut Shared<'_, ExchangeScratch<T, B, N>, ID>, items: [T; N], ranks: [u32; N]) -> [T; N];
    fn block_scatter_to_striped<T: SharedElement + Copy; const ID, B, N>(scratch: &mut Shared<'_, ExchangeScratch<T, B, N>, ID>, items: [T; N], ranks: [u32; N]) -> [T; N];
    fn block_radix_sort<K: RadixKey, V: SharedElement + Copy, O: RadixOrder; const ID, B, N>(scratch: &mut Shared<'_, SortScratch<K, B, N, V>, ID>, keys: [K; N], order: O) -> [K; N];
    fn block_radix_sort_to_striped<K: RadixKey, V: SharedElement + Copy, O: RadixOrder; const ID, B, N>(scratch: &mut Shared<'_, SortScratch<K, B, N, V>, ID>, keys: [K; N], order: O) -> [K; N];
    fn block_radix_sort_pairs<K: RadixKey, V: SharedElement + Copy, O: RadixOrder; const ID, B, N>(scratch: &mut Shared<'_, SortScratch<K, B, N, V>, ID>, keys: [K; N], values: [V; N], order: O) -> ([K; N], [V; N]);
    fn block_radix_sort_pairs_to_striped<K: RadixKey, V: SharedElement + Copy, O: RadixOrder; const ID, B, N>(scratch: &mut Shared<'_, SortScratch<K, B, N, V>, ID>, keys: [K; N], values: [V; N], order: O) -> ([K; N], [V; N]);
    fn sync_cluster();
    fn publish_cluster<P: Publish<ByCluster> >(regions: P) -> P::Published;
    fn reclaim_cluster<P: Reclaim<ByCluster> >(regions: P) -> P::Reclaimed;
    fn sync_grid();
}
