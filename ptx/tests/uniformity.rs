//! Barriers that all threads reach together: each rule with a program that is accepted and one that is
//! refused.

use ferrogrid_ptx::uniformity::{Divergence, Level, Program};
use ferrogrid_ptx::{Item, Module};

const REGISTERS: &str = ".reg .pred %p<9>; .reg .b32 %r<30>; .reg .b64 %rd<30>;";

/// A kernel with these statements; `$A`, `$B`, `$C` are labels of theirs.
fn kernel(statements: &str) -> String {
    format!(
        ".version 8.0\n.target sm_90\n.shared .align 4 .b8 tile[64];\n.visible .entry k(.param .u32 n, .param .u64 x)\n{{\n\
         {REGISTERS} .local .align 4 .b8 own[16];\nld.param.b32 %r20, [n]; ld.param.b64 %rd20, [x]; mov.u32 %r21, %tid.x;\n\
         {statements}\nret;\n}}\n"
    )
}

fn found(text: &str) -> Vec<Divergence> {
    let module = Module::parse(text).unwrap_or_else(|error| panic!("{error} in\n{text}"));
    Program::of(&module).divergences()
}

fn is_refused(statements: &str) -> bool {
    !found(&kernel(statements)).is_empty()
}

/// `condition` sets `%p1`; where it is true, a barrier is left out.
fn decided_by(condition: &str) -> String {
    format!("{condition}\n@%p1 bra $A;\nbar.sync 0;\n$A:")
}

/// A register with several definitions has the value of any of them; a pair of registers has no value of its own.
#[test]
fn registers_with_several_values_are_not_uniform() {
    for source in [
        "setp.gt.u32 %p2, %r20, 3; mov.b32 %r1, 5; @%p2 bra $B; mov.b32 %r1, %r21; $B: setp.gt.u32 %p1, %r1, 7;",
        "setp.gt.u32 %p2, %r20, 3; mov.b32 %r1, %r21; @%p2 bra $B; mov.b32 %r1, 5; $B: setp.gt.u32 %p1, %r1, 7;",
        "cvt.u64.u32 %rd1, %r21; mov.b64 {%r1, %r2}, %rd1; setp.ne.s32 %p1, %r1, %r2;",
        "mov.b64 %rd1, {%r20, %r21}; setp.gt.u64 %p1, %rd1, 7;",
        "mov.b32 %r5, %r20; $B: mov.b32 %r1, %r5; add.s32 %r5, %r5, %r21; setp.lt.u32 %p2, %r20, 9; @%p2 bra $B; setp.ne.s32 %p1, %r1, %r5;",
        "mov.b32 %r5, %r20; mov.b32 %r1, %r5; add.s32 %r5, %r5, %r21; setp.ne.s32 %p1, %r1, %r5;",
        // The same clock twice.
        "mov.u32 %r1, %clock; mov.u32 %r2, %clock; setp.ne.s32 %p1, %r1, %r2;",
        // An element that is read before another is loaded into the same register.
        "$B: ld.global.b32 %r5, [%rd20]; setp.ne.s32 %p1, %r1, %r5; mov.b32 %r1, %r5; setp.lt.u32 %p2, %r20, 9; @%p2 bra $B;",
        ".reg .v2 .b32 v; ld.global.v2.b32 {v.x, v.y}, [%rd20]; setp.ne.s32 %p1, v.x, v.y;",
        ".reg .v2 .b32 v; ld.global.v2.b32 {v.x, v.y}, [%rd20]; setp.ne.s32 %p1, v.x, 3;",
        "mov.b64 %rd1, {%r21, %r20}; mov.b64 %rd2, {%r20, %r21}; setp.ne.s64 %p1, %rd1, %rd2;",
    ] {
        assert!(is_refused(&decided_by(source)), "{source}");
    }
    let one = "setp.gt.u32 %p2, %r20, 3; mov.b32 %r1, 5; @%p2 bra $B; mov.b32 %r1, %r20; $B: setp.gt.u32 %p1, %r1, 7;";
    assert!(!is_refused(&decided_by(one)), "it is uniform on either path");
}

