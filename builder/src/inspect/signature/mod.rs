//! How a kernel is called, for callers that are not Rust: its documentation, its parameters with their element types, and
//! the limits of a launch. Read from the source of its module, and from the PTX, which states layouts.
//!
//! | file | holds |
//! |---|---|
//! | `element.rs` | numbers and elements, by the layouts that the PTX states |
//! | `parameter.rs` | how each parameter is passed |
//! | `source.rs` | the annotated module of a kernel, parsed again |

mod element;
mod parameter;
mod source;

use std::collections::BTreeMap;

use ferrogrid_abi::failure::RECORD_PARAMETER;
use ferrogrid_abi::output::OUTPUT_SYMBOL;
use ferrogrid_ptx::{Item, Module as PtxModule};
use ferrogrid_syntax::{Instance, Kernel, Module};

use super::CompiledKernel;
use crate::cache;
use crate::error::Error;
use crate::ptx::{Ptx, layout};

pub use element::{Element, Number};
pub(crate) use parameter::stated;
pub use parameter::{Argument, BlockOutput, Passing};
use source::Found;

/// How a kernel is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// Its documentation, without the slashes.
    pub docs: String,
    /// Its signature as written: `pub fn saxpy(t: Thread<1>, a: f32, ..)`.
    pub text: String,
    /// What tells the instance of a generic kernel from others: `_f32_8`; empty for a kernel that is not generic.
    pub suffix: String,
    /// The rank of its grid.
    pub rank: usize,
    /// Bytes of shared memory of static size.
    pub shared_bytes: u64,
    /// Whether all blocks are resident at the same time.
    pub is_cooperative: bool,
    /// Whether lengths have 64 bits instead of 32.
    pub is_wide: bool,
    /// For a kernel whose launch takes no grid: the argument whose elements it covers, and the elements of a block.
    pub elements: Option<(String, usize)>,
    /// Names of arguments that have the same shape, in groups.
    pub same_shape: Vec<Vec<String>>,
    /// The arguments, in the order of the signature, which is that of the entry point's parameters.
    pub arguments: Vec<Argument>,
    /// Whether its code for any architecture may panic, and so takes the address of a record.
    pub may_panic: bool,
    /// Whether its module prints.
    pub prints: bool,
    /// The constants and device statics that it may use. A host that does not set them leaves them as declared.
    pub constants: Vec<String>,
    /// Why a caller outside Rust cannot launch it; then `arguments` are incomplete.
    pub obstacle: Option<String>,
}

impl CompiledKernel {
    /// How it is called.
    ///
    /// # Errors
    /// If its source or its PTX cannot be read, or the source was edited after the build.
    pub fn signature(&self) -> Result<Signature, Error> {
        let text = cache::read(&self.file)?;
        let edited = || Error::Edited { file: self.file.clone(), kernel: self.path() };
        let found = source::find(&text, self).ok_or_else(edited)?;
        let code = Code::read(self)?;
        let Found { module, kernel, instance } = &found;
        let obstacle = obstacle(module, kernel);
        let arguments = match &obstacle {
            Some(_) => Err(String::new()),
            None => parameter::arguments(&found, &code.numbers, &code.sizes, self.block.is_some()),
        };
        let name = |number: usize| kernel.parameters[number].name.to_string();
        let groups = kernel.shapes.groups.iter();
        Ok(Signature {
            docs: source::docs(&kernel.function.attrs),
            text: source::signature(&text, kernel),
            suffix: instance.suffix(),
            rank: kernel.rank,
            shared_bytes: code.numbers.first().copied().unwrap_or(0),
            is_cooperative: kernel.bounds.cooperative,
            is_wide: kernel.bounds.wide,
            elements: kernel.elements.as_ref().map(|it| (name(it.first), it.tile)),
            same_shape: groups
                .map(|(first, others)| std::iter::once(first).chain(others).map(|&it| name(it)).collect())
                .collect(),
            may_panic: code.may_panic,
            prints: code.prints,
            constants: module.constants_of(kernel).map(|it| it.bare_name()).collect(),
            obstacle: obstacle.or_else(|| arguments.as_ref().err().cloned()),
            arguments: arguments.unwrap_or_default(),
        })
    }
}

