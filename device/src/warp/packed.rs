//! The bytes of a value that moves between lanes: its parts one after the other, padded only as far as parts
//! of four bytes and more must stay within words.

use core::num::Wrapping;

use super::shuffle::Exchange;

/// The layout of a value's parts.
#[doc(hidden)]
pub struct Packed;

impl Packed {
    /// The maximum size of an exchanged value, in bytes.
    pub(super) const MOST: usize = 16;

    /// The offset of a part of `bytes` bytes that follows `at` bytes.
    pub const fn begin(at: usize, bytes: usize) -> usize {
        match bytes {
            0 | 1 => at,
            2 => at.next_multiple_of(2),
            _ => at.next_multiple_of(4),
        }
    }

    /// The offset of part `part` of a value whose parts have these sizes.
    pub const fn place(parts: &[usize], part: usize) -> usize {
        let (mut end, mut before) = (0, 0);
        while before < part {
            end = Packed::begin(end, parts[before]) + parts[before];
            before += 1;
        }
        if part < parts.len() { Packed::begin(end, parts[part]) } else { end }
    }

    /// The size of a value with these parts.
    pub const fn bytes_of(parts: &[usize]) -> usize {
        Packed::place(parts, parts.len())
    }

    /// Whether parts of these sizes are contiguous, `size` bytes in all.
    pub const fn is_dense(parts: &[usize], size: usize) -> bool {
        let (mut sum, mut part) = (0, 0);
        while part < parts.len() {
            sum += parts[part];
            part += 1;
        }
        sum == size && Packed::bytes_of(parts) == size
    }
}

/// Numbers, and arrays of types that are exchanged as their bytes in memory.
macro_rules! as_in_memory {
    () => {
        #[inline(always)]
        unsafe fn put(self, to: *mut u8) {
            // SAFETY: there is room for it, by the contract of the trait.
            unsafe { to.cast::<Self>().write_unaligned(self) };
        }

        #[inline(always)]
        unsafe fn take(from: *const u8) -> Self {
            // SAFETY: so many bytes are there, and any are a value.
            unsafe { from.cast::<Self>().read_unaligned() }
        }
    };
}

macro_rules! numbers {
    ($($ty:ty),*) => { $(
        // SAFETY: its bytes in memory, any of which are a value.
        unsafe impl Exchange for $ty {
            const BYTES: usize = size_of::<$ty>();
            const PLAIN: bool = true;

            as_in_memory!();
        }
    )* };
}

numbers!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64);
numbers!(crate::narrow::tf32, crate::narrow::f8e4m3, crate::narrow::f8e5m2);
#[cfg(feature = "half")]
numbers!(crate::half::f16, crate::half::bf16, crate::half::F16x2, crate::half::Bf16x2);
// Those of a kernel that names the crate `half` itself.
#[cfg(all(feature = "half", target_arch = "nvptx64"))]
numbers!(::half::f16, ::half::bf16);

// SAFETY: writes and reads one byte.
unsafe impl Exchange for bool {
    const BYTES: usize = 1;

    #[inline(always)]
    unsafe fn put(self, to: *mut u8) {
        // SAFETY: the caller's.
        unsafe { u8::from(self).put(to) };
    }

    #[inline(always)]
    unsafe fn take(from: *const u8) -> Self {
        // SAFETY: the caller's.
        unsafe { u8::take(from) & 1 != 0 }
    }
}

// SAFETY: that of `T`.
unsafe impl<T: Exchange> Exchange for Wrapping<T> {
    const BYTES: usize = T::BYTES;
    const PLAIN: bool = T::PLAIN;

    #[inline(always)]
    unsafe fn put(self, to: *mut u8) {
        // SAFETY: the caller's.
        unsafe { self.0.put(to) };
    }

    #[inline(always)]
    unsafe fn take(from: *const u8) -> Self {
        // SAFETY: the caller's.
        unsafe { Wrapping(T::take(from)) }
    }
}

/// The distance between elements of an array.
const fn stride<T: Exchange>() -> usize {
    Packed::begin(T::BYTES, T::BYTES)
}

// SAFETY: elements are a stride apart, the last one ends at `BYTES`; plain ones are as in memory if the stride is.
unsafe impl<T: Exchange, const N: usize> Exchange for [T; N] {
    const BYTES: usize = match N {
        0 => 0,
        _ => (N - 1) * stride::<T>() + T::BYTES,
    };
    const PLAIN: bool = T::PLAIN && Self::BYTES == size_of::<Self>();

