//! Checks before warp operations for which it is not proven that the lanes of their mask reach them together,
//! with the same mask. Where lanes are missing, the thread panics at the user's line; in PTX the result is
//! undefined.
//!
//! Lanes count as present if they are in the `activemask` just before. Where masks may differ between lanes,
//! lanes with another mask count as missing, too. Lanes that a block's last warp does not have are not
//! waited for.

use std::collections::BTreeMap;

use ferrogrid_ptx::uniformity::{Program, Shape, waits_for_lanes};
use ferrogrid_ptx::{Body, ControlFlow, Edits, Function, Instruction, Module, Operand, Predicate};

use super::Wanted;
use crate::proof::marks;
use crate::proof::place::Places;

/// The function that the check calls with mask, missing lanes, address and length of the file's name, line,
/// and column.
const PANIC: &str = "__ferrogrid_panic_lanes";

/// The operations to check, by function: their numbers among the function's warp operations, each with
/// whether masks may differ; and whether all warps that run the function have 32 lanes.
pub(crate) type Unproven = BTreeMap<String, (Vec<(usize, bool)>, bool)>;

/// The operations to check in a program, given by its final text with marks. `ranks` are those of the entry
/// points' grids.
pub(crate) fn unproven(program: &Program<'_, '_>, ranks: &BTreeMap<&str, usize>) -> Unproven {
    let module = program.module();
    let shape =
        |name: &str| module.entry(name).map_or([None; 3], |entry| shape(entry, ranks.get(name).copied()));
    let found = program.unproven_lanes(shape);
    let mut unproven = Unproven::new();
    for (item, function) in functions(module) {
        let operations = operations(function).into_iter().enumerate();
        let numbers: Vec<(usize, bool)> =
            operations.filter_map(|(number, at)| Some((number, *found.get(&(item, at))?))).collect();
        if !numbers.is_empty() {
            let is_whole = function.is_entry && is_whole(shape(function.name));
            unproven.insert(function.name.to_owned(), (numbers, is_whole));
        }
    }
    unproven
}

/// Notes the checks.
pub(super) fn check<'t>(module: &Module<'t>, wanted: &Wanted<'_>, edits: &mut Edits<'t>) {
    if wanted.unproven.is_empty() {
        return;
    }
    let places = Places::new(module, &wanted.own_files, wanted.folders);
    let panic = module.functions().find(|function| function.name == PANIC && function.body.is_some());
    let mut checks = Checks { panics: panic.is_some(), ..Checks::default() };
    for (_, function) in functions(module) {
        let (Some(body), Some((numbers, is_whole))) = (&function.body, wanted.unproven.get(function.name))
        else {
            continue;
        };
        let operations = operations(function);
        let unproven =
            numbers.iter().filter_map(|(number, differs)| Some((*operations.get(*number)?, *differs)));
        let flow = ControlFlow::of(body, |_| false);
        for (statement, differs) in first_of_their_blocks(body, &flow, unproven) {
            let Some(operation) = body.statements[statement].instruction() else { continue };
            let marked = mark_before(body, &flow, statement).unwrap_or(statement);
            let place = places.of(function, marked).unwrap_or_default();
            let text = checks.text(operation, place, differs, *is_whole);
            edits.insert_before(body.statements[statement].text, text);
        }
    }
    let declaration = panic.map(|function| format!("{};\n", function.head())).unwrap_or_default();
    edits.insert_before(module.after_header(), declaration + &checks.definitions());
}

fn functions<'m, 't>(module: &'m Module<'t>) -> impl Iterator<Item = (usize, &'m Function<'t>)> {
    let functions = module.items.iter().enumerate().filter_map(|(at, item)| Some((at, item.function()?)));
    functions.filter(|(_, function)| function.body.is_some())
}

/// The warp operations of a function, as numbers of its statements.
fn operations(function: &Function<'_>) -> Vec<usize> {
    let statements = function.statements().iter().enumerate();
    statements.filter(|(_, statement)| waits_for_lanes(statement)).map(|(at, _)| at).collect()
}

/// The shape of the blocks of an entry point, as far as it is known.
fn shape(entry: &Function<'_>, rank: Option<usize>) -> Shape {
    let required = entry.directive(".reqntid").map_or(&[][..], |directive| &directive.values);
    std::array::from_fn(|axis| match required.get(axis) {
        Some(threads) => threads.parse().ok(),
        None => rank.filter(|&rank| axis >= rank).map(|_| 1),
    })
}

