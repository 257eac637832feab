//! The registers of a function that a single instruction defines, and companions of registers.
//!
//! What is known of such a register holds at every use. Its low half, or its source, goes into a companion
//! register just behind the definition, so the two always agree. ptxas removes such copies.

use std::collections::HashMap;

use ferrogrid_ptx::{Body, Edits, Instruction, Operand, Register, Registers};

/// The registers of a body while it is rewritten.
pub(super) struct Values<'b, 't> {
    pub(super) body: &'b Body<'t>,
    pub(super) registers: Registers<'t>,
    edits: &'b mut Edits<'t>,
    companions: HashMap<(Register, Kind), String>,
    /// How many registers of each kind there are.
    counts: [usize; 2],
}

/// The relation of a companion to its register.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    /// Its low half, in 32 bits.
    Half,
    /// The address that it was made of, in its space, in 64 bits.
    Source,
}

impl<'b, 't> Values<'b, 't> {
    pub(super) fn of(body: &'b Body<'t>, edits: &'b mut Edits<'t>) -> Self {
        let registers = Registers::of(body);
        Values { body, registers, edits, companions: HashMap::new(), counts: [0; 2] }
    }

    /// The instruction of a statement, if LLVM wrote it and it has no predicate.
    pub(super) fn instruction(&self, statement: usize) -> Option<&'b Instruction<'t>> {
        let statement = &self.body.statements[statement];
        statement.instruction().filter(|it| !statement.in_asm && it.predicate.is_none())
    }

    /// The only statement that defines `register`.
    pub(super) fn definition_of(&self, register: Register) -> Option<usize> {
        if let [only] = self.registers.definitions(register) { Some(*only) } else { None }
    }

    /// The register that an operand of a statement is.
    pub(super) fn register(&self, statement: usize, operand: &Operand<'_>) -> Option<Register> {
        self.registers.named(statement, operand.name()?)
    }

    /// Replaces the instruction of a statement.
    pub(super) fn replace(&mut self, statement: usize, instruction: &str) {
        self.edits.replace(self.body.statements[statement].text, format!("{instruction};"));
    }

    /// Replaces a part of a statement.
    pub(super) fn replace_part(&mut self, part: &'t str, new: impl Into<String>) {
        self.edits.replace(part, new);
    }

    /// Replaces the instruction of a statement by one that reads the low half of `register` at that point.
    pub(super) fn replace_by_half(
        &mut self,
        statement: usize,
        register: Register,
        by: impl FnOnce(&str) -> String,
    ) {
        let half = self.new_register(Kind::Half);
        let instruction = by(&half);
        let register = self.registers.name(register);
        self.replace(statement, &format!("cvt.u32.u64 \t{half}, {register};\n\t{instruction}"));
    }

    /// A 32-bit register with the low half of `register`, which has a single definition: wherever one is
    /// used, so can the other be.
    pub(super) fn low_half(&mut self, register: Register) -> Option<String> {
        let name = self.registers.name(register);
        self.companion(register, Kind::Half, |half| format!("cvt.u32.u64 \t{half}, {name}"))
    }

    /// A 64-bit register with the value that `source` has where `register` is defined.
    pub(super) fn copy_at(&mut self, register: Register, source: &str) -> Option<String> {
        self.companion(register, Kind::Source, |copy| format!("mov.b64 \t{copy}, {source}"))
    }

    /// A 64-bit register with the sum of `base` and `offset` where `register` is defined.
    pub(super) fn sum_at(&mut self, register: Register, base: &str, offset: &Operand<'_>) -> Option<String> {
        self.companion(register, Kind::Source, |sum| format!("add.s64 \t{sum}, {base}, {offset}"))
    }

    fn companion(
        &mut self,
        register: Register,
        kind: Kind,
        instruction: impl FnOnce(&str) -> String,
    ) -> Option<String> {
        let definition = &self.body.statements[self.definition_of(register)?];
        if definition.in_asm {
            return None;
        }
        if let Some(known) = self.companions.get(&(register, kind)) {
            return Some(known.clone());
        }
        let name = self.new_register(kind);
        self.edits.insert_after(definition.text, format!("\n\t{};", instruction(&name)));
        self.companions.insert((register, kind), name.clone());
        Some(name)
    }

    fn new_register(&mut self, kind: Kind) -> String {
        let count = &mut self.counts[kind as usize];
        *count += 1;
        format!("{}{}", kind.prefix(), *count - 1)
    }

    /// Declares the registers that were added.
    pub(super) fn declare_companions(self) {
        for (kind, ty) in [(Kind::Half, ".b32"), (Kind::Source, ".b64")] {
            let count = self.counts[kind as usize];
            if count > 0 {
                let declaration = format!("\t.reg {ty} \t{}<{count}>;\n", kind.prefix());
                self.edits.insert_line_after(&self.body.text[..1], declaration);
            }
        }
    }
}

impl Kind {
    fn prefix(self) -> &'static str {
        match self {
            Kind::Half => "%narrow",
            Kind::Source => "%space",
        }
    }
}
