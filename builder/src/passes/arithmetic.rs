//! The `f32` arithmetic that a build or a kernel allows to be inexact, by the modifiers of instructions:
//! rustc has no option for most of it, and none for a single kernel.
//!
//! The table of `.ftz` is that of the PTX ISA, as nvcc applies it. Instructions written with `asm!` are left
//! as they are written, except that `.ftz` is for the whole program.

use ferrogrid_ptx::{Edits, Module};
use ferrogrid_syntax::Arithmetic;

use super::Wanted;

/// Applies the build's choice to all functions, and an entry point's own choice to it. Functions that a
/// kernel calls, rather than contains, follow the build.
pub(super) fn apply<'t>(module: &Module<'t>, wanted: &Wanted<'_>, edits: &mut Edits<'t>) {
    for function in module.functions() {
        let is_own = |(entry, _): &&(&str, Arithmetic)| function.is_entry && *entry == function.name;
        let own = wanted.arithmetic_of_kernels.iter().find(is_own);
        let chosen = own.map_or(wanted.arithmetic, |(_, own)| own.or(wanted.arithmetic));
        if chosen == Arithmetic::default() {
            continue;
        }
        for statement in function.statements() {
            let Some(instruction) = statement.instruction() else { continue };
            if let Some(changed) = instruction_with(instruction.opcode, chosen, statement.in_asm) {
                edits.replace(instruction.opcode, changed);
            }
        }
    }
}

/// The instruction with other modifiers, if any change.
fn instruction_with(name: &str, chosen: Arithmetic, in_asm: bool) -> Option<String> {
    let on = |option: Option<bool>| option == Some(true);
    let ftz = on(chosen.ftz);
    let mut changed = name.to_owned();
    if !in_asm {
        match name {
            "div.rn.f32" if on(chosen.approx_div) && ftz => changed = "div.approx.f32".to_owned(),
            "div.rn.f32" if on(chosen.approx_div) => changed = "div.full.f32".to_owned(),
            "rcp.rn.f32" if on(chosen.approx_div) => changed = "rcp.approx.f32".to_owned(),
            "sqrt.rn.f32" if on(chosen.approx_sqrt) => changed = "sqrt.approx.f32".to_owned(),
            _ if on(chosen.contract) => changed = contractible(name).unwrap_or(changed),
            _ => {}
        }
    }
    if ftz {
        changed = flushing(&changed).unwrap_or(changed);
    }
    (changed != name).then_some(changed)
}

/// ptxas fuses multiplications and additions that name no rounding.
fn contractible(name: &str) -> Option<String> {
    let (operation, ty) = name.split_once(".rn.")?;
    let fuses = ["add", "sub", "mul"].contains(&operation);
    (fuses && ["f32", "f64", "f32x2"].contains(&ty)).then(|| format!("{operation}.{ty}"))
}

/// What may follow the operation and stands before `.ftz`.
const BEFORE_FTZ: [&str; 23] = [
    "rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi", "approx", "full", "eq", "ne", "lt", "le", "gt", "ge",
    "equ", "neu", "ltu", "leu", "gtu", "geu", "num",
];

/// The instruction with `.ftz`, if it takes that and does not have it.
fn flushing(name: &str) -> Option<String> {
    let parts: Vec<&str> = name.split('.').collect();
    let (operation, modifiers) = parts.split_first()?;
    if modifiers.contains(&"ftz") || !takes_ftz(operation, modifiers) {
        return None;
    }
    let before = |part: &&&str| BEFORE_FTZ.contains(*part) || ["nan", "and", "or", "xor"].contains(*part);
    let at = 1 + modifiers.iter().take_while(before).count();
    let mut changed = parts;
    changed.insert(at, "ftz");
    Some(changed.join("."))
}

/// Whether an instruction with these modifiers computes with `f32`s in a way that `.ftz` changes.
fn takes_ftz(operation: &str, modifiers: &[&str]) -> bool {
    let Some((last, before)) = modifiers.split_last() else { return false };
    match operation {
        "add" | "sub" | "mul" | "fma" => ["f32", "f32x2"].contains(last),
        "mad" | "div" | "rcp" | "sqrt" | "rsqrt" | "sin" | "cos" | "ex2" | "lg2" | "abs" | "neg" | "min"
        | "max" | "setp" | "set" | "slct" => *last == "f32",
        "cvt" => before.last().is_some_and(|to| converts_with_ftz(to, last)),
        _ => false,
    }
}

