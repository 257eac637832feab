//! Warp operations that all lanes reach together: each rule with a program that is proven and one that is
//! not.

use ferrogrid_ptx::uniformity::{Program, Shape};
use ferrogrid_ptx::{Item, Module};

const REGISTERS: &str = ".reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<30>; .reg .b64 %rd<30>;";
const SHUFFLE: &str = "shfl.sync.bfly.b32 %r9, %r20, 1, 31, -1;";
/// Blocks of a row of threads, of any length.
const ROW: Shape = [None, Some(1), Some(1)];

/// A kernel with these statements; `$A`, `$B`, `$C` are labels of theirs, `%r21` is the thread's index.
fn kernel(statements: &str) -> String {
    format!(
        ".version 8.0\n.target sm_90\n.shared .align 4 .b8 tile[64];\n.visible .entry k(.param .u32 n, .param .u64 x)\n{{\n\
         {REGISTERS}\nld.param.b32 %r20, [n]; ld.param.b64 %rd20, [x]; mov.u32 %r21, %tid.x;\n{statements}\nret;\n}}\n"
    )
}

/// The operations that are not proven.
fn unproven(text: &str, shape: Shape) -> Vec<String> {
    let module = Module::parse(text).unwrap_or_else(|error| panic!("{error} in\n{text}"));
    let texts = Program::of(&module).unproven_lanes(|_| shape).into_iter().map(|((item, at), _)| {
        let Item::Function(function) = &module.items[item] else { panic!("{item}") };
        function.statements()[at].text.to_owned()
    });
    texts.collect()
}

fn is_proven(statements: &str, shape: Shape) -> bool {
    unproven(&kernel(statements), shape).is_empty()
}

/// `condition` sets `%p1`; where it is true, a shuffle is left out.
fn decided_by(condition: &str) -> String {
    format!("{condition}\n@%p1 bra $A;\n{SHUFFLE}\n$A:")
}

/// `value` is that of `%r1`, on which a branch depends.
fn decided_by_value(value: &str) -> String {
    decided_by(&format!("{value} setp.eq.s32 %p1, %r1, 7;"))
}

#[test]
fn conditions_uniform_in_the_warp_are_accepted() {
    for value in [
        "mov.b32 %r1, %r20;",
        "mov.u32 %r2, %ctaid.x; shl.b32 %r3, %r2, 5; or.b32 %r4, %r3, %r21; shr.u32 %r1, %r4, 5;",
        "shr.u32 %r1, %r21, 5;",
        "shr.s32 %r1, %r21, 6;",
        "bfe.u32 %r1, %r21, 5, 3;",
        "and.b32 %r1, %r21, 992;",
        "and.b32 %r1, %r21, -32;",
        "or.b32 %r1, %r21, 31;",
        "xor.b32 %r2, %r21, %r20; shr.u32 %r3, %r2, 5; shr.u32 %r4, %r20, 5; xor.b32 %r5, %r3, %r4; and.b32 %r1, %r21, 64;",
        "not.b32 %r2, %r21; shr.u32 %r1, %r2, 5;",
        "add.s32 %r2, %r21, -64; and.b32 %r1, %r2, -32;",
        "shl.b32 %r3, %r20, 5; add.s32 %r2, %r3, %r21; shr.u32 %r1, %r2, 5;",
        "shl.b32 %r2, %r21, 2; shr.u32 %r1, %r2, 7;",
        "mul.lo.s32 %r2, %r21, 8; shr.u32 %r1, %r2, 8;",
        "mul.wide.u32 %rd1, %r21, 4; shr.u64 %rd2, %rd1, 7; cvt.u32.u64 %r1, %rd2;",
        "cvt.u64.u32 %rd1, %r21; shr.u64 %rd2, %rd1, 5; cvt.u32.u64 %r1, %rd2;",
        "shr.u32 %r2, %r21, 5; add.s32 %r3, %r2, %r20; mul.lo.s32 %r1, %r3, 7;",
        "shr.u32 %r2, %r21, 5; mov.u32 %r3, tile; mad.lo.s32 %r4, %r2, 4, %r3; ld.shared.b32 %r1, [%r4];",
        "setp.lt.u32 %p2, %r21, 64; selp.b32 %r1, 1, 9, %p2;",
        "vote.sync.ballot.b32 %r1, %p2, -1;",
        "redux.sync.add.s32 %r1, %r21, -1;",
        "mov.b32 %r2, -1; redux.sync.add.s32 %r1, %r21, %r2;",
        "match.all.sync.b32 %r1|%p3, %r21, -1;",
        "shfl.sync.idx.b32 %r1, %r21, 0, 31, -1;",
        "shfl.sync.idx.b32 %r1, %r21, 0x0, 0x1F, 0xffffffff;",
        "shfl.sync.idx.b32 %r1, %r21, 0, 037, 4294967295U;",
        "vote.sync.ballot.b32 %r1, %p2, 0XFFFFFFFF;",
        "and.b32 %r1, %r21, 0b1100000;",
    ] {
        assert!(is_proven(&decided_by_value(value), ROW), "{value}");
    }
}

