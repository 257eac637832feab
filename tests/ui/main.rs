//! Compile errors are part of the product: each mistake a user can make has a program here, and the
//! message that rustc must give for it. `TRYBUILD=overwrite` rewrites the messages; read them as a
//! user would before committing them. Each folder holds the mistakes of one topic.
//!
//! Other compilers word and draw the rest of a message in other ways, so only with the one that
//! wrote the messages must all of each be equal; with others, what each begins with.

mod compiler;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Trial};

/// The compiler that wrote the messages.
const WRITTEN_BY: &str = "rustc 1.97.0-nightly (e50aa6fba 2026-05-19)";

fn main() -> ExitCode {
    if let Some(cargo) = env::var_os(compiler::REAL_CARGO) {
        return compiler::answer(Path::new(&cargo));
    }
    let cargo = env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
    // SAFETY: no other thread runs yet.
    unsafe {
        env::set_var(compiler::REAL_CARGO, cargo);
        env::set_var("CARGO", env::current_exe().expect("its path"));
    }
    // trybuild itself reads the pattern.
    let mut arguments = Arguments::from_iter(env::args().filter(|it| !it.starts_with("trybuild=")));
    // The variables above and below are set while there is one thread.
    arguments.test_threads = Some(1);
    let trial = Trial::test("mistakes_are_explained", || {
        mistakes_are_explained();
        Ok(())
    });
    libtest_mimic::run(&arguments, vec![trial]).exit_code()
}

fn mistakes_are_explained() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui");
    if compiler() == WRITTEN_BY {
        return check(Path::new("tests/ui"));
    }
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ui");
    copy_cases(&here, &copy);
    // SAFETY: the only test of this process, and no other thread reads variables.
    unsafe { env::set_var("TRYBUILD", "overwrite") };
    check(&copy);
    for message in files(&here, "stderr") {
        let written = copy.join(message.strip_prefix(&here).unwrap());
        assert_eq!(errors(&written), errors(&message), "{}", message.display());
    }
}

fn compiler() -> String {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Demands that every case fails to compile, with its message.
fn check(ui: &Path) {
    trybuild::TestCases::new().compile_fail(ui.join("*/*.rs"));
}

fn copy_cases(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    for case in files(from, "rs") {
        let copy = to.join(case.strip_prefix(from).unwrap());
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(&case, copy).unwrap();
    }
}

/// The files of all topics with this extension.
fn files(ui: &Path, extension: &str) -> Vec<PathBuf> {
    let topics = entries(ui).into_iter().filter(|path| path.is_dir());
    let files = topics.flat_map(|topic| entries(&topic));
    files.filter(|path| path.extension().is_some_and(|it| it == extension)).collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// The first lines of the errors in a message.
fn errors(message: &Path) -> Vec<String> {
    let text = fs::read_to_string(message).unwrap();
    text.lines().filter(|line| line.starts_with("error")).map(str::to_owned).collect()
}
