//! Runs rustc on a device crate: to PTX, or to an rlib that other device crates link. Unchanged
//! input runs nothing. It must not know where the crate or its dependencies came from.

pub(crate) mod cubin;
mod diagnostics;
pub(crate) mod inputs;
mod jobs;
mod kept;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ferrogrid_ptx::{Edits, Module, ParseError};
use ferrogrid_syntax::compiled::Diagnostic;
use ferrogrid_syntax::{Arithmetic, LaunchBounds};

use crate::cache;
use crate::cargo::dependencies::Externs;
use crate::error::Error;
use crate::options::{Arch, Math, Options};
use crate::passes::{self, Wanted};
use crate::proof::{self, Refusal};
use crate::ptx::{Ptx, layout};
use crate::source::device_crate::DeviceCrate;
use crate::source::module_tree::FoundKernel;
use crate::toolchain::core_cache::CoreEntry;
use crate::toolchain::{DEVICE_TARGET, Toolchain, process};

use inputs::Inputs;
use kept::Kept;

pub(crate) use jobs::compile_all;

/// What all device crates of a package have in common for one architecture.
#[derive(Debug)]
pub(crate) struct Compiler<'a> {
    pub(crate) toolchain: &'a Toolchain,
    pub(crate) arch: &'a Arch,
    pub(crate) core: CoreEntry,
    pub(crate) externs: Externs,
    /// What the build chose.
    pub(crate) options: &'a Options,
    /// The id of the package.
    pub(crate) package: &'a str,
    /// Where its mathematics comes from.
    pub(crate) math: Math,
    /// `OUT_DIR/ferrogrid`.
    pub(crate) folder: &'a Path,
    /// Messages show paths below this folder without it.
    pub(crate) workspace_root: &'a Path,
    /// Folders of packages outside the workspace, and what stands for them in PTX.
    pub(crate) local_folders: Vec<(PathBuf, String)>,
}

/// A compiled program.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) file: PathBuf,
    pub(crate) text: String,
    pub(crate) ptx: Ptx,
    /// What its entry points say of layouts.
    pub(crate) layouts: BTreeMap<String, Vec<u64>>,
    /// What it was made of besides the device crate.
    pub(crate) inputs: Inputs,
    /// Files with device code that it is linked with when it is loaded.
    pub(crate) links: Vec<PathBuf>,
    /// Its machine code, if that was made.
    pub(crate) cubin: Option<PathBuf>,
    /// Why it was not, though it was wanted.
    pub(crate) refusal: Option<String>,
}

/// A library for other device crates to link.
#[derive(Debug)]
pub(crate) struct Rlib {
    file: PathBuf,
    /// The folders of those that it uses itself, and its own.
    folders: BTreeSet<PathBuf>,
    key: String,
    /// What it and they were made of besides the device crates.
    inputs: Inputs,
}

/// What a device crate is linked with besides the externs of its package: the libraries that it uses, by name.
pub(crate) type Linked<'a> = BTreeMap<&'a str, &'a Rlib>;

