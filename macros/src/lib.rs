//! The attribute macros. `#[module]` turns a module of kernels into launch functions (host half) or into PTX
//! entry points (device half); `FERROGRID_EXPAND` selects the half. The grammar is that of
//! `ferrogrid-syntax`.
//!
//! Compilers require the entry points of macros here. `expand` has the halves of a module, `derive` the derives, and
//! `crate_path` renamed dependencies. Documentation with examples is in `docs`. The examples are tests of
//! `ferrogrid` (`src/macro_examples.rs`): for this crate's own, cargo would build all of Ferrogrid once more, because it builds what a
//! procedural macro depends on apart from the rest.

#![deny(missing_docs)]

mod crate_path;
mod derive;
mod expand;

use proc_macro::TokenStream;
use syn::punctuated::Punctuated;
use syn::{DeriveInput, ItemMod, parse_macro_input};

#[cfg_attr(not(doctest), doc = include_str!("docs/module.md"))]
#[proc_macro_attribute]
pub fn module(options: TokenStream, item: TokenStream) -> TokenStream {
    let options = parse_macro_input!(options with Punctuated::parse_terminated);
    let item = parse_macro_input!(item as ItemMod);
    let root = crate_path::option(&options).or_else(crate_path::default);
    let expanded = expand::module(&options, item).unwrap_or_else(|error| error.to_compile_error());
    match root {
        Some(root) => crate_path::replace(expanded, &root).into(),
        None => expanded.into(),
    }
}

#[cfg_attr(not(doctest), doc = include_str!("docs/kernel.md"))]
#[proc_macro_attribute]
pub fn kernel(_options: TokenStream, item: TokenStream) -> TokenStream {
    misplaced("`#[kernel]` belongs on functions directly inside a module marked `#[ferrogrid::module]`", item)
}

#[cfg_attr(not(doctest), doc = include_str!("docs/elementwise.md"))]
#[proc_macro_attribute]
pub fn elementwise(_options: TokenStream, item: TokenStream) -> TokenStream {
    misplaced(
        "`#[elementwise]` belongs on functions directly inside a module marked `#[ferrogrid::module]`",
        item,
    )
}

#[cfg_attr(not(doctest), doc = include_str!("docs/reduction.md"))]
#[proc_macro_attribute]
pub fn reduction(_options: TokenStream, item: TokenStream) -> TokenStream {
    misplaced(
        "`#[reduction]` belongs on functions directly inside a module marked `#[ferrogrid::module]`",
        item,
    )
}

#[cfg_attr(not(doctest), doc = include_str!("docs/scan.md"))]
#[proc_macro_attribute]
pub fn scan(_options: TokenStream, item: TokenStream) -> TokenStream {
    misplaced("`#[scan]` belongs on functions directly inside a module marked `#[ferrogrid::module]`", item)
}

#[cfg_attr(not(doctest), doc = include_str!("docs/comparison.md"))]
#[proc_macro_attribute]
pub fn comparison(_options: TokenStream, item: TokenStream) -> TokenStream {
    misplaced(
        "`#[comparison]` belongs on functions directly inside a module marked `#[ferrogrid::module]`",
        item,
    )
}

#[cfg_attr(not(doctest), doc = include_str!("docs/matmul.md"))]
#[proc_macro_attribute]
pub fn matmul(_options: TokenStream, item: TokenStream) -> TokenStream {
    misplaced("`#[matmul]` belongs on functions directly inside a module marked `#[ferrogrid::module]`", item)
}

#[cfg_attr(not(doctest), doc = include_str!("docs/constant.md"))]
#[proc_macro_attribute]
pub fn constant(_options: TokenStream, item: TokenStream) -> TokenStream {
    misplaced("`#[constant]` belongs on statics directly inside a module marked `#[ferrogrid::module]`", item)
}

#[cfg_attr(not(doctest), doc = include_str!("docs/device_copy.md"))]
#[proc_macro_derive(DeviceCopy, attributes(device_copy))]
pub fn device_copy(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    derive::device_copy(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Derives `SharedElement` for a struct that is not `Copy`, such as one of atomics: any bits must be valid
/// for each of its fields. For `Copy` structs `#[derive(DeviceCopy)]` implements it.
#[proc_macro_derive(SharedElement, attributes(device_copy))]
pub fn shared_element(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    derive::shared_element(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

#[cfg_attr(not(doctest), doc = include_str!("docs/atomic_form.md"))]
#[proc_macro_derive(AtomicForm, attributes(atomic_form, device_copy))]
pub fn atomic_form(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    derive::atomic_form(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

#[cfg_attr(not(doctest), doc = include_str!("docs/device.md"))]
#[proc_macro_attribute]
pub fn device(_options: TokenStream, item: TokenStream) -> TokenStream {
    misplaced("`#[device]` belongs on statics directly inside a module marked `#[ferrogrid::module]`", item)
}

/// `item` with the error `message`: for an attribute outside of the module that would expand it.
fn misplaced(message: &str, item: TokenStream) -> TokenStream {
    let error = syn::Error::new(proc_macro2::Span::call_site(), message).to_compile_error();
    [error.into(), item].into_iter().collect()
}
