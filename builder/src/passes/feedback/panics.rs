//! Redirects calls of core's panicking functions to functions of `ferrogrid-device` with the same arguments.
//! Those send a message's template and the bytes of its arguments to the host, which formats. `core::fmt`
//! calls through pointers, and ptxas gives a kernel that may reach such a call the registers and the stack of
//! every function behind a pointer: 255 registers once floating-point numbers are formatted anywhere in the
//! module.
//!
//! A call that does not look as expected stays: it works too, but its message is lost.

use std::collections::BTreeMap;

use ferrogrid_ptx::{Edits, Function, Instruction, Module, Operand, StatementKind};

/// Functions of core, and their replacements.
const PANICS: [(&str, &str); 4] = [
    ("core::panicking::panic_bounds_check", "__ferrogrid_panic_bounds_check"),
    (FORMATTED, "__ferrogrid_panic_fmt"),
    ("core::panicking::panic", "__ferrogrid_panic_text"),
    ("core::option::expect_failed", "__ferrogrid_panic_text"),
];

const FORMATTED: &str = "core::panicking::panic_fmt";

/// The function that replaces `panic_fmt` where the message is a constant: the second argument is then twice
/// the length plus one, else an address.
const CONSTANT: &str = "__ferrogrid_panic_constant";

/// Redirects the calls, and declares the functions that they now call.
pub(crate) fn redirect<'t>(module: &Module<'t>, edits: &mut Edits<'t>) {
    let mut declarations = BTreeMap::new();
    for function in module.functions() {
        let mut has_constant = false;
        for statement in function.statements() {
            let instruction = match &statement.kind {
                // Each call has a scope of its own, with its arguments.
                StatementKind::Open => {
                    has_constant = false;
                    continue;
                }
                StatementKind::Instruction(instruction) => instruction,
                _ => continue,
            };
            if let Some(value) = second_argument(instruction) {
                has_constant = value % 2 == 1;
            }
            let Some((callee, target)) = redirected(instruction, has_constant) else { continue };
            if let Some(declaration) = declaration(module, target) {
                edits.replace(callee, target);
                declarations.insert(target, declaration);
            }
        }
    }
    edits.insert_before(module.after_header(), declarations.into_values().collect::<String>());
}

/// The number in `st.param.b64 [param1], 17;`; 0 where it is none.
fn second_argument(instruction: &Instruction<'_>) -> Option<u64> {
    let is_second = instruction.opcode == "st.param.b64"
        && instruction.operands.first().and_then(Operand::address) == Some(("param1", None));
    is_second.then(|| instruction.operands[1].number().unwrap_or(0))
}

/// The callee of a call, and what replaces it.
fn redirected<'t>(instruction: &Instruction<'t>, has_constant: bool) -> Option<(&'t str, &'static str)> {
    let callee = instruction.callee().filter(|callee| callee.contains("4core"))?;
    // LLVM's form: all of these functions take three words, and return nothing.
    let has_three = matches!(instruction.operands.as_slice(), [Operand::Name(_), Operand::Arguments(list)] if list.len() == 3);
    let name = format!("{:#}", rustc_demangle::try_demangle(callee).ok()?);
    let (from, to) = PANICS.into_iter().find(|(from, _)| has_three && *from == name)?;
    Some((callee, if from == FORMATTED && has_constant { CONSTANT } else { to }))
}

/// The declaration of a function that the text defines, with its `.noreturn` (PTX 6.4 and later). Without
/// that ptxas would see two functions.
fn declaration(module: &Module<'_>, name: &str) -> Option<String> {
    let is_defined = |function: &&Function<'_>| function.name == name && function.body.is_some();
    module.functions().find(is_defined).map(|function| format!("{};\n", function.head()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::tests::after;

    const TARGET: &str = ".visible .func __ferrogrid_panic_bounds_check(\n\t.param .b64 a\n)\n{\n}\n";
    const BOUNDS_CHECK: &str = "_RNvNtCsitLHWDqi81h_4core9panicking18panic_bounds_check";

    fn calling(statements: &str, target: &str) -> String {
        after(&format!(".address_size 64\n.func f()\n{{\n{statements}}}\n{target}"), redirect)
    }

    #[test]
    fn a_redirected_function_is_declared_before_its_calls() {
        let text = calling(&format!("\tcall.uni {BOUNDS_CHECK}, (param0, param1, param2);\n"), TARGET);
        let declared = text.find(".visible .func __ferrogrid_panic_bounds_check(\n\t.param .b64 a\n)\n;\n");
        let called = text.find("\tcall.uni __ferrogrid_panic_bounds_check, (param0, param1, param2);\n");
        assert!(declared.unwrap() < called.unwrap(), "{text}");
    }

    #[test]
    fn a_declaration_has_noreturn_if_the_definition_has() {
        let call = format!("\tcall.uni {BOUNDS_CHECK}, (param0, param1, param2);\n");
        let text = calling(&call, &TARGET.replace(")\n{", ")\n.noreturn\n{"));
        assert!(text.contains("\t.param .b64 a\n)\n.noreturn\n;\n"), "{text}");
    }

    #[test]
    fn a_constant_message_is_known_by_its_length() {
        let text = |argument: &str| {
            let call = format!(
                "\t{{ // callseq 1, 0\n\tst.param.b64 \t[param1], {argument};\n\tcall.uni _RNvNtCsitLHWDqi81h_4core9panicking9panic_fmt, (param0, param1, param2);\n\t}}\n"
            );
            let target = TARGET.replace("panic_bounds_check", "panic_fmt");
            calling(&call, &(target + &TARGET.replace("panic_bounds_check", "panic_constant")))
        };
        assert!(text("17").contains("call.uni __ferrogrid_panic_constant, "));
        assert!(text("16").contains("call.uni __ferrogrid_panic_fmt, "));
        assert!(text("%rd3").contains("call.uni __ferrogrid_panic_fmt, "));
    }

    /// Whose second argument is a length, not an address.
    #[test]
    fn texts_go_where_texts_are_taken() {
        for function in ["9panicking5panic", "6option13expect_failed"] {
            let call = format!("\tcall.uni _RNvNtCsitLHWDqi81h_4core{function}, (param0, param1, param2);\n");
            let targets =
                ["panic_fmt", "panic_text"].map(|name| TARGET.replace("panic_bounds_check", name)).concat();
            let text = calling(&call, &targets);
            assert!(text.contains("call.uni __ferrogrid_panic_text, (param0"), "{text}");
        }
    }

    #[test]
    fn other_calls_stay() {
        for call in [
            format!("\tcall.uni {BOUNDS_CHECK}, (param0, param1);\n"),
            format!("\tcall.uni (retval0), {BOUNDS_CHECK}, (param0, param1, param2);\n"),
            // A user's own `core::panicking`, in a module of crate `app`.
            "\tcall.uni _RNvNtNtCsitLHWDqi81h_3app4core9panicking18panic_bounds_check, (param0, param1, param2);\n".to_owned(),
        ] {
            let text = format!(".address_size 64\n.func f()\n{{\n{call}}}\n{TARGET}");
            assert_eq!(after(&text, redirect), text);
        }
    }
}
