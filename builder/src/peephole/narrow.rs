//! 64-bit arithmetic on numbers that fit into 32 bits. It must not know where they come from but by the
//! instructions that define them.

use super::function::{Function, Instruction};

/// How many definitions are followed back.
const DEPTH: u32 = 4;

/// Rewrites the instructions of a body that have narrow operands only.
pub(super) fn rewrite(function: &mut Function<'_>) {
    for line in 0..function.lines.len() {
        if let Some(instruction) = function.instruction(line)
            && let Some(narrower) = narrower(function, instruction)
        {
            function.replace(line, &narrower);
        }
    }
}

fn narrower(function: &mut Function<'_>, instruction: Instruction<'_>) -> Option<String> {
    let [result, a, b, c] = instruction.operands;
    match instruction.opcode {
        "shl.b64" => {
            let factor = 1_u32.checked_shl(b.parse().ok()?)?;
            Some(format!("mul.wide.u32 \t{result}, {}, {factor}", half(function, a)?))
        }
        "mul.lo.s64" => {
            let (a, b) = halves(function, a, b)?;
            Some(format!("mul.wide.u32 \t{result}, {a}, {b}"))
        }
        "mad.lo.s64" => {
            let (a, b) = halves(function, a, b)?;
            Some(format!("mad.wide.u32 \t{result}, {a}, {b}, {c}"))
        }
        opcode => {
            let (comparison, ty) = opcode.strip_prefix("setp.")?.split_once('.')?;
            let ty = match ty {
                // Below 2^32 there is no sign.
                "u64" | "s64" => "u32",
                "b64" => "b32",
                _ => return None,
            };
            let (a, b) = halves(function, a, b)?;
            Some(format!("setp.{comparison}.{ty} \t{result}, {a}, {b}"))
        }
    }
}

/// Both operands in 32 bits, the first a register; neither is made narrow for nothing.
fn halves(function: &mut Function<'_>, a: &str, b: &str) -> Option<(String, String)> {
    if !fits(function, a, DEPTH) || !(is_small(b) || fits(function, b, DEPTH)) {
        return None;
    }
    let a = half(function, a)?;
    let b = if is_small(b) { b.to_owned() } else { half(function, b)? };
    Some((a, b))
}

/// A number without sign of at most 32 bits.
fn is_small(operand: &str) -> bool {
    operand.parse::<u32>().is_ok()
}

/// The 32-bit register with the value of a 64-bit one that fits.
fn half(function: &mut Function<'_>, register: &str) -> Option<String> {
    if fits(function, register, DEPTH) { function.low_half(register) } else { None }
}

/// Whether a 64-bit register is known to be below 2^32.
fn fits(function: &Function<'_>, register: &str, depth: u32) -> bool {
    let Some(definition) = function.definition(register) else { return false };
    let [_, a, b, _] = definition.operands;
    let follows = |operand: &str| depth > 0 && fits(function, operand, depth - 1);
    match definition.opcode {
        "cvt.u64.u32" | "cvt.u64.u16" | "cvt.u64.u8" => true,
        "and.b64" => is_small(b) || follows(a) || follows(b),
        "or.b64" | "xor.b64" => follows(a) && (is_small(b) || follows(b)),
        "shr.u64" => b.parse().is_ok_and(|bits: u32| bits >= 32) || follows(a),
        // What is loaded is extended by zeros, unless it has a sign.
        opcode => {
            let mut parts = opcode.split('.');
            parts.next() == Some("ld")
                && matches!(parts.next_back(), Some("b32" | "u32" | "b16" | "u16" | "b8" | "u8"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rewritten_body as body;

    #[test]
    fn what_is_extended_by_zeros_is_multiplied_in_32_bits() {
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
    fn what_is_shifted_by_half_its_bits_fits() {
        let before = "\tshr.u64 \t%rd1, %rd3, 32;\n\tshl.b64 \t%rd2, %rd1, 2;\n";
        assert!(body(before).contains("mul.wide.u32 \t%rd2, %narrow0, 4;"), "{}", body(before));
    }

    #[test]
    fn what_may_be_wide_stays_wide() {
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
            // Signed.
            "\tcvt.s64.s32 \t%rd1, %r1;\n\tshl.b64 \t%rd2, %rd1, 2;\n",
        ] {
            assert_eq!(body(wide), wide);
        }
    }
}