impl Compiler<'_> {
    /// The PTX of `device_crate`, checked against its modules. What was made of the same input before, in whatever
    /// order, is not made again.
    pub(crate) fn image(&self, device_crate: &DeviceCrate, linked: &Linked<'_>) -> Result<Image, Error> {
        let file = self.folder.join(format!("{}.{}.ptx", device_crate.slug, self.arch));
        let work = self.work(&device_crate.slug);
        let mut command = self.rustc(device_crate, self.package, linked, "device");
        if self.math == Math::Libdevice {
            command.args(self.reflection());
        }
        let assembly = work.join(format!("{}.s", device_crate.crate_name));
        let read_files = work.join(format!("{}.d", device_crate.crate_name));
        command.args(["--crate-type=cdylib", "--emit=asm,link,dep-info", "-Clinker=true", "-Clto=fat"]);
        command.arg("--out-dir").arg(&work);
        let key = self.key(&command, device_crate, linked);
        let variables = process::variables(&command);
        let value = |name: &str| variables.get(name).cloned();
        let mut checked = None;
        let made = Kept::in_folder(self.folder).find_or_make(&key, &value, || {
            self.run(&mut command, device_crate, &work)?;
            let text = self.finished(&assembly, device_crate)?;
            let text = self.proven(&assembly, text, device_crate)?;
            checked = Some(self.check(&assembly, &text, device_crate)?);
            Ok((text, self.inputs(&read_files)?))
        })?;
        cache::write(&file, &made.text)?;
        let ptx = checked.map_or_else(|| self.check(&file, &made.text, device_crate), Ok)?;
        let layouts = layout::read(&made.text);
        let mut inputs = made.inputs;
        let called = ptx.unresolved.iter().filter_map(|function| device_crate.externs.get(function));
        let links = called.flatten().cloned().collect::<BTreeSet<_>>();
        inputs.files.extend(links.iter().cloned());
        linked.values().for_each(|rlib| inputs.extend(&rlib.inputs));
        let links = links.into_iter().collect();
        Ok(Image { file, text: made.text, ptx, layouts, inputs, links, cubin: None, refusal: None })
    }

    /// What rustc says that it has read, but for what the build step writes itself.
    fn inputs(&self, dep_info: &Path) -> Result<Inputs, Error> {
        let mut inputs = Inputs::from_dep_info(&cache::read(dep_info)?);
        inputs.files.retain(|file| !file.starts_with(self.folder));
        Ok(inputs)
    }

    /// What libdevice asks its compiler (`__nvvm_reflect`): LLVM answers the rest itself, or with 0.
    fn reflection(&self) -> [String; 2] {
        let arithmetic = self.options.arithmetic;
        let flag = |name, value: bool| format!("-Cllvm-args=-nvvm-reflect-add={name}={}", u8::from(value));
        [
            flag("__CUDA_FTZ", arithmetic.ftz == Some(true)),
            flag("__CUDA_PREC_SQRT", arithmetic.approx_sqrt != Some(true)),
        ]
    }

    /// The compiler's PTX with what rustc has no option for.
    fn finished(&self, assembly: &Path, device_crate: &DeviceCrate) -> Result<String, Error> {
        let mut wanted = Wanted {
            bounds: bounds(device_crate, self.options.max_registers, self.arch.has_clusters()).collect(),
            unproven: BTreeMap::new(),
            own_files: self.own_files(device_crate),
            arithmetic: self.options.arithmetic,
            arithmetic_of_kernels: arithmetic_of_kernels(device_crate).collect(),
            lines: self.options.line_info != Some(false) || self.options.debug_info == Some(true),
            folders: self.folders(),
        };
        let wrong = |error: ParseError| self.bad_ptx(assembly, error.to_string(), device_crate);
        let assembly = cache::read(assembly)?;
        let mut text = passes::run(&assembly, &wanted).map_err(wrong)?;
        // Proven is what runs; where that fails, it begins again with checks.
        let ranks = kernels(device_crate).map(|kernel| (kernel.entry.as_str(), kernel.rank)).collect();
        wanted.unproven = passes::lanes::unproven(&text, &ranks).map_err(wrong)?;
        if !wanted.unproven.is_empty() {
            text = passes::run(&assembly, &wanted).map_err(wrong)?;
        }
        Ok(format!("// Mathematics: {}\n{text}", self.math))
    }

    /// The rlib of the library of the package `id`, without entry points.
    pub(crate) fn library(
        &self,
        device_crate: &DeviceCrate,
        id: &str,
        linked: &Linked<'_>,
    ) -> Result<Rlib, Error> {
        let work = self.work(&format!("{}-library", device_crate.slug));
        let mut command = self.rustc(device_crate, id, linked, "device-library");
        command.args(["--crate-type=rlib", "--emit=link,dep-info", "-Clinker-plugin-lto"]);
        command.arg("--out-dir").arg(&work);
        let key = self.key(&command, device_crate, linked);
        let variables = process::variables(&command);
        let key_with =
            |inputs: &Inputs| format!("{key} {}", inputs.key(&|name: &str| variables.get(name).cloned()));
        let (stamp_file, name) = (work.join("stamp"), &device_crate.crate_name);
        let (read_files, file) = (work.join(format!("{name}.d")), work.join(format!("lib{name}.rlib")));
        let known = self.inputs(&read_files).ok().filter(|inputs| {
            file.is_file() && cache::read(&stamp_file).is_ok_and(|old| old == key_with(inputs))
        });
        let mut inputs = match known {
            Some(inputs) => inputs,
            None => {
                let _ = fs::remove_file(&stamp_file);
                self.run(&mut command, device_crate, &work)?;
                let inputs = self.inputs(&read_files)?;
                cache::write(&stamp_file, &key_with(&inputs))?;
                inputs
            }
        };
        let key = key_with(&inputs);
        linked.values().for_each(|rlib| inputs.extend(&rlib.inputs));
        let folders = linked.values().flat_map(|rlib| rlib.folders.iter().cloned()).chain([work]).collect();
        Ok(Rlib { file, folders, key, inputs })
    }

    fn work(&self, slug: &str) -> PathBuf {
        self.folder.join("build").join(format!("{slug}.{}", self.arch))
    }

    fn rustc(&self, device_crate: &DeviceCrate, id: &str, linked: &Linked<'_>, expand: &str) -> Command {
        let mut command = process::command(&self.toolchain.rustc);
        command.env("RUSTC_BOOTSTRAP", "1").env("FERROGRID_EXPAND", expand);
        command.envs(device_crate.options.variables.iter().cloned());
        command.env("CARGO_CRATE_NAME", &device_crate.crate_name);
        command.current_dir(self.workspace_root);
        command.arg(&device_crate.root).args(["--crate-name", &device_crate.crate_name]);
        command.args(["--edition", &device_crate.edition, "--target", DEVICE_TARGET]);
        command.arg("--sysroot").arg(&self.core.sysroot);
        command.arg(format!("-Ctarget-cpu={}", self.arch));
        command.args(["-Copt-level=3", "-Ccodegen-units=1", "-Cpanic=abort"]);
        command.args(debug_info(self.options.debug_info == Some(true)));
        command.arg("-Zmir-enable-passes=-JumpThreading");
        if self.options.debug_info == Some(true) && self.arch.number() < 80 {
            // Labels in sections, which the information has, came with that version; `sm_80` has it by itself.
            command.arg("-Ctarget-feature=+ptx70");
        }
        // LLVM unrolls a loop only if it may spend enough to count its rounds beforehand, by default four operations,
        // too few for a loop that starts at a thread's own number; and if the result is small, by default 75
        // instructions, too few for an exponential in it.
        command.arg("-Cllvm-args=-scev-cheap-expansion-budget=16");
        command.arg("-Cllvm-args=-unroll-partial-threshold=200");
        let switch = |on| if on { "on" } else { "off" };
        command.arg(format!("-Coverflow-checks={}", switch(device_crate.options.overflow_checks)));
        command.arg(format!("-Cdebug-assertions={}", switch(device_crate.options.debug_assertions)));
        // Those of the standard library cost what they cost on the host, and more.
        command.arg("-Zub-checks=no");
        command.args(["--cap-lints=allow", "--error-format=json", "-Zcrate-attr=no_std"]);
        command.arg(format!("-Cmetadata={}-{expand}", device_crate.slug));
        command.arg(format!("-Zcrate-attr=feature({})", features(device_crate)));
        for cfg in &device_crate.options.cfgs {
            command.args(["--cfg", cfg]);
        }
        for remap in &device_crate.remaps {
            command.args(["--remap-path-prefix", remap]);
        }
        let externs =
            self.externs.crates.get(id).into_iter().flatten().map(|(name, file)| (name.as_str(), file));
        for (name, file) in externs.chain(linked.iter().map(|(name, rlib)| (*name, &rlib.file))) {
            command.arg("--extern").arg(format!("{name}={}", file.display()));
        }
        let folders: BTreeSet<&PathBuf> = linked.values().flat_map(|rlib| &rlib.folders).collect();
        for folder in folders {
            command.arg(format!("-Ldependency={}", folder.display()));
        }
        command.arg(format!("-Ldependency={}", self.externs.folder.display()));
        command
    }

    /// Changes when the result of the command could, but for files that the code includes.
    fn key(&self, command: &Command, device_crate: &DeviceCrate, linked: &Linked<'_>) -> String {
        let line = process::command_line(command);
        let keys = [cache::program_key(), &self.toolchain.key, &device_crate.text_key, &self.externs.key];
        let linked: Vec<&str> = linked.values().map(|rlib| rlib.key.as_str()).collect();
        let expected: Vec<String> =
            expected(device_crate).map(|(name, (least, most))| format!("{name} {least} {most}")).collect();
        // Machine code is made of the PTX, which does not depend on whether it is.
        let options = Options { cubin: None, ..self.options.clone() };
        cache::key(
            format!("{line}\n{keys:?}\n{linked:?}\n{expected:?}\n{options:?}\n{:?}", device_crate.options)
                .as_bytes(),
        )
    }

    fn run(&self, command: &mut Command, device_crate: &DeviceCrate, work: &Path) -> Result<(), Error> {
        cache::create_dir(work)?;
        let output = process::run(command)?;
        if output.status.success() {
            return Ok(());
        }
        let found = diagnostics::read(&String::from_utf8_lossy(&output.stderr), self.workspace_root, &hint);
        Err(Error::Device {
            target: device_crate.target.clone(),
            arch: self.arch.to_string(),
            hint: hint(&found.text),
            diagnostics: found.text,
            places: found.places,
        })
    }

    fn check(&self, file: &Path, text: &str, device_crate: &DeviceCrate) -> Result<Ptx, Error> {
        let wrong = |problem: String| self.bad_ptx(file, problem, device_crate);
        let module = Module::parse(text).map_err(|error| wrong(error.to_string()))?;
        let mut ptx = Ptx::of(&module).map_err(wrong)?;
        if ptx.target != self.arch.as_str() {
            return Err(wrong(format!("its .target is {}", ptx.target)));
        }
        // What the modules declare is linked when the code is loaded.
        let (linked, missing) =
            ptx.unresolved.drain(..).partition(|name| device_crate.externs.contains_key(name));
        ptx.unresolved = missing;
        ptx.verify(expected(device_crate)).map_err(wrong)?;
        passes::constants::check(&module).map_err(wrong)?;
        ptx.unresolved = linked;
        Ok(ptx)
    }

    /// `text` without the marks of what was to be proven of it.
    fn proven(&self, file: &Path, text: String, device_crate: &DeviceCrate) -> Result<String, Error> {
        let module =
            Module::parse(&text).map_err(|error| self.bad_ptx(file, error.to_string(), device_crate))?;
        let cooperative = kernels(device_crate).filter(|kernel| kernel.bounds.cooperative);
        let folders = self.folders();
        let cooperative = cooperative.map(|kernel| kernel.entry.as_str()).collect();
        let refusals = proof::check(&module, &cooperative, &self.own_files(device_crate), &folders);
        if !refusals.is_empty() {
            return Err(self.refused(refusals, device_crate));
        }
        let mut edits = Edits::new(&text);
        proof::marks::take(&module, &mut edits);
        Ok(edits.apply())
    }

    /// The user's files, as the line table names them.
    fn own_files(&self, device_crate: &DeviceCrate) -> HashSet<String> {
        let (folders, modules) = (self.folders(), device_crate.modules.iter());
        modules.map(|module| passes::lines::remapped(&module.file.to_string_lossy(), &folders)).collect()
    }

    /// The error of a program that was compiled, but may not run as it is written.
    fn refused(&self, refusals: Vec<Refusal>, device_crate: &DeviceCrate) -> Error {
        let rendered = refusals.iter().map(|Refusal { file, place: (line, column), message }| {
            let place =
                if file.is_empty() { String::new() } else { format!("\n  --> {file}:{line}:{column}") };
            format!("error: {}{place}", message.replace("\n  ", "\n  = "))
        });
        let diagnostics = rendered.collect::<Vec<_>>().join("\n\n");
        let folders = self.folders();
        let places = refusals.into_iter().filter(|refusal| !refusal.file.is_empty()).map(|refusal| {
            let file = passes::lines::source_file(&refusal.file, &folders);
            let (start, end) = span(&file, refusal.place);
            (file, Diagnostic { start, end, message: refusal.message })
        });
        Error::Device {
            target: device_crate.target.clone(),
            arch: self.arch.to_string(),
            hint: hint(&diagnostics),
            places: places.collect(),
            diagnostics,
        }
    }

    fn bad_ptx(&self, file: &Path, problem: String, device_crate: &DeviceCrate) -> Error {
        Error::Ptx {
            target: device_crate.target.clone(),
            arch: self.arch.to_string(),
            problem,
            file: file.to_owned(),
        }
    }

    /// Folders in the line table, and what stands for them on every machine.
    fn folders(&self) -> Vec<(PathBuf, String)> {
        let library = self.toolchain.sysroot.join("lib/rustlib/src/rust/library");
        let real = library.canonicalize().ok();
        let mut folders = vec![(self.workspace_root.to_owned(), String::new())];
        folders.extend(
            [Some(library), real].into_iter().flatten().map(|folder| (folder, "/rustc/library/".to_owned())),
        );
        folders.extend(self.local_folders.iter().cloned());
        folders
    }
}

