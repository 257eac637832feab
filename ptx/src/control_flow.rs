//! The control flow of a function: its basic blocks, and their dominators.

use std::mem;
use std::ops::Range;

use crate::names::NameMap;
use crate::{Body, Instruction, Operand, Statement, StatementKind};

/// A basic block: it is entered at its first statement and left after its last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Its statements.
    pub statements: Range<usize>,
    /// The blocks that may follow it.
    pub successors: Vec<usize>,
    /// The blocks that it may follow.
    pub predecessors: Vec<usize>,
    /// Whether the function may return at its end.
    pub returns: bool,
}

/// The blocks of a body. The first is the entry.
#[derive(Debug, Clone)]
pub struct ControlFlow {
    /// In the order of the text.
    pub blocks: Vec<Block>,
    block_of: Vec<usize>,
}

impl ControlFlow {
    /// The blocks of `body`. Calls for which `never_returns` holds end their path, as `trap` and `exit` do.
    pub fn of(body: &Body<'_>, never_returns: impl Fn(&Instruction<'_>) -> bool) -> Self {
        let statements = &body.statements;
        let labels = Labels::of(statements);
        let mut begins = vec![false; statements.len() + 1];
        begins[0] = true;
        let ends_path = |instruction: &Instruction<'_>| instruction.ends_path() || never_returns(instruction);
        for (at, statement) in statements.iter().enumerate() {
            let Some(instruction) = statement.instruction() else { continue };
            labels.targets(at, instruction).into_iter().for_each(|target| begins[target] = true);
            begins[at + 1] |= ends_path(instruction) || is_branch(instruction);
        }
        let starts: Vec<usize> = (0..statements.len()).filter(|at| begins[*at]).collect();
        let mut block_of = vec![0; statements.len()];
        let mut blocks: Vec<Block> = Vec::with_capacity(starts.len());
        for (number, &start) in starts.iter().enumerate() {
            let end = starts.get(number + 1).copied().unwrap_or(statements.len());
            block_of[start..end].fill(number);
            blocks.push(Block {
                statements: start..end,
                successors: Vec::new(),
                predecessors: Vec::new(),
                returns: false,
            });
        }
        for number in 0..blocks.len() {
            let last = blocks[number].statements.end - 1;
            let instruction = statements[last].instruction();
            let mut successors: Vec<usize> = match instruction {
                Some(instruction) => {
                    labels.targets(last, instruction).into_iter().map(|at| block_of[at]).collect()
                }
                None => Vec::new(),
            };
            let goes_on = instruction.is_none_or(|instruction| !ends_path(instruction));
            if goes_on && number + 1 < blocks.len() {
                successors.push(number + 1);
            }
            successors.sort_unstable();
            successors.dedup();
            let falls_out = goes_on && number + 1 == blocks.len();
            blocks[number].returns = falls_out || instruction.is_some_and(|it| it.operation() == "ret");
            successors.iter().for_each(|&next| blocks[next].predecessors.push(number));
            blocks[number].successors = successors;
        }
        ControlFlow { blocks, block_of }
    }

    /// The block that a statement is in.
    pub fn block_of(&self, statement: usize) -> usize {
        self.block_of[statement]
    }

    /// Whether a path from one of the statements `from`, behind it, gets to a goal before it gets to an end.
    pub fn reaches(
        &self,
        from: &[usize],
        is_goal: impl Fn(usize) -> bool,
        is_end: impl Fn(usize) -> bool,
    ) -> bool {
        let mut seen = vec![false; self.blocks.len()];
        // Blocks, and the statements from which on they are searched.
        let mut next: Vec<(usize, usize)> = from.iter().map(|&at| (self.block_of(at), at + 1)).collect();
        while let Some((number, start)) = next.pop() {
            let block = &self.blocks[number];
            match (start..block.statements.end).find(|&at| is_goal(at) || is_end(at)) {
                Some(at) if is_goal(at) => return true,
                Some(_) => continue,
                None => {}
            }
            for &follower in &block.successors {
                if !mem::replace(&mut seen[follower], true) {
                    next.push((follower, self.blocks[follower].statements.start));
                }
            }
        }
        false
    }

    /// The immediate dominator of each block: the last block on every path from the entry to it. `None` for
    /// the entry and for unreachable blocks.
    pub fn dominators(&self) -> Vec<Option<usize>> {
        let successors = |block: usize| self.blocks[block].successors.as_slice();
        let predecessors = |block: usize| self.blocks[block].predecessors.as_slice();
        immediate_dominators(self.blocks.len(), 0, successors, predecessors)
    }

    /// The immediate post-dominator of each block: the first block on every path from it to a return. `None`
    /// where there is none before the return itself, and for blocks from which no path returns. Paths that
    /// end otherwise, in a `trap`, an `exit` or an endless loop, do not count.
    pub fn post_dominators(&self) -> Vec<Option<usize>> {
        let count = self.blocks.len();
        // The graph backwards, with a block for the return itself.
        let mut backward: Vec<Vec<usize>> =
            self.blocks.iter().map(|block| block.predecessors.clone()).collect();
        backward.push((0..count).filter(|&block| self.blocks[block].returns).collect());
        let mut forward: Vec<Vec<usize>> = self.blocks.iter().map(|block| block.successors.clone()).collect();
        for &block in &backward[count] {
            forward[block].push(count);
        }
        forward.push(Vec::new());
        let mut found =
            immediate_dominators(count + 1, count, |block| &backward[block], |block| &forward[block]);
        found.truncate(count);
        found.into_iter().map(|block| block.filter(|&block| block != count)).collect()
    }
}