/// Whether all warps of such blocks have 32 lanes.
fn is_whole(shape: Shape) -> bool {
    let threads = shape.iter().try_fold(1_u32, |all, threads| all.checked_mul((*threads)?));
    threads.is_some_and(|threads| threads.is_multiple_of(32))
}

/// The first of the operations with the same mask in a basic block: lanes that reach it reach the others.
fn first_of_their_blocks(
    body: &Body<'_>,
    flow: &ControlFlow,
    operations: impl Iterator<Item = (usize, bool)>,
) -> Vec<(usize, bool)> {
    let mut first: Vec<(usize, bool)> = Vec::new();
    for (at, differs) in operations {
        let is_covered = |(earlier, _): &(usize, bool)| {
            flow.block_of(*earlier) == flow.block_of(at)
                && mask(body, *earlier) == mask(body, at)
                && (*earlier..at).all(|between| !defines_mask(body, between, at))
        };
        if !first.iter().any(is_covered) {
            first.push((at, differs));
        }
    }
    first
}

/// The mask of an operation, its last operand, and the condition under which it is executed.
fn mask<'b, 't>(body: &'b Body<'t>, at: usize) -> Option<(&'b Operand<'t>, Option<Predicate<'t>>)> {
    let instruction = body.statements[at].instruction()?;
    Some((instruction.lane_mask()?, instruction.predicate))
}

/// Whether a statement gives the mask of an operation another value.
fn defines_mask(body: &Body<'_>, at: usize, operation: usize) -> bool {
    let names = mask(body, operation).map(|(mask, _)| mask.names()).unwrap_or_default();
    body.statements[at].instruction().is_some_and(|it| it.definitions().iter().any(|it| names.contains(it)))
}

/// The mark of an operation: the last one on every path to it. LLVM merges the marks of two arms of a branch
/// that begin with one.
fn mark_before(body: &Body<'_>, flow: &ControlFlow, statement: usize) -> Option<usize> {
    let (dominators, own) = (flow.dominators(), flow.block_of(statement));
    let is_mark = |at: &usize| body.statements[*at].instruction().is_some_and(marks::is_of_warp);
    let mut blocks = std::iter::successors(Some(own), |block| dominators[*block]);
    blocks.find_map(|block| {
        let statements = flow.blocks[block].statements.clone();
        let end = if block == own { statement } else { statements.end };
        (statements.start..end).rev().find(is_mark)
    })
}

/// Writes the checks.
#[derive(Default)]
struct Checks {
    /// Whether the function exists that they call; else they trap.
    panics: bool,
    /// The names of files, each with its number.
    files: BTreeMap<String, usize>,
    count: usize,
}

impl Checks {
    /// The check of an operation at a place. `differs` says whether the mask may differ between lanes,
    /// `is_whole` that all warps of its blocks have 32 lanes.
    fn text(
        &mut self,
        operation: &Instruction<'_>,
        place: (String, (usize, usize)),
        differs: bool,
        is_whole: bool,
    ) -> String {
        let mask = operation.lane_mask().map(Operand::to_string).unwrap_or_default();
        let end = format!("$ferrogrid_lanes_{}", self.count);
        self.count += 1;
        let mut text = String::from("{\n\t.reg .pred \t%ferrogrid_all;\n\t.reg .b32 \t%ferrogrid_lane<3>;\n");
        if let Some(Predicate { register, is_negated }) = operation.predicate {
            text += &format!("\t@{}{register} bra \t{end};\n", if is_negated { "" } else { "!" });
        }
        text += "\tactivemask.b32 \t%ferrogrid_lane0;\n";
        if differs {
            text += &format!("\tmatch.any.sync.b32 \t%ferrogrid_lane0, {mask}, %ferrogrid_lane0;\n");
        }
        text += "\tnot.b32 \t%ferrogrid_lane0, %ferrogrid_lane0;\n";
        text += &format!("\tand.b32 \t%ferrogrid_lane0, %ferrogrid_lane0, {mask};\n");
        let done =
            format!("\tsetp.eq.b32 \t%ferrogrid_all, %ferrogrid_lane0, 0;\n\t@%ferrogrid_all bra \t{end};\n");
        text += &done;
        if !is_whole {
            text += EXISTING;
            text += &done;
        }
        text += &self.panic(&mask, place);
        text + &format!("\ttrap;\n{end}:\n\t}}\n\t")
    }

