//! The description of each kernel of a program for launches. The signature says how parameters are passed;
//! the PTX has the device compiler's sizes and layouts of their types, with which a launch compares its
//! arguments.

use std::collections::BTreeMap;

use ferrogrid_syntax::{Division, Kernel, Module, Parameter, ParameterKind};
use quote::ToTokens;

use crate::inspect::stated;
use crate::ptx::Ptx;

/// A kernel of a [`CompiledProgram`](super::CompiledProgram): one instance, if it is generic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramKernel {
    /// Its path in the text: `kernels::scale`, `kernels::scale::<f32>`.
    pub name: String,
    /// The name of its entry point in the PTX.
    pub entry: String,
    /// Its line in the text, counted from 1.
    pub line: u32,
    /// The rank of its grid.
    pub rank: usize,
    /// The shape of its blocks, if that is fixed.
    pub block: Option<[u32; 3]>,
    /// The most threads of a block, if that is bounded.
    pub max_threads: Option<u32>,
    /// The shape of its clusters, if any.
    pub cluster: Option<[u32; 3]>,
    /// Whether each launch chooses that shape.
    pub cluster_at_launch: bool,
    /// Whether a launch of it may begin before the one before it has ended.
    pub dependent_launch: bool,
    /// Whether all blocks are resident at the same time.
    pub cooperative: bool,
    /// Whether lengths have 64 bits instead of 32.
    pub wide: bool,
    /// Whether it is an `unsafe fn`.
    pub is_unsafe: bool,
    /// Bytes of shared memory of static size.
    pub shared_bytes: u64,
    /// Size and alignment of each parameter of the entry point.
    pub sizes: Vec<(usize, usize)>,
    /// The parameters as written.
    pub parameters: Vec<ProgramParameter>,
    /// Groups of parameters with the same shape: the first of each, and the others.
    pub same_shape: Vec<(usize, Vec<usize>)>,
}

impl ProgramKernel {
    /// Whether it has shared memory at all.
    pub fn uses_shared_memory(&self) -> bool {
        let is_slice = |it: &ProgramParameter| matches!(it.travels, Travels::SharedSlice { .. });
        self.shared_bytes > 0 || self.parameters.iter().any(is_slice)
    }
}

/// A parameter as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramParameter {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: String,
    /// How it is passed.
    pub travels: Travels,
}

/// The device compiler's size and layout of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Size and alignment in bytes; `None` for a value, whose size is that of the parameter.
    pub size: Option<(u64, u64)>,
    /// `DeviceCopy::LAYOUT` or `SliceElement::LAYOUT`; 0 if unknown.
    pub layout: u64,
}

/// How a parameter is passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Travels {
    /// Not at all: the thread's own place, and shared memory of static size.
    Nowhere,
    /// As an offset and a length in shared memory, of elements of this many bytes.
    SharedSlice {
        /// The size of an element in bytes.
        size: u64,
    },
    /// By value.
    Value {
        /// Its type.
        facts: Facts,
    },
    /// As an address, and as many lengths as its rank.
    Input {
        /// The element type.
        facts: Facts,
        /// 1 or 2.
        rank: usize,
    },
    /// The same for writing, with elements that belong to threads, or rows that belong to blocks.
    Output {
        /// The element type.
        facts: Facts,
        /// 1 to 3.
        rank: usize,
        /// Whether rows belong to blocks.
        rows: bool,
    },
    /// In a way that only launch functions support: tuples, tiles, pointers.
    Otherwise,
}

/// The kernels of the modules that are in the PTX.
///
/// # Errors
/// If the PTX states fewer numbers for a kernel than its signature requires.
pub(super) fn describe(
    modules: &[(String, Module)],
    ptx: &Ptx,
    layouts: &BTreeMap<String, Vec<u64>>,
) -> Result<Vec<ProgramKernel>, String> {
    let mut found = Vec::new();
    for (path, module) in modules {
        for kernel in &module.kernels {
            for instance in &kernel.instances {
                let entry = kernel.entry(instance, module.fingerprint);
                // Disabled by its `cfg`.
                let Some(compiled) = ptx.entry(&entry) else { continue };
                let numbers = layouts.get(&entry).map_or(&[][..], Vec::as_slice);
                let sizes = compiled.params.iter().map(|param| (param.size, param.align)).collect();
                let described = describe_one(kernel, numbers);
                let mut described =
                    described.ok_or_else(|| format!("it does not state the layouts of `{entry}`"))?;
                described.name = format!("{path}::{}", kernel.path(instance));
                found.push(ProgramKernel { entry, sizes, ..described });
            }
        }
    }
    Ok(found)
}

/// `None` if there are too few numbers. The macros write them in this order: the bytes of shared memory; the
/// shape of a block, if it is made of constants; those of each parameter; those of constants.
fn describe_one(kernel: &Kernel, numbers: &[u64]) -> Option<ProgramKernel> {
    let mut numbers = numbers.iter().copied();
    let shared_bytes = numbers.next()?;
    let mut bounds = kernel.bounds;
    if bounds.block_of_constants {
        let mut size = || numbers.next().and_then(|size| u32::try_from(size).ok());
        bounds.block = Some([size()?, size()?, size()?]);
    }
    let mut parameters = Vec::new();
    for parameter in &kernel.parameters {
        parameters.push(ProgramParameter {
            name: parameter.name.to_string(),
            ty: parameter.ty.to_token_stream().to_string(),
            travels: travels(parameter, &mut numbers)?,
        });
    }
    Some(ProgramKernel {
        name: String::new(),
        entry: String::new(),
        line: u32::try_from(kernel.name().span().start().line).unwrap_or(u32::MAX),
        rank: kernel.rank,
        block: bounds.block,
        max_threads: bounds.max_threads,
        cluster: bounds.cluster,
        cluster_at_launch: bounds.cluster_at_launch,
        dependent_launch: bounds.dependent_launch,
        cooperative: bounds.cooperative,
        wide: bounds.wide,
        is_unsafe: kernel.is_unsafe(),
        shared_bytes,
        sizes: Vec::new(),
        parameters,
        same_shape: kernel.shapes.groups.clone(),
    })
}

fn travels(parameter: &Parameter, numbers: &mut impl Iterator<Item = u64>) -> Option<Travels> {
    let wanted = stated(&parameter.kind);
    let numbers: Vec<u64> = numbers.take(wanted).collect();
    if numbers.len() < wanted {
        return None;
    }
    let element = || Facts { size: Some((numbers[0], numbers[1])), layout: numbers[2] };
    Some(match &parameter.kind {
        ParameterKind::Thread { .. } | ParameterKind::Shared { .. } => Travels::Nowhere,
        ParameterKind::Input { rank, is_mapped: false, .. } => {
            Travels::Input { facts: element(), rank: *rank }
        }
        ParameterKind::Output { rank, division, .. }
            if matches!(division, Division::Elements | Division::Rows) =>
        {
            Travels::Output { facts: element(), rank: *rank, rows: *division == Division::Rows }
        }
        ParameterKind::Scalar => Travels::Value { facts: Facts { size: None, layout: numbers[0] } },
        ParameterKind::SharedSlice { .. } => Travels::SharedSlice { size: numbers[0] },
        ParameterKind::Input { .. }
        | ParameterKind::Output { .. }
        | ParameterKind::Pointer { .. }
        | ParameterKind::Texture { .. }
        | ParameterKind::Surface { .. }
        | ParameterKind::Tuple { .. }
        | ParameterKind::Order { .. } => Travels::Otherwise,
    })
}
