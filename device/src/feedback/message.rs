//! Messages that the host formats: a GPU thread sends the template of `core::fmt::Arguments` and the bytes of
//! each argument.
//!
//! `core::fmt` calls formatting functions through pointers, which would cost every kernel that can reach them
//! most of its registers. So the build step replaces the address of each formatting function by that of a
//! [`Description`]. The layout of `Arguments` is private to rustc; this file reads that of rustc 1.96
//! (`library/core/src/fmt/mod.rs` documents it).

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
    /// The number of the trait of `core::fmt`, as the build step counts them.
    pub of_trait: u8,
    /// The length of the type's name in bytes.
    pub name_length: u32,
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

#[cfg(target_arch = "nvptx64")]
pub(crate) use sending::{Arguments, Length, Sink, each_word, send, send_flat};

#[cfg(target_arch = "nvptx64")]
mod sending;
