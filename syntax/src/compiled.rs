//! The file that the build step writes for the macros: the device code of a cargo target. Builder and macros
//! share this type.

use std::path::{Path, PathBuf};

use crate::module::Fingerprint;

/// The variable that names the folder in which the build step leaves a file for each target.
pub const TARGETS_VARIABLE: &str = "FERROGRID_TARGETS";

/// The file in that folder with the reason, if nothing could be compiled.
pub const NO_DEVICE_CODE: &str = "no-device-code.txt";

/// The prefix of the option that represents the text of a library.
pub const TEXT_CHOICE: &str = "text";

/// The prefix of the variables in PTX that state the layouts of a kernel; the name of its entry point follows.
pub const LAYOUT_PREFIX: &str = "__ferrogrid_layout_";

/// The device code of one cargo target, in one variant of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompiledTarget {
    /// Whether its device code was compiled with `debug_assertions`.
    pub debug_assertions: bool,
    /// For a library: the options that its device code depends on, which users of the library compare.
    pub choices: String,
    /// Its images; the kernels of a module are in one of them.
    pub images: Vec<CompiledImage>,
    /// Its annotated modules.
    pub modules: Vec<CompiledModule>,
}

/// The same kernels for each architecture.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompiledImage {
    /// A hash of the code.
    pub id: u128,
    /// The code for each architecture.
    pub codes: Vec<ArchCode>,
    /// Files with device code to link when it is loaded.
    pub links: Vec<PathBuf>,
}

/// An image for one architecture.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArchCode {
    /// `sm_75`.
    pub arch: String,
    /// The version of PTX, major and minor.
    pub version: (u32, u32),
    /// The file with the PTX.
    pub ptx: PathBuf,
    /// The file with the machine code, if there is one.
    pub cubin: Option<PathBuf>,
}

/// An annotated module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompiledModule {
    /// Its fingerprint.
    pub fingerprint: Fingerprint,
    /// The number of its image.
    pub image: usize,
    /// Whether the images of the target are embedded beside this module.
    pub holds_images: bool,
    /// The path of the module beside which the images are embedded, `crate::a::b`.
    pub holder: String,
    /// The other packages' libraries that it uses.
    pub libraries: Vec<UsedLibrary>,
    /// Its entry points.
    pub entries: Vec<CompiledEntry>,
    /// The device compiler's errors in it; if any module has some, the images are incomplete.
    pub diagnostics: Vec<Diagnostic>,
}

/// A library with device code of another package, as it was compiled for the kernels of this one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsedLibrary {
    /// A public module of it, `::a::kernels`.
    pub module: String,
    /// The options that it was compiled with.
    pub choices: String,
}

/// A compiled entry point.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompiledEntry {
    /// Its name in the PTX.
    pub name: String,
    /// Size and alignment of each parameter.
    pub params: Vec<(u64, u64)>,
    /// The device half's numbers for layouts; see the macros' `layout`.
    pub layout: Vec<u64>,
}

/// An error of the device compiler, with its place in the file of the module.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Diagnostic {
    /// Line and column, counted from 1, of the first character.
    pub start: (usize, usize),
    /// The same of the character behind the last.
    pub end: (usize, usize),
    /// The message, with its notes on lines of their own.
    pub message: String,
}

/// The file name for a target, from the facts that macros know about it: cargo's name of the crate, and
/// whether it is a library, a program (`bin`, `example`) or a test (`test`, `bench`).
pub fn file_name(kind: TargetClass, crate_name: &str, test: bool) -> String {
    let suffix = if test { ".cfg-test" } else { "" };
    format!("{}-{crate_name}{suffix}.txt", kind.name())
}

/// The kinds of cargo targets that cargo's variables tell apart while rustc runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TargetClass {
    /// The library.
    Library,
    /// A binary or an example.
    Program,
    /// An integration test or a bench.
    Test,
}

impl TargetClass {
    fn name(self) -> &'static str {
        match self {
            TargetClass::Library => "lib",
            TargetClass::Program => "bin",
            TargetClass::Test => "test",
        }
    }
}

impl CompiledTarget {
    /// The module with this content.
    pub fn module(&self, fingerprint: Fingerprint) -> Option<&CompiledModule> {
        self.modules.iter().find(|module| module.fingerprint == fingerprint)
    }

