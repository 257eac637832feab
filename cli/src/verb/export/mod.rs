//! `cargo ferrogrid export`: a Python package with the kernels of a cargo target.
//!
//! | file | holds |
//! |---|---|
//! | `text.rs` | the text of a module: a function for each kernel |
//! | `names.rs` | names in Python |
//! | `folder.rs` | the files of the package |
//! | `python/` | the runtime that every package has a copy of |

mod folder;
mod names;
mod text;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use ferrogrid_build::cuda_toolkit::CudaTool;
use ferrogrid_build::inspect::{Assembler, CompiledKernel, ImageFile, Record};

use crate::Failure;
use crate::cargo::{self, Package};
use crate::output;
use crate::selection::Selection;
use crate::target::{Features, Target, nearest_target, option};
use crate::verb::setup;
use folder::Content;
use text::{Exported, Images};

/// The arguments of `export`.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    target: Target,
    /// The folder to write [default: target/ferrogrid/python/NAME].
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// The name of the Python package [default: that of the package, for an example or the like that of the target].
    #[arg(long)]
    name: Option<String>,
    /// Add machine code (cubin) for each architecture, which devices of exactly that one load without compiling; needs ptxas.
    #[arg(long)]
    cubin: bool,
    /// Build with the profile `dev`: kernels with debug assertions and checks for overflow.
    #[arg(long)]
    dev: bool,
    #[command(flatten)]
    features: Features,
    #[command(flatten)]
    selection: Selection,
}

impl Options {
    /// cargo's options for the build.
    fn build_arguments(&self) -> Vec<String> {
        let mut arguments = self.features.arguments();
        arguments.extend((!self.dev).then(|| "--release".to_owned()));
        arguments
    }
}

/// A module of kernels in Python.
struct Module {
    name: String,
    kernels: Vec<Exported>,
}

/// Builds the package, writes the Python package, and lists its functions.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Failure> {
    let package = options.target.package(&options.selection)?;
    setup::ensure()?;
    let record = Record::load(&cargo::out_dir(&package, &options.build_arguments())?)?;
    let kernels = kernels(options, &package, &record)?;
    let name = names::identifier(&options.name.clone().unwrap_or_else(|| usual_name(&package, kernels[0])));
    let modules = modules(&kernels)?;
    let mut code = Code::new(options, &package)?;
    let mut files = Vec::new();
    for module in &modules {
        let images = code.images(&name, &module.kernels[0].kernel.images)?;
        let text = text::module(&module.name, package.name(), &images, &module.kernels);
        files.push((format!("{}.py", module.name), Content::Text(text)));
    }
    files.append(&mut code.files);
    let usual = package.target_folder().unwrap_or(&package.manifest).join("ferrogrid/python").join(&name);
    let folder = options.out.clone().unwrap_or(usual);
    let names: Vec<String> = modules.iter().map(|module| module.name.clone()).collect();
    let (rust_name, version) = (package.name(), package.version());
    folder::Package { name: &name, rust_name, version, modules: &names, files }.write(&folder)?;
    output::line(report(&name, &modules, &folder.display().to_string()).trim_end())?;
    Ok(ExitCode::SUCCESS)
}

/// The kernels to export: of the named target, else of the library or the only target.
fn kernels<'r>(
    options: &Options,
    package: &Package,
    record: &'r Record,
) -> Result<Vec<&'r CompiledKernel>, Failure> {
    let target = options.target.named(package);
    let target = target.as_ref().map(|(kind, name)| (*kind, name.as_str()));
    let kernels = record.select(None, target)?;
    let targets: BTreeSet<&str> = kernels.iter().map(|kernel| kernel.target.as_str()).collect();
    let only = targets.first().copied().filter(|_| targets.len() == 1);
    match only.or_else(|| nearest_target(&targets)) {
        Some(chosen) => Ok(kernels.into_iter().filter(|kernel| kernel.target == chosen).collect()),
        None => {
            let options = targets.into_iter().map(option).collect::<Vec<_>>().join(", ");
            Err(format!("several targets have kernels; choose one of: {options}").into())
        }
    }
}

/// The name of the package, unless the kernels are those of an example, a test or a bench.
fn usual_name(package: &Package, kernel: &CompiledKernel) -> String {
    match kernel.target.trim_end_matches('`').split_once(" `") {
        Some(("example" | "test" | "bench", name)) => name.to_owned(),
        _ => package.name().to_owned(),
    }
}

