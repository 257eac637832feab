//! The order between streams, and the list of what is kept until work has run, in all orders that the steps of threads
//! can come in: loom runs each case in them, one after the other. It includes both parts by path, with loom's locks
//! and atomics for std's, on a driver that is made up here: a stream is a clock, and an event is a flag.
//!
//! Threads do to one allocation at the same time what the borrow checker lets them do: all read, or use parts of their
//! own; a write begins when all others are over.

#[path = "../../src/backend/retired/list.rs"]
mod list;
#[path = "../../src/order/record.rs"]
mod record;

use crate::error::Result;
use list::{List, Until};
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;
pub(crate) use record::{Order, OrderedStream, Use};

const STREAMS: usize = 16;

/// How much work of each stream has been enqueued, or must have run.
type Clock = [u64; STREAMS];

/// A stream: what its next work comes after.
pub(crate) struct Queue {
    id: u64,
    clock: Mutex<Clock>,
    closed: AtomicBool,
}

/// A piece of work: where it is, and what it comes after.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work {
    stream: usize,
    number: u64,
    after: Clock,
}

impl Work {
    pub(crate) fn comes_after(&self, earlier: &Work) -> bool {
        self.after[earlier.stream] >= earlier.number
    }
}

impl Queue {
    fn new(id: u64) -> Arc<Self> {
        Arc::new(Queue { id, clock: Mutex::new([0; STREAMS]), closed: AtomicBool::new(false) })
    }

    pub(crate) fn several<const N: usize>() -> [Arc<Self>; N] {
        std::array::from_fn(|index| Queue::new(index as u64 + 1))
    }

    pub(crate) fn enqueue(&self) -> Work {
        let mut clock = self.clock.lock().unwrap();
        let (stream, after) = (self.id as usize - 1, *clock);
        clock[stream] += 1;
        Work { stream, number: clock[stream], after }
    }

    fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }
}

