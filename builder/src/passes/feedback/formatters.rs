//! Replaces the addresses of formatting functions, which messages have as arguments, by descriptions of
//! types. Functions that are then unreachable are removed. The host formats, so messages cost kernels next to
//! nothing.
//!
//! A description is a [`Description`]: how to reach the value, its size in bytes,
//! the trait that formats it, and the type's name. In a program whose kernels call through pointers,
//! formatting functions stay, and messages come without their arguments.

use std::collections::BTreeMap;

use ferrogrid_abi::message::{
    DYNAMIC, Description, FormatTrait, NESTED, OPAQUE, SLICE, TEXT, VALUE, scalar_bytes,
};
use ferrogrid_ptx::{Calls, Edits, Item, Linkage, Module, Operand};

/// Removes unreachable functions, and replaces formatting functions by descriptions.
pub(crate) fn describe<'t>(module: &Module<'t>, edits: &mut Edits<'t>) {
    let calls = Calls::of(module);
    let formatters = find(module);
    let roots: Vec<usize> = (0..module.items.len()).filter(|&at| is_root(&module.items[at])).collect();
    let direct = calls.reachable(roots.iter().copied(), |name| formatters.contains_key(name));
    let describes = !direct.iter().any(|&item| calls.calls_by_address(item));
    let kept = if describes { direct } else { calls.reachable(roots, |_| false) };
    let is_kept = |name: &str| calls.definition(name).is_none_or(|item| kept.contains(&item));
    let mut used = BTreeMap::new();
    for (at, item) in module.items.iter().enumerate() {
        let stays = match item {
            Item::Function(function) if function.body.is_none() => is_kept(function.name),
            _ => kept.contains(&at) || is_declaration(item),
        };
        match stays {
            false => edits.remove_lines(item.text()),
            true if describes => replace(item, &formatters, &mut used, edits),
            true => {}
        }
    }
    let definitions: String = used.iter().map(|(number, symbol)| definition(*number, symbol)).collect();
    edits.insert_before(module.after_header(), definitions);
}

/// Whether the driver or the host reaches an item: entry points, and variables that other modules see.
fn is_root(item: &Item<'_>) -> bool {
    match item {
        Item::Function(function) => function.is_entry,
        Item::Variable(variable) => variable.linkage != Linkage::Internal,
        _ => true,
    }
}

fn is_declaration(item: &Item<'_>) -> bool {
    !matches!(item, Item::Function(_) | Item::Variable(_))
}

/// The formatting functions, by symbol, with the number of the description of each.
fn find<'t>(module: &Module<'t>) -> BTreeMap<&'t str, usize> {
    let defined = module.functions().filter(|function| function.body.is_some());
    let mut names: Vec<&str> =
        defined.map(|function| function.name).filter(|name| implementation(name).is_some()).collect();
    names.sort_unstable();
    names.into_iter().enumerate().map(|(number, name)| (name, number)).collect()
}

