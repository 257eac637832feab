//! The result table: one line for each case, one column for each device.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use crate::Outcome;

/// The result of a case on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It ran and passed.
    Ran,
    /// It ran and failed.
    Failed,
    /// It does not apply to this device.
    NotHere(Cow<'static, str>),
}

/// States that a case does not apply to a device. An error, so that `?` and `return` carry it.
#[derive(Debug)]
pub struct NotForThisDevice(Cow<'static, str>);

impl fmt::Display for NotForThisDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not for this device: {}", self.0)
    }
}

impl std::error::Error for NotForThisDevice {}

/// The result of a case that does not apply to its device.
///
/// # Errors
/// Always.
pub fn not_for_this_device(reason: impl Into<Cow<'static, str>>) -> Outcome {
    Err(Box::new(NotForThisDevice(reason.into())))
}

/// The verdict for the result of a case.
pub fn verdict(outcome: &Outcome) -> Verdict {
    match outcome {
        Ok(()) => Verdict::Ran,
        Err(error) => error
            .downcast_ref::<NotForThisDevice>()
            .map_or(Verdict::Failed, |NotForThisDevice(reason)| Verdict::NotHere(reason.clone())),
    }
}

static ROWS: Mutex<BTreeMap<&'static str, BTreeMap<&'static str, Verdict>>> = Mutex::new(BTreeMap::new());

/// Records the result of `case` on the device called `label`.
pub fn enter(case: &'static str, label: &'static str, verdict: Verdict) {
    ROWS.lock().unwrap_or_else(PoisonError::into_inner).entry(case).or_default().insert(label, verdict);
}

/// Prints the table, and why cases were skipped.
pub fn print(labels: &[&str]) {
    let rows = ROWS.lock().unwrap_or_else(PoisonError::into_inner);
    if rows.is_empty() {
        return;
    }
    let width = rows.keys().map(|case| case.len()).max().unwrap_or_default();
    println!("what ran where (ran, FAILED, - not for this device, blank: not run)");
    println!("{:width$}  {}", "", labels.join("  "));
    for (case, row) in &*rows {
        let cell = |label: &&str| {
            let word = match row.get(label) {
                Some(Verdict::Ran) => "ran",
                Some(Verdict::Failed) => "FAILED",
                Some(Verdict::NotHere(_)) => "-",
                None => "",
            };
            format!("{word:<0$}", label.len())
        };
        let cells: Vec<String> = labels.iter().map(cell).collect();
        println!("{case:width$}  {}", cells.join("  ").trim_end());
    }
    let reasons = rows.iter().flat_map(|(case, row)| row.iter().map(move |(label, it)| (case, label, it)));
    for (case, label, verdict) in reasons {
        if let Verdict::NotHere(reason) = verdict {
            println!("- {label}::{case}: {reason}");
        }
    }
}
