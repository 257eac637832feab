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
    statements.into_iter().find_map(|at| {
        let reads = registers.used_by(at).contains(&register);
        (reads || replaces(register, at, body, registers)).then_some(reads)
    })
}

/// Whether a statement overwrites a register unconditionally.
fn replaces(register: Register, at: usize, body: &Body<'_>, registers: &Registers<'_>) -> bool {
    registers.defined_by(at).contains(&register)
        && body.statements[at].instruction().is_some_and(|it| it.predicate.is_none())
}
