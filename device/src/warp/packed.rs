//! The bytes of a value that travels from lane to lane: its parts one after the other, without padding but what keeps
//! parts of four bytes and more within words.

use core::num::Wrapping;

use super::shuffle::{Exchange, Four};

/// The bytes of one value, and how far it was written or read.
#[doc(hidden)]
#[derive(Default)]
pub struct Packed {
    bytes: [u8; Packed::MOST],
    at: usize,
}

impl Packed {
    pub(super) const MOST: usize = size_of::<Four>();

    #[inline(always)]
    pub(super) fn of(words: Four) -> Self {
        let mut packed = Packed::default();
        for (at, word) in words.into_iter().enumerate() {
            packed.bytes[4 * at..4 * at + 4].copy_from_slice(&word.to_le_bytes());
        }
        packed
    }

    #[inline(always)]
    pub(super) fn words(&self) -> Four {
        core::array::from_fn(|at| u32::from_le_bytes([0, 1, 2, 3].map(|byte| self.bytes[4 * at + byte])))
    }

    /// Where a part of `bytes` bytes begins that comes after `at` bytes.
    #[inline(always)]
    pub const fn begin(at: usize, bytes: usize) -> usize {
        match bytes {
            0 | 1 => at,
            2 => at.next_multiple_of(2),
            _ => at.next_multiple_of(4),
        }
    }

    /// The bytes of a value of these parts.
    pub const fn bytes_of(parts: &[usize]) -> usize {
        let (mut end, mut part) = (0, 0);
        while part < parts.len() {
            end = Packed::begin(end, parts[part]) + parts[part];
            part += 1;
        }
        end
    }

    /// Goes on to where a part of `bytes` bytes begins.
    #[inline(always)]
    pub fn align(&mut self, bytes: usize) {
        self.at = Packed::begin(self.at, bytes);
    }

    #[inline(always)]
    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        self.align(N);
        self.bytes[self.at..self.at + N].copy_from_slice(&bytes);
        self.at += N;
    }

    #[inline(always)]
    fn take<const N: usize>(&mut self) -> [u8; N] {
        self.align(N);
        let bytes = core::array::from_fn(|at| self.bytes[self.at + at]);
        self.at += N;
        bytes
    }
}

macro_rules! numbers {
    ($($ty:ty),*) => { $(
        impl Exchange for $ty {
            const BYTES: usize = size_of::<$ty>();

            #[inline(always)]
            fn put(self, to: &mut Packed) {
                to.put(self.to_le_bytes());
            }

            #[inline(always)]
            fn take(from: &mut Packed) -> Self {
                <$ty>::from_le_bytes(from.take())
            }
        }
    )* };
}

numbers!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64);

/// Types that travel as a number.
macro_rules! as_number {
    ($([$($generics:tt)*] $ty:ty as $number:ty, $into:expr, $of:expr;)*) => { $(
        impl<$($generics)*> Exchange for $ty {
            const BYTES: usize = <$number>::BYTES;

            #[inline(always)]
            fn put(self, to: &mut Packed) {
                $into(self).put(to);
            }

            #[inline(always)]
            fn take(from: &mut Packed) -> Self {
                $of(<$number>::take(from))
            }
        }
    )* };
}

as_number! {
    [] bool as u8, u8::from, |byte: u8| byte & 1 != 0;
    [T: Exchange] Wrapping<T> as T, |Wrapping(value)| value, Wrapping;
}

#[cfg(feature = "half")]
as_number! {
    [] crate::half::f16 as u16, crate::half::f16::to_bits, crate::half::f16::from_bits;
    [] crate::half::bf16 as u16, crate::half::bf16::to_bits, crate::half::bf16::from_bits;
    [] crate::half::F16x2 as u32, crate::half::F16x2::to_bits, crate::half::F16x2::from_bits;
    [] crate::half::Bf16x2 as u32, crate::half::Bf16x2::to_bits, crate::half::Bf16x2::from_bits;
}
// Those of a kernel that names the crate `half` itself.
#[cfg(all(feature = "half", target_arch = "nvptx64"))]
as_number! {
    [] ::half::f16 as u16, ::half::f16::to_bits, ::half::f16::from_bits;
    [] ::half::bf16 as u16, ::half::bf16::to_bits, ::half::bf16::from_bits;
}

