//! 64-bit arithmetic on numbers that fit into 32 bits.

use ferrogrid_ptx::{Instruction, Operand, Register};

use super::values::Values;

/// How many definitions are followed back.
const DEPTH: u32 = 4;

/// Rewrites the instructions of a body that have narrow operands only.
pub(super) fn rewrite(values: &mut Values<'_, '_>) {
    for statement in 0..values.body.statements.len() {
        if let Some(instruction) = values.instruction(statement)
            && let Some(narrower) = narrower(values, statement, instruction)
        {
            values.replace(statement, &narrower);
        }
    }
}

fn narrower(values: &mut Values<'_, '_>, at: usize, instruction: &Instruction<'_>) -> Option<String> {
    let operands = instruction.operands.as_slice();
    match (instruction.opcode, operands) {
        ("shl.b64", [result, a, b]) => {
            let factor = 1_u32.checked_shl(b.number()?)?;
            let a = values.register(at, a)?;
            Some(format!("mul.wide.u32 \t{result}, {}, {factor}", half(values, a)?))
        }
        ("mul.lo.s64", [result, a, b]) => {
            let (a, b) = halves(values, at, a, b)?;
            Some(format!("mul.wide.u32 \t{result}, {a}, {b}"))
        }
        ("mad.lo.s64", [result, a, b, c]) => {
            let (a, b) = halves(values, at, a, b)?;
            Some(format!("mad.wide.u32 \t{result}, {a}, {b}, {c}"))
        }
        (opcode, [result, a, b]) => {
            let (comparison, ty) = opcode.strip_prefix("setp.")?.split_once('.')?;
            let ty = match ty {
                // Below 2^32 there is no sign.
                "u64" | "s64" => "u32",
                "b64" => "b32",
                _ => return None,
            };
            let (a, b) = halves(values, at, a, b)?;
            Some(format!("setp.{comparison}.{ty} \t{result}, {a}, {b}"))
        }
        _ => None,
    }
}

/// Both operands in 32 bits, the first a register; neither is made narrow for nothing.
fn halves(
    values: &mut Values<'_, '_>,
    at: usize,
    a: &Operand<'_>,
    b: &Operand<'_>,
) -> Option<(String, String)> {
    let a = values.register(at, a).filter(|&a| fits(values, a, DEPTH))?;
    if let Some(b) = small(b) {
        return Some((half(values, a)?, b.to_string()));
    }
    let b = values.register(at, b).filter(|&b| fits(values, b, DEPTH))?;
    Some((half(values, a)?, half(values, b)?))
}

/// A number without sign of at most 32 bits.
fn small(operand: &Operand<'_>) -> Option<u32> {
    operand.number()
}

/// The 32-bit register with the value of a 64-bit one that fits.
fn half(values: &mut Values<'_, '_>, register: Register) -> Option<String> {
    if fits(values, register, DEPTH) { values.low_half(register) } else { None }
}

