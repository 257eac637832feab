//! Values as Rust formats them, for the test of messages of panics in Python, which has to format them in the same way.

use serde_json::{Value, json};

/// Formats a value by a format string, and describes both as device code does: the name of the type, the trait, the bytes,
/// the flags of `core::fmt`, the width and the precision.
macro_rules! case {
    ($cases:ident, $ty:ident, $value:expr, $of_trait:literal, $format:literal, $flags:expr, $width:expr, $precision:expr) => {{
        let value: $ty = $value;
        let data: String = value.to_le_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let expected = format!($format, value);
        $cases.push(json!([stringify!($ty), $of_trait, data, $flags as u64, $width, $precision, expected]));
    }};
}

/// No fill but a space, and no alignment.
const PLAIN: u32 = 3 << 29 | 0x20;
const PLUS: u32 = PLAIN | 1 << 21;
const ALTERNATE: u32 = PLAIN | 1 << 23;
const ZEROS: u32 = PLAIN | 1 << 24;
/// Centred, filled with stars.
const STARS: u32 = 2 << 29 | 0x2a;
const NONE: Option<u32> = None;

macro_rules! integers {
    ($cases:ident: $($ty:ident)*) => { $(
        for value in [0, 1, 42, 100, $ty::MAX, $ty::MIN, $ty::MAX / 3] {
            case!($cases, $ty, value, "Display", "{}", PLAIN, 0, NONE);
            case!($cases, $ty, value, "Display", "{:+}", PLUS, 0, NONE);
            case!($cases, $ty, value, "Display", "{:012}", ZEROS, 12, NONE);
            case!($cases, $ty, value, "Debug", "{:?}", PLAIN, 0, NONE);
            case!($cases, $ty, value, "LowerHex", "{:#x}", ALTERNATE, 0, NONE);
            case!($cases, $ty, value, "UpperHex", "{:X}", PLAIN, 0, NONE);
            case!($cases, $ty, value, "Binary", "{:b}", PLAIN, 0, NONE);
            case!($cases, $ty, value, "Octal", "{:*^9o}", STARS, 9, NONE);
            case!($cases, $ty, value, "LowerExp", "{:e}", PLAIN, 0, NONE);
        }
    )* };
}

macro_rules! floats {
    ($cases:ident: $($ty:ident from $bits:ident)*) => { $(
        let mut bits: $bits = 1;
        let random = (0..150).map(|_| {
            bits = bits.wrapping_mul(0x9e37_79b9).rotate_left(13) ^ 0x85eb_ca6b;
            $ty::from_bits(bits)
        });
        let known = [0.0, -0.0, 1.0, 1.5, 0.1, -2.75, 1e5, 1e15, 1e16, 1e17, 1e-4, 1e-5, 1e-6, 123456.78, $ty::MAX, $ty::MIN_POSITIVE];
        let special = [$ty::NAN, $ty::INFINITY, $ty::NEG_INFINITY];
        for value in known.into_iter().chain(special).chain(random) {
            case!($cases, $ty, value, "Display", "{}", PLAIN, 0, NONE);
            case!($cases, $ty, value, "Display", "{:+.2}", PLUS, 0, 2);
            case!($cases, $ty, value, "Display", "{:9}", PLAIN, 9, NONE);
            case!($cases, $ty, value, "Debug", "{:?}", PLAIN, 0, NONE);
            case!($cases, $ty, value, "LowerExp", "{:e}", PLAIN, 0, NONE);
            case!($cases, $ty, value, "UpperExp", "{:.3E}", PLAIN, 0, 3);
        }
    )* };
}

/// All cases as JSON.
pub fn cases() -> String {
    let mut cases: Vec<Value> = Vec::new();
    integers!(cases: u8 i8 u16 i16 u32 i32 u64 i64 u128 i128);
    floats!(cases: f32 from u32 f64 from u64);
    Value::Array(cases).to_string()
}
