//! Which threads agree on the way through a program: whether all that a barrier waits for reach it together.
//!
//! A value is known by how it may differ between threads: not at all in a grid, in a cluster, in a block or in a warp, or between any
//! two threads ([`Level`]). Of a warp it is known which bits differ: none of `rank / 32`. Sources of difference are thread and block indices, loads that others may write between, atomic operations,
//! exchanges within a warp, and clocks. Parameters of kernels, constants, read-only loads (`ld.global.nc`) and loads of shared
//! memory at an address that is the same are the same, too: shared memory that others write at the same time is a race, which
//! safe code does not have.
//!
//! Where a branch depends on a value that differs, threads may take both of its ways, up to the block in which these meet
//! again; ways that only end in a panic do not count. What stands between is not reached by all together, and what is assigned
//! there differs afterwards. Additions are followed by their terms, so that `pointer == end` is the same in all threads if both
//! are so much from where the thread began.
//!
//! Functions are analysed once for all their calls, with the worst arguments of any.
//!
//! Code says what is to be proven of it by marks, which no assembler knows: all threads come to
//! `ferrogrid.together.LEVEL file, length, line, column` together, and have its fifth operand in common, if there is one; of `ferrogrid.assumed.block a, b` is known that `a` is the same in all threads of a block. Barriers
//! are looked at without a mark, too, but for those in inline assembly, for which its author vouches; and so are operations of warps
//! ([`unproven_lanes`]), whose marks, of the level `warp`, only say where in the source they stand.

mod bits;
mod function;
mod program;
mod region;
mod value;

use crate::{Instruction, Statement};

pub use program::{divergences, unproven_lanes};

/// Among which threads a value is the same, from all to none.
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

/// How many threads the blocks of a kernel's launches have along each axis, x first; `None` where that is not known.
pub type Shape = [Option<u32>; 3];

/// A barrier that some of the threads it waits for may not reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Divergence {
    /// The function, as an item of the module.
    pub item: usize,
    /// The barrier, or the call of a function with one, as a statement of the function.
    pub barrier: usize,
    /// Among which threads the way to it must be the same.
    pub needs: Level,
    /// The branch that decides; `None` if all come.
    pub branch: Option<usize>,
    /// Whether they bring regions that differ; or masks, of operations of warps.
    pub differs: bool,
    /// From the branch's condition, or the operand, to where a difference comes from: the statements that give the values.
    pub because: Vec<usize>,
}

/// Among which threads the way to a statement must be the same, if they come there together: a mark, or a barrier of a block or a
/// cluster.
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

/// Whether a statement is an operation of a warp that waits for the lanes of its mask; but in inline assembly.
pub fn waits_for_lanes(statement: &Statement<'_>) -> bool {
    let waits = |it: &Instruction<'_>| match it.operation() {
        "shfl" | "vote" | "match" | "redux" => it.has("sync"),
        "bar" => it.has("warp"),
        _ => false,
    };
    !statement.in_asm && statement.instruction().is_some_and(waits)
}

/// Among which threads the way to a mark, and its region, must be the same; `None` for that of a warp, which says where an operation
/// stands.
fn mark(instruction: &Instruction<'_>) -> Option<Level> {
    match instruction.opcode.strip_prefix("ferrogrid.together.")? {
        "warp" => None,
        "grid" => Some(Level::Grid),
        "cluster" => Some(Level::Cluster),
        _ => Some(Level::Block),
    }
}
