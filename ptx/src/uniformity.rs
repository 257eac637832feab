//! Which threads agree on the path through a program: whether all that a barrier waits for reach it together.
//!
//! A value is known by how it may differ between threads: not at all in a grid, a cluster, a block or a warp, or between
//! any two threads ([`Level`]). Within a warp it is known which bits differ: none of `rank / 32`. Sources of difference
//! are thread and block indices, loads of memory that others may write meanwhile, atomic operations, exchanges within a
//! warp, and clocks. Parameters of kernels, constants and read-only loads (`ld.global.nc`) are the same in all threads,
//! and so are loads of shared memory at one address: a write at the same time would be a race, which safe code does
//! not have.
//!
//! Where a branch depends on a value that differs, threads may take either path, up to the block in which the paths meet
//! again; paths that only end in a panic do not count. Not all threads reach what is between, and what is assigned there
//! differs afterwards. Additions are followed by their terms, so `pointer == end` is the same in all threads if both have
//! the same distance from where the thread began.
//!
//! Functions are analysed once for all their calls, with the worst arguments of any.
//!
//! Marks, which no assembler accepts, say what is to be proven:
//!
//! - `ferrogrid.together.LEVEL file, length, line, column`: all threads of the level reach it together. A fifth operand is
//!   the same in all of them.
//! - `ferrogrid.assumed.block a, b`: `a` is known to be the same in all threads of a block.
//!
//! Barriers without a mark are analysed, too, except in inline assembly, for which its author is responsible. So are warp
//! operations ([`unproven_lanes`]); their marks, of the level `warp`, only give their place in the source.
//!
//! | file | holds |
//! |---|---|
//! | `program.rs` | all functions of a program, and their calls |
//! | `function.rs` | the analysis of one function, with `lanes.rs` for the lanes of a warp |
//! | `function/divergences.rs` | barriers that threads may not reach together, and why |
//! | `value.rs`, `bits.rs` | how a value differs between threads, and in which bits |
//! | `region.rs` | the blocks between a branch and the point where its paths meet |

mod bits;
mod function;
mod program;
mod region;
mod value;

use crate::{Instruction, Statement};

pub use program::{divergences, unproven_lanes};

/// The threads among which a value is the same, from all to none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Level {
    /// It is the same in all threads of the grid.
    #[default]
    Grid,
    /// It is the same in all threads of a cluster.
    Cluster,
    /// It is the same in all threads of a block.
    Block,
    /// It is the same in all threads of a warp.
    Warp,
    /// It may differ between any two threads.
    Thread,
}

/// The threads along each axis of a kernel's blocks, x first; `None` where unknown.
pub type Shape = [Option<u32>; 3];

/// A barrier that some of the threads it waits for may not reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Divergence {
    /// The function, as an item of the module.
    pub item: usize,
    /// The barrier, or the call of a function with one, as a statement of the function.
    pub barrier: usize,
    /// The threads among which the path to it must be the same.
    pub needs: Level,
    /// The branch that decides; `None` if all threads come.
    pub branch: Option<usize>,
    /// Whether the regions of shared memory differ between threads; of warp operations, the masks.
    pub differs: bool,
    /// The statements that give the values, from the branch's condition or the operand back to the source of
    /// the difference.
    pub because: Vec<usize>,
}

/// The threads among which the path to a statement must be the same: for a mark, or a barrier of a block or
/// a cluster.
fn needs(statement: &Statement<'_>) -> Option<Level> {
    let instruction = statement.instruction()?;
    if let Some(level) = mark(instruction) {
        return Some(level);
    }
    match instruction.operation() {
        _ if statement.in_asm => None,
        "bar" | "barrier" if instruction.has("warp") => None,
        "barrier" if instruction.has("cluster") => Some(Level::Cluster),
        "bar" | "barrier" => Some(Level::Block),
        _ => None,
    }
}

/// Whether a statement is a warp operation that waits for the lanes of its mask, outside of inline assembly.
pub fn waits_for_lanes(statement: &Statement<'_>) -> bool {
    let waits = |it: &Instruction<'_>| match it.operation() {
        "shfl" | "vote" | "match" | "redux" => it.has("sync"),
        "bar" => it.has("warp"),
        _ => false,
    };
    !statement.in_asm && statement.instruction().is_some_and(waits)
}

/// The threads among which the path to a mark, and its region, must be the same. `None` for the mark of a
/// warp operation, which only gives its place.
fn mark(instruction: &Instruction<'_>) -> Option<Level> {
    match instruction.opcode.strip_prefix("ferrogrid.together.")? {
        "warp" => None,
        "grid" => Some(Level::Grid),
        "cluster" => Some(Level::Cluster),
        _ => Some(Level::Block),
    }
}
