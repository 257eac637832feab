//! The accounts of memory: several threads allocate and free at the same time, from a device and from its pools.

#[path = "../../src/backend/memory/account/balance.rs"]
mod balance;

use balance::{Balance, Exceeded};
use loom::sync::Arc;
use loom::thread;

/// Runs `case` in all orders of the steps of its threads in which they are cut short three times at most.
fn orders(case: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(case);
}

fn account(limit: u64) -> Arc<Balance> {
    Arc::new(Balance::new(Some(limit), None))
}

/// Two threads ask for 6 of 10 bytes.
#[test]
fn one_of_two_requests_gets_the_last_bytes() {
    orders(|| {
        let own = account(10);
        let other = own.clone();
        let asking = thread::spawn(move || other.take(6));
        let mut answers = [own.take(6), asking.join().unwrap()];
        answers.sort_by_key(Result::is_err);
        assert_eq!(answers, [Ok(()), Err(Exceeded { used: 6, limit: 10 })]);
        assert_eq!((own.used(), own.high()), (6, 6));
        own.give_back(6);
        assert_eq!((own.used(), own.high()), (0, 6));
    });
}

#[test]
fn bytes_that_threads_take_and_return_are_all_counted() {
    orders(|| {
        let own = account(10);
        let other = own.clone();
        let holding = thread::spawn(move || {
            other.take(3).unwrap();
            other.take(2).unwrap();
            other.give_back(3);
        });
        own.take(4).unwrap();
        own.give_back(4);
        holding.join().unwrap();
        assert_eq!(own.used(), 2);
        assert!((5..=9).contains(&own.high()), "{}", own.high());
    });
}

/// Bytes in use when the mark is reset count at once.
#[test]
fn a_reset_loses_nothing_that_is_still_in_use() {
    orders(|| {
        let own = account(100);
        own.take(50).unwrap();
        own.give_back(50);
        let other = own.clone();
        let resetting = thread::spawn(move || other.reset_high());
        own.take(3).unwrap();
        own.take(4).unwrap();
        own.give_back(4);
        resetting.join().unwrap();
        // 50 are forgotten. 7 were there at once: before the reset, or after it.
        assert!([3, 7].contains(&own.high()), "{}", own.high());
        own.give_back(3);
        assert!([3, 7].contains(&own.high()), "{} of 3 that were in use after the reset", own.high());
    });
}

/// A pool of 4 bytes, and a device of 10: what the pool refuses never counts on the device, nor the other way round.
#[test]
fn a_refusal_of_a_pool_is_not_retried_on_the_device() {
    orders(|| {
        let device = account(10);
        let pool = Arc::new(Balance::new(Some(4), Some(device.clone())));
        let asking = {
            let pool = pool.clone();
            thread::spawn(move || pool.take(8))
        };
        assert_eq!(device.take(5), Ok(()), "its bytes are available to no other");
        assert_eq!(asking.join().unwrap(), Err(Exceeded { used: 0, limit: 4 }));
        assert_eq!((device.used(), device.high(), pool.used(), pool.high()), (5, 5, 0, 0));
    });
}

#[test]
fn a_refusal_of_the_device_is_not_taken_from_a_pool() {
    orders(|| {
        let device = account(10);
        let pool = Arc::new(Balance::new(None, Some(device.clone())));
        let asking = {
            let pool = pool.clone();
            thread::spawn(move || pool.take(6).is_ok())
        };
        let is_given = device.take(6).is_ok();
        let is_given_to_pool = asking.join().unwrap();
        assert_ne!(is_given, is_given_to_pool, "one of them");
        assert_eq!((device.used(), device.high()), (6, 6));
        assert_eq!((pool.used(), pool.high()), if is_given_to_pool { (6, 6) } else { (0, 0) });
        if is_given_to_pool {
            pool.give_back(6);
            assert_eq!((pool.used(), device.used()), (0, 0));
        }
    });
}
