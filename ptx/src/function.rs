//! Functions and entry points: their signatures, directives and statements.

use crate::scanner::Scanner;
use crate::{Declaration, Instruction, Linkage, ParseError};

/// A function or an entry point, declared or defined.
#[derive(Debug, Clone)]
pub struct Function<'t> {
    /// The text, from its linkage to the closing brace or the semicolon.
    pub text: &'t str,
    /// Its linkage.
    pub linkage: Linkage,
    /// Whether it is an entry point (`.entry`).
    pub is_entry: bool,
    /// Its return values.
    pub returned: Option<Parameters<'t>>,
    /// Its name.
    pub name: &'t str,
    /// Its parameters; `None` if there is no list.
    pub parameters: Option<Parameters<'t>>,
    /// The directives after the parameters: `.reqntid 256, 1, 1`, `.noreturn`.
    pub directives: Vec<Directive<'t>>,
    /// Its statements; `None` if it is only declared.
    pub body: Option<Body<'t>>,
}

/// A list of parameters.
#[derive(Debug, Clone)]
pub struct Parameters<'t> {
    /// The list with its parentheses.
    pub text: &'t str,
    /// The parameters, in order.
    pub items: Vec<Declaration<'t>>,
}

/// A performance or behaviour directive of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directive<'t> {
    /// The text.
    pub text: &'t str,
    /// Its name, `.reqntid`.
    pub name: &'t str,
    /// Its values: `256`, `1`, `1`.
    pub values: Vec<&'t str>,
}

/// The body of a function.
#[derive(Debug, Clone)]
pub struct Body<'t> {
    /// The text with its braces.
    pub text: &'t str,
    /// The statements, in order.
    pub statements: Vec<Statement<'t>>,
}

/// A statement of a body.
#[derive(Debug, Clone)]
pub struct Statement<'t> {
    /// The text, from the first token to the last.
    pub text: &'t str,
    /// Whether it is inside inline assembly, by LLVM's comments.
    pub in_asm: bool,
    /// Its kind.
    pub kind: StatementKind<'t>,
}

/// The kinds of statements.
#[derive(Debug, Clone)]
pub enum StatementKind<'t> {
    /// An instruction.
    Instruction(Instruction<'t>),
    /// `$L__BB0_1:`, by name.
    Label(&'t str),
    /// Registers or variables.
    Declaration(Declaration<'t>),
    /// The source location of the following instructions.
    Location(Location<'t>),
    /// `{`, which begins a scope of names.
    Open,
    /// `}`, which ends a scope.
    Close,
    /// `targets: .branchtargets $L__BB0_1, $L__BB0_2;`
    Targets {
        /// The name of the table.
        name: &'t str,
        /// The labels or functions in it.
        targets: Vec<&'t str>,
    },
    /// `prototype_0 : .callprototype (.param .b32 _) _ (.param .b64 _);`
    Prototype {
        /// Its name.
        name: &'t str,
        /// The return values of such a function.
        returned: Option<Parameters<'t>>,
        /// Its parameters.
        parameters: Option<Parameters<'t>>,
    },
    /// Any other directive, such as `.pragma`.
    Directive,
}

/// An entry of the line table: `.loc 1 20 16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location<'t> {
    /// The number of the file.
    pub file: u32,
    /// The line; 0 for code without one.
    pub line: u32,
    /// The column.
    pub column: u32,
    /// The inlined function, as a label of `.debug_str`, and the file, line and column of the call.
    pub inlined: Option<(&'t str, [u32; 3])>,
}

impl<'t> Function<'t> {
    pub(crate) fn parse(
        scanner: &mut Scanner<'t>,
        start: usize,
        linkage: Linkage,
        is_entry: bool,
    ) -> Result<Self, ParseError> {
        let returned = if is_entry { None } else { Parameters::parse(scanner)? };
        let name = scanner.expect_word("the name of a function")?;
        let parameters = Parameters::parse(scanner)?;
        let directives = directives(scanner)?;
        let body = match scanner.peek() {
            Some(b'{') => Some(Body::parse(scanner)?),
            _ => {
                scanner.expect(b';')?;
                None
            }
        };
        Ok(Function {
            text: scanner.since(start),
            linkage,
            is_entry,
            returned,
            name,
            parameters,
            directives,
            body,
        })
    }

    /// The directive of that name, `.reqntid`.
    pub fn directive(&self, name: &str) -> Option<&Directive<'t>> {
        self.directives.iter().find(|directive| directive.name == name)
    }

    /// Its parameters; none if there is no list.
    pub fn parameters(&self) -> &[Declaration<'t>] {
        self.parameters.as_ref().map_or(&[], |list| &list.items)
    }

    /// Its statements; none if it is only declared.
    pub fn statements(&self) -> &[Statement<'t>] {
        self.body.as_ref().map_or(&[], |body| &body.statements)
    }

    /// Its instructions, in order.
    pub fn instructions(&self) -> impl Iterator<Item = &Instruction<'t>> {
        self.statements().iter().filter_map(Statement::instruction)
    }

    /// Its head: the text before the body.
    pub fn head(&self) -> &'t str {
        let body = self.body.as_ref().map_or(0, |body| body.text.len());
        &self.text[..self.text.len() - body]
    }
}

impl<'t> Parameters<'t> {
    fn parse(scanner: &mut Scanner<'t>) -> Result<Option<Self>, ParseError> {
        let start = scanner.start();
        if !scanner.take(b'(') {
            return Ok(None);
        }
        let mut items = Vec::new();
        while scanner.peek() != Some(b')') {
            items.push(Declaration::parse_parameter(scanner)?);
            if !scanner.take(b',') {
                break;
            }
        }
        scanner.expect(b')')?;
        Ok(Some(Parameters { text: scanner.since(start), items }))
    }
}

