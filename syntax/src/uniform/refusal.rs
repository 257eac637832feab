//! What a program is told whose barriers some threads may not reach: one error for each place where threads may part,
//! which names the barriers behind it and says what to do. It must not know how such places are found.

use proc_macro2::{LineColumn, Span};
use syn::{Error, Ident};

use super::facts::Level;

/// A place where threads may part.
#[derive(Clone, Copy)]
pub(super) struct Cause {
    pub(super) at: Span,
    pub(super) kind: CauseKind,
}

/// How they part there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CauseKind {
    /// An `if`, a `match`, `&&` or `||`.
    Branch,
    /// The rounds of a `for` or `while`.
    Loop,
    /// A `break`.
    Break,
    /// A `continue`.
    Continue,
    /// A `return` or `?`.
    Return,
    /// Whoever is given the closure calls it, or does not.
    Closure,
    /// Its text may hide any jump.
    Macro,
}

/// The barriers that some threads may not reach, by cause.
#[derive(Default)]
pub(super) struct Refusals(Vec<Refusal>);

struct Refusal {
    cause: Cause,
    needs: Level,
    barriers: Vec<Ident>,
}

impl Refusals {
    /// `cause` may keep threads from `barrier`, which waits for all that have `needs` in common.
    pub(super) fn add(&mut self, barrier: &Ident, needs: Level, cause: Cause) {
        let known = self.0.iter_mut().find(|it| it.key() == (place(cause.at), cause.kind, needs));
        match known {
            Some(known) => known.barriers.push(barrier.clone()),
            None => self.0.push(Refusal { cause, needs, barriers: vec![barrier.clone()] }),
        }
    }

    /// As one error, followed by `others`.
    pub(super) fn into_error(self, others: Option<Error>) -> Option<Error> {
        let refused = self.0.iter().map(|refusal| Error::new(refusal.cause.at, refusal.message()));
        refused.chain(others).reduce(|mut all, error| {
            all.combine(error);
            all
        })
    }
}

impl Refusal {
    fn key(&self) -> ((LineColumn, LineColumn), CauseKind, Level) {
        (place(self.cause.at), self.cause.kind, self.needs)
    }

    fn message(&self) -> String {
        let (whole, barriers) = (together(self.needs), named(&self.barriers));
        let (what, advice) = (self.cause.kind.what(), self.cause.kind.advice(self.needs));
        // As rustc shows what it adds to an error: macros can only give text.
        let why = match self.cause.kind {
            CauseKind::Closure | CauseKind::Macro => String::new(),
            _ => {
                let source = source(self.needs);
                format!("  = note: this may differ between them: it does not follow from {source} alone\n")
            }
        };
        format!(
            "all threads of {whole} must reach {barriers} together, but {what}\n\n{why}  = help: {advice}"
        )
    }
}

impl CauseKind {
    fn what(self) -> &'static str {
        match self {
            CauseKind::Branch => "this may keep some of them away",
            CauseKind::Loop => "some of them may go more rounds of this loop than others",
            CauseKind::Break => "some of them may leave here",
            CauseKind::Continue => "some of them may go to the next round here",
            CauseKind::Return => "some of them may return here",
            CauseKind::Closure => "it stands in this closure, which may be called by some of them only",
            CauseKind::Macro => "some of them may leave by a jump that this macro hides",
        }
    }

    fn advice(self, needs: Level) -> &'static str {
        match self {
            CauseKind::Branch => {
                "guard the work, not the barrier: let every thread reach it, and put only the accesses into the `if`"
            }
            CauseKind::Loop => {
                "guard the work, not the barrier: let every thread go the same number of rounds, and put only the accesses into an `if`"
            }
            CauseKind::Break | CauseKind::Continue if needs == Level::Block => {
                "guard the work, not the barrier: let every thread stay, and put only the accesses into an `if`; threads stop together by what they decide together: `if t.sync_threads_and(done) { break; }`"
            }
            CauseKind::Break | CauseKind::Continue => {
                "guard the work, not the barrier: let every thread stay, and put only the accesses into an `if`"
            }
            CauseKind::Return => {
                "guard the work, not the barrier: instead of the `return` put only the accesses into an `if`, and let every thread reach the barrier"
            }
            CauseKind::Closure => {
                "write a `for` loop, or a function of the module that takes a `&Thread`: barriers in closures and in methods are not checked, and so are `unsafe` there: `unsafe { t.sync_threads() }` if you know that all threads come together"
            }
            CauseKind::Macro => "write in the kernel what the macro does",
        }
    }
}

/// What barriers wait for, in words.
pub(super) fn together(needs: Level) -> &'static str {
    match needs {
        Level::Grid => "the grid",
        Level::Cluster => "a cluster",
        _ => "a block",
    }
}

/// What is the same in all threads that such barriers wait for, in words.
pub(super) fn source(needs: Level) -> &'static str {
    match needs {
        Level::Grid => "kernel parameters and constants",
        Level::Cluster => "kernel parameters, constants and cluster indices",
        _ => "kernel parameters, constants, block indices and results of barriers",
    }
}

/// `` `publish` (line 3) and `reclaim` (line 5)``.
fn named(barriers: &[Ident]) -> String {
    let one = |barrier: &Ident| match barrier.span().start().line {
        // Not known.
        0 => format!("`{barrier}`"),
        line => format!("`{barrier}` (line {line})"),
    };
    match barriers {
        [] => String::new(),
        [barrier] => one(barrier),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(one).collect();
            format!("{} and {}", first.join(", "), one(last))
        }
    }
}

fn place(at: Span) -> (LineColumn, LineColumn) {
    (at.start(), at.end())
}
