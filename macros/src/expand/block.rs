//! The shape of a block that a kernel fixes: numbers, or a constant of the module.

use ferrogrid_syntax::Kernel;
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::Ident;
use syn::spanned::Spanned;

/// The shape as an expression of type `[u32; 3]`, in the module of the kernels.
pub(super) fn of(kernel: &Kernel) -> Option<TokenStream> {
    within(kernel, &TokenStream::new())
}

/// The same where `module` is the path to that module.
pub(super) fn within(kernel: &Kernel, module: &TokenStream) -> Option<TokenStream> {
    match kernel.bounds.block {
        Some([x, y, z]) => Some(quote!([#x, #y, #z])),
        None => kernel.block.as_ref().map(|_| {
            let name = name(kernel);
            quote!(#module #name)
        }),
    }
}

/// The constant of the shape, which both halves evaluate; `device` is the path of the device crate.
pub(super) fn constant(kernel: &Kernel, device: &TokenStream) -> Option<TokenStream> {
    let (mut name, [x, y, z]) = (name(kernel), kernel.block.as_ref()?);
    name.set_span(x.span());
    let (cfgs, span) = (kernel.cfgs(), x.span());
    // Errors in the shape point to where it is written.
    let device = device.clone().into_iter().map(|mut tree| {
        tree.set_span(span);
        tree
    });
    let device = TokenStream::from_iter(device);
    Some(quote_spanned! {span=>
        #(#cfgs)*
        #[doc(hidden)]
        #[allow(non_upper_case_globals, clippy::unnecessary_cast)]
        const #name: [u32; 3] = #device::__block([(#x) as i128, (#y) as i128, (#z) as i128]);
    })
}

fn name(kernel: &Kernel) -> Ident {
    format_ident!("__FERROGRID_BLOCK_{}", kernel.bare_name())
}
