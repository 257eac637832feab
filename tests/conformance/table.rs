//! The table of what ran where: one line for each case, one column for each device.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use crate::Outcome;
use crate::runtime::HoldsAStream;

/// What became of a case on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It ran, and holds.
    Ran,
    /// It ran, and does not hold.
    Failed,
    /// It has no meaning on this device.
    NotHere(Cow<'static, str>),
}

/// Says that a case has no meaning on a device. As an error, so that `?` and `return` carry it.
#[derive(Debug)]
pub(crate) struct NotForThisDevice(Cow<'static, str>);

impl fmt::Display for NotForThisDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not for this device: {}", self.0)
    }
}

impl std::error::Error for NotForThisDevice {}

/// What a case returns that has no meaning on its device.
pub(crate) fn not_for_this_device(reason: impl Into<Cow<'static, str>>) -> Outcome {
    Err(Box::new(NotForThisDevice(reason.into())))
}

/// The verdict in what a case returned.
pub(crate) fn verdict(outcome: &Outcome) -> Verdict {
    match outcome {
        Ok(()) => Verdict::Ran,
        Err(error) if error.is::<HoldsAStream>() => Verdict::NotHere(error.to_string().into()),
        Err(error) => error
            .downcast_ref::<NotForThisDevice>()
            .map_or(Verdict::Failed, |NotForThisDevice(reason)| Verdict::NotHere(reason.clone())),
    }
}

static ROWS: Mutex<BTreeMap<&'static str, BTreeMap<&'static str, Verdict>>> = Mutex::new(BTreeMap::new());

/// Enters what became of `case` on the device called `label`.
pub(crate) fn enter(case: &'static str, label: &'static str, verdict: Verdict) {
    ROWS.lock().unwrap_or_else(PoisonError::into_inner).entry(case).or_default().insert(label, verdict);
}

/// Prints what was entered, and why cases were left out.
pub(crate) fn print(labels: &[&str]) {
    let rows = ROWS.lock().unwrap_or_else(PoisonError::into_inner);
    if rows.is_empty() {
        return;
    }
    let width = rows.keys().map(|case| case.len()).max().unwrap_or_default();
    println!("what ran where (ran, FAILED, - not for this device, blank: not asked for)");
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
