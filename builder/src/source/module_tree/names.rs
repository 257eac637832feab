//! What the tokens of a module mention: possible crates, `cfg(test)`, statics.

use std::collections::BTreeSet;

use ferrogrid_syntax::{is_placed_attribute, mention};
use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Item, ItemMod};

use super::items::FoundItem;

/// The names that the tokens of a module mention.
#[derive(Default)]
pub(super) struct Names {
    /// The tokens of each item.
    pub(super) tokens: Vec<TokenStream>,
    /// Whether they mention `cfg(test)`.
    pub(super) cfg_test: bool,
    /// Every name that begins a path or is imported.
    pub(super) path_starts: BTreeSet<String>,
    /// Whether it declares a variable that is not a `#[constant]`.
    pub(super) has_statics: bool,
    /// Its items.
    pub(super) items: Vec<FoundItem>,
}

/// Reads the content of `module`.
pub(super) fn of(module: &ItemMod) -> Names {
    let mut names = Names::default();
    for item in module.content.iter().flat_map(|(_, items)| items) {
        let tokens = item.to_token_stream();
        names.cfg_test |= mentions_cfg_test(&tokens);
        collect(&tokens, false, &mut names.path_starts);
        let is_placed = matches!(item, Item::Static(of) if of.attrs.iter().any(is_placed_attribute));
        names.has_statics |= !is_placed && has_static(&tokens);
        names.items.push(FoundItem::of(item, &tokens, module));
        names.tokens.push(tokens);
    }
    names
}

/// Whether a `static` is declared; the lifetime `'static` is none.
fn has_static(tokens: &TokenStream) -> bool {
    let mut after_quote = false;
    tokens.clone().into_iter().any(|tree| {
        let found = match &tree {
            TokenTree::Ident(ident) => ident == "static" && !after_quote,
            TokenTree::Group(group) => has_static(&group.stream()),
            _ => false,
        };
        after_quote = matches!(&tree, TokenTree::Punct(punct) if punct.as_char() == '\'');
        found
    })
}

/// Adds every name that begins a path (`name::...`, `::name::...`) or is imported (`use name;`).
fn collect(tokens: &TokenStream, mut importing: bool, names: &mut BTreeSet<String>) {
    let trees: Vec<TokenTree> = tokens.clone().into_iter().collect();
    for (at, tree) in trees.iter().enumerate() {
        match tree {
            // `use {a, b::c};` begins paths inside its braces, `use a::{b};` does not.
            TokenTree::Group(_) if after_separator(&trees, at) => {}
            TokenTree::Group(group) => collect(&group.stream(), importing, names),
            TokenTree::Punct(punct) if punct.as_char() == ';' => importing = false,
            TokenTree::Ident(ident) if ident == "use" => importing = true,
            TokenTree::Ident(ident) if ident == "as" => {}
            TokenTree::Ident(ident) if ident == "crate" && follows(&trees, at, "extern") => importing = true,
            TokenTree::Ident(ident) => {
                let begins = begins_path(&trees, at) && !follows(&trees, at, "as");
                if begins && (importing || separator(&trees, at + 1)) {
                    names.insert(ident.to_string().trim_start_matches("r#").to_owned());
                }
            }
            _ => {}
        }
    }
}

/// Whether the path that holds the name at `at` begins with it.
fn begins_path(trees: &[TokenTree], at: usize) -> bool {
    if !after_separator(trees, at) {
        return true;
    }
    // `::name`: a leading separator unless something that can be a path stands before it.
    match at.checked_sub(3).map(|before| &trees[before]) {
        None => true,
        Some(TokenTree::Ident(ident)) => ident == "use" || ident == "as" || ident == "return",
        Some(TokenTree::Punct(punct)) => punct.as_char() != '>',
        Some(_) => true,
    }
}

/// Whether the word stands right before `at`.
fn follows(trees: &[TokenTree], at: usize, word: &str) -> bool {
    at > 0 && matches!(&trees[at - 1], TokenTree::Ident(ident) if ident == word)
}

fn after_separator(trees: &[TokenTree], at: usize) -> bool {
    at >= 2 && separator(trees, at - 2)
}

/// Whether `::` stands at `at`.
fn separator(trees: &[TokenTree], at: usize) -> bool {
    let colon = |at: usize| matches!(trees.get(at), Some(TokenTree::Punct(p)) if p.as_char() == ':');
    colon(at) && colon(at + 1)
}

/// Whether `test` stands inside a `cfg(...)` or `cfg_attr(...)`.
fn mentions_cfg_test(tokens: &TokenStream) -> bool {
    let trees: Vec<TokenTree> = tokens.clone().into_iter().collect();
    trees.iter().enumerate().any(|(at, tree)| {
        let TokenTree::Group(group) = tree else { return false };
        let name = match at.checked_sub(1).map(|before| &trees[before]) {
            // `cfg!(...)`
            Some(TokenTree::Punct(punct)) if punct.as_char() == '!' => at - 1,
            _ => at,
        };
        let is_cfg = follows(&trees, name, "cfg") || follows(&trees, name, "cfg_attr");
        (is_cfg && mention(&group.stream(), "test").is_some()) || mentions_cfg_test(&group.stream())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(text: &str) -> Vec<String> {
        let mut names = BTreeSet::new();
        collect(&text.parse().unwrap(), false, &mut names);
        names.into_iter().collect()
    }

    #[test]
    fn names_at_the_start_of_paths_are_found() {
        assert_eq!(
            starts("use half::f16; fn f(x: libm::X) { ::num::zero::<other::T>() }"),
            ["half", "libm", "num", "other"]
        );
        assert_eq!(starts("use {a, b::c as d, e::{f, g::h}};"), ["a", "b", "e"]);
        assert_eq!(starts("use a; use ::b::{c}; extern crate d;"), ["a", "b", "d"]);
    }

    #[test]
    fn names_inside_paths_are_no_crates() {
        assert!(starts("fn f(half: f32) -> f32 { half.libm() + self.num }").is_empty());
        assert_eq!(starts("a::b::c()"), ["a"]);
        assert_eq!(starts("x.iter::<T>()"), ["iter"]);
        assert!(starts("<T>::zero::one()").is_empty());
        assert_eq!(starts("1 + ::num::zero()"), ["num"]);
    }

    #[test]
    fn a_dependence_on_test_is_seen() {
        let on_test = |text: &str| mentions_cfg_test(&text.parse().unwrap());
        assert!(on_test("#[cfg(test)] fn f() {}"));
        assert!(on_test("mod m { #[cfg(any(unix, not(test)))] fn f() {} }"));
        assert!(on_test("fn f() { if cfg!(all(test)) {} }"));
        assert!(!on_test("#[test] fn f() { test() } #[cfg(unix)] fn g(test: u32) {}"));
    }
}
