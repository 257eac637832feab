//! Functions of other device code in both halves: declared on a device, to be linked; on the host functions
//! that call their native counterpart, or panic if there is none.

use ferrogrid_syntax::{ExternFunction, Externs};
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::{FnArg, ItemForeignMod, Safety};

/// The block without Ferrogrid's attributes. Errors in it are reported where the module is read.
pub(super) fn on_device(block: &ItemForeignMod) -> TokenStream {
    match Externs::parse(block) {
        Ok(Some(externs)) => externs.item.into_token_stream(),
        _ => block.into_token_stream(),
    }
}

/// A function for each declaration.
pub(super) fn on_host(block: &ItemForeignMod) -> TokenStream {
    let Ok(Some(externs)) = Externs::parse(block) else { return block.into_token_stream() };
    let cfgs: Vec<_> =
        externs.item.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg")).collect();
    let functions = externs.functions.iter().map(|function| {
        let function = native(function);
        quote!(#(#cfgs)* #function)
    });
    functions.collect()
}

fn native(function: &ExternFunction) -> TokenStream {
    let ExternFunction { symbol, native, item } = function;
    let (visibility, mut signature) = (&item.vis, item.sig.clone());
    if matches!(signature.safety, Safety::Safe(_)) {
        signature.safety = Safety::Default;
    } else {
        signature.safety = Safety::Unsafe(Default::default());
    }
    let mut arguments = Vec::new();
    for (number, input) in signature.inputs.iter_mut().enumerate() {
        let FnArg::Typed(input) = input else { continue };
        let name = format_ident!("__argument{number}", span = Span::mixed_site());
        *input.pat = syn::parse_quote!(#name);
        arguments.push(name);
    }
    let attributes = item
        .attrs
        .iter()
        .filter(|attribute| ["doc", "cfg"].iter().any(|name| attribute.path().is_ident(name)));
    let body = match native {
        // SAFETY of the block: the caller guarantees the function's requirements, under either name.
        Some(native) => quote!(unsafe { #native(#(#arguments),*) }),
        None => quote! {{
            #( let _ = #arguments; )*
            ::ferrogrid::__private::no_native_function(#symbol)
        }},
    };
    quote! {
        #(#attributes)*
        #[allow(dead_code, unused_unsafe, clippy::missing_safety_doc, clippy::too_many_arguments)]
        #visibility #signature { #body }
    }
}
