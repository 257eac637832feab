//! Kernels that are written as their operation on one element: `#[elementwise]`, `#[reduction]`, `#[scan]`, `#[comparison]` and
//! `#[matmul]`. They become functions and `#[kernel]`s of the module, so that everything that holds for kernels holds for them.
//!
//! | file | holds |
//! |---|---|
//! | `signature.rs` | the function as written: what each parameter stands for |
//! | `options.rs` | the options of the attribute: the template's own, and those of kernels that it passes on |
//! | `comparison.rs` | `#[comparison]`: the kernels of sorts, merges, searches and sets |
//! | `elementwise.rs` | `#[elementwise]`: a kernel that moves 16 bytes at a time |
//! | `matmul.rs` | `#[matmul]`: kernels that multiply matrices |
//! | `accumulation.rs` | what reductions and scans have in common: elements, identity, combination, what comes after |
//! | `reduction.rs` | `#[reduction]`: the kernels of both steps |
//! | `scan.rs` | `#[scan]`: a kernel that reads and writes each element once |

mod accumulation;
mod comparison;
mod elementwise;
mod matmul;
mod options;
mod reduction;
mod scan;
mod signature;

use syn::{Attribute, Error, Expr, ExprLit, Item, Lit, Result, Type, parse_quote};

use crate::kernel::is_kernel_attribute;
use elementwise::Elementwise;

pub use comparison::Comparison;
pub use matmul::{Matmul, Several};
pub use reduction::Reduction;
pub use signature::{Argument, Role};

/// The threads of a block: those of `ferrogrid_device::fold`.
const THREADS: usize = 256;
/// The elements of a thread in a tile: those of `ferrogrid_device::fold`.
const ITEMS: usize = 16;

/// The kernel of an `#[elementwise]` or `#[scan]` function: its launch takes no grid.
pub struct Elements {
    /// The number of the parameter whose length is that of all.
    pub first: usize,
    /// The elements of a block.
    pub tile: usize,
    /// Whether its threads wait for others.
    pub waits: bool,
}

/// The items of a module with functions and kernels in place of its templates.
#[derive(Default)]
pub(crate) struct Expanded {
    pub(crate) items: Vec<Item>,
    /// The numbers of the items that are kernels whose launch takes no grid.
    pub(crate) elements: Vec<(usize, Elements)>,
    pub(crate) reductions: Vec<Reduction>,
    pub(crate) comparisons: Vec<Comparison>,
    pub(crate) matmuls: Vec<Matmul>,
    /// Whether there were any.
    has_templates: bool,
}

/// Replaces the templates among `items`.
///
/// # Errors
/// For every function that cannot be a template, with the span of the part at fault.
pub(crate) fn expand(items: &[Item]) -> Result<Expanded> {
    let mut expanded = Expanded::default();
    let mut errors: Option<Error> = None;
    for item in items {
        if let Err(error) = expanded.add(item) {
            match &mut errors {
                Some(all) => all.combine(error),
                None => errors = Some(error),
            }
        }
    }
    if expanded.has_templates {
        // The prelude may have been imported for the attributes alone, which are gone.
        for item in &mut expanded.items {
            if let Item::Use(import) = item {
                import.attrs.push(parse_quote!(#[allow(unused_imports)]));
            }
        }
    }
    errors.map_or(Ok(expanded), Err)
}

impl Expanded {
    fn add(&mut self, item: &Item) -> Result<()> {
        let Item::Fn(function) = item else {
            self.items.push(item.clone());
            return Ok(());
        };
        let mut kinds = function.attrs.iter().filter(|it| is_template(it) || is_kernel_attribute(it));
        let Some(attribute) = kinds.next().filter(|first| is_template(first) || kinds.clone().count() > 0)
        else {
            self.items.push(item.clone());
            return Ok(());
        };
        if let Some(second) = kinds.next() {
            let message = "a function is one of `#[kernel]`, `#[elementwise]`, `#[reduction]`, `#[scan]`, `#[comparison]` and `#[matmul]`";
            return Err(Error::new_spanned(second, message));
        }
        self.has_templates = true;
        let mut function = function.clone();
        function.attrs.retain(|it| !is_template(it));
        if ends_in(attribute, "elementwise") {
            let Elementwise { items, elements } = Elementwise::parse(function, attribute)?;
            self.items.extend(items);
            self.elements.push((self.items.len() - 1, elements));
        } else if ends_in(attribute, "scan") {
            let (items, elements) = scan::parse(function, attribute)?;
            self.items.extend(items);
            self.elements.push((self.items.len() - 1, elements));
        } else if ends_in(attribute, "comparison") {
            let (items, comparison) = Comparison::parse(function, attribute)?;
            self.items.extend(items);
            self.comparisons.push(comparison);
        } else if ends_in(attribute, "matmul") {
            let (items, matmul) = Matmul::parse(function, attribute)?;
            self.items.extend(items);
            self.matmuls.push(matmul);
        } else {
            let (items, reduction) = Reduction::parse(function, attribute)?;
            self.items.extend(items);
            self.reductions.push(reduction);
        }
        Ok(())
    }
}

/// Whether `attribute` is that of a template, or a path that ends in it.
fn is_template(attribute: &Attribute) -> bool {
    ["elementwise", "reduction", "scan", "comparison", "matmul"].iter().any(|name| ends_in(attribute, name))
}

fn ends_in(attribute: &Attribute, name: &str) -> bool {
    attribute.path().segments.last().is_some_and(|segment| segment.ident == name)
}

/// The size of a type as far as its name tells; types that a parameter stands for count as `f32`.
fn size(ty: &Type) -> Option<usize> {
    match ty {
        Type::Array(array) => {
            let Expr::Lit(ExprLit { lit: Lit::Int(length), .. }) = &array.len else { return None };
            Some(size(&array.elem)? * length.base10_parse::<usize>().ok()?)
        }
        Type::Path(path) => match path.path.segments.last()?.ident.to_string().as_str() {
            "u8" | "i8" | "bool" => Some(1),
            "u16" | "i16" | "f16" | "bf16" => Some(2),
            "u32" | "i32" | "f32" | "char" => Some(4),
            "u64" | "i64" | "f64" | "usize" | "isize" => Some(8),
            name if name.len() == 1 => Some(4),
            _ => None,
        },
        _ => None,
    }
}