#[test]
fn indices_clocks_lanes_and_writable_memory_are_divergent() {
    for source in [
        "mov.u32 %r1, %tid.x;",
        "mov.u32 %r1, %laneid;",
        "mov.u32 %r1, %warpid;",
        "mov.u32 %r1, %clock;",
        "mov.u32 %r1, %smid;",
        "mov.u32 %r1, %lanemask_lt;",
        "mov.u32 %r1, %not_known_yet;",
        "atom.global.add.u32 %r1, [%rd20], 1;",
        "ld.global.b32 %r1, [%rd20];",
        "ld.b32 %r1, [%rd20];",
        "ld.volatile.shared.b32 %r1, [tile];",
        "ld.relaxed.gpu.global.b32 %r1, [%rd20];",
        "shfl.sync.idx.b32 %r1, %r20, 0, 31, -1;",
        "vote.sync.ballot.b32 %r1, %p2, -1;",
        "activemask.b32 %r1;",
        "match.any.sync.b32 %r1, %r20, -1;",
        "cvt.u64.u32 %rd1, %r21; ld.shared.b32 %r1, [%rd1];",
        "cvt.u64.u32 %rd1, %r21; ld.global.nc.b32 %r1, [%rd1];",
        "add.s32 %r1, %r20, %r21;",
        "mul.lo.s32 %r1, %r21, 4;",
        "{ .reg .b32 t; mov.u32 t, %tid.y; xor.b32 %r1, t, 1; }",
        "@%p2 mov.b32 %r1, %r21;",
        "setp.gt.u32 %p2, %r21, 3; mov.b32 %r1, 5; @%p2 mov.b32 %r1, 6;",
        "call (%r1), %rd20, (%r20), p;",
    ] {
        let condition = format!("{source} setp.gt.u32 %p1, %r1, 7;");
        assert!(is_refused(&decided_by(&condition)), "{source}");
    }
}

#[test]
fn uniform_conditions_are_accepted() {
    for source in [
        "mov.b32 %r1, %r20;",
        "mov.u32 %r1, %ctaid.x;",
        "mov.u32 %r1, %ntid.x;",
        "mov.u32 %r1, %nctaid.y;",
        "mov.u32 %r1, %clusterid.x;",
        "ld.const.b32 %r1, [%rd20];",
        "ld.global.nc.b32 %r1, [%rd20+8];",
        "ld.shared.b32 %r1, [tile+4];",
        "bar.red.popc.u32 %r1, 0, %p2;",
        "barrier.cta.red.popc.aligned.all.u32 %r1, 0, %p2;",
        "add.s32 %r1, %r20, 3; min.u32 %r1, %r1, 9;",
        "sub.s32 %r1, %r21, %r21;",
        "mov.u32 %r1, 5;",
        "isspacep.shared %p3, %rd20; selp.b32 %r1, 1, 2, %p3;",
    ] {
        let condition = format!("{source} setp.gt.u32 %p1, %r1, 7;");
        assert!(!is_refused(&decided_by(&condition)), "{source}");
    }
}

