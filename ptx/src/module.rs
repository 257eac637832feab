//! A PTX module: its directives, variables and functions.

use std::fmt;

use crate::edit::offset;
use crate::scanner::Scanner;
use crate::{Declaration, Function, Linkage};

/// A parsed PTX text.
#[derive(Debug, Clone)]
pub struct Module<'t> {
    /// The whole text.
    pub text: &'t str,
    /// Its items, in order.
    pub items: Vec<Item<'t>>,
}

/// A part of a module.
#[derive(Debug, Clone)]
pub enum Item<'t> {
    /// `.version 8.5`
    Version {
        /// The directive.
        text: &'t str,
        /// Major and minor.
        version: (u32, u32),
    },
    /// `.target sm_90, debug`
    Target {
        /// The directive.
        text: &'t str,
        /// The architecture first, then options.
        names: Vec<&'t str>,
    },
    /// `.file 1 "src/main.rs"`
    File(File<'t>),
    /// A variable of the module.
    Variable(Declaration<'t>),
    /// A function or an entry point, declared or defined.
    Function(Function<'t>),
    /// Any other directive: `.address_size`, `.pragma`, `.alias`, `.section`.
    Directive(&'t str),
}

/// A source file that the line table refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File<'t> {
    /// The directive.
    pub text: &'t str,
    /// Its number in [`Location`](crate::Location)s.
    pub number: u32,
    /// Its path, as the compiler wrote it.
    pub path: &'t str,
}

/// A parse error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// The line, counted from 1.
    pub line: usize,
    /// The problem.
    pub problem: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.problem)
    }
}

impl std::error::Error for ParseError {}

impl<'t> Module<'t> {
    /// Reads `text`.
    ///
    /// # Errors
    /// If the text is not valid PTX.
    pub fn parse(text: &'t str) -> Result<Self, ParseError> {
        let mut scanner = Scanner::new(text);
        let mut items = Vec::new();
        while scanner.peek().is_some() {
            items.push(item(&mut scanner)?);
        }
        Ok(Module { text, items })
    }

    /// The PTX ISA version, from `.version`.
    pub fn version(&self) -> Option<(u32, u32)> {
        self.items
            .iter()
            .find_map(|item| if let Item::Version { version, .. } = item { Some(*version) } else { None })
    }

    /// The architecture, from `.target`.
    pub fn target(&self) -> Option<&'t str> {
        self.items.iter().find_map(|item| {
            if let Item::Target { names, .. } = item { names.first().copied() } else { None }
        })
    }

    /// All functions and entry points, declared and defined, in order.
    pub fn functions(&self) -> impl Iterator<Item = &Function<'t>> {
        self.items.iter().filter_map(Item::function)
    }

    /// The entry points.
    pub fn entries(&self) -> impl Iterator<Item = &Function<'t>> {
        self.functions().filter(|function| function.is_entry)
    }

    /// The entry point of that name.
    pub fn entry(&self, name: &str) -> Option<&Function<'t>> {
        self.entries().find(|entry| entry.name == name)
    }

    /// The variables.
    pub fn variables(&self) -> impl Iterator<Item = &Declaration<'t>> {
        self.items
            .iter()
            .filter_map(|item| if let Item::Variable(variable) = item { Some(variable) } else { None })
    }

    /// The source files of the line table.
    pub fn files(&self) -> impl Iterator<Item = &File<'t>> {
        self.items.iter().filter_map(|item| if let Item::File(file) = item { Some(file) } else { None })
    }

    /// The place after `.version`, `.target` and `.address_size`, where declarations may begin: an empty slice of the text.
    pub fn after_header(&self) -> &'t str {
        let is_header = |item: &&Item<'t>| match item {
            Item::Version { .. } | Item::Target { .. } => true,
            Item::Directive(text) => text.starts_with(".address_size"),
            _ => false,
        };
        let end = self.items.iter().rfind(is_header).map_or(0, |item| {
            let end = offset(self.text, item.text()) + item.text().len();
            self.text[end..].find('\n').map_or(self.text.len(), |at| end + at + 1)
        });
        &self.text[end..end]
    }
}

impl<'t> Item<'t> {
    /// The function or entry point, if it is one.
    pub fn function(&self) -> Option<&Function<'t>> {
        if let Item::Function(function) = self { Some(function) } else { None }
    }

    /// Its text, from the first token to the last.
    pub fn text(&self) -> &'t str {
        match self {
            Item::Version { text, .. } | Item::Target { text, .. } | Item::Directive(text) => text,
            Item::File(file) => file.text,
            Item::Variable(variable) => variable.text,
            Item::Function(function) => function.text,
        }
    }
}

fn item<'t>(scanner: &mut Scanner<'t>) -> Result<Item<'t>, ParseError> {
    let start = scanner.start();
    if scanner.peek() == Some(b'@') {
        // `@@DWARF` of older compilers: debug data, one line each.
        scanner.skip_line();
        return Ok(Item::Directive(scanner.since(start)));
    }
    let mut linkage = Linkage::Internal;
    loop {
        let word = scanner.expect_word("a directive")?;
        match word {
            ".visible" => linkage = Linkage::Visible,
            ".extern" => linkage = Linkage::Extern,
            ".weak" => linkage = Linkage::Weak,
            ".common" => linkage = Linkage::Common,
            ".func" | ".entry" => {
                let is_entry = word == ".entry";
                return Function::parse(scanner, start, linkage, is_entry).map(Item::Function);
            }
            ".global" | ".const" | ".shared" | ".local" | ".tex" | ".texref" | ".samplerref" | ".surfref" => {
                let variable = Declaration::parse(scanner, start, linkage, word)?;
                return Ok(Item::Variable(variable));
            }
            ".version" => return version(scanner, start),
            ".target" => return target(scanner, start),
            ".file" => return file(scanner, start),
            ".address_size" => {
                scanner.expect_word("a number of bits")?;
                return Ok(Item::Directive(scanner.since(start)));
            }
            ".section" => {
                scanner.skip_to(b"{")?;
                scanner.expect(b'{')?;
                scanner.skip_to(b"}")?;
                scanner.expect(b'}')?;
                return Ok(Item::Directive(scanner.since(start)));
            }
            _ if word.starts_with('.') => {
                scanner.skip_to(b";")?;
                scanner.expect(b';')?;
                return Ok(Item::Directive(scanner.since(start)));
            }
            _ => return Err(scanner.error(format!("expected a directive, found `{word}`"))),
        }
    }
}

fn version<'t>(scanner: &mut Scanner<'t>, start: usize) -> Result<Item<'t>, ParseError> {
    let word = scanner.expect_word("a version")?;
    let version =
        word.split_once('.').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    let version = version.ok_or_else(|| scanner.error(format!("malformed .version {word}")))?;
    Ok(Item::Version { text: scanner.since(start), version })
}

fn target<'t>(scanner: &mut Scanner<'t>, start: usize) -> Result<Item<'t>, ParseError> {
    let mut names = vec![scanner.expect_word("an architecture")?];
    while scanner.take(b',') {
        names.push(scanner.expect_word("an option of .target")?);
    }
    Ok(Item::Target { text: scanner.since(start), names })
}

/// `.file 1 "path"`, optionally with time and size of the file.
fn file<'t>(scanner: &mut Scanner<'t>, start: usize) -> Result<Item<'t>, ParseError> {
    let number = scanner.number("the number of a file")?;
    let path = scanner.string()?;
    while scanner.take(b',') {
        scanner.expect_word("a number")?;
    }
    Ok(Item::File(File { text: scanner.since(start), number, path }))
}
