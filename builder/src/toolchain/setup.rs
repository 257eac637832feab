//! Provides a device toolchain if there is none: a rustup component, else the distribution's package. Then it
//! fills the core cache. It is not interactive, prints what it runs, and repeats nothing.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::cache;
use crate::error::Error;
use crate::options::Arch;
use crate::toolchain::{self, MINIMUM_RUSTC, Toolchain, core_cache, process};

/// The packages of Debian and Ubuntu with a rustc and its sources.
const PACKAGES: [&str; 2] = ["rustc-web", "rust-web-src"];

/// The progress of a set-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress<'a> {
    /// A step begins; the previous one is done.
    Step(&'a str),
    /// Information.
    Note(&'a str),
    /// The step failed, with the output of its program. Another method may still succeed.
    Failed(&'a str),
}

/// Makes sure that device code can be compiled for `archs` on this machine: finds or provides a toolchain
/// and builds `core` for each architecture. `progress` gets each step, and the output of programs that fail.
///
/// # Errors
/// [`Error::Setup`] with all that was tried, if no toolchain can be provided; else as
/// [`core_cache::ensure`].
pub fn setup(archs: &[Arch], progress: &mut dyn FnMut(Progress<'_>)) -> Result<Toolchain, Error> {
    let toolchain = match toolchain::find(archs) {
        Ok(toolchain) => toolchain,
        Err(error) => provide(archs, error, progress)?,
    };
    let found = format!("{} at {} ({})", toolchain.version, toolchain.rustc.display(), toolchain.origin);
    progress(Progress::Note(&format!("device toolchain: {found}")));
    for arch in archs {
        let progress = &mut |line: &str| progress(Progress::Step(line));
        core_cache::ensure(&cache::root(), &toolchain, arch, progress)?;
    }
    Ok(toolchain)
}

/// One way to get a toolchain.
struct Method {
    name: &'static str,
    /// Why it cannot be tried on this machine.
    obstacle: Option<String>,
    /// The commands, in order.
    commands: Vec<Vec<String>>,
}

fn provide(archs: &[Arch], none: Error, progress: &mut dyn FnMut(Progress<'_>)) -> Result<Toolchain, Error> {
    if super::named().is_some() {
        return Err(none);
    }
    let mut tried = String::new();
    if let Error::NoToolchain(discovery) = &none {
        discovery.candidates.iter().for_each(|candidate| tried.push_str(&format!("  - {candidate}\n")));
    }
    for method in [with_rustup(), with_apt(false), with_apt(true)] {
        if let Some(reason) = method.obstacle {
            tried.push_str(&format!("  - {}: {reason}\n", method.name));
            continue;
        }
        if let Err(reason) = take(&method, progress) {
            tried.push_str(&format!("  - {}: {reason}\n", method.name));
            continue;
        }
        match toolchain::find(archs) {
            Ok(toolchain) => return Ok(toolchain),
            Err(_) => tried
                .push_str(&format!("  - {}: it succeeded, but no toolchain qualifies yet\n", method.name)),
        }
    }
    Err(Error::Setup { tried })
}

fn with_rustup() -> Method {
    let automatic = std::env::var_os("RUSTUP_AUTO_INSTALL");
    let obstacle = if automatic.is_some_and(|value| value == "0") {
        Some("RUSTUP_AUTO_INSTALL=0 forbids rustup to install anything".to_owned())
    } else if !in_path("rustup") {
        Some("rustup is not installed".to_owned())
    } else {
        None
    };
    // An installed nightly is not updated: the user may depend on it.
    let command: &[&str] = if obstacle.is_none() && has_nightly() {
        &["rustup", "component", "add", "rust-src", "--toolchain", "nightly"]
    } else {
        &["rustup", "toolchain", "install", "nightly", "--profile", "minimal", "--component", "rust-src"]
    };
    Method { name: "rustup", obstacle, commands: vec![words(command)] }
}

fn has_nightly() -> bool {
    let output = Command::new("rustup").args(["toolchain", "list"]).output();
    output.is_ok_and(|output| {
        String::from_utf8_lossy(&output.stdout).lines().any(|line| line.starts_with("nightly-"))
    })
}

/// With `update`, apt's package lists are updated first: they may be missing or out of date.
fn with_apt(update: bool) -> Method {
    let root = is_root();
    let obstacle = if !in_path("apt-get") {
        Some("this system has no apt-get".to_owned())
    } else if !root && !sudo_without_password() {
        Some("apt-get requires root, and `sudo` would ask for a password".to_owned())
    } else if !update && !packages_known() {
        let (major, minor) = MINIMUM_RUSTC;
        Some(format!(
            "its package lists have no {} of version {major}.{minor} or newer",
            PACKAGES.join(" and ")
        ))
    } else {
        None
    };
    let prefix = if root { words(&["env"]) } else { words(&["sudo", "-n", "env"]) };
    let apt = |arguments: &[&str]| {
        let mut command = prefix.clone();
        command.extend(words(&["DEBIAN_FRONTEND=noninteractive", "apt-get"]));
        command.extend(words(arguments));
        command
    };
    let mut commands = vec![apt(&["install", "-y", "--no-install-recommends", PACKAGES[0], PACKAGES[1]])];
    if update {
        commands.insert(0, apt(&["update"]));
    }
    Method { name: if update { "apt-get after an update" } else { "apt-get" }, obstacle, commands }
}

/// Runs the commands of a method; the error is the reason of the first failure.
fn take(method: &Method, progress: &mut dyn FnMut(Progress<'_>)) -> Result<(), String> {
    for command in &method.commands {
        let line = command.join(" ");
        progress(Progress::Step(&line));
        run(command).map_err(|failure| {
            progress(Progress::Failed(&failure.printed));
            format!("`{line}` {}", failure.reason)
        })?;
    }
    Ok(())
}

/// Why a command failed, and its output until then.
struct CommandFailure {
    reason: String,
    printed: String,
}

/// Runs a command and keeps what it prints.
fn run(command: &[String]) -> Result<(), CommandFailure> {
    let silent = |reason: String| CommandFailure { reason, printed: String::new() };
    let (program, arguments) = command.split_first().ok_or_else(|| silent("is empty".to_owned()))?;
    let (mut reader, writer) = std::io::pipe().map_err(|error| silent(error.to_string()))?;
    let errors = writer.try_clone().map_err(|error| silent(error.to_string()))?;
    let mut child = {
        // The command holds the pipe's writing end, which must be dropped, or reading would never end.
        let mut command = process::command(Path::new(program));
        command.args(arguments).stdin(Stdio::null()).stdout(writer).stderr(errors);
        command.spawn().map_err(|error| silent(format!("does not start: {error}")))?
    };
    let mut printed = Vec::new();
    let read = reader.read_to_end(&mut printed);
    let printed = String::from_utf8_lossy(&printed).into_owned();
    let failure = |reason: String| CommandFailure { reason, printed: printed.clone() };
    let status = child.wait().and_then(|status| read.map(|_| status));
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => {
            let last = printed.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it printed nothing");
            Err(failure(format!("failed ({status}): {last}")))
        }
        Err(error) => Err(failure(error.to_string())),
    }
}

/// Whether apt's lists name versions of the packages that are new enough.
fn packages_known() -> bool {
    let output = Command::new("apt-cache").arg("policy").args(PACKAGES).env("LC_ALL", "C").output();
    let Ok(output) = output else { return false };
    new_enough_candidates(&String::from_utf8_lossy(&output.stdout)) == PACKAGES.len()
}

/// How many packages of an `apt-cache policy` have a candidate that is new enough.
fn new_enough_candidates(policy: &str) -> usize {
    let candidates = policy.lines().filter_map(|line| line.trim_start().strip_prefix("Candidate:"));
    candidates.filter_map(major_and_minor).filter(|version| *version >= MINIMUM_RUSTC).count()
}

/// (1, 96) from `1.96.0+dfsg1-1~deb12u2`; `None` from `(none)`.
fn major_and_minor(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.trim().split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

fn sudo_without_password() -> bool {
    let status = Command::new("sudo").args(["-n", "true"]).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn words(text: &[&str]) -> Vec<String> {
    text.iter().map(|&word| word.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Vec<String> {
        words(&["sh", "-c", script])
    }

    /// What is said while these commands run, and the reason of a failure.
    fn reported(commands: &[&str]) -> (Vec<String>, Option<String>) {
        let commands = commands.iter().map(|script| shell(script)).collect();
        let method = Method { name: "test", obstacle: None, commands };
        let mut reported = Vec::new();
        let outcome = take(&method, &mut |progress| reported.push(format!("{progress:?}")));
        (reported, outcome.err())
    }

    #[test]
    fn a_step_is_named_and_the_output_of_its_program_hidden() {
        let (reported, failure) = reported(&["echo one; echo two >&2", "exit 0"]);
        let steps = [r#"Step("sh -c echo one; echo two >&2")"#, r#"Step("sh -c exit 0")"#];
        assert_eq!((reported.as_slice(), failure), (&steps.map(str::to_owned)[..], None));
    }

    #[test]
    fn all_that_a_program_printed_is_shown_where_it_fails() {
        let (reported, failure) = reported(&["echo some; echo why not >&2; exit 7", "echo never"]);
        assert_eq!(reported.len(), 2, "{reported:?}");
        assert_eq!(reported[1], r#"Failed("some\nwhy not\n")"#);
        let reason = failure.unwrap();
        assert!(reason.contains("sh -c") && reason.contains("why not") && reason.contains('7'), "{reason}");
    }

    #[test]
    fn only_new_enough_packages_count() {
        let policy = |first: &str, second: &str| {
            format!(
                "rustc-web:\n  Installed: (none)\n  Candidate: {first}\n  Version table:\n     9.99.0 500\nrust-web-src:\n  Candidate: {second}\n"
            )
        };
        let new = "1.96.0+dfsg1-1~deb12u2";
        assert_eq!(new_enough_candidates(&policy(new, new)), 2);
        assert_eq!(new_enough_candidates(&policy(new, "1.85.0+dfsg3-1~deb12u3")), 1);
        assert_eq!(new_enough_candidates(&policy("(none)", "2.0.1-1")), 1);
        assert_eq!(new_enough_candidates(""), 0);
    }

    #[test]
    fn a_missing_program_is_a_failure() {
        let method = Method { name: "test", obstacle: None, commands: vec![words(&["/no/such/program"])] };
        assert!(take(&method, &mut |_| {}).unwrap_err().contains("does not start"));
    }
}