/// The characters of a place in a file, from the first to behind the last: one, or its line without the spaces around it.
fn span(file: &Path, (line, column): (usize, usize)) -> ((usize, usize), (usize, usize)) {
    if column > 0 {
        return ((line, column), (line, column + 1));
    }
    let text = cache::read(file).unwrap_or_default();
    let text = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let indent = text.chars().take_while(|it| it.is_whitespace()).count();
    ((line, indent + 1), (line, text.trim_end().chars().count() + 1))
}

/// What rustc is told of debug information: lines, or variables and types, too. Tables of address ranges LLVM writes for this
/// target in a way that ptxas does not take (a label behind its section, `.b84,255`), and debuggers do without.
fn debug_info(on: bool) -> &'static [&'static str] {
    match on {
        true => &["-Cdebuginfo=2", "-Cllvm-args=-generate-arange-section=false"],
        false => &["-Cdebuginfo=line-directives-only"],
    }
}

/// The nightly features of a device crate: those that kernels need, and the crate's own.
fn features(device_crate: &DeviceCrate) -> String {
    let mut names = vec!["abi_ptx", "stdarch_nvptx", "link_llvm_intrinsics", "asm_experimental_arch"];
    names.extend(
        device_crate
            .features
            .iter()
            .map(String::as_str)
            .filter(|name| !names.contains(name))
            .collect::<Vec<_>>(),
    );
    names.join(",")
}

