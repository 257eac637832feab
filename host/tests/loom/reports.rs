//! Reports of failures and of text that kernels print. Each is delivered exactly once, whichever threads wait.

#[path = "../../src/backend/failure/mod.rs"]
mod failure;
#[path = "../../src/output/kept.rs"]
mod kept;

use failure::Failure;
use kept::Kept;
use loom::sync::Arc;
use loom::thread;

use crate::error::Error;

/// Runs `case` in all orders of the steps of its threads in which they are cut short three times at most.
fn orders(case: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(case);
}

#[test]
fn a_failure_that_two_threads_hand_on_is_noted_once() {
    orders(|| {
        let (own, other) = (Arc::new(Failure::default()), Failure::default());
        let fault = other.note(Error(1));
        let handing_on = {
            let (own, fault) = (own.clone(), fault.clone());
            thread::spawn(move || own.note_shared(&fault))
        };
        own.note_shared(&fault);
        handing_on.join().unwrap();
        assert_eq!((own.pending().len(), own.take(), own.take()), (1, Some(Error(1)), None));
        assert_eq!(other.take(), Some(Error(1)));
    });
}

#[test]
fn one_of_two_waits_for_a_failed_stream_reports_it() {
    orders(|| {
        let failures = Arc::new(Failure::default());
        failures.note(Error(1));
        let waiting = {
            let failures = failures.clone();
            thread::spawn(move || failures.take())
        };
        let mut told = [failures.take(), waiting.join().unwrap()];
        told.sort_by_key(Option::is_some);
        assert_eq!(told, [None, Some(Error(1))]);
    });
}

#[test]
fn one_of_two_waits_for_the_device_reports_the_failure() {
    orders(|| {
        let fault = Failure::default().note(Error(1));
        let waiting = {
            let fault = fault.clone();
            thread::spawn(move || fault.tell_device())
        };
        assert_ne!(fault.tell_device(), waiting.join().unwrap());
    });
}

#[test]
fn a_failure_during_a_wait_is_left_to_the_next_wait() {
    orders(|| {
        let failures = Arc::new(Failure::default());
        failures.note(Error(1));
        let point = failures.position();
        let failing = {
            let failures = failures.clone();
            thread::spawn(move || drop(failures.note(Error(2))))
        };
        assert_eq!(failures.take_until(point), Some(Error(1)));
        failing.join().unwrap();
        assert_eq!((failures.take(), failures.take()), (Some(Error(2)), None));
    });
}

fn texts(capacity: usize) -> Arc<Kept> {
    Arc::new(Kept::new(capacity))
}

fn handed_out(kept: &Kept) -> Vec<String> {
    let mut all = Vec::new();
    kept.deliver(|text| all.push(text.to_owned()));
    all
}

#[test]
fn each_text_is_handed_out_once_and_those_of_a_thread_in_their_order() {
    orders(|| {
        let kept = texts(100);
        kept.keep("before".into());
        let printing = {
            let kept = kept.clone();
            thread::spawn(move || ["first", "second"].map(|text| kept.keep(text.into())))
        };
        let mut all = handed_out(&kept);
        assert_eq!(all.first().map(String::as_str), Some("before"), "it was there before the first look");
        printing.join().unwrap();
        all.extend(handed_out(&kept));
        assert_eq!(all, ["before", "first", "second"]);
        assert!(kept.is_empty());
    });
}

#[test]
fn two_waiters_share_kept_stacks() {
    orders(|| {
        let kept = texts(100);
        kept.keep("first".into());
        kept.keep("second".into());
        let waiting = {
            let kept = kept.clone();
            thread::spawn(move || handed_out(&kept))
        };
        let mut all = handed_out(&kept);
        all.extend(waiting.join().unwrap());
        all.sort();
        assert_eq!(all, ["first", "second"]);
        assert!(kept.is_empty());
    });
}

#[test]
fn dropped_text_is_counted() {
    orders(|| {
        let kept = texts(5);
        let printing = {
            let kept = kept.clone();
            thread::spawn(move || kept.keep("one 5".into()))
        };
        kept.keep("two 5".into());
        printing.join().unwrap();
        let all = handed_out(&kept);
        assert!(all.len() == 2 && all[1].starts_with("[1 printed"), "{all:?}");
        assert!(kept.is_empty());
    });
}
