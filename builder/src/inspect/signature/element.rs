//! The element types of parameters that callers outside Rust can make: numbers and arrays of numbers. They are recognised
//! by the layouts that the PTX states, so aliases and generic parameters need no resolution.

use ferrogrid_abi::layout::{of_array, of_atomic, of_type};

/// A number of Rust.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number {
    /// Its type, such as `f32`.
    pub name: &'static str,
    /// Its size in bytes.
    pub size: u64,
}

/// The element of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Element {
    /// The number, or that of the array.
    pub number: Number,
    /// The length of the array, if the element is one: `[u8; 3]`.
    pub array: Option<u64>,
    /// The alignment of the element in bytes.
    pub align: u64,
    /// Whether threads change it by atomic operations.
    pub is_atomic: bool,
}

impl Element {
    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.number.size * self.array.unwrap_or(1)
    }
}

const NUMBERS: [Number; 15] = [
    Number { name: "u8", size: 1 },
    Number { name: "u16", size: 2 },
    Number { name: "u32", size: 4 },
    Number { name: "u64", size: 8 },
    Number { name: "usize", size: 8 },
    Number { name: "i8", size: 1 },
    Number { name: "i16", size: 2 },
    Number { name: "i32", size: 4 },
    Number { name: "i64", size: 8 },
    Number { name: "isize", size: 8 },
    Number { name: "f16", size: 2 },
    Number { name: "bf16", size: 2 },
    Number { name: "f32", size: 4 },
    Number { name: "f64", size: 8 },
    Number { name: "bool", size: 1 },
];

/// The number whose layout has the hash `layout`.
pub(super) fn number(layout: u64) -> Option<Number> {
    NUMBERS.into_iter().find(|number| of_type(number.name, &[]) == layout)
}

/// The element of `size` bytes whose layout has the hash `layout`.
pub(super) fn element(size: u64, align: u64, layout: u64) -> Option<Element> {
    let plain = |number| Element { number, array: None, align, is_atomic: false };
    NUMBERS.into_iter().find_map(|number| {
        let hash = of_type(number.name, &[]);
        let length = size / number.size;
        if number.size == size && layout == hash {
            Some(plain(number))
        } else if number.size == size && layout == of_atomic(hash) {
            Some(Element { is_atomic: true, ..plain(number) })
        } else if length * number.size == size && layout == of_array(length, hash) {
            Some(Element { array: Some(length), ..plain(number) })
        } else {
            None
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_arrays_and_atomics_are_recognised() {
        let f32 = of_type("f32", &[]);
        let plain = Element { number: number(f32).unwrap(), array: None, align: 4, is_atomic: false };
        assert_eq!(element(4, 4, f32), Some(plain));
        assert_eq!(element(4, 4, of_atomic(f32)), Some(Element { is_atomic: true, ..plain }));
        assert_eq!(element(12, 4, of_array(3, f32)), Some(Element { array: Some(3), ..plain }));
    }

    /// A wrapper with a greater size or another length has the hash of another type.
    #[test]
    fn other_types_are_refused() {
        let f32 = of_type("f32", &[]);
        assert_eq!(element(16, 16, f32), None);
        assert_eq!(element(8, 4, of_array(3, f32)), None);
        assert_eq!(element(4, 4, of_type("Point", &[("x", f32)])), None);
        assert_eq!(number(of_type("char", &[])), None);
    }
}
