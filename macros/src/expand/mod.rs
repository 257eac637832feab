//! Expansion of a module to its host half or its device half.
//!
//! | file | holds |
//! |---|---|
//! | `host/mod.rs`, `host/` | the host half: launch functions, descriptors, companions, bodies for the CPU device |
//! | `device.rs` | the device half: entry points |
//! | `code.rs`, `refused.rs` | the build step's output for the target: device code, or errors |
//! | `bodies.rs`, `instances.rs`, `grid.rs`, `abort.rs`, `libraries.rs` | parts of the host half |
//! | `block.rs`, `constants.rs`, `externs.rs`, `generic.rs`, `layout.rs`, `shared.rs` | parts that both halves share |

mod abort;
mod block;
mod bodies;
mod code;
mod constants;
mod device;
mod externs;
mod generic;
mod grid;
mod host;
mod instances;
mod layout;
mod libraries;
mod refused;
mod shared;
#[cfg(test)]
mod tests;

use code::{Code, Variants};
use ferrogrid_syntax::{Kernel, Module, ModuleOptions, WITHOUT_ENTRIES};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::punctuated::Punctuated;
use syn::{Attribute, ItemMod, Meta, Result, Token, parse_quote};

/// Which half of a module this compilation is for.
enum Half {
    Host,
    Device { entries: bool },
}

impl Half {
    /// The half that the build step requests; the host half otherwise.
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
    let module = Module::parse(item)?;
    Ok(match Half::wanted() {
        Half::Host => on_host(&module, &ModuleOptions::parse(options)?)?,
        // The build step has read the options, and has written its own.
        Half::Device { entries } => {
            let is_of_others = options.iter().any(|option| option.path().is_ident(WITHOUT_ENTRIES));
            device::module(&module, entries && !is_of_others)
        }
    })
}

/// The host half, once for each variant of the target.
fn on_host(module: &Module, options: &ModuleOptions) -> Result<TokenStream> {
    if options.host_only {
        return Ok(host::module(module, &Code::HostOnly, None));
    }
    let variants = Variants::of(module.fingerprint);
    let Some(tested) = &variants.tested else { return variant(module, &variants.plain, None) };
    let plain = variant(module, &variants.plain, Some(&parse_quote!(#[cfg(not(test))])))?;
    let tested = variant(module, tested, Some(&parse_quote!(#[cfg(test)])))?;
    Ok(quote!(#plain #tested))
}

/// The host half with this device code, where `cfg` holds.
fn variant(module: &Module, code: &Code, cfg: Option<&Attribute>) -> Result<TokenStream> {
    let Code::Refused(diagnostics) = code else { return Ok(host::module(module, code, cfg)) };
    let errors = refused::errors(&module.item, diagnostics);
    let rest = Module::parse(refused::without_bodies(&module.item, diagnostics))?;
    let (half, conditions) = (host::module(&rest, code, cfg), conditions(module, cfg));
    Ok(quote!(#half #(#conditions)* const _: () = { #errors };))
}

/// The `cfg`s of a module, which apply to its whole expansion.
fn conditions<'m>(module: &'m Module, cfg: Option<&'m Attribute>) -> impl Iterator<Item = &'m Attribute> {
    let own = module.item.attrs.iter().filter(|it| it.path().is_ident("cfg"));
    cfg.into_iter().chain(own)
}

/// The type of lengths and extents in the entry point: 32 bits, which makes indices 32 bits wide, unless the
/// kernel is `wide`.
fn extent_type(kernel: &Kernel) -> TokenStream {
    if kernel.bounds.wide { quote!(usize) } else { quote!(u32) }
}

/// The extents of a `BoxMap`, of which there are five: 1 along axes that it does not have.
fn box_extents<T: ToTokens>(extents: &[T]) -> TokenStream {
    let others = std::iter::repeat_n(quote!(1), 5 - extents.len());
    quote!([#(#extents as usize,)* #(#others),*])
}
