//! Leads calls of core's panicking functions to functions of `ferrogrid-device` that take the same
//! arguments. A call that does not look as expected stays: it works too, but its message is lost. It must
//! not know what the functions do.

use std::collections::BTreeMap;

/// How a function of core ends in mangled form (either mangling), and what is called in its place.
const PANICS: [(&str, &str); 4] = [
    ("4core9panicking18panic_bounds_check", "__ferrogrid_panic_bounds_check"),
    (FORMATTED, "__ferrogrid_panic_fmt"),
    ("4core9panicking5panic", "__ferrogrid_panic_text"),
    ("4core6option13expect_failed", "__ferrogrid_panic_text"),
];

const FORMATTED: &str = "4core9panicking9panic_fmt";

/// What is called for `panic_fmt` where the message is a constant: its second argument is then twice the
/// length plus one, else an address.
const CONSTANT: &str = "__ferrogrid_panic_constant";

/// A call as LLVM writes it: all of these functions take three words.
const ARGUMENTS: &str = ", (param0, param1, param2);";

/// The text with its calls redirected, and the functions that they lead to declared before.
pub(super) fn redirect(text: &str) -> String {
    let mut declarations = BTreeMap::new();
    let mut has_constant = false;
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with("{ // callseq") {
            has_constant = false;
        } else if let Some(value) = second_argument(line) {
            has_constant = value % 2 == 1;
        }
        let found = PANICS.into_iter().find(|(from, _)| is_call_of(line, from));
        let target = found.map(|(from, to)| if from == FORMATTED && has_constant { CONSTANT } else { to });
        match target.and_then(|target| Some((target, declaration(text, target)?))) {
            Some((target, declaration)) => {
                let indent = &line[..line.len() - line.trim_start().len()];
                out.push_str(&format!("{indent}call.uni {target}{ARGUMENTS}\n"));
                declarations.insert(target, declaration);
            }
            None => out.push_str(line),
        }
    }
    insert_after_header(&out, &declarations.into_values().collect::<String>())
}

/// The number in `st.param.b64 [param1], 17;`.
fn second_argument(line: &str) -> Option<u64> {
    let rest = line.trim().strip_prefix("st.param.b64")?.trim_start().strip_prefix("[param1],")?;
    rest.trim().strip_suffix(';')?.parse().ok()
}

fn is_call_of(line: &str, function: &str) -> bool {
    let Some(rest) = line.trim().strip_prefix("call.uni ").and_then(|it| it.strip_suffix(ARGUMENTS)) else {
        return false;
    };
    rest.ends_with(function)
}

/// The declaration of a function that the text defines, with its `.noreturn` (PTX 6.4 and later), without
/// which ptxas would take them for two functions.
fn declaration(text: &str, name: &str) -> Option<String> {
    let start = text.find(&format!(".visible .func {name}("))?;
    let (signature, rest) = text[start..].split_once("\n)\n")?;
    let attribute = if rest.starts_with(".noreturn\n") { ".noreturn\n" } else { "" };
    Some(format!("{signature}\n)\n{attribute};\n"))
}

fn insert_after_header(text: &str, declarations: &str) -> String {
    const HEADER: &str = ".address_size 64\n";
    match text.find(HEADER) {
        Some(at) => {
            let (before, after) = text.split_at(at + HEADER.len());
            format!("{before}{declarations}{after}")
        }
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: &str = ".visible .func __ferrogrid_panic_bounds_check(\n\t.param .b64 a\n)\n{\n}\n";

    #[test]
    fn a_redirected_function_is_declared_before_its_calls() {
        let call = "\tcall.uni _RNvNtCsx_4core9panicking18panic_bounds_check, (param0, param1, param2);\n";
        let text = redirect(&format!(".address_size 64\n{call}{TARGET}"));
        let declared = text.find(".visible .func __ferrogrid_panic_bounds_check(\n\t.param .b64 a\n)\n;\n");
        let called = text.find("\tcall.uni __ferrogrid_panic_bounds_check, (param0, param1, param2);\n");
        assert!(declared.unwrap() < called.unwrap(), "{text}");
    }

    #[test]
    fn a_declaration_says_noreturn_where_the_definition_does() {
        let call = "\tcall.uni _RNvNtCsx_4core9panicking18panic_bounds_check, (param0, param1, param2);\n";
        let target = TARGET.replace(")\n{", ")\n.noreturn\n{");
        let text = redirect(&format!(".address_size 64\n{call}{target}"));
        assert!(text.contains("\t.param .b64 a\n)\n.noreturn\n;\n"), "{text}");
    }

    #[test]
    fn a_constant_message_is_known_by_its_length() {
        let text = |argument: &str| {
            let call = format!(
                "\t{{ // callseq 1, 0\n\tst.param.b64 \t[param1], {argument};\n\tcall.uni _RNvNtCsx_4core9panicking9panic_fmt, (param0, param1, param2);\n"
            );
            let target = TARGET.replace("panic_bounds_check", "panic_fmt");
            let constant = TARGET.replace("panic_bounds_check", "panic_constant");
            redirect(&format!(".address_size 64\n{call}{target}{constant}"))
        };
        assert!(text("17").contains("call.uni __ferrogrid_panic_constant, "));
        assert!(text("%rd3").contains("call.uni __ferrogrid_panic_fmt, "));
    }

    #[test]
    fn calls_with_other_arguments_stay() {
        let call = "\tcall.uni _RNvNtCsx_4core9panicking18panic_bounds_check, (param0, param1);\n";
        let text = format!(".address_size 64\n{call}{TARGET}");
        assert_eq!(redirect(&text), text);
    }
}