fn kernels(device_crate: &DeviceCrate) -> impl Iterator<Item = &FoundKernel> {
    device_crate.modules.iter().flat_map(|module| &module.kernels)
}

/// Name and promises of each entry point. `max_registers` is for kernels that do not bound their registers
/// themselves. Architectures without clusters know no directive for them, and no dependent launches; launches in clusters are refused there.
fn bounds(
    device_crate: &DeviceCrate,
    max_registers: Option<u32>,
    clusters: bool,
) -> impl Iterator<Item = (&str, LaunchBounds)> {
    kernels(device_crate).map(move |kernel| {
        let mut bounds = kernel.bounds;
        bounds.cluster = bounds.cluster.filter(|_| clusters);
        // It came with the same architecture.
        bounds.dependent_launch &= clusters;
        if bounds.min_blocks.is_none() {
            bounds.max_registers = bounds.max_registers.or(max_registers);
        }
        (kernel.entry.as_str(), bounds)
    })
}

/// Name of each entry point, and how exact it wants to be.
fn arithmetic_of_kernels(device_crate: &DeviceCrate) -> impl Iterator<Item = (&str, Arithmetic)> {
    kernels(device_crate).map(|kernel| (kernel.entry.as_str(), kernel.arithmetic))
}

/// Name and numbers of parameters, least and most, of each entry point that the crate's modules promise.
pub(crate) fn expected(device_crate: &DeviceCrate) -> impl Iterator<Item = (&str, (usize, usize))> {
    kernels(device_crate).map(|kernel| (kernel.entry.as_str(), kernel.parameters))
}

