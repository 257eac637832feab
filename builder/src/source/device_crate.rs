//! The device crate of a cargo target: its source files, mirrored. Everything but the annotated modules and
//! the way to them is blanked out, so lines and columns stay those of the user.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use ferrogrid_syntax::WITHOUT_ENTRIES;
use ferrogrid_syntax::compiled::TEXT_CHOICE;

use crate::cache;
use crate::cargo::metadata::Target;
use crate::error::Error;
use crate::options::{Arch, Options};
use crate::source::blank::{Kept, blank};
use crate::source::cfg::Cfgs;
use crate::source::included;
use crate::source::module_tree::{Content, FoundKernel, FoundModule, ModuleTree, SourceFile};

/// A device crate, ready for rustc.
#[derive(Debug)]
pub(crate) struct DeviceCrate {
    /// The beginning of the names of its files: `lib-foo`, `example-saxpy`, `lib-foo-test`.
    pub(crate) slug: String,
    /// For messages: "example `saxpy`".
    pub(crate) target: String,
    pub(crate) crate_name: String,
    pub(crate) edition: String,
    pub(crate) root: PathBuf,
    pub(crate) options: CrateOptions,
    pub(crate) features: BTreeSet<String>,
    /// `FROM=TO` for `--remap-path-prefix`: mirrored to original.
    pub(crate) remaps: Vec<String>,
    /// A hash of the mirrored text.
    pub(crate) text_key: String,
    /// For a whole crate: the options that its text mentions, one a line. Where they are equal, so is the
    /// code.
    pub(crate) choices: String,
    pub(crate) modules: Vec<FoundModule>,
    /// The architectures that it is compiled for; for a library none, since those of its users are.
    pub(crate) archs: Vec<Arch>,
    /// The functions of other device code that it declares, each with the files that may define it. They
    /// include those of modules whose kernels are in another part: code here may call functions of those
    /// modules.
    pub(crate) externs: BTreeMap<String, BTreeSet<PathBuf>>,
}

/// The options of rustc for a device crate, besides its text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CrateOptions {
    /// `--cfg` options.
    pub(crate) cfgs: Vec<String>,
    /// Environment variables; a later one overrides an earlier one of its name.
    pub(crate) variables: Vec<(String, String)>,
    pub(crate) overflow_checks: bool,
    pub(crate) debug_assertions: bool,
}

impl CrateOptions {
    /// These options with those that are `chosen` for a package.
    pub(crate) fn with(mut self, chosen: &Options) -> Self {
        self.cfgs.extend(chosen.cfgs.iter().cloned());
        self.variables.extend(chosen.variables.clone());
        self.overflow_checks = chosen.overflow_checks.unwrap_or(self.overflow_checks);
        self.debug_assertions = chosen.debug_assertions.unwrap_or(self.debug_assertions);
        self
    }

    /// The options that can affect a crate with this text, and a hash of the text, one a line. cargo's own
    /// variables follow from the package.
    fn choices(&self, text: &str) -> String {
        let is_mentioned = |cfg: &String| match cfg.split_once('=') {
            Some((_, value)) => text.contains(value),
            None => text.contains(cfg.as_str()),
        };
        let variables = self.variables.iter().filter(|(name, _)| {
            text.contains(name.as_str()) && !name.starts_with("CARGO_") && name != "OUT_DIR"
        });
        let variables = variables.map(|(name, value)| format!("{name}={value}"));
        let debug_assertions = self.debug_assertions.then(|| "debug_assertions".to_owned());
        let cfgs = self.cfgs.iter().filter(|cfg| is_mentioned(cfg)).cloned();
        let mut choices: BTreeSet<String> = cfgs.chain(variables).chain(debug_assertions).collect();
        choices.insert(format!("{TEXT_CHOICE} {}", cache::key(text.as_bytes())));
        choices.iter().map(|choice| format!("{choice}\n")).collect()
    }

