//! Which items of annotated modules a part of a crate needs: what its own modules reach by names.
//!
//! A name counts wherever it may mean the item, so some items are kept that nothing uses. An item that is left out is
//! checked in the part of its own module, which has all of that.

use std::collections::BTreeSet;
use std::ops::Range;

use super::items::{FoundItem, Kind};

/// For each module the places of the items that a part with `modules` does not need; its own are all needed.
pub(super) fn unneeded(items: &[Vec<FoundItem>], modules: &[usize]) -> Vec<Vec<Range<usize>>> {
    let reached = Reached::by(items, modules);
    let unneeded = |at: usize| {
        let items = items[at].iter().zip(&reached.needed[at]).filter(|(_, needed)| !**needed);
        items.map(|(item, _)| item.range.clone()).collect()
    };
    (0..items.len()).map(unneeded).collect()
}

/// What a part needs, and the names that this mentions.
struct Reached<'a> {
    /// Whether each item is needed, by module.
    needed: Vec<Vec<bool>>,
    /// The names that mean something in each module.
    here: Vec<BTreeSet<&'a str>>,
    anywhere: BTreeSet<&'a str>,
    members: BTreeSet<&'a str>,
    /// The needed types and traits.
    types: BTreeSet<&'a str>,
    /// For each module the types and traits that it has, itself or from another annotated module, needed or not.
    known: Vec<BTreeSet<&'a str>>,
    /// Whether anything but imports of a module is needed.
    is_entered: Vec<bool>,
    /// Whether a module imports all that some other has.
    has_glob: Vec<bool>,
}

impl<'a> Reached<'a> {
    fn by(items: &'a [Vec<FoundItem>], modules: &[usize]) -> Self {
        let mut reached = Reached {
            needed: items.iter().map(|items| vec![false; items.len()]).collect(),
            here: vec![BTreeSet::new(); items.len()],
            anywhere: BTreeSet::new(),
            members: BTreeSet::new(),
            types: BTreeSet::new(),
            known: known(items),
            is_entered: vec![false; items.len()],
            has_glob: vec![false; items.len()],
        };
        let mut is_complete = false;
        while !is_complete {
            is_complete = true;
            for (module, items) in items.iter().enumerate() {
                for (at, item) in items.iter().enumerate() {
                    if !reached.needed[module][at]
                        && (modules.contains(&module) || reached.needs(item, module))
                    {
                        reached.add(item, module, at);
                        is_complete = false;
                    }
                }
            }
        }
        reached
    }

    fn needs(&self, item: &FoundItem, module: usize) -> bool {
        match &item.kind {
            Kind::Value(name) | Kind::Type(name) => self.mentions(name, module),
            Kind::Trait(name, members) => {
                let is_used =
                    |it: &String| self.members.contains(it.as_str()) || self.anywhere.contains(it.as_str());
                self.mentions(name, module) || members.iter().any(is_used)
            }
            Kind::Impl(head) => head.iter().all(|name| {
                self.types.contains(name.as_str()) || !self.known[module].contains(name.as_str())
            }),
            Kind::Use(import) => {
                let is_used =
                    || import.is_open || import.names.iter().any(|name| self.mentions(name, module));
                self.is_entered[module] || import.is_visible && is_used()
            }
            Kind::Always => true,
        }
    }

    /// Whether `name` may mean an item of the module.
    fn mentions(&self, name: &str, module: usize) -> bool {
        self.anywhere.contains(name) || self.here[module].contains(name)
    }

    fn add(&mut self, item: &'a FoundItem, module: usize, at: usize) {
        self.needed[module][at] = true;
        self.is_entered[module] |= !matches!(item.kind, Kind::Use(_));
        self.types.extend(item.type_name());
        let names = |names: &'a BTreeSet<String>| names.iter().map(String::as_str);
        self.here[module].extend(names(&item.mentions.here));
        self.anywhere.extend(names(&item.mentions.anywhere));
        self.members.extend(names(&item.mentions.members));
        self.has_glob[module] |= item.mentions.has_glob;
        if self.has_glob[module] {
            self.anywhere.extend(self.here[module].iter().copied());
        }
    }
}

/// For each module the types and traits that it defines, or imports from another annotated module.
fn known(items: &[Vec<FoundItem>]) -> Vec<BTreeSet<&str>> {
    let mut all: BTreeSet<&str> = items.iter().flatten().filter_map(FoundItem::type_name).collect();
    // A name that a module passes on from another crate may mean that.
    for import in items.iter().flatten().filter_map(FoundItem::import) {
        if import.is_visible && !import.is_own {
            all.retain(|name| !import.names.contains(*name));
        }
    }
    let mut known = Vec::new();
    for items in items {
        let imports = items.iter().filter_map(FoundItem::import).filter(|import| import.is_own);
        let imported = imports.flat_map(|import| &import.names).filter_map(|name| all.get(name.as_str()));
        known.push(imported.copied().chain(items.iter().filter_map(FoundItem::type_name)).collect());
    }
    known
}

#[cfg(test)]
mod tests {
    use quote::ToTokens;

    use super::*;

