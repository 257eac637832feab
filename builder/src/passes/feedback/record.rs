//! Adds a parameter to kernels and functions that may panic: the address of the launch's failure record,
//! which device code reads by name. So each panic is attributed to its launch. An entry point reads the
//! parameter only on the path to a panic, so it costs nothing otherwise.

use std::collections::{BTreeMap, BTreeSet};

use ferrogrid_abi::failure::RECORD_PARAMETER;
use ferrogrid_ptx::{
    Calls, Edits, Function, Instruction, Module, Operand, Parameters, Statement, StatementKind,
};

/// Adds the parameter to all functions that read it, that call a function which has it, or that may be
/// called by address; and to their calls.
pub(crate) fn pass_record<'t>(module: &Module<'t>, edits: &mut Edits<'t>) {
    let taking = taking(module);
    let functions = || taking.iter().filter_map(|&at| module.items[at].function());
    let names: BTreeSet<&str> = functions().map(|function| function.name).collect();
    for function in module.functions().filter(|function| names.contains(function.name)) {
        add_parameter(function, edits);
    }
    for function in functions() {
        let mut calls = 0;
        for statement in function.statements() {
            match &statement.kind {
                StatementKind::Instruction(call) if passes_record(call, &names) => {
                    add_argument(statement, call, calls, edits);
                    calls += 1;
                }
                StatementKind::Prototype { parameters: Some(parameters), .. } => {
                    edits.replace(parameters.text, with_item(Some(parameters), ".param .b64 _"));
                }
                _ => {}
            }
        }
        if let Some(body) = function.body.as_ref().filter(|_| calls > 0) {
            edits.insert_line_after(&body.text[..1], "\t.reg .b64 \t%ferrogrid_record;\n");
        }
    }
}

/// Whether a call passes the parameter on: to one of `names`, or to any function by address.
fn passes_record(instruction: &Instruction<'_>, names: &BTreeSet<&str>) -> bool {
    instruction.callee().is_some_and(|callee| is_address(callee) || names.contains(callee))
}

/// Whether a callee is a register with the address of a function.
fn is_address(callee: &str) -> bool {
    callee.starts_with('%')
}

/// The functions and entry points that get the parameter, as numbers of items.
fn taking(module: &Module<'_>) -> BTreeSet<usize> {
    let calls = Calls::of(module);
    let mut open = Vec::new();
    if calls.any_calls_by_address() {
        open.extend(calls.behind_pointers(module));
    }
    let mut callers: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (at, item) in module.items.iter().enumerate() {
        for instruction in item.function().into_iter().flat_map(Function::instructions) {
            match instruction.callee() {
                Some(callee) if is_address(callee) => open.push(at),
                Some(callee) => {
                    calls
                        .definition(callee)
                        .into_iter()
                        .for_each(|it| callers.entry(it).or_default().push(at));
                }
                None if instruction.uses().contains(&RECORD_PARAMETER) => open.push(at),
                None => {}
            }
        }
    }
    let mut taking = BTreeSet::new();
    while let Some(at) = open.pop() {
        if taking.insert(at) {
            open.extend(callers.get(&at).into_iter().flatten());
        }
    }
    taking
}

/// Adds the parameter to a function or its declaration.
fn add_parameter<'t>(function: &Function<'t>, edits: &mut Edits<'t>) {
    let parameter =
        format!("\n\t.param {} {RECORD_PARAMETER}", if function.is_entry { ".u64" } else { ".b64" });
    match &function.parameters {
        Some(list) => edits.replace(list.text, with_item(Some(list), &parameter)),
        None => edits.insert_after(function.name, with_item(None, &parameter)),
    }
}

/// A list of parameters with one more at its end.
fn with_item(list: Option<&Parameters<'_>>, item: &str) -> String {
    let Some((list, last)) = list.and_then(|list| Some((list.text, list.items.last()?))) else {
        return format!("({item})");
    };
    // What stands behind the last one may be a comment.
    let end = list.rfind(last.text).map_or(list.len() - 1, |at| at + last.text.len());
    format!("{},{item}{}", &list[..end], &list[end..])
}

