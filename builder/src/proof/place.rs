//! Where in the user's source a statement comes from, by the line table.

use std::collections::{BTreeMap, HashSet};

use ferrogrid_ptx::{Function, Location, Module, StatementKind};

/// The files of a program's line table.
pub(super) struct Places<'t> {
    files: BTreeMap<u32, &'t str>,
    own: HashSet<u32>,
}

impl<'t> Places<'t> {
    /// `own` are the user's files, as the line table names them.
    pub(super) fn new(module: &Module<'t>, own: &HashSet<String>) -> Self {
        let own = module.files().filter(|file| own.contains(file.path)).map(|file| file.number);
        Places { own: own.collect(), files: module.files().map(|file| (file.number, file.path)).collect() }
    }

    /// File, line and column of a statement of a function: the last place of the user's before it; code of libraries is inlined
    /// there. A column of 0 is the whole line. Functions of libraries have places of their own.
    pub(super) fn of(&self, function: &Function<'_>, statement: usize) -> Option<(&'t str, (usize, usize))> {
        let places =
            function.statements()[..=statement].iter().rev().filter_map(|statement| match statement.kind {
                StatementKind::Location(place) if place.line > 0 => Some(place),
                _ => None,
            });
        let of_library =
            |place: &Location<'_>| self.files.get(&place.file).is_some_and(|file| !file.starts_with('/'));
        let own = places.clone().find(|place| self.own.contains(&place.file));
        let place = own.or_else(|| places.clone().find(of_library))?;
        let number = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        Some((self.files[&place.file], (number(place.line), number(place.column))))
    }
}
