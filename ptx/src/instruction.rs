//! Instructions and their operands, with the names that they read and write.

use crate::ParseError;
use crate::scanner::Scanner;

/// An instruction: `@!%p1 ld.global.nc.v2.b32 {%r1, %r2}, [%rd1+8];`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction<'t> {
    /// The condition under which it is executed.
    pub predicate: Option<Predicate<'t>>,
    /// The operation with its modifiers: `ld.global.nc.v2.b32`.
    pub opcode: &'t str,
    /// The operands, in order.
    pub operands: Vec<Operand<'t>>,
}

/// A condition of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Predicate<'t> {
    /// The predicate register.
    pub register: &'t str,
    /// Whether the instruction is executed if the register is false.
    pub is_negated: bool,
}

/// An operand of an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operand<'t> {
    /// A register, variable, parameter, label or function.
    Name(&'t str),
    /// A number, or a constant with an operator before it.
    Immediate(&'t str),
    /// `[%rd1+8]`, `[map, {%r1, %r2}]`
    Address(Vec<Operand<'t>>),
    /// `{%r1, %r2}`
    Vector(Vec<Operand<'t>>),
    /// `(param0, param1)`
    Arguments(Vec<Operand<'t>>),
    /// `%p1|%p2`
    Pair(Box<[Operand<'t>; 2]>),
    /// `!%p1`
    Not(Box<Operand<'t>>),
    /// `table+8`: a base and an offset.
    Offset(Box<[Operand<'t>; 2]>),
    /// `generic(table)`
    Generic(Box<Operand<'t>>),
}

impl<'t> Instruction<'t> {
    pub(crate) fn parse(scanner: &mut Scanner<'t>) -> Result<Self, ParseError> {
        let predicate = match scanner.take(b'@') {
            true => {
                let is_negated = scanner.take(b'!');
                Some(Predicate { register: scanner.expect_word("a predicate")?, is_negated })
            }
            false => None,
        };
        let opcode = scanner.expect_word("an instruction")?;
        Self::parse_operands(scanner, predicate, opcode)
    }

    /// Parses the part after the opcode.
    pub(crate) fn parse_operands(
        scanner: &mut Scanner<'t>,
        predicate: Option<Predicate<'t>>,
        opcode: &'t str,
    ) -> Result<Self, ParseError> {
        let mut operands = Vec::new();
        while scanner.peek() != Some(b';') {
            operands.push(Operand::parse(scanner)?);
            if !scanner.take(b',') {
                break;
            }
        }
        scanner.expect(b';')?;
        Ok(Instruction { predicate, opcode, operands })
    }

    /// The operation without modifiers: `ld`.
    pub fn operation(&self) -> &'t str {
        // Every pass asks for it, in unoptimised builds, too: there a plain loop costs least.
        let bytes = self.opcode.as_bytes();
        let mut end = 0;
        while end < bytes.len() && bytes[end] != b'.' {
            end += 1;
        }
        &self.opcode[..end]
    }

    /// The modifiers: `global`, `nc`, `v2`, `b32`.
    pub fn modifiers(&self) -> impl Iterator<Item = &'t str> + use<'t> {
        self.opcode.split('.').skip(1)
    }

    /// Whether it has this modifier.
    pub fn has(&self, modifier: &str) -> bool {
        self.modifiers().any(|it| it == modifier)
    }

    /// The callee: a function, or a register that holds its address. `None` for other instructions.
    pub fn callee(&self) -> Option<&'t str> {
        if self.operation() != "call" {
            return None;
        }
        self.operands
            .iter()
            .find_map(|operand| if let Operand::Name(name) = operand { Some(*name) } else { None })
    }

    /// Whether it calls a function whose address is in a register.
    pub fn calls_by_address(&self) -> bool {
        self.callee().is_some_and(|callee| callee.starts_with('%'))
    }

    /// The arguments of a call; empty without a list.
    pub fn arguments(&self) -> &[Operand<'t>] {
        let mut operands = self.operands.iter().skip_while(|operand| !matches!(operand, Operand::Name(_)));
        operands
            .find_map(|it| if let Operand::Arguments(list) = it { Some(list.as_slice()) } else { None })
            .unwrap_or_default()
    }

    /// The names that it writes. These are not only registers, but also the parameters that a call returns
    /// into, for example.
    pub fn definitions(&self) -> Vec<&'t str> {
        let mut names = Vec::new();
        match self.operands.first() {
            Some(Operand::Arguments(returned))
                if self.operation() == "call" && self.callee_index() == Some(1) =>
            {
                returned.iter().for_each(|operand| operand.collect_names(&mut names));
            }
            Some(first) if self.writes_first_operand() => first.collect_names(&mut names),
            _ => {}
        }
        names.retain(|name| *name != "_");
        names
    }

    /// The names that it reads: registers, variables, parameters, labels and functions.
    pub fn uses(&self) -> Vec<&'t str> {
        let mut names: Vec<&str> = self.predicate.iter().map(|predicate| predicate.register).collect();
        let returns = self.operation() == "call" && self.callee_index() == Some(1);
        let skipped = usize::from(returns || (self.writes_first_operand() && !self.reads_first_operand()));
        self.operands.iter().skip(skipped).for_each(|operand| operand.collect_names(&mut names));
        names.retain(|name| *name != "_");
        names
    }

    fn callee_index(&self) -> Option<usize> {
        self.operands.iter().position(|operand| matches!(operand, Operand::Name(_)))
    }

    /// Whether the first operand, if it is a name, is a result.
    fn writes_first_operand(&self) -> bool {
        let is_place =
            matches!(self.operands.first(), Some(Operand::Name(_) | Operand::Vector(_) | Operand::Pair(_)));
        is_place
            && match self.operation() {
                "bra" | "brx" | "call" | "ret" | "exit" | "trap" | "nanosleep" | "setmaxnreg" | "pmevent"
                | "fence" | "membar" | "stackrestore" | "isspacep.wait" => false,
                // `bar.red` and `barrier.cta.red` have a result, the others a number of a barrier.
                "bar" | "barrier" => self.has("red"),
                "ferrogrid" => !self.has("together"),
                "cp" | "griddepcontrol" | "discard" | "prefetch" | "prefetchu" | "applypriority" | "red"
                | "st" => false,
                _ => true,
            }
    }

    /// Whether the result is also read: accumulators of `wgmma`.
    fn reads_first_operand(&self) -> bool {
        self.opcode.starts_with("wgmma.mma_async") || self.opcode.starts_with("bfi.in_place")
    }

    /// Whether it is convergent: barriers, shuffles, votes, operations of tensor cores. Compilers may not
    /// move it to where fewer threads execute it.
    pub fn is_convergent(&self) -> bool {
        matches!(
            self.operation(),
            "bar" | "barrier" | "activemask" | "shfl" | "vote" | "match" | "redux" | "elect"
        ) || self.has("together")
            || self.has("sync")
            || self.has("aligned")
    }

    /// Whether a warp executes it for a matrix that all of its lanes have parts of.
    pub fn is_of_matrices(&self) -> bool {
        matches!(self.operation(), "mma" | "ldmatrix" | "stmatrix" | "movmatrix")
    }

    /// The mask of a warp operation: its last operand, or all lanes.
    pub fn lane_mask(&self) -> Option<&Operand<'t>> {
        if self.is_of_matrices() { Some(&Operand::Immediate("-1")) } else { self.operands.last() }
    }

    /// Whether it ends its path: a branch, a return, or the end of the thread, without a condition.
    pub fn ends_path(&self) -> bool {
        self.predicate.is_none() && matches!(self.operation(), "bra" | "brx" | "ret" | "exit" | "trap")
    }
}

impl<'t> Operand<'t> {
    fn parse(scanner: &mut Scanner<'t>) -> Result<Self, ParseError> {
        Self::parse_within(scanner, 0)
    }

    fn parse_within(scanner: &mut Scanner<'t>, depth: u32) -> Result<Self, ParseError> {
        // Lists nest only once, as in `[map, {%r1, %r2}]`.
        if depth > 8 {
            return Err(scanner.error("operands are nested too deeply"));
        }
        let operand = match scanner.peek() {
            Some(b'[') => Operand::Address(list(scanner, b'[', b']', depth)?),
            Some(b'{') => Operand::Vector(list(scanner, b'{', b'}', depth)?),
            Some(b'(') => Operand::Arguments(list(scanner, b'(', b')', depth)?),
            Some(b'!') => {
                scanner.take(b'!');
                Operand::Not(Box::new(Self::parse_within(scanner, depth + 1)?))
            }
            _ => Self::atom(scanner)?,
        };
        match scanner.peek() {
            Some(b'|') => {
                scanner.take(b'|');
                let second = Self::parse_within(scanner, depth + 1)?;
                Ok(Operand::Pair(Box::new([operand, second])))
            }
            Some(b'+') => {
                scanner.take(b'+');
                let offset = Self::atom(scanner)?;
                Ok(Operand::Offset(Box::new([operand, offset])))
            }
            Some(b'-') => {
                let offset = Self::atom(scanner)?;
                Ok(Operand::Offset(Box::new([operand, offset])))
            }
            Some(b'(') if operand == Operand::Name("generic") => {
                scanner.take(b'(');
                let inner = Self::parse_within(scanner, depth + 1)?;
                scanner.expect(b')')?;
                Ok(Operand::Generic(Box::new(inner)))
            }
            _ => Ok(operand),
        }
    }

    /// A name or a number.
    fn atom(scanner: &mut Scanner<'t>) -> Result<Self, ParseError> {
        let start = scanner.start();
        let is_signed = scanner.take(b'-') || scanner.take(b'~');
        let word = scanner.expect_word("an operand")?;
        let is_number = is_signed || word.as_bytes()[0].is_ascii_digit();
        Ok(if is_number { Operand::Immediate(scanner.since(start)) } else { Operand::Name(word) })
    }

    pub(crate) fn collect_names(&self, names: &mut Vec<&'t str>) {
        match self {
            Operand::Name(name) => names.push(name),
            Operand::Immediate(_) => {}
            Operand::Address(list) | Operand::Vector(list) | Operand::Arguments(list) => {
                list.iter().for_each(|operand| operand.collect_names(names));
            }
            Operand::Pair(two) | Operand::Offset(two) => {
                two.iter().for_each(|operand| operand.collect_names(names))
            }
            Operand::Not(inner) | Operand::Generic(inner) => inner.collect_names(names),
        }
    }

    /// All names in it, in order.
    pub fn names(&self) -> Vec<&'t str> {
        let mut names = Vec::new();
        self.collect_names(&mut names);
        names
    }

    /// The name, if it is a plain name.
    pub fn name(&self) -> Option<&'t str> {
        if let Operand::Name(name) = self { Some(name) } else { None }
    }

    /// The number, if it is a whole one that the type has: decimal, hexadecimal, octal or binary, perhaps with a sign, or `U` at the end.
    pub fn number<N: TryFrom<i128>>(&self) -> Option<N> {
        let Operand::Immediate(text) = self else { return None };
        let (sign, digits) = text.strip_prefix('-').map_or((1, *text), |digits| (-1, digits));
        let digits = digits.strip_suffix('U').unwrap_or(digits);
        let (digits, radix) = match digits.as_bytes() {
            [b'0', b'x' | b'X', ..] => (&digits[2..], 16),
            [b'0', b'b' | b'B', ..] => (&digits[2..], 2),
            [b'0', _, ..] => (&digits[1..], 8),
            _ => (digits, 10),
        };
        // Not a second sign, which Rust would take.
        let is_number = digits.starts_with(|first: char| first.is_ascii_hexdigit());
        let magnitude = is_number.then(|| i128::from_str_radix(digits, radix).ok()).flatten()?;
        N::try_from(sign * magnitude).ok()
    }

    /// Base and offset of an address of one part: `[%rd1+8]`.
    pub fn address(&self) -> Option<(&'t str, Option<&Operand<'t>>)> {
        let Operand::Address(parts) = self else { return None };
        match parts.as_slice() {
            [Operand::Name(base)] => Some((base, None)),
            [Operand::Offset(two)] => Some((two[0].name()?, Some(&two[1]))),
            _ => None,
        }
    }
}

fn list<'t>(
    scanner: &mut Scanner<'t>,
    open: u8,
    close: u8,
    depth: u32,
) -> Result<Vec<Operand<'t>>, ParseError> {
    scanner.expect(open)?;
    let mut items = Vec::new();
    while scanner.peek() != Some(close) {
        items.push(Operand::parse_within(scanner, depth + 1)?);
        if !scanner.take(b',') {
            break;
        }
    }
    scanner.expect(close)?;
    Ok(items)
}
