//! `cargo ferrogrid inspect`: the compiled code of a kernel, or a table of all kernels. The data come from
//! `ferrogrid_build::inspect` and from the occupancy rules of `ferrogrid_host`.
//!
//! | file | holds |
//! |---|---|
//! | `occupancy.rs` | the occupancy by architecture |
//! | `text.rs`, `json.rs` | the two forms of the output |

mod json;
mod occupancy;
mod text;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ferrogrid_build::Arch;
use ferrogrid_build::cuda_toolkit::CudaTool;
use ferrogrid_build::inspect::{
    Assembler, CompiledKernel, ImageFile, Listing, Record, Resources, Sources, disassemble,
};

use crate::Failure;
use crate::cargo::{self, Package};
use crate::output;
use crate::selection::Selection;
use crate::target::{Features, Target, of_nearest_target, option};
use crate::verb::setup;
use occupancy::{BlockNeeds, Row};

/// The arguments of `inspect`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The kernel: `saxpy`, `kernels::saxpy`, or an instance of a generic one, `fill::<f32, 8>`. Of several with that
    /// name it is the one of the library, else of the only program. Otherwise, and without a name, there is a table.
    kernel: Option<String>,
    #[command(flatten)]
    target: Target,
    /// The architecture to show code for; compiled if the build does not have it [default: the first of the build].
    #[arg(long)]
    arch: Option<Arch>,
    /// Show machine code (SASS) instead of PTX; needs ptxas and nvdisasm.
    #[arg(long)]
    sass: bool,
    /// Threads of a block for the occupancy [default: those of `#[kernel(block = ..)]`, else several].
    #[arg(long, value_name = "THREADS", value_parser = clap::value_parser!(u32).range(1..=1024))]
    block: Option<u32>,
    /// Bytes of shared memory that a launch adds for `SharedSlice` parameters, for the occupancy.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    shared: u64,
    /// Print as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    features: Features,
    #[command(flatten)]
    selection: Selection,
}

/// The results for a kernel.
struct Inspection {
    kernel: CompiledKernel,
    /// The code that is shown.
    image: ImageFile,
    /// Bytes of shared memory for its `Shared` parameters.
    shared_bytes: u64,
    /// Its resources there; `None` without ptxas.
    resources: Option<Resources>,
    /// Its occupancy by architecture; empty without ptxas.
    occupancy: Vec<Row>,
    /// Its code, if it is the only kernel.
    listing: Option<Listing>,
}

/// The record and the tools to inspect it.
struct Context {
    package: Package,
    record: Record,
    sources: Sources,
    assembler: Option<Assembler>,
    /// The folder for results.
    folder: PathBuf,
}

/// Builds the package, inspects the kernels, and prints.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Failure> {
    let package = options.target.package(&options.selection)?;
    setup::ensure()?;
    let record = Record::load(&cargo::out_dir(&package, &options.features.arguments())?)?;
    let target = options.target.named(&package);
    let target = target.as_ref().map(|(kind, name)| (*kind, name.as_str()));
    let kernels = match (&options.kernel, target) {
        (Some(name), None) => of_nearest_target(record.select(Some(name), None)?),
        (name, target) => record.select(name.as_deref(), target)?,
    };
    let kernels: Vec<CompiledKernel> = kernels.into_iter().cloned().collect();
    let folder = package.target_folder().unwrap_or(&package.manifest).join("ferrogrid/inspect");
    let ptxas = CudaTool::Ptxas.find(package.target_folder());
    let assembler = ptxas.map(|program| Assembler::new(program, folder.clone()));
    let place = Context { sources: record.sources(), package, record, assembler, folder };
    let inspections = match kernels.as_slice() {
        [kernel] => vec![place.one(kernel, options)?],
        several if options.sass => return Err(ambiguous(several).into()),
        several => place.table(several, options)?,
    };
    if options.json {
        let report = json::report(place.record.package(), &inspections, options.sass, &place.sources);
        output::line(format_args!("{report:#}"))?;
    } else {
        output::line(text::report(&inspections, &place.sources, place.package.target_folder()).trim_end())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The command that inspects only this kernel of `kernels`.
fn request<'k>(kernel: &CompiledKernel, mut kernels: impl Iterator<Item = &'k CompiledKernel>) -> String {
    let path = format!("{}::{}", kernel.module, kernel.path());
    let is_twin =
        |it: &CompiledKernel| it.target == kernel.target && it.entry != kernel.entry && it.is_called(&path);
    let name = match (kernels.any(is_twin), kernel.arguments.as_slice()) {
        (true, _) => kernel.entry.clone(),
        (false, []) => path,
        // The shell would read `<` as a redirection.
        (false, _) => format!("'{path}'"),
    };
    format!("cargo ferrogrid inspect {name} {}", option(&kernel.target))
}

