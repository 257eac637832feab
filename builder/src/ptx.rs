//! Reads PTX text as far as the build needs it: version, target, entry points with the size and
//! alignment of each parameter, and functions that are declared but not there; and makes paths in
//! it readable. It must not know how the text was made.
//!
//! ```
//! let text = ".version 6.3\n.target sm_75\n.visible .entry k(\n\t.param .f32 k_param_0\n)\n{\n\tret;\n}\n";
//! let ptx = ferrogrid_build::ptx::Ptx::parse(text)?;
//! assert_eq!((ptx.version, ptx.target.as_str()), ((6, 3), "sm_75"));
//! assert_eq!(ptx.entries[0].params[0].size, 4);
//! # Ok::<(), String>(())
//! ```

use std::path::{Path, PathBuf};

use crate::feedback::RECORD;

/// What a PTX text declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ptx {
    /// The PTX ISA version, from `.version`.
    pub version: (u32, u32),
    /// The architecture, from `.target`.
    pub target: String,
    /// The entry points, in order.
    pub entries: Vec<Entry>,
    /// Functions from outside that the text calls, besides those of the device's own run time.
    pub unresolved: Vec<String>,
}

/// An entry point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Its parameters, in order, without that of the failure record.
    pub params: Vec<Param>,
}

/// Size and alignment of a parameter, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Param {
    /// Size in bytes.
    pub size: usize,
    /// Alignment in bytes.
    pub align: usize,
}

/// What the driver provides to every program.
const RUN_TIME: [&str; 4] = ["vprintf", "malloc", "free", "__assertfail"];

impl Ptx {
    /// Reads the declarations of `text`.
    ///
    /// # Errors
    /// Says which directive is missing or malformed.
    pub fn parse(text: &str) -> Result<Self, String> {
        let code = without_comments(text);
        let version = directive(&code, ".version").ok_or("it has no .version")?;
        let version = version
            .split_once('.')
            .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)))
            .ok_or_else(|| format!("malformed .version {version}"))?;
        let target = directive(&code, ".target").ok_or("it has no .target")?;
        let target = target.split(',').next().unwrap_or(target).trim().to_owned();
        Ok(Ptx { version, target, entries: entries(&code)?, unresolved: unresolved(&code) })
    }

    /// The entry point called `name`.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// Checks that each expected entry point is there with a number of parameters between the least and the most,
    /// and that nothing is called that is not there.
    ///
    /// # Errors
    /// Says what is missing or different.
    pub fn verify<'a>(
        &self,
        expected: impl IntoIterator<Item = (&'a str, (usize, usize))>,
    ) -> Result<(), String> {
        for (name, (least, most)) in expected {
            let entry = self.entry(name).ok_or_else(|| {
                let names: Vec<&str> = self.entries.iter().map(|entry| entry.name.as_str()).collect();
                format!("it has no entry point `{name}` (it has: {})", names.join(", "))
            })?;
            let found = entry.params.len();
            if !(least..=most).contains(&found) {
                let expected = if least == most { most.to_string() } else { format!("{least} to {most}") };
                return Err(format!("entry point `{name}` has {found} parameters, expected {expected}"));
            }
        }
        if self.unresolved.is_empty() {
            return Ok(());
        }
        Err(format!("it calls functions that do not exist on the device: {}", self.unresolved.join(", ")))
    }

    /// Checks that entry points of the same name have the same parameters in `other`.
    ///
    /// # Errors
    /// Names the first entry point that differs.
    pub fn agrees_with(&self, other: &Ptx) -> Result<(), String> {
        for entry in &self.entries {
            if other.entry(&entry.name).is_some_and(|it| it.params != entry.params) {
                return Err(format!(
                    "entry point `{}` has other parameters for {} than for {}",
                    entry.name, self.target, other.target
                ));
            }
        }
        Ok(())
    }
}

/// Makes the paths in `.file` directives the same on every machine: a folder in `folders` at the
/// beginning of a path is replaced by what stands beside it, and of a path in cargo's registry only
/// the part after the registry stays.
pub fn remap_files(text: &str, folders: &[(PathBuf, String)]) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        match line.trim_start().starts_with(".file").then(|| line.split('"').collect::<Vec<_>>()).as_deref() {
            Some([before, path, after, ..]) => {
                out.push_str(&format!("{before}\"{}\"{after}", remapped(path, folders)));
            }
            _ => out.push_str(line),
        }
    }
    out
}

