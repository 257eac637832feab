//! The locks of the CPU device, in all orders that their steps can come in: loom runs each case in them, one
//! after the other. It includes the parts by path, with loom's locks for std's, and must not need anything else of the host.

mod sync {
    pub(super) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    pub(super) use loom::sync::{Arc, Condvar, Mutex, MutexGuard};

    /// Looks once: more would be the same again.
    pub(super) fn look_for_a_moment<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
        look()
    }
}

#[path = "../../src/backend/cpu/execute/budget.rs"]
mod budget;
#[path = "../../src/backend/cpu/execute/first_failure.rs"]
mod first_failure;
#[path = "../../src/backend/cpu/execute/mark.rs"]
mod mark;

use budget::{Budget, Permits};
use first_failure::FirstFailure;
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;
use mark::Mark;

/// Runs `case` in all orders of the steps of its threads in which they are cut short three times at most.
fn orders(case: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(case);
}

/// A budget that lives as long as the model's threads may need it.
fn budget(limit: usize) -> &'static Budget {
    Box::leak(Box::new(Budget::new(limit)))
}

#[test]
fn no_more_than_the_budget_is_taken_and_every_thread_gets_a_turn() {
    orders(|| {
        let (budget, held) = (budget(3), Arc::new(AtomicUsize::new(0)));
        let work = |count: usize| {
            let held = held.clone();
            thread::spawn(move || {
                let permits = budget.take(count, || {}).unwrap();
                let before = held.fetch_add(count, Ordering::SeqCst);
                assert!(before + count <= 3, "{before} were held when {count} more were given out");
                held.fetch_sub(count, Ordering::SeqCst);
                drop(permits);
            })
        };
        let others = [work(2), work(3)];
        drop(budget.take(2, || {}));
        others.into_iter().for_each(|other| other.join().unwrap());
        assert!(budget.try_take(3).is_some(), "all came back");
    });
}

/// What idle executors keep. A thread that keeps stacks clears them if another waits; a waiting thread clears first.
#[test]
fn unused_stacks_never_block_a_waiter() {
    orders(|| {
        let budget = budget(2);
        let idle = Arc::new(Mutex::new(Vec::<Permits<'static>>::new()));
        let clear = |idle: &Mutex<Vec<Permits<'static>>>| {
            let all = std::mem::take(&mut *idle.lock().unwrap());
            drop(all);
        };
        let keeper = {
            let idle = idle.clone();
            thread::spawn(move || {
                let Some(permits) = budget.try_take(2) else { return };
                idle.lock().unwrap().push(permits);
                if budget.is_wanted() {
                    clear(&idle);
                }
            })
        };
        let got = budget.take(2, || clear(&idle));
        assert_eq!(got.unwrap().count(), 2);
        keeper.join().unwrap();
        clear(&idle);
    });
}

#[test]
fn a_large_request_is_not_passed_over_for_ever() {
    orders(|| {
        let budget = budget(2);
        let first = budget.take(1, || {}).unwrap();
        let large = thread::spawn(move || drop(budget.take(2, || {})));
        let small = thread::spawn(move || drop(budget.take(1, || {})));
        if budget.is_wanted() {
            assert!(budget.try_take(1).is_none(), "waiting threads come first");
        }
        drop(first);
        large.join().unwrap();
        small.join().unwrap();
    });
}

#[test]
fn more_than_there_ever_is_is_refused_at_once() {
    orders(|| {
        let budget = budget(2);
        assert!(budget.take(3, || unreachable!("nothing to reclaim for it")).is_none());
    });
}

/// Memory that a stream's thread writes and the host reads after waiting, without a separate lock.
struct Written(UnsafeCell<u32>);

// SAFETY: loom fails the model where one thread reaches it beside another's write.
unsafe impl Sync for Written {}
// SAFETY: as above.
unsafe impl Send for Written {}

#[test]
fn waits_for_a_mark_see_the_writes_before_it() {
    orders(|| {
        let (mark, memory) = (Mark::new(), Arc::new(Written(UnsafeCell::new(0))));
        let worker = {
            let (mark, memory) = (mark.clone(), memory.clone());
            thread::spawn(move || {
                // SAFETY: loom checks that no other thread is here.
                memory.0.with_mut(|value| unsafe { *value = 7 });
                mark.reach("failure");
            })
        };
        let other = {
            let (mark, memory) = (mark.clone(), memory.clone());
            thread::spawn(move || {
                let left = mark.reached();
                // SAFETY: loom checks that no thread writes here.
                left.map(|left| (left, memory.0.with(|value| unsafe { *value })))
            })
        };
        assert_eq!(mark.wait(), "failure");
        // SAFETY: loom checks that no thread writes here.
        assert_eq!(memory.0.with(|value| unsafe { *value }), 7);
        worker.join().unwrap();
        assert!(matches!(other.join().unwrap(), None | Some(("failure", 7))));
    });
}

#[test]
fn callbacks_of_a_mark_run_once_after_it() {
    orders(|| {
        let (mark, calls) = (Mark::new(), Arc::new(AtomicUsize::new(0)));
        let notifiers = [1, 10].map(|weight| {
            let (mark, calls) = (mark.clone(), calls.clone());
            thread::spawn(move || {
                mark.notify(move || {
                    calls.fetch_add(weight, Ordering::SeqCst);
                });
            })
        });
        mark.reach(());
        notifiers.into_iter().for_each(|notifier| notifier.join().unwrap());
        assert_eq!(calls.load(Ordering::SeqCst), 11);
    });
}

#[test]
fn the_lowest_failure_is_kept_and_all_blocks_before_it_run() {
    orders(|| {
        let failures = Arc::new(FirstFailure::new());
        // Blocks 2 and 3 fail; each worker goes through its own in ascending order.
        let workers = [[0, 3], [1, 2]].map(|blocks| {
            let failures = failures.clone();
            thread::spawn(move || {
                let run = blocks.into_iter().take_while(|&block| !failures.before(block));
                run.inspect(|&block| {
                    if block >= 2 {
                        failures.note(block, || block)
                    }
                })
                .count()
            })
        });
        let ran = workers.map(|worker| worker.join().unwrap());
        assert!(ran[0] >= 1 && ran[1] == 2, "{ran:?}");
        let failures = Arc::try_unwrap(failures).unwrap_or_else(|_| panic!("all workers are done"));
        assert_eq!(failures.into_result(), Err(2));
    });
}
