//! What is known so far about a kernel's body, from one walk over it to the next; it only grows. It
//! must not know the body: places in it are numbered in the order of the walk.

use super::refusal::Cause;

/// How much a value may differ between threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// The same in all threads of the grid.
    #[default]
    Grid,
    /// The same in all threads of a cluster of blocks.
    Cluster,
    /// The same in all threads of a block.
    Block,
    /// May differ.
    Varying,
}

/// How far control flow depends on the place of a thread, and why.
#[derive(Clone, Copy, Default)]
pub(super) struct Raised {
    pub(super) level: Level,
    pub(super) by: Option<Cause>,
}

/// A variable.
#[derive(Clone, Copy, Default)]
pub(super) struct Declaration {
    pub(super) level: Level,
    /// Whether a barrier depends on it.
    pub(super) matters: bool,
}

/// What `break` and `continue` may lead to: a loop or a labelled block.
#[derive(Clone, Copy, Default)]
pub(super) struct Target {
    /// By the threads that leave it early.
    pub(super) raised: Raised,
    /// Whether there is a barrier in it.
    pub(super) collective: bool,
}

/// All that is known.
#[derive(Default)]
pub(super) struct Facts {
    declarations: Vec<Declaration>,
    /// For each condition, whether a barrier depends on it.
    conditions: Vec<bool>,
    targets: Vec<Target>,
    /// For each variable, whether a barrier depends on what is asked of it: a field, a length.
    asked: Vec<bool>,
    exit: Raised,
    changed: bool,
}

impl Facts {
    pub(super) fn declaration(&mut self, number: usize) -> Declaration {
        *entry(&mut self.declarations, number)
    }

    pub(super) fn target(&mut self, number: usize) -> Target {
        *entry(&mut self.targets, number)
    }

    pub(super) fn condition_matters(&mut self, number: usize) -> bool {
        *entry(&mut self.conditions, number)
    }

    /// Whether a barrier depends on the variable or a part of it.
    pub(super) fn decides(&self, number: usize) -> bool {
        let matters = self.declarations.get(number).is_some_and(|declaration| declaration.matters);
        matters || self.asked.get(number).is_some_and(|asked| *asked)
    }

    /// What the threads that return early depend on.
    pub(super) fn exit(&self) -> Raised {
        self.exit
    }

    pub(super) fn raise_declaration(&mut self, number: usize, to: Level) {
        let level = &mut entry(&mut self.declarations, number).level;
        self.changed |= to > *level;
        *level = to.max(*level);
    }

    pub(super) fn raise_target(&mut self, number: usize, to: Raised) {
        self.changed |= raise(&mut entry(&mut self.targets, number).raised, to);
    }

    pub(super) fn raise_exit(&mut self, to: Raised) {
        self.changed |= raise(&mut self.exit, to);
    }

    pub(super) fn declaration_matters(&mut self, number: usize) {
        self.changed |= set(&mut entry(&mut self.declarations, number).matters);
    }

    pub(super) fn mark_asked(&mut self, number: usize) {
        self.changed |= set(entry(&mut self.asked, number));
    }

    pub(super) fn mark_condition(&mut self, number: usize) {
        self.changed |= set(entry(&mut self.conditions, number));
    }

    pub(super) fn mark_target(&mut self, number: usize) {
        self.changed |= set(&mut entry(&mut self.targets, number).collective);
    }

    /// Whether anything new was learnt since this was last asked.
    pub(super) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }
}

fn entry<T: Clone + Default>(all: &mut Vec<T>, number: usize) -> &mut T {
    if all.len() <= number {
        all.resize(number + 1, T::default());
    }
    &mut all[number]
}

fn raise(raised: &mut Raised, to: Raised) -> bool {
    let higher = to.level > raised.level;
    if higher {
        *raised = to;
    }
    higher
}

fn set(flag: &mut bool) -> bool {
    !std::mem::replace(flag, true)
}