    /// The names of functions and types that a part with the first module does not need of the second, `b`.
    fn unneeded_of(first: &str, second: &str) -> Vec<String> {
        let text = format!("mod a {{ {first} }} mod b {{ {second} }}");
        let file: syn::File = syn::parse_str(&text).unwrap();
        let modules = file.items.iter().map(|item| {
            let syn::Item::Mod(module) = item else { panic!("{text}") };
            let items = module.content.iter().flat_map(|(_, items)| items);
            items.map(|item| FoundItem::of(item, &item.to_token_stream(), module)).collect()
        });
        let modules: Vec<_> = modules.collect();
        assert!(unneeded(&modules, &[0])[0].is_empty());
        let words = unneeded(&modules, &[0]).remove(1).into_iter().map(|range| {
            let mut words = text[range].split(|it: char| !it.is_alphanumeric()).filter(|it| !it.is_empty());
            words
                .by_ref()
                .find(|word| ["const", "fn", "impl", "struct", "trait", "type", "use"].contains(word));
            words.next().unwrap().to_owned()
        });
        words.collect()
    }

    const FUNCTIONS: &str =
        "/// Doc.\n#[inline] pub fn f() { g() } fn g() {} pub fn h() {} const K: u32 = 1;";

    #[test]
    fn functions_are_needed_that_others_name_and_that_those_call() {
        assert_eq!(unneeded_of("fn k() {}", FUNCTIONS), ["f", "g", "h", "K"]);
        assert_eq!(unneeded_of("fn k() { super::b::f() }", FUNCTIONS), ["h", "K"]);
        assert_eq!(unneeded_of("use super::b::{f as call}; fn k() { call() }", FUNCTIONS), ["h", "K"]);
        assert_eq!(unneeded_of("use super::b; fn k() { b::h() }", FUNCTIONS), ["f", "g", "K"]);
        assert_eq!(unneeded_of("fn k() { use super::b::*; h() }", FUNCTIONS), ["f", "g", "K"]);
        assert_eq!(unneeded_of("#[kernel(block = super::b::K)] fn k() {}", FUNCTIONS), ["f", "g", "h"]);
        assert_eq!(
            unneeded_of("fn k() {}", &format!("{FUNCTIONS} pub fn k() {{ info!(\"{{K}}\") }}")).len(),
            5
        );
        assert_eq!(
            unneeded_of("use super::b::l;", &format!("{FUNCTIONS} pub fn l() {{ info!(\"{{K}}\") }}")),
            ["f", "g", "h"]
        );
    }

    #[test]
    fn variables_fields_and_native_bodies_are_no_mentions() {
        assert_eq!(
            unneeded_of("fn k(f: u32) { let h = f; s.g = h; s.f() }", FUNCTIONS),
            ["f", "g", "h", "K"]
        );
        assert_eq!(unneeded_of("#[kernel(native = super::f)] fn k() {}", FUNCTIONS), ["f", "g", "h", "K"]);
        assert_eq!(
            unneeded_of("use ferrogrid::fold::{f, *}; fn k() { f() }", FUNCTIONS),
            ["f", "g", "h", "K"]
        );
        // After `..` a name is a value.
        assert_eq!(unneeded_of("use super::b::*; fn k() { for _ in 0..f {} }", FUNCTIONS), ["h", "K"]);
    }

    const TYPES: &str = "pub struct S; pub trait T { fn t(&self); } trait U {} impl T for S { fn t(&self) { u() } } \
        impl U for S {} impl core::ops::Add for S {} impl<S> U for [S; 2] {} fn u() {}";

    #[test]
    fn impls_are_needed_where_their_types_and_traits_are() {
        assert_eq!(unneeded_of("fn k() {}", TYPES), ["S", "T", "U", "T", "U", "core", "S", "u"]);
        // A method without its trait's name.
        assert_eq!(unneeded_of("fn k(s: super::b::S) { s.t() }", TYPES), ["U", "U", "S"]);
        assert_eq!(unneeded_of("fn k(s: super::b::S) {}", TYPES), ["T", "U", "T", "U", "S", "u"]);
        // The head's `U` may be that of another crate.
        let foreign = "use other::U; pub struct S; impl U for S {} pub struct R; impl U for R {}";
        assert_eq!(unneeded_of("trait U {} fn k(s: super::b::S) {}", foreign), ["R", "U"]);
    }

    #[test]
    fn imports_are_needed_with_a_module_and_for_what_they_pass_on() {
        let second = "use super::c::t; pub use super::c::f; fn g() {}";
        assert_eq!(unneeded_of("fn k() {}", second), ["super", "super", "g"]);
        assert_eq!(unneeded_of("use super::b::f;", second), ["super", "g"]);
        assert!(unneeded_of("use super::b::g;", second).is_empty());
        assert!(unneeded_of("fn k() {}", "pub use super::c::*;").is_empty());
    }

    #[test]
    fn what_macros_make_is_needed() {
        let second =
            "macro_rules! m { ($t:ty) => { impl X for $t { fn x() { f() } } } } m!(u8); fn f() {} fn g() {}";
        assert_eq!(unneeded_of("fn k() {}", second), ["g"]);
        // What another module's macro names may be here.
        let first = "macro_rules! m { () => { g() } } pub(crate) use m;";
        assert_eq!(unneeded_of(first, "fn k() { m!() } fn g() {}"), ["k"]);
        assert_eq!(unneeded_of("macro_rules! m { () => { g() } }", "fn k() {} fn g() {}"), ["k", "g"]);
    }
}