#[test]
fn conditions_that_differ_between_lanes_are_divergent() {
    for value in [
        "mov.b32 %r1, %r21;",
        "mov.u32 %r1, %laneid;",
        "mul.hi.u32 %r1, %r21, %r20;",
        "mul.hi.u32 %r2, %r21, 4; and.b32 %r1, %r2, 3;",
        "mad.hi.s32 %r2, %r21, 4, 0; and.b32 %r1, %r2, 3;",
        "mad.lo.sat.s32 %r2, %r21, 4, 0; and.b32 %r1, %r2, 3;",
        "or.b32 %r1, %r21, %r10;",
        "shl.b32 %r2, %r21, 27; cvt.s64.s32 %rd1, %r2; shr.u64 %rd2, %rd1, 32; cvt.u32.u64 %r1, %rd2;",
        "cvt.sat.u16.u32 %rs1, %r21; cvt.u32.u16 %r2, %rs1; shr.u32 %r1, %r2, 5;",
        "shr.u32 %r1, %r21, 4;",
        "shr.u32 %r1, %r21, %r20;",
        "bfe.u32 %r1, %r21, 4, 3;",
        "and.b32 %r1, %r21, 1008;",
        "or.b32 %r1, %r21, 15;",
        "add.s32 %r2, %r21, 16; shr.u32 %r1, %r2, 5;",
        "add.s32 %r2, %r21, %r20; shr.u32 %r1, %r2, 5;",
        "add.sat.s32 %r2, %r21, -64; shr.u32 %r1, %r2, 5;",
        "mul.lo.s32 %r2, %r21, 3; shr.u32 %r1, %r2, 6;",
        "shl.b32 %r2, %r21, 2; shr.u32 %r1, %r2, 6;",
        "shl.b32 %r2, %r21, 30; shr.s32 %r1, %r2, 31;",
        "shl.b32 %r2, %r21, 27; shr.s32 %r3, %r2, 4; and.b32 %r1, %r3, 1879048192;",
        "setp.gt.u32 %p3, %r21, 40; shr.u32 %r2, %r21, 5; @%p3 mov.b32 %r2, 9; mov.b32 %r1, %r2;",
        "setp.lt.u32 %p2, %r21, 63; selp.b32 %r1, 1, 9, %p2;",
        "shr.u32 %r2, %r21, 5; @%p2 mov.b32 %r2, %r21; mov.b32 %r1, %r2;",
        "vote.sync.ballot.b32 %r1, %p2, 65535;",
        "vote.sync.ballot.b32 %r1, %p2, 0xffff;",
        "and.b32 %r1, %r21, 0b1110000;",
        "redux.sync.add.s32 %r1, %r21, %r20;",
        "match.any.sync.b32 %r1, %r21, -1;",
        "shfl.sync.idx.b32 %r1, %r21, 1, 31, -1;",
        "shfl.sync.idx.b32 %r1, %r21, 0, 4127, -1;",
        "shfl.sync.bfly.b32 %r1, %r21, 0, 31, -1;",
        "activemask.b32 %r1;",
        "ld.global.b32 %r1, [%rd20];",
        "atom.global.add.u32 %r1, [%rd20], 1;",
        "mov.u32 %r1, %clock;",
        "mov.u32 %r2, %lanemask_lt; and.b32 %r1, %r2, 7;",
    ] {
        assert!(!is_proven(&decided_by_value(value), ROW), "{value}");
    }
}

