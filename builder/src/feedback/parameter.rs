//! Gives kernels and functions that may panic one more parameter: the address of the launch's failure record, under the
//! name by which device code reads it. So a panic is known to be that of its launch, and costs nothing where there is none:
//! an entry point's parameters are at hand, and it reads this one only on the way to a panic. It must not know what is in
//! the record.

use std::collections::{BTreeMap, BTreeSet};

use super::functions::{Functions, Item, Kind, words};

/// `ferrogrid_device::failure::RECORD_PARAMETER`.
pub(crate) const RECORD: &str = "__ferrogrid_record";

/// What stands before a call of a function by its address.
const ADDRESS_CALL: &str = " .callprototype ";

/// The text with that parameter: of all functions that read it, that call one which has it, and that may be called by
/// address; and of the calls of these.
pub(super) fn hand_on(text: &str) -> String {
    if !text.contains(RECORD) && !text.contains(ADDRESS_CALL) {
        return text.to_owned();
    }
    let functions = Functions::parse(text);
    let taking = taking(&functions);
    let names = taking.iter().filter_map(|&at| functions.items[at].kind.definition()).collect();
    let mut out = String::with_capacity(text.len());
    for (at, item) in functions.items.iter().enumerate() {
        match item.kind {
            Kind::Entry | Kind::Definition(_) if taking.contains(&at) => {
                write_function(item.text, &names, &mut out)
            }
            Kind::Declaration(name) if names.contains(name) => out.push_str(&with_parameter(item.text)),
            _ => out.push_str(item.text),
        }
    }
    out
}

