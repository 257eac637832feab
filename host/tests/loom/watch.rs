//! Launches that may panic, and waits for their stream, in all orders that the steps of threads can come in: loom runs
//! each case in them, one after the other. It includes the part by path, with loom's locks and atomics for std's; the
//! device is made up here: a kernel runs when it is enqueued, and a panic of it is in the record of its interval.

#[path = "../../src/backend/cuda/stream/interval.rs"]
mod interval;

use std::convert::Infallible;

use interval::{Ended, Intervals};
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;

/// An interval: its record, until that is given back, and whether it has failed, once that is known.
struct Interval {
    record: AtomicBool,
    is_given_back: AtomicBool,
    outcome: Mutex<Option<bool>>,
}

impl Interval {
    fn new() -> Result<Self, Infallible> {
        let [record, is_given_back] = [false; 2].map(AtomicBool::new);
        Ok(Interval { record, is_given_back, outcome: Mutex::new(None) })
    }

    fn settle(&self, failed: bool) {
        self.outcome.lock().unwrap().get_or_insert(failed);
    }

    fn has_failed(&self) -> bool {
        *self.outcome.lock().unwrap() == Some(true)
    }
}

/// A stream, and the intervals that the memory names which its launches write.
struct Stream {
    intervals: Intervals<Interval>,
    named: Mutex<Vec<Arc<Interval>>>,
}

impl Stream {
    fn new() -> Arc<Self> {
        Arc::new(Stream { intervals: Intervals::new(), named: Mutex::new(Vec::new()) })
    }

    /// A launch, and the interval that it is part of.
    fn launch(&self, panics: bool) -> Arc<Interval> {
        let Ok(interval) = self.intervals.begin(Interval::new);
        let interval = self.intervals.find(interval).expect("it is open as long as a launch is under way");
        assert!(!interval.is_given_back.load(Ordering::SeqCst), "the record has another owner");
        if panics {
            interval.record.store(true, Ordering::SeqCst);
        }
        self.named.lock().unwrap().push(interval.clone());
        self.intervals.done();
        interval
    }

    fn look(&self, intervals: &[Arc<Interval>]) {
        for interval in intervals.iter().filter(|interval| interval.record.load(Ordering::SeqCst)) {
            self.intervals.leave(Arc::as_ptr(interval));
            interval.settle(true);
        }
    }

    fn wait(&self) {
        let Ended { intervals, come_before } = self.intervals.end(true);
        self.look(&intervals);
        if come_before {
            for interval in &intervals {
                interval.settle(false);
                interval.is_given_back.store(true, Ordering::SeqCst);
            }
            self.intervals.forget(&intervals);
        }
    }

    fn is_open(&self) -> bool {
        !self.intervals.open().is_empty()
    }
}

#[test]
fn a_concurrent_wait_does_not_take_a_launch_in_progress_for_successful() {
    loom::model(|| {
        let stream = Stream::new();
        let waiter = stream.clone();
        let waiting = thread::spawn(move || waiter.wait());
        let interval = stream.launch(true);
        waiting.join().unwrap();
        stream.wait();
        assert!(interval.has_failed(), "the panic was lost");
    });
}

#[test]
fn a_wait_finds_the_panic_of_a_launch_before_it_though_another_is_being_enqueued() {
    loom::model(|| {
        let stream = Stream::new();
        let interval = stream.launch(true);
        let other = stream.clone();
        let launching = thread::spawn(move || drop(other.launch(false)));
        stream.wait();
        assert!(interval.has_failed(), "what failed work wrote would be read");
        launching.join().unwrap();
        stream.wait();
        assert!(!stream.is_open(), "a record is never given back");
    });
}

#[test]
fn work_that_a_wait_found_good_stays_good() {
    loom::model(|| {
        let stream = Stream::new();
        let good = stream.launch(false);
        stream.wait();
        let other = stream.clone();
        let failing = thread::spawn(move || {
            let bad = other.launch(true);
            other.wait();
            assert!(bad.has_failed(), "the panic was lost");
        });
        stream.wait();
        failing.join().unwrap();
        assert!(!good.has_failed());
    });
}

#[test]
fn a_launch_after_a_failure_that_was_found_is_no_part_of_it() {
    loom::model(|| {
        let stream = Stream::new();
        let bad = stream.launch(true);
        let other = stream.clone();
        let waiting = thread::spawn(move || other.wait());
        // As a reader of the memory does.
        stream.look(std::slice::from_ref(&bad));
        let good = stream.launch(false);
        waiting.join().unwrap();
        stream.wait();
        assert!(bad.has_failed() && !good.has_failed());
    });
}
