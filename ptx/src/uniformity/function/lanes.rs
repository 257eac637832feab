//! Uniformity within a warp: the bits of registers, and masks.

use super::super::Level;
use super::super::bits::{self, Bits};
use super::super::value::special;
use super::Analysis;
use crate::{Instruction, Operand, Register};

impl<'t> Analysis<'_, 't> {
    /// Recomputes the bits of a register from its definitions; returns whether they change.
    pub(super) fn update_bits(&mut self, register: Register) -> bool {
        if !self.follows_lanes {
            return false;
        }
        let definitions = self.registers.definitions(register).iter();
        let made = definitions.map(|&at| self.bits_made_by(at)).fold(Bits::NONE, Bits::join);
        let found = if self.is_mixed[register.0] { made.mixed() } else { made };
        let known = &mut self.bits[register.0];
        let before = std::mem::replace(known, known.join(found));
        *known != before
    }

    /// The bits of a statement's result.
    fn bits_made_by(&self, at: usize) -> Bits {
        let Some(instruction) = self.body.statements[at].instruction() else { return Bits::ANY };
        let is_same = self.level_of_definition(at, instruction) <= Level::Warp;
        let known = Some(instruction).filter(|it| it.predicate.is_none());
        match known.and_then(|it| bits::made(it, |operand| self.bits_of(at, operand))) {
            Some(bits) if is_same => bits.same(),
            Some(bits) => bits,
            None if is_same => Bits::SAME,
            None => Bits::ANY,
        }
    }

    pub(super) fn bits_of(&self, at: usize, operand: &Operand<'_>) -> Bits {
        match operand {
            Operand::Name(name) => match self.registers.named(at, name) {
                Some(register) if self.registers.definitions(register).is_empty() => Bits::SAME,
                Some(register) => self.bits[register.0],
                None => bits::special(name, self.shape).unwrap_or(match special(name) {
                    Some(level) if level > Level::Warp => Bits::ANY,
                    _ => Bits::SAME,
                }),
            },
            Operand::Immediate(_) => bits::of_number(operand),
            _ if self.level_of_operand(at, operand) <= Level::Warp => Bits::SAME,
            _ => Bits::ANY,
        }
    }

    /// Whether the mask of an operation names all lanes.
    pub(super) fn names_all(&self, at: usize, operation: &Instruction<'_>) -> bool {
        let mask = operation.lane_mask().map(|mask| self.bits_of(at, mask).truncated(32));
        mask.and_then(Bits::value) == Some(u32::MAX.into())
    }

    /// Whether a mask names the lanes of the thread's tile.
    pub(super) fn names_a_tile(&self, at: usize, mask: &Operand<'_>) -> bool {
        let Some(register) = mask.name().and_then(|name| self.registers.named(at, name)) else {
            return false;
        };
        let mut tiles = self.registers.definitions(register).iter().map(|&at| self.tile_of_write(at));
        let Some(Some(first)) = tiles.next() else { return false };
        tiles.all(|tile| if self.is_mixed[register.0] { tile == Some(first) } else { tile.is_some() })
    }

    /// The lanes of a tile, if a statement computes its mask: `lanes` shifted by `laneid & (32 - n)`, or by `laneid` if it is 1.
    fn tile_of_write(&self, at: usize) -> Option<u64> {
        let made = |at: usize, operand: &Operand<'_>| {
            let [made] = self.registers.definitions(self.registers.named(at, operand.name()?)?) else {
                return None;
            };
            let instruction =
                self.body.statements[*made].instruction().filter(|it| it.predicate.is_none())?;
            Some((*made, instruction))
        };
        let is_lane = |at: usize, operand: &Operand<'_>| {
            made(at, operand).is_some_and(|(_, it)| {
                it.operation() == "mov" && it.operands.get(1).and_then(Operand::name) == Some("%laneid")
            })
        };
        let shift = self.body.statements[at].instruction().filter(|it| it.predicate.is_none())?;
        let [_, lanes, first] = shift.operands.as_slice() else { return None };
        let lanes = self.bits_of(at, lanes).value().filter(|_| shift.opcode == "shl.b32")?;
        let is_tile = match (lanes, made(at, first)) {
            (1, _) => is_lane(at, first),
            (3 | 15 | 255 | 65535, Some((at, and))) if and.opcode == "and.b32" => {
                is_lane(at, &and.operands[1]) && and.operands[2].number() == Some(32 - lanes.count_ones())
            }
            _ => false,
        };
        is_tile.then_some(lanes)
    }
}
