//! The marks of device code that state what must be proven (`device/src/compiler/mark.rs`): their places in
//! the source, and their removal after the proof.

use std::collections::BTreeSet;

use ferrogrid_ptx::uniformity::Program;
use ferrogrid_ptx::{
    Body, Declared, Edits, Function, Instruction, Item, Linkage, Module, Operand, Registers, StatementKind,
};

/// Whether an instruction is a mark.
pub(super) fn is_mark(instruction: &Instruction<'_>) -> bool {
    instruction.operation() == "ferrogrid"
}

/// Whether an instruction is the mark of an operation of a warp.
pub(crate) fn is_of_warp(instruction: &Instruction<'_>) -> bool {
    instruction.opcode == "ferrogrid.together.warp"
}

/// Whether a statement is a barrier right behind its mark, with no other path to it; a cluster's barrier is
/// two instructions.
pub(super) fn is_marked(function: &Function<'_>, statement: usize) -> bool {
    let statements = function.statements();
    if statements[statement].instruction().is_none_or(|barrier| barrier.predicate.is_some()) {
        return false;
    }
    for before in statements[..statement].iter().rev() {
        match &before.kind {
            StatementKind::Label(label) if is_target(function, label) => return false,
            StatementKind::Instruction(it) if it.opcode == "barrier.cluster.arrive" => {}
            StatementKind::Instruction(it) => return is_mark(it) && !is_of_warp(it),
            _ => {}
        }
    }
    false
}

/// Whether code branches to a label; other labels belong to the line table.
fn is_target(function: &Function<'_>, label: &str) -> bool {
    function.statements().iter().any(|statement| match &statement.kind {
        StatementKind::Instruction(it) => it.uses().contains(&label),
        StatementKind::Targets { targets, .. } => targets.contains(&label),
        _ => false,
    })
}

/// The file, line and column of a mark: those of the user's call.
pub(crate) fn place(
    module: &Module<'_>,
    function: &Function<'_>,
    statement: usize,
) -> Option<(String, (usize, usize))> {
    let body = function.body.as_ref()?;
    let instruction = body.statements[statement].instruction().filter(|it| is_mark(it))?;
    let [file, length, line, column, ..] = instruction.operands.as_slice() else { return None };
    let registers = Registers::of(body);
    let number = |operand| constant(body, &registers, statement, operand)?.parse::<usize>().ok();
    let name = constant(body, &registers, statement, file)?;
    let text = module.items.iter().find_map(|item| match item {
        Item::Variable(variable) => variable.names.iter().find(|declared| declared.name == name)?.initializer,
        _ => None,
    })?;
    let bytes = text.trim_matches(['{', '}']).split(',').map(|byte| byte.trim().parse::<u8>());
    let bytes = bytes.take(number(length)?).collect::<Result<Vec<u8>, _>>().ok()?;
    Some((String::from_utf8(bytes).ok()?, (number(line)?, number(column)?)))
}

/// The constant value of an operand: a number or a symbol.
fn constant<'t>(
    body: &Body<'t>,
    registers: &Registers<'t>,
    at: usize,
    operand: &Operand<'t>,
) -> Option<&'t str> {
    let name = match operand {
        Operand::Immediate(number) => return Some(number),
        Operand::Name(name) => name,
        _ => return None,
    };
    let Some(register) = registers.named(at, name) else { return Some(name) };
    let [made] = registers.definitions(register) else { return None };
    let instruction = body.statements[*made].instruction().filter(|it| it.predicate.is_none())?;
    match (instruction.operation(), instruction.operands.as_slice()) {
        ("mov" | "cvta", [_, source]) => constant(body, registers, *made, source),
        _ => None,
    }
}

/// Removes all marks, and what only they use. An assumption becomes a move.
pub(crate) fn take<'t>(program: &Program<'_, 't>, edits: &mut Edits<'t>) {
    let module = program.module();
    let (mut freed, mut kept) = (BTreeSet::new(), BTreeSet::new());
    for (item, of_module) in module.items.iter().enumerate() {
        match of_module {
            Item::Function(Function { body: Some(body), .. }) => {
                let gone = take_of(body, || program.registers(item, body), edits);
                for (at, statement) in body.statements.iter().enumerate() {
                    let names = statement.instruction().map(Instruction::uses).unwrap_or_default();
                    let variables = names.into_iter().filter(|name| !name.starts_with('%'));
                    if gone.contains(&at) { &mut freed } else { &mut kept }.extend(variables);
                }
            }
            Item::Variable(variable) => kept.extend(variable.names.iter().flat_map(Declared::mentions)),
            _ => {}
        }
    }
    for item in &module.items {
        let Item::Variable(variable) = item else { continue };
        let is_gone =
            |declared: &Declared<'_>| freed.contains(declared.name) && !kept.contains(declared.name);
        if variable.linkage == Linkage::Internal && variable.names.iter().all(is_gone) {
            edits.remove_lines(variable.text);
        }
    }
}