/// The error if tools for machine code are missing.
fn missing(tools: [(CudaTool, bool); 2], target_folder: Option<&Path>) -> String {
    let lacking = || tools.iter().filter(|(_, lacks)| *lacks).map(|(tool, _)| *tool);
    let names: Vec<&str> = lacking().map(CudaTool::name).collect();
    let advice: String = lacking().map(|tool| format!("\n  {}", tool.advice(target_folder))).collect();
    format!(
        "machine code requires {}, not installed on this machine; to get it:{advice}",
        names.join(" and ")
    )
}

fn ambiguous(kernels: &[CompiledKernel]) -> String {
    let requests = kernels.iter().map(|it| format!("  {} --sass\n", request(it, kernels.iter())));
    format!("machine code is shown for one kernel; choose one of:\n{}", requests.collect::<String>())
}

impl Context {
    /// The results for one kernel, with its code.
    fn one(&self, kernel: &CompiledKernel, options: &Options) -> Result<Inspection, Failure> {
        let shown = self.for_arch(kernel, options.arch.as_ref())?;
        let image =
            shown.images.iter().find(|image| options.arch.as_ref().is_none_or(|it| image.arch == *it));
        let image = image.ok_or("the build has no code for any architecture")?.clone();
        let shared_bytes = shown.shared_bytes(&image)?;
        let listing = if options.sass {
            self.sass(&shown, &image)?
        } else {
            shown.ptx_listing(&image, &self.sources)?
        };
        let mut kernel = kernel.clone();
        if !kernel.images.contains(&image) {
            kernel.images.push(image.clone());
        }
        let needs = BlockNeeds::new(&kernel, shared_bytes + options.shared, options.block);
        let occupancy = match &self.assembler {
            Some(assembler) => occupancy::table(&kernel, assembler, &needs),
            None => Vec::new(),
        };
        let of_image = occupancy.iter().find(|row| row.arch == image.arch);
        let resources = of_image.and_then(|row| row.outcome.as_ref().ok()).map(|needs| needs.resources);
        Ok(Inspection { kernel, image, shared_bytes, resources, occupancy, listing: Some(listing) })
    }

    /// The kernel with code for `arch`, compiled first if the build has none.
    fn for_arch(&self, kernel: &CompiledKernel, arch: Option<&Arch>) -> Result<CompiledKernel, Failure> {
        match arch {
            Some(arch) if kernel.images.iter().all(|image| image.arch != *arch) => {
                Ok(self.record.compile_for(kernel, arch, &self.folder)?)
            }
            _ => Ok(kernel.clone()),
        }
    }

    fn sass(&self, kernel: &CompiledKernel, image: &ImageFile) -> Result<Listing, Failure> {
        let nvdisasm = CudaTool::Nvdisasm.find(self.package.target_folder());
        let (Some(assembler), Some(nvdisasm)) = (&self.assembler, &nvdisasm) else {
            let lacks =
                [(CudaTool::Ptxas, self.assembler.is_none()), (CudaTool::Nvdisasm, nvdisasm.is_none())];
            return Err(missing(lacks, self.package.target_folder()).into());
        };
        let assembled = assembler.assemble(&image.file, &image.arch, Some(&kernel.entry))?;
        Ok(disassemble(nvdisasm, &assembled.cubin, kernel, &self.sources)?)
    }

    /// The resources of several kernels.
    fn table(&self, kernels: &[CompiledKernel], options: &Options) -> Result<Vec<Inspection>, Failure> {
        let mut resources: BTreeMap<PathBuf, BTreeMap<String, Resources>> = BTreeMap::new();
        let mut inspections = Vec::new();
        for kernel in kernels {
            let kernel = self.for_arch(kernel, options.arch.as_ref())?;
            let image =
                kernel.images.iter().find(|image| options.arch.as_ref().is_none_or(|it| image.arch == *it));
            let image = image.ok_or("the build has no code for any architecture")?.clone();
            if let Some(assembler) = &self.assembler
                && !resources.contains_key(&image.file)
            {
                let assembled = assembler.assemble(&image.file, &image.arch, None)?;
                resources.insert(image.file.clone(), assembled.resources);
            }
            let of_file = resources.get(&image.file);
            inspections.push(Inspection {
                shared_bytes: kernel.shared_bytes(&image)?,
                resources: of_file.and_then(|all| all.get(&kernel.entry)).copied(),
                occupancy: Vec::new(),
                listing: None,
                image,
                kernel,
            });
        }
        Ok(inspections)
    }
}
