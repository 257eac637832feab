//! Values as sums of divergent terms, and the effect of instructions on them.

use super::Level;
use crate::{Instruction, Operand, Register};

/// The abstract value of a register.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Value<'t> {
    /// No definition has been visited yet.
    #[default]
    Unknown,
    /// The sum of these terms, each times a number, and of a value that is uniform in the grid.
    Sum(Vec<(Term<'t>, i64)>),
}

/// A divergent term.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Term<'t> {
    /// A special register.
    Special(&'t str),
    /// A register whose value is not a sum of others.
    Register(Register),
}

impl<'t> Value<'t> {
    /// A value that is uniform in the grid.
    pub(super) fn same() -> Self {
        Value::Sum(Vec::new())
    }

    pub(super) fn term(term: Term<'t>) -> Self {
        Value::Sum(vec![(term, 1)])
    }

    /// The registers among its terms.
    pub(super) fn registers(&self) -> impl Iterator<Item = Register> {
        let terms = if let Value::Sum(terms) = self { terms.as_slice() } else { &[] };
        terms.iter().filter_map(|(term, _)| match term {
            Term::Register(register) => Some(*register),
            Term::Special(_) => None,
        })
    }

    /// `self * a + other * b`, of numbers that wrap around.
    pub(super) fn combined(&self, a: i64, other: &Self, b: i64) -> Self {
        let (Value::Sum(first), Value::Sum(second)) = (self, other) else { return Value::Unknown };
        let scaled = |terms: &[(Term<'t>, i64)], by: i64| -> Vec<(Term<'t>, i64)> {
            terms.iter().map(|(term, times)| (*term, times.wrapping_mul(by))).collect()
        };
        let mut all = scaled(first, a);
        all.extend(scaled(second, b));
        all.sort_unstable_by_key(|(term, _)| *term);
        let mut sum: Vec<(Term<'t>, i64)> = Vec::with_capacity(all.len());
        for (term, times) in all {
            match sum.last_mut().filter(|(last, _)| *last == term) {
                Some((_, before)) => *before = before.wrapping_add(times),
                None => sum.push((term, times)),
            }
        }
        sum.retain(|(_, times)| *times != 0);
        Value::Sum(sum)
    }
}

/// The level of a special register; `None` if there is none of this name.
pub(super) fn special(name: &str) -> Option<Level> {
    let base = name.strip_prefix('%')?.split('.').next()?;
    Some(match base {
        "ntid"
        | "nctaid"
        | "nclusterid"
        | "cluster_nctaid"
        | "cluster_nctarank"
        | "gridid"
        | "nsmid"
        | "is_explicit_cluster"
        | "total_smem_size"
        | "aggr_smem_size"
        | "dynamic_smem_size" => Level::Grid,
        "clusterid" => Level::Cluster,
        "ctaid" | "cluster_ctaid" | "cluster_ctarank" => Level::Block,
        _ if base.starts_with("envreg") => Level::Grid,
        // Indices of threads and lanes, clocks, and unknown registers.
        _ => Level::Thread,
    })
}

/// Whether a special register is constant for a thread's lifetime: an index or a count.
pub(super) fn is_place(name: &str) -> bool {
    let base = name.strip_prefix('%').and_then(|name| name.split('.').next());
    base == Some("tid") || base == Some("laneid") || special(name).is_some_and(|level| level < Level::Thread)
}

/// The effect of an instruction on its operands.
pub(super) enum Effect {
    /// The sum of its source operands, each times a number.
    Sum(Vec<i64>),
    /// Whether two are equal: only their difference counts.
    Equality,
    /// A value that is uniform wherever its operands are.
    Function,
    /// A value of at most this uniformity.
    Differs(Level),
    /// A value that all lanes in the mask of an operation get.
    Exchanged,
    /// A load from an address in a state space.
    Load(Space),
}

/// Memory, by its possible writers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Space {
    /// Read-only while the kernel runs.
    ReadOnly,
    /// Written only with a race: shared memory between barriers.
    Shared,
    /// Written by the thread itself.
    Local,
    /// Parameters of functions.
    Parameter,
    /// Written by any thread.
    Other,
}

pub(super) fn effect(instruction: &Instruction<'_>) -> Effect {
    let ty = instruction.modifiers().last().unwrap_or_default();
    let is_integer = ty.starts_with(['u', 's', 'b']) && !instruction.has("sat");
    let sources = instruction.operands.get(1..).unwrap_or_default();
    let is_single = matches!(instruction.operands.first(), Some(Operand::Name(_)));
    let factor = |at: usize| sources.get(at).and_then(|operand| operand.number::<i64>());
    match (instruction.operation(), sources.len()) {
        ("mov" | "cvta", 1) if is_single && !matches!(sources[0], Operand::Vector(_)) => Effect::Sum(vec![1]),
        ("add", 2) if is_integer => Effect::Sum(vec![1, 1]),
        ("sub", 2) if is_integer => Effect::Sum(vec![1, -1]),
        ("shl", 2) => match factor(1) {
            Some(bits @ 0..=62) => Effect::Sum(vec![1 << bits, 0]),
            _ => Effect::Function,
        },
        ("mul", 2) if is_integer && instruction.has("lo") => match factor(1) {
            Some(factor) => Effect::Sum(vec![factor, 0]),
            None => Effect::Function,
        },
        ("mad", 3) if is_integer && instruction.has("lo") => match factor(1) {
            Some(factor) => Effect::Sum(vec![factor, 0, 1]),
            None => Effect::Function,
        },
        ("setp", 2) if is_integer && (instruction.has("eq") || instruction.has("ne")) => Effect::Equality,
        ("ld" | "ldu", _) => Effect::Load(space(instruction)),
        // The threads of the block get one result, or are assumed to have one value.
        ("bar" | "barrier" | "ferrogrid", _) => Effect::Differs(Level::Block),
        ("vote" | "redux" | "match" | "shfl", _) if is_one_for_all(instruction) => Effect::Exchanged,
        _ if is_pure(instruction) => Effect::Function,
        _ => Effect::Differs(Level::Thread),
    }
}

/// Whether all lanes in the mask of an operation get the same: of a vote, a reduction, or a broadcast of the first lane.
fn is_one_for_all(instruction: &Instruction<'_>) -> bool {
    let is_number = |at: usize, number: i64| {
        instruction.operands.get(at).and_then(|operand| operand.number::<i64>()) == Some(number)
    };
    match instruction.operation() {
        "match" => instruction.has("all"),
        // Lane 0 exists if any lane does.
        "shfl" => instruction.has("idx") && is_number(2, 0) && is_number(3, 31),
        _ => instruction.has("sync"),
    }
}

fn space(instruction: &Instruction<'_>) -> Space {
    let is_plain = !["volatile", "relaxed", "acquire", "mmio"].iter().any(|order| instruction.has(order));
    match () {
        () if instruction.has("const") || instruction.has("nc") => Space::ReadOnly,
        () if instruction.has("param") => Space::Parameter,
        () if instruction.has("shared") && is_plain => Space::Shared,
        () if instruction.has("local") && is_plain => Space::Local,
        () => Space::Other,
    }
}

/// Whether the result depends on the operands only.
fn is_pure(instruction: &Instruction<'_>) -> bool {
    matches!(
        instruction.operation(),
        "abs"
            | "add"
            | "addc"
            | "and"
            | "bfe"
            | "bfi"
            | "bfind"
            | "bmsk"
            | "brev"
            | "clz"
            | "cnot"
            | "copysign"
            | "cos"
            | "cvt"
            | "cvta"
            | "div"
            | "dp2a"
            | "dp4a"
            | "ex2"
            | "fma"
            | "fns"
            | "getctarank"
            | "isspacep"
            | "lg2"
            | "lop3"
            | "mad"
            | "mad24"
            | "madc"
            | "mapa"
            | "max"
            | "min"
            | "mov"
            | "mul"
            | "mul24"
            | "neg"
            | "not"
            | "or"
            | "popc"
            | "prmt"
            | "rcp"
            | "rem"
            | "rsqrt"
            | "sad"
            | "selp"
            | "set"
            | "setp"
            | "shf"
            | "shl"
            | "shr"
            | "sin"
            | "slct"
            | "sqrt"
            | "sub"
            | "subc"
            | "szext"
            | "tanh"
            // Textures are not written while a kernel reads them.
            | "tex"
            | "testp"
            | "tld4"
            | "txq"
            | "vabsdiff"
            | "vabsdiff2"
            | "vabsdiff4"
            | "vadd"
            | "vadd2"
            | "vadd4"
            | "vavrg2"
            | "vavrg4"
            | "vmad"
            | "vmax"
            | "vmax2"
            | "vmax4"
            | "vmin"
            | "vmin2"
            | "vmin4"
            | "vset"
            | "vset2"
            | "vset4"
            | "vshl"
            | "vshr"
            | "vsub"
            | "vsub2"
            | "vsub4"
            | "xor"
    )
}
