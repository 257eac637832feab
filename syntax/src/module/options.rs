//! The options in `#[ferrogrid::module(...)]`.

use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, ExprLit, Lit, Meta, Result, Token};

use crate::architecture::{ARCHITECTURE_NAMES, architecture_number};

/// The option that the build step writes to modules of which a device crate has some functions, but whose kernels are entry points of
/// another one. It is none for users.
pub const WITHOUT_ENTRIES: &str = "without_entries";

/// The options in `#[ferrogrid::module(...)]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModuleOptions {
    /// `host_only`: no device code is built; its kernels run on CPU devices only.
    pub host_only: bool,
    /// `arch = ["sm_75"]`: the only architectures that it is compiled for, each once; those of the build if
    /// empty.
    pub archs: Vec<String>,
}

impl ModuleOptions {
    /// Reads the options of a module attribute.
    ///
    /// # Errors
    /// For an option that does not exist, or a value that is wrong, with its span.
    pub fn parse(options: &Punctuated<Meta, Token![,]>) -> Result<Self> {
        let mut parsed = ModuleOptions::default();
        for option in options {
            match option {
                Meta::Path(path) if path.is_ident("host_only") => parsed.host_only = true,
                Meta::NameValue(pair) if pair.path.is_ident("arch") => parsed.archs = archs(&pair.value)?,
                // Only the macro uses it.
                Meta::NameValue(pair)
                    if pair.path.is_ident("crate") && matches!(pair.value, Expr::Path(_)) => {}
                _ => {
                    return Err(Error::new(
                        option.span(),
                        "unknown option; `#[ferrogrid::module]` knows `host_only`, `arch = [..]` and `crate = path`",
                    ));
                }
            }
        }
        if parsed.host_only && !parsed.archs.is_empty() {
            let message = "a `host_only` module has no device code: remove `host_only` or `arch`";
            return Err(Error::new(options.span(), message));
        }
        Ok(parsed)
    }

    /// Reads the options from the attribute itself, as it stands in a source file.
    ///
    /// # Errors
    /// As [`ModuleOptions::parse`].
    pub fn from_attribute(attribute: &Attribute) -> Result<Self> {
        match &attribute.meta {
            Meta::Path(_) => Ok(ModuleOptions::default()),
            Meta::List(list) => Self::parse(&list.parse_args_with(Punctuated::parse_terminated)?),
            Meta::NameValue(pair) => Err(Error::new(pair.span(), "write `#[ferrogrid::module]`")),
        }
    }
}

/// The names in a list of architectures.
fn archs(value: &Expr) -> Result<Vec<String>> {
    let wrong = |place: &Expr, found: &str| {
        let message = format!(
            "{found}; expected a list of architectures from `sm_75` on, `arch = [\"sm_75\", \"sm_90a\"]`"
        );
        Error::new(place.span(), message)
    };
    let Expr::Array(list) = value else { return Err(wrong(value, "this is not a list")) };
    let mut names = Vec::new();
    for element in &list.elems {
        let Expr::Lit(ExprLit { lit: Lit::Str(name), .. }) = element else {
            return Err(wrong(element, "this is not the name of an architecture in quotes"));
        };
        let name = name.value();
        if architecture_number(&name).is_none() {
            let message =
                format!("`{name}` is not an architecture that Ferrogrid supports: {ARCHITECTURE_NAMES}");
            return Err(Error::new(element.span(), message));
        }
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        return Err(wrong(value, "the list is empty"));
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    fn read(attribute: &Attribute) -> std::result::Result<ModuleOptions, String> {
        ModuleOptions::from_attribute(attribute).map_err(|error| error.to_string())
    }

    #[test]
    fn architectures_keep_their_order_and_lose_repetitions() {
        let read = read(&parse_quote!(#[module(crate = fg, arch = ["sm_90a", "sm_75", "sm_90a"])])).unwrap();
        assert_eq!(read.archs, ["sm_90a", "sm_75"]);
        assert_eq!(super::tests::read(&parse_quote!(#[module])), Ok(ModuleOptions::default()));
    }

    #[test]
    fn anything_else_is_refused_by_name() {
        for (attribute, found) in [
            (parse_quote!(#[module(arch = "sm_75")]), "not a list"),
            (parse_quote!(#[module(arch = [])]), "is empty"),
            (parse_quote!(#[module(arch = ["sm_75", 90])]), "in quotes"),
            (parse_quote!(#[module(arch = ["sm_75", "sm_70"])]), "`sm_70` is not"),
            (parse_quote!(#[module(arch = ["sm_"])]), "`sm_` is not"),
            (
                parse_quote!(#[module(arch = ["sm_777"])]),
                "`sm_777` is not an architecture that Ferrogrid supports: `sm_75`,",
            ),
            (parse_quote!(#[module(arch = ["sm_89a"])]), "`sm_89a` is not"),
            (parse_quote!(#[module(arch = ["sm_90f"])]), "`sm_90f` is not"),
            (parse_quote!(#[module(host_only, arch = ["sm_75"])]), "remove `host_only`"),
            (parse_quote!(#[module(arch)]), "unknown option"),
        ] {
            let error = read(&attribute).unwrap_err();
            assert!(error.contains(found), "{error}");
        }
    }
}
