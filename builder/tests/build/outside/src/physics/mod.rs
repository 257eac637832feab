//! Declares a module whose file has another name.

#[path = "force_fields.rs"]
pub mod fields;
