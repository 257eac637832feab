//! Tests of which failures a stream remembers, and where it reports them.

use super::failure::{Failure, KEPT};
use crate::error::Error;

fn error(number: usize) -> Error {
    Error::WorkerThread { reason: number.to_string().into() }
}

#[test]
fn a_waiter_takes_what_failed_before_its_point_and_leaves_the_rest() {
    let failures = Failure::default();
    let first = failures.note(error(1));
    let point = failures.position();
    failures.note(error(2));
    assert!(!first.is_known_here());
    assert_eq!(failures.take_until(point), Some(error(1)));
    assert!(first.is_known_here());
    assert_eq!(failures.take_until(point), None);
    assert_eq!(failures.take(), Some(error(2)));
    assert_eq!(failures.take(), None);
}

#[test]
fn a_stream_notes_the_failure_of_another_once() {
    let (own, other) = (Failure::default(), Failure::default());
    let fault = other.note(error(1));
    own.note_shared(&fault);
    assert_eq!(own.take(), Some(error(1)));
    own.note_shared(&fault);
    assert_eq!(own.take(), None);
    assert_eq!((fault.tell_device(), fault.tell_device()), (Some(error(1)), None));
    assert_eq!(other.take(), Some(error(1)));
}

/// As many as are kept one by one, one less, and one more.
#[test]
fn the_last_separately_located_failure_is_reported_alone() {
    for count in [KEPT - 1, KEPT] {
        let failures = Failure::default();
        (0..count).for_each(|number| drop(failures.note(error(number))));
        for number in 0..count {
            assert_eq!(failures.take_until(number as u64 + 1), Some(error(number)), "of {count}");
        }
        assert_eq!(failures.take_until(failures.position()), None);
    }
    let failures = Failure::default();
    (0..=KEPT).for_each(|number| drop(failures.note(error(number))));
    assert_eq!(failures.take_until(KEPT as u64 - 1), Some(error(0)));
    // The last two share a place, and are reported when both points are reached.
    assert_eq!(failures.take_until(KEPT as u64), None);
    assert_eq!(failures.take_until(KEPT as u64 + 1), Some(error(KEPT - 1)));
}

#[test]
fn every_one_of_many_failures_is_reported() {
    let failures = Failure::default();
    for number in 0..3 * KEPT {
        failures.note(error(number));
    }
    let end = failures.position();
    for number in 0..KEPT as u64 - 1 {
        assert_eq!(failures.take_until(number + 1), Some(error(number as usize)));
    }
    assert_eq!(failures.take_until(end - 1), None);
    assert_eq!(failures.take_until(end), Some(error(KEPT - 1)));
}
