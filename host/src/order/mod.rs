//! Automatic ordering of work on one allocation across streams.
//!
//! # The rule
//!
//! Work on one stream runs in order. So an allocation has to be ordered only where two streams use it. A read waits for the
//! writes before it, a write waits for all uses before it. Waiting means waiting for the *tail* of the other stream at the
//! time of the wait. Every use that was enqueued there before lies before that tail. No event is recorded per use.
//!
//! While a single stream uses the allocation, `owner` holds that stream's number, and a use costs one
//! atomic load. Otherwise a mutex guards the record of who used it.
//!
//! # Why it is sound
//!
//! [`Order::begin`] is called just before the work is enqueued, not together with it. So another thread may call it in
//! between, for its own use of the same allocation. The call that enqueues holds the borrow of its view until it has
//! enqueued. So the borrow checker leaves these overlaps:
//!
//! - *read with read*. Neither removes a stream from the record, so a later write finds both. By then both have enqueued,
//!   since the write needs `&mut`. The shortcut "this reader has waited for the writer" is about [`Use::Write`] only, which
//!   cannot overlap anything.
//! - *read or part-write with part-write*, of disjoint parts (`split_at_mut`), or of elements that threads change atomically
//!   (`as_atomic`, whose views are `Copy`). A part-write is always entered into the record under the mutex, never on the
//!   fast path. It removes no user, and every later use on another stream waits for it, with no shortcut.
//! - [`Use::Write`] has the whole allocation to itself: when it begins, every earlier use has been enqueued. It waits for
//!   them all, and may therefore remove them from the record.
//!
//! The fast path leaves the record as it is. It is taken only when the record holds that one stream: for reads, which a
//! later writer finds by that entry, and for exclusive writes.
//!
//! A stream is closed when its handle is gone, so that no call can be enqueueing on it. It may leave the record once another
//! stream in the record has been made to run after it.
//!
//! Pointers taken with `as_device_ptr` are outside all this; that is what their `unsafe` says.

mod record;

