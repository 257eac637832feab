//! Source files, read and parsed once for all targets that they are part of.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::error::Error;

/// The files that were read so far.
#[derive(Default)]
pub(crate) struct Sources {
    files: HashMap<PathBuf, Rc<Source>>,
}

/// A source file.
pub(crate) struct Source {
    pub(crate) text: String,
    pub(super) parsed: Parsed,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Source({} bytes)", self.text.len())
    }
}

/// A file as the walk sees it.
pub(super) enum Parsed {
    /// Its syntax tree.
    File(syn::File),
    /// No module is declared in it.
    NoModules,
    /// The reason why it has no syntax tree, with its place.
    Unreadable(String),
}

impl Sources {
    /// The file at `path`.
    pub(super) fn get(&mut self, path: &Path) -> Result<Rc<Source>, Error> {
        if let Some(source) = self.files.get(path) {
            return Ok(Rc::clone(source));
        }
        let bytes = fs::read(path).map_err(Error::io("read", path))?;
        let source = Rc::new(parse(path, bytes));
        self.files.insert(path.to_owned(), Rc::clone(&source));
        Ok(source)
    }
}

fn parse(path: &Path, bytes: Vec<u8>) -> Source {
    let Ok(text) = String::from_utf8(bytes) else {
        let reason = format!("{}: it is not UTF-8", path.display());
        return Source { text: String::new(), parsed: Parsed::Unreadable(reason) };
    };
    let text = without_preamble(text);
    // Parsing is what takes time, and most files of most crates declare no module.
    if !text.contains("mod") {
        return Source { text, parsed: Parsed::NoModules };
    }
    let parsed = match syn::parse_file(&text) {
        Ok(file) => Parsed::File(file),
        Err(error) => {
            let at = error.span().start();
            Parsed::Unreadable(format!("{}:{}:{}: {error}", path.display(), at.line, at.column + 1))
        }
    };
    Source { text, parsed }
}

/// The text without a byte order mark, and with spaces in place of a `#!` line: neither is Rust, and both
/// would shift the places that the parser reports.
fn without_preamble(mut text: String) -> String {
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    if !text.starts_with("#!") || text[2..].trim_start().starts_with('[') {
        return text;
    }
    let end = text.find('\n').unwrap_or(text.len());
    let blank = " ".repeat(end);
    text.replace_range(..end, &blank);
    text
}