#[test]
fn equal_distances_from_where_a_thread_began_cancel_out() {
    let distance = |end: &str| {
        decided_by(&format!(
            "cvt.u64.u32 %rd1, %r21; shl.b64 %rd2, %rd1, 2; add.s64 %rd3, %rd20, %rd2; add.s64 %rd4, %rd3, 64;\n{end}\n\
             setp.eq.b64 %p1, %rd4, %rd5;"
        ))
    };
    assert!(!is_refused(&distance("mov.b64 %rd5, %rd3;")));
    assert!(!is_refused(&distance("mad.lo.s64 %rd5, %rd1, 4, %rd20;")));
    assert!(is_refused(&distance("mad.lo.s64 %rd5, %rd1, 8, %rd20;")), "twice as far");
    assert!(is_refused(&distance("mov.b64 %rd5, %rd20;")));
    // Differences may wrap around, and narrower sums do.
    assert!(is_refused(&distance("mov.b64 %rd5, %rd3;").replace("setp.eq.b64", "setp.lt.u64")));
    let narrow = "add.s32 %r1, %r21, 9; cvt.u64.u32 %rd1, %r1; cvt.u64.u32 %rd2, %r21; add.s64 %rd3, %rd2, 9;\n\
                  setp.eq.b64 %p1, %rd1, %rd3;";
    assert!(is_refused(&decided_by(narrow)));
    let saturated = "add.sat.s32 %r1, %r21, 5; add.s32 %r2, %r21, 5; setp.eq.s32 %p1, %r1, %r2;";
    assert!(is_refused(&decided_by(saturated)));
}

#[test]
fn code_after_paths_have_met_is_reached_by_all() {
    let branch = "setp.gt.u32 %p1, %r21, 7;\n@%p1 bra $A;\nmov.b32 %r1, 2;\n";
    assert!(!is_refused(&format!("mov.b32 %r1, 1; {branch}$A: bar.sync 0;")));
    assert!(is_refused(&format!("{branch}bar.sync 0;\n$A:")));
    let other_arm = format!("{branch}bra $B;\n$A: bar.sync 0;\n$B:");
    assert!(is_refused(&other_arm), "the other path");
    let both = format!("{branch}bar.sync 0; bra $B;\n$A: bar.sync 0;\n$B:");
    assert!(is_refused(&both), "a barrier on each path is two barriers");
}

#[test]
fn values_assigned_on_divergent_paths_are_divergent() {
    let assigned = |before: &str, inside: &str| {
        format!(
            "{before} setp.gt.u32 %p1, %r21, 7;\n@%p1 bra $A;\n{inside}\n$A: setp.eq.s32 %p2, %r1, 1;\n@%p2 bra $B;\nbar.sync 0;\n$B:"
        )
    };
    assert!(is_refused(&assigned("mov.b32 %r1, 1;", "mov.b32 %r1, 2;")));
    assert!(!is_refused(&assigned("mov.b32 %r1, 1;", "mov.b32 %r2, 2;")));
    // LLVM omits the other path if the value is undefined there: no code may depend on it.
    assert!(!is_refused(&assigned("", "ld.global.nc.b32 %r1, [%rd20];")));
    let by_copies = assigned("mov.b32 %r1, 1;", "mov.b32 %r1, 2;")
        .replace("$A:", "$A: mov.b32 %r3, %r1; add.s32 %r1, %r3, 0;");
    assert!(is_refused(&by_copies));
    assert!(is_refused(
        &assigned("st.local.b32 [own], 1;", "st.local.b32 [own], 2;")
            .replace("$A:", "$A: ld.local.b32 %r1, [own];")
    ));
    assert!(!is_refused(
        &assigned("st.local.b32 [own], 1;", "mov.b32 %r2, 2;").replace("$A:", "$A: ld.local.b32 %r1, [own];")
    ));
}

