//! Numbers that registers have behind a divergent branch.

use super::Analysis;
use crate::{Instruction, Operand, Register};

impl Analysis<'_, '_> {
    /// Whether a register has the same number on all ways out of the blocks behind a branch: LLVM shares a register between a constant in
    /// a loop and the first value of a later one.
    pub(super) fn leaves_as_one_number(&self, register: Register, branch: usize, inside: &[bool]) -> bool {
        let blocks = &self.regions.flow.blocks;
        let is_within = |block: usize| inside[block] || block == branch;
        let leaves = |block: &usize| {
            is_within(*block) && blocks[*block].successors.iter().any(|&next| !is_within(next))
        };
        let mut open: Vec<usize> = (0..blocks.len()).filter(leaves).collect();
        let mut seen = vec![false; blocks.len()];
        let mut number = None;
        while let Some(block) = open.pop() {
            if std::mem::replace(&mut seen[block], true) {
                continue;
            }
            let mut backwards = blocks[block].statements.clone().rev();
            let Some(at) = backwards.find(|&at| self.registers.defined_by(at).contains(&register)) else {
                // At the entry it has no value.
                if block == 0 {
                    return false;
                }
                open.extend(&blocks[block].predecessors);
                continue;
            };
            let found = self.body.statements[at].instruction().and_then(moved_number);
            if found.is_none() || number.is_some_and(|number| found != Some(number)) {
                return false;
            }
            number = found;
        }
        number.is_some()
    }
}

/// The number that an instruction moves to its register, in any case.
fn moved_number<'t>(instruction: &Instruction<'t>) -> Option<&'t str> {
    match instruction.operands.as_slice() {
        [_, Operand::Immediate(number)]
            if instruction.operation() == "mov" && instruction.predicate.is_none() =>
        {
            Some(number)
        }
        _ => None,
    }
}
