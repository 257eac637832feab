//! Declarations in a PTX text: the parameters of its kernels, and undefined functions.

use std::collections::HashMap;

use ferrogrid_ptx::{Declaration, Module};

use super::Parameter;

/// The parameters of every `.entry` in `text`. A declaration that makes no sense is left out, and all of them if the text does not:
/// then the driver says why.
pub(crate) fn entries(text: &str) -> HashMap<Box<str>, Vec<Parameter>> {
    let Ok(module) = Module::parse(text) else { return HashMap::new() };
    let tables = module.entries().filter_map(|entry| {
        let parameters = entry.parameters().iter().map(parameter).collect::<Option<_>>()?;
        Some((entry.name.into(), parameters))
    });
    tables.collect()
}

fn parameter(declaration: &Declaration<'_>) -> Option<Parameter> {
    Some(Parameter { name: Some(declaration.name().into()), size: declaration.size()? })
}

/// Functions that the driver defines.
const RUN_TIME: [&str; 4] = ["vprintf", "malloc", "free", "__assertfail"];

/// The functions that the text declares as `.extern`, besides those of the driver.
pub(crate) fn unresolved(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for line in text.lines() {
        let Some(rest) = line.trim_start().strip_prefix(".extern .func") else { continue };
        let rest = rest.trim_start();
        let rest =
            if rest.starts_with('(') { rest.split_once(')').map_or("", |(_, rest)| rest) } else { rest };
        let name = rest.trim_start().split(['(', ';', ' ', '\t']).next().unwrap_or_default();
        if !name.is_empty() && !RUN_TIME.contains(&name) && !names.contains(&name) {
            names.push(name);
        }
    }
    names
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
            { ret; }
            .entry half(.param .f16 a, .param .v4 .f32 b, .param .b8 c[2][3]) { ret; }";
        assert_eq!(sizes(text, "half"), [2, 16, 6]);
        assert_eq!(sizes(text, "saxpy"), [4, 4, 8, 24]);
        assert!(sizes(text, "bare").is_empty());
        assert!(sizes(text, "none").is_empty());
        assert_eq!(entries(text).len(), 4);
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

    #[test]
    fn foreign_functions_are_found_and_driver_functions_are_not() {
        let text = ".extern .func  (.param .b32 func_retval0) vprintf\n(\n\t.param .b64 a\n)\n;\n\
                    .extern .func  (.param .b32 func_retval0) offset\n(\n\t.param .b32 offset_param_0\n)\n;\n\
                    .extern .func note(.param .b32 x);\n.extern .func note(.param .b32 x);\n";
        assert_eq!(unresolved(text), ["offset", "note"]);
        assert!(unresolved(".visible .func f()\n{\n}\n").is_empty());
    }
}
