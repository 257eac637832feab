//! The path of the crate `ferrogrid` in the user's code. Expansions name it `::ferrogrid`; if a package
//! renames the dependency, that name replaces it.

use proc_macro2::{Group, TokenStream, TokenTree};
use quote::quote;
use syn::punctuated::Punctuated;
use syn::{Expr, Meta, Path, Token};

/// The name that the build step found in Cargo.toml.
const VARIABLE: &str = "FERROGRID_CRATE";

/// The path in `crate = path` among the options.
pub(crate) fn option(options: &Punctuated<Meta, Token![,]>) -> Option<TokenStream> {
    options.iter().find_map(|option| {
        let Meta::NameValue(pair) = option else { return None };
        let Expr::Path(path) = &pair.value else { return None };
        pair.path.is_ident("crate").then(|| from_root(&path.path))
    })
}

/// The path in a form that means the same in every module: `fg` is `::fg`, `crate::gpu` stays.
pub(crate) fn from_root(path: &Path) -> TokenStream {
    let first = path.segments.first().map(|segment| segment.ident.to_string()).unwrap_or_default();
    let is_relative = ["crate", "self", "super"].contains(&first.as_str());
    if path.leading_colon.is_some() || is_relative { quote!(#path) } else { quote!(::#path) }
}

/// The crate's name if no option gives it: on the device `ferrogrid`, else the name that the build step
/// found.
pub(crate) fn default() -> Option<TokenStream> {
    if is_device() {
        return None;
    }
    let name = std::env::var(VARIABLE).ok()?;
    let path: Path = syn::parse_str(&name).ok()?;
    Some(from_root(&path))
}

/// The same for code that requires only `ferrogrid-device`, on which a `no_std` crate of types may depend
/// directly.
pub(crate) fn of_device_types() -> TokenStream {
    if let Some(path) = default() {
        return path;
    }
    let manifest =
        std::env::var_os("CARGO_MANIFEST_DIR").map(|folder| std::path::Path::new(&folder).join("Cargo.toml"));
    let text = manifest.and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
    named_by(&text, is_device())
}

/// The crate of a package with this manifest.
fn named_by(manifest: &str, is_device: bool) -> TokenStream {
    if !is_device && has_device_crate_alone(manifest) {
        quote!(::ferrogrid_device)
    } else {
        quote!(::ferrogrid)
    }
}

fn is_device() -> bool {
    std::env::var("FERROGRID_EXPAND").is_ok_and(|half| half.starts_with("device"))
}

/// Whether a manifest declares `ferrogrid-device` but not `ferrogrid`. This does not parse TOML: for other
/// notations there is `#[device_copy(crate = ..)]`.
fn has_device_crate_alone(manifest: &str) -> bool {
    let declares = |name: &str| {
        manifest.lines().map(str::trim).any(|line| {
            let key = line.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with(['=', '.']));
            key || (line.starts_with('[') && line.ends_with(&format!("dependencies.{name}]")))
        })
    };
    declares("ferrogrid-device")
        && !declares("ferrogrid")
        && !manifest.lines().any(|line| line.trim() == "name = \"ferrogrid\"")
}

/// `tokens` with `root` in place of each `::ferrogrid` that begins a path.
pub(crate) fn replace(tokens: TokenStream, root: &TokenStream) -> TokenStream {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    let mut out = TokenStream::new();
    let mut at = 0;
    while at < trees.len() {
        if let Some(name) = begins_path(&trees, at) {
            // Errors point to the place of the name.
            let span = name.span();
            out.extend(root.clone().into_iter().map(|mut tree| {
                tree.set_span(span);
                tree
            }));
            at += 3;
            continue;
        }
        out.extend([match &trees[at] {
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), replace(group.stream(), root));
                inner.set_span(group.span());
                TokenTree::Group(inner)
            }
            tree => tree.clone(),
        }]);
        at += 1;
    }
    out
}

