//! Addresses that are generic for no reason. It must not know what lies there, only how device code asks where a
//! block's shared memory or a constant is.

use super::function::{Function, statements};

/// An address in a state space: a register or a symbol.
struct Address<'t> {
    space: &'t str,
    base: String,
}

/// Gives conversions and accesses the space that their address is known to be in.
pub(super) fn rewrite(function: &mut Function<'_>) {
    for line in 0..function.lines.len() {
        let text = function.lines[line].text;
        let changed = match function.instruction(line) {
            Some(instruction) => access(function, instruction.opcode, text),
            None => None,
        };
        if let Some(changed) = changed.or_else(|| conversion(function, text)) {
            function.lines[line].changed = Some(changed);
        }
    }
}

/// A line with `cvta.to`, of LLVM or in `asm!`, of an address that was in that space before.
fn conversion(function: &mut Function<'_>, text: &str) -> Option<String> {
    let start = text.find("cvta.to.")?;
    let conversion = text[start..].split(';').next()?;
    let (opcode, operands) = conversion.split_once(char::is_whitespace)?;
    let (result, source) = operands.split_once(',').map(|(result, source)| (result.trim(), source.trim()))?;
    let wanted = opcode.strip_prefix("cvta.to.")?.strip_suffix(".u64")?;
    let known = address(function, source, wanted)?;
    Some(text.replacen(conversion, &format!("mov.b64 \t{result}, {}", known.base), 1))
}

/// A load or store without a space.
fn access(function: &mut Function<'_>, opcode: &str, text: &str) -> Option<String> {
    let (operation, ty) = opcode.split_once('.')?;
    let is_plain = ["ld", "st"].contains(&operation) && ty.starts_with(['b', 'v', 'u', 's', 'f']);
    if !is_plain || ["volatile", "shared"].iter().any(|other| ty.starts_with(other)) {
        return None;
    }
    let place = text.split_once('[')?.1.split(']').next()?;
    let register = place.split('+').next()?.trim();
    let known = address(function, register, "")?;
    let with_space = text.replacen(opcode, &format!("{operation}.{}.{ty}", known.space), 1);
    Some(with_space.replacen(&format!("[{register}"), &format!("[{}", known.base), 1))
}

/// What a generic address was before it was made generic, in the space `wanted`, or in any if that is empty.
fn address<'t>(function: &mut Function<'t>, register: &str, wanted: &str) -> Option<Address<'t>> {
    let line = function.line_of(register)?;
    if let Some(definition) = function.instruction(line) {
        let space = definition.opcode.strip_prefix("cvta.")?.strip_suffix(".u64")?;
        if space.starts_with("to.") || ![space, ""].contains(&wanted) {
            return None;
        }
        let base = function.copy_at(register, definition.operands[1])?;
        return Some(Address { space, base });
    }
    // `{ .reg .u64 %t; mov.u64 %t, ferrogrid_shared; cvta.shared.u64 %rd1, %t; }`
    let mut all = statements(function.lines[line].text);
    let base = all.next()?.strip_prefix("mov.u64 %t, ")?;
    let (space, made) = all.next()?.strip_prefix("cvta.")?.split_once(".u64 ")?;
    let is_symbol = made == format!("{register}, %t") && [space, ""].contains(&wanted);
    is_symbol.then(|| Address { space, base: base.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::super::rewritten_body as body;

    const REGION: &str = "\t// begin inline asm\n\t{ .reg .u64 %t; mov.u64 %t, shared; cvta.shared.u64 %rd1, %t; }\n\t// end inline asm\n";

    #[test]
    fn accesses_of_constants_say_so() {
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
    fn what_was_made_generic_is_used_as_it_was() {
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
    fn other_addresses_stay_generic() {
        for same in [
            "\tadd.s64 \t%rd1, %rd8, %rd9;\n\tcvta.shared.u64 \t%rd2, %rd1;\n\tcvta.to.global.u64 \t%rd3, %rd2;\n",
            "\tcvta.shared.u64 \t%rd2, %rd1;\n\tmov.b64 \t%rd2, %rd5;\n\tld.b32 \t%r1, [%rd2];\n",
            "\tadd.s64 \t%rd1, %rd8, %rd9;\n\tcvta.global.u64 \t%rd2, %rd1;\n\tld.volatile.b32 \t%r1, [%rd2];\n",
            "\tld.b32 \t%r1, [%rd2];\n\tld.global.nc.b32 \t%r2, [%rd3];\n\tst.param.b64 \t[param0], %rd4;\n",
        ] {
            assert_eq!(body(same), same);
        }
    }
}
