//! Expansion of a module: reads it, then makes the half that was asked for. It must not know the
//! grammar (that is `ferrogrid-syntax`) nor what either half looks like.

mod abort;
mod bodies;
mod constants;
mod device;
mod generic;
mod host;
mod instances;
mod shared;

use ferrogrid_syntax::{Kernel, Module, ModuleOptions};
use proc_macro2::TokenStream;
use quote::quote;
use syn::punctuated::Punctuated;
use syn::{ItemMod, Meta, Result, Token};

/// Which half of a module this compilation is for.
enum Half {
    Host,
    Device { entries: bool },
}

impl Half {
    /// As the build step says; without it, the host's.
    fn wanted() -> Self {
        match std::env::var("FERROGRID_EXPAND").as_deref() {
            Ok("device") => Half::Device { entries: true },
            Ok("device-library") => Half::Device { entries: false },
            _ => Half::Host,
        }
    }
}

/// Expands `item`, which carried `#[ferrogrid::module(options)]`.
pub(crate) fn module(options: &Punctuated<Meta, Token![,]>, item: ItemMod) -> Result<TokenStream> {
    let options = ModuleOptions::parse(options)?;
    let module = Module::parse(item)?;
    Ok(match Half::wanted() {
        Half::Host => host::module(&module, options),
        Half::Device { entries } => device::module(&module, entries),
    })
}

/// The type in which a length or an extent comes to the kernel: 32 bits wide, which makes indices of them 32
/// bits wide, unless it is `wide`.
fn extent_type(kernel: &Kernel) -> TokenStream {
    if kernel.bounds.wide { quote!(usize) } else { quote!(u32) }
}
