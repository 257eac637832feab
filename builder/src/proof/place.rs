//! Where in the user's source a statement comes from: by the place that a mark carries, else by the line
//! table.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::PathBuf;

use ferrogrid_ptx::{Function, Location, Module, StatementKind};

use super::marks;
use crate::passes::lines::{remapped, source_file};

/// The files of a program's line table.
pub(crate) struct Places<'m, 't> {
    module: &'m Module<'t>,
    folders: &'m [(PathBuf, String)],
    files: BTreeMap<u32, String>,
    own: HashSet<u32>,
}

impl<'m, 't> Places<'m, 't> {
    /// `own` are the user's files by their names in the final line table, where names stand for `folders`.
    pub(crate) fn new(
        module: &'m Module<'t>,
        own: &HashSet<String>,
        folders: &'m [(PathBuf, String)],
    ) -> Self {
        let files: BTreeMap<u32, String> =
            module.files().map(|file| (file.number, remapped(file.path, folders))).collect();
        let own = files.iter().filter(|(_, path)| own.contains(*path)).map(|(number, _)| *number).collect();
        Places { module, folders, files, own }
    }

    /// File, line and column of a statement: of its mark, else of the user's last line before it, into which
    /// library code is inlined. Functions of libraries have their own places. A column of 0 is the whole
    /// line.
    pub(crate) fn of(&self, function: &Function<'_>, statement: usize) -> Option<(String, (usize, usize))> {
        if let Some((file, place)) = marks::place(self.module, function, statement) {
            return Some((remapped(&file, self.folders), place));
        }
        let places = locations(function, statement);
        let of_library =
            |place: &Location<'_>| self.files.get(&place.file).is_some_and(|file| !file.starts_with('/'));
        let own = places.clone().find(|place| self.own.contains(&place.file));
        let place = own.or_else(|| places.clone().find(of_library))?;
        let number = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        Some((self.files[&place.file].clone(), (number(place.line), number(place.column))))
    }

    /// The user's line of the first of these statements that comes from the user's own source: `
    /// (src/main.rs:7): \`let rank = t.thread_rank();\``. Empty if none does.
    pub(super) fn written(
        &self,
        function: &Function<'_>,
        statements: impl IntoIterator<Item = usize>,
    ) -> String {
        let places = statements.into_iter().filter_map(|at| locations(function, at).next());
        let Some(place) = places.into_iter().find(|place| self.own.contains(&place.file)) else {
            return String::new();
        };
        let file = &self.files[&place.file];
        let line = self.line(file, place.line).map_or_else(String::new, |line| format!(": `{line}`"));
        format!(" ({file}:{}){line}", place.line)
    }

    /// A line of the user's, without the spaces around it.
    fn line(&self, file: &str, number: u32) -> Option<String> {
        let text = fs::read_to_string(source_file(file, self.folders)).ok()?;
        Some(text.lines().nth(number.checked_sub(1)? as usize)?.trim().to_owned())
    }
}

/// The entries of the line table up to a statement, its own first.
fn locations<'f, 't>(
    function: &'f Function<'t>,
    statement: usize,
) -> impl Iterator<Item = Location<'t>> + Clone + use<'f, 't> {
    function.statements()[..=statement].iter().rev().filter_map(|statement| match statement.kind {
        StatementKind::Location(place) if place.line > 0 => Some(place),
        _ => None,
    })
}
