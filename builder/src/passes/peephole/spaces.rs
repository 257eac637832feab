//! Removes needless generic addresses.

use ferrogrid_ptx::{Instruction, Register};

use super::values::Values;

/// An address in a state space: a register or a symbol.
struct Address<'t> {
    space: &'t str,
    base: String,
}

/// LLVM adds at most this many parts to a generic address: one for each index and the offset.
const SUMS: usize = 4;

/// Gives conversions and accesses the space that their address is known to be in.
pub(super) fn rewrite(values: &mut Values<'_, '_>) {
    for at in 0..values.body.statements.len() {
        let Some(instruction) = values.body.statements[at].instruction() else { continue };
        if instruction.operation() == "cvta" {
            convert(values, at, instruction);
        } else if values.instruction(at).is_some() {
            access(values, at, instruction);
        }
    }
}

/// Makes a move of a `cvta.to`, of LLVM or in `asm!`, of an address that was in that space before.
fn convert(values: &mut Values<'_, '_>, at: usize, instruction: &Instruction<'_>) -> Option<()> {
    let wanted = instruction.opcode.strip_prefix("cvta.to.")?.strip_suffix(".u64")?;
    let [result, source] = instruction.operands.as_slice() else { return None };
    let source = values.register(at, source).filter(|_| instruction.predicate.is_none())?;
    let known = address(values, source, Some(wanted), 0)?;
    values.replace(at, &format!("mov.b64 \t{result}, {}", known.base));
    Some(())
}

/// Gives a load or store without a space the one that its address is in, and the load of a matrix shared memory.
fn access<'t>(values: &mut Values<'_, 't>, at: usize, instruction: &Instruction<'t>) -> Option<()> {
    let is_type = |modifier: &str| {
        let digits = modifier.trim_start_matches(['b', 'v', 'u', 's', 'f']);
        digits.len() + 1 == modifier.len() && digits.parse::<u32>().is_ok()
    };
    let operation = instruction.operation();
    // Where the space stands: behind the operation, or before the type.
    let (before, wanted, sums) = match (operation, instruction.modifiers().last()?) {
        ("ld" | "st", _) if instruction.modifiers().next().is_some_and(is_type) => (None, None, 0),
        ("ldmatrix", ty) if !instruction.has("shared") => (Some(ty), Some("shared"), SUMS),
        _ => return None,
    };
    let (base, _) = instruction.operands.iter().find_map(|operand| operand.address())?;
    let known = address(values, values.registers.named(at, base)?, wanted, sums)?;
    match before {
        Some(ty) => values.replace_part(ty, format!("{}.{ty}", known.space)),
        None => values.replace_part(operation, format!("{operation}.{}", known.space)),
    }
    values.replace_part(base, known.base);
    Some(())
}

/// What a generic address was before it was made generic, in the space `wanted`, or in any. Offsets may have been added since, by up
/// to `sums` additions.
fn address<'t>(
    values: &mut Values<'_, 't>,
    register: Register,
    wanted: Option<&str>,
    sums: usize,
) -> Option<Address<'t>> {
    let at = values.definition_of(register)?;
    let definition = values.body.statements[at].instruction().filter(|it| it.predicate.is_none())?;
    if let ("add.s64", [_, first, second], 1..) = (definition.opcode, definition.operands.as_slice(), sums) {
        return [(first, second), (second, first)].into_iter().find_map(|(base, offset)| {
            let base = values.register(at, base)?;
            let Address { space, base } = address(values, base, wanted, sums - 1)?;
            Some(Address { space, base: values.sum_at(register, &base, offset)? })
        });
    }
    let space = definition.opcode.strip_prefix("cvta.")?.strip_suffix(".u64")?;
    if space.starts_with("to.") || wanted.is_some_and(|wanted| wanted != space) {
        return None;
    }
    let source = definition.operands.get(1)?.name()?;
    let base = match values.registers.named(at, source) {
        None => source.to_owned(),
        Some(source) => match symbol(values, source) {
            Some(symbol) => symbol.to_owned(),
            None => values.copy_at(register, values.registers.name(source))?,
        },
    };
    Some(Address { space, base })
}

/// The symbol whose address a register always has: `mov.u64 %t, ferrogrid_shared;`.
fn symbol<'t>(values: &Values<'_, 't>, register: Register) -> Option<&'t str> {
    let at = values.definition_of(register)?;
    let definition = values.body.statements[at].instruction()?;
    let source = definition.operands.get(1)?.name()?;
    let is_move = matches!(definition.opcode, "mov.u64" | "mov.b64") && definition.predicate.is_none();
    let is_symbol = !source.starts_with('%') && values.registers.named(at, source).is_none();
    (is_move && is_symbol).then_some(source)
}

#[cfg(test)]
mod tests {
    use super::super::tests::body;

    const REGION: &str = "\t// begin inline asm\n\t{ .reg .u64 %t; mov.u64 %t, shared; cvta.shared.u64 %rd1, %t; }\n\t// end inline asm\n";