#[test]
fn local_memory_differs_where_anything_may_have_written_it() {
    let loaded =
        |store: &str| decided_by(&format!("{store} ld.local.b32 %r1, [own]; setp.gt.u32 %p1, %r1, 7;"));
    assert!(!is_refused(&loaded("st.local.b32 [own], %r20;")));
    assert!(is_refused(&loaded("st.local.b32 [own+4], %r21;")));
    assert!(is_refused(&loaded("cvta.local.u64 %rd1, %rd2; st.b32 [%rd1], %r21;")), "by a generic address");
    assert!(
        is_refused(&loaded("cvt.u64.u32 %rd1, %r21; st.local.b32 [%rd1], 0;")),
        "at a different address for each thread"
    );
    assert!(is_refused(&loaded("{ .param .b64 a; st.param.b64 [a], %rd1; call.uni unknown, (a); }")));
    assert!(!is_refused(&loaded("st.global.b32 [%rd20], %r21;")));
    // A loop's write after its read is visible in the next iteration.
    let in_the_next_round = |stored: &str| {
        format!(
            "$A: ld.local.b32 %r1, [own]; setp.gt.u32 %p1, %r1, 7;\n@%p1 bra $B;\nbar.sync 0;\n$B: st.local.b32 [own], {stored};\n\
             setp.gt.u32 %p2, %r20, 9;\n@%p2 bra $A;"
        )
    };
    assert!(is_refused(&in_the_next_round("%r21")));
    assert!(!is_refused(&in_the_next_round("%r20")));
}

#[test]
fn loops_run_as_often_in_all_threads_that_wait_in_them() {
    let counted = |limit: &str| {
        format!(
            "mov.b32 %r1, 0;\n$A: bar.sync 0; add.s32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, {limit};\n@%p1 bra $A;"
        )
    };
    assert!(!is_refused(&counted("%r20")));
    assert!(is_refused(&counted("%r21")));
    // A step under a uniform condition: the analysis terminates at the fixed point.
    let sometimes =
        counted("%r20").replace("add.s32", "setp.gt.u32 %p2, %r20, 3; @%p2 add.s32 %r1, %r1, 1; add.s32");
    assert!(!is_refused(&sometimes));
    // A barrier after a loop is reached by all threads; the loop's counter is divergent there.
    let behind = |next: &str| {
        format!("mov.b32 %r1, 0;\n$A: add.s32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, %r21;\n@%p1 bra $A;\n{next}")
    };
    assert!(!is_refused(&behind("bar.sync 0;")));
    assert!(is_refused(&behind("setp.gt.u32 %p2, %r1, 5;\n@%p2 bra $B;\nbar.sync 0;\n$B:")));
    let single = "$A: atom.global.add.u32 %r1, [%rd20], 0; mov.b32 %r2, 7; setp.lt.u32 %p1, %r1, 9;\n@%p1 bra $A;\nbar.sync 0;";
    assert!(!is_refused(single));
}

#[test]
fn a_value_of_a_loop_that_threads_leave_at_different_times_differs_behind_it() {
    // `%r2` has one definition, and is the same in all threads that are in the loop.
    let text = "mov.b32 %r1, 0;\n$A: add.s32 %r1, %r1, 1; mul.lo.s32 %r2, %r1, 3; setp.lt.u32 %p1, %r1, %r21;\n@%p1 bra $A;\n\
                setp.gt.u32 %p2, %r2, 5;\n@%p2 bra $B;\nbar.sync 0;\n$B:";
    assert!(is_refused(text));
}

#[test]
fn a_number_in_a_divergent_loop_is_the_same_behind_it() {
    // `%r1` has other values elsewhere, so it is no constant.
    let behind = |before: &str, within: &str| {
        format!(
            "mov.b32 %r1, %r20; {before}\n$A: add.s32 %r2, %r2, 1; {within} setp.lt.u32 %p1, %r2, %r21;\n@%p1 bra $A;\n\
             setp.gt.u32 %p2, %r1, 5;\n@%p2 bra $B;\nbar.sync 0;\n$B:"
        )
    };
    assert!(!is_refused(&behind("", "mov.b32 %r1, 0;")));
    assert!(!is_refused(&behind("", "add.s32 %r1, %r2, 1; mov.b32 %r1, 0;")), "the last one counts");
    assert!(is_refused(&behind("", "mov.b32 %r1, 0; add.s32 %r1, %r2, 1;")));
    assert!(is_refused(&behind("", "@%p3 mov.b32 %r1, 0;")), "possibly not");
    assert!(is_refused(&behind("", "@%p3 bra $C;\nmov.b32 %r1, 0;\n$C:")), "not in each round");
    assert!(is_refused(&behind("", "mov.b32 %r1, 0;\n@%p1 bra $C;\nmov.b32 %r1, 9;\n$C:")), "two numbers");
    let early = "setp.gt.u32 %p3, %r21, 7;\n@%p3 bra $D;\n";
    let late = behind(early, "mov.b32 %r1, 0;").replace("setp.gt.u32 %p2", "$D: setp.gt.u32 %p2");
    assert!(is_refused(&late), "some come from before the loop");
}

