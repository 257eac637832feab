//! The functions and constants of a PTX text: where each stands, which others it names, and which an entry
//! point can reach. It must not know what they are for.

use std::collections::{BTreeMap, BTreeSet};

/// A text cut into functions and what stands between them.
pub(super) struct Functions<'a> {
    /// In the order of the text.
    pub(super) items: Vec<Item<'a>>,
    /// The definition of each function and variable, by name.
    definitions: BTreeMap<&'a str, usize>,
}

/// A piece of the text.
pub(super) struct Item<'a> {
    pub(super) text: &'a str,
    pub(super) kind: Kind<'a>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    Entry,
    Definition(&'a str),
    Declaration(&'a str),
    /// A variable of the module alone, such as a constant.
    Variable(&'a str),
    /// Other variables, directives, comments.
    Other,
}

impl<'a> Kind<'a> {
    /// The name of a function that is defined here.
    pub(super) fn definition(self) -> Option<&'a str> {
        if let Kind::Definition(name) = self { Some(name) } else { None }
    }
}

impl<'a> Functions<'a> {
    pub(super) fn parse(text: &'a str) -> Self {
        let mut items = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let first = &rest[..line_end(rest)];
            let length = if begins_function(first) { function_length(rest) } else { first.len() };
            let (item, after) = rest.split_at(length);
            items.push(Item { text: item, kind: kind(item) });
            rest = after;
        }
        let definition = |(at, item): (usize, &Item<'a>)| match item.kind {
            Kind::Definition(name) | Kind::Variable(name) => Some((name, at)),
            _ => None,
        };
        let definitions = items.iter().enumerate().filter_map(definition).collect();
        Functions { items, definitions }
    }

    /// The names of all functions and variables.
    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.definitions.keys().copied()
    }

    /// The items that entry points can reach, by calls or through an address, without going through
    /// functions in `except`.
    pub(super) fn reachable(&self, except: &BTreeMap<&str, usize>) -> BTreeSet<usize> {
        let is_root = |item: &Item<'_>| matches!(item.kind, Kind::Entry | Kind::Other);
        let mut open: Vec<usize> = (0..self.items.len()).filter(|&at| is_root(&self.items[at])).collect();
        let mut found: BTreeSet<usize> = BTreeSet::new();
        while let Some(at) = open.pop() {
            if !found.insert(at) {
                continue;
            }
            let code = self.items[at].text.lines().filter(|line| !line.trim_start().starts_with("//"));
            let named = code.flat_map(words).filter(|word| !except.contains_key(word));
            open.extend(named.filter_map(|word| self.definitions.get(word)));
        }
        found
    }

    /// Whether the function at `at` calls through a register.
    pub(super) fn has_indirect_call(&self, at: usize) -> bool {
        let is_indirect = |line: &str| {
            let line = line.trim_start();
            line.starts_with("call") && line.contains(", prototype_")
        };
        self.items[at].text.lines().any(is_indirect)
    }

    /// The text without the functions and variables that `goes` is true of.
    pub(super) fn without(&self, goes: impl Fn(usize) -> bool) -> String {
        let stays = |(at, item): &(usize, &Item<'_>)| match item.kind {
            Kind::Entry | Kind::Other => true,
            Kind::Definition(_) | Kind::Variable(_) => !goes(*at),
            Kind::Declaration(name) => self.definitions.get(name).is_none_or(|&at| !goes(at)),
        };
        self.items.iter().enumerate().filter(stays).map(|(_, item)| item.text).collect()
    }
}

fn line_end(text: &str) -> usize {
    text.find('\n').map_or(text.len(), |at| at + 1)
}

fn begins_function(line: &str) -> bool {
    let line = line.strip_prefix(".visible ").or(line.strip_prefix(".weak ")).unwrap_or(line);
    line.starts_with(".func") || line.starts_with(".entry")
}

/// The bytes of the definition or declaration at the beginning of `text`.
fn function_length(text: &str) -> usize {
    let mut length = 0;
    let mut in_body = false;
    for line in text.split_inclusive('\n') {
        length += line.len();
        let line = line.trim_end();
        in_body |= line.ends_with('{') && !line.starts_with('\t');
        if line == "}" || (!in_body && line.ends_with(';')) {
            return length;
        }
    }
    length
}

fn kind(item: &str) -> Kind<'_> {
    let first = &item[..line_end(item)];
    if let Some(declaration) = first.strip_prefix(".global ") {
        return variable_name(declaration).map_or(Kind::Other, Kind::Variable);
    }
    if !begins_function(first) {
        return Kind::Other;
    }
    if first.contains(".entry ") {
        return Kind::Entry;
    }
    let Some(name) = function_name(first) else { return Kind::Other };
    if item.trim_end().ends_with('}') { Kind::Definition(name) } else { Kind::Declaration(name) }
}

/// The name in `.func name(`, `.func  (.param .b32 func_retval0) name`.
fn function_name(line: &str) -> Option<&str> {
    let rest = line.split_once(".func")?.1.trim_start();
    let rest = if rest.starts_with('(') { rest.split_once(')')?.1.trim_start() } else { rest };
    words(rest).next()
}

/// The name in `.align 8 .b8 name[16] = {...};`.
fn variable_name(declaration: &str) -> Option<&str> {
    words(declaration.split(['[', '=', ';']).next()?).last()
}

/// The names in a text.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !is_part_of_name(c)).filter(|word| !word.is_empty())
}

pub(super) fn is_part_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$'
}
