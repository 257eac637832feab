//! Where in the user's source a statement comes from, by the line table.

use std::collections::BTreeMap;

use ferrogrid_ptx::{Function, Location, Module, StatementKind};

/// The files of a program's line table.
pub(super) struct Places<'t> {
    files: BTreeMap<u32, &'t str>,
}

impl<'t> Places<'t> {
    pub(super) fn new(module: &Module<'t>) -> Self {
        Places { files: module.files().map(|file| (file.number, file.path)).collect() }
    }

    /// File, line and column of a statement of a function: the last place before it in the function's own file, which is the
    /// first that is not Rust's. Code of libraries is inlined there. A column of 0 is the whole line.
    pub(super) fn of(&self, function: &Function<'_>, statement: usize) -> Option<(&'t str, (usize, usize))> {
        let mut own: Option<Location<'_>> = None;
        for statement in &function.statements()[..=statement] {
            if let StatementKind::Location(place) = statement.kind
                && place.line > 0
                && own.map_or(self.may_be_own(&place), |own| own.file == place.file)
            {
                own = Some(place);
            }
        }
        let place = own?;
        let number = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        Some((self.files[&place.file], (number(place.line), number(place.column))))
    }

    fn may_be_own(&self, place: &Location<'_>) -> bool {
        self.files.get(&place.file).is_some_and(|file| !file.starts_with('/'))
    }
}
