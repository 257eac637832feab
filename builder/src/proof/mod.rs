//! Proofs about the compiled code, before it is embedded: they hold for the code that runs, whatever the
//! source looks like.
//!
//! | file | holds |
//! |---|---|
//! | `barriers.rs` | all threads that a barrier waits for reach it together |
//! | `pointers.rs` | no warp or block operation stands behind a pointer |
//! | `marks.rs` | the marks of device code that state what must be proven |
//! | `place.rs` | where in the user's source a statement comes from |

mod barriers;
pub(crate) mod marks;
pub(crate) mod place;
mod pointers;

use std::collections::HashSet;
use std::path::PathBuf;

use ferrogrid_ptx::uniformity::Program;
use place::Places;

/// Why a program is refused, and where in the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The file, as the line table names it; empty if it names none.
    pub(crate) file: String,
    /// Line and column, counted from 1; a column of 0 is the whole line.
    pub(crate) place: (usize, usize),
    pub(crate) message: String,
}

/// The refusals of a program, given by its final text with marks. `cooperative` are the entry
/// points with cooperative launches. `own_files` are the user's files by their names in the line table,
/// where names stand for `folders`.
pub(crate) fn check(
    program: &Program<'_, '_>,
    cooperative: &HashSet<&str>,
    own_files: &HashSet<String>,
    folders: &[(PathBuf, String)],
) -> Vec<Refusal> {
    let module = program.module();
    let places = Places::new(module, own_files, folders);
    let mut refusals = pointers::check(module, &places);
    refusals.extend(barriers::check(program, &places));
    refusals.extend(barriers::of_the_grid(module, cooperative, &places));
    refusals
}