#[test]
fn a_multiple_of_32_does_not_separate_lanes_of_a_warp() {
    for condition in [
        "setp.lt.u32 %p1, %r21, 64;",
        "setp.ge.s32 %p1, %r21, 96;",
        "setp.gt.u32 %p1, %r21, 31;",
        "setp.le.u32 %p1, %r21, 63;",
        "setp.gt.u32 %p1, 64, %r21;",
        "setp.ge.u32 %p1, 63, %r21;",
        "shl.b32 %r2, %r20, 5; setp.lt.u32 %p1, %r21, %r2;",
        "add.s32 %r2, %r21, 32; setp.hi.u32 %p1, %r2, 95;",
        "shl.b32 %r2, %r21, 1; setp.lt.u32 %p1, %r2, 128;",
    ] {
        assert!(is_proven(&decided_by(condition), ROW), "{condition}");
    }
    for condition in [
        "setp.lt.u32 %p1, %r21, 63;",
        "setp.lt.u32 %p1, %r21, 48;",
        "setp.gt.u32 %p1, %r21, 32;",
        "setp.le.u32 %p1, %r21, 32;",
        "setp.gt.u32 %p1, 63, %r21;",
        "setp.ge.u32 %p1, 64, %r21;",
        "setp.eq.s32 %p1, %r21, 32;",
        "setp.lt.u32 %p1, %r21, %r20;",
        "shl.b32 %r2, %r21, 1; setp.lt.u32 %p1, %r2, 96;",
        "shl.b32 %r2, %r21, 27; setp.lt.s32 %p1, %r2, 0;",
    ] {
        assert!(!is_proven(&decided_by(condition), ROW), "{condition}");
    }
}

#[test]
fn warps_are_rows_of_blocks_whose_shape_is_known() {
    let rank =
        |width: u32| format!("mov.u32 %r2, %tid.y; mad.lo.s32 %r3, %r2, {width}, %r21; shr.u32 %r1, %r3, 5;");
    let (x, y) = ("shr.u32 %r1, %r21, 5;", "mov.u32 %r1, %tid.y;");
    let two_rows = "mov.u32 %r2, %tid.y; shr.u32 %r1, %r2, 1;";
    let z = "mov.u32 %r1, %tid.z;";
    for (value, shape, expected) in [
        (rank(16).as_str(), [Some(16), Some(16), Some(1)], true),
        (rank(16).as_str(), [Some(16), None, Some(1)], true),
        (rank(24).as_str(), [Some(24), Some(8), Some(1)], false),
        (rank(16).as_str(), [None, None, Some(1)], false),
        (x, [Some(64), Some(4), Some(1)], true),
        (x, [Some(48), Some(4), Some(1)], false),
        (x, [None, Some(4), Some(1)], false),
        (x, [None, None, None], false),
        (y, [Some(32), None, None], true),
        (y, [Some(16), Some(16), Some(1)], false),
        (two_rows, [Some(16), Some(16), Some(1)], true),
        (two_rows, [Some(16), Some(3), Some(4)], false),
        (two_rows, [Some(8), Some(16), Some(1)], false),
        (z, [Some(8), Some(4), Some(4)], true),
        (z, [Some(8), Some(2), Some(4)], false),
    ] {
        assert_eq!(is_proven(&decided_by_value(value), shape), expected, "{value} in {shape:?}");
    }
}

