//! A hash of a type's layout. Both compilations of a module compute it by the same rule, so the build notices
//! fields that differ where sizes do not.

#[doc(hidden)]
pub use ferrogrid_abi::layout::{of_array, of_atomic, of_type};

/// The number of padding bytes of a struct.
#[doc(hidden)]
pub struct Padding<const BYTES: usize>;

/// Implemented for structs without padding.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a struct with padding has bytes without a value: `{Self}`",
    label = "has padding",
    note = "make the padding a field, such as `padding: [u8; 3]`; the derive of `DeviceCopy` implements `bytemuck::Pod` then"
)]
pub trait NoPadding {}

impl NoPadding for Padding<0> {}

/// The variants of an enum: `NONZERO` is 0 if one of them has the number 0.
#[doc(hidden)]
pub struct Variants<const NONZERO: u8>;

/// Implemented for enums with a variant whose number is 0.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "an enum without a variant that is 0 cannot be zeroed",
    label = "0 is no variant",
    note = "give a variant the number 0, or fill the memory with a value: `stream.fill(value, len)`"
)]
pub trait WithZero {}

impl WithZero for Variants<0> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeviceCopy;

    #[test]
    fn names_order_and_types_of_fields_count() {
        let base = of_type("P", &[("x", 1), ("y", 2)]);
        for other in [
            of_type("P", &[("y", 1), ("x", 2)]),
            of_type("P", &[("x", 2), ("y", 1)]),
            of_type("P", &[("x", 1)]),
            of_type("P", &[("xy", 1), ("", 2)]),
            of_type("Px", &[("", 1), ("y", 2)]),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn numbers_of_the_same_size_differ() {
        assert_ne!(<u32 as DeviceCopy>::LAYOUT, <f32 as DeviceCopy>::LAYOUT);
        assert_ne!(<[u32; 2] as DeviceCopy>::LAYOUT, <[u32; 3] as DeviceCopy>::LAYOUT);
    }
}
