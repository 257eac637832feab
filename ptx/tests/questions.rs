//! Queries of the model: operands, registers in their scopes, control flow, calls.

use ferrogrid_ptx::{Body, Calls, ControlFlow, Instruction, Item, Module, Registers, StatementKind};

/// The body of a kernel with these statements.
fn with_body(statements: &str, ask: impl FnOnce(&Body<'_>)) {
    let text = format!(".version 8.0\n.target sm_90\n.visible .entry k()\n{{\n{statements}\n}}\n");
    let module = Module::parse(&text).unwrap();
    ask(module.entry("k").unwrap().body.as_ref().unwrap());
}

/// The definitions and uses of an instruction.
fn operands(instruction: &str) -> (String, String) {
    let mut found = Default::default();
    with_body(instruction, |body| {
        let instruction: &Instruction<'_> = body.statements[0].instruction().unwrap();
        found = (instruction.definitions().join(" "), instruction.uses().join(" "));
    });
    found
}

#[test]
fn instructions_have_definitions_and_uses() {
    for (instruction, defined, used) in [
        ("add.s32 %r1, %r2, -1;", "%r1", "%r2"),
        ("@!%p1 mov.b32 %r1, %r2;", "%r1", "%p1 %r2"),
        ("ld.global.v2.b64 {%rd1, %rd2}, [%rd3+8];", "%rd1 %rd2", "%rd3"),
        ("st.global.v2.b64 [%rd3+8], {%rd1, _};", "", "%rd3 %rd1"),
        ("setp.lt.and.u32 %p1|%p2, %r1, %r2, !%p3;", "%p1 %p2", "%r1 %r2 %p3"),
        ("setp.lt.u32 %p1|_, %r1, 7;", "%p1", "%r1"),
        ("atom.global.add.u32 %r1, [%rd1], 1;", "%r1", "%rd1"),
        ("red.global.add.u32 [%rd1], %r1;", "", "%rd1 %r1"),
        ("bar.sync %r1, 64;", "", "%r1"),
        ("barrier.cta.red.popc.u32 %r1, %r2, %p1;", "%r1", "%r2 %p1"),
        ("shfl.sync.bfly.b32 %r1|%p1, %r2, %r3, 31, %r4;", "%r1 %p1", "%r2 %r3 %r4"),
        ("bar.warp.sync %r1;", "", "%r1"),
        ("@%p1 bra $L__BB0_1;", "", "%p1 $L__BB0_1"),
        ("call.uni (%r1), leaf, (%r2, param0);", "%r1", "leaf %r2 param0"),
        ("call (retval0), %rd1, (param0), prototype_0;", "retval0", "%rd1 param0 prototype_0"),
        ("call.uni leaf;", "", "leaf"),
        ("mbarrier.arrive.shared.b64 %rd1, [%rd2];", "%rd1", "%rd2"),
        ("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%rd2];", "", "%rd2"),
        (
            "cp.async.bulk.tensor.2d.shared::cluster.global [a], [%rd1, {%r1, %r2}], [%rd2];",
            "",
            "a %rd1 %r1 %r2 %rd2",
        ),
        (
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2}, %rd1, %rd2, 1, 1, 1, 0, 0;",
            "%f1 %f2",
            "%f1 %f2 %rd1 %rd2",
        ),
        ("nanosleep.u32 %r1;", "", "%r1"),
        ("ret;", "", ""),
    ] {
        assert_eq!(operands(instruction), (defined.to_owned(), used.to_owned()), "{instruction}");
    }
}