/// The same in one body; returns the removed statements.
fn take_of<'p, 't: 'p>(
    body: &Body<'t>,
    registers: impl FnOnce() -> &'p Registers<'t>,
    edits: &mut Edits<'t>,
) -> BTreeSet<usize> {
    let is_at =
        |at: usize, test: fn(&Instruction<'_>) -> bool| body.statements[at].instruction().is_some_and(test);
    let marks = (0..body.statements.len()).filter(|&at| is_at(at, is_mark));
    let (assumed, mut open): (Vec<usize>, Vec<usize>) =
        marks.partition(|&at| is_at(at, |it| it.has("assumed")));
    for at in assumed {
        let text = body.statements[at].text;
        edits.replace(text, text.replacen("ferrogrid.assumed.block", "mov.b32", 1));
    }
    if open.is_empty() {
        return BTreeSet::new();
    }
    let registers = registers();
    let mut gone: BTreeSet<usize> = open.iter().copied().collect();
    while let Some(at) = open.pop() {
        for &register in registers.used_by(at) {
            let made = registers.definitions(register);
            let is_idle = registers.uses(register).iter().all(|user| gone.contains(user))
                && made
                    .iter()
                    .all(|&at| is_at(at, |it| matches!(it.operation(), "mov" | "cvta" | "add" | "cvt")));
            if is_idle {
                open.extend(made.iter().filter(|&&at| gone.insert(at)));
            }
        }
    }
    gone.iter().for_each(|&at| edits.remove_lines(body.statements[at].text));
    gone
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = ".global .align 1 .b8 name[6] = {97, 46, 114, 115, 120, 120};\n.global .align 1 .b8 other[2] = {97, 98};\n\
        .visible .entry k()\n{\n\t.reg .b32 %r<9>;\n\t.reg .b64 %rd<9>;\n\
        \tmov.b64 %rd1, name;\n\tcvta.global.u64 %rd2, %rd1;\n\tmov.b64 %rd3, 4;\n\tmov.b32 %r3, 7;\n\tmov.b32 %r4, 9;\n\
        \tmov.b64 %rd4, other;\n\tld.global.b32 %r5, [%rd4];\n\
        \tferrogrid.together.block %rd2, %rd3, %r3, %r4, %rd4;\n\tbar.sync 0;\n\
        \tferrogrid.assumed.block %r2, %r1;\n\tst.global.b32 [%rd5], %r4;\n\tret;\n}\n";

    #[test]
    fn marks_are_removed_with_instructions_that_only_they_use() {
        let module = Module::parse(TEXT).unwrap();
        let mut edits = Edits::new(TEXT);
        take(&Program::of(&module), &mut edits);
        assert_eq!(
            edits.apply(),
            ".global .align 1 .b8 other[2] = {97, 98};\n.visible .entry k()\n{\n\t.reg .b32 %r<9>;\n\t.reg .b64 %rd<9>;\n\
             \tmov.b32 %r4, 9;\n\tmov.b64 %rd4, other;\n\tld.global.b32 %r5, [%rd4];\n\tbar.sync 0;\n\tmov.b32 %r2, %r1;\n\
             \tst.global.b32 [%rd5], %r4;\n\tret;\n}\n"
        );
    }

    #[test]
    fn a_mark_has_its_source_location() {
        let module = Module::parse(TEXT).unwrap();
        let function = module.functions().next().unwrap();
        let at = function.statements().iter().position(|it| it.instruction().is_some_and(is_mark)).unwrap();
        assert_eq!(place(&module, function, at), Some(("a.rs".to_owned(), (7, 9))));
        let barrier = function.statements().iter().position(|it| it.text == "bar.sync 0;").unwrap();
        assert!(is_marked(function, barrier) && !is_marked(function, at));
        assert_eq!(place(&module, function, barrier), None);
        let twice = TEXT.replace("\tmov.b32 %r4, 9;", "\tmov.b32 %r3, 9;\n\tmov.b32 %r4, 9;");
        let module = Module::parse(&twice).unwrap();
        assert_eq!(place(&module, module.functions().next().unwrap(), at + 1), None, "not one line");
    }

    #[test]
    fn a_barrier_with_other_predecessors_than_its_mark_is_analysed_itself() {
        let marked = |text: &str| {
            let module = Module::parse(text).unwrap();
            let function = module.functions().next().unwrap();
            let barrier =
                function.statements().iter().position(|it| it.text.ends_with("bar.sync 0;")).unwrap();
            is_marked(function, barrier)
        };
        assert!(marked(TEXT) && marked(&TEXT.replace("\tbar.sync", "$L:\n\tbar.sync")));
        assert!(!marked(&TEXT.replace("\tbar.sync", "$L:\n\tbar.sync").replace("\tret;", "\tbra $L;")));
        assert!(!marked(&TEXT.replace("\tbar.sync", "\t@%p1 bar.sync")));
        assert!(!marked(&TEXT.replace("\tbar.sync", "\tadd.s32 %r1, %r1, 1;\n\tbar.sync")));
    }
}
