//! Rewrites PTX into fewer machine instructions of the same meaning, where LLVM's back end, which selects
//! instructions one block at a time, has lost what it knew.
//!
//! - A 64-bit shift, product or comparison of numbers that fit into 32 bits becomes `mul.wide.u32`,
//!   `mad.wide.u32` or a comparison of 32 bits. ptxas takes one instruction for these and two to four else; it does
//!   not find out by itself.
//! - A loop of one block from a constant to a constant compares 32 bits at its end, so that its count has no upper half
//!   to be kept and added to.
//! - An address that was made generic only to be made shared or global again stays what it was, and a generic
//!   access to the block's shared memory becomes a shared one.

mod counters;
mod narrow;
mod spaces;
mod values;

use ferrogrid_ptx::{Edits, Module};
use values::Values;

/// Makes those changes in the body of each function.
pub(super) fn rewrite<'t>(module: &Module<'t>, edits: &mut Edits<'t>) {
    for body in module.functions().filter_map(|function| function.body.as_ref()) {
        let mut values = Values::of(body, edits);
        spaces::rewrite(&mut values);
        narrow::rewrite(&mut values);
        counters::rewrite(&mut values);
        values.declare_companions();
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::body_after;
    use super::rewrite;

    /// The statements of an entry point that had these `lines`.
    pub(super) fn body(lines: &str) -> String {
        body_after(lines, rewrite)
    }
}
