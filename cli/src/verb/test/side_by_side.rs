//! Runs test programs side by side. Many of them mostly wait, for a lock or for a single compiler: one after the other,
//! as `cargo test` runs them, they leave processors idle. The output of each is printed as a whole, when it ends.

use std::collections::VecDeque;
use std::env;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use ferrogrid_host::Device;

use super::excerpt;
use crate::Failure;
use crate::cargo::{self, Package, TestProgram};

/// A command that runs tests, and its name.
type Job = (String, Command);

/// The name of a job that failed, and what it printed.
type Failed = (String, String);

/// One more than two processors, because programs that build in the same folder wait for each other.
const AT_A_TIME: usize = 3;

/// Builds and runs the tests of the packages that `which`, options of cargo, selects: `selected`. All run, even if some fail.
pub(super) fn run(which: &[&str], selected: &[Package]) -> Result<ExitCode, Failure> {
    let mut build = cargo::command();
    build.args(["test", "--no-run"]).args(which).envs(incremental());
    let mut programs = cargo::build_tests(&mut build)?;
    largest_first(&mut programs);
    let libraries = rustc_libraries();
    let job = |program: &TestProgram| job(program, selected, libraries.as_deref());
    let mut jobs: VecDeque<Job> = programs.iter().map(job).collect::<Result<_, _>>()?;
    if selected.iter().any(Package::has_doctests) {
        let mut documentation = cargo::command();
        documentation.args(["test", "--doc"]).args(which).envs(incremental());
        jobs.push_back(("documentation".to_owned(), documentation));
    }
    let count = jobs.len();
    // Programs would share the memory of a GPU.
    let at_a_time = if Device::all().iter().any(Device::is_cuda) { 1 } else { AT_A_TIME };
    let failed = run_all(jobs, at_a_time, &mut io::stdout());
    if failed.is_empty() {
        println!("{count} test programs passed");
        return Ok(ExitCode::SUCCESS);
    }
    print!("{}", summary(&failed, count));
    Ok(ExitCode::FAILURE)
}

/// Unless the user has decided, builds are not incremental: that costs a quarter more in a fresh clone. All commands get this
/// variable, since cargo would build again with another value.
fn incremental() -> Option<(&'static str, &'static str)> {
    const VARIABLE: &str = "CARGO_INCREMENTAL";
    env::var_os(VARIABLE).is_none().then_some((VARIABLE, "0"))
}

/// Moves the largest program to the front: it usually takes long, and at the end it would leave processors idle.
fn largest_first(programs: &mut [TestProgram]) {
    let size = |program: &TestProgram| program.path.metadata().map_or(0, |it| it.len());
    if let Some(largest) = (0..programs.len()).max_by_key(|&at| size(&programs[at])) {
        programs[..=largest].rotate_right(1);
    }
}

/// The failed programs among `count`, and of each the names of its failed tests with their messages.
fn summary(failed: &[Failed], count: usize) -> String {
    let names: Vec<&str> = failed.iter().map(|(name, _)| name.as_str()).collect();
    let mut text = format!("{} of {count} test programs failed: {}\n", failed.len(), names.join(", "));
    for (name, printed) in failed {
        let excerpt = excerpt::of_failures(printed).join("\n");
        text += &format!("\n     Failed {name}\n{}\n", excerpt.trim_end());
    }
    text
}

