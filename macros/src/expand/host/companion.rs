//! The companion of a kernel: a module of its name with its instance, its grid and its block.

use ferrogrid_syntax::Kernel;
use proc_macro2::TokenStream;
use quote::quote;
use syn::Attribute;

use crate::expand::instances::{holds, instance, instance_trait, static_name};
use crate::expand::{block, generic, grid};

/// The companion module of the kernel (modules and functions do not clash).
pub(super) fn module(kernel: &Kernel) -> TokenStream {
    let (name, visibility) = (kernel.name(), &kernel.function.vis);
    let cfgs: Vec<&Attribute> = kernel.cfgs().collect();
    let summary = format!("The descriptor, grid and block shape of the kernel `{}`.", kernel.bare_name());
    let declared = generic::declared(kernel);
    let (trait_name, grid_name) = (instance_trait(kernel), grid::name(kernel));
    let (chosen, bounds, reexport) = if kernel.is_generic() {
        let path = quote!(super::#trait_name);
        let (instance, holds) = (instance(kernel, &quote!(Instance)), holds(kernel, &quote!(Instance)));
        (
            instance,
            quote!(where #holds),
            quote!(#[doc(inline)] #[allow(unused_imports)] pub use #path as Instance;),
        )
    } else {
        let static_name = static_name(kernel, &kernel.instances[0]);
        (quote!(&super::#static_name), quote!(), quote!())
    };
    let parameters = generic::unbounded(kernel);
    // The launch of an `#[elementwise]` or `#[scan]` function takes no grid.
    let has_grid = kernel.elements.is_none();
    let grid = has_grid.then(|| grid::function(kernel, &declared));
    let grid_reexport =
        has_grid.then(|| quote!(#[doc(inline)] #[allow(unused_imports)] pub use super::#grid_name as grid;));
    let block = block::within(kernel, &quote!(super::)).map(|block| {
        quote! {
            /// The shape of its blocks, x first, 1 above the rank of the kernel.
            #[allow(dead_code)]
            pub const BLOCK: [u32; 3] = #block;
        }
    });
    quote! {
        #grid
        #(#cfgs)*
        #[doc = #summary]
        #visibility mod #name {
            #reexport
            #block
            #grid_reexport

            /// The kernel: its name, its PTX.
            #[allow(dead_code)]
            pub fn kernel<#parameters>() -> &'static ::ferrogrid::__private::Kernel #bounds {
                #chosen
            }
        }
    }
}