    /// The `cfg`s of the crate, on a device with those of `device`.
    pub(crate) fn evaluate_on(&self, device: &Cfgs) -> Cfgs {
        let debug_assertions = self.debug_assertions.then_some("debug_assertions");
        device.with(self.cfgs.iter().map(String::as_str).chain(debug_assertions))
    }
}

impl DeviceCrate {
    /// The kernels of its modules: its entry points.
    pub(crate) fn kernels(&self) -> impl Iterator<Item = &FoundKernel> {
        self.modules.iter().flat_map(|module| &module.kernels)
    }

    /// The first names of paths in its modules, which may be crates.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        self.modules.iter().flat_map(|module| &module.names).cloned().collect()
    }
}

/// The part of a module tree that a device crate contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Portion<'a> {
    /// All of it.
    Whole,
    /// These modules, and what they may use of the others.
    Kernels(&'a [usize]),
}

/// Writes the mirrored files of `tree` below `folder`, except those whose text is unchanged. `None` if the
/// tree has no annotated module.
pub(crate) fn lay_out(
    target: &Target,
    slug: String,
    tree: &ModuleTree,
    portion: Portion<'_>,
    options: &CrateOptions,
    workspace_root: &Path,
    folder: &Path,
) -> Result<Option<DeviceCrate>, Error> {
    let Some(root) = tree.root else { return Ok(None) };
    check_unique(&target_name(target), &tree.modules)?;

    let mirror = folder.join("source").join(&slug);
    let mut remaps = vec![format!("{}={}", mirror.display(), "")];
    let mut places = Vec::new();
    for file in &tree.files {
        let (place, remap) = mirrored(&file.path, workspace_root, &mirror);
        remaps.extend(remap);
        places.push(place);
    }
    let unneeded = match portion {
        Portion::Whole => vec![Vec::new(); tree.modules.len()],
        Portion::Kernels(modules) => tree.unneeded(modules),
    };
    let left_out = |module: usize| unneeded[module].as_slice();
    let is_in = |module: usize| !matches!(portion, Portion::Kernels(modules) if !modules.contains(&module));
    let mut all = String::new();
    for (file, place) in tree.files.iter().zip(&places) {
        let text = mirrored_text(file, &places, &left_out, &is_in);
        cache::write(place, &text)?;
        all.push_str(&format!("{}\n{text}\n", place.display()));
    }
    // Parts are not compared.
    let choices = match portion {
        Portion::Whole => options.choices(&text_without_places(tree)),
        Portion::Kernels(_) => String::new(),
    };
    all.push_str(&included::mirror(tree, &places, &mirror)?);
    let mut externs = BTreeMap::<_, BTreeSet<_>>::new();
    for module in &tree.modules {
        for function in &module.externs {
            externs.entry(function.clone()).or_default().extend(module.links.iter().cloned());
        }
    }
    Ok(Some(DeviceCrate {
        slug,
        target: target_name(target),
        crate_name: target.name.replace('-', "_"),
        edition: target.edition.clone(),
        root: places[root].clone(),
        options: options.clone(),
        features: tree.features.clone(),
        remaps,
        choices,
        text_key: cache::key(all.as_bytes()),
        externs,
        archs: Vec::new(),
        modules: (0..tree.modules.len()).filter(|&at| is_in(at)).map(|at| tree.modules[at].clone()).collect(),
    }))
}

/// The kept text of the files, without the paths of the mirror.
fn text_without_places(tree: &ModuleTree) -> String {
    let nowhere = vec![PathBuf::new(); tree.files.len()];
    tree.files.iter().map(|file| mirrored_text(file, &nowhere, &|_| [].as_slice(), &|_| true)).collect()
}

/// `example saxpy`
fn target_name(target: &Target) -> String {
    format!("{} `{}`", target.kind.name(), target.name)
}

