//! Rewrites PTX into fewer machine instructions with the same meaning. LLVM's back end selects instructions
//! one basic block at a time, and loses what it knew of other blocks.
//!
//! `values` has what is known of registers, on which the rewrites rest:
//!
//! - A 64-bit shift, product or comparison of numbers that fit into 32 bits becomes `mul.wide.u32`,
//!   `mad.wide.u32` or a comparison of 32 bits. ptxas takes one instruction for these, and two to four for the others;
//!   it does not see that the numbers fit (`narrow`).
//! - A loop of one basic block from a constant to a constant compares 32 bits at its end, so its counter needs no upper
//!   half (`counters`).
//! - Two numbers that are rounded to 16 bits and joined to a word are rounded at once (`pairs`).
//! - An address that is converted to generic and back stays what it was. A generic access to the block's shared memory
//!   becomes a shared one (`spaces`).

mod counters;
mod narrow;
mod pairs;
mod spaces;
mod values;

use ferrogrid_ptx::{Edits, Module};
use values::Values;

/// Makes these changes in the body of each function. `has_pairs` says whether the GPU rounds two numbers at once.
pub(super) fn rewrite<'t>(module: &Module<'t>, has_pairs: bool, edits: &mut Edits<'t>) {
    for body in module.functions().filter_map(|function| function.body.as_ref()) {
        let mut values = Values::of(body, edits);
        spaces::rewrite(&mut values);
        narrow::rewrite(&mut values);
        counters::rewrite(&mut values);
        if has_pairs {
            pairs::rewrite(&mut values);
        }
        values.declare_companions();
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::body_after;
    use super::rewrite;

    /// The statements of an entry point that had these `lines`.
    pub(super) fn body(lines: &str) -> String {
        body_after(lines, |module, edits| rewrite(module, false, edits))
    }
}