/// Advice for errors that come from how device crates are made, and from habits of other languages: a line each.
fn hint(diagnostics: &str) -> String {
    HINTS
        .iter()
        .filter(|(signs, _)| signs.iter().any(|sign| diagnostics.contains(sign)))
        .map(|(_, advice)| format!("\n  {advice}"))
        .collect()
}

/// What a diagnostic has, and what is said of it.
const HINTS: &[(&[&str], &str)] = &[
    (
        &[
            "the `half` feature",
            "the type `f16` is unstable",
            "cannot find type `bf16`",
            "a crate named `half`",
        ],
        "half precision is a feature of `ferrogrid` in Cargo.toml, `features = [\"half\"]`; then, in the module: `use \
         ferrogrid::device::half::{f16, bf16};`",
    ),
    (
        &["not defined at compile time"],
        "kernels see the variables that cargo sets for every crate of the package; what the build script sets, let it set by \
         `ferrogrid_build::Build::new().env(\"NAME\", value).run()`, for both sides",
    ),
    (
        &["behind a `&` reference"],
        "a kernel only reads what it takes as `&[T]`: an output is a `DisjointSlice<T>`, and what threads change together a \
         `&[DeviceAtomic<T>]`",
    ),
    (
        &["E0412", "E0425", "E0432", "E0433", "cannot find macro"],
        "kernels see annotated modules and no_std crates; the rest of this crate is not there on the device: what kernels call \
         of it, move into the module",
    ),
    (
        &["`Vec`", "`String`", "`Box`", "macro `vec`", "macro `format`", "`std`"],
        "there is no std on the device, and nothing allocates: an array holds what a thread has for itself, `Shared<[T; N]>` \
         what a block has, a `DisjointSlice<T>` what the kernel gives; `core` has the rest of std",
    ),
    (
        &["macro `println`", "macro `print`"],
        "kernels print by a `println!` of their own: `use ferrogrid::device::println;` in the module",
    ),
    (
        &["::Index<'_, "],
        "`i.get()` is the index `i` of a thread as a number: `x[i.get()]` reads, `y.get_mut(i)` writes",
    ),
    (
        &["expected `Index<'_, "],
        "only threads make an `Index`: `t.index()`, `t.grid_stride(n)`; what a block has for all of its threads goes to a \
         `DisjointRows` or `DisjointTiles`, a row or tile of which is the block's",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_its_character_or_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("main.rs");
        std::fs::write(&file, "fn f() {\n    g(); \n}\n").unwrap();
        assert_eq!(span(&file, (2, 5)), ((2, 5), (2, 6)));
        assert_eq!(span(&file, (1, 1)), ((1, 1), (1, 2)));
        assert_eq!(span(&file, (2, 0)), ((2, 5), (2, 9)));
        // A line that is not there any more.
        assert_eq!(span(&file, (9, 0)), ((9, 1), (9, 1)));
    }

    #[test]
    fn what_is_missing_on_the_device_and_indices_that_are_no_numbers_have_advice() {
        assert!(hint("error[E0425]: cannot find function `f`").contains("move into the module"));
        let allocates = hint("error[E0433]: failed to resolve: use of undeclared type `Vec`");
        assert!(
            allocates.contains("annotated modules") && allocates.contains("nothing allocates"),
            "{allocates}"
        );
        let prints = hint("error: cannot find macro `println` in this scope");
        assert!(prints.contains("`use ferrogrid::device::println;`"), "{prints}");
        let indexed = "the type `[f32]` cannot be indexed by `ferrogrid::device::Index<'_, 1>`";
        assert!(hint(indexed).contains("`x[i.get()]` reads"));
        let made_up = "expected `Index<'_, 1>`, found `[u32; 1]`";
        assert!(hint(made_up).contains("`DisjointRows`"));
        let half = hint("error[E0658]: the type `f16` is unstable");
        assert!(half.contains("`features = [\"half\"]`") && !half.contains("annotated"), "{half}");
        let written = "error[E0594]: cannot assign to `x[_]`, which is behind a `&` reference";
        assert!(hint(written).contains("`DisjointSlice<T>`"));
        assert_eq!(hint("error[E0308]: mismatched types"), "");
    }
}
