//! Surface instructions: `suld.b` and `sust.b`, which move bytes.
//!
//! The first coordinate counts bytes, the others rows and layers.

use core::arch::asm;
use core::ptr;

use super::Mode;

/// The value whose bytes are the first ones of `words`.
///
/// # Safety
/// They are no more than `words` has, and those of a valid `T`.
#[inline(always)]
unsafe fn value<T, W>(words: W) -> T {
    // SAFETY: within `words`, and valid, as the caller vouches.
    unsafe { ptr::from_ref(&words).cast::<T>().read_unaligned() }
}

/// The first bytes of a value as words.
///
/// # Safety
/// The value has as many, all initialised, and any bytes are a `W`.
#[inline(always)]
unsafe fn words<T, W>(value: &T) -> W {
    // SAFETY: within the value, as the caller vouches.
    unsafe { ptr::from_ref(value).cast::<W>().read_unaligned() }
}

/// The bytes of one element: `$class` registers `$part`, as `$ty`.
macro_rules! load {
    ($geometry:literal, $mode:literal, $ty:literal, $class:ident, $word:ty, [$($part:ident),*], $parts:literal,
     $handle:ident, $operand:literal, [$($axis:ident = $place:expr),*]) => {{
        let ($($part,)*): ($(load!(@word $part $word),)*);
        asm!(
            concat!("suld.b.", $geometry, ".", $ty, ".", $mode, " {{", $parts, "}}, [{handle}, {{", $operand, "}}];"),
            $($part = out($class) $part,)*
            handle = in(reg64) $handle,
            $($axis = in(reg32) $place,)*
            options(readonly, nostack, preserves_flags),
        );
        [$($part),*]
    }};
    (@word $part:ident $word:ty) => { $word };
}

macro_rules! store {
    ($geometry:literal, $mode:literal, $ty:literal, $class:ident, [$($part:ident),*], $parts:literal, $words:expr,
     $handle:ident, $operand:literal, [$($axis:ident = $place:expr),*]) => {{
        let [$($part),*] = $words;
        asm!(
            concat!("sust.b.", $geometry, ".", $ty, ".", $mode, " [{handle}, {{", $operand, "}}], {{", $parts, "}};"),
            $($part = in($class) $part,)*
            handle = in(reg64) $handle,
            $($axis = in(reg32) $place,)*
            options(nostack, preserves_flags),
        );
    }};
}

/// The element at a place, of as many bytes as `T` has.
macro_rules! load_any {
    ($geometry:literal, $mode:literal, $($at:tt)*) => {
        match size_of::<T>() {
            1 => {
                let [word]: [u16; 1] =
                    load!($geometry, $mode, "b8", reg16, u16, [first], "{first}", $($at)*);
                value(word as u8)
            }
            2 => value::<T, [u16; 1]>(load!($geometry, $mode, "b16", reg16, u16, [first], "{first}", $($at)*)),
            4 => value::<T, [u32; 1]>(load!($geometry, $mode, "b32", reg32, u32, [first], "{first}", $($at)*)),
            8 => value::<T, [u32; 2]>(load!(
                $geometry, $mode, "v2.b32", reg32, u32, [first, second], "{first}, {second}", $($at)*
            )),
            _ => value::<T, [u32; 4]>(load!(
                $geometry, $mode, "v4.b32", reg32, u32, [first, second, third, fourth],
                "{first}, {second}, {third}, {fourth}", $($at)*
            )),
        }
    };
}

macro_rules! store_any {
    ($value:ident, $geometry:literal, $mode:literal, $($at:tt)*) => {
        match size_of::<T>() {
            1 => store!(
                $geometry, $mode, "b8", reg16, [first], "{first}", [u16::from(words::<T, u8>(&$value))], $($at)*
            ),
            2 => store!($geometry, $mode, "b16", reg16, [first], "{first}", words::<T, [u16; 1]>(&$value), $($at)*),
            4 => store!($geometry, $mode, "b32", reg32, [first], "{first}", words::<T, [u32; 1]>(&$value), $($at)*),
            8 => store!(
                $geometry, $mode, "v2.b32", reg32, [first, second], "{first}, {second}",
                words::<T, [u32; 2]>(&$value), $($at)*
            ),
            _ => store!(
                $geometry, $mode, "v4.b32", reg32, [first, second, third, fourth],
                "{first}, {second}, {third}, {fourth}", words::<T, [u32; 4]>(&$value), $($at)*
            ),
        }
    };
}

/// For each rank: a load and a store.
macro_rules! geometries {
    ($($load:ident, $store:ident, $geometry:literal, $rank:literal, $operand:literal, [$($axis:ident = $number:literal),*];)*) => { $(
        /// # Safety
        /// `handle` is a surface object of this rank, with elements of as many bytes as `T` has, all of whose
        /// bytes are one. No other thread writes the element meanwhile.
        #[inline(always)]
        pub(super) unsafe fn $load<T>(mode: Mode, handle: *const (), place: [i32; $rank]) -> T {
            // SAFETY: the caller vouches for the surface; in each branch as many bytes are read as `T` has.
            unsafe {
                match mode {
                    Mode::Zero => load_any!($geometry, "zero", handle, $operand, [$($axis = place[$number]),*]),
                    Mode::Clamp => load_any!($geometry, "clamp", handle, $operand, [$($axis = place[$number]),*]),
                    Mode::Trap => load_any!($geometry, "trap", handle, $operand, [$($axis = place[$number]),*]),
                }
            }
        }

        /// # Safety
        /// As above, and no other thread reads the element meanwhile. All bytes of the value are initialised.
        #[inline(always)]
        pub(super) unsafe fn $store<T>(mode: Mode, handle: *const (), place: [i32; $rank], value: T) {
            // SAFETY: as above.
            unsafe {
                match mode {
                    Mode::Zero => store_any!(value, $geometry, "zero", handle, $operand, [$($axis = place[$number]),*]),
                    Mode::Clamp => store_any!(value, $geometry, "clamp", handle, $operand, [$($axis = place[$number]),*]),
                    Mode::Trap => store_any!(value, $geometry, "trap", handle, $operand, [$($axis = place[$number]),*]),
                }
            }
        }
    )* };
}

geometries! {
    load_1d, store_1d, "1d", 1, "{x}", [x = 0];
    load_2d, store_2d, "2d", 2, "{x}, {y}", [x = 0, y = 1];
    // The fourth coordinate is ignored.
    load_3d, store_3d, "3d", 3, "{x}, {y}, {z}, {z}", [x = 0, y = 1, z = 2];
}