/// Whether a 64-bit register is known to be below 2^32.
fn fits(values: &Values<'_, '_>, register: Register, depth: u32) -> bool {
    let Some(at) = values.definition_of(register) else { return false };
    let Some(definition) = values.instruction(at) else { return false };
    let follows = |operand: &Operand<'_>| {
        depth > 0 && values.register(at, operand).is_some_and(|it| fits(values, it, depth - 1))
    };
    match (definition.opcode, definition.operands.as_slice()) {
        ("cvt.u64.u32" | "cvt.u64.u16" | "cvt.u64.u8", _) => true,
        ("and.b64", [_, a, b]) => small(b).is_some() || follows(a) || follows(b),
        ("or.b64" | "xor.b64", [_, a, b]) => follows(a) && (small(b).is_some() || follows(b)),
        ("shr.u64", [_, a, b]) => b.number().is_some_and(|bits: u32| bits >= 32) || follows(a),
        // What is loaded is extended by zeros, unless it has a sign.
        _ => {
            let ty = definition.modifiers().last();
            definition.operation() == "ld" && matches!(ty, Some("b32" | "u32" | "b16" | "u16" | "b8" | "u8"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::body;

    #[test]
    fn zero_extended_values_are_multiplied_in_32_bits() {
        let before = "\tcvt.u64.u32 \t%rd1, %r1;\n\tshl.b64 \t%rd2, %rd1, 2;\n\
                      \tmul.lo.s64 \t%rd3, %rd1, 3449720151;\n\tmad.lo.s64 \t%rd4, %rd1, %rd1, %rd9;\n";
        let after = "\t.reg .b32 \t%narrow<1>;\n\tcvt.u64.u32 \t%rd1, %r1;\n\tcvt.u32.u64 \t%narrow0, %rd1;\n\
                     \tmul.wide.u32 \t%rd2, %narrow0, 4;\n\
                     \tmul.wide.u32 \t%rd3, %narrow0, 3449720151;\n\
                     \tmad.wide.u32 \t%rd4, %narrow0, %narrow0, %rd9;\n";
        assert_eq!(body(before), after);
    }

    #[test]
    fn numbers_that_fit_are_compared_in_32_bits() {
        let before = "\tld.param.b32 \t%rd1, [n];\n\tand.b64 \t%rd2, %rd7, 4294967288;\n\
                      \tsetp.lt.u64 \t%p1, %rd2, %rd1;\n\tsetp.eq.b64 \t%p2, %rd1, 7;\n";
        let after = "\t.reg .b32 \t%narrow<2>;\n\tld.param.b32 \t%rd1, [n];\n\tcvt.u32.u64 \t%narrow1, %rd1;\n\
                     \tand.b64 \t%rd2, %rd7, 4294967288;\n\tcvt.u32.u64 \t%narrow0, %rd2;\n\
                     \tsetp.lt.u32 \t%p1, %narrow0, %narrow1;\n\tsetp.eq.b32 \t%p2, %narrow1, 7;\n";
        assert_eq!(body(before), after);
    }

    #[test]
    fn a_shift_by_half_the_bits_fits_32_bits() {
        let before = "\tshr.u64 \t%rd1, %rd3, 32;\n\tshl.b64 \t%rd2, %rd1, 2;\n";
        assert!(body(before).contains("mul.wide.u32 \t%rd2, %narrow0, 4;"), "{}", body(before));
    }

    #[test]
    fn each_register_of_a_vector_has_a_half_of_its_own() {
        let before = "\tld.global.v2.b32 \t{%rd1, %rd2}, [%rd9];\n\tshl.b64 \t%rd3, %rd1, 2;\n\tshl.b64 \t%rd4, %rd2, 3;\n";
        let after = "\t.reg .b32 \t%narrow<2>;\n\tld.global.v2.b32 \t{%rd1, %rd2}, [%rd9];\n\
                     \tcvt.u32.u64 \t%narrow0, %rd1;\n\tcvt.u32.u64 \t%narrow1, %rd2;\n\
                     \tmul.wide.u32 \t%rd3, %narrow0, 4;\n\tmul.wide.u32 \t%rd4, %narrow1, 8;\n";
        assert_eq!(body(before), after);
    }

    #[test]
    fn possibly_wide_values_stay_wide() {
        for wide in [
            // Twice defined: what replaces a phi.
            "\tcvt.u64.u32 \t%rd1, %r1;\n\tmov.b64 \t%rd1, %rd9;\n\tshl.b64 \t%rd2, %rd1, 2;\n",
            // A parameter of the function, a load with a sign, a sum, a mask of 33 bits.
            "\tshl.b64 \t%rd2, %rd1, 2;\n",
            "\tld.global.s32 \t%rd1, [%rd5];\n\tshl.b64 \t%rd2, %rd1, 2;\n",
            "\tcvt.u64.u32 \t%rd3, %r1;\n\tadd.s64 \t%rd1, %rd3, %rd3;\n\tshl.b64 \t%rd2, %rd1, 2;\n",
            "\tand.b64 \t%rd1, %rd3, 4294967296;\n\tshl.b64 \t%rd2, %rd1, 2;\n",
            // Negative, or of more than 32 bits.
            "\tmov.u32 \t%r1, %tid.x;\n\tcvt.u64.u32 \t%rd1, %r1;\n\tmul.lo.s64 \t%rd2, %rd1, -4;\n",
            "\tmov.u32 \t%r1, %tid.x;\n\tcvt.u64.u32 \t%rd1, %r1;\n\tsetp.lt.u64 \t%p1, %rd1, 4294967296;\n",
            "\tmov.u32 \t%r1, %tid.x;\n\tcvt.u64.u32 \t%rd1, %r1;\n\tshl.b64 \t%rd2, %rd1, 32;\n",
            // A bit too many is left.
            "\tshr.u64 \t%rd1, %rd3, 31;\n\tshl.b64 \t%rd2, %rd1, 2;\n",
            // Bits of a wide number remain.
            "\tor.b64 \t%rd1, %rd9, 7;\n\tshl.b64 \t%rd2, %rd1, 2;\n",
            // Signed.
            "\tcvt.s64.s32 \t%rd1, %r1;\n\tshl.b64 \t%rd2, %rd1, 2;\n",
        ] {
            assert_eq!(body(wide), wide);
        }
    }
}
