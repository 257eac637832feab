//! The parameter tables of the kernels in a PTX text.

use std::collections::HashMap;

use ferrogrid_ptx::{Declaration, Module};

use crate::foreign::parameter::Parameter;

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
}