/// Passes the caller's parameter as the last argument of a call; `number` is that of the call in its
/// function.
fn add_argument<'t>(statement: &Statement<'t>, call: &Instruction<'t>, number: usize, edits: &mut Edits<'t>) {
    let argument = format!("ferrogrid_record_{number}");
    let mut call = call.clone();
    let callee = call.operands.iter().position(|operand| matches!(operand, Operand::Name(_))).unwrap_or(0);
    match call.operands.get_mut(callee + 1) {
        Some(Operand::Arguments(list)) => list.push(Operand::Name(&argument)),
        _ => call.operands.insert(callee + 1, Operand::Arguments(vec![Operand::Name(&argument)])),
    }
    edits.replace(
        statement.text,
        format!(
            ".param .b64 \t{argument};\n\tld.param.b64 \t%ferrogrid_record, [{RECORD_PARAMETER}];\n\t\
             st.param.b64 \t[{argument}], %ferrogrid_record;\n\t{call}"
        ),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::tests::after;

    const PANIC: &str = ".visible .func panic(\n\t.param .b64 panic_param_0\n)\n.noreturn\n{\n\tld.param.b64 %rd1, [__ferrogrid_record];\n}\n";

    fn with_record_passed(text: &str) -> String {
        after(text, pass_record)
    }

    #[test]
    fn the_record_is_passed_to_all_calls_that_may_panic() {
        let declaration = ".visible .func panic(\n\t.param .b64 panic_param_0\n)\n.noreturn\n;\n";
        let entry = ".visible .entry k(\n\t.param .u64 .ptr .align 4 k_param_0\n)\n{\n\tcall.uni (retval0), middle;\n}\n";
        let middle = ".func  (.param .b32 r) middle()\n{\n\tcall.uni panic, (param0);\n\tcall.uni panic, (param0);\n}\n";
        let text = with_record_passed(&format!("{declaration}{entry}{middle}{PANIC}"));
        for expected in [
            ".visible .func panic(\n\t.param .b64 panic_param_0,\n\t.param .b64 __ferrogrid_record\n)\n.noreturn\n;\n",
            ".visible .entry k(\n\t.param .u64 .ptr .align 4 k_param_0,\n\t.param .u64 __ferrogrid_record\n)\n{\n\t.reg .b64 \t%ferrogrid_record;\n",
            "\t.param .b64 \tferrogrid_record_0;\n\tld.param.b64 \t%ferrogrid_record, [__ferrogrid_record];\n\tst.param.b64 \t[ferrogrid_record_0], %ferrogrid_record;\n\tcall.uni (retval0), middle, (ferrogrid_record_0);\n",
            ".func  (.param .b32 r) middle(\n\t.param .b64 __ferrogrid_record)\n{\n\t.reg .b64 ",
            "\tcall.uni panic, (param0, ferrogrid_record_0);\n",
            "\tcall.uni panic, (param0, ferrogrid_record_1);\n",
            ".visible .func panic(\n\t.param .b64 panic_param_0,\n\t.param .b64 __ferrogrid_record\n)\n.noreturn\n{\n\tld.param",
        ] {
            assert!(text.contains(expected), "{expected}\nis not in\n{text}");
        }
    }

    #[test]
    fn functions_that_cannot_panic_stay_unchanged() {
        let quiet = ".visible .entry k(\n\t.param .u64 k_param_0\n)\n{\n\tcall.uni adds, (param0);\n}\n.func adds(\n\t.param .b64 a\n)\n{\n\tret;\n}\n";
        assert_eq!(with_record_passed(quiet), quiet);
        assert_eq!(
            with_record_passed(&format!("{quiet}{PANIC}")).replace(",\n\t.param .b64 __ferrogrid_record", ""),
            format!("{quiet}{PANIC}")
        );
    }

    #[test]
    fn functions_that_are_called_by_address_all_have_it_as_their_callers_expect() {
        let table = ".global .align 8 .u64 table[1] = {in_table};\n";
        let functions = ".func in_table(\n\t.param .b64 a\n)\n{\n\tret;\n}\n.func in_code()\n{\n\tret;\n}\n.func by_name()\n{\n\tret;\n}\n";
        let calls = "\tprototype_0 : .callprototype (.param .b32 _) _ (.param .b64 _);\n\tcall (retval0), %rd2, (param0), prototype_0;\n\tprototype_1 : .callprototype ()_ ();\n\tcall %rd3, prototype_1;\n";
        let entry = format!(
            ".visible .entry k()\n{{\n\t// in a comment: by_name\n\tmov.b64 \t%rd3, in_code;\n\tcall.uni by_name;\n{calls}}}\n"
        );
        let text = with_record_passed(&format!("{table}{functions}{entry}"));
        for expected in [
            ".func in_table(\n\t.param .b64 a,\n\t.param .b64 __ferrogrid_record\n)\n",
            ".func in_code(\n\t.param .b64 __ferrogrid_record)\n",
            ".func by_name()\n",
            "\tcall.uni by_name;\n",
            ".callprototype (.param .b32 _) _ (.param .b64 _,.param .b64 _);",
            "\tcall (retval0), %rd2, (param0, ferrogrid_record_0), prototype_0;\n",
            ".callprototype ()_ (.param .b64 _);",
            "\tcall %rd3, (ferrogrid_record_1), prototype_1;\n",
            ".visible .entry k(\n\t.param .u64 __ferrogrid_record)\n",
        ] {
            assert!(text.contains(expected), "{expected}\nis not in\n{text}");
        }
    }

    #[test]
    fn a_call_on_several_lines_is_one() {
        let entry = ".visible .entry k()\n{\n\tcall.uni \n\tpanic, \n\t(\n\tparam0\n\t);\n}\n";
        let text = with_record_passed(&format!("{entry}{PANIC}"));
        assert!(text.contains("\tcall.uni panic, (param0, ferrogrid_record_0);\n"), "{text}");
    }
}
