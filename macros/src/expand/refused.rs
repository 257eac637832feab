//! The device compiler's errors, at the user's tokens. A function with an error is left out of the host half,
//! which would often report the same error again.

use ferrogrid_syntax::compiled::Diagnostic;
use proc_macro2::{LineColumn, TokenStream, TokenTree};
use quote::ToTokens;
use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, Block, Error, ImplItemFn, ItemFn, ItemMod, ReturnType, TraitItemFn, Type, parse_quote};

/// The errors, each at the tokens of `module` that it points to.
pub(super) fn errors(module: &ItemMod, diagnostics: &[Diagnostic]) -> TokenStream {
    let mut leaves = Vec::new();
    flatten(module.to_token_stream(), &mut leaves);
    let error = |it: &Diagnostic| {
        let tokens = ends_of(&leaves, it).unwrap_or_else(|| module.ident.to_token_stream());
        Error::new_spanned(tokens, &it.message).to_compile_error()
    };
    diagnostics.iter().map(error).collect()
}

/// `module` without the bodies of the functions that have errors.
pub(super) fn without_bodies(module: &ItemMod, diagnostics: &[Diagnostic]) -> ItemMod {
    let mut module = module.clone();
    let starts = diagnostics.iter().map(|it| place(it.start)).collect();
    Bodies { starts }.visit_item_mod_mut(&mut module);
    module
}

struct Bodies {
    starts: Vec<LineColumn>,
}

impl Bodies {
    fn empty(&self, output: &ReturnType, attributes: &mut Vec<Attribute>, block: &mut Block) {
        let (open, close) = (block.brace_token.span.open().start(), block.brace_token.span.close().end());
        // The type of an `impl Trait` comes from the body.
        let is_opaque = matches!(output, ReturnType::Type(_, ty) if matches!(**ty, Type::ImplTrait(_)));
        if !is_opaque && self.starts.iter().any(|start| (open..close).contains(start)) {
            *block = parse_quote!({ ::core::unreachable!() });
            // Prevents warnings about items that only the body used.
            attributes.push(parse_quote!(#[allow(unused)]));
        }
    }
}

impl VisitMut for Bodies {
    fn visit_item_fn_mut(&mut self, function: &mut ItemFn) {
        self.empty(&function.sig.output, &mut function.attrs, &mut function.block);
        visit_mut::visit_item_fn_mut(self, function);
    }

    fn visit_impl_item_fn_mut(&mut self, function: &mut ImplItemFn) {
        self.empty(&function.sig.output, &mut function.attrs, &mut function.block);
        visit_mut::visit_impl_item_fn_mut(self, function);
    }

    fn visit_trait_item_fn_mut(&mut self, function: &mut TraitItemFn) {
        if let Some(block) = &mut function.default {
            self.empty(&function.sig.output, &mut function.attrs, block);
        }
        visit_mut::visit_trait_item_fn_mut(self, function);
    }
}

/// The first and the last token of the place of a diagnostic; `None` if there is no token.
fn ends_of(leaves: &[TokenTree], diagnostic: &Diagnostic) -> Option<TokenStream> {
    let (start, end) = (place(diagnostic.start), place(diagnostic.end));
    let end = end.max(after(start));
    let mut within = leaves.iter().filter(|it| it.span().start() < end && it.span().end() > start);
    let first = within.next()?;
    let last = within.next_back().unwrap_or(first);
    Some([first.clone(), last.clone()].into_iter().collect())
}

fn after(place: LineColumn) -> LineColumn {
    LineColumn { line: place.line, column: place.column + 1 }
}

/// A line and column as rustc counts them, both from 1.
fn place((line, column): (usize, usize)) -> LineColumn {
    LineColumn { line, column: column.saturating_sub(1) }
}

fn flatten(tokens: TokenStream, leaves: &mut Vec<TokenTree>) {
    for tree in tokens {
        match tree {
            TokenTree::Group(group) => flatten(group.stream(), leaves),
            leaf => leaves.push(leaf),
        }
    }
}