/// Runs the jobs in order, and prints the output of each. Returns those that failed.
fn run_all(jobs: VecDeque<Job>, at_a_time: usize, output: &mut (impl Write + Send)) -> Vec<Failed> {
    let (jobs, output) = (Mutex::new(jobs), Mutex::new(output));
    let failed = Mutex::new(Vec::<Failed>::new());
    let next = || lock(&jobs).pop_front();
    let work = || {
        while let Some((name, mut command)) = next() {
            let start = Instant::now();
            let (passed, printed) =
                run_one(&mut command).unwrap_or_else(|error| (false, error.to_string().into()));
            let seconds = start.elapsed().as_secs_f64();
            if !passed {
                lock(&failed).push((name.clone(), String::from_utf8_lossy(&printed).into_owned()));
            }
            let mut output = lock(&output);
            // A closed standard output is no reason to stop.
            let _ = writeln!(output, "     Running {name} ({seconds:.1} s)");
            let _ = output.write_all(&printed).and_then(|()| output.flush());
        }
    };
    thread::scope(|scope| (0..at_a_time).for_each(|_| drop(scope.spawn(work))));
    failed.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether it succeeded, and its standard output and error, as they came.
fn run_one(command: &mut Command) -> io::Result<(bool, Vec<u8>)> {
    let (mut reader, writer) = io::pipe()?;
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn()?;
    // The command holds ends of the pipe, which would keep it open.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut printed = Vec::new();
    reader.read_to_end(&mut printed)?;
    Ok((child.wait()?.success(), printed))
}

/// The program with the working folder and the variables that cargo would set.
fn job(program: &TestProgram, packages: &[Package], libraries: Option<&Path>) -> Result<Job, Failure> {
    let package = packages.iter().find(|package| package.manifest == program.manifest);
    let package = package
        .ok_or_else(|| format!("{} belongs to no member of the workspace", program.source.display()))?;
    let mut command = Command::new(&program.path);
    command.current_dir(package.folder()).envs(package.variables()).envs(incremental());
    let folders = program.path.ancestors().skip(1).take(2).chain(libraries).map(Path::to_owned);
    let variable = if cfg!(windows) {
        "PATH"
    } else if cfg!(target_os = "macos") {
        "DYLD_FALLBACK_LIBRARY_PATH"
    } else {
        "LD_LIBRARY_PATH"
    };
    let inherited = env::var_os(variable).unwrap_or_default();
    let paths: Vec<PathBuf> = folders.chain(env::split_paths(&inherited)).collect();
    command.env(variable, env::join_paths(paths).unwrap_or(inherited));
    let source =
        env::current_dir().ok().and_then(|here| Some(program.source.strip_prefix(here).ok()?.to_owned()));
    let name = source.as_deref().unwrap_or(&program.source).display().to_string();
    Ok((name, command))
}

/// The folder of rustc's libraries, which tests of procedural macros are linked with.
fn rustc_libraries() -> Option<PathBuf> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).args(["--print", "target-libdir"]).output().ok()?;
    Some(PathBuf::from(String::from_utf8(output.stdout).ok()?.trim()))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn script(name: &str, text: &str) -> Job {
        let mut command = Command::new("sh");
        command.args(["-c", text]);
        (name.to_owned(), command)
    }

    #[test]
    fn what_a_program_prints_stands_together() {
        let mut printed = Vec::new();
        // Each waits for the other, ten seconds at most: they run at the same time.
        let folder = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| folder.path().join(name).display().to_string());
        let wait = |own: &str, other: &str| {
            let rounds = "for round in $(seq 1000)";
            format!(
                "echo first; : >{own}; {rounds}; do [ -e {other} ] && break; sleep 0.01; done
                 [ -e {other} ] || exit 1; echo second >&2; echo third"
            )
        };
        let jobs = [script("one", &wait(&a, &b)), script("two", &wait(&b, &a))];
        assert!(run_all(jobs.into(), 2, &mut printed).is_empty());
        let text = String::from_utf8(printed).unwrap();
        assert_eq!(text.matches("s)\nfirst\nsecond\nthird\n").count(), 2, "{text}");
    }

    #[test]
    fn the_largest_program_starts_first_and_the_others_keep_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let program = |(name, size): (&str, usize)| {
            let path = folder.path().join(name);
            std::fs::write(&path, vec![0; size]).unwrap();
            TestProgram { manifest: PathBuf::new(), source: name.into(), path }
        };
        let mut programs = [("a", 3), ("b", 1), ("c", 4), ("d", 2)].map(program);
        largest_first(&mut programs);
        let names: Vec<_> = programs.iter().map(|it| it.source.to_str().unwrap()).collect();
        assert_eq!(names, ["c", "a", "b", "d"]);
        largest_first(&mut []);
    }

    #[test]
    fn after_a_failure_the_others_run_and_the_end_repeats_what_failed() {
        const BAD: &str = "echo broken; printf 'failures:\\n---- bad ----\\nis 3\\nfailures:\\n    bad\\ntest result: FAILED'; exit 3";
        let mut printed = Vec::new();
        let mut jobs = VecDeque::from([script("bad", BAD), script("good", "echo fine")]);
        jobs.push_back(("absent".to_owned(), Command::new("/nowhere/absent")));
        jobs.push_back(script("last", "echo whole"));
        let mut failed = run_all(jobs, 2, &mut printed);
        failed.sort();
        let end = summary(&failed, 4);
        let expected = "\n     Failed bad\nfailures:\n---- bad ----\nis 3\nfailures:\n    bad\n";
        assert!(end.starts_with("2 of 4 test programs failed: absent, bad\n\n     Failed absent\n"), "{end}");
        assert!(end.ends_with(expected), "{end}");
        let text = String::from_utf8(printed).unwrap();
        assert!(["broken\n", "fine\n", "whole\n"].iter().all(|it| text.contains(it)), "{text}");
    }
}
