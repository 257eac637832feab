//! Puts descriptions of types in the place of formatting functions' addresses, where messages carry them
//! as arguments. It must not know how a message is sent.
//!
//! A description is what `ferrogrid_device::message::Description` says: how to come to the value, how
//! many bytes it has, which trait formats it, and the type's name.

use std::collections::BTreeMap;

use super::functions::{Functions, is_part_of_name};

/// The formatting functions, by symbol, with the number of the description of each.
pub(super) fn find<'a>(functions: &Functions<'a>) -> BTreeMap<&'a str, usize> {
    let formatters = functions.names().filter(|name| implementation(name).is_some());
    formatters.enumerate().map(|(number, name)| (name, number)).collect()
}

/// The text with descriptions for the addresses of `formatters`, and with the descriptions themselves.
pub(super) fn describe(text: &str, formatters: &BTreeMap<&str, usize>) -> String {
    let mut used = BTreeMap::new();
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        match line.trim_start() {
            code if code.starts_with("mov.") => replace(line, formatters, false, &mut used, &mut out),
            code if is_variable(code) => replace(line, formatters, true, &mut used, &mut out),
            _ => out.push_str(line),
        }
    }
    let definitions: String = used.iter().map(|(number, symbol)| definition(*number, symbol)).collect();
    const HEADER: &str = ".address_size 64\n";
    match out.find(HEADER) {
        Some(at) => {
            out.insert_str(at + HEADER.len(), &definitions);
            out
        }
        None => out,
    }
}

fn is_variable(code: &str) -> bool {
    code.strip_prefix(".visible ").unwrap_or(code).starts_with(".global ")
}

