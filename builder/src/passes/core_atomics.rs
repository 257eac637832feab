//! The ordering of the atomic operations of `core::sync::atomic`. LLVM's NVPTX back end (22) writes
//! `atomicrmw` as a bare `atom.global.add`, which is relaxed, whatever ordering the source requests. Loads,
//! stores, fences and compare-and-exchange have their ordering. The PTX does not show the requested ordering,
//! so a bare operation gets the strongest: a `fence.sc` before it, and `.acq_rel`, for the whole system.
//! `DeviceAtomic` and inline assembly name their ordering and stay unchanged.

use ferrogrid_ptx::{Edits, Instruction, Module};

/// The modifiers that state an ordering.
const ORDERINGS: [&str; 4] = ["relaxed", "acquire", "release", "acq_rel"];

/// Adds an ordering to every bare atomic operation.
pub(super) fn order<'t>(module: &Module<'t>, edits: &mut Edits<'t>) {
    for statement in module.functions().flat_map(|function| function.statements()) {
        if let Some(instruction) = statement.instruction().filter(|it| !statement.in_asm && is_bare(it)) {
            edits.insert_before(statement.text, "fence.sc.sys;\n\t");
            edits.replace(instruction.operation(), "atom.acq_rel.sys");
        }
    }
}

fn is_bare(instruction: &Instruction<'_>) -> bool {
    instruction.operation() == "atom" && !ORDERINGS.iter().any(|ordering| instruction.has(ordering))
}

#[cfg(test)]
mod tests {
    use super::super::tests::body_after;
    use super::*;

    fn ordered(lines: &str) -> String {
        body_after(lines, order)
    }

    #[test]
    fn atomics_without_an_ordering_get_the_strongest() {
        assert_eq!(
            ordered("\tatom.global.add.u32 \t%r1, [%rd1], 1;\n\tret;\n"),
            "\tfence.sc.sys;\n\tatom.acq_rel.sys.global.add.u32 \t%r1, [%rd1], 1;\n\tret;\n"
        );
        assert_eq!(
            ordered("\t@%p1 atom.shared.exch.b64 \t%rd1, [%rd2], 1;\n"),
            "\tfence.sc.sys;\n\t@%p1 atom.acq_rel.sys.shared.exch.b64 \t%rd1, [%rd2], 1;\n"
        );
    }

    #[test]
    fn every_ordering_of_ptx_is_one() {
        for ordering in ["relaxed", "acquire", "release", "acq_rel"] {
            let line = format!("\tatom.{ordering}.gpu.global.add.u32 %r1, [%rd1], 1;\n");
            assert_eq!(ordered(&line), line);
        }
    }

    #[test]
    fn atomics_with_an_ordering_stay_unchanged() {
        for line in [
            "\tatom.acq_rel.sys.global.cas.b32 \t%r6, [%rd1+32], 1, 2;\n",
            "\tld.acquire.sys.global.b32 \t%r4, [%rd1+20];\n",
            "\tcall.uni atom_counter, (param0);\n",
            "\t// begin inline asm\n\tatom.global.add.u32 %r1, [%rd1], 1;\n\t// end inline asm\n",
        ] {
            assert_eq!(ordered(line), line);
        }
    }
}
