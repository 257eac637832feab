//! The options of a template's attribute: expressions of its own, and options of kernels.

use proc_macro2::{TokenStream, TokenTree};
use quote::quote;
use syn::parse::ParseStream;
use syn::{Attribute, Error, Expr, Generics, Ident, Meta, Result, Token};

/// The options of kernels that a template passes on; the shape of its blocks is its own choice.
const PASSED_ON: [&str; 6] = ["fast_math", "ftz", "approx_div", "approx_sqrt", "contract", "max_registers"];

/// What an attribute says.
pub(super) struct Options<const N: usize> {
    /// The expressions, in the order of their names.
    pub(super) own: [Option<Expr>; N],
    /// Those that have no value, as given.
    pub(super) flags: Vec<Ident>,
    /// Options for `#[kernel(...)]`, each followed by a comma.
    pub(super) of_kernel: TokenStream,
}

impl<const N: usize> Options<N> {
    /// Reads the attribute of a function with these generic parameters; `names` are those of the template's own options, and
    /// `flags` those without a value.
    ///
    /// # Errors
    /// For options that do not exist or are there twice.
    pub(super) fn parse(
        attribute: &Attribute,
        names: [&str; N],
        flags: &[&str],
        generics: &Generics,
    ) -> Result<Self> {
        let mut options =
            Options { own: [const { None }; N], flags: Vec::new(), of_kernel: TokenStream::new() };
        if matches!(attribute.meta, Meta::Path(_)) {
            return Ok(options);
        }
        attribute.parse_args_with(|input: ParseStream<'_>| {
            while !input.is_empty() {
                let name: Ident = input.parse()?;
                if let Some(at) = names.iter().position(|own| name == own) {
                    input.parse::<Token![=]>()?;
                    if options.own[at].replace(input.parse()?).is_some() {
                        return Err(Error::new(name.span(), format!("`{name}` is given twice")));
                    }
                } else if flags.iter().any(|flag| name == flag) {
                    options.flags.push(name);
                } else if PASSED_ON.iter().any(|known| name == known) || is_parameter(&name, generics) {
                    let rest = rest(input)?;
                    options.of_kernel.extend(quote!(#name #rest,));
                } else {
                    return Err(unknown(&name, attribute, &names, flags));
                }
                if !input.is_empty() {
                    input.parse::<Token![,]>()?;
                }
            }
            Ok(())
        })?;
        Ok(options)
    }
}

/// What follows the name of an option, up to the comma.
fn rest(input: ParseStream<'_>) -> Result<TokenStream> {
    let mut rest = TokenStream::new();
    while !input.is_empty() && !input.peek(Token![,]) {
        rest.extend([input.parse::<TokenTree>()?]);
    }
    Ok(rest)
}

fn is_parameter(name: &Ident, generics: &Generics) -> bool {
    generics.type_params().any(|it| it.ident == *name) || generics.const_params().any(|it| it.ident == *name)
}

fn unknown(name: &Ident, attribute: &Attribute, names: &[&str], flags: &[&str]) -> Error {
    let template = attribute.path().segments.last().map(|it| it.ident.to_string()).unwrap_or_default();
    let known: Vec<String> = names
        .iter()
        .map(|own| format!("`{own} = ...`"))
        .chain(flags.iter().chain(&PASSED_ON).map(|known| format!("`{known}`")))
        .collect();
    Error::new(
        name.span(),
        format!(
            "unknown option `{name}`; `#[{template}]` knows {}, and lists of instances for its generic parameters",
            known.join(", ")
        ),
    )
}
