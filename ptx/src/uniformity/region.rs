//! The region of a branch: the blocks between it and the point where its paths meet again.

use crate::{Body, ControlFlow};

/// The control flow of a body without paths that only end in a panic.
pub(super) struct Regions {
    pub(super) flow: ControlFlow,
    is_live: Vec<bool>,
    meets_at: Vec<Option<usize>>,
}

impl Regions {
    /// `waits` tells which statements wait for other threads.
    pub(super) fn of(body: &Body<'_>, mut flow: ControlFlow, waits: impl Fn(usize) -> bool) -> Self {
        let mut is_live = leading_to(&flow, |block| flow.blocks[block].returns);
        // A loop that is never left, with a barrier in it, is not a panic: its barriers count as an end.
        let lost: Vec<usize> = (0..flow.blocks.len())
            .filter(|&block| !is_live[block] && flow.blocks[block].statements.clone().any(&waits))
            .collect();
        if !lost.is_empty() {
            lost.iter().for_each(|&block| flow.blocks[block].returns = true);
            is_live = leading_to(&flow, |block| flow.blocks[block].returns);
        }
        debug_assert_eq!(flow.blocks.last().map_or(0, |block| block.statements.end), body.statements.len());
        let meets_at = flow.post_dominators();
        Regions { flow, is_live, meets_at }
    }

    /// Whether a return, or a barrier that is never left, can be reached from a block.
    pub(super) fn is_live(&self, block: usize) -> bool {
        self.is_live[block]
    }

    /// The successors of a block that count.
    pub(super) fn from(&self, block: usize) -> impl Iterator<Item = usize> {
        self.flow.blocks[block].successors.iter().copied().filter(|&next| self.is_live[next])
    }

    /// Whether threads may diverge at the end of a block.
    pub(super) fn part_at(&self, block: usize) -> bool {
        self.from(block).count() + usize::from(self.flow.blocks[block].returns) > 1
    }

    /// The blocks that may be reached from a branch before its paths meet again. The branch's own block is among them if it is in a loop.
    pub(super) fn between(&self, branch: usize) -> Vec<usize> {
        let end = self.meets_at[branch];
        let mut seen = vec![false; self.flow.blocks.len()];
        let mut open: Vec<usize> = self.from(branch).collect();
        let mut found = Vec::new();
        while let Some(block) = open.pop() {
            if Some(block) != end && !std::mem::replace(&mut seen[block], true) {
                found.push(block);
                open.extend(self.from(block));
            }
        }
        found
    }
}

/// The blocks from which a block with `is_end` is reachable.
fn leading_to(flow: &ControlFlow, is_end: impl Fn(usize) -> bool) -> Vec<bool> {
    let mut leads = vec![false; flow.blocks.len()];
    let mut open: Vec<usize> = (0..flow.blocks.len()).filter(|&block| is_end(block)).collect();
    while let Some(block) = open.pop() {
        if !std::mem::replace(&mut leads[block], true) {
            open.extend(&flow.blocks[block].predecessors);
        }
    }
    leads
}