#[test]
fn lanes_reconverge_where_their_paths_meet() {
    let branch = |condition: &str, inside: &str, behind: &str| {
        format!("{condition}\n@%p1 bra $A;\n{inside}\n$A: {behind}")
    };
    let (lanes, warps) = ("setp.gt.u32 %p1, %r21, 40;", "setp.gt.u32 %p1, %r21, 63;");
    assert!(is_proven(&branch(lanes, "mov.b32 %r1, 2;", SHUFFLE), ROW));
    assert!(!is_proven(&branch(lanes, SHUFFLE, ""), ROW));
    assert!(is_proven(&branch(warps, SHUFFLE, ""), ROW));
    // Values assigned on divergent paths are divergent afterwards.
    let assigned = |condition| {
        format!("mov.b32 %r1, 9; {}", branch(condition, "mov.b32 %r1, 2;", ""))
            + "setp.gt.u32 %p3, %r1, 7; @%p3 bra $B; "
            + SHUFFLE
            + " $B:"
    };
    assert!(!is_proven(&assigned(lanes), ROW));
    assert!(is_proven(&assigned(warps), ROW));
    // Lanes that have returned are missing; lanes that panic end the launch.
    let left = |condition: &str, end: &str| format!("{condition} @!%p1 bra $A; {end}; $A: {SHUFFLE}");
    assert!(!is_proven(&left(lanes, "ret"), ROW));
    assert!(is_proven(&left(warps, "ret"), ROW));
    assert!(is_proven(&left(lanes, "trap"), ROW));
}

#[test]
fn a_loop_runs_as_often_in_all_lanes() {
    let rounds = |bound: &str| {
        format!(
            "mov.b32 %r1, 0; $A: {SHUFFLE} add.s32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, {bound}; @%p1 bra $A;"
        )
    };
    assert!(is_proven(&rounds("%r20"), ROW));
    assert!(is_proven(&format!("shr.u32 %r2, %r21, 5; {}", rounds("%r2")), ROW));
    assert!(!is_proven(&rounds("%r21"), ROW));
    // Each warp takes its own elements.
    let striped = rounds("%r20").replace("mov.b32 %r1, 0", "shr.u32 %r1, %r21, 5");
    assert!(is_proven(&striped, ROW));
    assert!(!is_proven(&striped.replace(", 5;", ", 4;"), ROW));
    // A sum that grows from the lane's own number.
    assert!(!is_proven(&striped.replace("add.s32 %r1, %r1, 1", "add.s32 %r1, %r1, %r21"), ROW));
}

#[test]
fn masks_are_the_same_in_the_lanes_that_they_name() {
    let tile = |lanes: &str, and: &str| {
        format!("mov.u32 %r1, %laneid; {and} shl.b32 %r3, {lanes}, %r2; redux.sync.add.s32 %r4, %r20, %r3;")
    };
    for (lanes, first) in [("3", 30), ("15", 28), ("255", 24), ("65535", 16)] {
        assert!(is_proven(&tile(lanes, &format!("and.b32 %r2, %r1, {first};")), ROW), "{lanes}");
    }
    assert!(is_proven(&tile("1", "mov.u32 %r2, %laneid;"), ROW));
    assert!(is_proven(&tile("%r5", "mov.b32 %r5, 255; and.b32 %r2, %r1, 24;"), ROW));
    for (lanes, and) in [
        ("255", "and.b32 %r2, %r1, 28;"),
        ("7", "and.b32 %r2, %r1, 29;"),
        ("255", "and.b32 %r2, %r21, 24;"),
        ("1", "mov.b32 %r2, %r21;"),
        ("%r20", "and.b32 %r2, %r1, 24;"),
    ] {
        assert!(!is_proven(&tile(lanes, and), ROW), "{lanes} {and}");
    }
    let either = |condition: &str, other: &str| {
        format!(
            "mov.u32 %r1, %laneid; and.b32 %r2, %r1, 24; and.b32 %r5, %r1, 28; shl.b32 %r3, 255, %r2; {condition} @%p1 bra $A;\n\
             {other} $A: bar.warp.sync %r3;"
        )
    };
    let (warps, lanes) = ("setp.gt.u32 %p1, %r21, 31;", "setp.gt.u32 %p1, %r21, 40;");
    assert!(is_proven(&either(warps, "shl.b32 %r3, 15, %r5;"), ROW));
    assert!(is_proven(&either(lanes, "shl.b32 %r3, 255, %r2;"), ROW));
    assert!(!is_proven(&either(lanes, "shl.b32 %r3, 15, %r5;"), ROW), "lanes of two tiles");
    assert!(!is_proven(&either(warps, "shl.b32 %r3, %r21, %r5;"), ROW));
    assert!(is_proven("bar.warp.sync %r20;", ROW), "of all lanes uniformly");
    assert!(!is_proven("bar.warp.sync %r21;", ROW));
    assert!(
        is_proven("shr.u32 %r1, %r21, 5; bar.warp.sync %r1;", ROW),
        "different for each warp, and uniform within it"
    );
    assert!(!is_proven("match.any.sync.b32 %r1, %r21, -1; bar.warp.sync %r1;", ROW));
}

