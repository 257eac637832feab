//! Uniformity analysis: proves that all threads that a barrier waits for reach it together.
//!
//! Each value has the widest group of threads in which it is uniform: the grid, a cluster, a block, a warp,
//! or a single thread ([`Level`]). Within a warp the analysis also tracks which bits differ: none of `rank /
//! 32`. Sources of divergence are thread and block indices, loads of memory that other threads may write
//! meanwhile, atomic operations, exchanges within a warp, and clocks. Parameters of kernels, constants and
//! read-only loads (`ld.global.nc`) are uniform in the grid. So are loads of shared memory at one address in
//! the block: a concurrent write would be a race, which safe code does not have.
//!
//! Where a branch depends on a divergent value, threads may take either path, up to the block in which the
//! paths meet again; paths that only end in a panic do not count. The blocks in between are divergent, and
//! values assigned there are divergent afterwards. Sums are tracked by their terms, so `pointer == end` is
//! uniform if both have the same distance from where the thread began.
//!
//! Functions are analysed once for all their calls, with the most divergent arguments of any call.
//!
//! Marks, which no assembler accepts, state what must be proven:
//!
//! - `ferrogrid.together.LEVEL file, length, line, column`: all threads of the level reach it together. A fifth operand is
//!   the same in all of them.
//! - `ferrogrid.assumed.block a, b`: `a` is known to be the same in all threads of a block.
//!
//! Barriers without a mark are analysed, too, except in inline assembly, whose author is responsible. So are
//! warp operations ([`Program::unproven_lanes`]); their marks, of the level `warp`, only give their place in the
//! source.
//!
//! | file | holds |
//! |---|---|
//! | `program.rs` | all functions of a program, and their calls |
//! | `function/mod.rs` | the analysis of one function, with `lanes.rs` for the lanes of a warp and `numbers.rs` for numbers behind a branch |
//! | `function/divergences.rs` | barriers that threads may not reach together, and the reason |
//! | `value.rs`, `bits/mod.rs` | the divergence of a value, by level and by bit |
//! | `region.rs` | the blocks between a branch and the point where its paths meet |

mod bits;
mod function;
mod program;
mod region;
mod value;

use crate::{Instruction, Statement};

pub use program::Program;

/// The group of threads in which a value is uniform, from the widest to the narrowest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Level {
    /// Uniform in the grid.
    #[default]
    Grid,
    /// Uniform in each cluster.
    Cluster,
    /// Uniform in each block.
    Block,
    /// Uniform in each warp.
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
    /// The group of threads in which the path to it must be uniform.
    pub needs: Level,
    /// The divergent branch; `None` if all threads reach it.
    pub branch: Option<usize>,
    /// Whether the regions of shared memory differ between threads; of warp operations, the masks.
    pub differs: bool,
    /// The statements that define the value, from the branch's condition or the operand back to the source of
    /// divergence.
    pub because: Vec<usize>,
}

/// The group of threads in which the path to a statement must be uniform: for a mark, or a barrier of a block
/// or a cluster.
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
        _ => it.is_of_matrices(),
    };
    !statement.in_asm && statement.instruction().is_some_and(waits)
}

/// The group of threads in which the path to a mark, and its region, must be uniform. `None` for the mark of
/// a warp operation, which only gives its place.
fn mark(instruction: &Instruction<'_>) -> Option<Level> {
    match instruction.opcode.strip_prefix("ferrogrid.together.")? {
        "warp" => None,
        "grid" => Some(Level::Grid),
        "cluster" => Some(Level::Cluster),
        _ => Some(Level::Block),
    }
}
