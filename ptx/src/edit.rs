//! Edits of a text, applied all at once: unchanged parts stay byte for byte.

/// Edits of a text by its parts. Parts are slices of the text itself, as its [`Module`](crate::Module) has them.
#[derive(Debug)]
pub struct Edits<'t> {
    text: &'t str,
    /// Begin, end and replacement; insertions have no length.
    changes: Vec<(usize, usize, String)>,
}

impl<'t> Edits<'t> {
    /// Creates an empty set of edits for `text`.
    pub fn new(text: &'t str) -> Self {
        Edits { text, changes: Vec::new() }
    }

    /// Whether there are no edits.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Replaces `part` by `new`.
    ///
    /// # Panics
    /// If `part` is not a slice of the text.
    pub fn replace(&mut self, part: &str, new: impl Into<String>) {
        let start = offset(self.text, part);
        self.changes.push((start, start + part.len(), new.into()));
    }

    /// Removes `part`.
    ///
    /// # Panics
    /// If `part` is not a slice of the text.
    pub fn remove(&mut self, part: &str) {
        self.replace(part, "");
    }

    /// Removes the lines of `part`, if nothing else is on them, else `part`.
    ///
    /// # Panics
    /// If `part` is not a slice of the text.
    pub fn remove_lines(&mut self, part: &str) {
        let lines = self.lines_of(part);
        self.remove(lines);
    }

    /// Inserts `new` before `part`.
    ///
    /// # Panics
    /// If `part` is not a slice of the text.
    pub fn insert_before(&mut self, part: &str, new: impl Into<String>) {
        let start = offset(self.text, part);
        self.changes.push((start, start, new.into()));
    }

    /// Inserts `new` after `part`.
    ///
    /// # Panics
    /// If `part` is not a slice of the text.
    pub fn insert_after(&mut self, part: &str, new: impl Into<String>) {
        let end = offset(self.text, part) + part.len();
        self.changes.push((end, end, new.into()));
    }

    /// Inserts lines after the line on which `part` ends.
    ///
    /// # Panics
    /// If `part` is not a slice of the text.
    pub fn insert_line_after(&mut self, part: &str, new: impl Into<String>) {
        let end = offset(self.text, part) + part.len();
        let end = self.text[end..].find('\n').map_or(self.text.len(), |at| end + at + 1);
        self.changes.push((end, end, new.into()));
    }

    /// Applies all edits. Insertions at one place keep the order in which they were made. An edit inside a
    /// replaced part is dropped.
    pub fn apply(mut self) -> String {
        self.changes.sort_by_key(|(start, end, _)| (*start, *end != *start));
        let added: usize = self.changes.iter().map(|(_, _, new)| new.len()).sum();
        let mut out = String::with_capacity(self.text.len() + added);
        let mut at = 0;
        for (start, end, new) in &self.changes {
            if *start < at {
                continue;
            }
            out.push_str(&self.text[at..*start]);
            out.push_str(new);
            at = *end;
        }
        out.push_str(&self.text[at..]);
        out
    }

    fn lines_of(&self, part: &str) -> &'t str {
        let start = offset(self.text, part);
        let end = start + part.len();
        let line_start = self.text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = self.text[end..].find('\n').map_or(self.text.len(), |at| end + at + 1);
        let is_alone =
            self.text[line_start..start].trim().is_empty() && self.text[end..line_end].trim().is_empty();
        if is_alone { &self.text[line_start..line_end] } else { &self.text[start..end] }
    }
}

/// The offset of `part`, a slice of `text`.
///
/// # Panics
/// If it is not a slice of it.
pub(crate) fn offset(text: &str, part: &str) -> usize {
    let offset = (part.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
    assert!(offset <= text.len() && part.len() <= text.len() - offset, "a part of another text");
    offset
}
