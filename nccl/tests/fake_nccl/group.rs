//! Groups of calls: each operation adds a call, and the end of the outermost group enqueues them.

use std::cell::RefCell;
use std::ffi::c_int;

use crate::driver::graph_of;
use crate::state::{CHANGED, State, state};
use crate::work::enqueue;
use crate::{INTERNAL_ERROR, INVALID_ARGUMENT, Pointer, SUCCESS};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    AllReduce,
    Reduce,
    Broadcast,
    AllGather,
    ReduceScatter,
    Send,
    Recv,
}

/// A call of a group.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    pub(crate) kind: Kind,
    pub(crate) source: usize,
    pub(crate) target: usize,
    pub(crate) count: usize,
    pub(crate) element: c_int,
    pub(crate) op: c_int,
    /// The factor of an operator that was made: it may be destroyed once the group has ended, before its work runs.
    pub(crate) factor: [u8; 8],
    /// The root or the peer.
    pub(crate) root: usize,
    pub(crate) comm: usize,
    pub(crate) stream: usize,
}

thread_local! {
    static GROUP: RefCell<(u32, Vec<Call>)> = const { RefCell::new((0, Vec::new())) };
}

pub(crate) fn size_of_element(element: c_int) -> usize {
    [1, 1, 4, 4, 8, 8, 2, 4, 8, 2][element as usize]
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGroupStart() -> c_int {
    GROUP.with_borrow_mut(|group| group.0 += 1);
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclGroupEnd() -> c_int {
    let (group_has_ended, mut calls) = GROUP.with_borrow_mut(|group| {
        group.0 -= 1;
        (group.0 == 0, if group.0 == 0 { std::mem::take(&mut group.1) } else { Vec::new() })
    });
    // What does not wait comes first, and what waits for that last.
    calls.sort_by_key(|call| match call.kind {
        Kind::Send => 0,
        Kind::Recv => 2,
        _ => 1,
    });
    #[cfg(not(without_windows))]
    if group_has_ended && !crate::windows::register_all() {
        return INTERNAL_ERROR;
    }
    if !connect(&calls) {
        return INTERNAL_ERROR;
    }
    check_graphs(&calls);
    for call in calls {
        // SAFETY: the caller has passed memory and a stream of the communicator's device, which are live.
        unsafe { enqueue(call) };
    }
    SUCCESS
}

/// That the streams of a communicator are all captured by one graph, or none is: the real library refuses others.
fn check_graphs(calls: &[Call]) {
    for call in calls {
        let mut others = calls.iter().filter(|other| other.comm == call.comm);
        assert!(others.all(|other| graph_of(other.stream) == graph_of(call.stream)), "one graph");
    }
}

/// Waits until all ranks have called a collective operation, as real ones are connected then. False if a communicator is aborted
/// meanwhile.
fn connect(calls: &[Call]) -> bool {
    let collectives = || calls.iter().filter(|call| !matches!(call.kind, Kind::Send | Kind::Recv));
    let mut state = state();
    for call in collectives() {
        let comm = state.comms.get_mut(&call.comm).expect("a live communicator");
        assert!(comm.blocking, "operations are slow without");
        comm.is_in_call = true;
        let (clique, rank) = (comm.clique, comm.rank);
        state.connected.entry(clique).or_default().insert(rank);
    }
    CHANGED.notify_all();
    let is_aborted = |state: &State| collectives().any(|call| state.aborted.contains(&state.comms[&call.comm].family));
    let is_connected = |state: &State| {
        collectives().all(|call| {
            let comm = &state.comms[&call.comm];
            state.connected[&comm.clique].len() == comm.size
        })
    };
    while !is_aborted(&state) && !is_connected(&state) {
        state = CHANGED.wait(state).unwrap();
    }
    for call in collectives() {
        state.comms.get_mut(&call.comm).unwrap().is_in_call = false;
    }
    is_connected(&state)
}

/// Adds a call to the group of the thread; one outside is a group.
fn give(call: Call) -> c_int {
    let state = state();
    // As the real library refuses a communicator that is in progress.
    if state.comms[&call.comm].polls > 0 {
        return INVALID_ARGUMENT;
    }
    let factor = state.made.get(&call.op).copied().unwrap_or_default();
    drop(state);
    ncclGroupStart();
    GROUP.with_borrow_mut(|group| group.1.push(Call { factor, ..call }));
    // SAFETY: the caller of the operation has passed what this requires.
    unsafe { ncclGroupEnd() }
}

macro_rules! calls {
    ($($name:ident: $kind:ident($source:ident, $target:ident, $($op:ident)?; $($root:ident)?);)*) => { $(
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(
            $source: Pointer,
            $target: Pointer,
            count: usize,
            element: c_int,
            $($op: c_int,)?
            $($root: c_int,)?
            comm: Pointer,
            stream: Pointer,
        ) -> c_int {
            #[allow(unused_mut, unused_assignments)]
            let (mut operation, mut rank) = (0, 0);
            $(operation = $op;)?
            $(rank = $root as usize;)?
            give(Call {
                kind: Kind::$kind, source: $source as usize, target: $target as usize, count, element, op: operation,
                factor: [0; 8], root: rank, comm: comm as usize, stream: stream as usize,
            })
        }
    )* };
}

calls! {
    ncclAllReduce: AllReduce(source, target, op;);
    ncclReduce: Reduce(source, target, op; root);
    ncclBroadcast: Broadcast(source, target,; root);
    ncclAllGather: AllGather(source, target,;);
    ncclReduceScatter: ReduceScatter(source, target, op;);
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclSend(
    source: Pointer,
    count: usize,
    element: c_int,
    peer: c_int,
    comm: Pointer,
    stream: Pointer,
) -> c_int {
    message(Kind::Send, source, count, element, peer, comm, stream)
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclRecv(
    target: Pointer,
    count: usize,
    element: c_int,
    peer: c_int,
    comm: Pointer,
    stream: Pointer,
) -> c_int {
    message(Kind::Recv, target, count, element, peer, comm, stream)
}

fn message(
    kind: Kind,
    buffer: Pointer,
    count: usize,
    element: c_int,
    peer: c_int,
    comm: Pointer,
    stream: Pointer,
) -> c_int {
    let (root, comm, stream) = (peer as usize, comm as usize, stream as usize);
    give(Call {
        kind,
        source: buffer as usize,
        target: buffer as usize,
        count,
        element,
        op: 0,
        factor: [0; 8],
        root,
        comm,
        stream,
    })
}
