//! The expected contents of a buffer, and those before each of its last operations: a mismatch then shows
//! which operation was missed, early or late.

use std::collections::VecDeque;
use std::fmt;

/// The number of operations in the history.
const REMEMBERED: usize = 8;

/// The expected contents of a buffer, with their history.
#[derive(Clone)]
pub(super) struct History {
    now: Vec<u32>,
    /// The last operations, each with the contents before it.
    past: VecDeque<(String, Vec<u32>)>,
}

impl History {
    pub(super) fn new(contents: Vec<u32>) -> Self {
        History { now: contents, past: VecDeque::new() }
    }

    pub(super) fn now(&self) -> &[u32] {
        &self.now
    }

    /// The contents for the operation `what` to change.
    pub(super) fn change(&mut self, what: fmt::Arguments<'_>) -> &mut [u32] {
        if self.past.len() == REMEMBERED {
            self.past.pop_front();
        }
        self.past.push_back((what.to_string(), self.now.clone()));
        &mut self.now
    }

    /// Compares `found` with the expected contents; an error says which contents were found.
    pub(super) fn check(&self, what: &str, found: &[u32]) -> Result<(), String> {
        let differs = |place: &usize| found[*place] != self.now[*place];
        let places: Vec<usize> = (0..self.now.len()).filter(differs).collect();
        let [first, ..] = places[..] else { return Ok(()) };
        let last = places[places.len() - 1];
        let (is, expected) = (found[first], self.now[first]);
        Err(format!(
            "{what}: element {first} is {is}, in the model {expected}; {} of {} elements differ, the last is {last}; {}; \
             last operations: {}",
            places.len(),
            found.len(),
            self.explain(found),
            self.operations(),
        ))
    }

    /// Identifies `found` among earlier contents.
    fn explain(&self, found: &[u32]) -> String {
        let before = self.past.iter().rev().position(|(_, contents)| contents == found);
        match before {
            Some(later) => format!("it is as it was before the last {} of them", later + 1),
            None => format!("it is as it was before none of the last {}", self.past.len()),
        }
    }

    fn operations(&self) -> String {
        let names: Vec<&str> = self.past.iter().map(|(what, _)| what.as_str()).collect();
        names.join(", ")
    }
}
