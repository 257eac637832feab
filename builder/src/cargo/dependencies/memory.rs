//! The stamp of a build of externs: its inputs and its outputs. While both are unchanged, nothing is built.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::artifacts::Inputs;
use crate::cache::{self, Lock};
use crate::error::Error;

/// The libraries that the inner cargo has built.
#[derive(Debug, Default)]
pub(super) struct Libraries {
    /// Extern name and library of what device crates are linked against.
    pub(super) crates: Vec<(String, PathBuf)>,
    /// All other libraries that rustc may read: an interrupted build may have left out any of them.
    pub(super) beneath: Vec<PathBuf>,
    /// The files and variables they were made of.
    pub(super) inputs: Inputs,
}

/// The content of a stamp.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) libraries: Libraries,
    pub(super) key: String,
}

/// The text of a stamp: the inputs that are known beforehand, then a line for each library (without a name
/// for dependencies), source and variable. A source written after `begun` may have been read before that, so
/// the next build looks again.
pub(super) fn memory_of(inputs: &str, libraries: &Libraries, begun: SystemTime) -> String {
    let mut text = format!("{inputs}\n");
    let mut line = |fields: [&str; 4]| text.push_str(&format!("{}\n", fields.join("\t")));
    let named = libraries.crates.iter().map(|(name, file)| (name.as_str(), file));
    for (name, file) in named.chain(libraries.beneath.iter().map(|file| ("", file))) {
        line(["library", name, &cache::file_key(file), &file.to_string_lossy()]);
    }
    for file in &libraries.inputs.files {
        let is_old = fs::metadata(file).and_then(|it| it.modified()).is_ok_and(|time| time < begun);
        let key =
            if is_old || !file.exists() { cache::file_key(file) } else { "written meanwhile".to_owned() };
        line(["source", "", &key, &file.to_string_lossy()]);
    }
    for name in &libraries.inputs.variables {
        line(["variable", name, &variable_key(name), ""]);
    }
    text
}

fn variable_key(name: &str) -> String {
    std::env::var_os(name).map_or_else(|| "unset".to_owned(), |value| cache::key(value.as_encoded_bytes()))
}

/// A line of a stamp.
struct Entry<'a> {
    kind: &'a str,
    name: &'a str,
    key: &'a str,
    file: &'a Path,
}

impl<'a> Entry<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let mut fields = line.splitn(4, '\t');
        let mut next = || fields.next();
        Some(Entry { kind: next()?, name: next()?, key: next()?, file: Path::new(next()?) })
    }

    fn is_unchanged(&self) -> bool {
        match self.kind {
            "variable" => variable_key(self.name) == self.key,
            _ => cache::file_key(self.file) == self.key,
        }
    }
}

/// The externs of the last build, if they were built from the same inputs and all files are unchanged.
pub(super) fn remembered(stamp: &Path, inputs: &str) -> Option<Memory> {
    let text = fs::read_to_string(stamp).ok()?;
    let mut lines = text.lines();
    if lines.next()? != inputs {
        return None;
    }
    let mut libraries = Libraries::default();
    let mut made = String::new();
    for line in lines {
        let entry = Entry::read(line).filter(Entry::is_unchanged)?;
        let file = entry.file.to_owned();
        match (entry.kind, entry.name) {
            ("source", _) => drop(libraries.inputs.files.insert(file)),
            ("variable", name) => drop(libraries.inputs.variables.insert(name.to_owned())),
            (_, "") => libraries.beneath.push(file),
            (_, name) => libraries.crates.push((name.to_owned(), file)),
        }
        if entry.kind == "library" {
            made.push_str(line);
        }
    }
    let key = cache::key(format!("{inputs}{made}").as_bytes());
    Some(Memory { libraries, key })
}

/// Removes libraries that have changed since any build of these inputs or of others has made them: cargo compares
/// times, and would consider them fresh.
pub(super) fn remove_damaged(stamp: &Path, inputs: &str) -> Result<(), Error> {
    let text = fs::read_to_string(stamp).unwrap_or_default();
    let mut lines = text.lines();
    if lines.next() != Some(inputs) {
        return Ok(());
    }
    let libraries = lines.filter_map(Entry::read).filter(|entry| entry.kind == "library");
    for damaged in libraries.filter(|entry| !entry.is_unchanged() && !is_as_made(entry.file)) {
        cache::remove(damaged.file)?;
    }
    Ok(())
}

/// Records beside each library which file it is. Packages share libraries: a new one is no damage.
pub(super) fn note_made(libraries: &Libraries) -> Result<(), Error> {
    let named = libraries.crates.iter().map(|(_, file)| file);
    named.chain(&libraries.beneath).try_for_each(|file| cache::write(&note_of(file), &cache::file_key(file)))
}

fn is_as_made(library: &Path) -> bool {
    cache::read(&note_of(library)).is_ok_and(|key| key == cache::file_key(library))
}

fn note_of(library: &Path) -> PathBuf {
    library.with_added_extension("made")
}

