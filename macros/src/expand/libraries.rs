//! Device code shared between crates: a library states the options that its host half was compiled with. Its
//! users compare these with the options that they compiled for their kernels.

use ferrogrid_syntax::Module;
use ferrogrid_syntax::compiled::{TEXT_CHOICE, UsedLibrary};
use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::LitStr;

use std::collections::BTreeSet;

use super::code::Code;

/// The options that users of the module compare, and the comparisons with the libraries that it uses.
pub(super) fn of(module: &Module, code: &Code) -> TokenStream {
    let (choices, used): (_, &[UsedLibrary]) = match code {
        Code::Compiled { module, choices, .. } if !choices.is_empty() => {
            (quote!(Some(#choices)), &module.libraries)
        }
        Code::Compiled { module, .. } => (quote!(None), &module.libraries),
        _ => (quote!(None), &[]),
    };
    let comparisons = used.iter().map(comparison);
    let mut features = BTreeSet::new();
    mentioned_features(&module.item.to_token_stream(), &mut features);
    let features = features.iter().map(|name| {
        let line = format!("feature=\"{name}\"");
        quote!((#line, cfg!(feature = #name)))
    });
    quote! {
        /// All that the module depends on, if a build step has recorded it; else what its own text shows.
        #[doc(hidden)]
        #[allow(dead_code, unreachable_pub, unexpected_cfgs)]
        pub const __FERROGRID_CHOICES: (::core::option::Option<&str>, &[(&str, bool)]) = (
            ::core::option::Option::#choices,
            &[("debug_assertions", cfg!(debug_assertions)) #(, #features)*],
        );
        #(#comparisons)*
    }
}

/// Adds the names in `feature = "name"`.
fn mentioned_features(tokens: &TokenStream, found: &mut BTreeSet<String>) {
    let trees: Vec<TokenTree> = tokens.clone().into_iter().collect();
    for (at, tree) in trees.iter().enumerate() {
        match (tree, trees.get(at + 1), trees.get(at + 2)) {
            (TokenTree::Group(group), _, _) => mentioned_features(&group.stream(), found),
            (TokenTree::Ident(name), Some(TokenTree::Punct(equals)), Some(TokenTree::Literal(value)))
                if name == "feature" && equals.as_char() == '=' =>
            {
                found.extend(syn::parse_str::<LitStr>(&value.to_string()).ok().map(|value| value.value()));
            }
            _ => {}
        }
    }
}

fn comparison(library: &UsedLibrary) -> TokenStream {
    let path: syn::Path = syn::parse_str(&library.module).expect("the builder writes a path");
    let (choices, message) = (&library.choices, message(library));
    quote! {
        const _: () =
            ::ferrogrid::__private::check_library(#path::__FERROGRID_CHOICES, #choices, #message);
    }
}

fn message(library: &UsedLibrary) -> String {
    let name = library.module.trim_start_matches("::").split("::").next().unwrap_or_default();
    let choices: Vec<&str> = library.choices.lines().filter(|line| !line.starts_with(TEXT_CHOICE)).collect();
    let choices = if choices.is_empty() { "nothing set".to_owned() } else { choices.join(", ") };
    format!(
        "the library `{name}` is not the same on the host and in these kernels, which are compiled with its Cargo.toml and \
         the features of the whole workspace: {choices}. What its build script sets (`Build::cfg`, `env`, \
         `debug_assertions`) belongs in its [package.metadata.ferrogrid], and a feature that only the command line or some \
         packages of the workspace ask for is to be asked for in this package's Cargo.toml, too"
    )
}
