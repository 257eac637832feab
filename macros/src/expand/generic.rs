//! A kernel's generic parameters, for both halves: how they are declared, passed on, and given a meaning for
//! one instance.

use ferrogrid_syntax::{Argument, Instance, Kernel};
use proc_macro2::{Group, TokenStream, TokenTree};
use quote::quote;
use syn::{GenericParam, Ident};

/// `T: Bound, const N: usize`, as written.
pub(super) fn declared(kernel: &Kernel) -> TokenStream {
    let parameters = &kernel.function.sig.generics.params;
    quote!(#parameters)
}

/// `T, const N: usize`: without bounds.
pub(super) fn unbounded(kernel: &Kernel) -> TokenStream {
    let parameters = kernel.function.sig.generics.params.iter().map(|parameter| match parameter {
        GenericParam::Type(parameter) => {
            let name = &parameter.ident;
            quote!(#name)
        }
        other => quote!(#other),
    });
    quote!(#(#parameters),*)
}

/// `T, N`: the parameters passed on.
pub(super) fn passed(kernel: &Kernel) -> TokenStream {
    let names = names(kernel);
    quote!(#(#names),*)
}

/// The names of the type and const parameters.
pub(super) fn names(kernel: &Kernel) -> Vec<&Ident> {
    kernel.instances[0].arguments.iter().map(Argument::parameter).collect()
}

/// Items that name each argument of `instance`: `type T = f32; const N: usize = 8;`. The names are those of
/// the parameters, after `rename`.
pub(super) fn aliases(kernel: &Kernel, instance: &Instance, rename: impl Fn(&Ident) -> Ident) -> TokenStream {
    let cfgs: Vec<_> = kernel.cfgs_of(instance).collect();
    let aliases = instance.arguments.iter().map(|argument| {
        let name = rename(argument.parameter());
        match argument {
            Argument::Type { ty, .. } => {
                quote!(#(#cfgs)* #[allow(dead_code, non_camel_case_types)] type #name = #ty;)
            }
            Argument::Const { ty, value, .. } => {
                quote!(#(#cfgs)* #[allow(dead_code, non_upper_case_globals)] const #name: #ty = #value;)
            }
        }
    });
    quote!(#(#aliases)*)
}

/// The names that [`aliases`] made, as generic arguments.
pub(super) fn aliased(instance: &Instance, rename: impl Fn(&Ident) -> Ident) -> TokenStream {
    let arguments = instance.arguments.iter().map(|argument| {
        let name = rename(argument.parameter());
        match argument {
            Argument::Type { .. } => quote!(#name),
            Argument::Const { .. } => quote!({ #name }),
        }
    });
    quote!(#(#arguments),*)
}

/// `tokens` with every identifier replaced for which `rename` has another.
pub(super) fn renamed(tokens: TokenStream, rename: &impl Fn(&Ident) -> Option<Ident>) -> TokenStream {
    let tree = |tree| match tree {
        TokenTree::Ident(ident) => TokenTree::Ident(rename(&ident).unwrap_or(ident)),
        TokenTree::Group(group) => {
            let mut inner = Group::new(group.delimiter(), renamed(group.stream(), rename));
            inner.set_span(group.span());
            TokenTree::Group(inner)
        }
        other => other,
    };
    tokens.into_iter().map(tree).collect()
}