fn remapped(path: &str, folders: &[(PathBuf, String)]) -> String {
    for (folder, name) in folders {
        if let Ok(rest) = Path::new(path).strip_prefix(folder) {
            return format!("{name}{}", rest.display());
        }
    }
    let registry = "/registry/src/";
    let after = path.find(registry).map(|at| &path[at + registry.len()..]);
    after.and_then(|rest| rest.split_once('/')).map_or(path, |(_, rest)| rest).to_owned()
}

fn without_comments(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    for line in text.lines() {
        code.push_str(line.split("//").next().unwrap_or_default());
        code.push('\n');
    }
    code
}

/// The rest of the line that begins with `name`.
fn directive<'a>(code: &'a str, name: &str) -> Option<&'a str> {
    code.lines().find_map(|line| line.trim().strip_prefix(name).map(str::trim))
}

fn entries(code: &str) -> Result<Vec<Entry>, String> {
    let mut entries = Vec::new();
    for (at, _) in code.match_indices(".entry ") {
        let rest = code[at + ".entry ".len()..].trim_start();
        let end = rest.find(|c: char| c == '(' || c == '{' || c.is_whitespace()).unwrap_or(rest.len());
        let name = rest[..end].to_owned();
        let after = rest[end..].trim_start();
        let mut params = Vec::new();
        if let Some(list) = after.strip_prefix('(') {
            let list = list.split(')').next().unwrap_or_default();
            let declarations = list.split(',').map(str::trim).filter(|it| !it.is_empty());
            for declaration in declarations.filter(|it| !it.ends_with(RECORD)) {
                let param = param(declaration);
                params.push(param.ok_or_else(|| format!("malformed parameter `{declaration}` of `{name}`"))?);
            }
        }
        entries.push(Entry { name, params });
    }
    Ok(entries)
}

/// `.param .f32 x`, `.param .u64 .ptr .global .align 4 x`, `.param .align 16 .b8 x[16]`.
fn param(declaration: &str) -> Option<Param> {
    let mut words = declaration.split_whitespace().peekable();
    if words.next()? != ".param" {
        return None;
    }
    let mut align = None;
    if words.peek() == Some(&".align") {
        words.next();
        align = Some(words.next()?.parse().ok()?);
    }
    let size = type_size(words.next()?)?;
    let name = words.last()?;
    let count = match name.split_once('[') {
        Some((_, count)) => count.strip_suffix(']')?.parse().ok()?,
        None => 1,
    };
    Some(Param { size: size * count, align: align.unwrap_or(size) })
}

/// `.align 4 .b8 x[16] = {...};`, or without a value: the variable's name, size and alignment.
pub(crate) fn variable_size(declaration: &str) -> Option<(&str, usize, usize)> {
    let mut words = declaration.trim_start().split([' ', ';']);
    let align = words.next().filter(|word| *word == ".align").and_then(|_| words.next()?.parse().ok())?;
    let size = type_size(words.next()?)?;
    let (name, count) = match words.next()?.split_once('[') {
        Some((name, count)) => (name, count.strip_suffix(']')?.parse().ok()?),
        None => (declaration.split([' ', ';']).nth(3)?, 1),
    };
    Some((name, size * count, align))
}

fn type_size(name: &str) -> Option<usize> {
    let bits: usize = name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().ok()?;
    (name.starts_with('.') && bits.is_multiple_of(8) && bits > 0).then_some(bits / 8)
}

