//! An annotated module: its options, its items and its kernels.
//!
//! | file | holds |
//! |---|---|
//! | `constant.rs` | `#[constant]` and `#[device]` statics, and which functions may read them |
//! | `externs.rs` | functions of other device code: `unsafe extern "C"` blocks |
//! | `fingerprint.rs` | the hash of a module's tokens, the same from the compiler and from the file |
//! | `options.rs` | the options of the attribute |

mod constant;
mod externs;
mod fingerprint;
mod options;

use syn::spanned::Spanned;
use syn::{AttrStyle, Attribute, Error, Ident, Item, ItemMod, Result};

use crate::kernel::{Kernel, is_kernel_attribute};
use crate::template::{self, Comparison, Matmul, Reduction};
use constant::Readers;

pub use constant::{Constant, SYMBOL_PREFIX, is_placed_attribute, mention};
pub use externs::{ExternFunction, Externs};
pub use fingerprint::{Fingerprint, fingerprint};
pub use options::{ModuleOptions, WITHOUT_ENTRIES};

/// Whether `attribute` is `#[ferrogrid::module]`: a path whose last segment is `module`.
pub fn is_module_attribute(attribute: &Attribute) -> bool {
    attribute.path().segments.last().is_some_and(|segment| segment.ident == "module")
}

/// An item of an annotated module.
pub enum Part<'m> {
    /// A kernel.
    Kernel(&'m Kernel),
    /// Anything else, as written.
    Other(&'m Item),
}

/// An annotated module, read.
pub struct Module {
    /// Its name.
    pub name: Ident,
    /// Identifies its content.
    pub fingerprint: Fingerprint,
    /// Its kernels in order of appearance, whether or not their `cfg`s hold.
    pub kernels: Vec<Kernel>,
    /// Functions of other device code, whether or not their `cfg`s hold.
    pub externs: Vec<Externs>,
    /// Its constants, whether or not their `cfg`s hold.
    pub constants: Vec<Constant>,
    /// Its reductions, whether or not their `cfg`s hold.
    pub reductions: Vec<Reduction>,
    /// Its comparisons, whether or not their `cfg`s hold.
    pub comparisons: Vec<Comparison>,
    /// Its products, whether or not their `cfg`s hold.
    pub matmuls: Vec<Matmul>,
    readers: Readers,
    /// The module as written.
    pub item: ItemMod,
    /// Its items, with functions and kernels in place of templates.
    items: Vec<Item>,
}

impl Module {
    /// Reads an inline module.
    ///
    /// # Errors
    /// If the module is not inline, or a kernel in it cannot be one; all such errors at once.
    pub fn parse(mut item: ItemMod) -> Result<Self> {
        let Some((_, items)) = &item.content else {
            return Err(Error::new(
                item.span(),
                "`#[ferrogrid::module]` needs the module's content in braces: put it on an inline `mod name { ... }`",
            ));
        };
        if let Some(token) = &item.unsafety {
            return Err(Error::new(token.span(), "a module cannot be `unsafe`"));
        }
        let template::Expanded { items, elements, reductions, comparisons, matmuls, .. } =
            template::expand(items)?;
        let (mut kernels, mut constants, mut externs) = (Vec::new(), Vec::new(), Vec::new());
        let mut errors: Option<Error> = None;
        let mut elements = elements.into_iter().peekable();
        for (number, item) in items.iter().enumerate() {
            let of_kernel = elements.next_if(|(at, _)| *at == number).map(|(_, elements)| elements);
            let read = match item {
                Item::Fn(function) => Kernel::parse(function)
                    .map(|kernel| kernels.extend(kernel.map(|it| it.on_elements(of_kernel)))),
                Item::ForeignMod(block) => Externs::parse(block).map(|found| externs.extend(found)),
                other => Constant::parse(other).map(|constant| constants.extend(constant)),
            };
            if let Err(error) = read {
                match &mut errors {
                    Some(all) => all.combine(error),
                    None => errors = Some(error),
                }
            }
        }
        if let Some(errors) = errors {
            return Err(errors);
        }
        let readers = Readers::find(&items, &constants);
        readers.check(&items)?;
        let (name, fingerprint) = (item.ident.clone(), content_fingerprint(&item));
        // Inner attributes move before the module, where both halves expect them; the meaning is the same.
        item.attrs.iter_mut().for_each(|attribute| attribute.style = AttrStyle::Outer);
        Ok(Module {
            name,
            fingerprint,
            kernels,
            externs,
            constants,
            reductions,
            comparisons,
            matmuls,
            readers,
            item,
            items,
        })
    }

    /// Its items in order.
    pub fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        let mut kernels = self.kernels.iter();
        self.items.iter().map(move |item| match item {
            Item::Fn(function) if function.attrs.iter().any(is_kernel_attribute) => {
                kernels.next().map_or(Part::Other(item), Part::Kernel)
            }
            _ => Part::Other(item),
        })
    }

    /// The constants that a launch of `kernel` may read.
    pub fn constants_of(&self, kernel: &Kernel) -> impl Iterator<Item = &Constant> {
        self.constants_read_by(kernel.name())
    }

    /// The constants that the kernel or private function `name` may read, itself or by what it calls.
    pub fn constants_read_by(&self, name: &Ident) -> impl Iterator<Item = &Constant> {
        self.readers.of(name).iter().map(|&number| &self.constants[number])
    }
}

/// The fingerprint of a module's content, from its tokens as parsed.
fn content_fingerprint(item: &ItemMod) -> Fingerprint {
    use quote::ToTokens;
    let mut tokens = proc_macro2::TokenStream::new();
    for attribute in item.attrs.iter().filter(|a| matches!(a.style, AttrStyle::Inner(_))) {
        attribute.to_tokens(&mut tokens);
    }
    for item in item.content.iter().flat_map(|(_, items)| items) {
        item.to_tokens(&mut tokens);
    }
    fingerprint(&item.ident.to_string(), &tokens)
}
