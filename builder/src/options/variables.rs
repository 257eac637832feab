//! The environment variables that Ferrogrid reads, in builds, in programs and in its own tests. A variable
//! with the prefix that is not listed is misspelt, and is reported.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::options::settings;

/// The prefix of all of them.
const PREFIX: &str = "FERROGRID_";

/// The variables for users. The table in `docs/src/tools/settings.md` has the same.
pub const KNOWN: [&str; 18] = [
    "FERROGRID_ARCH",
    "FERROGRID_CACHE",
    crate::cache::size::LIMIT_VARIABLE,
    "FERROGRID_CPU_STACK",
    "FERROGRID_CPU_THREADS",
    "FERROGRID_CUBIN",
    "FERROGRID_DEVICE",
    "FERROGRID_DEVICE_RUSTC",
    "FERROGRID_LIBDEVICE",
    "FERROGRID_NCCL",
    "FERROGRID_NCCL_FILE",
    "FERROGRID_NVDISASM",
    "FERROGRID_NVJITLINK",
    "FERROGRID_NVRTC",
    "FERROGRID_NVVM",
    crate::cargo::ONLY,
    "FERROGRID_PTXAS",
    "FERROGRID_SOURCES",
];

/// Prefixes of the variables that Ferrogrid sets for itself, or that only its own tests and benches read.
const INTERNAL: [&str; 12] = [
    "FERROGRID_BENCH_",
    "FERROGRID_CONFORMANCE_",
    "FERROGRID_CRATE",
    "FERROGRID_EXPAND",
    "FERROGRID_FUZZ",
    "FERROGRID_KEEP_PTX",
    "FERROGRID_MATH_ERRORS_",
    "FERROGRID_RENEW_",
    "FERROGRID_SHOW_ERRORS",
    "FERROGRID_STRESS",
    "FERROGRID_TARGETS",
    "FERROGRID_TEST_",
];

/// The value of a variable; `None` if it is unset or empty.
pub(crate) fn value(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The file or folder that a variable names.
pub(crate) fn path(name: &str) -> Option<PathBuf> {
    value(name).map(PathBuf::from)
}

/// The text of a variable; `None` if it is blank.
pub(crate) fn text(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.trim().is_empty())
}

/// Whether Ferrogrid or its tests read a variable of this name.
pub fn is_known(name: &str) -> bool {
    KNOWN.contains(&name) || name == "FERROGRID_SOAK" || INTERNAL.iter().any(|start| name.starts_with(start))
}

/// The variables for users that are set, and their values, by name.
pub fn in_force() -> Vec<(&'static str, String)> {
    let set = |name: &'static str| Some((name, value(name)?.to_string_lossy().into_owned()));
    KNOWN.into_iter().filter_map(set).collect()
}

/// A message for each variable with the prefix that is set and unknown.
pub fn unknown() -> Vec<String> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut unknown: Vec<String> = names.filter(|name| is_misspelt(name)).collect();
    unknown.sort();
    unknown.iter().map(|name| unknown_variable(name)).collect()
}

fn is_misspelt(name: &str) -> bool {
    name.starts_with(PREFIX) && !is_known(name)
}

fn unknown_variable(name: &str) -> String {
    let meant = match settings::nearest(name, &KNOWN) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("there are: {}", KNOWN.join(", ")),
    };
    format!("{name} is set, but it is not a variable of Ferrogrid; {meant}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_variable_is_reported() {
        assert!(is_misspelt("FERROGRID_ARHC") && is_misspelt("FERROGRID_arch") && is_misspelt("FERROGRID_"));
        for fine in
            ["FERROGRID_ARCH", "FERROGRID_STRESS_SEED", "FERROGRID_TEST_CASE", "OTHER_ARCH", "FERROGRID"]
        {
            assert!(!is_misspelt(fine), "{fine}");
        }
    }

    #[test]
    fn an_unknown_variable_is_reported_with_the_closest_name() {
        let text = unknown_variable("FERROGRID_ARHC");
        assert_eq!(
            text,
            "FERROGRID_ARHC is set, but it is not a variable of Ferrogrid; did you mean FERROGRID_ARCH?"
        );
        assert!(unknown_variable("FERROGRID_CPU_THREAD").ends_with("did you mean FERROGRID_CPU_THREADS?"));
        assert!(unknown_variable("FERROGRID_CACHE_LIMITS").ends_with("did you mean FERROGRID_CACHE_LIMIT?"));
    }
}
