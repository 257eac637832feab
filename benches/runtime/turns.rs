//! Runs two sides alternately, and prints a line of JSON.

#[path = "../quartiles.rs"]
mod quartiles;

use crate::Outcome;
use quartiles::{list, quartiles};

/// Prints the middle half of each side's seconds over `rounds`, divided by `per`. Both run once before; the
/// order alternates.
pub fn duel(
    name: &str,
    rounds: usize,
    per: f64,
    mut ours: impl FnMut() -> Outcome<f64>,
    mut theirs: impl FnMut() -> Outcome<f64>,
) -> Outcome<()> {
    ours()?;
    theirs()?;
    let mut seconds = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        if round % 2 == 0 {
            seconds[0].push(ours()?);
        }
        seconds[1].push(theirs()?);
        if round % 2 == 1 {
            seconds[0].push(ours()?);
        }
    }
    let [ours, theirs] = seconds.map(|seconds| quartiles(seconds).map(|seconds| seconds / per));
    println!(
        "{{\"name\": \"{name}\", \"ours\": {}, \"theirs\": {}, \"rounds\": {rounds}}}",
        list(ours),
        list(theirs)
    );
    Ok(())
}
