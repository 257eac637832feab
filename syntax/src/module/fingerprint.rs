//! The fingerprint of a module: a hash of its name and tokens. It is the same whether the tokens come from
//! the compiler (in the macro) or were lexed from the file (in the build step). Spacing, comments and doc
//! comments do not count.

use std::fmt;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use xxhash_rust::xxh3::Xxh3;

/// Identifies one module's content; written as 32 lower-case hexadecimal digits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(pub u128);

impl Fingerprint {
    /// The first 16 hexadecimal digits, as used in entry names.
    pub fn short(&self) -> String {
        self.to_string()[..16].to_owned()
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The fingerprint of a module called `name` with `tokens` between its braces.
pub fn fingerprint(name: &str, tokens: &TokenStream) -> Fingerprint {
    let mut hasher = Xxh3::new();
    hasher.update(name.as_bytes());
    hasher.update(b"\0");
    hash_stream(tokens, &mut hasher);
    Fingerprint(hasher.digest128())
}

fn hash_stream(tokens: &TokenStream, hasher: &mut Xxh3) {
    let trees: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let mut rest = trees.as_slice();
    while let Some(first) = rest.first() {
        let doc = doc_attribute_length(rest);
        if doc > 0 {
            rest = &rest[doc..];
            continue;
        }
        hash_tree(first, hasher);
        rest = &rest[1..];
    }
}

fn hash_tree(tree: &TokenTree, hasher: &mut Xxh3) {
    match tree {
        TokenTree::Group(group) => {
            let (open, close): (&[u8], &[u8]) = match group.delimiter() {
                Delimiter::Parenthesis => (b"(", b")"),
                Delimiter::Brace => (b"{", b"}"),
                Delimiter::Bracket => (b"[", b"]"),
                // Invisible groups exist only in compiler tokens and do not change the meaning.
                Delimiter::None => (b"", b""),
            };
            hasher.update(open);
            hash_stream(&group.stream(), hasher);
            hasher.update(close);
        }
        TokenTree::Ident(ident) => update(hasher, &ident.to_string()),
        TokenTree::Literal(literal) => update(hasher, &literal.to_string()),
        TokenTree::Punct(punct) => {
            let mut buffer = [0; 4];
            hasher.update(punct.as_char().encode_utf8(&mut buffer).as_bytes());
        }
    }
}

fn update(hasher: &mut Xxh3, text: &str) {
    hasher.update(text.as_bytes());
    hasher.update(b"\0");
}

/// How many trees at the start of `trees` are one `#[doc ...]` or `#![doc ...]`; 0 for none.
fn doc_attribute_length(trees: &[TokenTree]) -> usize {
    let is_punct =
        |tree: Option<&TokenTree>, c: char| matches!(tree, Some(TokenTree::Punct(p)) if p.as_char() == c);
    if !is_punct(trees.first(), '#') {
        return 0;
    }
    let body = if is_punct(trees.get(1), '!') { 2 } else { 1 };
    let Some(TokenTree::Group(group)) = trees.get(body) else {
        return 0;
    };
    let names_doc =
        matches!(group.stream().into_iter().next(), Some(TokenTree::Ident(ident)) if ident == "doc");
    if group.delimiter() == Delimiter::Bracket && names_doc { body + 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Fingerprint {
        fingerprint("m", &text.parse().unwrap())
    }

    #[test]
    fn spacing_and_comments_do_not_count() {
        assert_eq!(of("/// Doc.\nfn f ( ) { 1+2 } // end"), of("//! other\n fn f() {\n 1 + 2\n}"));
    }

    #[test]
    fn every_token_counts() {
        let base = of("fn f() -> f32 { 1.0 }");
        for other in [
            "fn g() -> f32 { 1.0 }",
            "fn f() -> f32 { 1.00 }",
            "fn f() -> f32 { [1.0] }",
            "fn f() -> f64 { 1.0 }",
        ] {
            assert_ne!(base, of(other), "{other}");
        }
    }

    #[test]
    fn the_name_counts() {
        let tokens: TokenStream = "fn f() {}".parse().unwrap();
        assert_ne!(fingerprint("a", &tokens), fingerprint("b", &tokens));
    }

    #[test]
    fn neighbouring_tokens_do_not_merge() {
        assert_ne!(of("ab c"), of("a bc"));
        for (one, other) in [("(a) b", "(a b)"), ("{a} b", "{a b}"), ("[a] b", "[a b]")] {
            assert_ne!(of(one), of(other), "{one} and {other}");
        }
    }
}
