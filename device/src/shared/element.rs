//! What shared memory may hold: [`SharedElement`].

use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::num::Wrapping;

use bytemuck::Pod;

use crate::atomic::{AtomicLoadStore, DeviceAtomic, Scope};
use crate::element::aligned::Aligned16;
use crate::element::device_copy::DeviceCopy;

/// A type that may be the element of an array in shared memory: a number, a tuple of them, a struct with
/// `#[derive(DeviceCopy)]`, or a [`DeviceAtomic`], which threads change while all of them read the array.
///
/// Shared memory starts with arbitrary bits, so all of them must be valid: this excludes `bool`, `char`,
/// enums and `Option`. Store a number instead (`u8::from(flag)`), or a number beside the value. An array in
/// shared memory is not an element but a further dimension: each thread writes some of its numbers. To keep
/// an array together, wrap it: `struct Point([f32; 3]);`.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// #[derive(Clone, Copy, DeviceCopy)]
/// #[repr(C)]
/// pub struct Complex(pub f32, pub f32);
///
/// /// Each number times the next one of its block, whose last has the first for it.
/// #[kernel(block = 32)]
/// pub fn times_next(t: Thread<1>, mut x: DisjointSlice<Complex>, mut tile: Shared<[Complex; 32]>) {
///     let Complex(a, b) = x.get_mut(t.index()).map_or(Complex(0.0, 0.0), |x| *x);
///     tile.fill_with(&t, |_| Complex(a, b));
///     let Complex(c, d) = t.publish(tile)[(t.thread_rank() as usize + 1) % 32];
///     if let Some(x) = x.get_mut(t.index()) {
///         *x = Complex(a * c - b * d, a * d + b * c);
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let mut x = stream.upload(&[kernels::Complex(0.0, 2.0); 32])?;
/// kernels::times_next(&stream, Grid::cover(32), &mut x)?;
/// let kernels::Complex(re, im) = stream.download(&x)?[31];
/// assert_eq!((re, im), (-4.0, 0.0));
/// # Ok(()) }
/// ```
///
/// A struct of atomics, which cannot be `Copy`, derives `SharedElement` itself:
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use atomic::Ordering::Relaxed;
///
/// #[derive(SharedElement)]
/// pub struct Bin {
///     count: DeviceAtomic<u32>,
///     sum: DeviceAtomic<f32>,
/// }
///
/// /// Count and sum of the numbers below 10, below 20 and so on.
/// #[kernel(block = 64)]
/// pub fn bins(t: Thread<1>, x: &[f32], mut y: DisjointRows<[f32; 2]>, mut bins: Shared<[Bin; 4]>) {
///     bins.fill_with(&t, |_| Bin { count: DeviceAtomic::new(0), sum: DeviceAtomic::new(0.0) });
///     let bins = t.publish(bins);
///     if let Some(&x) = x.get(t.index().get()) {
///         let bin = &bins[(x / 10.0) as usize];
///         bin.count.fetch_add(1, Relaxed);
///         bin.sum.fetch_add(x, Relaxed);
///     }
///     t.sync_threads();
///     y.fill_with(&t, |k| [bins[k].count.load(Relaxed) as f32, bins[k].sum.load(Relaxed)]);
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&[1.0, 25.0, 2.0, 3.0, 26.0])?;
/// let mut y = stream.zeros(4)?;
/// kernels::bins(&stream, Grid::new(1, 64), &x, y.view_2d_mut(4, 1)?)?;
/// assert_eq!(stream.download(&y)?, [[3.0, 6.0], [0.0, 0.0], [2.0, 51.0], [0.0, 0.0]]);
/// # Ok(()) }
/// ```
///
/// # Safety
/// Every pattern of bits must be a valid value, dropping it must do nothing, and sharing it among threads
/// of a block must be sound.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an element of shared memory",
    label = "not a `SharedElement`",
    note = "shared memory starts with arbitrary bits: elements are numbers, `Aligned16`, `DeviceAtomic`, tuples of them, and structs with `#[derive(DeviceCopy)]` or `#[derive(SharedElement)]` whose fields are such; for a `bool`, `char`, enum or `Option` keep a number"
)]
pub unsafe trait SharedElement: AnyBits {}