/// Of the driver's two calls, the first marks the end of the one stream, and the second makes the other wait for it.
impl OrderedStream for Queue {
    fn id(&self) -> u64 {
        self.id
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn run_after(&self, earlier: &Self) -> Result<()> {
        let tail = *earlier.clock.lock().unwrap();
        let mut own = self.clock.lock().unwrap();
        for (own, earlier) in own.iter_mut().zip(tail) {
            *own = (*own).max(earlier);
        }
        Ok(())
    }
}

/// What a launch does: it enters its use, and enqueues after that, not together with it.
pub(crate) fn launch(order: &Order<Queue>, stream: &Arc<Queue>, usage: Use) -> Work {
    let Ok(()) = order.begin(stream, usage);
    stream.enqueue()
}

/// Runs `case` in all orders of the steps of its threads in which they are cut short twice at most.
pub(crate) fn orders(case: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(case);
}

/// Two threads launch at the same time, each on its stream; then the whole is read, written, and freed.
fn uses_at_the_same_time(streams: (usize, usize), uses: (Use, Use)) {
    orders(move || {
        let queues: [_; 4] = Queue::several();
        let order = Arc::new(Order::new(queues[0].clone()));
        let initial = launch(&order, &queues[0], Use::Write);
        let other = {
            let (order, queue) = (order.clone(), queues[streams.1].clone());
            thread::spawn(move || launch(&order, &queue, uses.1))
        };
        let one = launch(&order, &queues[streams.0], uses.0);
        let two = other.join().unwrap();
        assert!(one.comes_after(&initial) && two.comes_after(&initial), "after the first write");

        let together = [(uses.0, one), (uses.1, two)];
        let read = launch(&order, &queues[2], Use::Read);
        for (_, part) in together.iter().filter(|(usage, _)| *usage != Use::Read) {
            assert!(read.comes_after(part), "{read:?} reads what {part:?} writes");
        }
        let write = launch(&order, &queues[0], Use::Write);
        let mut order = Arc::try_unwrap(order).ok().expect("both threads are done");
        let Ok(last) = order.end(|_| true, || unreachable!("every stream fits"));
        let freed = last.enqueue();
        for earlier in [one, two, read] {
            assert!(write.comes_after(&earlier), "{write:?} overwrites what {earlier:?} uses");
            assert!(freed.comes_after(&earlier), "{freed:?} frees what {earlier:?} uses");
        }
    });
}

/// On two streams, one of them the writer's, which takes the way without a lock.
#[test]
fn reads_at_the_same_time_are_all_waited_for() {
    for streams in [(0, 1), (1, 3), (1, 1), (0, 0)] {
        uses_at_the_same_time(streams, (Use::Read, Use::Read));
    }
}

#[test]
fn writes_of_parts_at_the_same_time_are_all_waited_for() {
    for streams in [(0, 1), (1, 3), (1, 1)] {
        uses_at_the_same_time(streams, (Use::WritePart, Use::WritePart));
    }
}

#[test]
fn a_read_and_a_write_of_other_parts_at_the_same_time_are_both_waited_for() {
    for streams in [(0, 1), (1, 0), (1, 3), (2, 0)] {
        uses_at_the_same_time(streams, (Use::Read, Use::WritePart));
    }
}

/// As page-locked memory, which no stream allocated: the first to read it has not written it, but may do so next.
#[test]
fn first_reads_of_memory_that_no_stream_allocated_are_independent_and_waited_for() {
    orders(|| {
        let queues: [_; 3] = Queue::several();
        let order = Arc::new(Order::unused());
        let other = {
            let (order, queue) = (order.clone(), queues[1].clone());
            thread::spawn(move || launch(&order, &queue, Use::Read))
        };
        let one = launch(&order, &queues[0], Use::Read);
        let two = other.join().unwrap();
        assert!(!one.comes_after(&two) && !two.comes_after(&one), "reads do not wait for each other");
        let write = launch(&order, &queues[0], Use::Write);
        let read = launch(&order, &queues[2], Use::Read);
        assert!(write.comes_after(&two) && read.comes_after(&write), "{two:?}, {write:?}, {read:?}");
        let again = launch(&order, &queues[2], Use::Write);
        assert!(again.comes_after(&write), "{again:?} overwrites what {write:?} wrote");
    });
    orders(|| {
        let (queues, order): ([_; 2], _) = (Queue::several(), Order::unused());
        launch(&order, &queues[0], Use::Read);
        let write = launch(&order, &queues[0], Use::Write);
        let read = launch(&order, &queues[1], Use::Read);
        assert!(read.comes_after(&write), "a stream that was alone as a reader has written");
    });
}

/// The last owner frees, on any thread.
#[test]
fn the_last_of_several_threads_to_let_go_frees_after_all_uses() {
    /// In all orders together: in some, each thread still sees the other's handle.
    static FREES: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    orders(|| {
        let queues: [_; 3] = Queue::several();
        let order = Arc::new(Order::new(queues[0].clone()));
        let works = Arc::new(Mutex::new(vec![launch(&order, &queues[0], Use::Write)]));
        let owner = |queue: &Arc<Queue>| {
            let (order, works, queue) = (order.clone(), works.clone(), queue.clone());
            move || {
                let work = launch(&order, &queue, Use::Read);
                works.lock().unwrap().push(work);
                // The handle of the stream goes first, as it may.
                queue.close();
                let Ok(mut order) = Arc::try_unwrap(order) else { return };
                let Ok(last) = order.end(|_| true, || unreachable!("every stream fits"));
                let freed = last.enqueue();
                FREES.fetch_add(1, Ordering::Relaxed);
                let works = works.lock().unwrap();
                assert_eq!(works.len(), 3);
                assert!(works.iter().all(|work| freed.comes_after(work)), "{freed:?} frees too early");
            }
        };
        let (other, own) = (owner(&queues[1]), owner(&queues[2]));
        drop(order);
        let other = thread::spawn(other);
        own();
        other.join().unwrap();
    });
    assert!(FREES.load(Ordering::Relaxed) > 0, "it was never freed");
}

/// Streams that are gone leave the record when there are many; others read meanwhile, and close.
#[test]
fn removing_ended_readers_waits_for_them() {
    orders(|| {
        let queues: [_; 12] = Queue::several();
        let order = Arc::new(Order::new(queues[0].clone()));
        let initial = launch(&order, &queues[0], Use::Write);
        let mut works = vec![initial];
        for queue in &queues[1..9] {
            works.push(launch(&order, queue, Use::Read));
        }
        queues[1..8].iter().for_each(|queue| queue.close());
        let other = {
            let (order, queue, closing) = (order.clone(), queues[9].clone(), queues[8].clone());
            thread::spawn(move || {
                closing.close();
                launch(&order, &queue, Use::Read)
            })
        };
        works.push(launch(&order, &queues[10], Use::Read));
        works.push(other.join().unwrap());
        let write = launch(&order, &queues[11], Use::Write);
        for earlier in &works {
            assert!(write.comes_after(earlier), "{write:?} overwrites what {earlier:?} uses");
        }
    });
}

/// One thread enqueues and drops its stream, while another begins to write a part: that one may have waited for the
/// stream before it enqueued, and then must keep it in the record.
#[test]
fn a_part_written_while_a_stream_closes_does_not_make_its_last_work_forgotten() {
    for usage in [Use::WritePart, Use::Read] {
        orders(move || {
            let queues: [_; 4] = Queue::several();
            let order = Arc::new(Order::new(queues[0].clone()));
            // Entered already: what is enqueued below is the end of this use.
            let Ok(()) = order.begin(&queues[1], usage);
            let closing = {
                let queue = queues[1].clone();
                thread::spawn(move || {
                    let work = queue.enqueue();
                    queue.close();
                    work
                })
            };
            let part = launch(&order, &queues[2], Use::WritePart);
            let closed = closing.join().unwrap();
            let write = launch(&order, &queues[3], Use::Write);
            for earlier in [part, closed] {
                assert!(write.comes_after(&earlier), "{write:?} overwrites what {earlier:?} uses");
            }
        });
    }
}

/// A launch of a graph: it enters its use of each buffer, and enqueues after that.
fn replay(slots: &[(&Order<Queue>, Use)], stream: &Arc<Queue>) -> Work {
    for (order, usage) in slots {
        let Ok(()) = order.begin(stream, *usage);
    }
    stream.enqueue()
}

/// Two graphs read one buffer, and each owns another. Each is launched on two streams and dropped with its buffer
/// while the launches may still run; finally the buffer that both have read is written.
#[test]
fn graphs_that_share_what_they_read_run_before_it_is_written_and_free_what_they_own_after_their_launches() {
    orders(|| {
        let queues: [_; 5] = Queue::several();
        let shared = Arc::new(Order::new(queues[0].clone()));
        let filled = launch(&shared, &queues[0], Use::Write);
        let graph = |first: &Arc<Queue>, second: &Arc<Queue>| {
            let (shared, streams) = (shared.clone(), [first.clone(), second.clone()]);
            move || {
                let mut own = Order::new(streams[0].clone());
                let launches = streams
                    .each_ref()
                    .map(|stream| replay(&[(&shared, Use::Read), (&own, Use::Write)], stream));
                assert!(
                    launches[1].comes_after(&launches[0]),
                    "launches of one graph come one after the other"
                );
                let Ok(last) = own.end(|_| true, || unreachable!("every stream fits"));
                let freed = last.enqueue();
                assert!(launches.iter().all(|work| freed.comes_after(work)), "{freed:?} frees too early");
                launches
            }
        };
        let (one, two) = (graph(&queues[1], &queues[2]), graph(&queues[3], &queues[1]));
        let other = thread::spawn(two);
        let launches = [one(), other.join().unwrap()].concat();
        assert!(launches.iter().all(|work| work.comes_after(&filled)), "after what filled the shared buffer");
        let write = launch(&shared, &queues[4], Use::Write);
        assert!(
            launches.iter().all(|work| write.comes_after(work)),
            "{write:?} overwrites what a graph reads"
        );
    });
}

/// An event that comes when the flag is set.
struct Flag(Arc<AtomicBool>);

impl Until for Flag {
    fn has_come(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Something that may only be dropped after its event, and may drop other things then.
struct Kept {
    until: Arc<AtomicBool>,
    drops: Arc<AtomicUsize>,
    then: Option<Box<dyn FnOnce() + Send>>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        assert!(self.until.load(Ordering::Acquire), "dropped before its event");
        self.drops.fetch_add(1, Ordering::Relaxed);
        if let Some(then) = self.then.take() {
            then();
        }
    }
}

#[test]
fn retired_values_are_dropped_once_after_their_event() {
    orders(|| {
        let list = Arc::new(List::<Flag>::new());
        let drops = Arc::new(AtomicUsize::new(0));
        let events = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let retire = |event: &Arc<AtomicBool>| {
            let owner = Kept { until: event.clone(), drops: drops.clone(), then: None };
            (Flag(event.clone()), Box::new(owner))
        };
        let ((first, one), (second, two)) = (retire(&events[0]), retire(&events[1]));
        let device = {
            let events = events.clone();
            thread::spawn(move || events.iter().for_each(|event| event.store(true, Ordering::Release)))
        };
        let other = {
            let list = list.clone();
            thread::spawn(move || list.retire(second, two))
        };
        list.retire(first, one);
        list.collect();
        other.join().unwrap();
        device.join().unwrap();
        list.collect();
        assert_eq!(drops.load(Ordering::Relaxed), 2);
    });
}

/// A graph that is dropped lets go of buffers, whose owners retire further things.
#[test]
fn drops_may_retire_and_collect() {
    orders(|| {
        let list = Arc::new(List::<Flag>::new());
        let drops = Arc::new(AtomicUsize::new(0));
        let event = Arc::new(AtomicBool::new(false));
        let inner = Kept { until: event.clone(), drops: drops.clone(), then: None };
        let again = (list.clone(), event.clone());
        let then = move || {
            let (list, event) = again;
            list.retire(Flag(event), Box::new(inner));
            list.collect();
        };
        let outer = Kept { until: event.clone(), drops: drops.clone(), then: Some(Box::new(then)) };
        let other = {
            let (list, event) = (list.clone(), event.clone());
            thread::spawn(move || {
                event.store(true, Ordering::Release);
                list.collect();
            })
        };
        list.retire(Flag(event), Box::new(outer));
        other.join().unwrap();
        list.collect();
        assert_eq!(drops.load(Ordering::Relaxed), 2);
    });
}
