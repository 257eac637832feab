//! The barriers that threads may not reach together, with the reason.

use std::collections::{HashMap, VecDeque};

use super::super::{Divergence, Level, mark};
use super::{Analysis, needed};

impl Analysis<'_, '_> {
    /// The barriers that some threads may not reach, and those that all reach with different operands, in the function `item`.
    pub(in super::super) fn divergences(&self, item: usize) -> Vec<Divergence> {
        let mut found = Vec::new();
        for (at, statement) in self.body.statements.iter().enumerate() {
            let Some(needs) = needed(statement, self.needs, self.summaries) else { continue };
            let block = self.regions.flow.block_of(at);
            let condition = statement.instruction().and_then(|it| it.predicate);
            let decides = match condition.filter(|it| self.level_of_name(at, it.register) > needs) {
                Some(_) => Some(at),
                None if self.apart[block] > needs => self.branch_around(block, needs),
                None => None,
            };
            let brought = statement.instruction().and_then(|it| {
                // After the place in the source, or last, uniform in the threads that the mark names.
                let region = || it.operands.get(4).filter(|_| mark(it).is_some());
                let mask = || it.lane_mask().filter(|it| !self.names_a_tile(at, it));
                if needs == Level::Warp && it.callee().is_none() { mask() } else { region() }
            });
            let differs = brought.is_some_and(|it| self.level_of_operand(at, it) > needs);
            if decides.is_some() || differs {
                let because = self.because(decides.unwrap_or(at), needs);
                found.push(Divergence { item, barrier: at, needs, branch: decides, differs, because });
            }
        }
        found
    }

    /// The divergent branch because of which threads do not reach a block together.
    fn branch_around(&self, block: usize, needs: Level) -> Option<usize> {
        (0..self.body.statements.len()).find(|&at| {
            let Some(instruction) = self.body.statements[at].instruction() else { return false };
            self.decides(at, instruction)
                && self.level_of_branch(at, instruction) > needs
                && self.regions.between(self.regions.flow.block_of(at)).contains(&block)
        })
    }

    /// The shortest chain of statements from a branch's condition back to the source of the divergence.
    fn because(&self, branch: usize, needs: Level) -> Vec<usize> {
        let mut came_from: HashMap<usize, usize> = HashMap::new();
        let mut open = VecDeque::from([branch]);
        while let Some(at) = open.pop_front() {
            if at != branch && self.is_source(at, needs) {
                let way = std::iter::successors(Some(at), |at| came_from.get(at).copied());
                let mut way: Vec<usize> = way.take_while(|&at| at != branch).collect();
                way.reverse();
                return way;
            }
            for &register in self.registers.used_by(at) {
                if self.level_of_register(register) <= needs {
                    continue;
                }
                let definitions = self.registers.definitions(register).iter().copied();
                for next in definitions.chain(self.parted_by[register.0]) {
                    if next != branch && !came_from.contains_key(&next) {
                        came_from.insert(next, at);
                        open.push_back(next);
                    }
                }
            }
        }
        Vec::new()
    }

    /// Whether a statement is itself the source of a divergence, rather than the values that it reads.
    fn is_source(&self, at: usize, needs: Level) -> bool {
        let Some(instruction) = self.body.statements[at].instruction() else { return false };
        if self.registers.defined_by(at).is_empty() {
            return false;
        }
        let by_itself = self.special[at]
            .iter()
            .any(|name| self.level_of_special(name).is_some_and(|level| level > needs));
        let of_registers = self.registers.used_by(at).iter().map(|it| self.level_of_register(*it));
        by_itself
            || self.level_of_definition(at, instruction) > of_registers.max().unwrap_or_default().max(needs)
    }
}