/// What the PTX says of an entry point.
struct Code {
    /// The numbers that it states for layouts.
    numbers: Vec<u64>,
    /// The size in bytes of each parameter.
    sizes: Vec<u64>,
    may_panic: bool,
    prints: bool,
}

impl Code {
    fn read(kernel: &CompiledKernel) -> Result<Self, Error> {
        let mut code = Code { numbers: Vec::new(), sizes: Vec::new(), may_panic: false, prints: false };
        for image in &kernel.images {
            let text = cache::read(&image.file)?;
            let wrong = |problem: String| Error::ptx(&kernel.target, &image.arch, &image.file, problem);
            let module = PtxModule::parse(&text).map_err(|error| wrong(error.to_string()))?;
            let entry = module.entries().find(|entry| entry.name == kernel.entry);
            let entry = entry.ok_or_else(|| wrong(format!("it has no entry point `{}`", kernel.entry)))?;
            let params = Ptx::of(&module).map_err(wrong)?;
            let params = params.entry(&kernel.entry).map(|it| it.params.clone()).unwrap_or_default();
            let mut numbers: BTreeMap<String, Vec<u64>> = layout::read(&text);
            code.numbers = numbers.remove(&kernel.entry).unwrap_or_default();
            code.sizes = params.iter().map(|param| param.size as u64).collect();
            code.may_panic |= entry.parameters().iter().any(|it| it.name() == RECORD_PARAMETER);
            let is_output =
                |item: &Item<'_>| matches!(item, Item::Variable(it) if it.name() == OUTPUT_SYMBOL);
            code.prints |= module.items.iter().any(is_output);
        }
        Ok(code)
    }
}

/// What about the kernel as a whole a caller outside Rust cannot provide.
fn obstacle(module: &Module, kernel: &Kernel) -> Option<String> {
    let first_extern = module.externs.iter().flat_map(|it| &it.functions).next();
    if kernel.is_unsafe() {
        Some("it is an `unsafe fn`, whose requirements nothing can check".to_owned())
    } else if kernel.bounds.has_clusters() {
        Some("its blocks form clusters".to_owned())
    } else if kernel.bounds.in_order {
        Some("its `BlockOrder` needs memory that the launch provides".to_owned())
    } else {
        first_extern.map(|it| format!("its module links `{}` from other device code", it.symbol))
    }
}

/// The instance of `kernel` with this entry point.
fn instance_of<'k>(module: &Module, kernel: &'k Kernel, entry: &str) -> Option<&'k Instance> {
    kernel.instances.iter().find(|instance| kernel.entry(instance, module.fingerprint) == entry)
}

#[cfg(test)]
mod tests {
    use syn::ItemMod;

    use super::super::kernel::tests::fill;
    use super::*;

    /// Its code would be called by another signature.
    #[test]
    fn a_kernel_that_was_edited_after_the_build_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.rs");
        let text = "#[ferrogrid::module]\nmod kernels {\n    #[kernel(T = [f32], N = [8])]\n    \
            fn fill<T, const N: usize>(t: Thread<1>, y: DisjointSlice<T>) {}\n}\n";
        std::fs::write(&file, text).unwrap();
        let refused = fill(file.clone()).signature().unwrap_err();
        assert!(matches!(&refused, Error::Edited { kernel, .. } if kernel == "fill::<f32, 8>"), "{refused}");
        // The entry point has the fingerprint of the module.
        let syn::Item::Mod(item) = syn::parse_file(text).unwrap().items.remove(0) else { panic!() };
        let module = Module::parse(ItemMod { attrs: Vec::new(), ..item }).unwrap();
        let entry = module.kernels[0].entry(&module.kernels[0].instances[0], module.fingerprint);
        let signature = CompiledKernel { entry, ..fill(file) }.signature().unwrap();
        assert_eq!((signature.suffix.as_str(), signature.rank), ("_f32_8", 1));
    }
}
