//! Loops of one block that count from a constant to a constant, such as `for k in 0..256` over an array in
//! shared memory: the comparison at their end needs 32 bits.

use ferrogrid_ptx::{ControlFlow, Operand, Predicate, Register};

use super::values::Values;

/// Rewrites the comparisons at the end of such loops.
pub(super) fn rewrite(values: &mut Values<'_, '_>) {
    let is_comparison = |&at: &usize| {
        values.instruction(at).is_some_and(|it| ["setp.ne.b64", "setp.ne.s64"].contains(&it.opcode))
    };
    let comparisons: Vec<usize> = (0..values.body.statements.len()).filter(is_comparison).collect();
    if comparisons.is_empty() {
        return;
    }
    let flow = ControlFlow::of(values.body, |_| false);
    for statement in comparisons {
        if let Some(Count { register, result, end }) = count(values, &flow, statement) {
            values.replace_by_half(statement, register, |half| {
                format!("setp.ne.b32 \t{result}, {half}, {end}")
            });
        }
    }
}

/// What a loop counts with, and what it compares with at its end.
struct Count<'t> {
    register: Register,
    result: &'t str,
    end: u32,
}

/// The count that is compared at `at`, if it is known to be at most its end there: it begins as a constant
/// on the only way into the loop, each round adds a constant, and the round that reaches the end is the
/// last.
fn count<'t>(values: &Values<'_, 't>, flow: &ControlFlow, at: usize) -> Option<Count<'t>> {
    let [result, counted, end] = values.instruction(at)?.operands.as_slice() else { return None };
    let (result, register, end) = (result.name()?, values.register(at, counted)?, end.number()?);
    let around = flow.block_of(at);
    let before = match flow.blocks[around].predecessors.as_slice() {
        [one, other] if *one == around => *other,
        [other, one] if *one == around => *other,
        _ => return None,
    };
    // The block goes back to its own beginning where the comparison is true, and on where it is not.
    let last = values.body.statements[flow.blocks[around].statements.end - 1].instruction()?;
    let goes_back = last.predicate == Some(Predicate { register: result, is_negated: false })
        && last.operation() == "bra"
        && branches_to(values, flow, last.operands.first()?, around);
    // Two definitions: the constant before the loop, and the step in it, before the comparison.
    let [begin, step] = *values.registers.definitions(register) else { return None };
    let is_in_place = flow.block_of(begin) == before && flow.block_of(step) == around && step < at;
    let is_kept = values.registers.named(at, result).map(|it| {
        values.registers.definitions(it).iter().filter(|&&it| flow.block_of(it) == around).count() == 1
    })?;
    let (first, by) = (constant(values, begin)?, step_of(values, step, register)?);
    let arrives = first < end && (end - first).is_multiple_of(by);
    (goes_back && is_in_place && is_kept && arrives).then_some(Count { register, result, end })
}

/// Whether a label stands at the beginning of a block.
fn branches_to(values: &Values<'_, '_>, flow: &ControlFlow, label: &Operand<'_>, block: usize) -> bool {
    let first = &values.body.statements[flow.blocks[block].statements.start];
    matches!(first.kind, ferrogrid_ptx::StatementKind::Label(name) if label.name() == Some(name))
}

/// The constant that a statement gives to a register, itself or by another register.
fn constant(values: &Values<'_, '_>, at: usize) -> Option<u32> {
    let instruction = values.instruction(at).filter(|it| it.opcode == "mov.b64")?;
    let value = instruction.operands.get(1)?;
    value.number().or_else(|| constant(values, values.definition_of(values.register(at, value)?)?))
}

/// What a statement adds to `register`.
fn step_of(values: &Values<'_, '_>, at: usize, register: Register) -> Option<u32> {
    let instruction = values.instruction(at).filter(|it| it.opcode == "add.s64")?;
    let [_, from, by] = instruction.operands.as_slice() else { return None };
    let is_own = values.register(at, from) == Some(register);
    is_own.then(|| by.number()).flatten().filter(|by| *by > 0)
}

#[cfg(test)]
mod tests {
    use super::super::tests::body;

    const LOOP: &str = "\tmov.b64 \t%rd1, 0;\n$L__BB0_1:\n\tld.shared.b32 \t%r1, [%rd1];\n\
                        \tadd.s64 \t%rd1, %rd1, 128;\n$L__tmp7:\n\tsetp.ne.b64 \t%p1, %rd1, 4096;\n\
                        \t@%p1 bra \t$L__BB0_1;\n\tret;\n";

    #[test]
    fn a_loop_to_a_constant_compares_32_bits() {
        let after = LOOP.replace(
            "\tsetp.ne.b64 \t%p1, %rd1, 4096;\n",
            "\tcvt.u32.u64 \t%narrow0, %rd1;\n\tsetp.ne.b32 \t%p1, %narrow0, 4096;\n",
        );
        assert_eq!(body(LOOP), format!("\t.reg .b32 \t%narrow<1>;\n{after}"));
        let by_register = LOOP.replace("%rd1, 0;", "%rd1, %rd9;");
        let constant = format!("\tmov.b64 \t%rd9, 256;\n\tbra.uni \t$L__BB0_0;\n$L__BB0_0:\n{by_register}");
        assert!(body(&constant).contains("setp.ne.b32"), "from 256, by another register");
    }

    #[test]
    fn loops_that_may_miss_their_end_stay_wide() {
        for (reason, from, to) in [
            ("it steps over the end", "4096", "4100"),
            ("it begins beyond the end", "%rd1, 0;", "%rd1, 8192;"),
            ("its start is unknown", "%rd1, 0;", "%rd1, %rd9;"),
            ("it goes down", "%rd1, 128;", "%rd1, -128;"),
            ("there is another way in", "\tret;\n", "\t@%p2 bra \t$L__BB0_1;\n\tret;\n"),
            (
                "it may begin twice",
                "\tmov.b64 \t%rd1, 0;\n",
                "\tmov.b64 \t%rd1, 0;\n\t@%p2 mov.b64 \t%rd1, %rd9;\n",
            ),
            ("there is another step", "\tld.shared", "\tadd.s64 \t%rd1, %rd1, 1;\n\tld.shared"),
            ("a branch is between", "\tld.shared", "\t@%p2 bra \t$L__BB0_9;\n\tld.shared"),
            ("a block is between", "\tld.shared", "\t@%p2 bra \t$L__BB0_9;\n$L__BB0_9:\n\tld.shared"),
            ("it continues at the end", "@%p1 bra", "@!%p1 bra"),
            ("the condition is another's", "@%p1 bra", "@%p2 bra"),
            ("it leaves for another block", "@%p1 bra \t$L__BB0_1", "@%p1 bra \t$L__BB0_9"),
            (
                "it is compared before the step",
                "\tld.shared.b32 \t%r1, [%rd1];",
                "\tsetp.ne.b64 \t%p1, %rd1, 4096;",
            ),
            (
                "its only comparison is before the step",
                "\tadd.s64 \t%rd1, %rd1, 128;\n$L__tmp7:\n\tsetp.ne.b64 \t%p1, %rd1, 4096;\n",
                "\tsetp.ne.b64 \t%p1, %rd1, 4096;\n\tadd.s64 \t%rd1, %rd1, 128;\n",
            ),
        ] {
            let text = LOOP.replacen(from, to, 1);
            assert_ne!(text, LOOP, "{reason}");
            assert!(!body(&text).contains("%narrow"), "{reason}:\n{}", body(&text));
        }
    }
}