fn is_branch(instruction: &Instruction<'_>) -> bool {
    matches!(instruction.operation(), "bra" | "brx" | "ret")
}

/// By "A Simple, Fast Dominance Algorithm" of Cooper, Harvey and Kennedy.
fn immediate_dominators<'g>(
    count: usize,
    entry: usize,
    successors: impl Fn(usize) -> &'g [usize],
    predecessors: impl Fn(usize) -> &'g [usize],
) -> Vec<Option<usize>> {
    let mut dominators: Vec<Option<usize>> = vec![None; count];
    if count == 0 {
        return dominators;
    }
    let order = post_order(count, entry, &successors);
    let mut rank = vec![0; count];
    order.iter().enumerate().for_each(|(at, &block)| rank[block] = at);
    dominators[entry] = Some(entry);
    let mut has_changed = true;
    while has_changed {
        has_changed = false;
        for &block in order.iter().rev().filter(|&&block| block != entry) {
            let known = predecessors(block).iter().copied().filter(|&before| dominators[before].is_some());
            let common = known.reduce(|mut a, mut b| {
                while a != b {
                    while rank[a] < rank[b] {
                        a = dominators[a].unwrap_or(entry);
                    }
                    while rank[b] < rank[a] {
                        b = dominators[b].unwrap_or(entry);
                    }
                }
                a
            });
            if common.is_some() && dominators[block] != common {
                dominators[block] = common;
                has_changed = true;
            }
        }
    }
    dominators[entry] = None;
    dominators
}

/// The reachable blocks in post-order.
fn post_order<'g>(count: usize, entry: usize, successors: &impl Fn(usize) -> &'g [usize]) -> Vec<usize> {
    let mut seen = vec![false; count];
    let mut order = Vec::with_capacity(count);
    let mut open = vec![(entry, 0)];
    seen[entry] = true;
    while let Some((block, next)) = open.last_mut() {
        match successors(*block).get(*next) {
            Some(&successor) => {
                *next += 1;
                if !std::mem::replace(&mut seen[successor], true) {
                    open.push((successor, 0));
                }
            }
            None => {
                order.push(*block);
                open.pop();
            }
        }
    }
    order
}

/// The labels and tables of targets of a body, by scope.
struct Labels<'s> {
    /// The scope of each statement, and the one around each scope.
    scope_of: Vec<usize>,
    around: Vec<usize>,
    labels: NameMap<(usize, &'s str), usize>,
    tables: NameMap<(usize, &'s str), &'s [&'s str]>,
}

impl<'s> Labels<'s> {
    fn of<'t: 's>(statements: &'s [Statement<'t>]) -> Self {
        let mut found = Labels {
            scope_of: Vec::new(),
            around: vec![0],
            labels: NameMap::default(),
            tables: NameMap::default(),
        };
        let mut scope = 0;
        for (at, statement) in statements.iter().enumerate() {
            match &statement.kind {
                StatementKind::Open => {
                    found.around.push(scope);
                    scope = found.around.len() - 1;
                }
                StatementKind::Close => scope = found.around[scope],
                StatementKind::Label(name) => {
                    found.labels.insert((scope, name), at);
                }
                StatementKind::Targets { name, targets } => {
                    found.tables.insert((scope, name), targets);
                }
                _ => {}
            }
            found.scope_of.push(scope);
        }
        found
    }

    /// Looks a name up in the scope of a statement and in those around it.
    fn find<T: Copy>(&self, map: &NameMap<(usize, &'s str), T>, statement: usize, name: &str) -> Option<T> {
        let mut scope = self.scope_of[statement];
        loop {
            match map.get(&(scope, name)) {
                Some(found) => return Some(*found),
                None if scope == 0 => return None,
                None => scope = self.around[scope],
            }
        }
    }

    /// The statements that a branch may go to.
    fn targets(&self, statement: usize, instruction: &Instruction<'_>) -> Vec<usize> {
        let name = |at: usize| instruction.operands.get(at).and_then(Operand::name);
        match instruction.operation() {
            "bra" => {
                name(0).and_then(|label| self.find(&self.labels, statement, label)).into_iter().collect()
            }
            "brx" => {
                let table =
                    name(1).and_then(|table| self.find(&self.tables, statement, table)).unwrap_or_default();
                table.iter().filter_map(|label| self.find(&self.labels, statement, label)).collect()
            }
            _ => Vec::new(),
        }
    }
}
