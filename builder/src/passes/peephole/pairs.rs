//! Numbers that are rounded to 16 bits and then joined to a word: one instruction rounds both, at several times the rate.

use ferrogrid_ptx::{Operand, Register};

use super::values::Values;

/// The roundings of one number, and of two.
const ROUNDINGS: [(&str, &str); 2] =
    [("cvt.rn.bf16.f32", "cvt.rn.bf16x2.f32"), ("cvt.rn.f16.f32", "cvt.rn.f16x2.f32")];

/// Rewrites what joins the halves, for GPUs of compute capability 8.0 or later. ptxas removes the roundings that nothing reads any more.
pub(super) fn rewrite(values: &mut Values<'_, '_>) {
    for statement in 0..values.body.statements.len() {
        if let Some(rounding) = rounding(values, statement) {
            values.replace(statement, &rounding);
        }
    }
}

/// The instruction that makes the word of the numbers themselves. Where their only definitions reach the halves, they reach the word, too.
fn rounding(values: &Values<'_, '_>, at: usize) -> Option<String> {
    let instruction = values.instruction(at)?;
    let (result, low, high) = match (instruction.opcode, instruction.operands.as_slice()) {
        ("mov.b32", [result, Operand::Vector(halves)]) => match halves.as_slice() {
            [low, high] => (result, rounded(values, at, low)?, rounded(values, at, high)?),
            _ => return None,
        },
        ("or.b32", [result, a, b]) => [(a, b), (b, a)].into_iter().find_map(|(low, high)| {
            let shifted = values.definition_of(values.register(at, high)?)?;
            let [_, high, Operand::Immediate("16")] = operands(values, shifted, "shl.b32")? else {
                return None;
            };
            Some((result, widened(values, at, low)?, widened(values, shifted, high)?))
        })?,
        _ => return None,
    };
    let (low, high) = if low.0 == high.0 { (low, high.1) } else { return None };
    let [low_name, high_name] = [low.1, high].map(|register| values.registers.name(register));
    Some(format!("{} \t{result}, {high_name}, {low_name}", ROUNDINGS[low.0].1))
}

/// What is [`rounded`], of a half in 32 bits.
fn widened(values: &Values<'_, '_>, at: usize, operand: &Operand<'_>) -> Option<(usize, Register)> {
    let at = values.definition_of(values.register(at, operand)?)?;
    let [_, half] = operands(values, at, "cvt.u32.u16")? else { return None };
    rounded(values, at, half)
}

/// The number of the rounding whose result a half is, and the register of what it rounds.
fn rounded(values: &Values<'_, '_>, at: usize, half: &Operand<'_>) -> Option<(usize, Register)> {
    let at = values.definition_of(values.register(at, half)?)?;
    // It may be inline assembly.
    let instruction = values.body.statements[at].instruction().filter(|it| it.predicate.is_none())?;
    let number = ROUNDINGS.iter().position(|(of_one, _)| *of_one == instruction.opcode)?;
    let source = values.register(at, instruction.operands.get(1)?)?;
    values.definition_of(source).map(|_| (number, source))
}

/// The operands of a statement with that opcode.
fn operands<'b, 't>(values: &Values<'b, 't>, at: usize, opcode: &str) -> Option<&'b [Operand<'t>]> {
    values.instruction(at).filter(|it| it.opcode == opcode).map(|it| it.operands.as_slice())
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::body_after;
    use super::super::rewrite;

    fn body(lines: &str) -> String {
        body_after(&format!("\t.reg .b16 \t%rs<10>;\n{lines}"), |module, edits| rewrite(module, true, edits))
    }

    const ROUNDED: &str = "\tadd.rn.f32 \t%r1, %r8, %r9;\n\tadd.rn.f32 \t%r2, %r9, %r8;\n\t// begin inline asm\n\
                           \tcvt.rn.bf16.f32 %rs1, %r1;\n\t// end inline asm\n\t// begin inline asm\n\
                           \tcvt.rn.bf16.f32 %rs2, %r2;\n\t// end inline asm\n";

    #[test]
    fn two_halves_of_a_word_are_rounded_at_once() {
        let joined = "\tcvt.u32.u16 \t%r3, %rs1;\n\tcvt.u32.u16 \t%r4, %rs2;\n\tshl.b32 \t%r5, %r4, 16;\n";
        for or in ["\tor.b32 \t%r6, %r5, %r3;\n", "\tor.b32 \t%r6, %r3, %r5;\n"] {
            let after = body(&format!("{ROUNDED}{joined}{or}"));
            assert!(after.ends_with("\n\tcvt.rn.bf16x2.f32 \t%r6, %r2, %r1;\n"), "{after}");
        }
        let after = body(&format!("{ROUNDED}\tmov.b32 \t%r6, {{%rs1, %rs2}};\n"));
        assert!(after.ends_with("\n\tcvt.rn.bf16x2.f32 \t%r6, %r2, %r1;\n"), "{after}");
        let halves = ROUNDED.replace("bf16", "f16");
        let after = body(&format!("{halves}\tmov.b32 \t%r6, {{%rs1, %rs2}};\n"));
        assert!(after.ends_with("\n\tcvt.rn.f16x2.f32 \t%r6, %r2, %r1;\n"), "{after}");
    }

    #[test]
    fn other_words_stay() {
        let word = "\tmov.b32 \t%r6, {%rs1, %rs2};\n";
        for same in [
            // Another rounding, half as many bits, a source that changes, a condition.
            format!("{}{word}", ROUNDED.replacen("cvt.rn", "cvt.rz", 1)),
            format!("{}{word}", ROUNDED.replacen("bf16", "f16", 1)),
            format!("{ROUNDED}\tadd.rn.f32 \t%r1, %r1, %r8;\n{word}"),
            format!("{}{word}", ROUNDED.replacen("\tcvt", "\t@%p1 cvt", 1)),
            // Shifted otherwise.
            format!(
                "{ROUNDED}\tcvt.u32.u16 \t%r3, %rs1;\n\tcvt.u32.u16 \t%r4, %rs2;\n\tshl.b32 \t%r5, %r4, 15;\n\tor.b32 \t%r6, %r5, %r3;\n"
            ),
            format!("{ROUNDED}\tmov.b32 \t%r6, {{%rs1, %rs3}};\n"),
        ] {
            let after = body(&same);
            assert!(!after.contains("x2"), "{after}");
        }
    }
}
