//! The registers of a function, with their definitions and uses. Names are resolved in their scopes: two
//! blocks of inline assembly that each declare `%t` have two registers.

use crate::names::NameMap;
use crate::{Body, StatementKind};

/// A register of a function, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Register(pub usize);

/// Definitions and uses of the registers of a body.
#[derive(Debug)]
pub struct Registers<'t> {
    names: Vec<&'t str>,
    types: Vec<&'t str>,
    /// The statements that define each register.
    definitions: Vec<Vec<usize>>,
    /// The statements that read each register.
    uses: Vec<Vec<usize>>,
    /// The definitions and uses of each statement.
    statements: Vec<(Vec<Register>, Vec<Register>)>,
}

/// A scope of names: `{ .. }`.
#[derive(Default)]
struct Scope<'t> {
    /// Names of a single register, with their types.
    single: NameMap<&'t str, &'t str>,
    /// Names of several, `%r<10>`: their number and type.
    numbered: NameMap<&'t str, (usize, &'t str)>,
    /// Registers that were named already.
    known: NameMap<&'t str, Register>,
}

impl<'t> Registers<'t> {
    /// Resolves the names of a body.
    pub fn of(body: &Body<'t>) -> Self {
        let mut registers = Registers {
            names: Vec::new(),
            types: Vec::new(),
            definitions: Vec::new(),
            uses: Vec::new(),
            statements: vec![Default::default(); body.statements.len()],
        };
        let mut scopes = vec![Scope::default()];
        for (at, statement) in body.statements.iter().enumerate() {
            match &statement.kind {
                StatementKind::Open => scopes.push(Scope::default()),
                StatementKind::Close => {
                    scopes.pop();
                }
                StatementKind::Declaration(declaration) if declaration.space == ".reg" => {
                    let Some(scope) = scopes.last_mut() else { continue };
                    for declared in &declaration.names {
                        match declared.registers {
                            None => {
                                scope.single.insert(declared.name, declaration.ty);
                            }
                            Some(count) => {
                                scope.numbered.insert(declared.name, (count, declaration.ty));
                            }
                        }
                    }
                }
                StatementKind::Instruction(instruction) => {
                    for name in instruction.definitions() {
                        let Some(register) = registers.resolve(name, &mut scopes) else { continue };
                        registers.definitions[register.0].push(at);
                        registers.statements[at].0.push(register);
                    }
                    for name in instruction.uses() {
                        let Some(register) = registers.resolve(name, &mut scopes) else { continue };
                        registers.uses[register.0].push(at);
                        registers.statements[at].1.push(register);
                    }
                }
                _ => {}
            }
        }
        registers
    }

    fn resolve(&mut self, name: &'t str, scopes: &mut [Scope<'t>]) -> Option<Register> {
        // An element of a vector register is a part of that register.
        let name = match name.as_bytes() {
            [_, .., b'.', b'x' | b'y' | b'z' | b'w' | b'r' | b'g' | b'b' | b'a'] => &name[..name.len() - 2],
            _ => name,
        };
        for scope in scopes.iter_mut().rev() {
            if let Some(register) = scope.known.get(name) {
                return Some(*register);
            }
            if let Some(ty) = scope.ty(name) {
                let register = Register(self.names.len());
                scope.known.insert(name, register);
                self.names.push(name);
                self.types.push(ty);
                self.definitions.push(Vec::new());
                self.uses.push(Vec::new());
                return Some(register);
            }
        }
        None
    }

    /// The number of registers.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The name of a register.
    pub fn name(&self, register: Register) -> &'t str {
        self.names[register.0]
    }

    /// The type that it was declared with, `.b32`.
    pub fn ty(&self, register: Register) -> &'t str {
        self.types[register.0]
    }

    /// The statements that define it, in order.
    pub fn definitions(&self, register: Register) -> &[usize] {
        &self.definitions[register.0]
    }

    /// The statements that read it, in order.
    pub fn uses(&self, register: Register) -> &[usize] {
        &self.uses[register.0]
    }

    /// The registers that a statement defines.
    pub fn defined_by(&self, statement: usize) -> &[Register] {
        &self.statements[statement].0
    }

    /// The registers that a statement reads.
    pub fn used_by(&self, statement: usize) -> &[Register] {
        &self.statements[statement].1
    }

    /// The register that `name` refers to in a statement, which must read or define it.
    pub fn named(&self, statement: usize, name: &str) -> Option<Register> {
        let (defined, used) = &self.statements[statement];
        defined.iter().chain(used).copied().find(|register| self.names[register.0] == name)
    }
}

impl<'t> Scope<'t> {
    fn ty(&self, name: &str) -> Option<&'t str> {
        if let Some(ty) = self.single.get(name) {
            return Some(ty);
        }
        let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        // A name may end in digits itself: `%f16_<4>` is not, `%x1<4>` is.
        (1..=digits).rev().find_map(|digits| {
            let (base, number) = name.split_at(name.len() - digits);
            let (count, ty) = self.numbered.get(base)?;
            let is_plain = digits == 1 || !number.starts_with('0');
            (is_plain && number.parse::<usize>().is_ok_and(|number| number < *count)).then_some(*ty)
        })
    }
}