/// Copies a line to `out`, with descriptions in place of formatting functions.
fn replace<'a>(
    line: &str,
    formatters: &BTreeMap<&'a str, usize>,
    generic: bool,
    used: &mut BTreeMap<usize, &'a str>,
    out: &mut String,
) {
    let mut rest = line;
    while !rest.is_empty() {
        let end = rest.find(|c| !is_part_of_name(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        match formatters.get_key_value(word) {
            Some((symbol, &number)) => {
                used.insert(number, symbol);
                let name = variable(number);
                out.push_str(&if generic { format!("generic({name})") } else { name });
            }
            None => out.push_str(word),
        }
        let separator = after.find(is_part_of_name).unwrap_or(after.len());
        out.push_str(&after[..separator]);
        rest = &after[separator..];
    }
}

fn variable(number: usize) -> String {
    format!("__ferrogrid_format_{number}")
}

fn definition(number: usize, symbol: &str) -> String {
    let Some((ty, of_trait)) = implementation(symbol) else { return String::new() };
    let bytes: Vec<String> = description(&ty, &of_trait).iter().map(u8::to_string).collect();
    format!(".global .align 8 .b8 {}[{}] = {{{}}};\n", variable(number), bytes.len(), bytes.join(", "))
}

/// Type and trait of a formatting function, `<u32 as core::fmt::Display>::fmt`.
fn implementation(symbol: &str) -> Option<(String, String)> {
    let name = format!("{:#}", rustc_demangle::try_demangle(symbol).ok()?);
    let (ty, of_trait) = name.strip_prefix('<')?.strip_suffix(">::fmt")?.rsplit_once(" as core::fmt::")?;
    Some((ty.to_owned(), of_trait.to_owned()))
}

/// How the device comes from the address in an argument to the value.
#[derive(Clone, Copy)]
enum Shape {
    /// It cannot: the host shows the type's name.
    Opaque = 0,
    /// The bytes at the address are the value.
    Value = 1,
    /// At the address are the address and the length of a text.
    Text = 2,
    /// At the address are those of another value and of its table of functions.
    Dynamic = 3,
    /// At the address is a message of its own.
    Nested = 4,
    /// At the address are the address and the length of a slice; the bytes are those of an element.
    Slice = 5,
}

/// Shape, references to follow, bytes of the value, trait; the length of the name in four bytes; the name.
fn description(ty: &str, of_trait: &str) -> Vec<u8> {
    let (shape, references, size, name) = value(ty, of_trait);
    let mut bytes = vec![shape as u8, references, size, trait_code(of_trait)];
    bytes.extend((name.len() as u32).to_le_bytes());
    bytes.extend(name.bytes());
    bytes
}

fn value<'a>(ty: &'a str, of_trait: &str) -> (Shape, u8, u8, &'a str) {
    if of_trait == "Pointer" {
        return (Shape::Value, 0, 8, "u64");
    }
    let mut inner = ty;
    let mut references = 0;
    while let Some(rest) = inner.strip_prefix('&') {
        inner = rest.strip_prefix("mut ").unwrap_or(rest);
        references += 1;
    }
    if references > 0 && inner == "str" {
        return (Shape::Text, references - 1, 16, inner);
    }
    if references > 0 && inner.starts_with("dyn core::fmt::") {
        return (Shape::Dynamic, references - 1, 16, inner);
    }
    if inner == "core::fmt::Arguments" {
        return (Shape::Nested, references, 16, inner);
    }
    if references > 0
        && let Some(size) = inner.strip_prefix('[').and_then(|it| scalar_bytes(it.strip_suffix(']')?))
    {
        return (Shape::Slice, references - 1, size, inner);
    }
    match scalar_bytes(inner).or_else(|| array_bytes(inner)) {
        Some(size) => (Shape::Value, references, size, inner),
        None => (Shape::Opaque, 0, 0, ty),
    }
}

/// Of an array of scalars, `[f32; 4]`, if it is not too long to be a value.
fn array_bytes(name: &str) -> Option<u8> {
    let (element, length) = name.strip_prefix('[')?.strip_suffix(']')?.rsplit_once("; ")?;
    scalar_bytes(element)?.checked_mul(length.trim_end_matches("usize").parse().ok()?)
}

fn scalar_bytes(name: &str) -> Option<u8> {
    Some(match name {
        "u8" | "i8" | "bool" => 1,
        "u16" | "i16" => 2,
        "u32" | "i32" | "f32" | "char" => 4,
        "u64" | "i64" | "usize" | "isize" | "f64" => 8,
        "u128" | "i128" => 16,
        _ => return None,
    })
}

fn trait_code(name: &str) -> u8 {
    const TRAITS: [&str; 9] =
        ["Display", "Debug", "LowerHex", "UpperHex", "Binary", "Octal", "LowerExp", "UpperExp", "Pointer"];
    TRAITS.iter().position(|known| *known == name).map_or(u8::MAX, |at| at as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formatting_functions_are_known_by_their_symbols() {
        let known = |symbol| implementation(symbol).unwrap();
        let named = |ty: &str, of_trait: &str| (ty.to_owned(), of_trait.to_owned());
        assert_eq!(
            known("_RNvXs8_NtNtNtCsitLHWDqi81h_4core3fmt3num3impmNtB9_7Display3fmt"),
            named("u32", "Display")
        );
        assert_eq!(
            known("_RNvXs1g_NtCsitLHWDqi81h_4core3fmtRDNtB6_5DebugEL_Bx_3fmtB8_"),
            named("&dyn core::fmt::Debug", "Debug")
        );
        assert_eq!(
            known("_RNvXs1i_NtCsitLHWDqi81h_4core3fmtReNtB6_7Display3fmtB8_"),
            named("&str", "Display")
        );
        assert_eq!(implementation("_RNvNtCsitLHWDqi81h_4core9panicking9panic_fmt"), None);
        assert_eq!(
            known("_RNvXNtCsitLHWDqi81h_4core5arrayAmj4_NtNtB4_3fmt5Debug3fmtB4_"),
            named("[u32; 4]", "Debug")
        );
        assert_eq!(implementation("saxpy_0123456789abcdef"), None);
    }

    #[test]
    fn descriptions_say_how_to_come_to_the_value() {
        assert_eq!(description("u32", "Display"), [&[1, 0, 4, 0, 3, 0, 0, 0][..], b"u32"].concat());
        assert_eq!(description("&&f64", "Debug"), [&[1, 2, 8, 1, 3, 0, 0, 0][..], b"f64"].concat());
        assert_eq!(description("&&str", "Display")[..4], [2, 1, 16, 0]);
        assert_eq!(description("&dyn core::fmt::Debug", "Debug")[..4], [3, 0, 16, 1]);
        assert_eq!(description("core::fmt::Arguments", "Display")[..4], [4, 0, 16, 0]);
        assert_eq!(description("&[f64]", "Debug"), [&[5, 0, 8, 1, 5, 0, 0, 0][..], b"[f64]"].concat());
        assert_eq!(description("&[u16; 9]", "Debug"), [&[1, 1, 18, 1, 8, 0, 0, 0][..], b"[u16; 9]"].concat());
        for unknown in ["[u64; 32]", "[app::Point; 2]", "&[app::Point]", "[[u8; 2]; 2]", "[u8]"] {
            assert_eq!(description(unknown, "Debug")[..4], [0, 0, 0, 1], "{unknown}");
        }
        assert_eq!(
            description("app::Point", "Debug"),
            [&[0, 0, 0, 1, 10, 0, 0, 0][..], b"app::Point"].concat()
        );
    }
}