/// A type for which all bits are valid: the type of the fields of a [`SharedElement`], arrays among them.
///
/// `#[derive(DeviceCopy)]` and `#[derive(SharedElement)]` implement it where it holds for all fields.
///
/// # Safety
/// As for [`SharedElement`].
#[diagnostic::on_unimplemented(
    message = "not all bits are a value of `{Self}`",
    label = "has bits that are no value",
    note = "shared memory starts with arbitrary bits: for a `bool`, `char`, enum or `Option` keep a number there",
    note = "an `Option` of it, which is `None` by such bits, is written `#[derive(Clone, Copy, DeviceCopy)] #[repr(C)] enum Maybe {{ Nothing, Just(Value) }}`"
)]
pub unsafe trait AnyBits: 'static {}

macro_rules! shared_element {
    ($($ty:ty),*) => { $(
        const _: () = plain::<$ty>();
        // SAFETY: it is `Pod`, and has no interior mutability.
        unsafe impl AnyBits for $ty {}
        // SAFETY: as above.
        unsafe impl SharedElement for $ty {}
    )* };
}

const fn plain<T: Pod>() {}

shared_element!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64);

// SAFETY: transparent over a number, any bits of which are valid; shared changes are atomic.
unsafe impl<T: AtomicLoadStore, S: Scope> AnyBits for DeviceAtomic<T, S> {}
// SAFETY: as above.
unsafe impl<T: AtomicLoadStore, S: Scope> SharedElement for DeviceAtomic<T, S> {}
// SAFETY: sixteen bytes of numbers.
unsafe impl<T: DeviceCopy + Pod> AnyBits for Aligned16<T> {}
// SAFETY: as above.
unsafe impl<T: DeviceCopy + Pod> SharedElement for Aligned16<T> {}
// SAFETY: its elements, one after the other.
unsafe impl<T: AnyBits, const N: usize> AnyBits for [T; N] {}
// SAFETY: transparent over `T`.
unsafe impl<T: AnyBits> AnyBits for Wrapping<T> {}
// SAFETY: transparent over `T`.
unsafe impl<T: SharedElement> SharedElement for Wrapping<T> {}
// SAFETY: any bits, and none at all, are a value; what is `Copy` has no interior mutability.
unsafe impl<T: Copy + Send + Sync + 'static> AnyBits for MaybeUninit<T> {}
// SAFETY: has no bytes; the bounds keep its type's `Send` and `Sync`.
unsafe impl<T: Send + Sync + 'static> AnyBits for PhantomData<T> {}
// SAFETY: has no bytes.
unsafe impl AnyBits for () {}

macro_rules! tuple {
    ($($member:ident)*) => {
        // SAFETY: nothing but its members, in whatever order: one compiler laid it out for all threads that see it.
        unsafe impl<$($member: AnyBits),*> AnyBits for ($($member,)*) {}
        // SAFETY: as above.
        unsafe impl<$($member: AnyBits),*> SharedElement for ($($member,)*) {}
    };
}

tuple!(A);
tuple!(A B);
tuple!(A B C);
tuple!(A B C D);
tuple!(A B C D E);
tuple!(A B C D E F);
tuple!(A B C D E F G);
tuple!(A B C D E F G H);

macro_rules! core_atomics {
    ($($atomic:ident),*) => { $(
        // SAFETY: an integer, any bits of which are valid; shared changes are atomic.
        unsafe impl AnyBits for core::sync::atomic::$atomic {}
        // SAFETY: as above.
        unsafe impl SharedElement for core::sync::atomic::$atomic {}
    )* };
}

core_atomics!(AtomicU32, AtomicI32, AtomicU64, AtomicI64);