    /// The text of the file: one fact a line, its fields separated by tabs.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let mut line = |fields: &[String]| {
            text.push_str(&fields.iter().map(|field| escaped(field)).collect::<Vec<_>>().join("\t"));
            text.push('\n');
        };
        line(&["debug_assertions".to_owned(), u8::from(self.debug_assertions).to_string()]);
        line(&["choices".to_owned(), self.choices.clone()]);
        for image in &self.images {
            line(&["image".to_owned(), image.id.to_string()]);
            for code in &image.codes {
                let cubin = code.cubin.as_deref().map(path).unwrap_or_default();
                let (major, minor) = (code.version.0.to_string(), code.version.1.to_string());
                line(&["code".to_owned(), code.arch.clone(), major, minor, path(&code.ptx), cubin]);
            }
            image.links.iter().for_each(|file| line(&["link".to_owned(), path(file)]));
        }
        for module in &self.modules {
            let holds = u8::from(module.holds_images).to_string();
            let (fingerprint, image) = (module.fingerprint.to_string(), module.image.to_string());
            line(&["module".to_owned(), fingerprint, image, holds, module.holder.clone()]);
            for library in &module.libraries {
                line(&["library".to_owned(), library.module.clone(), library.choices.clone()]);
            }
            for entry in &module.entries {
                let params: Vec<String> =
                    entry.params.iter().map(|(size, align)| format!("{size}:{align}")).collect();
                let layout: Vec<String> = entry.layout.iter().map(u64::to_string).collect();
                line(&["entry".to_owned(), entry.name.clone(), params.join(" "), layout.join(" ")]);
            }
            for it in &module.diagnostics {
                let [a, b, c, d] =
                    [it.start.0, it.start.1, it.end.0, it.end.1].map(|number| number.to_string());
                line(&["error".to_owned(), a, b, c, d, it.message.clone()]);
            }
        }
        text
    }

    /// Reads what [`to_text`](Self::to_text) has written; `None` if it is something else.
    pub fn from_text(text: &str) -> Option<Self> {
        let mut target = CompiledTarget::default();
        for line in text.lines() {
            let fields: Vec<String> = line.split('\t').map(unescaped).collect();
            let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
            target.add(&fields)?;
        }
        Some(target)
    }

    fn add(&mut self, fields: &[&str]) -> Option<()> {
        match *fields {
            ["debug_assertions", on] => self.debug_assertions = on == "1",
            ["choices", choices] => self.choices = choices.to_owned(),
            ["image", id] => {
                self.images.push(CompiledImage { id: id.parse().ok()?, ..CompiledImage::default() });
            }
            ["link", file] => self.images.last_mut()?.links.push(PathBuf::from(file)),
            ["code", arch, major, minor, ptx, cubin] => self.images.last_mut()?.codes.push(ArchCode {
                arch: arch.to_owned(),
                version: (major.parse().ok()?, minor.parse().ok()?),
                ptx: PathBuf::from(ptx),
                cubin: (!cubin.is_empty()).then(|| PathBuf::from(cubin)),
            }),
            ["module", fingerprint, image, holds, holder] => self.modules.push(CompiledModule {
                fingerprint: Fingerprint(u128::from_str_radix(fingerprint, 16).ok()?),
                image: image.parse().ok()?,
                holds_images: holds == "1",
                holder: holder.to_owned(),
                ..CompiledModule::default()
            }),
            ["library", module, choices] => self
                .modules
                .last_mut()?
                .libraries
                .push(UsedLibrary { module: module.to_owned(), choices: choices.to_owned() }),
            ["entry", name, params, layout] => self.modules.last_mut()?.entries.push(CompiledEntry {
                name: name.to_owned(),
                params: params.split_whitespace().map(pair).collect::<Option<_>>()?,
                layout: layout.split_whitespace().map(|word| word.parse().ok()).collect::<Option<_>>()?,
            }),
            ["error", l1, c1, l2, c2, message] => self.modules.last_mut()?.diagnostics.push(Diagnostic {
                start: (l1.parse().ok()?, c1.parse().ok()?),
                end: (l2.parse().ok()?, c2.parse().ok()?),
                message: message.to_owned(),
            }),
            _ => return None,
        }
        Some(())
    }
}

fn pair(text: &str) -> Option<(u64, u64)> {
    let (size, align) = text.split_once(':')?;
    Some((size.parse().ok()?, align.parse().ok()?))
}

fn path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn escaped(field: &str) -> String {
    field.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r")
}

fn unescaped(field: &str) -> String {
    let mut text = String::with_capacity(field.len());
    let mut chars = field.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        match chars.next() {
            Some('t') => text.push('\t'),
            Some('n') => text.push('\n'),
            Some('r') => text.push('\r'),
            Some(other) => text.push(other),
            None => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_read_as_it_was_written() {
        let code = |arch: &str, cubin: Option<&str>| ArchCode {
            arch: arch.to_owned(),
            version: (7, 8),
            ptx: PathBuf::from("/a b/x\\y.ptx"),
            cubin: cubin.map(PathBuf::from),
        };
        let target = CompiledTarget {
            debug_assertions: true,
            choices: "feature=\"x\"\nfast".to_owned(),
            images: vec![
                CompiledImage {
                    id: u128::MAX,
                    codes: vec![code("sm_75", None), code("sm_90", Some("/c"))],
                    links: vec!["/a b.ptx".into()],
                },
                CompiledImage { id: 7, ..CompiledImage::default() },
            ],
            modules: vec![CompiledModule {
                fingerprint: Fingerprint(0xabc),
                image: 1,
                holds_images: true,
                holder: "crate::a".to_owned(),
                libraries: vec![UsedLibrary { module: "::b::k".to_owned(), choices: String::new() }],
                entries: vec![
                    CompiledEntry {
                        name: "f_0".to_owned(),
                        params: vec![(8, 8), (4, 4)],
                        layout: vec![1, 2],
                    },
                    CompiledEntry { name: "empty".to_owned(), ..CompiledEntry::default() },
                ],
                diagnostics: vec![Diagnostic {
                    start: (1, 2),
                    end: (3, 4),
                    message: "mismatched\n\ttypes \\n \u{e9}\r".to_owned(),
                }],
            }],
        };
        assert_eq!(target.module(Fingerprint(0xabc)).map(|module| module.image), Some(1));
        assert_eq!(target.module(Fingerprint(0xabd)), None);
        assert_eq!(CompiledTarget::from_text(&target.to_text()), Some(target));
    }

    #[test]
    fn other_text_is_refused() {
        for text in ["image\tx", "code\tsm_75\t7\t0\t/p\t", "entry\ta\t\t", "module\tzz\t0\t0\t", "nonsense"]
        {
            assert_eq!(CompiledTarget::from_text(text), None, "{text}");
        }
        assert_eq!(CompiledTarget::from_text(""), Some(CompiledTarget::default()));
    }

    #[test]
    fn targets_that_the_macros_can_tell_apart_have_different_files() {
        let classes = [TargetClass::Library, TargetClass::Program, TargetClass::Test];
        let names = classes.map(|class| [false, true].map(|test| file_name(class, "app", test)));
        let mut all: Vec<String> = names.into_iter().flatten().collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 6);
    }
}