/// The name, if `::ferrogrid` is at `at` and does not continue a path.
fn begins_path(trees: &[TokenTree], at: usize) -> Option<&TokenTree> {
    let colon = |at: usize| matches!(trees.get(at), Some(TokenTree::Punct(it)) if it.as_char() == ':');
    let name =
        trees.get(at + 2).filter(|tree| matches!(tree, TokenTree::Ident(name) if name == "ferrogrid"))?;
    // A path also begins after `>`, as in `impl<T> ::ferrogrid::Trait`: `<T>::ferrogrid` names nothing.
    let tree = |back: usize| at.checked_sub(back).map(|at| &trees[at]);
    let is_lifetime = matches!(tree(2), Some(TokenTree::Punct(it)) if it.as_char() == '\'');
    let goes_on = match tree(1) {
        Some(TokenTree::Ident(before)) => !is_lifetime && !is_keyword(&before.to_string()),
        _ => false,
    };
    (colon(at) && colon(at + 1) && !goes_on).then_some(name)
}

/// Keywords after which a path may begin.
fn is_keyword(word: &str) -> bool {
    [
        "as", "break", "const", "dyn", "else", "for", "if", "impl", "in", "match", "mut", "return", "static",
        "unsafe", "use", "where", "while",
    ]
    .contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(text: &str) -> String {
        replace(text.parse().unwrap(), &quote!(::fg)).to_string().replace(' ', "")
    }

    #[test]
    fn the_crate_is_replaced_where_it_begins_a_path_and_nowhere_else() {
        assert_eq!(replaced("f(::ferrogrid::a, &::ferrogrid::B)"), "f(::fg::a,&::fg::B)");
        assert_eq!(
            replaced("fn f() -> ::ferrogrid::A { x as ::ferrogrid::B }"),
            "fnf()->::fg::A{xas::fg::B}"
        );
        assert_eq!(replaced("m => ::ferrogrid::A"), "m=>::fg::A");
        assert_eq!(replaced("Vec<::ferrogrid::A>"), "Vec<::fg::A>");
        assert_eq!(
            replaced("&'static ::ferrogrid::A, *const ::ferrogrid::B"),
            "&'static::fg::A,*const::fg::B"
        );
        assert_eq!(replaced("impl<T> ::ferrogrid::A for T"), "impl<T>::fg::AforT");
        for same in ["x::ferrogrid::a", "ferrogrid::a", "::ferrogrid_device::a", "|(a,b):&ferrogrid::A|"] {
            assert_eq!(replaced(same), same);
        }
    }

    #[test]
    fn a_path_means_the_same_in_every_module() {
        let of = |text: &str| from_root(&syn::parse_str(text).unwrap()).to_string().replace(' ', "");
        assert_eq!([of("fg"), of("::fg"), of("crate::gpu")], ["::fg", "::fg", "crate::gpu"]);
    }

    #[test]
    fn a_manifest_with_the_device_crate_alone_is_recognised() {
        for alone in [
            "[dependencies]\nferrogrid-device = \"0.1\"",
            "ferrogrid-device.workspace = true",
            "[dependencies.ferrogrid-device]\n",
        ] {
            assert!(has_device_crate_alone(alone), "{alone}");
        }
        for not in
            ["ferrogrid = \"0.1\"\nferrogrid-device = \"0.1\"", "[dependencies]\n", "# ferrogrid-device = 1"]
        {
            assert!(!has_device_crate_alone(not), "{not}");
        }
    }

    #[test]
    fn a_crate_of_types_names_the_device_crate_but_not_on_a_device() {
        let alone = "[dependencies]\nferrogrid-device = \"0.1\"";
        let named = |manifest, is_device| named_by(manifest, is_device).to_string().replace(' ', "");
        assert_eq!(named(alone, false), "::ferrogrid_device");
        assert_eq!([named(alone, true), named("", false)], ["::ferrogrid", "::ferrogrid"]);
        assert!(!is_device(), "only the build step sets that");
    }
}