#[test]
fn ways_that_end_in_a_panic_do_not_count_and_returns_do() {
    let leaving = |end: &str| format!("setp.gt.u32 %p1, %r21, 7;\n@%p1 bra $A;\nbar.sync 0; ret;\n$A: {end}");
    assert!(!is_refused(&leaving("trap;")));
    assert!(!is_refused(&leaving("st.global.b32 [%rd20], 1; exit;")));
    assert!(is_refused(&leaving("")));
    assert!(is_refused("setp.gt.u32 %p1, %r21, 7;\n@%p1 ret;\nbar.sync 0;"));
    let panic = ".func panic() .noreturn\n{ ret; }\n";
    assert!(found(&format!("{panic}{}", kernel(&leaving("call.uni panic;")))).is_empty());
}

#[test]
fn a_loop_that_is_never_left_has_its_barriers_too() {
    let forever = |by: &str| {
        format!("$A: setp.gt.u32 %p1, {by}, 7;\n@%p1 bra $B;\nbar.sync 0;\n$B: bar.sync 1; bra $A;")
    };
    assert!(is_refused(&forever("%r21")));
    assert!(!is_refused(&forever("%r20")));
    // A check whose other path is a panic does not diverge.
    assert!(!is_refused("setp.gt.u32 %p1, %r21, 7;\n@%p1 bra $C;\n$A: bar.sync 0; bra $A;\n$C: trap;"));
}

#[test]
fn a_barrier_under_a_condition_and_a_table_of_ways_are_branches() {
    assert!(is_refused("setp.gt.u32 %p1, %r21, 7;\n@%p1 bar.sync 0;"));
    assert!(!is_refused("setp.gt.u32 %p1, %r20, 7;\n@%p1 bar.sync 0;"));
    let table = |by: &str| format!("$C: .branchtargets $A, $B;\nbrx.idx {by}, $C;\n$A: bar.sync 0;\n$B:");
    assert!(is_refused(&table("%r21")));
    assert!(!is_refused(&table("%r20")));
}

#[test]
fn each_barrier_requires_uniformity_at_its_level() {
    for (barrier, source, refused) in [
        ("bar.sync 0", "%ctaid.x", false),
        ("barrier.cluster.arrive", "%ctaid.x", true),
        ("barrier.cluster.wait", "%cluster_ctarank", true),
        ("barrier.cluster.wait", "%clusterid.x", false),
        ("barrier.cluster.wait", "%r20; bar.red.popc.u32 %r1, 0, %p2", true),
        ("bar.warp.sync -1", "%tid.x", false),
        ("ferrogrid.together.grid", "%clusterid.x", true),
        ("ferrogrid.together.grid", "%nctaid.x", false),
    ] {
        let text = decided_by(&format!("mov.u32 %r1, {source}; setp.gt.u32 %p1, %r1, 7;"))
            .replace("bar.sync 0", barrier);
        assert_eq!(!found(&kernel(&text)).is_empty(), refused, "{barrier} by {source}");
    }
    let shared = decided_by("ld.shared.b32 %r1, [tile]; setp.gt.u32 %p1, %r1, 7;");
    assert!(is_refused(&shared.replace("bar.sync 0", "barrier.cluster.wait")), "each block has its own");
}

