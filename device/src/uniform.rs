//! Assertions that generated code makes of the values that a barrier depends on: that they are plain
//! numbers, so that their operators are the language's and cannot tell threads apart. It must not know
//! what depends on them.

/// A number, or a few, whose value says all there is.
#[diagnostic::on_unimplemented(
    message = "a barrier depends on this value, and `{Self}` is not a plain number",
    label = "expected an integer, a float, a `bool`, a `char`, or an array of them",
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

/// `value`, which rests on `_leaf`.
#[doc(hidden)]
#[inline(always)]
pub fn checked<L: UniformScalar + ?Sized, T>(_leaf: &L, value: T) -> T {
    value
}
