//! The parameter tables of the kernels in a PTX text. It must not know more of PTX than entry points and
//! their `.param` lists.

use std::collections::HashMap;

use super::parameter::Parameter;

/// The parameters of every `.entry` in `text`. A declaration that makes no sense is left out.
pub(super) fn entries(text: &str) -> HashMap<Box<str>, Vec<Parameter>> {
    let text = without_comments(text);
    text.split(".entry").skip(1).filter_map(entry).collect()
}

/// The name and parameters of the declaration that `text` starts with.
fn entry(text: &str) -> Option<(Box<str>, Vec<Parameter>)> {
    let end = text.find(['(', '{', ';'])?;
    let head = text[..end].split_whitespace().next()?;
    if !text[end..].starts_with('(') {
        return Some((head.into(), Vec::new()));
    }
    let list = text[end + 1..].split(')').next()?;
    let declarations = list.split(',').map(str::trim).filter(|declaration| !declaration.is_empty());
    let parameters: Option<Vec<Parameter>> = declarations.map(parameter).collect();
    Some((head.into(), parameters?))
}

/// As in `.param .align 8 .b8 name[16]` and `.param .u64 .ptr .global .align 4 name`.
fn parameter(declaration: &str) -> Option<Parameter> {
    let (declaration, count) = match declaration.split_once('[') {
        Some((before, count)) => (before, count.trim_end().strip_suffix(']')?.trim().parse().ok()?),
        None => (declaration, 1_usize),
    };
    let name = declaration.split_whitespace().next_back()?;
    let element = declaration.split_whitespace().find_map(size_of_type)?;
    Some(Parameter { name: Some(name.into()), size: element.checked_mul(count)? })
}

/// The size in bytes of a fundamental type such as `.u64`.
fn size_of_type(word: &str) -> Option<usize> {
    let bits = word.strip_prefix('.')?.strip_prefix(['b', 'u', 's', 'f'])?;
    match bits {
        "8" => Some(1),
        "16" => Some(2),
        "32" => Some(4),
        "64" => Some(8),
        "128" => Some(16),
        _ => None,
    }
}

fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('/') {
        kept.push_str(&rest[..start]);
        let comment = &rest[start..];
        rest = if comment.starts_with("//") {
            comment.find('\n').map_or("", |end| &comment[end..])
        } else if comment.starts_with("/*") {
            kept.push(' ');
            comment.find("*/").map_or("", |end| &comment[end + 2..])
        } else {
            kept.push('/');
            &comment[1..]
        };
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(text: &str, entry: &str) -> Vec<usize> {
        entries(text)[entry].iter().map(|parameter| parameter.size).collect()
    }

    #[test]
    fn parameters_have_the_sizes_of_their_declarations() {
        let text = "
            .version 8.0
            .target sm_90
            /* .entry ghost(.param .u8 a) */
            .visible .entry saxpy( // .param .u8 ghost,
                .param .u32 saxpy_param_0,
                .param .f32 saxpy_param_1,
                .param .u64 .ptr .global .align 4 saxpy_param_2,
                .param .align 8 .b8 saxpy_param_3[24]
            )
            .maxntid 128, 1, 1
            { ret; }
            .entry bare
            { ret; }
            .entry none()
            { ret; }";
        assert_eq!(sizes(text, "saxpy"), [4, 4, 8, 24]);
        assert!(sizes(text, "bare").is_empty());
        assert!(sizes(text, "none").is_empty());
        assert_eq!(entries(text).len(), 3);
        let third = &entries(text)["saxpy"][2];
        assert_eq!(third.name.as_deref(), Some("saxpy_param_2"));
    }

    #[test]
    fn nonsense_is_left_out() {
        assert!(entries("").is_empty());
        assert!(entries(".entry").is_empty());
        assert!(entries(".entry x(.param .pred p) {}").is_empty());
        assert!(entries(".entry x(.param .b8 p[99999999999999999999]) {}").is_empty());
        assert!(entries(".entry x(.param .b64 p[18446744073709551615]) {}").is_empty());
        assert!(entries("/* unfinished .entry x() {}").is_empty());
    }

    #[test]
    fn fuzz_parameter_tables() {
        let seeds = [
            ".visible .entry a( // x\n.param .u32 p,\n.param .align 8 .b8 q[24] /* y */\n)\n{ ret; }".into(),
            ".entry b { } .entry c() .maxntid 1, 1, 1 { } .entry d(.param .u64 .ptr .global .align 4 p) { }"
                .into(),
        ];
        crate::fuzz::survive(&seeds, |bytes| {
            let text = String::from_utf8_lossy(bytes);
            for (name, parameters) in entries(&text) {
                let names = parameters.iter().flat_map(|parameter| &parameter.name);
                assert!(names.map(|name| name.len()).sum::<usize>() + name.len() <= text.len());
            }
        });
    }
}
