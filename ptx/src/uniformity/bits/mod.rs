//! The bits of a value that may differ between the lanes of a warp: `rank / 32` has none, since a warp has
//! 32 consecutive ranks, the first a multiple of 32.

#[cfg(test)]
mod tests;

use super::Shape;
use crate::{Instruction, Operand};

/// The known bits of a value. Values of fewer than 64 bits have zeros above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bits {
    /// Bits that may differ between two lanes of a warp.
    pub(super) varies: u64,
    /// Bits that are 0 in all threads.
    zero: u64,
    /// Bits that are 1 in all threads.
    one: u64,
}

impl Bits {
    /// No value yet, the neutral element of `join`.
    pub(super) const NONE: Bits = Bits { varies: 0, zero: u64::MAX, one: u64::MAX };
    /// Any value.
    pub(super) const ANY: Bits = Bits { varies: u64::MAX, zero: 0, one: 0 };
    /// Any value that is uniform in the warp.
    pub(super) const SAME: Bits = Bits { varies: 0, zero: 0, one: 0 };

    fn constant(value: u64) -> Self {
        Bits { varies: 0, zero: !value, one: value }
    }

    /// The value, if it is known.
    pub(super) fn value(self) -> Option<u64> {
        (self.zero | self.one == u64::MAX && self != Bits::NONE).then_some(self.one)
    }

    /// A value below `2^bits`, whose bits `varies` may differ between lanes.
    fn below(bits: u32, varies: u64) -> Self {
        let zero = !low(bits);
        Bits { varies: varies & !zero, zero, one: 0 }
    }

    /// A value that is one of the two, but the same within each warp.
    pub(super) fn join(self, other: Self) -> Self {
        Bits { varies: self.varies | other.varies, zero: self.zero & other.zero, one: self.one & other.one }
    }

    /// The join of two values that are uniform in the warp.
    pub(super) fn same(self) -> Self {
        Bits { varies: 0, ..self }
    }

    /// The join of two values, both of which a warp may have.
    pub(super) fn mixed(self) -> Self {
        Bits { varies: !(self.zero | self.one), ..self }
    }

    pub(super) fn truncated(self, bits: u32) -> Self {
        let kept = low(bits);
        Bits { varies: self.varies & kept, zero: self.zero | !kept, one: self.one & kept }
    }

    /// The number of trailing zero bits.
    fn trailing_zeros(self) -> u32 {
        self.zero.trailing_ones()
    }

    fn sum(self, other: Self) -> Self {
        let varies = self.varies | other.varies;
        if self.zero | other.zero == u64::MAX {
            return Bits { varies, zero: self.zero & other.zero, one: self.one | other.one };
        }
        let (kept, other) =
            if self.trailing_zeros() < other.trailing_zeros() { (self, other) } else { (other, self) };
        // Below the other's lowest bit the sum does not change; above it, differences carry to any bit.
        let below = low(other.trailing_zeros());
        let above = varies & !below;
        let carried = if above == 0 { 0 } else { !low(above.trailing_zeros()) };
        Bits { varies: kept.varies & below | carried, zero: kept.zero & below, one: kept.one & below }
    }

    fn shifted_left(self, by: u32) -> Self {
        match by {
            0..64 => Bits { varies: self.varies << by, zero: self.zero << by | low(by), one: self.one << by },
            _ => Bits::constant(0),
        }
    }

    fn shifted_right(self, by: u32) -> Self {
        match by {
            0..64 => {
                Bits { varies: self.varies >> by, zero: self.zero >> by | !low(64 - by), one: self.one >> by }
            }
            _ => Bits::constant(0),
        }
    }

    fn times(self, factor: u64) -> Self {
        if factor.is_power_of_two() {
            return self.shifted_left(factor.trailing_zeros());
        }
        let zeros = self.trailing_zeros() + factor.trailing_zeros();
        Bits { varies: !low(self.varies.trailing_zeros()), zero: low(zeros), one: 0 }
    }

    fn and(self, other: Self) -> Self {
        let zero = self.zero | other.zero;
        Bits { varies: (self.varies | other.varies) & !zero, zero, one: self.one & other.one }
    }

    fn or(self, other: Self) -> Self {
        let one = self.one | other.one;
        Bits { varies: (self.varies | other.varies) & !one, zero: self.zero & other.zero, one }
    }

    fn xor(self, other: Self) -> Self {
        Bits {
            varies: self.varies | other.varies,
            zero: self.zero & other.zero | self.one & other.one,
            one: self.zero & other.one | self.one & other.zero,
        }
    }

    fn not(self) -> Self {
        Bits { zero: self.one, one: self.zero, ..self }
    }

    /// Whether `self < bound` is the same in all lanes of a warp: `bound` is a multiple of the greatest power
    /// of two that differs, so it does not separate two lanes.
    fn is_together_below(self, bound: Self, width: u32) -> bool {
        let bits = 64 - self.varies.leading_zeros();
        bits < width && bound.varies == 0 && bound.zero & low(bits) == low(bits)
    }

    /// The same for `self <= bound`.
    fn is_together_up_to(self, bound: Self, width: u32) -> bool {
        let bits = 64 - self.varies.leading_zeros();
        bits < width && bound.varies == 0 && bound.one & low(bits) == low(bits)
    }
}

/// A number whose lowest `bits` bits are 1.
fn low(bits: u32) -> u64 {
    1_u64.checked_shl(bits).map_or(u64::MAX, |bit| bit - 1)
}

