//! The line table: its paths become the same on every machine, or it is removed. The compiler is not told to
//! omit it: builds with and without it share the crates that kernels use.

use std::path::{Path, PathBuf};

use ferrogrid_ptx::{Edits, Module, StatementKind};

use super::Wanted;

/// Removes the line table, or makes its paths readable.
pub(super) fn rewrite<'t>(module: &Module<'t>, wanted: &Wanted<'_>, edits: &mut Edits<'t>) {
    if wanted.lines {
        module.files().for_each(|file| edits.replace(file.path, remapped(file.path, wanted.folders)));
        return;
    }
    module.files().for_each(|file| edits.remove_lines(file.text));
    let statements = module.functions().flat_map(|function| function.statements());
    for statement in statements.filter(|it| matches!(it.kind, StatementKind::Location(_))) {
        edits.remove_lines(statement.text);
    }
}

/// A path with the name for one of `folders` in place of that folder. Of a path in cargo's registry, only the
/// part below the registry stays.
pub(crate) fn remapped(path: &str, folders: &[(PathBuf, String)]) -> String {
    for (folder, name) in folders {
        if let Ok(rest) = Path::new(path).strip_prefix(folder) {
            return format!("{name}{}", rest.display());
        }
    }
    let registry = "/registry/src/";
    let after = path.find(registry).map(|at| &path[at + registry.len()..]);
    after.and_then(|rest| rest.split_once('/')).map_or(path, |(_, rest)| rest).to_owned()
}

/// The file of a path that [`remapped`] has made with these `folders`.
pub(crate) fn source_file(path: &str, folders: &[(PathBuf, String)]) -> PathBuf {
    let longest =
        folders.iter().filter(|(_, name)| path.starts_with(name.as_str())).max_by_key(|(_, name)| name.len());
    longest.map_or_else(|| path.into(), |(folder, name)| folder.join(&path[name.len()..]))
}

#[cfg(test)]
mod tests {
    use super::super::tests::after;
    use super::*;

    const TEXT: &str = ".visible .entry k()\n{\n\t.loc\t1 7 3\n\tret;\n}\n\
        \t.file\t1 \"/w/out/source/src/main.rs\"\n\
        \t.file\t2 \"/rustc/abc/library/core/src/num.rs\"\n\
        \t.file\t3 \"/h/.cargo/registry/src/index-1/libm-0.2.16/src/lib.rs\"\n";

    #[test]
    fn paths_of_files_are_made_readable() {
        let folders = vec![("/w/out/source".into(), String::new()), ("/rustc/abc".into(), "/r/".to_owned())];
        let wanted = Wanted { lines: true, folders: &folders, ..Wanted::default() };
        let expected = TEXT
            .replace("/w/out/source/src/main.rs", "src/main.rs")
            .replace("/rustc/abc/library", "/r/library")
            .replace("/h/.cargo/registry/src/index-1/", "");
        assert_eq!(after(TEXT, |module, edits| rewrite(module, &wanted, edits)), expected);
    }

    #[test]
    fn a_readable_path_maps_back_to_its_file() {
        let folders = [("/w".into(), String::new()), ("/home/me/other".into(), "other/".to_owned())];
        for file in ["/w/src/main.rs", "/home/me/other/src/lib.rs"] {
            assert_eq!(source_file(&remapped(file, &folders), &folders), Path::new(file));
        }
    }

    #[test]
    fn without_lines_nothing_of_the_table_is_left() {
        let text = after(TEXT, |module, edits| rewrite(module, &Wanted::default(), edits));
        assert_eq!(text, ".visible .entry k()\n{\n\tret;\n}\n");
    }
}