/// The kernels by annotated module, with their names in Python.
fn modules(kernels: &[&CompiledKernel]) -> Result<Vec<Module>, Failure> {
    let mut modules: Vec<Module> = Vec::new();
    let mut places: Vec<(&PathBuf, &str)> = Vec::new();
    for kernel in kernels {
        let place = (&kernel.file, kernel.module.as_str());
        let at = places.iter().position(|it| *it == place).unwrap_or_else(|| {
            let taken = modules.iter().map(|module| module.name.clone());
            let taken: Vec<String> = taken.chain(names::OF_PACKAGE.map(str::to_owned)).collect();
            let name = names::free(names::identifier(&kernel.module), &taken);
            modules.push(Module { name, kernels: Vec::new() });
            places.push(place);
            places.len() - 1
        });
        let signature = kernel.signature()?;
        let taken: Vec<String> = modules[at].kernels.iter().map(|it| it.function.clone()).collect();
        let function = names::free(names::function(&format!("{}{}", kernel.name, signature.suffix)), &taken);
        modules[at].kernels.push(Exported { function, kernel: (*kernel).clone(), signature });
    }
    Ok(modules)
}

/// The files with code that the package has.
struct Code {
    assembler: Option<Assembler>,
    /// The images of the modules so far.
    known: Vec<Vec<ImageFile>>,
    files: Vec<(String, Content)>,
}

impl Code {
    fn new(options: &Options, package: &Package) -> Result<Self, Failure> {
        let folder = package.target_folder().unwrap_or(&package.manifest).join("ferrogrid/inspect");
        let assembler = match CudaTool::Ptxas.find(package.target_folder()).filter(|_| options.cubin) {
            Some(program) => Some(Assembler::new(program, folder)),
            None if options.cubin => {
                let advice = CudaTool::Ptxas.advice(package.target_folder());
                return Err(format!(
                    "--cubin requires ptxas, not installed on this machine; to get it:\n  {advice}"
                )
                .into());
            }
            None => None,
        };
        Ok(Code { assembler, known: Vec::new(), files: Vec::new() })
    }

    /// The names of the files for `images`, which are added unless a module before has the same.
    fn images(&mut self, package: &str, images: &[ImageFile]) -> Result<Images, Failure> {
        let known = self.known.iter().position(|it| it == images);
        let number = known.unwrap_or(self.known.len());
        let stem = if number == 0 { package.to_owned() } else { format!("{package}_{}", number + 1) };
        let named = |kind: &str| {
            let name = |image: &ImageFile| (image.arch.to_string(), format!("{stem}.{}.{kind}", image.arch));
            images.iter().map(name).collect::<Vec<_>>()
        };
        let cubin = if self.assembler.is_some() { named("cubin") } else { Vec::new() };
        let names = Images { ptx: named("ptx"), cubin };
        if known.is_none() {
            self.known.push(images.to_vec());
            for (image, (_, name)) in images.iter().zip(&names.ptx) {
                self.files.push((name.clone(), Content::Copy(image.file.clone())));
            }
            for (image, (_, name)) in images.iter().zip(&names.cubin) {
                if let Some(assembler) = &self.assembler {
                    let assembled = assembler.assemble(&image.file, &image.arch, None)?;
                    self.files.push((name.clone(), Content::Copy(assembled.cubin)));
                }
            }
        }
        Ok(names)
    }
}

/// What was exported: the call of each function, or why there is none.
fn report(package: &str, modules: &[Module], folder: &str) -> String {
    let all = || modules.iter().flat_map(|module| module.kernels.iter().map(move |kernel| (module, kernel)));
    let count = all().filter(|(_, kernel)| kernel.signature.obstacle.is_none()).count();
    let archs: BTreeSet<String> =
        all().flat_map(|(_, kernel)| &kernel.kernel.images).map(|image| image.arch.to_string()).collect();
    let archs = archs.into_iter().collect::<Vec<_>>().join(", ");
    let mut text = format!("exported {count} of {} kernels for {archs} to {folder}\n", all().count());
    for (module, Exported { function, signature, .. }) in all() {
        let line = match &signature.obstacle {
            Some(reason) => format!("  {package}.{}.{function}: not exported: {reason}\n", module.name),
            None => {
                let names =
                    signature.arguments.iter().map(|it| names::identifier(&it.name)).collect::<Vec<_>>();
                let grid = if signature.elements.is_some() { "" } else { ", cover=.." };
                let prints = if signature.prints { "; what it prints is not shown" } else { "" };
                format!("  {package}.{}.{function}({}{grid}){prints}\n", module.name, names.join(", "))
            }
        };
        text += &line;
    }
    text += &format!("install it with: pip install {folder}\n");
    text
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn kernels_are_optimised_unless_asked_otherwise() {
        let arguments = |given: &[&str]| {
            Command::parse_from(std::iter::once(&"export").chain(given)).options.build_arguments()
        };
        assert_eq!(arguments(&[]), ["--release"]);
        assert_eq!(arguments(&["--dev", "--all-features"]), ["--all-features"]);
    }
}