    #[inline(always)]
    #[expect(
        clippy::needless_range_loop,
        reason = "LLVM unrolls a loop over indices, but not one over an iterator"
    )]
    unsafe fn put(self, to: *mut u8) {
        // SAFETY: the caller's; element `k` ends within the array.
        unsafe {
            if Self::PLAIN {
                to.cast::<Self>().write_unaligned(self);
                return;
            }
            for k in 0..N {
                self[k].put(to.add(k * const { stride::<T>() }));
            }
        }
    }

    #[inline(always)]
    unsafe fn take(from: *const u8) -> Self {
        // SAFETY: the caller's; element `k` ends within the array, and of plain ones any bytes are a value.
        unsafe {
            if Self::PLAIN {
                return from.cast::<Self>().read_unaligned();
            }
            core::array::from_fn(|k| T::take(from.add(k * const { stride::<T>() })))
        }
    }
}

// SAFETY: the value, and behind it a byte that says whether there is one.
unsafe impl<T: Exchange> Exchange for Option<T> {
    const BYTES: usize = T::BYTES + 1;

    #[inline(always)]
    unsafe fn put(self, to: *mut u8) {
        // SAFETY: the caller's. Without a value its bytes stay as they are: there are some, since what is written to is
        // initialised.
        unsafe {
            self.is_some().put(to.add(T::BYTES));
            if let Some(value) = self {
                value.put(to);
            }
        }
    }

    #[inline(always)]
    unsafe fn take(from: *const u8) -> Self {
        // SAFETY: the caller's.
        unsafe { bool::take(from.add(T::BYTES)).then_some(T::take(from)) }
    }
}

/// The bytes of the parts of a value.
trait Parts {
    const PARTS: &'static [usize];
}

macro_rules! tuple {
    ($($member:ident $place:tt)*) => {
        impl<$($member: Exchange),*> Parts for ($($member,)*) {
            const PARTS: &'static [usize] = &[$($member::BYTES),*];
        }

        // SAFETY: its members, which do not overlap, up to `BYTES`.
        unsafe impl<$($member: Exchange),*> Exchange for ($($member,)*) {
            const BYTES: usize = Packed::bytes_of(Self::PARTS);

            #[inline(always)]
            unsafe fn put(self, to: *mut u8) {
                // SAFETY: the caller's.
                unsafe { $(self.$place.put(to.add(const { Packed::place(Self::PARTS, $place) }));)* }
            }

            #[inline(always)]
            unsafe fn take(from: *const u8) -> Self {
                // SAFETY: the caller's.
                unsafe { ($($member::take(from.add(const { Packed::place(Self::PARTS, $place) })),)*) }
            }
        }
    };
}

tuple!(A 0);
tuple!(A 0 B 1);
tuple!(A 0 B 1 C 2);
tuple!(A 0 B 1 C 2 D 3);
tuple!(A 0 B 1 C 2 D 3 E 4);
tuple!(A 0 B 1 C 2 D 3 E 4 F 5);
tuple!(A 0 B 1 C 2 D 3 E 4 F 5 G 6);
tuple!(A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7);

#[cfg(test)]
mod tests {
    use super::super::shuffle::{value, words};
    use super::*;

    #[track_caller]
    fn travels<T: Exchange + PartialEq + core::fmt::Debug>(sent: T, bytes: usize) {
        assert_eq!(T::BYTES, bytes, "{sent:?}");
        assert_eq!(words(sent).1, bytes.div_ceil(4), "{sent:?}");
        assert_eq!(value::<T>(words(sent).0), sent);
    }

    #[test]
    fn values_of_all_shapes_round_trip_through_words() {
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
        assert_eq!(words(([1.0_f32, 2.0], 0x55aa_u16)).0, [1.0_f32.to_bits(), 2.0_f32.to_bits(), 0x55aa, 0]);
    }

    #[test]
    fn plain_values_are_recognised() {
        const fn is_plain<T: Exchange>() -> bool {
            T::PLAIN
        }
        assert!(is_plain::<[[f32; 2]; 2]>() && is_plain::<[u8; 16]>() && is_plain::<[Wrapping<u16>; 3]>());
        assert!(!is_plain::<[[u8; 3]; 2]>(), "each begins at a word");
        assert!(!is_plain::<[bool; 2]>() && !is_plain::<(u32, u32)>());
        // As in memory, `{ [u8; 1], [u8; 3], u8, f32 }` has 12 bytes, at other offsets.
        assert!(!Packed::is_dense(&[1, 3, 1, 4], 12) && Packed::is_dense(&[4, 1, 1, 2], 8));
    }

    #[test]
    fn invalid_bits_become_a_value() {
        assert!(!value::<bool>([0xfe; 4]));
        assert_eq!(value::<Option<u8>>([0x0000_fe07, 0, 0, 0]), None);
    }
}