fn check_unique(target: &str, modules: &[FoundModule]) -> Result<(), Error> {
    for (at, module) in modules.iter().enumerate() {
        if let Some(first) = modules[..at].iter().find(|other| other.fingerprint == module.fingerprint) {
            return Err(Error::DuplicateModule {
                target: target.to_owned(),
                first: module_place(first),
                second: module_place(module),
            });
        }
    }
    Ok(())
}

fn module_place(module: &FoundModule) -> String {
    format!("{}:{} (mod {})", module.file.display(), module.line, module.name)
}

/// The path of a file in the mirror, and a remapping for messages if the file is not below the workspace's
/// root.
fn mirrored(file: &Path, workspace_root: &Path, mirror: &Path) -> (PathBuf, Option<String>) {
    if let Ok(relative) = file.strip_prefix(workspace_root) {
        return (mirror.join(relative), None);
    }
    let folder = file.parent().unwrap_or(Path::new(""));
    let outside = mirror.join(format!("outside-{}", cache::key(folder.to_string_lossy().as_bytes())));
    let remap = format!("{}={}", outside.display(), folder.display());
    (outside.join(file.file_name().unwrap_or_default()), Some(remap))
}

fn mirrored_text<'t>(
    file: &SourceFile,
    places: &[PathBuf],
    left_out: &impl Fn(usize) -> &'t [Range<usize>],
    has_entries: &impl Fn(usize) -> bool,
) -> String {
    let mut kept: Vec<Kept> = Vec::new();
    for part in &file.parts {
        let replacement = match &part.content {
            Content::Same => None,
            Content::Attribute(number) if has_entries(*number) => Some("#[::ferrogrid::module]".to_owned()),
            Content::Attribute(_) => Some(format!("#[::ferrogrid::module({WITHOUT_ENTRIES})]")),
            Content::File { declaration, file } => {
                Some(format!("#[path = {:?}] {declaration}", places[*file].to_string_lossy()))
            }
            Content::Include { file } => Some(format!("include!({:?});", places[*file].to_string_lossy())),
            Content::Module(number) => {
                kept.extend(without(part.range.clone(), left_out(*number)));
                continue;
            }
        };
        kept.push(Kept { range: part.range.clone(), replacement });
    }
    blank(&file.source.text, &kept)
}

