//! Device code that crates share: a library says what its host half was compiled with, and those that use it compare
//! that with what they compiled for their kernels.

use ferrogrid_syntax::compiled::{TEXT_CHOICE, UsedLibrary};
use proc_macro2::TokenStream;
use quote::quote;

use super::code::Code;

/// What others can compare, and the comparisons with the libraries that the module uses.
pub(super) fn of(code: &Code) -> TokenStream {
    let (choices, used): (_, &[UsedLibrary]) = match code {
        Code::Compiled { module, choices, .. } if !choices.is_empty() => {
            (quote!(Some(#choices)), &module.libraries)
        }
        Code::Compiled { module, .. } => (quote!(None), &module.libraries),
        _ => (quote!(None), &[]),
    };
    let comparisons = used.iter().map(comparison);
    quote! {
        /// Whether `debug_assertions` holds, and what else the module depends on, if that is known.
        #[doc(hidden)]
        #[allow(dead_code, unreachable_pub)]
        pub const __FERROGRID_CHOICES: (bool, ::core::option::Option<&str>) =
            (cfg!(debug_assertions), ::core::option::Option::#choices);
        #(#comparisons)*
    }
}

fn comparison(library: &UsedLibrary) -> TokenStream {
    let path: syn::Path = syn::parse_str(&library.module).expect("the builder writes a path");
    let (choices, message) = (&library.choices, message(library));
    let debug_assertions = choices.lines().any(|line| line == "debug_assertions");
    quote! {
        const _: () = ::ferrogrid::__private::check_library(
            #path::__FERROGRID_CHOICES, (#debug_assertions, #choices), #message
        );
    }
}

fn message(library: &UsedLibrary) -> String {
    let name = library.module.trim_start_matches("::").split("::").next().unwrap_or_default();
    let choices: Vec<&str> = library.choices.lines().filter(|line| !line.starts_with(TEXT_CHOICE)).collect();
    let choices = if choices.is_empty() { "nothing set".to_owned() } else { choices.join(", ") };
    format!(
        "the library `{name}` is not the same on the host and in these kernels, which are compiled with its Cargo.toml and \
         the features of the whole workspace: {choices}. What its build script sets (`Build::cfg`, `env`, \
         `debug_assertions`) is to stand in its [package.metadata.ferrogrid], and a feature that only some packages of the \
         workspace ask for is to be asked for here, too"
    )
}