/// The bits of a special register, in blocks of a shape; `None` if it is not supported.
pub(super) fn special(name: &str, shape: Shape) -> Option<Bits> {
    let (base, axis) = name.strip_prefix('%')?.split_once('.').unwrap_or((&name[1..], "x"));
    let axis = ["x", "y", "z"].iter().position(|it| *it == axis)?;
    match base {
        "laneid" => Some(Bits::below(5, u64::MAX)),
        "ntid" => shape[axis].map(|threads| Bits::constant(threads.into())),
        "tid" => Some(thread(axis, shape)),
        _ => None,
    }
}

/// The bits of a thread's index along an axis. A warp has 32 neighbours of the order in which x is fastest, from a multiple of 32.
fn thread(axis: usize, shape: Shape) -> Bits {
    const MOST: [u32; 3] = [1024, 1024, 64];
    let size = shape[axis].unwrap_or(MOST[axis]);
    let bits = size.saturating_sub(1).checked_ilog2().map_or(0, |top| top + 1);
    let inner = shape[..axis].iter().try_fold(1_u32, |all, threads| all.checked_mul((*threads)?));
    let is_last = shape[axis + 1..].iter().all(|threads| *threads == Some(1));
    let varies = match inner {
        Some(inner) if inner % 32 == 0 => 0,
        // The number of these in a warp, which starts at a multiple of it.
        Some(inner) if 32_u32.is_multiple_of(inner) => {
            let of_warp = 32 / inner;
            let is_whole = is_last || shape[axis].is_some_and(|size| size.is_multiple_of(of_warp));
            if is_whole { u64::from(of_warp) - 1 } else { u64::MAX }
        }
        _ => u64::MAX,
    };
    Bits::below(bits, varies)
}

/// The bits of an instruction's result, where `bits_of` gives the bits of operands; `None` for unsupported
/// instructions.
pub(super) fn made<'t>(
    instruction: &Instruction<'t>,
    bits_of: impl Fn(&Operand<'t>) -> Bits,
) -> Option<Bits> {
    let [Operand::Name(_), sources @ ..] = instruction.operands.as_slice() else { return None };
    let width = width(instruction.modifiers().last()?)?;
    let operand = |at: usize| bits_of(&sources[at]).truncated(width);
    let number = |at: usize| constant(&sources[at]);
    let made = match (instruction.operation(), sources.len()) {
        ("mov", 1) if !matches!(sources[0], Operand::Vector(_)) => operand(0),
        ("cvt", 1) => return converted(instruction, operand(0), width),
        ("and", 2) => operand(0).and(operand(1)),
        ("or", 2) => operand(0).or(operand(1)),
        ("xor", 2) => operand(0).xor(operand(1)),
        ("not", 1) => operand(0).not(),
        ("shl", 2) => operand(0).shifted_left(u32::try_from(number(1)?).ok()?),
        ("shr", 2) if instruction.has("s32") || instruction.has("s64") => {
            let is_positive = operand(0).zero >> (width - 1) & 1 == 1;
            operand(0).shifted_right(u32::try_from(number(1).filter(|_| is_positive)?).ok()?)
        }
        ("shr", 2) => operand(0).shifted_right(u32::try_from(number(1)?).ok()?),
        ("add", 2) if !instruction.has("sat") => operand(0).sum(operand(1)),
        ("mul", 2) if instruction.has("lo") => operand(0).times(number(1)?),
        ("mul", 2) if instruction.opcode == "mul.wide.u32" => return Some(operand(0).times(number(1)?)),
        ("mad", 3) if instruction.has("lo") && !instruction.has("sat") => {
            operand(0).times(number(1)?).sum(operand(2))
        }
        ("bfe", 3) if instruction.has("u32") || instruction.has("u64") => {
            let (first, count) = (u32::try_from(number(1)?).ok()?, u32::try_from(number(2)?).ok()?);
            operand(0).shifted_right(first).truncated(count)
        }
        ("selp", 3) => {
            let either = operand(0).join(operand(1));
            if bits_of(&sources[2]).varies == 0 { either } else { either.mixed() }
        }
        ("setp", 2) => return compared(instruction, operand(0), operand(1), width),
        _ => return None,
    };
    Some(made.truncated(width))
}

/// The bits of a value converted to an integer of another width.
fn converted(instruction: &Instruction<'_>, source: Bits, from: u32) -> Option<Bits> {
    let mut types = instruction.modifiers().filter_map(|it| Some((it, width(it)?)));
    let (Some((_, to)), Some((source_type, _)), None) = (types.next(), types.next(), types.next()) else {
        return None;
    };
    let is_negative = source_type.starts_with('s') && to > from && source.zero >> (from - 1) & 1 == 0;
    (!is_negative && !instruction.has("sat")).then(|| source.truncated(to))
}

/// The bits of a comparison.
fn compared(instruction: &Instruction<'_>, a: Bits, b: Bits, width: u32) -> Option<Bits> {
    let is_together = match instruction.modifiers().next()? {
        "lt" | "lo" | "ge" | "hs" => a.is_together_below(b, width) || b.is_together_up_to(a, width),
        "gt" | "hi" | "le" | "ls" => a.is_together_up_to(b, width) || b.is_together_below(a, width),
        _ => return None,
    };
    is_together.then_some(Bits::SAME)
}

/// The bits of an integer's type.
fn width(ty: &str) -> Option<u32> {
    let bits = ty.strip_prefix(['u', 's', 'b'])?.parse().ok()?;
    (bits == 16 || bits == 32 || bits == 64).then_some(bits)
}

/// The bits of a number.
pub(super) fn of_number(operand: &Operand<'_>) -> Bits {
    constant(operand).map_or(Bits::SAME, Bits::constant)
}

fn constant(operand: &Operand<'_>) -> Option<u64> {
    operand.number::<i64>().map(i64::cast_unsigned).or_else(|| operand.number())
}
