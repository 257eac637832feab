//! Products in flight (`wgmma`) when a thread may end: that other threads of its warp take part in a product or wait for one is an error
//! (compute-sanitizer's synccheck reports it). So where a call or an end can follow before all products are waited for, the wait that
//! leaves some in flight waits for all, and later waits for these are left out.

use ferrogrid_ptx::{ControlFlow, Edits, Instruction, Module, Operand};

pub(super) fn end<'t>(module: &Module<'t>, edits: &mut Edits<'t>) {
    for body in module.functions().filter_map(|function| function.body.as_ref()) {
        let instruction = |at: usize| body.statements[at].instruction();
        let of_kind = |is_kind: &dyn Fn(&Instruction<'t>) -> bool| -> Vec<usize> {
            (0..body.statements.len()).filter(|&at| instruction(at).is_some_and(is_kind)).collect()
        };
        let partial = of_kind(&|it| pending(it).is_some_and(|pending| pending != "0"));
        if partial.is_empty() {
            continue;
        }
        let flow = ControlFlow::of(body, |_| false);
        let may_end = |at: usize| {
            instruction(at).is_some_and(|it| matches!(it.operation(), "call" | "exit" | "trap" | "ret"))
        };
        let waits = of_kind(&|it| pending(it) == Some("0"));
        let whole: Vec<usize> = partial
            .into_iter()
            .filter(|&at| flow.reaches(&[at], may_end, |at| waits.contains(&at)))
            .collect();
        let products = of_kind(&|it| it.opcode.starts_with("wgmma.mma_async"));
        let is_later = |&wait: &usize| {
            flow.reaches(&whole, |at| at == wait, |at| products.contains(&at))
                && !flow.reaches(&products, |at| at == wait, |at| waits.contains(&at) || whole.contains(&at))
        };
        waits.iter().filter(|wait| is_later(wait)).for_each(|&at| edits.remove(body.statements[at].text));
        for at in whole {
            edits.replace(body.statements[at].text, "wgmma.wait_group.sync.aligned 0;");
        }
    }
}

/// How many of the last products a wait leaves in flight.
fn pending<'t>(instruction: &Instruction<'t>) -> Option<&'t str> {
    match instruction.operands.first() {
        Some(Operand::Immediate(pending)) if instruction.opcode.starts_with("wgmma.wait_group") => {
            Some(pending)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::body_after;
    use super::*;

    /// How many products the waits of a loop leave in flight, with these `lines` between the first and the last one.
    fn left(lines: &str) -> Vec<char> {
        let text = format!(
            "$again:\n\twgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%r1}}, %rd1, %rd2, 1, 1, 1, 0, 0;\n\
             \twgmma.wait_group.sync.aligned 1; // sums\n{lines}\twgmma.wait_group.sync.aligned 0; // others\n\
             \tcall.uni panic;\n\t@%p1 bra $again;\n$end:\n\tret;\n"
        );
        let text = body_after(&text, end);
        text.match_indices("group.sync.aligned ")
            .map(|(at, it)| text[at + it.len()..].chars().next().unwrap())
            .collect()
    }

    #[test]
    fn threads_end_when_no_product_is_in_flight() {
        assert_eq!(left("\tadd.s32 %r1, %r1, %r1;\n"), ['1', '0']);
        for end in ["call.uni panic", "@%p2 exit", "@%p2 trap", "@%p2 bra $end"] {
            assert_eq!(left(&format!("\t{end};\n")), ['0'], "{end}");
        }
    }

    #[test]
    fn a_way_round_the_end_counts_too() {
        let way = "\t@%p2 bra $other;\n\tbra.uni $on;\n$other:\n\tcall.uni panic;\n$on:\n";
        assert_eq!(left(way), ['0']);
    }

    #[test]
    fn what_begins_behind_the_first_wait_is_waited_for() {
        let product = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r1}, %rd1, %rd2, 1, 1, 1, 0, 0;";
        assert_eq!(left(&format!("\tcall.uni panic;\n\t@%p2 bra $on;\n\t{product}\n$on:\n")), ['0', '0']);
    }
}