/// Replaces formatting functions by descriptions in instructions that move addresses, and in the values of
/// variables.
fn replace<'t>(
    item: &Item<'t>,
    formatters: &BTreeMap<&'t str, usize>,
    used: &mut BTreeMap<usize, &'t str>,
    edits: &mut Edits<'t>,
) {
    let mut describe = |word: &'t str| {
        let (symbol, &number) = formatters.get_key_value(word)?;
        used.insert(number, symbol);
        Some(variable(number))
    };
    match item {
        Item::Function(function) => {
            let moves = function.instructions().filter(|instruction| instruction.operation() == "mov");
            for name in moves.flat_map(|it| &it.operands).flat_map(Operand::names) {
                if let Some(variable) = describe(name) {
                    edits.replace(name, variable);
                }
            }
        }
        Item::Variable(variable) => {
            for word in variable.names.iter().flat_map(|declared| declared.mentions()) {
                if let Some(variable) = describe(word) {
                    edits.replace(word, format!("generic({variable})"));
                }
            }
        }
        _ => {}
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

/// The bytes of a [`Description`], and the name of the type after them.
fn description(ty: &str, of_trait: &str) -> Vec<u8> {
    let (shape, references, size, name) = value(ty, of_trait);
    let (of_trait, name_length) = (trait_number(of_trait), name.len() as u32);
    let description = Description { shape, references, size, of_trait, name_length };
    [&description.to_bytes()[..], name.as_bytes()].concat()
}

/// Shape, references to follow, bytes of the value, and the name of its type.
fn value<'a>(ty: &'a str, of_trait: &str) -> (u8, u8, u8, &'a str) {
    if of_trait == "Pointer" {
        return (VALUE, 0, 8, "u64");
    }
    let mut inner = ty;
    let mut references = 0;
    while let Some(rest) = inner.strip_prefix('&') {
        inner = rest.strip_prefix("mut ").unwrap_or(rest);
        references += 1;
    }
    if references > 0 && inner == "str" {
        return (TEXT, references - 1, 16, inner);
    }
    if references > 0 && inner.starts_with("dyn core::fmt::") {
        return (DYNAMIC, references - 1, 16, inner);
    }
    if inner == "core::fmt::Arguments" {
        return (NESTED, references, 16, inner);
    }
    if references > 0
        && let Some(size) = inner.strip_prefix('[').and_then(|it| scalar_bytes(it.strip_suffix(']')?))
    {
        return (SLICE, references - 1, size, inner);
    }
    match scalar_bytes(inner).or_else(|| array_bytes(inner)) {
        Some(size) => (VALUE, references, size, inner),
        None => (OPAQUE, 0, 0, ty),
    }
}

/// The bytes of an array of scalars, `[f32; 4]`, if it is short enough to be a value.
fn array_bytes(name: &str) -> Option<u8> {
    let (element, length) = name.strip_prefix('[')?.strip_suffix(']')?.rsplit_once("; ")?;
    scalar_bytes(element)?.checked_mul(length.trim_end_matches("usize").parse().ok()?)
}

/// The number of the trait of that name; none has the greatest.
fn trait_number(name: &str) -> u8 {
    let known = FormatTrait::ALL.into_iter().find(|known| format!("{known:?}") == name);
    known.map_or(u8::MAX, |known| known as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::tests::after;

    const U32: &str = "_RNvXs8_NtNtNtCsitLHWDqi81h_4core3fmt3num3impmNtB9_7Display3fmt";

    fn program(kernel: &str) -> String {
        format!(
            ".address_size 64\n.global .align 8 .u64 arguments[1] = {{{U32}}};\n.global .align 1 .b8 unused[4];\n\
             .visible .global .align 8 .u64 seen = 1;\n.func lost();\n.func lost()\n{{\n}}\n.func {U32}()\n{{\n\tcall.uni inner;\n}}\n\
             .func inner()\n{{\n}}\n.visible .entry k()\n{{\n\tmov.b64 \t%rd1, {U32};\n\tmov.b64 \t%rd2, arguments;\n{kernel}}}\n"
        )
    }

    #[test]
    fn descriptions_take_the_place_of_functions_that_then_go() {
        let text = after(&program(""), describe);
        let description = ".address_size 64\n.global .align 8 .b8 __ferrogrid_format_0[11] = {1, 0, 4, 0, 3, 0, 0, 0, 117, 51, 50};\n";
        let rest = ".global .align 8 .u64 arguments[1] = {generic(__ferrogrid_format_0)};\n.visible .global .align 8 .u64 seen = 1;\n\
                    .visible .entry k()\n{\n\tmov.b64 \t%rd1, __ferrogrid_format_0;\n\tmov.b64 \t%rd2, arguments;\n}\n";
        assert_eq!(text, format!("{description}{rest}"));
    }

    #[test]
    fn where_kernels_call_through_pointers_formatting_functions_stay() {
        let call = "\tcall %rd1, prototype_0;\n";
        let before = program(call);
        let gone = [".global .align 1 .b8 unused[4];\n", ".func lost();\n", ".func lost()\n{\n}\n"];
        let expected = gone.iter().fold(before.clone(), |text, gone| text.replace(gone, ""));
        assert_eq!(after(&before, describe), expected);
    }

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
    fn descriptions_tell_how_to_reach_the_value() {
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
