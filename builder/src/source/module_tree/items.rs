//! The items of annotated modules: what each needs to be found, and the names that it mentions.

use std::collections::BTreeSet;
use std::ops::Range;

use ferrogrid_syntax::{is_kernel_attribute, is_module_attribute, mention};
use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{
    Attribute, GenericParam, Item, ItemFn, ItemImpl, ItemMacro, ItemMod, ItemUse, Meta, TraitItem, UseTree,
    Visibility,
};

/// The crates that contain no annotated module of this one.
const FOREIGN: [&str; 3] = ["core", "ferrogrid", "std"];

/// An item of an annotated module.
#[derive(Debug)]
pub(crate) struct FoundItem {
    /// Its place, from the first attribute on.
    pub(super) range: Range<usize>,
    pub(super) kind: Kind,
    pub(super) mentions: Mentions,
}

/// What makes an item needed.
#[derive(Debug)]
pub(super) enum Kind {
    /// A function, constant or alias: a mention.
    Value(String),
    /// A type: a mention.
    Type(String),
    /// A trait: a mention, or one of its items, which code uses without naming the trait.
    Trait(String, BTreeSet<String>),
    /// An `impl`: all types and traits that its head names, of those of annotated modules.
    Impl(BTreeSet<String>),
    /// A `use`: any item of its module; if others see it, a mention of a name that it gives.
    Use(Import),
    /// Needed in any case: it may define anything, or the host knows it.
    Always,
}

#[derive(Debug, Default)]
pub(super) struct Import {
    /// The names that it gives.
    pub(super) names: BTreeSet<String>,
    /// Whether it gives others, by `*` or `as`.
    pub(super) is_open: bool,
    /// Whether other modules see it.
    pub(super) is_visible: bool,
    /// Whether its path begins with `crate`, `self` or `super`.
    pub(super) is_own: bool,
}

/// The names in the tokens of an item.
#[derive(Debug, Default)]
pub(super) struct Mentions {
    /// Names that mean something in the item's module, or what that imports.
    pub(super) here: BTreeSet<String>,
    /// Names after `::`, in imports and in macros for other modules, which mean something anywhere.
    pub(super) anywhere: BTreeSet<String>,
    /// Names after a dot.
    pub(super) members: BTreeSet<String>,
    /// Whether it imports all that some module has.
    pub(super) has_glob: bool,
}

impl FoundItem {
    /// Reads an item of `module`, whose tokens are `tokens`.
    pub(super) fn of(item: &Item, tokens: &TokenStream, module: &ItemMod) -> Self {
        let mut mentions = Mentions::default();
        match item {
            Item::Fn(function) => mentions.read(without_native(function), Context::Code),
            Item::Macro(it) if is_exported(it, module) => mentions.read(tokens.clone(), Context::Macro),
            _ => mentions.read(tokens.clone(), Context::Code),
        }
        FoundItem { range: range(tokens), kind: Kind::of(item), mentions }
    }

    /// What it imports.
    pub(super) fn import(&self) -> Option<&Import> {
        if let Kind::Use(import) = &self.kind { Some(import) } else { None }
    }

    /// The name of a type or trait.
    pub(super) fn type_name(&self) -> Option<&str> {
        match &self.kind {
            Kind::Type(name) | Kind::Trait(name, _) => Some(name),
            _ => None,
        }
    }
}

impl Kind {
    fn of(item: &Item) -> Self {
        match item {
            Item::Fn(it) => Kind::Value(name(&it.sig.ident)),
            Item::Const(it) => Kind::Value(name(&it.ident)),
            Item::Struct(it) => Kind::Type(name(&it.ident)),
            Item::Enum(it) => Kind::Type(name(&it.ident)),
            Item::Union(it) => Kind::Type(name(&it.ident)),
            Item::Type(it) => Kind::Value(name(&it.ident)),
            Item::Trait(it) => Kind::Trait(name(&it.ident), it.items.iter().filter_map(member).collect()),
            Item::Impl(it) => Kind::Impl(head(it)),
            Item::Use(it) => Kind::Use(Import::of(it)),
            _ => Kind::Always,
        }
    }
}

/// The name of an item of a trait; of a macro's none, which may stand for several.
fn member(item: &TraitItem) -> Option<String> {
    match item {
        TraitItem::Const(it) => Some(name(&it.ident)),
        TraitItem::Fn(it) => Some(name(&it.sig.ident)),
        TraitItem::Type(it) => Some(name(&it.ident)),
        _ => None,
    }
}

impl Import {
    fn of(item: &ItemUse) -> Self {
        let is_own = match &item.tree {
            UseTree::Path(path) => ["crate", "self", "super"].iter().any(|it| path.ident == it),
            _ => false,
        };
        let is_visible = !matches!(item.vis, Visibility::Inherited);
        let mut import = Import { is_visible, is_own, ..Import::default() };
        import.read(&item.tree);
        import
    }

    fn read(&mut self, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => self.read(&path.tree),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.read(tree)),
            UseTree::Name(it) => self.names.extend([name(&it.ident)]),
            _ => self.is_open = true,
        }
    }
}