pub(crate) use record::{Order, OrderedStream, Use};

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::sync::{Arc, Mutex};

    use super::record::MANY_READERS;
    use super::*;
    use crate::error::Result;

    /// A stream as vector clock: what work of each stream its next work comes after.
    struct Model {
        id: u64,
        clock: Mutex<[u64; 16]>,
        waits: AtomicU64,
        closed: AtomicBool,
    }

    impl OrderedStream for Model {
        fn id(&self) -> u64 {
            self.id
        }

        fn is_closed(&self) -> bool {
            self.closed.load(Ordering::Relaxed)
        }

        fn run_after(&self, earlier: &Self) -> Result<()> {
            let theirs = *earlier.clock.lock().unwrap();
            let mut ours = self.clock.lock().unwrap();
            for (ours, theirs) in ours.iter_mut().zip(theirs) {
                *ours = (*ours).max(theirs);
            }
            self.waits.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }

    impl Model {
        fn stream(id: u64) -> Arc<Model> {
            let (waits, closed) = (AtomicU64::new(0), AtomicBool::new(false));
            Arc::new(Model { id, clock: Mutex::new([0; 16]), waits, closed })
        }

        fn streams() -> Vec<Arc<Model>> {
            (1..=4).map(Model::stream).collect()
        }

        /// Enqueues work; returns (stream, number) of it and the clock it started at.
        fn enqueue(&self) -> (usize, u64, [u64; 16]) {
            let mut clock = self.clock.lock().unwrap();
            let before = *clock;
            let slot = self.id as usize - 1;
            clock[slot] += 1;
            (slot, clock[slot], before)
        }

        fn waits(&self) -> u64 {
            self.waits.load(Ordering::Relaxed)
        }
    }

    fn comes_after(clock: &[u64; 16], work: (usize, u64)) -> bool {
        clock[work.0] >= work.1
    }

    #[test]
    fn one_stream_never_waits() {
        let streams = Model::streams();
        let order = Order::new(streams[0].clone());
        for usage in [Use::Read, Use::Write, Use::WritePart, Use::Read, Use::Write] {
            order.begin(&streams[0], usage).unwrap();
        }
        assert_eq!(streams[0].waits(), 0);
        assert_eq!(order.owner.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_shared_input_waits_once_per_reader() {
        let streams = Model::streams();
        let order = Order::new(streams[0].clone());
        for _ in 0..100 {
            order.begin(&streams[1], Use::Read).unwrap();
            order.begin(&streams[0], Use::Read).unwrap();
        }
        assert_eq!(streams[1].waits(), 1);
        assert_eq!(streams[0].waits(), 0);
    }

    #[test]
    fn readers_are_looked_through_when_there_are_too_many() {
        let order = Order::new(Model::stream(1));
        let count = || order.lock().readers.len();
        for (before, id) in (2..).take(MANY_READERS).enumerate() {
            assert_eq!(count(), before, "no user is looked up before");
            let reader = Model::stream(id);
            order.begin(&reader, Use::Read).unwrap();
            reader.closed.store(id > 2, Ordering::Relaxed);
        }
        assert_eq!(count(), MANY_READERS);
        order.begin(&Model::stream(15), Use::Read).unwrap();
        assert_eq!(count(), 2, "one that is open, and the new one");
    }

    #[test]
    fn readers_that_are_closed_do_not_pile_up() {
        let order = Order::new(Model::stream(1));
        for id in 2..16 {
            for _ in 0..20 {
                let reader = Model::stream(id);
                order.begin(&reader, Use::Read).unwrap();
                reader.closed.store(true, Ordering::Relaxed);
            }
        }
        assert!(order.lock().readers.len() <= MANY_READERS, "{} readers", order.lock().readers.len());
    }

    #[test]
    fn a_write_restores_ownership() {
        let streams = Model::streams();
        let order = Order::new(streams[0].clone());
        order.begin(&streams[1], Use::Read).unwrap();
        order.begin(&streams[1], Use::Write).unwrap();
        assert_eq!(order.owner.load(Ordering::Relaxed), 2);
    }

    /// What the host reads of managed memory comes after all who wrote a part of it.
    #[test]
    fn the_host_waits_for_the_writer_of_a_part() {
        let streams = Model::streams();
        let order = Order::new(streams[0].clone());
        order.begin(&streams[1], Use::WritePart).unwrap();
        order.begin(&streams[2], Use::Read).unwrap();
        let ids = |usage| order.earlier(usage).iter().map(|stream| stream.id()).collect::<Vec<_>>();
        assert_eq!(ids(Use::Read), [1, 2]);
        assert_eq!(ids(Use::Write), [1, 2, 3]);
    }

    /// Against a model: a random sequence of uses, on any streams, orders each write with all uses before it. It orders
    /// each read with all writes before it.
    #[test]
    fn conflicting_uses_are_always_ordered() {
        let mut seed = 0x2545_f491_4f6c_dd1d_u64;
        let mut random = |n: u64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed % n
        };
        for _ in 0..2_000 {
            let mut streams = Model::streams();
            let mut order = Order::new(streams[0].clone());
            let mut history: Vec<(Use, (usize, u64))> = Vec::new();
            for step in 0..24 {
                let slot = random(4) as usize;
                if step % 2 == 0 {
                    streams[slot].closed.store(true, Ordering::Relaxed);
                    streams[slot] = Model::stream(5 + step / 2);
                }
                let stream = &streams[slot];
                let usage = match random(12) {
                    0 => Use::Write,
                    1 | 2 => Use::WritePart,
                    _ => Use::Read,
                };
                order.begin(stream, usage).unwrap();
                let (slot, number, clock) = stream.enqueue();
                for (earlier, work) in &history {
                    let conflict = *earlier != Use::Read || usage != Use::Read;
                    assert!(!conflict || comes_after(&clock, *work), "{usage:?} after {earlier:?}");
                }
                history.push((usage, (slot, number)));
            }
            let last = order.end(|stream| !stream.is_closed(), || Ok(Model::stream(16))).unwrap();
            let (_, _, clock) = last.enqueue();
            assert!(history.iter().all(|(_, work)| comes_after(&clock, *work)), "free after all uses");
        }
    }

    /// The overlaps that the borrow checker allows: `begin` of two parts (or of two reads) before
    /// either is enqueued, then a use of the whole.
    #[test]
    fn uses_that_begin_together_are_all_waited_for() {
        let begins = [
            (Use::WritePart, Use::WritePart),
            (Use::Read, Use::WritePart),
            (Use::WritePart, Use::Read),
            (Use::Read, Use::Read),
        ];
        for (first, second) in begins {
            for (a, b, c) in (0..64).map(|n| (n % 4, n / 4 % 4, n / 16)) {
                let streams = Model::streams();
                let order = Order::new(streams[0].clone());
                order.begin(&streams[c], Use::Read).unwrap();
                order.begin(&streams[a], first).unwrap();
                order.begin(&streams[b], second).unwrap();
                let first_work = streams[a].enqueue();
                let second_work = streams[b].enqueue();
                for usage in [Use::Read, Use::Write] {
                    order.begin(&streams[c], usage).unwrap();
                    let (_, _, clock) = streams[c].enqueue();
                    for (earlier, work) in [(first, first_work), (second, second_work)] {
                        if usage == Use::Write || earlier != Use::Read {
                            let ordered = comes_after(&clock, (work.0, work.1));
                            assert!(ordered, "{usage:?} on {c} after {first:?} {a}, {second:?} {b}");
                        }
                    }
                }
            }
        }
    }
}