/// Whether cargo or rustc failed because of damage in the cache, not because of the sources.
pub(super) fn indicates_damage(diagnostics: &str) -> bool {
    let signs = [
        "can't find crate for `core`",
        "can't find crate for `compiler_builtins`",
        "found invalid metadata files",
        "failed to parse lock file",
        "failed to load bitcode",
    ];
    signs.iter().any(|sign| diagnostics.contains(sign))
}

impl Memory {
    /// Puts all files into `place`, unless they are there. Hard links cost nothing and last when cargo
    /// replaces the files; where there are none, files are copied.
    pub(super) fn keep(&self, place: &Path) -> Result<(), Error> {
        let named = self.libraries.crates.iter().map(|(_, file)| file);
        let files: Vec<&PathBuf> = named.chain(&self.libraries.beneath).collect();
        let stamp = place.join("stamp");
        let is_whole = fs::read_to_string(&stamp).is_ok_and(|key| key == self.key);
        let length = |file: &Path| fs::metadata(file).map_or(0, |it| it.len());
        if is_whole && files.iter().all(|file| length(&kept(file, place)) == length(file)) {
            return Ok(());
        }
        cache::remove(place)?;
        cache::create_dir(place)?;
        for file in files {
            let to = kept(file, place);
            // A crate may be both named and a dependency of another.
            if !to.is_file() && fs::hard_link(file, &to).is_err() {
                fs::copy(file, &to).map_err(Error::io("copy", file))?;
            }
        }
        cache::write(&stamp, &self.key)
    }
}

/// Where `Memory::keep` puts a file.
pub(super) fn kept(file: &Path, place: &Path) -> PathBuf {
    place.join(file.file_name().unwrap_or_default())
}

/// How often a build is tried again because a source was written meanwhile.
const ATTEMPTS: usize = 5;

/// The value that `find` returns, after `make` if there is none, and a shared lock that keeps others from
/// replacing it. `make` needs the exclusive lock, so a shared one is only held while files are linked.
pub(super) fn find_or_build<T>(
    lock: &Path,
    find: impl Fn() -> Option<T>,
    mut make: impl FnMut() -> Result<(), Error>,
) -> Result<(T, Lock), Error> {
    // Another build may replace it before the shared lock is taken, too.
    for _ in 0..ATTEMPTS {
        let reading = Lock::shared(lock)?;
        if let Some(found) = find() {
            return Ok((found, reading));
        }
        drop(reading);
        let _writing = Lock::exclusive(lock, || {})?;
        // Another build may have made it in between.
        if find().is_none() {
            make()?;
        }
    }
    Err(Error::Metadata("cargo built no usable crates for the device".to_owned()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A source that was written when the build began may have been read before or after that.
    #[test]
    fn a_source_is_remembered_if_it_is_older_than_the_build() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("lib.rs");
        let file = fs::File::create(&source).unwrap();
        let begun = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let mut libraries = Libraries::default();
        libraries.inputs.files.insert(source.clone());
        let stamp = folder.path().join("stamp");
        for (written, is_remembered) in
            [(begun - Duration::from_secs(1), true), (begun, false), (begun + Duration::from_secs(1), false)]
        {
            file.set_modified(written).unwrap();
            fs::write(&stamp, memory_of("inputs", &libraries, begun)).unwrap();
            let found = remembered(&stamp, "inputs");
            assert_eq!(found.is_some(), is_remembered, "{written:?}");
            assert!(found.is_none_or(|memory| memory.libraries.inputs == libraries.inputs));
        }
        assert!(remembered(&stamp, "others").is_none());
    }
    /// After an edit of a source each package would build what they share again, and so change it for the others.
    #[test]
    fn a_library_that_another_package_has_rebuilt_is_not_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let (file, stamp) = (folder.path().join("libshared.rlib"), folder.path().join("stamp"));
        let libraries = Libraries { beneath: vec![file.clone()], ..Libraries::default() };
        fs::write(&file, "first").unwrap();
        note_made(&libraries).unwrap();
        fs::write(&stamp, memory_of("inputs", &libraries, SystemTime::now())).unwrap();
        fs::write(&file, "of another package").unwrap();
        note_made(&libraries).unwrap();
        remove_damaged(&stamp, "inputs").unwrap();
        assert!(file.is_file() && remembered(&stamp, "inputs").is_none());
    }
    #[test]
    fn a_build_whose_sources_are_written_meanwhile_is_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let made = std::cell::Cell::new(0);
        let tried = |usable_after: usize| {
            made.set(0);
            let find = || (made.get() >= usable_after).then_some("libraries");
            let make = || {
                made.set(made.get() + 1);
                Ok(())
            };
            find_or_build(&folder.path().join("lock"), find, make).map(|(found, _)| found).ok()
        };
        assert_eq!((tried(2), made.get()), (Some("libraries"), 2));
        assert_eq!((tried(usize::MAX), made.get()), (None, ATTEMPTS));
    }
}