#[test]
fn functions_called_by_some_lanes_are_not_proven() {
    let calling = |condition: &str| {
        let functions = format!(
            ".func inner() {{ {REGISTERS} vote.sync.any.pred %p1, %p2, -1; ret; }}\n\
             .func outer() {{ {REGISTERS} bar.warp.sync -1; call.uni inner; ret; }}\n"
        );
        functions + &kernel(&format!("{SHUFFLE} {condition} @%p1 bra $A; call.uni outer; $A:"))
    };
    let expected = ["vote.sync.any.pred %p1, %p2, -1;", "bar.warp.sync -1;"];
    assert_eq!(unproven(&calling("setp.gt.u32 %p1, %r21, 40;"), ROW), expected);
    assert_eq!(unproven(&calling("setp.gt.u32 %p1, %r21, 31;"), ROW), Vec::<String>::new());
}

#[test]
fn functions_assume_only_block_shapes_common_to_all_kernels() {
    let function = format!(
        ".func f() {{ {REGISTERS} mov.u32 %r21, %tid.x; setp.gt.u32 %p1, %r21, 31; @%p1 bra $A; {SHUFFLE} $A: ret; }}\n"
    );
    let two = function + &kernel("call.uni f;") + ".visible .entry other() { call.uni f; ret; }\n";
    let module = Module::parse(&two).unwrap();
    let program = Program::of(&module);
    let found = |other: Shape| program.unproven_lanes(|name| if name == "other" { other } else { ROW }).len();
    assert_eq!((found(ROW), found([Some(64), Some(1), Some(1)]), found([None, None, Some(1)])), (0, 0, 1));
}

#[test]
fn the_author_of_inline_assembly_vouches_for_it() {
    let shuffle = decided_by("setp.gt.u32 %p1, %r21, 40;");
    let in_asm = shuffle.replace(SHUFFLE, &format!("// begin inline asm\n{SHUFFLE}\n// end inline asm\n"));
    assert!(!is_proven(&shuffle, ROW));
    assert!(is_proven(&in_asm, ROW));
}

#[test]
fn operations_of_matrices_take_all_lanes() {
    let multiply = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%r1, %r2, %r3, %r4}, {%r5, %r6, %r7, %r8}, {%r9, %r10}, {%r1, %r2, %r3, %r4};";
    for operation in [multiply, "ldmatrix.sync.aligned.m8n8.x4.b16 {%r1, %r2, %r3, %r4}, [%rd20];"] {
        assert!(is_proven(operation, ROW), "{operation}");
        let left_out = format!("setp.lt.u32 %p1, %r21, 16;\n@%p1 bra $A;\n{operation}\n$A:");
        assert!(!is_proven(&left_out, ROW), "{operation}");
    }
}
