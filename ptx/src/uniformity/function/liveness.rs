//! Liveness of registers: a sum equals that of its terms while no term is reassigned.

use std::collections::HashMap;

use crate::{Body, ControlFlow, Register, Registers};

/// A cache: the blocks at whose start each queried register is live.
#[derive(Default)]
pub(super) struct Liveness {
    known: HashMap<Register, Vec<bool>>,
}

impl Liveness {
    /// Whether `register` is live before the statement `at`.
    pub(super) fn outlasts(
        &mut self,
        register: Register,
        at: usize,
        body: &Body<'_>,
        registers: &Registers<'_>,
        flow: &ControlFlow,
    ) -> bool {
        if replaces(register, at, body, registers) {
            return false;
        }
        let block = &flow.blocks[flow.block_of(at)];
        match first(register, at + 1..block.statements.end, body, registers) {
            Some(is_read) => is_read,
            None => {
                let starts =
                    self.known.entry(register).or_insert_with(|| starts(register, body, registers, flow));
                block.successors.iter().any(|&next| starts[next])
            }
        }
    }
}

/// The blocks at whose start a register is live.
fn starts(register: Register, body: &Body<'_>, registers: &Registers<'_>, flow: &ControlFlow) -> Vec<bool> {
    // Only the statements that name the register are looked at: functions have thousands of both.
    let mut events: Vec<usize> = registers.uses(register).to_vec();
    let replacing = registers.definitions(register).iter().copied();
    events.extend(replacing.filter(|&at| replaces(register, at, body, registers)));
    events.sort_unstable();
    let mut of_blocks: Vec<Option<bool>> = vec![None; flow.blocks.len()];
    for at in events {
        of_blocks[flow.block_of(at)].get_or_insert_with(|| registers.used_by(at).contains(&register));
    }
    let mut is_read: Vec<bool> = of_blocks.iter().map(|it| *it == Some(true)).collect();
    let mut open: Vec<usize> = (0..is_read.len()).filter(|&block| is_read[block]).collect();
    while let Some(block) = open.pop() {
        for &before in &flow.blocks[block].predecessors {
            if of_blocks[before].is_none() && !std::mem::replace(&mut is_read[before], true) {
                open.push(before);
            }
        }
    }
    is_read
}

/// Whether the first statement that reads or overwrites a register reads it; `None` if there is none.
fn first(
    register: Register,
    statements: std::ops::Range<usize>,
    body: &Body<'_>,
    registers: &Registers<'_>,
) -> Option<bool> {
    let from = |all: &[usize]| all.partition_point(|&at| at < statements.start);
    let (uses, definitions) = (registers.uses(register), registers.definitions(register));
    let read = uses.get(from(uses)).copied();
    let replaced = definitions[from(definitions)..]
        .iter()
        .copied()
        .take_while(|&at| at < statements.end && read.is_none_or(|read| at < read))
        .find(|&at| replaces(register, at, body, registers));
    match (read, replaced) {
        (_, Some(_)) => Some(false),
        (Some(read), None) if read < statements.end => Some(true),
        _ => None,
    }
}

/// Whether a statement overwrites a register unconditionally.
fn replaces(register: Register, at: usize, body: &Body<'_>, registers: &Registers<'_>) -> bool {
    registers.defined_by(at).contains(&register)
        && body.statements[at].instruction().is_some_and(|it| it.predicate.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Module;

    /// `%r1` is read and replaced by one statement, replaced under a condition, replaced before it is read, and
    /// not named in a block of the loop.
    const PROGRAM: &str = ".visible .entry k()\n{\n.reg .pred %p<2>; .reg .b32 %r<3>; .reg .v2 .b32 %v;\n\
        mov.b32 %r1, 0; mov.b32 %r2, %v.x;\n$A: add.s32 %r2, %r2, 1; @%p1 bra $B;\nadd.s32 %r1, %r1, %r2;\n\
        @%p1 mov.b32 %r1, 5;\n@!%p1 bra $A;\nmov.b32 %r1, %r2; mov.b32 %r2, %r1;\n$B: @%p1 bra $A;\nmov.b32 %r1, 1;\nret;\n}\n";

    /// [`first`] by its definition.
    fn first_of_all(
        register: Register,
        mut statements: std::ops::Range<usize>,
        body: &Body<'_>,
        registers: &Registers<'_>,
    ) -> Option<bool> {
        statements.find_map(|at| {
            let reads = registers.used_by(at).contains(&register);
            (reads || replaces(register, at, body, registers)).then_some(reads)
        })
    }

    #[test]
    fn the_lists_of_a_register_give_what_all_statements_give() {
        let module = Module::parse(PROGRAM).unwrap();
        let body = module.functions().next().unwrap().body.as_ref().unwrap();
        let (registers, flow) = (Registers::of(body), ControlFlow::of(body, |_| false));
        let mut seen = [0; 3];
        for register in (0..registers.len()).map(Register) {
            let mut of_blocks = starts(register, body, &registers, &flow).into_iter();
            for block in &flow.blocks {
                let expected = first_of_all(register, block.statements.clone(), body, &registers);
                let is_live = of_blocks.next().unwrap();
                assert!(expected.is_none_or(|is_read| is_live == is_read), "{register:?} {block:?}");
                for range in block.statements.clone().map(|at| at..block.statements.end) {
                    let expected = first_of_all(register, range.clone(), body, &registers);
                    assert_eq!(first(register, range, body, &registers), expected, "{register:?} {block:?}");
                    seen[expected.map_or(0, |is_read| 1 + usize::from(is_read))] += 1;
                }
            }
        }
        assert!(seen.iter().all(|count| *count > 5), "{seen:?}");
        assert_eq!(registers.len(), 4, "an element of a vector is the vector: {registers:?}");
    }
}