#[test]
fn functions_that_wait_are_barriers_and_arguments_and_results_differ_by_their_calls() {
    let waits = ".func waits()\n{ bar.sync 0; ret; }\n.func outer()\n{ call.uni waits; ret; }\n";
    let by = |source: &str| {
        decided_by(&format!("mov.b32 %r1, {source}; setp.gt.u32 %p1, %r1, 7;"))
            .replace("bar.sync 0", "call.uni outer")
    };
    assert!(!found(&format!("{waits}{}", kernel(&by("%r21")))).is_empty());
    assert!(found(&format!("{waits}{}", kernel(&by("%r20")))).is_empty());

    let inner = format!(
        ".func inner(.param .b32 a)\n{{ {REGISTERS} ld.param.b32 %r1, [a]; setp.gt.u32 %p1, %r1, 7;\n@%p1 bra $A;\nbar.sync 0;\n$A: ret; }}\n"
    );
    let calls = |argument: &str| {
        kernel(&format!("{{ .param .b32 p0; st.param.b32 [p0], {argument}; call.uni inner, (p0); }}"))
    };
    let twice = |argument: &str| {
        kernel(&format!(
            "{{ .param .b32 p0; st.param.b32 [p0], %r20; call.uni inner, (p0); }}\n{{ .param .b32 p0; st.param.b32 [p0], {argument}; call.uni inner, (p0); }}"
        ))
    };
    assert!(!found(&format!("{inner}{}", calls("%r21"))).is_empty());
    assert!(found(&format!("{inner}{}", calls("%r20"))).is_empty());
    assert!(!found(&format!("{inner}{}", twice("%r21"))).is_empty(), "the worst of its calls counts");
    assert!(
        !found(&format!("{inner}{}", kernel("call.uni inner, (%r21);"))).is_empty(),
        "registers as arguments"
    );

    let through_pointer = format!(
        ".func inner(.param .b64 a)\n{{ {REGISTERS} ld.param.b64 %rd1, [a]; ld.local.b32 %r1, [%rd1]; setp.gt.u32 %p1, %r1, 7;\n@%p1 bra $A;\nbar.sync 0;\n$A: ret; }}\n"
    );
    let calls = kernel("{ .param .b64 p0; st.param.b64 [p0], %rd20; call.uni inner, (p0); }");
    assert!(!found(&format!("{through_pointer}{calls}")).is_empty(), "another function's local memory");

    let doubles = format!(
        ".func (.param .b32 r) doubles(.param .b32 a)\n{{ {REGISTERS} ld.param.b32 %r1, [a]; shl.b32 %r2, %r1, 1; st.param.b32 [r], %r2; ret; }}\n"
    );
    let result = |argument: &str| {
        kernel(&decided_by(&format!(
            "{{ .param .b32 p0; .param .b32 r0; st.param.b32 [p0], {argument}; call.uni (r0), doubles, (p0); ld.param.b32 %r1, [r0]; }}\n\
             setp.gt.u32 %p1, %r1, 7;"
        )))
    };
    assert!(!found(&format!("{doubles}{}", result("%r21"))).is_empty());
    assert!(found(&format!("{doubles}{}", result("%r20"))).is_empty());
    assert!(!found(&result("%r20")).is_empty(), "the result of an undefined function is unknown");
}

#[test]
fn a_value_that_turns_out_to_differ_later_is_followed_to_its_copies() {
    // In the order of the text `%r7` is known last: by then `%r1` was taken to be the same in a block, and `%r2` is its copy.
    let text = "bra $C;\n$A: mov.b32 %r2, %r1; setp.gt.u32 %p1, %r2, 7;\n@%p1 bra $B;\nbar.sync 0;\n\
                $B: xor.b32 %r5, %r1, %r6; mov.b32 %r1, %r5; mov.b32 %r6, %r7; setp.lt.u32 %p2, %r20, 9;\n@%p2 bra $A;\nret;\n\
                $C: mov.u32 %r1, %ctaid.x; mov.b32 %r6, 0; xor.b32 %r7, %r21, 1; bra $A;";
    assert!(is_refused(text));
    assert!(!is_refused(&text.replace("%r21, 1", "%r20, 1")));
}

