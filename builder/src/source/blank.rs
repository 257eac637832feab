//! Blanks parts of a text with spaces: the rest keeps its line and column.

use std::ops::Range;

/// `text` with everything outside `kept` (sorted, disjoint byte ranges) turned to spaces. Line breaks and
/// tabs stay. Each other character becomes one space, so that columns, which compilers count in characters,
/// do not move. A part may have a replacement, after which the rest of the line moves. Spaces before a line
/// break, and all after the last part, are left out. So an edit outside of `kept` changes nothing if no line
/// moves.
pub(crate) fn blank(text: &str, kept: &[Kept]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for part in kept {
        let before = &text[at..part.range.start];
        let ends_line = part.replacement.is_none() && text[part.range.clone()].starts_with(['\n', '\r']);
        let before = if ends_line { &before[..before.rfind('\n').map_or(0, |at| at + 1)] } else { before };
        push_blank(&mut out, before);
        match &part.replacement {
            None => out.push_str(&text[part.range.clone()]),
            Some(replacement) => {
                out.push_str(replacement);
                let breaks = text[part.range.clone()].matches('\n').count();
                out.extend(std::iter::repeat_n('\n', breaks));
            }
        }
        at = part.range.end;
    }
    out
}

/// A part of the text that stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    /// Where it is.
    pub(crate) range: Range<usize>,
    /// What replaces it, on one line; its line breaks follow.
    pub(crate) replacement: Option<String>,
}

/// Pushes the line breaks of `text`, and spaces up to its last column.
fn push_blank(out: &mut String, text: &str) {
    let (lines, last) =
        text.rsplit_once('\n').map_or((0, text), |(before, last)| (before.matches('\n').count() + 1, last));
    out.extend(std::iter::repeat_n('\n', lines));
    out.extend(last.chars().map(|c| if c == '\t' { c } else { ' ' }));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(text: &str, parts: &[&str]) -> String {
        let kept: Vec<Kept> = parts
            .iter()
            .map(|part| {
                let start = text.find(part).unwrap();
                Kept { range: start..start + part.len(), replacement: None }
            })
            .collect();
        blank(text, &kept)
    }

    /// Line and column (in characters) of `part`.
    fn place(text: &str, part: &str) -> (usize, usize) {
        let before = &text[..text.find(part).unwrap()];
        let line = before.rsplit('\n').next().unwrap();
        (before.matches('\n').count(), line.chars().count())
    }

    #[test]
    fn kept_text_keeps_its_line_and_column() {
        let text = "use a;\r\n\tfn ä() { \"ü→\"; } mod k { x }\n// 🦀 mod\n  mod l { y }\n";
        let blanked = keep(text, &["mod k { x }", "mod l { y }"]);
        for part in ["mod k { x }", "mod l { y }"] {
            assert_eq!(place(&blanked, part), place(text, part));
        }
        assert_eq!(blanked, "\n\t                 mod k { x }\n\n  mod l { y }");
    }

    #[test]
    fn a_replacement_keeps_the_lines_below_in_place() {
        let text = "#[cfg(x)]\nmod a;\nmod k {}";
        let kept = [
            Kept { range: 0..16, replacement: Some("#[path = \"p\"] mod a;".to_owned()) },
            Kept { range: 17..25, replacement: None },
        ];
        let blanked = blank(text, &kept);
        assert_eq!(blanked, "#[path = \"p\"] mod a;\n\nmod k {}");
        assert_eq!(place(&blanked, "mod k"), place(text, "mod k"));
    }

    #[test]
    fn an_edit_outside_kernels_changes_nothing() {
        let before = keep("fn a() { 1 }\n  mod k { x }\nfn b() {}", &["mod k { x }"]);
        let after = keep("fn a() { 1000 }\n  mod k { x }\n\nfn b() { c() }\n", &["mod k { x }"]);
        assert_eq!(before, after);
    }

    #[test]
    fn nothing_kept_is_nothing() {
        assert_eq!(blank("ab\ncd", &[]), "");
    }
}
