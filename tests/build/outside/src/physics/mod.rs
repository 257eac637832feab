//! Holds a module in a file of another name.

#[path = "force_fields.rs"]
pub mod fields;