/// Whether `.ftz` changes a conversion: between `f32`, `f64` and integers, except from integers, which are
/// never subnormal.
fn converts_with_ftz(to: &str, from: &str) -> bool {
    let is_integer = to.strip_prefix(['s', 'u']).is_some_and(|bits| bits.parse::<u32>().is_ok());
    match from {
        "f32" => is_integer || ["f32", "f64"].contains(&to),
        "f64" => to == "f32",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::after;
    use super::*;

    const FTZ: Arithmetic =
        Arithmetic { ftz: Some(true), approx_div: None, approx_sqrt: None, contract: None };

    fn with(chosen: Arithmetic, name: &str) -> String {
        instruction_with(name, chosen, false).unwrap_or_else(|| name.to_owned())
    }

    #[test]
    fn ftz_stands_where_nvcc_writes_it() {
        for name in [
            "add.rn.ftz.f32",
            "add.rz.ftz.f32",
            "sub.ftz.f32",
            "fma.rn.ftz.f32",
            "fma.rn.ftz.sat.f32",
            "mul.rn.ftz.f32x2",
            "div.rn.ftz.f32",
            "div.full.ftz.f32",
            "rcp.rn.ftz.f32",
            "sqrt.approx.ftz.f32",
            "ex2.approx.ftz.f32",
            "abs.ftz.f32",
            "neg.ftz.f32",
            "min.ftz.NaN.f32",
            "max.ftz.f32",
            "setp.lt.ftz.f32",
            "setp.nan.or.ftz.f32",
            "set.eq.ftz.u32.f32",
            "cvt.ftz.f64.f32",
            "cvt.rn.ftz.f32.f64",
            "cvt.rzi.ftz.s32.f32",
            "cvt.rzi.ftz.sat.u8.f32",
            "cvt.rmi.ftz.f32.f32",
        ] {
            assert_eq!(with(FTZ, &name.replace(".ftz", "")), name);
            assert_eq!(with(FTZ, name), name, "it is not repeated");
        }
    }

    #[test]
    fn operations_without_rounding_may_be_fused() {
        let contract = Arithmetic { contract: Some(true), ..Arithmetic::default() };
        for operation in ["add", "sub", "mul"] {
            for ty in ["f32", "f64", "f32x2"] {
                assert_eq!(with(contract, &format!("{operation}.rn.{ty}")), format!("{operation}.{ty}"));
            }
        }
        for name in [
            "fma.rn.f32",
            "add.rz.f32",
            "mul.rn.f16",
            "add.rn.ftz.f32",
            "div.rn.f32",
            "add.f32",
            "mul.lo.s32",
        ] {
            assert_eq!(with(contract, name), name);
        }
    }

    #[test]
    fn instructions_without_ftz_stay_unchanged() {
        for name in [
            "add.rn.f64",
            "add.s32",
            "tanh.approx.f32",
            "copysign.f32",
            "selp.f32",
            "mov.f32",
            "ld.global.f32",
            "st.param.f32",
            "cvt.rn.f32.s32",
            "cvt.rn.f16.f32",
            "cvt.f32.f16",
            "fma.rn.f16x2",
            "atom.global.add.f32",
            "max.s32",
            "neg",
        ] {
            assert_eq!(with(FTZ, name), name);
        }
    }

    const TEXT: &str = "\
.visible .entry k_1(
\t.param .f32 k_1_param_0
)
{
\tdiv.rn.f32 \t%f1, %f2, %f3;
\t// begin inline asm
\tdiv.rn.f32 %f1, %f2, %f3; ex2.approx.f32 %f1, %f1;
\t// end inline asm
@%p1 mul.rn.f64 \t%d1, %d1, %d2;
\tmul.wide.u32 \t%rd1, %r1, 4;
}
.func add_rn_f32()
{
\tsqrt.rn.f32 \t%f1, %f2;
}
";

    fn applied(arithmetic: Arithmetic, arithmetic_of_kernels: Vec<(&str, Arithmetic)>) -> String {
        let wanted = Wanted { arithmetic, arithmetic_of_kernels, ..Wanted::default() };
        after(TEXT, |module, edits| apply(module, &wanted, edits))
    }

    #[test]
    fn nothing_asked_for_changes_nothing() {
        assert_eq!(applied(Arithmetic::default(), vec![]), TEXT);
        assert_eq!(applied(Arithmetic::fast_math(false), vec![]), TEXT);
    }

    #[test]
    fn asm_is_left_as_written_but_for_subnormals() {
        let text = applied(Arithmetic::fast_math(true), vec![]);
        assert!(text.contains("\tdiv.approx.ftz.f32 \t%f1, %f2, %f3;"), "{text}");
        assert!(text.contains("\tdiv.rn.ftz.f32 %f1, %f2, %f3; ex2.approx.ftz.f32 %f1, %f1;"), "{text}");
        assert!(text.contains("@%p1 mul.f64 \t%d1"), "{text}");
        assert!(text.contains("\tsqrt.approx.ftz.f32 \t%f1"), "{text}");
        assert!(text.contains("mul.wide.u32") && text.contains(".func add_rn_f32()"), "{text}");
    }

    #[test]
    fn a_kernel_overrides_the_options_of_the_build() {
        let own = Arithmetic { contract: Some(true), approx_div: Some(false), ..Arithmetic::default() };
        let build = Arithmetic { approx_div: Some(true), approx_sqrt: Some(true), ..Arithmetic::default() };
        let text = applied(build, vec![("k_1", own)]);
        assert!(text.contains("\tdiv.rn.f32 \t%f1") && text.contains("@%p1 mul.f64"), "{text}");
        assert!(text.contains("\tsqrt.approx.f32 \t%f1"), "{text}");
        let others = applied(build, vec![("k_10", own)]);
        assert!(others.contains("\tdiv.full.f32 \t%f1") && others.contains("@%p1 mul.rn.f64"), "{others}");
    }
}
