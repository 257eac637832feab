//! What shared memory may hold. It must not know where it lies.

use bytemuck::Pod;

use crate::aligned::Aligned16;
use crate::atomic::{AtomicValue, DeviceAtomic, Scope};
use crate::device_copy::DeviceCopy;

/// A type that may be the element of an array in shared memory: a number, a `#[repr(C)]` struct of them,
/// or a [`DeviceAtomic`], which threads change while all of them read the array.
///
/// Shared memory starts with arbitrary bits, so they must all be valid. For a type of your own derive
/// `bytemuck::{Pod, Zeroable}` and say `unsafe impl SharedElement for Mine {}`.
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
/// // SAFETY: two numbers, any bits of which are valid, without padding, and without interior mutability.
/// unsafe impl SharedElement for Complex {}
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
/// # Safety
/// Every pattern of bits must be a valid value, dropping it must do nothing, and sharing it among threads
/// of a block must be sound.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an element of shared memory",
    label = "not a `SharedElement`",
    note = "shared memory starts with arbitrary bits: elements are numbers, `Aligned16`, `DeviceAtomic`, or structs that are `bytemuck::Pod` and `SharedElement`"
)]
pub unsafe trait SharedElement: 'static {}

macro_rules! shared_element {
    ($($ty:ty),*) => { $(
        const _: () = plain::<$ty>();
        // SAFETY: it is `Pod`, and has no interior mutability.
        unsafe impl SharedElement for $ty {}
    )* };
}

const fn plain<T: Pod>() {}

shared_element!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64);

// SAFETY: transparent over a number, any bits of which are valid; shared changes are atomic.
unsafe impl<T: AtomicValue, S: Scope> SharedElement for DeviceAtomic<T, S> {}
// SAFETY: sixteen bytes of numbers.
unsafe impl<T: DeviceCopy + Pod> SharedElement for Aligned16<T> {}

macro_rules! core_atomics {
    ($($atomic:ident),*) => { $(
        // SAFETY: an integer, any bits of which are valid; shared changes are atomic.
        unsafe impl SharedElement for core::sync::atomic::$atomic {}
    )* };
}

core_atomics!(AtomicU32, AtomicI32, AtomicU64, AtomicI64);
