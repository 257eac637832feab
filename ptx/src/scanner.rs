//! The tokens of a PTX text: words and punctuation, without whitespace and comments.

use crate::ParseError;
use crate::edit::offset;

/// A position in a text.
#[derive(Debug, Clone)]
pub(crate) struct Scanner<'t> {
    text: &'t str,
    at: usize,
    /// The end of the last token.
    end: usize,
    /// Whether the position is inside inline assembly, by LLVM's comments.
    in_asm: bool,
}

impl<'t> Scanner<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Scanner { text, at: 0, end: 0, in_asm: false }
    }

    /// The next byte that is neither whitespace nor in a comment.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        self.skip_trivia();
        self.text.as_bytes().get(self.at).copied()
    }

    /// The start of the next token.
    pub(crate) fn start(&mut self) -> usize {
        self.skip_trivia();
        self.at
    }

    pub(crate) fn in_asm(&self) -> bool {
        self.in_asm
    }

    /// The text from `start` to the end of the last token.
    pub(crate) fn since(&self, start: usize) -> &'t str {
        &self.text[start.min(self.end)..self.end]
    }

    /// The text from the beginning of `part`, which was read before, to the end of the last token.
    pub(crate) fn since_part(&self, part: &str) -> &'t str {
        self.since(offset(self.text, part))
    }

    /// Takes `byte` if it comes next.
    pub(crate) fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        if is_next {
            self.advance(1);
        }
        is_next
    }

    pub(crate) fn expect(&mut self, byte: u8) -> Result<(), ParseError> {
        if self.take(byte) { Ok(()) } else { Err(self.error(format!("expected `{}`", char::from(byte)))) }
    }

    /// The next word: a name, a number, a directive or an opcode with its modifiers; `None` if punctuation comes next.
    pub(crate) fn word(&mut self) -> Option<&'t str> {
        self.skip_trivia();
        let (bytes, start) = (self.text.as_bytes(), self.at);
        let mut at = start;
        while at < bytes.len() {
            if PART_OF_WORD[bytes[at] as usize] {
                at += 1;
            } else if at > start && bytes[at..].starts_with(b"::") {
                at += 2;
            } else {
                break;
            }
        }
        if at == start {
            return None;
        }
        self.advance(at - start);
        Some(&self.text[start..at])
    }

    pub(crate) fn expect_word(&mut self, what: &str) -> Result<&'t str, ParseError> {
        self.word().ok_or_else(|| self.error(format!("expected {what}")))
    }

    pub(crate) fn number<N: std::str::FromStr>(&mut self, what: &str) -> Result<N, ParseError> {
        let word = self.expect_word(what)?;
        word.parse().map_err(|_| self.error(format!("expected {what}, found `{word}`")))
    }

    /// The text between the quotes of a string.
    pub(crate) fn string(&mut self) -> Result<&'t str, ParseError> {
        self.expect(b'"')?;
        let rest = &self.text[self.at..];
        let length = rest.find('"').ok_or_else(|| self.error("unterminated string"))?;
        self.advance(length + 1);
        Ok(&rest[..length])
    }

    /// Skips to the first of `ends` outside of brackets and strings, which is not taken.
    pub(crate) fn skip_to(&mut self, ends: &[u8]) -> Result<(), ParseError> {
        let mut depth = 0_usize;
        while let Some(byte) = self.peek() {
            if depth == 0 && ends.contains(&byte) {
                return Ok(());
            }
            match byte {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => {
                    depth = depth.checked_sub(1).ok_or_else(|| self.error("unmatched closing bracket"))?;
                }
                _ => {}
            }
            let length = self.text[self.at..].chars().next().map_or(1, char::len_utf8);
            self.advance(length);
        }
        Err(self.error("unexpected end of the text"))
    }

    /// Skips the rest of the line.
    pub(crate) fn skip_line(&mut self) {
        let length = self.text[self.at..].find('\n').unwrap_or(self.text.len() - self.at);
        self.advance(length);
    }

    pub(crate) fn error(&self, problem: impl Into<String>) -> ParseError {
        let line = 1 + self.text.as_bytes()[..self.at].iter().filter(|byte| **byte == b'\n').count();
        ParseError { line, problem: problem.into() }
    }

    fn advance(&mut self, length: usize) {
        self.at += length;
        self.end = self.at;
    }

    fn skip_trivia(&mut self) {
        let bytes = self.text.as_bytes();
        while self.at < bytes.len() {
            match bytes[self.at] {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                b'/' if bytes[self.at..].starts_with(b"//") => self.skip_line_comment(),
                b'/' if bytes[self.at..].starts_with(b"/*") => {
                    let rest = &self.text[self.at + 2..];
                    self.at += rest.find("*/").map_or(rest.len() + 2, |length| length + 4);
                }
                _ => return,
            }
        }
    }

    fn skip_line_comment(&mut self) {
        let rest = &self.text[self.at..];
        let comment = &rest[..rest.find('\n').unwrap_or(rest.len())];
        self.at += comment.len();
        match comment[2..].trim() {
            "begin inline asm" => self.in_asm = true,
            "end inline asm" => self.in_asm = false,
            _ => {}
        }
    }
}

/// Whether a byte is a part of words.
const PART_OF_WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric() || matches!(byte as u8, b'_' | b'$' | b'%' | b'.');
        byte += 1;
    }
    table
};
