//! The kernels' bodies for the CPU device, compiled natively. On the host a kernel's name refers to its
//! launch function, so the body has another name. Where code of the module calls a kernel, as it may on the
//! device, the name refers to the body.

use ferrogrid_syntax::{Kernel, Module, Part, mention};
use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::{Block, Ident, ImplItem, Item, Signature, parse_quote};

use super::{constants, externs};

/// The name of a kernel's body in the module.
pub(super) fn body_name(kernel: &Kernel) -> Ident {
    let name = kernel.name().to_string();
    format_ident!("__ferrogrid_body_{}", name.trim_start_matches("r#"), span = kernel.name().span())
}

/// A module of aliases, from each kernel's name to its body.
pub(super) fn aliases(module: &Module) -> TokenStream {
    let uses = module.kernels.iter().map(|kernel| {
        let (name, cfgs) = (kernel.name(), kernel.cfgs());
        let body = body_name(kernel);
        quote!(#(#cfgs)* #[allow(unused_imports)] pub(super) use super::#body as #name;)
    });
    quote! {
        #[doc(hidden)]
        mod __ferrogrid_bodies { #(#uses)* }
    }
}

/// The module's items on the host: kernels as bodies, the rest as written.
pub(super) fn items(module: &Module) -> TokenStream {
    let names: Vec<String> = module.kernels.iter().map(|kernel| kernel.name().to_string()).collect();
    module.parts().map(|part| on_host(module, &part, &names)).collect()
}

fn on_host(module: &Module, part: &Part, kernels: &[String]) -> TokenStream {
    let item = match part {
        Part::Kernel(kernel) => return body(module, kernel, kernels),
        Part::Other(item) => *item,
    };
    match item {
        Item::Fn(function) => {
            let mut function = constants::named_in(module, function);
            name_bodies(&function.sig, &mut function.block, kernels);
            function.into_token_stream()
        }
        Item::Impl(implementation) => {
            let mut implementation = implementation.clone();
            for item in &mut implementation.items {
                if let ImplItem::Fn(method) = item {
                    name_bodies(&method.sig, &mut method.block, kernels);
                }
            }
            implementation.into_token_stream()
        }
        Item::Static(it) if module.constants.iter().any(|constant| constant.name == it.ident) => {
            TokenStream::new()
        }
        Item::ForeignMod(block) => externs::on_host(block),
        other => other.into_token_stream(),
    }
}

fn body(module: &Module, kernel: &Kernel, kernels: &[String]) -> TokenStream {
    let mut function = kernel.body(&body_name(kernel));
    constants::name_values(module, kernel.name(), &mut function.block);
    name_bodies(&function.sig, &mut function.block, kernels);
    quote! {
        #[doc(hidden)]
        // A kernel's parameters are those of its launch: by value, any number of them, and boxes of five axes written out.
        #[allow(clippy::too_many_arguments, clippy::needless_pass_by_value, clippy::type_complexity)]
        #function
    }
}

/// Makes kernel names in `block` refer to the bodies, unless a parameter has the name.
fn name_bodies(signature: &Signature, block: &mut Block, kernels: &[String]) {
    let (tokens, parameters) = (block.to_token_stream(), signature.inputs.to_token_stream());
    let is_called = |name: &&String| mention(&tokens, name).is_some() && mention(&parameters, name).is_none();
    let called = kernels.iter().filter(is_called);
    for name in called.map(|name| syn::parse_str::<Ident>(name).expect("a function's name is an identifier"))
    {
        block.stmts.insert(0, parse_quote!(#[allow(unused_imports)] use self::__ferrogrid_bodies::#name;));
    }
}
