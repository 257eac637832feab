//! The files that `include!`, `include_str!` and `include_bytes!` name, if the text determines them.

use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Expr, ExprLit, ExprMacro, Lit, LitStr, Macro, Token};

/// The file that an `include!` in the file `path` names: by a literal, or by `concat!` of literals and of
/// `env!` of what cargo sets for a package.
pub(super) fn file_of(call: &Macro, path: &Path) -> Option<PathBuf> {
    if !call.path.is_ident("include") {
        return None;
    }
    let name = text_of(&call.parse_body::<Expr>().ok()?)?;
    Some(path.with_file_name(name))
}

fn text_of(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
        Expr::Macro(ExprMacro { mac, .. }) if mac.path.is_ident("env") => {
            std::env::var(mac.parse_body::<LitStr>().ok()?.value()).ok()
        }
        Expr::Macro(ExprMacro { mac, .. }) if mac.path.is_ident("concat") => {
            let parts = Punctuated::<Expr, Token![,]>::parse_terminated.parse2(mac.tokens.clone()).ok()?;
            parts.iter().map(text_of).collect()
        }
        _ => None,
    }
}

/// The relative paths that are included among `tokens`.
pub(super) fn within(tokens: &TokenStream) -> Vec<String> {
    let mut found = Vec::new();
    collect(tokens, &mut found);
    found
}

fn collect(tokens: &TokenStream, found: &mut Vec<String>) {
    let trees: Vec<TokenTree> = tokens.clone().into_iter().collect();
    for (at, tree) in trees.iter().enumerate() {
        let TokenTree::Group(group) = tree else { continue };
        let called = at >= 2 && matches!(&trees[at - 1], TokenTree::Punct(it) if it.as_char() == '!');
        let includes = called && is_include(&trees[at - 2]);
        match syn::parse2::<LitStr>(group.stream()) {
            Ok(path) if includes && Path::new(&path.value()).is_relative() => found.push(path.value()),
            _ => collect(&group.stream(), found),
        }
    }
}

fn is_include(tree: &TokenTree) -> bool {
    matches!(tree, TokenTree::Ident(name) if ["include", "include_str", "include_bytes"].iter().any(|it| name == it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_are_found_at_any_depth() {
        let tokens = "const A: &[u8] = include_bytes!(\"a.bin\"); fn f() { g(include!(\"../b.in\"), \
                      core::include_str![\"c\"]); include!(\"/abs\"); other!(\"d\"); include!(concat!(\"e\")) }";
        assert_eq!(within(&tokens.parse().unwrap()), ["a.bin", "../b.in", "c"]);
    }
}