/// The parts of `range` that are in none of `left_out`, which are in order.
fn without(range: Range<usize>, left_out: &[Range<usize>]) -> impl Iterator<Item = Kept> {
    let starts = std::iter::once(range.start).chain(left_out.iter().map(|it| it.end));
    let ends = left_out.iter().map(|it| it.start).chain(std::iter::once(range.end));
    starts.zip(ends).map(|(start, end)| Kept { range: start..end, replacement: None })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::cargo::metadata::TargetKind;
    use crate::source::module_tree::{Sources, walk};

    fn lay_out_files(folder: &Path, files: &[(&str, &str)], portion: Portion<'_>) -> DeviceCrate {
        for (path, text) in files {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let target = Target {
            kind: TargetKind::Example,
            name: "show-it".to_owned(),
            source: folder.join("w/src/lib.rs"),
            edition: "2024".to_owned(),
        };
        let tree = walk(&target.source, &Cfgs::default(), &mut Sources::default()).unwrap();
        let slug = "example-show-it".to_owned();
        let (root, out) = (folder.join("w"), folder.join("out"));
        lay_out(&target, slug, &tree, portion, &CrateOptions::default(), &root, &out).unwrap().unwrap()
    }

    const ROOT: &str =
        "fn main() {}\n    pub(crate) mod near; #[path = \"../../far.rs\"]\nmod far;\nmod none {}\n";
    const NEAR: &str = "use x;\n  #[ferrogrid::module]\n  pub mod k {\n    fn f() {}\n  }\n";

    #[test]
    fn mirrored_files_declare_each_other_and_keep_their_lines() {
        let dir = tempfile::tempdir().unwrap();
        let far = NEAR.replace("mod k", "mod l");
        let made = lay_out_files(
            dir.path(),
            &[("w/src/lib.rs", ROOT), ("w/src/near.rs", NEAR), ("far.rs", &far)],
            Portion::Whole,
        );
        let mirror = dir.path().join("out/source/example-show-it");
        assert_eq!(made.root, mirror.join("src/lib.rs"));
        let near = fs::read_to_string(mirror.join("src/near.rs")).unwrap();
        assert_eq!(near, "\n  #[::ferrogrid::module]\n  pub mod k {\n    fn f() {}\n  }");

        let root = fs::read_to_string(&made.root).unwrap();
        let lines: Vec<&str> = root.lines().collect();
        assert_eq!(
            lines[1].trim(),
            format!("#[path = {:?}] pub (crate) mod near;", mirror.join("src/near.rs"))
        );
        let far_place = lines[2].strip_prefix("#[path = \"").unwrap().strip_suffix("\"] mod far;").unwrap();
        let from = Path::new(far_place).parent().unwrap().display();
        assert!(made.remaps.contains(&format!("{from}={}", dir.path().display())), "{:?}", made.remaps);
        assert_eq!(made.remaps[0], format!("{}=", mirror.display()));
        assert_eq!((made.slug.as_str(), made.crate_name.as_str()), ("example-show-it", "show_it"));
    }

    #[test]
    fn the_key_changes_with_the_kept_text_only() {
        let dir = tempfile::tempdir().unwrap();
        let key = |near: &str| {
            let files = [("w/src/lib.rs", ROOT), ("w/src/near.rs", near), ("far.rs", "")];
            lay_out_files(dir.path(), &files, Portion::Whole).text_key
        };
        let first = key(NEAR);
        assert_eq!(key(&NEAR.replace("use x", "use yy")), first);
        assert_ne!(key(&NEAR.replace("fn f", "fn g")), first);
    }
    #[test]
    fn functions_that_other_parts_call_stay_in_the_crate() {
        let dir = tempfile::tempdir().unwrap();
        let kernel = |name: &str, body: &str| {
            format!("/// Doc.\n#[kernel]\npub fn {name}(t: Thread<1>) {{ {body} }}\n")
        };
        let one = format!(
            "#[ferrogrid::module] pub mod one {{ {}{}{} fn helper() {{ called(); }} }}\n",
            kernel("alone", "alone_body()"),
            kernel("called", "called_body()"),
            kernel("called_from_two", "third_body()"),
        );
        let two =
            format!("#[ferrogrid::module] mod two {{ {} }}\n", kernel("k", "super::one::called_from_two()"));
        // The host's function has the name of another kernel.
        let two = two.replace("#[kernel]", "#[kernel(native = host::alone)]");
        let text = format!("{one}{two}");
        let made = |portion| {
            let made = lay_out_files(dir.path(), &[("w/src/lib.rs", &text)], portion);
            (fs::read_to_string(&made.root).unwrap(), made.text_key, made.modules.len())
        };
        let (first, _, _) = made(Portion::Kernels(&[0]));
        assert!(
            first.contains("alone_body") && first.contains("mod two") && !first.contains("fn k("),
            "{first}"
        );
        let (second, key, modules) = made(Portion::Kernels(&[1]));
        assert!(!second.contains("alone_body") && !second.contains("fn alone") && modules == 1, "{second}");
        assert!(second.contains("third_body") && second.contains("fn k("), "{second}");
        assert!(!second.contains("called_body") && !second.contains("helper"), "{second}");
        let line = |text: &str, part: &str| text[..text.find(part).unwrap()].matches('\n').count();
        assert_eq!(line(&second, "fn k("), line(&text, "fn k("));

        let edited = text.replace("alone_body()", "other()");
        let made = lay_out_files(dir.path(), &[("w/src/lib.rs", &edited)], Portion::Kernels(&[1]));
        assert_eq!(made.text_key, key, "an edit of a kernel that is left out changes nothing");
    }
}