    /// The call that reports the missing lanes.
    fn panic(&mut self, mask: &str, (file, (line, column)): (String, (usize, usize))) -> String {
        if !self.panics {
            return String::new();
        }
        let (length, next) = (file.len(), self.files.len());
        let file = *self.files.entry(file).or_insert(next);
        format!(
            "\t{{\n\t.reg .b64 \t%ferrogrid_file;\n\tmov.b64 \t%ferrogrid_file, {FILE}{file};\n\
             \tcvta.global.u64 \t%ferrogrid_file, %ferrogrid_file;\n\
             \t.param .b32 \tparam0;\n\t.param .b32 \tparam1;\n\t.param .b64 \tparam2;\n\
             \t.param .b64 \tparam3;\n\t.param .b32 \tparam4;\n\t.param .b32 \tparam5;\n\
             \tst.param.b32 \t[param0], {mask};\n\tst.param.b32 \t[param1], %ferrogrid_lane0;\n\
             \tst.param.b64 \t[param2], %ferrogrid_file;\n\tst.param.b64 \t[param3], {length};\n\
             \tst.param.b32 \t[param4], {line};\n\tst.param.b32 \t[param5], {column};\n\
             \tcall.uni {PANIC}, (param0, param1, param2, param3, param4, param5);\n\t}}\n"
        )
    }

    /// The names of the files.
    fn definitions(&self) -> String {
        let definition = |(file, number): (&String, &usize)| {
            let bytes: Vec<String> = file.bytes().chain([0]).map(|byte| byte.to_string()).collect();
            let (length, bytes) = (bytes.len(), bytes.join(", "));
            format!(".global .align 1 .b8 {FILE}{number}[{length}] = {{{bytes}}};\n")
        };
        self.files.iter().map(definition).collect()
    }
}

/// The prefix of the variables with names of files.
const FILE: &str = "__ferrogrid_lanes_file_";

/// Leaves out the lanes that the block does not have: those from its number of threads on, counted from the
/// warp's first.
const EXISTING: &str = "\t\
    mov.u32 	%ferrogrid_lane1, %tid.z;
	mov.u32 	%ferrogrid_lane2, %ntid.y;
	mul.lo.s32 	%ferrogrid_lane1, %ferrogrid_lane1, %ferrogrid_lane2;
	mov.u32 	%ferrogrid_lane2, %tid.y;
	add.s32 	%ferrogrid_lane1, %ferrogrid_lane1, %ferrogrid_lane2;
	mov.u32 	%ferrogrid_lane2, %ntid.x;
	mul.lo.s32 	%ferrogrid_lane1, %ferrogrid_lane1, %ferrogrid_lane2;
	mov.u32 	%ferrogrid_lane2, %tid.x;
	add.s32 	%ferrogrid_lane1, %ferrogrid_lane1, %ferrogrid_lane2;
	and.b32 	%ferrogrid_lane1, %ferrogrid_lane1, -32;
	{
	.reg .b32 	%ferrogrid_threads<3>;
	mov.u32 	%ferrogrid_threads0, %ntid.x;
	mov.u32 	%ferrogrid_threads1, %ntid.y;
	mov.u32 	%ferrogrid_threads2, %ntid.z;
	mul.lo.s32 	%ferrogrid_threads0, %ferrogrid_threads0, %ferrogrid_threads1;
	mul.lo.s32 	%ferrogrid_threads0, %ferrogrid_threads0, %ferrogrid_threads2;
	sub.s32 	%ferrogrid_lane1, %ferrogrid_threads0, %ferrogrid_lane1;
	}
	mov.b32 	%ferrogrid_lane2, 1;
	shl.b32 	%ferrogrid_lane2, %ferrogrid_lane2, %ferrogrid_lane1;
	add.s32 	%ferrogrid_lane2, %ferrogrid_lane2, -1;
	and.b32 	%ferrogrid_lane0, %ferrogrid_lane0, %ferrogrid_lane2;
";

#[cfg(test)]
mod tests {
    use super::super::tests::after;
    use super::*;

    const DEVICE: &str =
        ".visible .func __ferrogrid_panic_lanes(\n\t.param .b32 a\n)\n.noreturn\n{\n\ttrap;\n}\n";

