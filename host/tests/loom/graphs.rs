//! Recordings by one thread, and launches of graphs that use constants, which have no owner.

#[path = "../../src/backend/recording/bound.rs"]
mod bound;
#[path = "../../src/memory/constant/enqueueing.rs"]
mod enqueueing;

use bound::{Bound, Refused};
use enqueueing::Enqueuers;
use loom::sync::{Arc, RwLock};
use loom::thread;

use crate::order::{Order, Queue, Use, Work, orders};

/// Work of another thread is never in the graph, however its steps interleave with the owner's.
#[test]
fn only_its_thread_records() {
    orders(|| {
        let nodes = Arc::new(Bound::new(vec![1]));
        let other = {
            let nodes = nodes.clone();
            thread::spawn(move || nodes.with(|nodes| nodes.push(9)))
        };
        assert_eq!(nodes.with(|nodes| nodes.push(2)), Ok(()));
        assert_eq!(nodes.with(|nodes| nodes.push(3)), Ok(()));
        assert_eq!(nodes.end(), Some(vec![1, 2, 3]));
        assert_eq!(other.join().unwrap(), Err(Refused::OtherThread));
        assert_eq!(nodes.with(|nodes| nodes.push(4)), Err(Refused::Ended));
    });
}

/// The end has all that was recorded before it, and later calls get an error.
#[test]
fn a_recording_that_another_thread_ends_has_all_announced_buffers() {
    orders(|| {
        let nodes = Arc::new(Bound::new(Vec::new()));
        let other = {
            let nodes = nodes.clone();
            thread::spawn(move || nodes.end())
        };
        let recorded: Vec<u32> =
            (1..=2).filter(|&node| nodes.with(|nodes| nodes.push(node)).is_ok()).collect();
        assert_eq!(other.join().unwrap(), Some(recorded));
        assert_eq!(nodes.end(), None, "it ends once");
    });
}

/// What a launch of a graph does with the constants in its slots: it holds them from their entry into the order until it is
/// enqueued.
fn launch_graph(
    enqueuers: &Enqueuers,
    constants: &[Order<Queue>],
    uses: &[(usize, Use)],
    queue: &Arc<Queue>,
) -> Work {
    let _enqueueing = enqueuers.for_uses(uses.iter().map(|(_, usage)| *usage));
    for &(constant, usage) in uses {
        let Ok(()) = constants[constant].begin(queue, usage);
    }
    queue.enqueue()
}

/// Two threads launch, each its own graph on its own stream.
fn graphs_at_the_same_time(first: &'static [(usize, Use)], second: &'static [(usize, Use)]) {
    orders(move || {
        let queues: [_; 3] = Queue::several();
        let constants = Arc::new([(); 2].map(|()| Order::new(queues[0].clone())));
        let enqueuers = Arc::new(Enqueuers { lock: RwLock::new(()) });
        let other = {
            let (enqueuers, constants, queue) = (enqueuers.clone(), constants.clone(), queues[1].clone());
            thread::spawn(move || launch_graph(&enqueuers, &*constants, second, &queue))
        };
        let one = launch_graph(&enqueuers, &*constants, first, &queues[2]);
        let two = other.join().unwrap();
        let conflict = |&(constant, usage): &(usize, Use)| {
            second.iter().any(|&(other, its)| other == constant && (usage, its) != (Use::Read, Use::Read))
        };
        let is_ordered = one.comes_after(&two) || two.comes_after(&one);
        assert_eq!(is_ordered, first.iter().any(conflict), "{one:?} and {two:?}");
    });
}

#[test]
fn graphs_that_set_a_constant_are_ordered_with_all_that_use_it() {
    use Use::{Read, Write};
    graphs_at_the_same_time(&[(0, Write)], &[(0, Write)]);
    graphs_at_the_same_time(&[(0, Write)], &[(0, Read)]);
    graphs_at_the_same_time(&[(0, Read), (1, Write)], &[(1, Read), (0, Read)]);
    graphs_at_the_same_time(&[(1, Write), (0, Read)], &[(0, Read), (1, Read)]);
}

#[test]
fn graphs_that_read_the_same_constants_do_not_wait() {
    graphs_at_the_same_time(&[(0, Use::Read), (1, Use::Read)], &[(1, Use::Read), (0, Use::Read)]);
}