#[test]
fn declarations_have_sizes_and_alignments() {
    let text = ".version 8.0\n.target sm_90\n.entry k(.param .u64 .ptr .global .align 4 p, .param .align 8 .b8 q[24], .param .v4 .f32 v,\n\
                .param .pred c, .param .b8 big[18446744073709551615][2])\n{ ret; }\n";
    let module = Module::parse(text).unwrap();
    let parameters = module.entry("k").unwrap().parameters();
    let found: Vec<_> = parameters.iter().map(|it| (it.name(), it.size(), it.alignment())).collect();
    let expected = [
        ("p", Some(8), Some(8)),
        ("q", Some(24), Some(8)),
        ("v", Some(16), Some(16)),
        ("c", None, None),
        ("big", None, Some(1)),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_range_of_registers_declares_each_by_its_number() {
    with_body(".reg .b32 %r<12>; .reg .pred single; ret;", |body| {
        let of = |at: usize| match &body.statements[at].kind {
            StatementKind::Declaration(declaration) => &declaration.names[0],
            other => panic!("{other:?}"),
        };
        let (range, single) = (of(0), of(1));
        let of_range = |name: &str| range.declares(name);
        assert_eq!(["%r0", "%r1", "%r9", "%r10", "%r11"].map(of_range), [true; 5]);
        assert_eq!(["%r12", "%r01", "%r00", "%r", "%r1x", "%rd1", "r1"].map(of_range), [false; 7]);
        assert!(single.declares("single") && !single.declares("single0"));
    });
}

#[test]
fn declarations_may_follow_the_head_of_the_text() {
    for head in [
        ".version 8.0\n.target sm_90\n",
        ".version 8.0\n.target sm_90\n.address_size 64\n",
        "// first\n.version 8.0 .target sm_90 // last\n",
        ".version 8.0\n",
        "",
    ] {
        let text = format!("{head}.visible .entry k()\n{{\n\tret;\n}}\n");
        let module = Module::parse(&text).unwrap();
        let after = module.after_header();
        assert_eq!(after.as_ptr().addr() - text.as_ptr().addr(), head.len(), "{text}");
    }
}

#[test]
fn calls_have_a_callee_and_arguments() {
    with_body("call.uni (r), f, (a, b);\ncall %rd1, p;\nret;", |body| {
        let calls: Vec<_> = body.statements.iter().filter_map(|it| it.instruction()).collect();
        assert_eq!((calls[0].callee(), calls[0].arguments().len()), (Some("f"), 2));
        assert_eq!((calls[1].callee(), calls[1].arguments().len()), (Some("%rd1"), 0));
        assert_eq!(calls[2].callee(), None);
    });
}

#[test]
fn collective_instructions_are_convergent() {
    with_body(
        "bar.sync 0; barrier.cluster.wait; shfl.sync.idx.b32 %r1, %r2, 0, 31, -1; activemask.b32 %r1;\n\
         mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1}, {%r1}, {%r2}, {%f1};\n\
         ferrogrid.together.block; bar.warp.sync -1; mov.b32.sync %r1, 0; mov.b32.aligned %r1, 0;\n\
         add.s32 %r1, %r1, 1; fence.sc.cta; atom.global.add.u32 %r1, [%rd1], 1; call.uni f;",
        |body| {
            let found: Vec<bool> = body
                .statements
                .iter()
                .filter_map(|it| it.instruction())
                .map(|it| it.is_convergent())
                .collect();
            assert_eq!(found, [[true; 9].as_slice(), &[false; 4]].concat());
        },
    );
}

#[test]
fn registers_of_two_scopes_are_two() {
    let text = ".reg .b32 %r<3>; .reg .b64 %x1<2>;\n{ .reg .b32 %t; mov.b32 %t, %r1; mov.b32 %r2, %t; }\n\
                { .reg .b32 %t; mov.b32 %t, %r2; }\nmov.b64 %x11, %x10; mov.b32 %r3, %tid.x;";
    with_body(text, |body| {
        let registers = Registers::of(body);
        let instructions: Vec<usize> =
            (0..body.statements.len()).filter(|&at| body.statements[at].instruction().is_some()).collect();
        let [first, second] = [instructions[0], instructions[2]].map(|at| registers.named(at, "%t").unwrap());
        assert_ne!(first, second);
        assert_eq!(
            (registers.definitions(first), registers.uses(first)),
            (&instructions[..1], &instructions[1..2])
        );
        let r2 = registers.named(instructions[1], "%r2").unwrap();
        assert_eq!(
            (registers.definitions(r2), registers.uses(r2)),
            (&instructions[1..2], &instructions[2..3])
        );
        assert_eq!((registers.name(r2), registers.ty(r2)), ("%r2", ".b32"));
        assert_eq!(registers.ty(registers.named(instructions[3], "%x11").unwrap()), ".b64");
        // Neither the fourth of three registers nor a special one is declared.
        assert!(
            registers.defined_by(instructions[4]).is_empty() && registers.used_by(instructions[4]).is_empty()
        );
    });
}

#[test]
fn an_element_of_a_vector_is_its_register() {
    with_body(".reg .v4 .f32 v; mov.f32 v.x, v.y;", |body| {
        let registers = Registers::of(body);
        assert_eq!(registers.defined_by(2 - 1), registers.used_by(1));
        assert_eq!(registers.len(), 1);
    });
}

/// The immediate dominators and post-dominators of a body, and the block of each label.
fn dominance(statements: &str, check: impl FnOnce(&ControlFlow, &dyn Fn(&str) -> usize)) {
    with_body(statements, |body| {
        let flow = ControlFlow::of(body, |call| call.callee() == Some("panic"));
        let block = |name: &str| {
            let is_label =
                |kind: &StatementKind<'_>| matches!(kind, StatementKind::Label(label) if *label == name);
            flow.block_of(body.statements.iter().position(|it| is_label(&it.kind)).unwrap())
        };
        check(&flow, &block);
    });
}

#[test]
fn a_barrier_after_both_arms_of_a_branch_is_accepted() {
    dominance("@%p1 bra Else;\nThen: bra Meet;\nElse: mov.b32 %r1, 1;\nMeet: ret;", |flow, block| {
        let (then, other, meet) = (block("Then"), block("Else"), block("Meet"));
        assert_eq!(flow.blocks[0].successors, [then, other]);
        assert_eq!(flow.blocks[meet].predecessors, [then, other]);
        assert!(flow.blocks[meet].returns && !flow.blocks[then].returns);
        let dominators = flow.dominators();
        assert_eq!([0, then, other, meet].map(|it| dominators[it]), [None, Some(0), Some(0), Some(0)]);
        let post = flow.post_dominators();
        assert_eq!([0, then, other, meet].map(|it| post[it]), [Some(meet), Some(meet), Some(meet), None]);
    });
}

#[test]
fn ways_that_end_in_a_panic_or_a_trap_do_not_count_for_post_dominators() {
    let text = "@%p1 bra Panic;\n@%p2 bra Trap;\nRest: ret;\nPanic: call.uni panic, (a);\nTrap: trap;";
    dominance(text, |flow, block| {
        let post = flow.post_dominators();
        assert_eq!(flow.blocks[block("Panic")].successors, Vec::<usize>::new());
        assert_eq!((post[0], post[block("Panic")], post[block("Trap")]), (Some(1), None, None));
        assert_eq!(post[1], Some(block("Rest")));
    });
}

#[test]
fn loops_tables_and_returns_in_the_middle_have_their_edges() {
    let text = "Head: @%p1 ret;\nNext: .branchtargets A, B;\nbrx.idx %r1, Next;\nA: bra Head;\nB: @%p2 exit;\nC: mov.b32 %r1, 2;";
    dominance(text, |flow, block| {
        let [head, a, b, c] = ["Head", "A", "B", "C"].map(block);
        let next = block("Head") + 1;
        assert_eq!((flow.blocks[head].successors.as_slice(), flow.blocks[head].returns), (&[next][..], true));
        assert_eq!(flow.blocks[next].successors, [a, b]);
        assert_eq!(flow.blocks[a].successors, [head]);
        // A conditional exit also continues; the end of the body returns.
        assert_eq!(c, b);
        assert!(flow.blocks[b].returns);
        assert_eq!(flow.dominators()[a], Some(next));
        assert_eq!(flow.post_dominators()[next], None, "one of its paths returns at the head");
    });
}

#[test]
fn labels_belong_to_their_scopes() {
    let text = "{ bra Done;\nmov.b32 %r1, 1;\nDone: }\n{ @%p1 bra Done;\nmov.b32 %r1, 2;\nDone: }\nret;";
    with_body(text, |body| {
        let flow = ControlFlow::of(body, |_| false);
        let done: Vec<usize> = (0..body.statements.len())
            .filter(|&at| matches!(body.statements[at].kind, StatementKind::Label("Done")))
            .map(|at| flow.block_of(at))
            .collect();
        assert_eq!(flow.blocks[0].successors, [done[0]]);
        assert!(flow.blocks[done[0]].successors.contains(&done[1]));
        assert!(!flow.blocks[done[0]].successors.contains(&done[0]));
    });
    dominance("{ bra Out; }\nmov.b32 %r1, 1;\nOut: ret;", |flow, block| {
        assert_eq!(flow.blocks[0].successors, [block("Out")]);
    });
}

#[test]
fn calls_addresses_and_values_of_variables_are_followed() {
    let text = ".version 8.0\n.target sm_90\n.global .u64 table[1] = {generic(second)};\n.global .u64 lone = unused;\n\
        .func third() { ret; }\n.func second() { call.uni third; ret; }\n.func first() { mov.u64 %rd1, table; ret; }\n\
        .func unused() { call %rd1, p; ret; }\n.visible .entry k() { call.uni first; ret; }\n";
    let module = Module::parse(text).unwrap();
    let calls = Calls::of(&module);
    let item = |name: &str| calls.definition(name).unwrap();
    let entries: Vec<usize> = (0..module.items.len())
        .filter(|&at| matches!(&module.items[at], Item::Function(function) if function.is_entry))
        .collect();
    let reached = calls.reachable(entries.clone(), |_| false);
    for name in ["table", "first", "second", "third"] {
        assert!(reached.contains(&item(name)), "{name}");
    }
    assert!(!reached.contains(&item("unused")) && !reached.contains(&item("lone")));
    assert!(!calls.reachable(entries, |name| name == "second").contains(&item("third")));
    assert!(calls.calls_by_address(item("unused")) && !calls.calls_by_address(item("first")));
    assert_eq!(calls.mentioned_by(item("second")), ["third"]);
}

#[test]
fn the_line_table_has_the_source_of_instructions() {
    let text = "mov.b32 %r1, 0;\n.loc 1 20 16\nmov.b32 %r1, 1;\n\
                .loc 2 7 3, function_name $L__info_string0 + 4, inlined_at 1 21 5\nmov.b32 %r1, 2;";
    with_body(text, |body| {
        let found: Vec<_> =
            body.located().map(|(_, _, place)| place.map(|it| (it.file, it.line, it.inlined))).collect();
        let inlined = Some(("$L__info_string0", [1, 21, 5]));
        assert_eq!(found, [None, Some((1, 20, None)), Some((2, 7, inlined))]);
    });
}

#[test]
fn inline_assembly_is_known_as_such() {
    let text = "mov.b32 %r1, 0;\n// begin inline asm\nmov.b32 %r1, 1;\n// end inline asm\nmov.b32 %r1, 2;";
    with_body(text, |body| {
        let found: Vec<bool> = body.statements.iter().map(|statement| statement.in_asm).collect();
        assert_eq!(found, [false, true, false]);
    });
}

#[test]
fn errors_name_the_line_and_the_expected_token() {
    for (text, line, problem) in [
        (".version x\n", 1, "malformed .version x"),
        (".version 8.0\n.target sm_90\nret;\n", 3, "expected a directive, found `ret`"),
        (".version 8.0\n\n.entry k(.foo .b32 x)\n{ }\n", 3, "expected `.param`, found `.foo`"),
        (".entry k()\n{\n\tret\n}\n", 4, "expected an operand"),
        (".entry k()\n{\n\tret;\n", 4, "unexpected end of a function"),
        (".file 1 \"a\n", 1, "unterminated string"),
    ] {
        let error = Module::parse(text).unwrap_err();
        assert_eq!((error.line, error.problem.as_str()), (line, problem), "{text}");
        assert_eq!(error.to_string(), format!("line {line}: {problem}"));
    }
    // Deep nesting is an error, not a stack overflow.
    for nested in ["!", "[", "(", "%r1|", "generic("].map(|it| it.repeat(100_000)) {
        let error = Module::parse(&format!(".entry k()\n{{\n\tmov.b32 {nested};\n}}\n")).unwrap_err();
        assert!(error.problem.contains("nested too deeply"), "{error}");
    }
}
