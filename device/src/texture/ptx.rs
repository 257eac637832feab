//! Texture instructions: `tex` of the unified mode, whose operand is the texture object.
//!
//! They depend on their operands alone, because no texture is written while a kernel reads it. So LLVM may
//! remove and move them. Integer coordinates (`tex.1d.v4.u32.s32`) are not used: with them an H200 returned 0
//! for an element of an array.

use core::arch::asm;

use super::element::Class;

/// `tex.GEOMETRY.v4.TYPE.f32`.
macro_rules! tex {
    ($geometry:literal, $ty:literal, $handle:ident, $operand:literal, $value:ty, [$($axis:ident = $place:expr),*]) => {{
        let (first, second, third, fourth): ($value, $value, $value, $value);
        // SAFETY: the caller of the function vouches for the texture.
        unsafe {
            asm!(
                concat!("tex.", $geometry, ".v4.", $ty, ".f32 {{{first}, {second}, {third}, {fourth}}}, [{handle}, {{", $operand, "}}];"),
                first = out(reg32) first,
                second = out(reg32) second,
                third = out(reg32) third,
                fourth = out(reg32) fourth,
                handle = in(reg64) $handle,
                $($axis = in(reg32) $place,)*
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        [first, second, third, fourth]
    }};
}

/// The same for each class of values; in registers without a type.
macro_rules! tex_of {
    ($class:ident, $geometry:literal, $handle:ident, $operand:literal, $places:tt) => {
        match $class {
            Class::Float => {
                let values: [f32; 4] = tex!($geometry, "f32", $handle, $operand, f32, $places);
                values.map(f32::to_bits)
            }
            Class::Signed => {
                tex!($geometry, "s32", $handle, $operand, u32, $places)
            }
            Class::Unsigned => {
                tex!($geometry, "u32", $handle, $operand, u32, $places)
            }
        }
    };
}

/// For each rank: what is at a place.
macro_rules! geometries {
    ($($sample:ident, $geometry:literal, $rank:literal, $operand:literal, [$($axis:ident = $number:literal),*];)*) => { $(
        /// # Safety
        /// `handle` is a texture object of this rank, whose values are of the class.
        #[inline(always)]
        pub(super) unsafe fn $sample(class: Class, handle: *const (), place: [f32; $rank]) -> [u32; 4] {
            tex_of!(class, $geometry, handle, $operand, [$($axis = place[$number]),*])
        }
    )* };
}

geometries! {
    sample_1d, "1d", 1, "{x}", [x = 0];
    sample_2d, "2d", 2, "{x}, {y}", [x = 0, y = 1];
    // The fourth coordinate is ignored.
    sample_3d, "3d", 3, "{x}, {y}, {z}, {z}", [x = 0, y = 1, z = 2];
}