    /// A kernel in which some lanes come to `operations`, of `src/main.rs:7:9`.
    fn program(operations: &str) -> String {
        format!(
            ".version 8.0\n.target sm_90\n.global .align 1 .b8 name[4] = {{97, 46, 114, 115}};\n\
             .visible .entry k()\n{{\n\t.reg .pred %p<3>;\n\t.reg .b32 %r<9>;\n\t.reg .b64 %rd<3>;\n\
             \tmov.u32 \t%r1, %tid.x;\n\tsetp.gt.u32 \t%p1, %r1, 15;\n\t@%p1 bra \t$end;\n\
             \tmov.b64 \t%rd1, name;\n\tferrogrid.together.warp %rd1, 4, 7, 9;\n\t{operations}\n$end:\n\tret;\n}}\n{DEVICE}"
        )
    }

    fn checked(text: &str) -> String {
        let module = Module::parse(text).unwrap();
        let unproven = unproven(&Program::of(&module), &BTreeMap::from([("k", 1)]));
        let wanted = Wanted { unproven, ..Wanted::default() };
        after(text, |module, edits| check(module, &wanted, edits))
    }

    #[test]
    fn an_operation_that_some_lanes_skip_gets_a_check() {
        let text = checked(&program("bar.warp.sync \t-1;"));
        let names = ".visible .func __ferrogrid_panic_lanes(\n\t.param .b32 a\n)\n.noreturn\n;\n\
                     .global .align 1 .b8 __ferrogrid_lanes_file_0[5] = {97, 46, 114, 115, 0};\n";
        assert!(text.contains(names), "{text}");
        let (_, check) = text.split_once("4, 7, 9;\n\t").unwrap();
        let (check, rest) = check.split_once("$ferrogrid_lanes_0:\n\t}\n\t").unwrap();
        assert!(rest.starts_with("bar.warp.sync \t-1;\n$end:"), "{rest}");
        for part in [
            "\tactivemask.b32 \t%ferrogrid_lane0;\n\tnot.b32",
            "\tand.b32 \t%ferrogrid_lane0, %ferrogrid_lane0, -1;\n\tsetp.eq.b32 \t%ferrogrid_all, %ferrogrid_lane0, 0;\n",
            "\t@%ferrogrid_all bra \t$ferrogrid_lanes_0;\n",
            "st.param.b32 \t[param0], -1;",
            "st.param.b32 \t[param1], %ferrogrid_lane0;",
            "st.param.b64 \t[param3], 4;",
            "st.param.b32 \t[param4], 7;\n\tst.param.b32 \t[param5], 9;\n\tcall.uni __ferrogrid_panic_lanes, (param0, ",
        ] {
            assert!(check.contains(part), "{part:?} is not in\n{check}");
        }
        assert!(!check.contains("match.any"), "a constant is the same in all lanes\n{check}");
    }

    #[test]
    fn proven_operations_stay_unchanged() {
        for text in [
            program("bar.warp.sync \t-1;").replace("%r1, 15", "%r1, 31"),
            program("// begin inline asm\n\tbar.warp.sync \t-1;\n\t// end inline asm"),
            program("add.s32 \t%r2, %r1, 1;"),
        ] {
            assert_eq!(checked(&text), text);
        }
        let rows = program("bar.warp.sync \t-1;").replace("%tid.x", "%tid.y").replace("15;", "4;");
        let wide = rows.replace(".entry k()\n", ".entry k()\n.reqntid 32, 4, 1\n");
        assert_eq!(checked(&wide), wide);
        let narrow = wide.replace("32, 4", "16, 8");
        assert_ne!(checked(&narrow), narrow);
    }

    #[test]
    fn blocks_of_whole_warps_have_all_lanes() {
        let text = program("bar.warp.sync \t-1;").replace(".entry k()\n", ".entry k()\n.reqntid 64, 1, 1\n");
        assert!(!checked(&text).contains("%ntid"), "{}", checked(&text));
        for partial in ["65, 1", "48, 1"] {
            assert!(checked(&text.replace("64, 1", partial)).contains("%ntid.x"), "{partial}");
        }
    }

