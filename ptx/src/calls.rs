//! References between the functions and variables of a module: by calls, by address, in the values of
//! variables.

use std::collections::BTreeSet;

use crate::declaration::words;
use crate::names::NameMap;
use crate::{Instruction, Item, Module, StatementKind};

/// The references between the items of a module.
#[derive(Debug)]
pub struct Calls<'t> {
    /// The item that defines each function and variable.
    definitions: NameMap<&'t str, usize>,
    /// The names of functions and variables that each item refers to.
    mentioned: Vec<Vec<&'t str>>,
    by_address: Vec<bool>,
}

impl<'t> Calls<'t> {
    /// The references in `module`.
    pub fn of(module: &Module<'t>) -> Self {
        let mut definitions = NameMap::default();
        for (at, item) in module.items.iter().enumerate() {
            match item {
                Item::Function(function) if function.body.is_some() => {
                    definitions.insert(function.name, at);
                }
                Item::Variable(variable) => {
                    definitions.extend(variable.names.iter().map(|declared| (declared.name, at)));
                }
                _ => {}
            }
        }
        let mentioned = module.items.iter().map(|item| mentioned(item, &definitions)).collect();
        let calls = |item: &Item<'_>| {
            item.function().is_some_and(|it| it.instructions().any(Instruction::calls_by_address))
        };
        let by_address = module.items.iter().map(calls);
        Calls { by_address: by_address.collect(), definitions, mentioned }
    }

    /// The item that defines the function or variable `name`.
    pub fn definition(&self, name: &str) -> Option<usize> {
        self.definitions.get(name).copied()
    }

    /// The names of functions and variables of the module that an item refers to.
    pub fn mentioned_by(&self, item: usize) -> &[&'t str] {
        &self.mentioned[item]
    }

    /// The names of functions and variables of the module that any item refers to.
    pub fn mentioned(&self) -> impl Iterator<Item = &'t str> {
        self.mentioned.iter().flatten().copied()
    }

    /// Whether any item calls a function whose address is in a register.
    pub fn any_calls_by_address(&self) -> bool {
        self.by_address.contains(&true)
    }

    /// The functions of `module` whose addresses are taken, as items.
    pub fn behind_pointers(&self, module: &Module<'_>) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        for (at, item) in module.items.iter().enumerate() {
            let names: Vec<&str> = match item {
                Item::Function(function) => {
                    let others = function.instructions().filter(|instruction| instruction.callee().is_none());
                    others.flat_map(Instruction::uses).collect()
                }
                _ => self.mentioned[at].clone(),
            };
            let items = names.into_iter().filter_map(|name| self.definition(name));
            found.extend(items.filter(|&item| module.items[item].function().is_some()));
        }
        found
    }

    /// Whether an item calls a function whose address is in a register.
    pub fn calls_by_address(&self, item: usize) -> bool {
        self.by_address[item]
    }

    /// The items that `roots` can reach by calls or through addresses, the roots included, but not through
    /// names for which `except` holds.
    pub fn reachable(
        &self,
        roots: impl IntoIterator<Item = usize>,
        except: impl Fn(&str) -> bool,
    ) -> BTreeSet<usize> {
        let mut open: Vec<usize> = roots.into_iter().collect();
        let mut found = BTreeSet::new();
        while let Some(item) = open.pop() {
            if found.insert(item) {
                let names = self.mentioned[item].iter().filter(|name| !except(name));
                open.extend(names.filter_map(|name| self.definition(name)));
            }
        }
        found
    }
}

fn mentioned<'t>(item: &Item<'t>, definitions: &NameMap<&'t str, usize>) -> Vec<&'t str> {
    let mut names: Vec<&str> = match item {
        Item::Function(function) => {
            let mut names = Vec::new();
            for statement in function.statements() {
                match &statement.kind {
                    StatementKind::Instruction(instruction) => {
                        instruction.operands.iter().for_each(|it| it.collect_names(&mut names));
                    }
                    StatementKind::Targets { targets, .. } => names.extend(targets),
                    _ => {}
                }
            }
            names
        }
        Item::Variable(variable) => variable.names.iter().flat_map(|declared| declared.mentions()).collect(),
        Item::Directive(text) => words(text).collect(),
        _ => Vec::new(),
    };
    // Most are registers, which need not be looked up.
    names.retain(|name| name.as_bytes()[0] != b'%' && definitions.contains_key(name));
    names.sort_unstable();
    names.dedup();
    names
}
