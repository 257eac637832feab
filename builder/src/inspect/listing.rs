//! Code beside the source: each instruction of an entry point with the user's line that it comes from, and
//! with the line of a library that was inlined there.

use std::collections::BTreeMap;

use ferrogrid_ptx::{Module, Statement, StatementKind};

use super::{CompiledKernel, Place, Sources};

/// The code of a kernel, line by line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// The lines, in order.
    pub lines: Vec<Line>,
}

/// A line of code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The text, trimmed.
    pub text: String,
    /// The user's line that it comes from; `None` before the first known one.
    pub source: Option<Place>,
    /// The line of a library that was inlined into the user's line, if any.
    pub inlined: Option<Place>,
}

/// Assigns source lines to each line of code. The line tables name only the innermost function, so an
/// instruction from a library belongs to the user's line before it.
pub(super) struct Attribution<'a> {
    sources: &'a Sources,
    kernel: &'a CompiledKernel,
    kernel_file: String,
    source: Option<Place>,
    inlined: Option<Place>,
}

impl<'a> Attribution<'a> {
    pub(super) fn new(kernel: &'a CompiledKernel, sources: &'a Sources) -> Self {
        let kernel_file = sources.name_of(&kernel.file);
        Attribution { sources, kernel, kernel_file, source: None, inlined: None }
    }

    /// The place of the lines that follow.
    pub(super) fn at(&mut self, place: Place) {
        // Line 0 is code without a place.
        if place.line == 0 {
            return;
        }
        if !self.sources.is_own(&place.file) {
            self.inlined = Some(place);
            return;
        }
        self.inlined = None;
        self.source = Some(self.in_kernel(place));
    }

    /// The place, or the kernel's first line for code of the attribute `#[module]`, which makes entry
    /// points.
    fn in_kernel(&self, place: Place) -> Place {
        let is_attribute = |text: String| text.trim_start().starts_with("#[") && text.contains("module");
        if place.file == self.kernel_file && self.sources.line(&place).is_some_and(is_attribute) {
            return Place { line: self.kernel.lines.0, ..place };
        }
        place
    }

    pub(super) fn line(&self, text: &str) -> Line {
        Line { text: text.to_owned(), source: self.source.clone(), inlined: self.inlined.clone() }
    }
}

impl Listing {
    /// The entry point of `kernel` in a PTX text; `None` if it is not there.
    pub(super) fn of_ptx(ptx: &str, kernel: &CompiledKernel, sources: &Sources) -> Option<Self> {
        let module = Module::parse(ptx).ok()?;
        let body = module.entry(&kernel.entry)?.body.as_ref()?;
        let files: BTreeMap<u32, &str> = module.files().map(|file| (file.number, file.path)).collect();
        let mut attribution = Attribution::new(kernel, sources);
        let mut listing = Listing::default();
        let mut end = 0;
        for statement in &body.statements {
            let start = statement.text.as_ptr() as usize - body.text.as_ptr() as usize;
            // Statements on one line, such as inline assembly, are shown on one.
            let is_new_line = body.text[end..start].contains('\n');
            end = start + statement.text.len();
            if let StatementKind::Location(place) = statement.kind {
                let file = files.get(&place.file).map_or(String::new(), |&path| path.to_owned());
                let line = if file.is_empty() { 0 } else { place.line };
                attribution.at(Place { file, line });
            } else if is_code(statement) {
                let text = statement.text.split_whitespace().collect::<Vec<_>>().join(" ");
                match listing.lines.last_mut().filter(|_| !is_new_line) {
                    Some(line) => line.text = format!("{} {text}", line.text),
                    None => listing.lines.push(attribution.line(&text)),
                }
            }
        }
        Some(listing)
    }
}

/// Whether a statement is shown: not declarations of registers, nor labels that only debuggers need.
fn is_code(statement: &Statement<'_>) -> bool {
    match &statement.kind {
        StatementKind::Declaration(declaration) => declaration.space != ".reg",
        StatementKind::Label(name) => !name.starts_with("$L__tmp") && !name.starts_with("$L__func"),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::super::kernel::tests::fill;
    use super::*;

    const SOURCE: &str =
        "#[ferrogrid::module]\nmod kernels {\n    pub fn fill() {\n        let i = index();\n";

    const PTX: &str = "\
// Mathematics: libm
.version 6.3
.visible .entry fill_f32_8_0123456789abcdef(
\t.param .f32 a
)
.reqntid 32, 1, 1
{
\t.reg .b32 \t%r<9>;
$L__func_begin0:
\t.loc\t1 1 0

\tld.param.b64 \t%rd5, [a];
\t.loc\t2 125 5
\tmov.u32 \t%r2, %tid.x;
\t.loc\t1 4 9
$L__tmp4:
\t@%p1 bra \t$L__BB0_3;
\t.loc\t1 0 9
\tshl.b64 \t%rd11, %rd2, 2;
$L__BB0_3:
\tret;
}
.visible .entry other()
{
\ttrap;
}
\t.file\t1 \"src/main.rs\"
\t.file\t2 \"/rustc/library/core/src/nvptx.rs\"
";

    #[test]
    fn every_instruction_has_the_users_line_and_the_inlined_line() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("src/main.rs");
        std::fs::create_dir(dir.path().join("src")).unwrap();
        std::fs::write(&file, SOURCE).unwrap();
        let sources = Sources::new(dir.path().to_owned(), Vec::new(), None);
        let listing = Listing::of_ptx(PTX, &fill(file), &sources).unwrap();
        let shown: Vec<String> = listing
            .lines
            .iter()
            .map(|line| {
                let number = |place: &Option<Place>| place.as_ref().map_or(0, |it| it.line);
                let instruction = line.text.split_whitespace().next().unwrap();
                format!("{} {} {instruction}", number(&line.source), number(&line.inlined))
            })
            .collect();
        // The line of `#[module]` counts as the kernel's first; line 0 changes nothing.
        let expected =
            ["3 0 ld.param.b64", "3 125 mov.u32", "4 0 @%p1", "4 0 shl.b64", "4 0 $L__BB0_3:", "4 0 ret;"];
        assert_eq!(shown, expected);
        let first = listing.lines[0].source.as_ref().unwrap();
        assert_eq!(sources.line(first).unwrap().trim(), "pub fn fill() {");
    }

    #[test]
    fn a_missing_entry_point_is_none() {
        let sources = Sources::new("/".into(), Vec::new(), None);
        let mut kernel = fill("/a.rs".into());
        kernel.entry = "fill".to_owned();
        assert_eq!(Listing::of_ptx(PTX, &kernel, &sources), None);
    }
}