/// Names after `.extern .func`, with or without a returned value.
fn unresolved(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (at, _) in code.match_indices(".extern .func") {
        let mut rest = code[at + ".extern .func".len()..].trim_start();
        if rest.starts_with('(') {
            rest = rest.split_once(')').map_or("", |(_, after)| after.trim_start());
        }
        let end = rest.find(|c: char| c == '(' || c == ';' || c.is_whitespace()).unwrap_or(rest.len());
        let name = &rest[..end];
        if !RUN_TIME.contains(&name) && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "//
// Generated by LLVM NVPTX Back-End
//

.version 6.3
.target sm_75, debug
.address_size 64

	// .globl	saxpy_0123456789abcdef
.extern .func  (.param .b32 func_retval0) vprintf
(
	.param .b64 vprintf_param_0
)
;
.visible .entry saxpy_0123456789abcdef(
	.param .f32 saxpy_0123456789abcdef_param_0,
	.param .u64 .ptr .align 4 saxpy_0123456789abcdef_param_1, // x
	.param .u64 saxpy_0123456789abcdef_param_2,
	.param .u64 .ptr .global .align 1 saxpy_0123456789abcdef_param_3,
	.param .align 16 .b8 saxpy_0123456789abcdef_param_4[48],
	.param .u8 saxpy_0123456789abcdef_param_5,
	.param .u64 __ferrogrid_record
)
.reqntid 256, 1, 1
{
	.reg .pred 	%p<2>;
	ret;
}
.visible .entry nothing()
{
	ret;
}
	.file	1 \"/w/out/source/src/main.rs\"
	.file	2 \"/rustc/abc/library/core/src/num.rs\"
";

    fn param(size: usize, align: usize) -> Param {
        Param { size, align }
    }

    #[test]
    fn declarations_are_read() {
        let ptx = Ptx::parse(TEXT).unwrap();
        assert_eq!(ptx.version, (6, 3));
        assert_eq!(ptx.target, "sm_75");
        assert_eq!(ptx.unresolved, Vec::<String>::new());
        let saxpy = ptx.entry("saxpy_0123456789abcdef").unwrap();
        let expected = [param(4, 4), param(8, 8), param(8, 8), param(8, 8), param(48, 16), param(1, 1)];
        assert_eq!(saxpy.params, expected);
        assert!(ptx.entry("nothing").unwrap().params.is_empty());
    }

    #[test]
    fn what_is_expected_must_be_there() {
        let ptx = Ptx::parse(TEXT).unwrap();
        ptx.verify([("nothing", (0, 1)), ("saxpy_0123456789abcdef", (6, 6))]).unwrap();
        let missing = ptx.verify([("gemm", (3, 3))]).unwrap_err();
        assert!(missing.contains("`gemm`") && missing.contains("nothing"), "{missing}");
        let count = ptx.verify([("nothing", (2, 2))]).unwrap_err();
        assert!(count.contains("`nothing` has 0 parameters, expected 2"), "{count}");
        let count = ptx.verify([("saxpy_0123456789abcdef", (3, 5))]).unwrap_err();
        assert!(count.contains("has 6 parameters, expected 3 to 5"), "{count}");
    }

    #[test]
    fn calls_of_what_is_not_there_are_found() {
        let text = format!("{TEXT}.extern .func sin\n(\n);\n.extern .func  (.param .b32 r) cosf\n(\n)\n;\n");
        let ptx = Ptx::parse(&text).unwrap();
        assert_eq!(ptx.unresolved, ["sin", "cosf"]);
        assert!(ptx.verify([]).unwrap_err().contains("sin, cosf"));
    }

    #[test]
    fn two_architectures_must_agree() {
        let one = Ptx::parse(TEXT).unwrap();
        one.agrees_with(&one).unwrap();
        let other =
            Ptx::parse(&TEXT.replace("_param_4[48]", "_param_4[64]").replace("sm_75", "sm_90")).unwrap();
        let error = one.agrees_with(&other).unwrap_err();
        assert!(error.contains("saxpy") && error.contains("sm_75") && error.contains("sm_90"), "{error}");
    }

    #[test]
    fn malformed_text_is_refused() {
        assert!(Ptx::parse("").unwrap_err().contains(".version"));
        assert!(Ptx::parse(".version x\n.target sm_75").unwrap_err().contains("malformed .version x"));
        assert!(Ptx::parse(".version 6.3").unwrap_err().contains(".target"));
        let bad = Ptx::parse(".version 6.3\n.target sm_75\n.entry k(.param .f32x y)\n{}");
        assert!(bad.unwrap_err().contains("malformed parameter"));
    }

    #[test]
    fn paths_of_files_are_made_readable() {
        let text = format!("{TEXT}\t.file\t3 \"/h/.cargo/registry/src/index-1/libm-0.2.16/src/lib.rs\"\n");
        let folders = [("/w/out/source".into(), String::new()), ("/rustc/abc".into(), "/r/".to_owned())];
        let text = remap_files(&text, &folders);
        assert!(text.contains(".file	1 \"src/main.rs\"\n"), "{text}");
        assert!(text.contains(".file	2 \"/r/library/core/src/num.rs\"\n"), "{text}");
        assert!(text.contains(".file	3 \"libm-0.2.16/src/lib.rs\"\n"), "{text}");
        assert!(text.starts_with(&TEXT[..100]));
        assert_eq!(text.lines().count(), TEXT.lines().count() + 1);
    }
}
