//! Declarations: variables of modules and functions, registers, parameters.

use crate::ParseError;
use crate::scanner::Scanner;

/// The linkage of a function or variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Linkage {
    /// Visible in this module only.
    #[default]
    Internal,
    /// Visible to other modules (`.visible`).
    Visible,
    /// Visible to other modules, which may define it as well (`.weak`).
    Weak,
    /// Defined by another module (`.extern`).
    Extern,
    /// One of several definitions of a variable (`.common`).
    Common,
}

/// One or more variables, registers or parameters of a type: `.visible .global .align 4 .b8 table[8] = {..};`.
#[derive(Debug, Clone)]
pub struct Declaration<'t> {
    /// The text, with the semicolon if it has one.
    pub text: &'t str,
    /// Its linkage.
    pub linkage: Linkage,
    /// Space, alignment, type and what a pointer points to, as written: `.param .u64 .ptr .global .align 4`.
    pub specification: &'t str,
    /// The state space: `.global`, `.param`, `.reg`.
    pub space: &'t str,
    /// The alignment as written, in bytes.
    pub align: Option<usize>,
    /// Elements of a vector type (`.v4`); 1 without.
    pub lanes: usize,
    /// The type: `.b8`, `.f32`, `.pred`.
    pub ty: &'t str,
    /// The declared names; a parameter has one.
    pub names: Vec<Declared<'t>>,
}

/// A name in a declaration.
#[derive(Debug, Clone)]
pub struct Declared<'t> {
    /// The name, of registers with the percent sign: `%r` in `%r<10>`.
    pub name: &'t str,
    /// How many registers it stands for (`%r<10>`).
    pub registers: Option<usize>,
    /// The lengths of an array; 0 where none is written.
    pub lengths: Vec<usize>,
    /// Its initial value: `{0, 1}`, `7`, `generic(x)`.
    pub initializer: Option<&'t str>,
}

impl<'t> Declaration<'t> {
    /// Parses the part after the state space.
    pub(crate) fn parse(
        scanner: &mut Scanner<'t>,
        start: usize,
        linkage: Linkage,
        space: &'t str,
    ) -> Result<Self, ParseError> {
        let mut declaration = Self::start(scanner, linkage, space)?;
        loop {
            declaration.names.push(Declared::parse(scanner)?);
            if !scanner.take(b',') {
                break;
            }
        }
        scanner.expect(b';')?;
        declaration.text = scanner.since(start);
        Ok(declaration)
    }

    /// Parses a parameter in a list, from its state space on.
    pub(crate) fn parse_parameter(scanner: &mut Scanner<'t>) -> Result<Self, ParseError> {
        let start = scanner.start();
        let space = scanner.expect_word("`.param`")?;
        if ![".param", ".reg"].contains(&space) {
            return Err(scanner.error(format!("expected `.param`, found `{space}`")));
        }
        let mut declaration = Self::start(scanner, Linkage::Internal, space)?;
        declaration.names.push(Declared::parse(scanner)?);
        declaration.text = scanner.since(start);
        Ok(declaration)
    }

    fn start(scanner: &mut Scanner<'t>, linkage: Linkage, space: &'t str) -> Result<Self, ParseError> {
        let mut declaration = Declaration {
            text: "",
            linkage,
            specification: space,
            space,
            align: None,
            lanes: 1,
            ty: "",
            names: Vec::new(),
        };
        let mut is_of_pointee = false;
        while scanner.peek() == Some(b'.') {
            match scanner.expect_word("a type")? {
                ".align" if is_of_pointee => drop(scanner.number::<usize>("an alignment")?),
                ".align" => declaration.align = Some(scanner.number("an alignment")?),
                ".attribute" => {
                    scanner.expect(b'(')?;
                    scanner.skip_to(b")")?;
                    scanner.expect(b')')?;
                }
                ".v2" => declaration.lanes = 2,
                ".v4" => declaration.lanes = 4,
                ".v8" => declaration.lanes = 8,
                ".ptr" => is_of_pointee = true,
                word if !is_of_pointee => declaration.ty = word,
                _ => {}
            }
            declaration.specification = scanner.since_part(space);
        }
        Ok(declaration)
    }

    /// The first name.
    pub fn name(&self) -> &'t str {
        self.names.first().map_or("", |declared| declared.name)
    }

    /// The size of each name in bytes: of a number, a vector or an array. `None` for a predicate, an array
    /// without a length, or a size that overflows.
    pub fn size(&self) -> Option<usize> {
        let element = type_size(self.ty)?.checked_mul(self.lanes)?;
        let lengths = &self.names.first()?.lengths;
        lengths.iter().try_fold(element, |size, length| size.checked_mul(*length).filter(|_| *length > 0))
    }

    /// The alignment in bytes: as written, or that of the type.
    pub fn alignment(&self) -> Option<usize> {
        self.align.or_else(|| type_size(self.ty)?.checked_mul(self.lanes))
    }
}

impl<'t> Declared<'t> {
    fn parse(scanner: &mut Scanner<'t>) -> Result<Self, ParseError> {
        let name = scanner.expect_word("a name")?;
        let mut declared = Declared { name, registers: None, lengths: Vec::new(), initializer: None };
        if scanner.take(b'<') {
            declared.registers = Some(scanner.number("a number of registers")?);
            scanner.expect(b'>')?;
        }
        while scanner.take(b'[') {
            let length = if scanner.peek() == Some(b']') { 0 } else { scanner.number("a length")? };
            declared.lengths.push(length);
            scanner.expect(b']')?;
        }
        if scanner.take(b'=') {
            let start = scanner.start();
            scanner.skip_to(b",;)")?;
            declared.initializer = Some(scanner.since(start));
        }
        Ok(declared)
    }

    /// The words in its value, among them the names that it mentions.
    pub fn mentions(&self) -> impl Iterator<Item = &'t str> + use<'t> {
        words(self.initializer.unwrap_or_default())
    }

    /// Whether `name` is one of the registers, or the variable, that this declares.
    pub fn declares(&self, name: &str) -> bool {
        let Some(count) = self.registers else { return name == self.name };
        let number =
            name.strip_prefix(self.name).filter(|number| number.len() == 1 || !number.starts_with('0'));
        number.and_then(|number| number.parse::<usize>().ok()).is_some_and(|number| number < count)
    }
}

/// The bytes of a fundamental type such as `.u64`.
fn type_size(name: &str) -> Option<usize> {
    match name.strip_prefix('.')? {
        "b8" | "u8" | "s8" => Some(1),
        "b16" | "u16" | "s16" | "f16" | "bf16" => Some(2),
        "b32" | "u32" | "s32" | "f32" | "f16x2" | "bf16x2" => Some(4),
        "b64" | "u64" | "s64" | "f64" => Some(8),
        "b128" => Some(16),
        _ => None,
    }
}

/// The words of a text without operators and punctuation, such as the value of a variable.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '$')))
        .filter(|word| !word.is_empty())
}