    #[test]
    fn one_check_is_for_the_operations_of_a_block_with_one_mask() {
        let count = |operations: &str| checked(&program(operations)).matches("activemask").count();
        let vote = "vote.sync.any.pred \t%p2, %p1, -1;";
        assert_eq!(count(&format!("{vote}\n\tredux.sync.add.s32 \t%r2, %r1, -1;")), 1);
        assert_eq!(count(&format!("{vote}\n\tbar.warp.sync \t65535;")), 2, "another mask");
        assert_eq!(count(&format!("{vote}\n\t@%p2 bra \t$end;\n\t{vote}")), 2, "some lanes have left");
        let load = "ldmatrix.sync.aligned.m8n8.x2.b16 \t{%r4, %r5}, [%rd1];";
        assert_eq!(count(&format!("{vote}\n\t{load}")), 1, "operations of matrices name all lanes");
        let masked = "bar.warp.sync \t%r3;";
        assert_eq!(count(&format!("{masked}\n\t{masked}")), 1);
        assert_eq!(count(&format!("{masked}\n\tadd.s32 \t%r3, %r3, 1;\n\t{masked}")), 2, "another value");
    }

    #[test]
    fn a_mask_that_may_differ_is_compared() {
        let text = checked(&program("match.any.sync.b32 \t%r3, %r1, -1;\n\tbar.warp.sync \t%r3;"));
        assert!(text.contains("match.any.sync.b32 \t%ferrogrid_lane0, %r3, %ferrogrid_lane0;"), "{text}");
        assert!(text.contains("and.b32 \t%ferrogrid_lane0, %ferrogrid_lane0, %r3;"), "{text}");
        let text = checked(&program("@!%p2 bar.warp.sync \t-1;"));
        assert!(text.contains("\t@%p2 bra \t$ferrogrid_lanes_0;\n\tactivemask"), "{text}");
    }

    /// What the statements of [`EXISTING`] leave of a mask of all lanes, for a thread of a block.
    fn existing(thread: [u32; 3], block: [u32; 3]) -> u32 {
        let mut registers = BTreeMap::from([("%ferrogrid_lane0", u32::MAX)]);
        let special = |name: &str, axes: [u32; 3]| {
            ["x", "y", "z"].iter().position(|axis| name.ends_with(&format!(".{axis}"))).map(|axis| axes[axis])
        };
        for line in EXISTING.lines().filter(|line| line.ends_with(';') && !line.contains(".reg")) {
            let (opcode, operands) = line.trim_end_matches(';').trim().split_once(" \t").unwrap();
            let operands: Vec<&str> = operands.split(", ").collect();
            let value = |at: usize| match operands[at] {
                name if name.starts_with("%tid") => special(name, thread).unwrap(),
                name if name.starts_with("%ntid") => special(name, block).unwrap(),
                name if name.starts_with('%') => registers[name],
                number => number.parse::<i32>().unwrap().cast_unsigned(),
            };
            let result = match opcode {
                "mov.u32" | "mov.b32" => value(1),
                "add.s32" => value(1).wrapping_add(value(2)),
                "sub.s32" => value(1).wrapping_sub(value(2)),
                "mul.lo.s32" => value(1).wrapping_mul(value(2)),
                "and.b32" => value(1) & value(2),
                // By 32 and more it leaves nothing.
                "shl.b32" => value(1).checked_shl(value(2)).unwrap_or(0),
                other => panic!("{other}"),
            };
            registers.insert(operands[0], result);
        }
        registers["%ferrogrid_lane0"]
    }

    #[test]
    fn lanes_beyond_the_block_do_not_count_as_missing() {
        for block in [
            [1, 1, 1],
            [31, 1, 1],
            [32, 1, 1],
            [33, 1, 1],
            [5, 7, 1],
            [3, 5, 7],
            [1024, 1, 1],
            [1, 1, 40],
            [7, 1, 11],
        ] {
            let [width, height, depth] = block;
            let threads = width * height * depth;
            for rank in 0..threads {
                let thread = [rank % width, rank / width % height, rank / width / height];
                let lanes = (threads - rank / 32 * 32).min(32);
                assert_eq!(existing(thread, block), u32::MAX >> (32 - lanes), "{thread:?} of {block:?}");
            }
        }
    }

    #[test]
    fn without_panics_it_traps() {
        let text = checked(&program("bar.warp.sync \t-1;").replace(DEVICE, ""));
        assert!(text.contains("\t@%ferrogrid_all bra \t$ferrogrid_lanes_0;\n\ttrap;\n"), "{text}");
        assert!(!text.contains("__ferrogrid"), "{text}");
    }
}