    #[test]
    fn accesses_of_constants_name_their_space() {
        let constant =
            "\t{ .reg .u64 %t; mov.u64 %t, weights; cvta.const.u64 %rd1, %t; }\n\t// end inline asm\n";
        let lines = format!(
            "{constant}\tld.b32 \t%r1, [%rd1];\n\tcvta.to.const.u64 \t%rd2, %rd1;\n\tld.const.b32 \t%r2, [%rd2+4];\n"
        );
        let expected = format!(
            "{constant}\tld.const.b32 \t%r1, [weights];\n\tmov.b64 \t%rd2, weights;\n\tld.const.b32 \t%r2, [%rd2+4];\n"
        );
        assert_eq!(body(&lines), expected);
    }

    #[test]
    fn shared_memory_is_reached_as_such() {
        let before = format!(
            "{REGION}\tcvta.to.shared.u64 \t%rd2, %rd1;\n\tld.v4.b32 \t{{%r1, %r2, %r3, %r4}}, [%rd1+16];\n\tst.b32 \t[%rd1], %r5;\n"
        );
        let after = format!(
            "{REGION}\tmov.b64 \t%rd2, shared;\n\tld.shared.v4.b32 \t{{%r1, %r2, %r3, %r4}}, [shared+16];\n\tst.shared.b32 \t[shared], %r5;\n"
        );
        assert_eq!(body(&before), after);
    }

    #[test]
    fn matrices_are_loaded_from_shared_memory() {
        let before = "\tcvta.shared.u64 \t%rd2, %rd1;\n\
                      \tldmatrix.sync.aligned.m8n8.x2.trans.b16 \t{%r1, %r2}, [%rd2];\n\
                      \tldmatrix.sync.aligned.m8n8.x4.b16 \t{%r3, %r4, %r5, %r6}, [%rd2+32];\n";
        let after = "\t.reg .b64 \t%space<1>;\n\tcvta.shared.u64 \t%rd2, %rd1;\n\tmov.b64 \t%space0, %rd1;\n\
                     \tldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 \t{%r1, %r2}, [%space0];\n\
                     \tldmatrix.sync.aligned.m8n8.x4.shared.b16 \t{%r3, %r4, %r5, %r6}, [%space0+32];\n";
        assert_eq!(body(before), after);
    }

    #[test]
    fn offsets_are_added_to_the_address_in_shared_memory() {
        let before = "\tcvta.shared.u64 \t%rd2, %rd1;\n\tadd.s64 \t%rd4, %rd3, %rd2;\n\
                      \tldmatrix.sync.aligned.m8n8.x2.b16 \t{%r1, %r2}, [%rd4+32];\n\tld.b32 \t%r3, [%rd4];\n";
        let after = "\t.reg .b64 \t%space<2>;\n\tcvta.shared.u64 \t%rd2, %rd1;\n\tmov.b64 \t%space0, %rd1;\n\
                     \tadd.s64 \t%rd4, %rd3, %rd2;\n\tadd.s64 \t%space1, %space0, %rd3;\n\
                     \tldmatrix.sync.aligned.m8n8.x2.shared.b16 \t{%r1, %r2}, [%space1+32];\n\tld.b32 \t%r3, [%rd4];\n";
        assert_eq!(body(before), after);
    }

    #[test]
    fn addresses_made_generic_are_used_in_their_space() {
        let before = "\tcvta.shared.u64 \t%rd2, %rd1;\n\t// begin inline asm\n\
                      \t{ .reg .u64 %a; cvta.to.shared.u64 %a, %rd2; atom.shared.add.u32 %r1, [%a], %r2; }\n\
                      \t// end inline asm\n";
        let after = "\t.reg .b64 \t%space<1>;\n\tcvta.shared.u64 \t%rd2, %rd1;\n\tmov.b64 \t%space0, %rd1;\n\
                     \t// begin inline asm\n\
                     \t{ .reg .u64 %a; mov.b64 \t%a, %space0; atom.shared.add.u32 %r1, [%a], %r2; }\n\
                     \t// end inline asm\n";
        assert_eq!(body(before), after);
    }

    #[test]
    fn a_symbol_that_a_condition_chooses_is_not_always_the_address() {
        let text = body(
            "\t@%p1 mov.b64 \t%rd1, shared;\n\tcvta.shared.u64 \t%rd2, %rd1;\n\tld.b32 \t%r1, [%rd2];\n",
        );
        assert!(text.contains("ld.shared.b32 \t%r1, [%space0];"), "{text}");
    }

    #[test]
    fn other_addresses_stay_generic() {
        for same in [
            "\tadd.s64 \t%rd1, %rd8, %rd9;\n\tcvta.shared.u64 \t%rd2, %rd1;\n\tcvta.to.global.u64 \t%rd3, %rd2;\n",
            "\tcvta.shared.u64 \t%rd2, %rd1;\n\tmov.b64 \t%rd2, %rd5;\n\tld.b32 \t%r1, [%rd2];\n",
            "\tadd.s64 \t%rd1, %rd8, %rd9;\n\tcvta.global.u64 \t%rd2, %rd1;\n\tld.volatile.b32 \t%r1, [%rd2];\n",
            // Where a condition is false, the register has what it had.
            "\tcvta.shared.u64 \t%rd2, %rd1;\n\t@%p1 cvta.to.shared.u64 \t%rd3, %rd2;\n",
            "\tld.b32 \t%r1, [%rd2];\n\tld.global.nc.b32 \t%r2, [%rd3];\n\tst.param.b64 \t[param0], %rd4;\n",
        ] {
            assert_eq!(body(same), same);
        }
    }
}
