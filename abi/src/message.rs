//! Messages that the host formats: the template of `core::fmt::Arguments`, and each argument as its bytes with a
//! description of its type.

/// Replaces a formatting function. The name of the type follows it.
#[repr(C, align(8))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Description {
    /// [`OPAQUE`], [`VALUE`], [`TEXT`], [`DYNAMIC`], [`NESTED`] or [`SLICE`].
    pub shape: u8,
    /// The number of references between the address in the argument and the value.
    pub references: u8,
    /// The size of the value in bytes; for a slice, of an element.
    pub size: u8,
    /// The number of a [`FormatTrait`].
    pub of_trait: u8,
    /// The length of the type's name in bytes.
    pub name_length: u32,
}

impl Description {
    /// Its bytes in device memory.
    #[inline]
    pub const fn to_bytes(self) -> [u8; 8] {
        let [a, b, c, d] = self.name_length.to_le_bytes();
        [self.shape, self.references, self.size, self.of_trait, a, b, c, d]
    }

    /// The description that has these bytes in device memory.
    #[inline]
    pub const fn from_bytes([shape, references, size, of_trait, a, b, c, d]: [u8; 8]) -> Self {
        Description { shape, references, size, of_trait, name_length: u32::from_le_bytes([a, b, c, d]) }
    }
}

/// A trait of `core::fmt`, under its name there.
#[repr(u8)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of `core::fmt`")]
pub enum FormatTrait {
    Display,
    Debug,
    LowerHex,
    UpperHex,
    Binary,
    Octal,
    LowerExp,
    UpperExp,
    Pointer,
}

impl FormatTrait {
    /// All of them, by number.
    pub const ALL: [FormatTrait; 9] = {
        use FormatTrait::*;
        [Display, Debug, LowerHex, UpperHex, Binary, Octal, LowerExp, UpperExp, Pointer]
    };

    /// The trait of that number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

/// The bytes of a value of the scalar type `name`; `None` for other types. `usize` is that of a GPU.
pub fn scalar_bytes(name: &str) -> Option<u8> {
    Some(match name {
        "u8" | "i8" | "bool" => 1,
        "u16" | "i16" => 2,
        "u32" | "i32" | "f32" | "char" => 4,
        "u64" | "i64" | "usize" | "isize" | "f64" => 8,
        "u128" | "i128" => 16,
        _ => return None,
    })
}

/// [`Description::shape`]: only the type's name is known.
pub const OPAQUE: u8 = 0;
/// [`Description::shape`]: the value is its bytes.
pub const VALUE: u8 = 1;
/// [`Description::shape`]: the value is the address and the length of a text.
pub const TEXT: u8 = 2;
/// [`Description::shape`]: the value is a trait object, the addresses of another value and of its vtable,
/// whose fourth entry is the formatting function.
pub const DYNAMIC: u8 = 3;

/// [`Description::shape`]: the value is itself a `core::fmt::Arguments`. It is sent as its bytes; such values
/// within it are opaque.
pub const NESTED: u8 = 4;

/// [`Description::shape`]: the value is the address and the length of a slice.
pub const SLICE: u8 = 5;

/// The header of a message: the address of the template, its length, and the number of arguments that follow
/// (none where the build could not describe them).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageHead {
    /// The address of the template, or of the text.
    pub template: u64,
    /// Its length in bytes.
    pub length: u64,
    /// The number of arguments; [`LITERAL`] if the template is plain text.
    pub arguments: u64,
}

/// [`MessageHead::arguments`]: plain text instead of a template.
pub const LITERAL: u64 = u64::MAX;

/// The header of an argument. Its bytes follow, padded to a multiple of 8.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArgumentHead {
    /// The address of the [`Description`]; 0 for the value of a width or a precision.
    pub description: u64,
    /// The number of bytes that follow; or the width or precision.
    pub length: u64,
}

/// The maximum number of bytes that are sent of a text or a slice; a multiple of the size of every element.
pub const TEXT_BYTES: u64 = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    /// The build step writes numbers, and the host reads them.
    #[test]
    fn a_trait_is_found_by_its_number() {
        for known in FormatTrait::ALL {
            assert_eq!(FormatTrait::from_number(known as u8), Some(known));
        }
        assert_eq!(FormatTrait::from_number(FormatTrait::ALL.len() as u8), None);
    }

    #[test]
    fn scalars_have_the_sizes_of_a_gpu() {
        macro_rules! sizes {
            ($($ty:ty)*) => { [$((stringify!($ty), size_of::<$ty>() as u8)),*] };
        }
        let fixed = sizes!(u8 i8 bool u16 i16 u32 i32 f32 char u64 i64 f64 u128 i128);
        for (name, bytes) in fixed.into_iter().chain([("usize", 8), ("isize", 8)]) {
            assert_eq!(scalar_bytes(name), Some(bytes), "{name}");
        }
        assert_eq!(scalar_bytes("Point"), None);
    }

    #[test]
    fn a_description_is_its_bytes() {
        let bytes = [4, 1, 16, 8, 0x44, 0x33, 0x22, 0x11];
        let described = Description::from_bytes(bytes);
        assert_eq!((described.shape, described.of_trait, described.name_length), (NESTED, 8, 0x1122_3344));
        assert_eq!(described.to_bytes(), bytes);
    }
}
