//! The work that a call enqueues on its stream: the copies, and the callback that waits for the other ranks.

use std::ffi::c_int;
use std::ptr::null_mut;

use crate::driver::{DRIVER, graph_of};
use crate::group::{Call, Kind, size_of_element};
use crate::reductions::results;
use crate::state::{CHANGED, Comm, state};
use crate::{Pointer, SUCCESS};

/// What the callback of a call gets.
#[derive(Clone, Copy)]
struct Job {
    call: Call,
    clique: usize,
    rank: usize,
    size: usize,
    number: u64,
    sent: &'static [u8],
    received: usize,
    received_bytes: usize,
}

/// # Safety
/// As NCCL requires of a call.
pub(crate) unsafe fn enqueue(call: Call) {
    let graph = graph_of(call.stream);
    let mut state = state();
    let comm = state.comms.get_mut(&call.comm).expect("a live communicator");
    let (clique, rank, size, context) = (comm.clique, comm.rank, comm.size, comm.context);
    // That of a captured one is each launch's.
    let number = if graph.is_null() { comm.next_number(&call) } else { 0 };
    drop(state);
    let bytes = call.count * size_of_element(call.element);
    let (sent, received_bytes) = match call.kind {
        Kind::AllReduce => (bytes, bytes),
        Kind::Reduce => (bytes, if rank == call.root { bytes } else { 0 }),
        Kind::Broadcast => (if rank == call.root { bytes } else { 0 }, bytes),
        Kind::AllGather => (bytes, bytes * size),
        Kind::ReduceScatter => (bytes * size, bytes),
        Kind::Send => (bytes, 0),
        Kind::Recv => (0, bytes),
    };
    // Aligned for all elements.
    let room = |bytes: usize| vec![0_u64; bytes / 8 + 1].leak().as_mut_ptr().cast::<u8>();
    let (copy, received) = (room(sent), room(received_bytes));
    let stream = call.stream as Pointer;
    let mut before = null_mut();
    // SAFETY: the caller vouches for its memory and stream; the rest is leaked.
    unsafe {
        (DRIVER.context)(&mut before);
        (DRIVER.set_context)(context as Pointer);
        if sent > 0 {
            assert_eq!((DRIVER.copy)(copy as u64, call.source as u64, sent, stream), SUCCESS);
        }
        let sent = std::slice::from_raw_parts(copy, sent);
        let received = received.expose_provenance();
        let job = Box::new(Job { call, clique, rank, size, number, sent, received, received_bytes });
        let job = Box::into_raw(job).cast();
        if graph.is_null() {
            assert_eq!((DRIVER.callback)(stream, meet, job, 0), SUCCESS);
        } else {
            assert_eq!((DRIVER.captured_call)(stream, prepare, meet, job), SUCCESS);
            hold(graph, call.comm);
        }
        if received_bytes > 0 {
            assert_eq!((DRIVER.copy)(call.target as u64, received as u64, received_bytes, stream), SUCCESS);
        }
        (DRIVER.set_context)(before);
    }
}

impl Comm {
    /// The number of the next call like `call`.
    fn next_number(&mut self, call: &Call) -> u64 {
        let number = match call.kind {
            Kind::Send | Kind::Recv => self.messages.entry((call.root, call.kind == Kind::Recv)).or_default(),
            _ => &mut self.collectives,
        };
        *number += 1;
        *number
    }
}

/// Lets the graph hold the communicator, until the driver says that it is gone.
fn hold(graph: Pointer, comm: usize) {
    state().comms.get_mut(&comm).unwrap().graphs += 1;
    let mut object = null_mut();
    // SAFETY: the place is valid for the call, and the graph is live.
    let codes = unsafe {
        let created = (DRIVER.create_object)(&mut object, comm as Pointer, let_go, 1, 1);
        [created, (DRIVER.retain_object)(graph, object, 1, 1)]
    };
    assert_eq!(codes, [SUCCESS; 2]);
}

/// A graph with an operation of a communicator is gone.
unsafe extern "C" fn let_go(comm: Pointer) {
    state().comms.get_mut(&(comm as usize)).expect("it outlives its graphs").graphs -= 1;
}

/// The job of a launch, with its number.
///
/// # Safety
/// `job` is a `Job` of a graph.
unsafe extern "C" fn prepare(job: Pointer) -> Pointer {
    // SAFETY: passed on.
    let job = unsafe { *job.cast::<Job>() };
    let number = state().comms.get_mut(&job.call.comm).expect("it outlives its graphs").next_number(&job.call);
    Box::into_raw(Box::new(Job { number, ..job })).cast()
}

/// Waits for the other ranks of a call, until its communicator is aborted.
///
/// # Safety
/// `job` is a `Job`, given once.
unsafe extern "C" fn meet(_stream: Pointer, _code: c_int, job: Pointer) {
    // SAFETY: passed on.
    let job = unsafe { Box::from_raw(job.cast::<Job>()) };
    let Job { call, clique, rank, size, number, sent, .. } = *job;
    let mut state = state();
    match call.kind {
        Kind::Send => {
            state.messages.insert((clique, rank, call.root, number), sent.to_vec());
            CHANGED.notify_all();
            return;
        }
        Kind::Recv => {}
        _ => {
            let round = state.rounds.entry((clique, number)).or_default();
            round.calls.push((rank, call, sent.to_vec()));
            if round.calls.len() == size {
                round.calls.sort_by_key(|(rank, ..)| *rank);
                round.results = Some(results(&round.calls));
                CHANGED.notify_all();
            }
        }
    }
    loop {
        let result = match call.kind {
            Kind::Recv => state.messages.get(&(clique, call.root, rank, number)).cloned(),
            _ => state.rounds[&(clique, number)].results.as_ref().map(|results| results[rank].clone()),
        };
        if let Some(result) = result {
            assert!(job.received_bytes <= result.len());
            let target = std::ptr::with_exposed_provenance_mut::<u8>(job.received);
            // SAFETY: leaked, of so many bytes, which the next work on the stream reads.
            unsafe { target.copy_from_nonoverlapping(result.as_ptr(), job.received_bytes) };
            return;
        }
        if state.comms.get(&call.comm).is_none_or(|comm| state.aborted.contains(&comm.family)) {
            return;
        }
        state = CHANGED.wait(state).unwrap();
    }
}