#[test]
fn a_divergence_names_its_branch_and_its_origin() {
    let text = kernel(&decided_by("add.s32 %r1, %r20, %r21; xor.b32 %r2, %r1, 5; setp.gt.u32 %p1, %r2, 7;"));
    let module = Module::parse(&text).unwrap();
    let [divergence] = &found(&text)[..] else { panic!() };
    let Item::Function(function) = &module.items[divergence.item] else { panic!() };
    let text = |at: usize| function.statements()[at].text;
    assert_eq!((text(divergence.barrier), text(divergence.branch.unwrap())), ("bar.sync 0;", "@%p1 bra $A;"));
    assert_eq!(divergence.needs, Level::Block);
    let because: Vec<&str> = divergence.because.iter().map(|&at| text(at)).collect();
    let expected = [
        "setp.gt.u32 %p1, %r2, 7;",
        "xor.b32 %r2, %r1, 5;",
        "add.s32 %r1, %r20, %r21;",
        "mov.u32 %r21, %tid.x;",
    ];
    assert_eq!(because, expected);
}

#[test]
fn uniform_values_are_not_named_as_the_origin() {
    let condition = "mov.u32 %r1, %ctaid.x; xor.b32 %r2, %r1, %r21; setp.gt.u32 %p1, %r2, 7;";
    let text = kernel(&decided_by(condition));
    let module = Module::parse(&text).unwrap();
    let [divergence] = &found(&text)[..] else { panic!() };
    let Item::Function(function) = &module.items[divergence.item] else { panic!() };
    let origin = function.statements()[*divergence.because.last().unwrap()].text;
    assert_eq!(origin, "mov.u32 %r21, %tid.x;");
}

#[test]
fn arguments_of_a_panic_change_no_local_memory() {
    let called = |then: &str| {
        decided_by(&format!(
            "st.local.b32 [own], %r20; setp.gt.u32 %p3, %r21, 9; @!%p3 bra $C;\n\
             {{ .param .b64 given; st.param.b64 [given], %rd20; call report, (given); }} {then}\n\
             $C: ld.local.b32 %r1, [own]; setp.gt.u32 %p1, %r1, 7;"
        ))
    };
    assert!(!is_refused(&called("trap;")));
    assert!(is_refused(&called("")), "it returns, and may have written");
}

#[test]
fn fixed_registers_are_uniform_after_a_divergent_loop() {
    let in_loop = |made: &str| {
        format!(
            "$A: add.s32 %r2, %r2, 1; {made} setp.lt.u32 %p2, %r2, %r21; @%p2 bra $A; setp.gt.u32 %p1, %r1, 7;\n{}",
            decided_by("").replace("$A", "$B")
        )
    };
    assert!(!is_refused(&in_loop("{ .reg .b32 t; mov.u32 t, tile; add.s32 %r1, t, %r20; }")));
    assert!(is_refused(&in_loop("add.s32 %r1, %r20, %r2;")), "another number in each round");
    assert!(is_refused(&in_loop("@%p3 mov.u32 %r1, %r20;")), "possibly not in the first");
    assert!(is_refused(&in_loop("ld.shared.b32 %r1, [tile];")), "the memory changes");
    // A thread's index never changes: reading it in the loop gives the same value as before.
    for place in ["%tid.x", "%laneid"] {
        let again = format!(
            "mov.u32 %r3, {place}; {}",
            in_loop(&format!("mov.u32 %r1, {place};"))
                .replace("setp.gt.u32 %p1, %r1, 7;", "setp.eq.s32 %p1, %r1, %r3;")
        );
        assert!(!is_refused(&again), "{place}");
    }
}
