//! Loops of one block that count from a constant to a constant, such as `for k in 0..256` over an array in shared
//! memory: the comparison at their end needs 32 bits. It must not know what is done in the loop.

use super::function::{Function, Instruction, defined, statements};

/// Rewrites the comparisons at the end of such loops.
pub(super) fn rewrite(function: &mut Function<'_>) {
    for line in 0..function.lines.len() {
        if let Some(Count { register, result, end }) = count(function, line) {
            function.replace_by_half(line, register, |half| format!("setp.ne.b32 \t{result}, {half}, {end}"));
        }
    }
}

/// What a loop counts with, and what it compares with at its end.
struct Count<'t> {
    register: &'t str,
    result: &'t str,
    end: u32,
}

/// The count that is compared on `line`, if it is known to be at most its end there: it begins as a constant on the only
/// way into the loop, each round adds a constant, and the round that reaches the end is the last.
fn count<'t>(function: &Function<'t>, line: usize) -> Option<Count<'t>> {
    let Instruction { opcode: "setp.ne.b64" | "setp.ne.s64", operands: [result, register, end, ""] } =
        function.instruction(line)?
    else {
        return None;
    };
    let end: u32 = end.parse().ok()?;
    let back = (line + 1..function.lines.len()).find(|&at| borders(function, at))?;
    let label = branch_if(function, back, result)?;
    let head = (0..line).rev().find(|&at| borders(function, at))?;
    let is_loop = block_label(function, head) == Some(label) && function.mentions(label) == 2;
    let step = only_definition(function, head + 1..back, register).filter(|&step| step < line)?;
    let before = (0..head).rev().find(|&at| borders(function, at)).map_or(0, |border| border + 1);
    let begin = only_definition(function, before..head, register)?;
    let (first, by) = (constant(function, begin)?, step_of(function, step, register)?);
    let arrives = first < end && (end - first).is_multiple_of(by);
    let is_kept = only_definition(function, head + 1..back, result) == Some(line);
    (is_loop && arrives && is_kept).then_some(Count { register, result, end })
}

/// Whether a block of straight code begins or ends on a line.
fn borders(function: &Function<'_>, line: usize) -> bool {
    block_label(function, line).is_some()
        || statements(function.lines[line].text).any(|it| it.contains("bra"))
}

/// The label of a block; those for debuggers, which nobody goes to, have other names.
fn block_label<'t>(function: &Function<'t>, line: usize) -> Option<&'t str> {
    function.lines[line].text.trim().strip_suffix(':').filter(|label| label.starts_with("$L__BB"))
}

/// Where a line goes if `condition` holds, and it does nothing else.
fn branch_if<'t>(function: &Function<'t>, line: usize, condition: &str) -> Option<&'t str> {
    let mut all = statements(function.lines[line].text);
    let (only, None) = (all.next()?, all.next()) else { return None };
    let (goes, label) =
        only.strip_prefix('@')?.strip_prefix(condition)?.trim_start().split_once(char::is_whitespace)?;
    (goes == "bra").then_some(label.trim())
}

/// The line among `lines` that gives `register` a value, if there is just one.
fn only_definition(
    function: &Function<'_>,
    mut lines: std::ops::Range<usize>,
    register: &str,
) -> Option<usize> {
    let defines =
        |at: &usize| statements(function.lines[*at].text).flat_map(defined).any(|it| it == register);
    let found = lines.find(defines)?;
    lines.all(|at| !defines(&at)).then_some(found)
}

/// The constant that a line gives to a register, itself or by another register.
fn constant(function: &Function<'_>, line: usize) -> Option<u32> {
    let Instruction { opcode: "mov.b64", operands: [_, value, "", ""] } = function.instruction(line)? else {
        return None;
    };
    value.parse().ok().or_else(|| constant(function, function.line_of(value)?))
}

/// What a line adds to `register`.
fn step_of(function: &Function<'_>, line: usize, register: &str) -> Option<u32> {
    match function.instruction(line)? {
        Instruction { opcode: "add.s64", operands: [result, from, by, ""] }
            if result == register && from == register =>
        {
            by.parse().ok().filter(|by| *by > 0)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::rewritten_body as body;

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
    fn what_may_not_meet_its_end_stays_wide() {
        for (reason, from, to) in [
            ("it steps over the end", "4096", "4100"),
            ("it begins beyond the end", "%rd1, 0;", "%rd1, 8192;"),
            ("nobody knows where it begins", "%rd1, 0;", "%rd1, %rd9;"),
            ("it goes down", "%rd1, 128;", "%rd1, -128;"),
            ("there is another way in", "\tret;\n", "\t@%p2 bra \t$L__BB0_1;\n\tret;\n"),
            (
                "it may begin twice",
                "\tmov.b64 \t%rd1, 0;\n",
                "\tmov.b64 \t%rd1, 0;\n\t@%p2 mov.b64 \t%rd1, %rd9;\n",
            ),
            ("there is another step", "\tld.shared", "\tadd.s64 \t%rd1, %rd1, 1;\n\tld.shared"),
            ("a branch is between", "\tld.shared", "\t@%p2 bra \t$L__BB0_9;\n\tld.shared"),
            ("a block is between", "\tld.shared", "$L__BB0_9:\n\tld.shared"),
            ("it goes on at the end", "@%p1 bra", "@!%p1 bra"),
            ("the condition is another's", "@%p1 bra", "@%p2 bra"),
            ("it leaves for another block", "@%p1 bra \t$L__BB0_1", "@%p1 bra \t$L__BB0_9"),
            (
                "it is compared before the step",
                "\tld.shared.b32 \t%r1, [%rd1];",
                "\tsetp.ne.b64 \t%p1, %rd1, 4096;",
            ),
        ] {
            let text = LOOP.replacen(from, to, 1);
            assert_ne!(text, LOOP, "{reason}");
            assert!(!body(&text).contains("%narrow"), "{reason}:\n{}", body(&text));
        }
    }
}