/// The functions and entry points that get the parameter.
fn taking(functions: &Functions<'_>) -> BTreeSet<usize> {
    let items = || functions.items.iter().enumerate();
    let are_called_by_address = items().any(|(_, item)| item.text.contains(ADDRESS_CALL));
    let definitions: BTreeMap<&str, usize> =
        items().filter_map(|(at, item)| Some((item.kind.definition()?, at))).collect();
    let mut callers: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut open = Vec::new();
    for (at, item) in items() {
        for statement in statements(body(item)).filter(|statement| !statement.trim_start().starts_with("//"))
        {
            match callee(statement) {
                Some((Callee::Address, _)) => open.push(at),
                Some((Callee::Function(name), _)) => {
                    definitions.get(name).into_iter().for_each(|&it| callers.entry(it).or_default().push(at));
                }
                None if statement.contains(RECORD) => open.push(at),
                None if !are_called_by_address => {}
                None => open.extend(words(statement).filter_map(|word| definitions.get(word))),
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

/// What a function does, or what a variable holds.
fn body<'a>(item: &Item<'a>) -> &'a str {
    match item.kind {
        Kind::Entry | Kind::Definition(_) => item.text.find("\n{").map_or("", |at| &item.text[at + 1..]),
        Kind::Variable(_) | Kind::Other => item.text,
        Kind::Declaration(_) => "",
    }
}

/// What a statement calls.
enum Callee<'a> {
    Function(&'a str),
    /// A function whose address is in a register.
    Address,
}

/// The callee of `call.uni (retval0), name, (param0);`, and of its forms without a result or arguments, and where its
/// name ends; `None` if the statement is no call.
fn callee(statement: &str) -> Option<(Callee<'_>, usize)> {
    let rest = statement.trim_start().strip_prefix("call")?;
    let rest = rest.strip_prefix(".uni").unwrap_or(rest).strip_prefix(char::is_whitespace)?.trim_start();
    let rest = if rest.starts_with('(') { rest.split_once("),")?.1.trim_start() } else { rest };
    let is_address = rest.starts_with('%');
    let name = words(rest).next()?;
    let end = statement.len() - rest.len() + usize::from(is_address) + name.len();
    Some((if is_address { Callee::Address } else { Callee::Function(name) }, end))
}

/// The lines of a body; but a call on several lines is one piece.
fn statements(body: &str) -> impl Iterator<Item = &str> {
    let mut rest = body;
    std::iter::from_fn(move || {
        let line = &rest[..rest.find('\n').map_or(rest.len(), |at| at + 1)];
        let goes_on = line.trim_start().starts_with("call") && !line.contains(';');
        let end = if goes_on { rest.find(";\n").map_or(rest.len(), |at| at + 2) } else { line.len() };
        let (statement, after) = rest.split_at(end);
        rest = after;
        (!statement.is_empty()).then_some(statement)
    })
}

/// Writes a function or an entry point that gets the parameter; `taking` are the functions that do.
fn write_function(text: &str, taking: &BTreeSet<&str>, out: &mut String) {
    let (head, body) = text.split_at(text.find("\n{\n").map_or(text.len(), |at| at + "\n{\n".len()));
    out.push_str(&with_parameter(head));
    let mut changed = String::with_capacity(body.len() + body.len() / 16);
    let mut calls = 0;
    for statement in statements(body) {
        match callee(statement) {
            Some((Callee::Function(name), _)) if !taking.contains(name) => changed.push_str(statement),
            Some((_, end)) => {
                changed.push_str(&with_argument(statement, end, calls));
                calls += 1;
            }
            None if statement.contains(ADDRESS_CALL) => {
                let last = statement.rfind('(').unwrap_or(statement.len());
                changed.push_str(&with_item(statement, last, ".param .b64 _"));
            }
            None => changed.push_str(statement),
        }
    }
    if calls > 0 {
        out.push_str("\t.reg .b64 \t%ferrogrid_record;\n");
    }
    out.push_str(&changed);
}

/// The head of a function, or its declaration, with the parameter.
fn with_parameter(head: &str) -> String {
    let (directive, ty) = if head.contains(".entry ") { (".entry", ".u64") } else { (".func", ".b64") };
    let directive_end = head.find(directive).map_or(0, |at| at + directive.len());
    let rest = head[directive_end..].trim_start();
    let rest = if rest.starts_with('(') { rest.split_once(')').map_or("", |(_, rest)| rest) } else { rest };
    with_item(head, head.len() - rest.len(), &format!("\n\t.param {ty} {RECORD}"))
}

/// A call with the parameter of the caller as its last argument; the callee's name ends at `end`. `number` is that of
/// the call in its function.
fn with_argument(statement: &str, end: usize, number: usize) -> String {
    let argument = format!("ferrogrid_record_{number}");
    let has_list = statement[end..].contains('(');
    let call = if has_list {
        with_item(statement, end, &format!(" {argument}"))
    } else {
        format!("{}, ({argument}){}", &statement[..end], &statement[end..])
    };
    format!(
        "\t.param .b64 \t{argument};\n\tld.param.b64 \t%ferrogrid_record, [{RECORD}];\n\tst.param.b64 \t[{argument}], %ferrogrid_record;\n{call}"
    )
}

/// The text with `item` at the end of the first list in parentheses from `from` on.
fn with_item(text: &str, from: usize, item: &str) -> String {
    let Some(open) = text[from..].find('(').map(|at| from + at + 1) else { return text.to_owned() };
    let close = text[open..].find(')').map_or(text.len(), |at| open + at);
    let list = text[open..close].trim_end();
    if list.trim().is_empty() {
        return format!("{}{}{}", &text[..open], item.trim_start_matches(' '), &text[close..]);
    }
    let end = open + list.len();
    format!("{},{item}{}", &text[..end], &text[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    const PANIC: &str = ".visible .func panic(\n\t.param .b64 panic_param_0\n)\n.noreturn\n{\n\tld.param.b64 %rd1, [__ferrogrid_record];\n}\n";

    #[test]
    fn the_parameter_goes_down_all_calls_that_may_end_in_a_panic() {
        let declaration = ".visible .func panic(\n\t.param .b64 panic_param_0\n)\n.noreturn\n;\n";
        let entry = ".visible .entry k(\n\t.param .u64 .ptr .align 4 k_param_0\n)\n{\n\tcall.uni (retval0), middle;\n}\n";
        let middle = ".func  (.param .b32 r) middle()\n{\n\tcall.uni panic, (param0);\n\tcall.uni panic, (param0);\n}\n";
        let text = hand_on(&format!("{declaration}{entry}{middle}{PANIC}"));
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
    fn what_cannot_panic_stays_as_it_is() {
        let quiet = ".visible .entry k(\n\t.param .u64 k_param_0\n)\n{\n\tcall.uni adds, (param0);\n}\n.func adds(\n\t.param .b64 a\n)\n{\n\tret;\n}\n";
        assert_eq!(hand_on(quiet), quiet);
        assert_eq!(
            hand_on(&format!("{quiet}{PANIC}")).replace(",\n\t.param .b64 __ferrogrid_record", ""),
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
        let text = hand_on(&format!("{table}{functions}{entry}"));
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
        let text = hand_on(&format!("{entry}{PANIC}"));
        assert!(text.contains("\tpanic, \n\t(\n\tparam0, ferrogrid_record_0\n\t);\n"), "{text}");
    }
}