impl<T: Exchange, const N: usize> Exchange for [T; N] {
    const BYTES: usize = match N {
        0 => 0,
        _ => (N - 1) * Packed::begin(T::BYTES, T::BYTES) + T::BYTES,
    };

    #[inline(always)]
    fn put(self, to: &mut Packed) {
        to.align(Self::BYTES);
        self.into_iter().for_each(|element| element.put(to));
    }

    #[inline(always)]
    fn take(from: &mut Packed) -> Self {
        from.align(Self::BYTES);
        core::array::from_fn(|_| T::take(from))
    }
}

impl<T: Exchange> Exchange for Option<T> {
    const BYTES: usize = T::BYTES + 1;

    #[inline(always)]
    fn put(self, to: &mut Packed) {
        to.align(Self::BYTES);
        let (value, is_some) = match self {
            Some(value) => (value, true),
            None => (T::take(&mut Packed::default()), false),
        };
        value.put(to);
        is_some.put(to);
    }

    #[inline(always)]
    fn take(from: &mut Packed) -> Self {
        from.align(Self::BYTES);
        let value = T::take(from);
        bool::take(from).then_some(value)
    }
}

macro_rules! tuple {
    ($($member:ident)*) => {
        #[allow(non_snake_case)]
        impl<$($member: Exchange),*> Exchange for ($($member,)*) {
            const BYTES: usize = Packed::bytes_of(&[$($member::BYTES),*]);

            #[inline(always)]
            fn put(self, to: &mut Packed) {
                let ($($member,)*) = self;
                to.align(Self::BYTES);
                $($member.put(to);)*
            }

            #[inline(always)]
            fn take(from: &mut Packed) -> Self {
                from.align(Self::BYTES);
                ($($member::take(from),)*)
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn travels<T: Exchange + PartialEq + core::fmt::Debug>(value: T, bytes: usize) {
        assert_eq!(T::BYTES, bytes, "{value:?}");
        let mut packed = Packed::default();
        value.put(&mut packed);
        assert_eq!(packed.at, bytes, "{value:?}");
        assert_eq!(T::take(&mut Packed::of(packed.words())), value);
    }

    #[test]
    fn values_of_all_shapes_come_back_from_their_words() {
        travels(0x0102_0304_u32, 4);
        travels(f64::MIN_POSITIVE, 8);
        travels(i128::MIN + 7, 16);
        travels(true, 1);
        travels([1_u8, 2, 3], 3);
        travels([(1_u8, 2_u16), (3, 4)], 8);
        travels([[1_u8, 2, 3], [4, 5, 6]], 7);
        travels((1_u8, (2_u8, 3_u16), 4_u8, 5_f32), 16);
        travels((Some(7_u8), None::<f32>, Some(Some(-1_i16))), 16);
        travels([0_u64; 0], 0);
        travels(Wrapping(9_u16), 2);
    }

    #[test]
    fn words_hold_a_value_as_memory_does() {
        let mut packed = Packed::default();
        [1.0_f32, 2.0].put(&mut packed);
        0x55aa_u16.put(&mut packed);
        assert_eq!(packed.words(), [1.0_f32.to_bits(), 2.0_f32.to_bits(), 0x55aa, 0]);
    }

    #[test]
    fn bits_that_are_no_value_become_one() {
        assert!(!bool::take(&mut Packed::of([0xfe; 4])));
        assert_eq!(<Option<u8> as Exchange>::take(&mut Packed::of([0x0000_fe07; 4])), None);
    }
}
