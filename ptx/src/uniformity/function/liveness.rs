//! Where the value of a register is still read: a sum is that of its terms as long as no term is given another value meanwhile.

use std::collections::HashMap;

use crate::{Body, ControlFlow, Register, Registers};

/// The registers that were asked about, each with the blocks at whose start its value is still read.
#[derive(Default)]
pub(super) struct Liveness {
    known: HashMap<Register, Vec<bool>>,
}

impl Liveness {
    /// Whether a value that `register` has before the statement `at` may be read after it.
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

/// The blocks at whose start a register's value is still read.
fn starts(register: Register, body: &Body<'_>, registers: &Registers<'_>, flow: &ControlFlow) -> Vec<bool> {
    let of_blocks: Vec<Option<bool>> =
        flow.blocks.iter().map(|block| first(register, block.statements.clone(), body, registers)).collect();
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

/// Whether the first of some statements that reads a register or replaces its value reads it; `None` if none does either.
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

/// Whether a statement gives a register another value in any case.
fn replaces(register: Register, at: usize, body: &Body<'_>, registers: &Registers<'_>) -> bool {
    registers.defined_by(at).contains(&register)
        && body.statements[at].instruction().is_some_and(|it| it.predicate.is_none())
}