/// The tokens of a function; of a kernel without its native body, which often has the name of some kernel.
fn without_native(function: &ItemFn) -> TokenStream {
    let mut function = function.clone();
    for attribute in function.attrs.iter_mut().filter(|it| is_kernel_attribute(it)) {
        let Meta::List(list) = &mut attribute.meta else { continue };
        let mut is_native = false;
        let options = std::mem::take(&mut list.tokens).into_iter().filter(|tree| {
            match tree {
                TokenTree::Ident(ident) if ident == "native" => is_native = true,
                TokenTree::Punct(punct) if punct.as_char() == ',' => is_native = false,
                _ => {}
            }
            !is_native
        });
        list.tokens = options.collect();
    }
    function.into_token_stream()
}

/// The names in the trait and the type of an `impl`, without those of paths and of its own parameters.
fn head(item: &ItemImpl) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    if let Some((path, _)) = &item.trait_ {
        plain_names(path.to_token_stream(), &mut names);
    }
    plain_names(item.self_ty.to_token_stream(), &mut names);
    for parameter in &item.generics.params {
        match parameter {
            GenericParam::Type(it) => names.remove(&name(&it.ident)),
            GenericParam::Const(it) => names.remove(&name(&it.ident)),
            GenericParam::Lifetime(_) => continue,
        };
    }
    names
}

/// Adds the names that are no part of a longer path.
fn plain_names(tokens: TokenStream, names: &mut BTreeSet<String>) {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, tree) in trees.iter().enumerate() {
        match tree {
            TokenTree::Group(group) => plain_names(group.stream(), names),
            TokenTree::Ident(ident) if !is(&trees, at + 1, ':') && (at == 0 || !is(&trees, at - 1, ':')) => {
                names.insert(name(ident));
            }
            _ => {}
        }
    }
}

/// What the tokens around a name make of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Context {
    Code,
    /// An import; whether from a foreign crate.
    Import(bool),
    /// A macro for other modules, whose names mean what they mean where it is used.
    Macro,
}

impl Mentions {
    fn read(&mut self, tokens: TokenStream, outer: Context) {
        let trees: Vec<TokenTree> = tokens.into_iter().collect();
        let mut context = outer;
        for (at, tree) in trees.iter().enumerate() {
            match tree {
                TokenTree::Group(group) => self.read(group.stream(), context),
                TokenTree::Punct(punct) if punct.as_char() == ';' => context = outer,
                TokenTree::Punct(punct) => {
                    self.has_glob |= punct.as_char() == '*' && context == Context::Import(false);
                }
                TokenTree::Ident(ident) if ident == "use" => {
                    let first = trees[at + 1..].iter().find(|it| !matches!(it, TokenTree::Punct(_)));
                    context = Context::Import(
                        matches!(first, Some(TokenTree::Ident(it)) if FOREIGN.iter().any(|foreign| it == foreign)),
                    );
                }
                TokenTree::Ident(ident) => {
                    let member = at > 0 && is(&trees, at - 1, '.') && !(at > 1 && is(&trees, at - 2, '.'));
                    let in_path = at > 1 && is(&trees, at - 1, ':') && is(&trees, at - 2, ':');
                    let names = match context {
                        _ if member => &mut self.members,
                        Context::Code if !in_path => &mut self.here,
                        Context::Import(true) => &mut self.here,
                        _ => &mut self.anywhere,
                    };
                    names.insert(name(ident));
                }
                // `"{NAME}"` mentions a constant.
                TokenTree::Literal(literal) => {
                    let text = literal.to_string();
                    let captured = text.split('{').skip(1).map(|rest| {
                        let end = rest.find(|it: char| !it.is_alphanumeric() && it != '_');
                        rest[..end.unwrap_or(rest.len())].to_owned()
                    });
                    let names = if context == Context::Code { &mut self.here } else { &mut self.anywhere };
                    names.extend(captured);
                }
            }
        }
    }
}

/// Whether other modules may use the macro that is defined here.
fn is_exported(item: &ItemMacro, module: &ItemMod) -> bool {
    let Some(ident) = &item.ident else { return false };
    let is_doc = |attribute: &Attribute| attribute.path().is_ident("doc");
    let is_mention = |other: &Item| match other {
        Item::Use(it) => mention(&it.tree.to_token_stream(), &ident.to_string()).is_some(),
        _ => false,
    };
    let items = || module.content.iter().flat_map(|(_, items)| items);
    !item.attrs.iter().chain(&module.attrs).all(|it| is_doc(it) || is_module_attribute(it))
        || items().any(is_mention)
}

/// The place of an item. Tokens that are in no source have none.
fn range(tokens: &TokenStream) -> Range<usize> {
    let ranges = tokens.clone().into_iter().map(|tree| tree.span().byte_range());
    let ranges = ranges.filter(|range| !range.is_empty());
    ranges.reduce(|all, next| all.start.min(next.start)..all.end.max(next.end)).unwrap_or_default()
}

fn is(trees: &[TokenTree], at: usize, char: char) -> bool {
    matches!(trees.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == char)
}

fn name(ident: &proc_macro2::Ident) -> String {
    ident.to_string().trim_start_matches("r#").to_owned()
}
