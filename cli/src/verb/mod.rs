//! The verbs of the command line, one file each.
//!
//! `new`, `setup`, `doctor`, `launch`, `clean` and `completions` need no package. `run`, `test`, `inspect`, `export`, `bench` and
//! `bundle` build one.

pub(crate) mod bench;
pub(crate) mod bundle;
pub(crate) mod clean;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod inspect;
pub(crate) mod launch;
pub(crate) mod new;
pub(crate) mod run;
pub(crate) mod setup;
pub(crate) mod test;
