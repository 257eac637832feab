//! Launches that may panic, waits for their stream, and the search for a panic, in all orders that the steps of threads can
//! come in: loom runs each case in them, one after the other. It includes the part by path, with loom's locks and atomics
//! for std's; the device is made up here: a kernel runs when it is enqueued, and its panic is in the record if that is free.

#![allow(dead_code, reason = "the part is larger than what is modelled")]

mod sync {
    pub(crate) use loom::sync::{Arc, Mutex, MutexGuard, atomic};
}

#[path = "../src/backend/cuda/interval.rs"]
mod interval;

use std::convert::Infallible;

use interval::{Intervals, Search};
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;

/// Whether it has failed, once that is known.
#[derive(Default)]
struct Outcome(Mutex<Option<bool>>);

impl Outcome {
    fn settle(&self, failed: bool) -> bool {
        let mut known = self.0.lock().unwrap();
        let is_first = known.is_none();
        known.get_or_insert(failed);
        is_first
    }

    fn has_failed(&self) -> bool {
        *self.0.lock().unwrap() == Some(true)
    }
}

/// A device with two streams, and what their launches write.
struct Device {
    streams: [Intervals<Outcome>; 2],
    search: Search,
    /// Whether the record has a panic.
    record: AtomicBool,
    /// The outcomes that the memory of each stream names.
    named: [Mutex<Vec<Arc<Outcome>>>; 2],
}

impl Device {
    fn new() -> Arc<Self> {
        Arc::new(Device {
            streams: std::array::from_fn(|_| Intervals::new()),
            search: Search::new(),
            record: AtomicBool::new(false),
            named: std::array::from_fn(|_| Mutex::new(Vec::new())),
        })
    }

    fn launch(&self, stream: usize, panics: bool) {
        let intervals = &self.streams[stream];
        let outcome = intervals.begin();
        if panics {
            // If it is taken, the panic leaves nothing.
            let _found = self.record.compare_exchange(false, true, Ordering::AcqRel, Ordering::Acquire);
        }
        let outcome = intervals.find(outcome).expect("it is open as long as a launch is under way");
        self.named[stream].lock().unwrap().push(outcome);
        intervals.done();
    }

    fn look(&self, ended: &[Arc<Outcome>]) {
        if ended.is_empty() && !self.search.is_needed(|| !self.record.load(Ordering::Acquire)) {
            return;
        }
        let take = || Ok::<_, Infallible>(self.record.swap(false, Ordering::AcqRel).then_some(()));
        let spread = |()| {
            for intervals in &self.streams {
                intervals.fail(|outcome| outcome.settle(true));
            }
        };
        let settle = || {
            for outcome in ended {
                outcome.settle(false);
            }
        };
        let Ok(()) = self.search.search(take, spread, settle);
    }

    fn wait(&self, stream: usize) {
        let ended = self.streams[stream].end();
        self.look(&ended);
        self.streams[stream].forget(&ended);
    }

    fn all_failed(&self, stream: usize) -> bool {
        self.named[stream].lock().unwrap().iter().all(|outcome| outcome.has_failed())
    }
}

#[test]
fn a_wait_on_the_side_does_not_take_a_launch_for_good_that_is_being_enqueued() {
    loom::model(|| {
        let device = Device::new();
        let waiter = device.clone();
        let waiting = thread::spawn(move || waiter.wait(0));
        device.launch(0, true);
        waiting.join().unwrap();
        device.wait(0);
        assert!(device.all_failed(0), "the panic was lost");
    });
}

#[test]
fn whoever_finds_the_record_free_knows_of_the_panic_that_was_in_it() {
    loom::model(|| {
        let device = Device::new();
        device.launch(0, true);
        let waiter = device.clone();
        let waiting = thread::spawn(move || waiter.wait(1));
        // Both are looked at before: else loom leaves out the orders in which the next look finds only one of them changed.
        let _seen = (device.record.load(Ordering::Acquire), device.all_failed(0));
        // As after a wait for an event.
        device.look(&[]);
        assert!(device.all_failed(0), "what failed work wrote would be read");
        waiting.join().unwrap();
    });
}

#[test]
fn a_panic_that_found_the_record_taken_is_that_of_its_stream_nevertheless() {
    loom::model(|| {
        let device = Device::new();
        device.launch(0, true);
        let other = device.clone();
        let launching = thread::spawn(move || {
            other.launch(1, true);
            other.wait(1);
            assert!(other.all_failed(1), "the second panic was lost");
        });
        device.wait(0);
        assert!(device.all_failed(0), "the first panic was lost");
        launching.join().unwrap();
    });
}

#[test]
fn work_that_a_wait_found_good_stays_good() {
    loom::model(|| {
        let device = Device::new();
        device.launch(0, false);
        device.wait(0);
        let other = device.clone();
        let failing = thread::spawn(move || {
            other.launch(1, true);
            other.wait(1);
        });
        device.wait(0);
        failing.join().unwrap();
        assert!(!device.named[0].lock().unwrap()[0].has_failed());
    });
}