fn directives<'t>(scanner: &mut Scanner<'t>) -> Result<Vec<Directive<'t>>, ParseError> {
    let mut directives = Vec::new();
    while scanner.peek() == Some(b'.') {
        let start = scanner.start();
        let name = scanner.expect_word("a directive")?;
        let mut values = Vec::new();
        while !matches!(scanner.peek(), Some(b'.' | b'{' | b';' | b',') | None) {
            let is_string = scanner.peek() == Some(b'"');
            values.push(if is_string { scanner.string()? } else { scanner.expect_word("a value")? });
            scanner.take(b',');
        }
        // The semicolon of a `.pragma` is its own.
        if name == ".pragma" {
            scanner.take(b';');
        }
        directives.push(Directive { text: scanner.since(start), name, values });
    }
    Ok(directives)
}

impl<'t> Body<'t> {
    fn parse(scanner: &mut Scanner<'t>) -> Result<Self, ParseError> {
        let start = scanner.start();
        scanner.expect(b'{')?;
        let mut statements = Vec::new();
        let mut depth = 0_usize;
        loop {
            // An empty statement between two semicolons is skipped.
            while scanner.take(b';') {}
            let begin = scanner.start();
            let in_asm = scanner.in_asm();
            let kind = match scanner.peek() {
                None => return Err(scanner.error("unexpected end of a function")),
                Some(b'{') => {
                    scanner.take(b'{');
                    depth += 1;
                    StatementKind::Open
                }
                Some(b'}') => {
                    scanner.take(b'}');
                    if depth == 0 {
                        return Ok(Body { text: scanner.since(start), statements });
                    }
                    depth -= 1;
                    StatementKind::Close
                }
                Some(b'@') => StatementKind::Instruction(Instruction::parse(scanner)?),
                Some(b'.') => directive(scanner, begin)?,
                Some(_) => named(scanner)?,
            };
            statements.push(Statement { text: scanner.since(begin), in_asm, kind });
        }
    }

    /// Each instruction with its index among the statements and the entry of the line table that holds for it.
    pub fn located(&self) -> impl Iterator<Item = (usize, &Instruction<'t>, Option<Location<'t>>)> {
        let mut location = None;
        self.statements.iter().enumerate().filter_map(move |(at, statement)| match &statement.kind {
            StatementKind::Location(place) => {
                location = Some(*place);
                None
            }
            StatementKind::Instruction(instruction) => Some((at, instruction, location)),
            _ => None,
        })
    }
}

impl<'t> Statement<'t> {
    /// The instruction, if it is one.
    pub fn instruction(&self) -> Option<&Instruction<'t>> {
        if let StatementKind::Instruction(instruction) = &self.kind { Some(instruction) } else { None }
    }
}

fn directive<'t>(scanner: &mut Scanner<'t>, begin: usize) -> Result<StatementKind<'t>, ParseError> {
    let mut word = scanner.expect_word("a directive")?;
    let mut linkage = Linkage::Internal;
    if word == ".extern" {
        linkage = Linkage::Extern;
        word = scanner.expect_word("a state space")?;
    }
    match word {
        ".reg" | ".local" | ".shared" | ".param" | ".global" | ".const" => {
            Declaration::parse(scanner, begin, linkage, word).map(StatementKind::Declaration)
        }
        ".loc" => location(scanner).map(StatementKind::Location),
        _ => {
            scanner.skip_to(b";")?;
            scanner.expect(b';')?;
            Ok(StatementKind::Directive)
        }
    }
}

/// `.loc 1 20 16`, optionally followed by `, function_name $L__info_string0 + 4, inlined_at 1 3 5`.
fn location<'t>(scanner: &mut Scanner<'t>) -> Result<Location<'t>, ParseError> {
    let mut place = || -> Result<[u32; 3], ParseError> {
        Ok([scanner.number("a file")?, scanner.number("a line")?, scanner.number("a column")?])
    };
    let [file, line, column] = place()?;
    let (mut name, mut at) = ("", None);
    while scanner.take(b',') {
        match scanner.expect_word("`function_name` or `inlined_at`")? {
            "function_name" => {
                name = scanner.expect_word("a label")?;
                if scanner.take(b'+') {
                    scanner.expect_word("an offset")?;
                }
            }
            "inlined_at" => {
                at =
                    Some([scanner.number("a file")?, scanner.number("a line")?, scanner.number("a column")?]);
            }
            other => return Err(scanner.error(format!("unknown attribute `{other}` of `.loc`"))),
        }
    }
    Ok(Location { file, line, column, inlined: at.map(|at| (name, at)) })
}

/// A label, a table behind a label, or an instruction.
fn named<'t>(scanner: &mut Scanner<'t>) -> Result<StatementKind<'t>, ParseError> {
    let name = scanner.expect_word("a statement")?;
    if !scanner.take(b':') {
        return Instruction::parse_operands(scanner, None, name).map(StatementKind::Instruction);
    }
    let mut ahead = scanner.clone();
    let kind = match ahead.word() {
        Some(".branchtargets" | ".calltargets") => {
            let mut targets = Vec::new();
            while let Some(target) = ahead.word() {
                targets.push(target);
                ahead.take(b',');
            }
            StatementKind::Targets { name, targets }
        }
        Some(".callprototype") => {
            let returned = Parameters::parse(&mut ahead)?;
            ahead.expect_word("`_`")?;
            let parameters = Parameters::parse(&mut ahead)?;
            directives(&mut ahead)?;
            StatementKind::Prototype { name, returned, parameters }
        }
        _ => return Ok(StatementKind::Label(name)),
    };
    ahead.expect(b';')?;
    *scanner = ahead;
    Ok(kind)
}
