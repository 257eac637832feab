//! An NCCL for tests, compiled by `tests/ranks/fake_gpus.rs` into a `libnccl.so.2`, beside the fake driver of the host
//! (`host/tests/fake_driver/libcuda.rs`). An operation is three pieces of work on the stream that it is given: a copy of its source, a
//! callback that waits for the other ranks, and a copy to its target. So the fake driver judges whether its memory is ordered.
//! Each group leaves its communicators in progress for two queries; the first one until all ranks have called an operation, as real
//! ones are connected then.
//!
//! All its functions are `unsafe`: a caller must pass what the real library requires.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard};

type Pointer = *mut c_void;

const SUCCESS: c_int = 0;
const INVALID_ARGUMENT: c_int = 4;
const IN_PROGRESS: c_int = 7;

/// The version that it says it is.
const VERSION: c_int = 21_903;

/// The first number of an operation that was made.
const MADE: c_int = 100;

/// The most communicators that there may be.
const MOST: usize = 16;

/// How often a communicator is in progress after a group.
const POLLS: u32 = 2;

#[repr(C)]
pub struct Id([u8; 128]);

#[repr(C)]
pub struct Config {
    size: usize,
    magic: u32,
    version: u32,
    blocking: c_int,
}

/// The functions of the driver.
struct Driver {
    context: unsafe extern "C" fn(*mut Pointer) -> c_int,
    set_context: unsafe extern "C" fn(Pointer) -> c_int,
    copy: unsafe extern "C" fn(u64, u64, usize, Pointer) -> c_int,
    callback:
        unsafe extern "C" fn(Pointer, unsafe extern "C" fn(Pointer, c_int, Pointer), Pointer, u32) -> c_int,
}

// SAFETY: the declarations are those of POSIX.
unsafe extern "C" {
    fn dlopen(file: *const c_char, flags: c_int) -> Pointer;
    fn dlsym(library: Pointer, name: *const c_char) -> Pointer;
}

static DRIVER: LazyLock<Driver> = LazyLock::new(|| {
    // SAFETY: the program under test has loaded it; 2 is `RTLD_NOW`.
    let library = unsafe { dlopen(c"libcuda.so.1".as_ptr(), 2) };
    assert!(!library.is_null(), "there is a driver");
    let find = |name: &CStr| {
        // SAFETY: the library is open, and stays so.
        let found = unsafe { dlsym(library, name.as_ptr()) };
        assert!(!found.is_null(), "{name:?}");
        found
    };
    // SAFETY: these are the signatures of CUDA's driver.
    unsafe {
        Driver {
            context: std::mem::transmute::<Pointer, unsafe extern "C" fn(*mut Pointer) -> c_int>(find(
                c"cuCtxGetCurrent",
            )),
            set_context: std::mem::transmute::<Pointer, unsafe extern "C" fn(Pointer) -> c_int>(find(
                c"cuCtxSetCurrent",
            )),
            copy: std::mem::transmute::<Pointer, unsafe extern "C" fn(u64, u64, usize, Pointer) -> c_int>(
                find(c"cuMemcpyAsync"),
            ),
            callback: std::mem::transmute::<
                Pointer,
                unsafe extern "C" fn(
                    Pointer,
                    unsafe extern "C" fn(Pointer, c_int, Pointer),
                    Pointer,
                    u32,
                ) -> c_int,
            >(find(c"cuStreamAddCallback")),
        }
    }
});

#[derive(Default)]
struct State {
    next: usize,
    comms: HashMap<usize, Comm>,
    /// Those that ranks of one id are in, and how many have come.
    cliques: HashMap<[u8; 128], (usize, usize)>,
    rounds: HashMap<(usize, u64), Round>,
    messages: HashMap<(usize, usize, usize, u64), Vec<u8>>,
    splits: HashMap<(usize, u64), Vec<Choice>>,
    /// The ranks that have called an operation, by clique.
    connected: HashMap<usize, HashSet<usize>>,
    /// The factors of operations that were made.
    made: HashMap<c_int, [u8; 8]>,
}

struct Comm {
    clique: usize,
    rank: usize,
    size: usize,
    context: usize,
    collectives: u64,
    messages: HashMap<(usize, bool), u64>,
    splits: u64,
    is_splitting: bool,
    polls: u32,
}

struct Choice {
    rank: usize,
    color: c_int,
    key: c_int,
    comm: usize,
    /// Where the new communicator goes.
    place: usize,
}

#[derive(Default)]
struct Round {
    calls: Vec<(usize, Call, Vec<u8>)>,
    /// By rank, with how many have taken theirs.
    results: Option<Vec<Vec<u8>>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
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
struct Call {
    kind: Kind,
    source: usize,
    target: usize,
    count: usize,
    element: c_int,
    op: c_int,
    /// The factor of an operation that was made: it may be destroyed when the group has ended.
    factor: [u8; 8],
    /// The root or the peer.
    root: usize,
    comm: usize,
    stream: usize,
}

/// What the callback of a call gets.
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

static STATE: LazyLock<Mutex<State>> = LazyLock::new(Mutex::default);
static CHANGED: Condvar = Condvar::new();

thread_local! {
    static GROUP: RefCell<(u32, Vec<Call>)> = const { RefCell::new((0, Vec::new())) };
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap()
}

fn size_of_element(element: c_int) -> usize {
    [1, 1, 4, 4, 8, 8, 2, 4, 8, 2][element as usize]
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclGetVersion(version: *mut c_int) -> c_int {
    // SAFETY: the caller passes a place for it.
    unsafe { *version = VERSION };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclGetUniqueId(id: *mut Id) -> c_int {
    let mut state = state();
    state.next += 1;
    let mut bytes = [0; 128];
    bytes[..8].copy_from_slice(&state.next.to_ne_bytes());
    // SAFETY: the caller passes a place for it.
    unsafe { *id = Id(bytes) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommInitRankConfig(
    comm: *mut Pointer,
    size: c_int,
    id: Id,
    rank: c_int,
    config: *mut Config,
) -> c_int {
    // SAFETY: the caller passes a configuration.
    let Config { size: bytes, magic, version, blocking } = unsafe { config.read() };
    assert_eq!((bytes, magic, version, blocking), (48, 0xcafe_beef, 21_900, 0));
    let mut context = null_mut();
    // SAFETY: the place is valid for the call.
    unsafe { (DRIVER.context)(&mut context) };
    assert!(!context.is_null(), "the device's context is current");
    let mut state = state();
    let clique = state.next + 1;
    let (clique, joined) =
        *state.cliques.entry(id.0).and_modify(|(_, joined)| *joined += 1).or_insert((clique, 1));
    state.next += 1;
    assert!(joined <= size as usize);
    let handle = new_comm(&mut state, clique, rank as usize, size as usize, context as usize);
    // SAFETY: the caller passes a place for it.
    unsafe { *comm = handle as Pointer };
    SUCCESS
}

fn new_comm(state: &mut State, clique: usize, rank: usize, size: usize, context: usize) -> usize {
    state.next += 1;
    assert!(state.comms.len() < MOST, "communicators are destroyed");
    let (collectives, messages, splits) = Default::default();
    let comm = Comm {
        clique,
        rank,
        size,
        context,
        collectives,
        messages,
        splits,
        is_splitting: false,
        polls: POLLS,
    };
    state.comms.insert(state.next, comm);
    state.next
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommSplit(
    comm: Pointer,
    color: c_int,
    key: c_int,
    new: *mut Pointer,
    config: *const Config,
) -> c_int {
    assert!(config.is_null(), "that of the parent");
    let mut state = state();
    let own = state.comms.get_mut(&(comm as usize)).expect("a live communicator");
    let (clique, rank, size, number) = (own.clique, own.rank, own.size, own.splits);
    own.splits += 1;
    own.is_splitting = true;
    let choices = state.splits.entry((clique, number)).or_default();
    choices.push(Choice { rank, color, key, comm: comm as usize, place: new.expose_provenance() });
    if choices.len() == size {
        let mut choices = state.splits.remove(&(clique, number)).unwrap();
        choices.sort_by_key(|choice| (choice.color, choice.key, choice.rank));
        for part in choices.chunk_by(|one, other| one.color == other.color) {
            state.next += 1;
            let clique = state.next;
            for (rank, choice) in part.iter().enumerate() {
                let context = state.comms[&choice.comm].context;
                let new = if choice.color < 0 {
                    0
                } else {
                    new_comm(&mut state, clique, rank, part.len(), context)
                };
                // SAFETY: the caller passes a place that stays until the split has ended.
                unsafe { *std::ptr::with_exposed_provenance_mut::<Pointer>(choice.place) = new as Pointer };
                state.comms.get_mut(&choice.comm).unwrap().is_splitting = false;
            }
        }
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommUserRank(comm: Pointer, rank: *mut c_int) -> c_int {
    // SAFETY: the caller passes a place for it.
    unsafe { *rank = state().comms[&(comm as usize)].rank as c_int };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommCount(comm: Pointer, count: *mut c_int) -> c_int {
    // SAFETY: the caller passes a place for it.
    unsafe { *count = state().comms[&(comm as usize)].size as c_int };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommDestroy(comm: Pointer) -> c_int {
    state().comms.remove(&(comm as usize)).expect("destroyed once");
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommAbort(comm: Pointer) -> c_int {
    state().comms.remove(&(comm as usize)).expect("aborted once");
    CHANGED.notify_all();
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommGetAsyncError(comm: Pointer, error: *mut c_int) -> c_int {
    let mut state = state();
    let State { comms, connected, .. } = &mut *state;
    let Some(comm) = comms.get_mut(&(comm as usize)) else { return INVALID_ARGUMENT };
    let connected = connected.get(&comm.clique).map_or(0, HashSet::len);
    let is_connecting = comm.collectives > 0 && connected < comm.size;
    let busy = comm.is_splitting || comm.polls > 0 || is_connecting;
    comm.polls = comm.polls.saturating_sub(1);
    // SAFETY: the caller passes a place for it.
    unsafe { *error = if busy { IN_PROGRESS } else { SUCCESS } };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGetErrorString(code: c_int) -> *const c_char {
    if code == INVALID_ARGUMENT { c"invalid argument".as_ptr() } else { c"another error".as_ptr() }
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGetLastError(_comm: Pointer) -> *const c_char {
    null()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclRedOpCreatePreMulSum(
    op: *mut c_int,
    scalar: *const u8,
    element: c_int,
    place: c_int,
    _comm: Pointer,
) -> c_int {
    assert_eq!(place, 1, "on the host");
    let mut factor = [0; 8];
    // SAFETY: the caller passes an element, and a place for the operation.
    unsafe { factor.as_mut_ptr().copy_from_nonoverlapping(scalar, size_of_element(element)) };
    let mut state = state();
    state.next += 1;
    let number = MADE + state.next as c_int;
    state.made.insert(number, factor);
    // SAFETY: as above.
    unsafe { *op = number };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclRedOpDestroy(op: c_int, _comm: Pointer) -> c_int {
    state().made.remove(&op).expect("destroyed once");
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGroupStart() -> c_int {
    GROUP.with_borrow_mut(|group| group.0 += 1);
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclGroupEnd() -> c_int {
    let mut calls = GROUP.with_borrow_mut(|group| {
        group.0 -= 1;
        if group.0 == 0 { std::mem::take(&mut group.1) } else { Vec::new() }
    });
    // What does not wait comes first, and what waits for that last.
    calls.sort_by_key(|call| match call.kind {
        Kind::Send => 0,
        Kind::Recv => 2,
        _ => 1,
    });
    for call in calls {
        // SAFETY: the caller has passed memory and a stream of the communicator's device, which are live.
        unsafe { enqueue(call) };
    }
    IN_PROGRESS
}

/// # Safety
/// As NCCL requires of a call.
unsafe fn enqueue(call: Call) {
    let mut state = state();
    let comm = state.comms.get_mut(&call.comm).expect("a live communicator");
    comm.polls = POLLS;
    let (clique, rank, size, context) = (comm.clique, comm.rank, comm.size, comm.context);
    let number = match call.kind {
        Kind::Send | Kind::Recv => comm.messages.entry((call.root, call.kind == Kind::Recv)).or_default(),
        _ => &mut comm.collectives,
    };
    *number += 1;
    let number = *number;
    if !matches!(call.kind, Kind::Send | Kind::Recv) {
        state.connected.entry(clique).or_default().insert(rank);
    }
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
        assert_eq!((DRIVER.callback)(stream, meet, Box::into_raw(job).cast(), 0), SUCCESS);
        if received_bytes > 0 {
            assert_eq!((DRIVER.copy)(call.target as u64, received as u64, received_bytes, stream), SUCCESS);
        }
        (DRIVER.set_context)(before);
    }
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
        if !state.comms.contains_key(&call.comm) {
            return;
        }
        state = CHANGED.wait(state).unwrap();
    }
}

/// What each rank gets.
fn results(calls: &[(usize, Call, Vec<u8>)]) -> Vec<Vec<u8>> {
    let first = calls[0].1;
    assert!(calls.iter().all(|(_, call, _)| (call.kind, call.count, call.element, call.root)
        == (first.kind, first.count, first.element, first.root)));
    let bytes = first.count * size_of_element(first.element);
    match first.kind {
        Kind::AllReduce | Kind::Reduce => vec![reduced(calls); calls.len()],
        Kind::ReduceScatter => {
            let all = reduced(calls);
            (0..calls.len()).map(|rank| all[rank * bytes..][..bytes].to_vec()).collect()
        }
        Kind::Broadcast => vec![calls[first.root].2.clone(); calls.len()],
        _ => vec![calls.iter().flat_map(|(_, _, sent)| sent.clone()).collect(); calls.len()],
    }
}

macro_rules! reduce {
    ($calls:expr, $type:ty, $add:expr, $multiply:expr, $divide:expr) => {{
        let size = size_of::<$type>();
        let value = |bytes: &[u8]| <$type>::from_ne_bytes(bytes[..size].try_into().unwrap());
        (0..$calls[0].2.len() / size)
            .flat_map(|index| {
                let values = $calls.iter().map(|(_, call, sent)| {
                    let own = value(&sent[index * size..]);
                    if call.op >= MADE { $multiply(own, value(&call.factor)) } else { own }
                });
                let result = values.reduce(|one, other| match $calls[0].1.op {
                    1 => $multiply(one, other),
                    2 => {
                        if other > one {
                            other
                        } else {
                            one
                        }
                    }
                    3 => {
                        if other < one {
                            other
                        } else {
                            one
                        }
                    }
                    _ => $add(one, other),
                });
                let result = result.unwrap();
                (if $calls[0].1.op == 4 { $divide(result, $calls.len() as $type) } else { result })
                    .to_ne_bytes()
            })
            .collect()
    }};
    ($calls:expr, integer $type:ty) => {
        reduce!($calls, $type, <$type>::wrapping_add, <$type>::wrapping_mul, |a: $type, b: $type| a / b)
    };
    ($calls:expr, float $type:ty) => {
        reduce!(
            $calls,
            $type,
            |a: $type, b: $type| a + b,
            |a: $type, b: $type| a * b,
            |a: $type, b: $type| a / b
        )
    };
}

fn reduced(calls: &[(usize, Call, Vec<u8>)]) -> Vec<u8> {
    match calls[0].1.element {
        0 => reduce!(calls, integer i8),
        1 => reduce!(calls, integer u8),
        2 => reduce!(calls, integer i32),
        3 => reduce!(calls, integer u32),
        4 => reduce!(calls, integer i64),
        5 => reduce!(calls, integer u64),
        7 => reduce!(calls, float f32),
        8 => reduce!(calls, float f64),
        other => panic!("no element {other} here"),
    }
}

/// Adds a call to the group of the thread.
fn give(call: Call) -> c_int {
    let state = state();
    // As the real library refuses a communicator that is in progress.
    if state.comms[&call.comm].polls > 0 {
        return INVALID_ARGUMENT;
    }
    let factor = state.made.get(&call.op).copied().unwrap_or_default();
    drop(state);
    GROUP.with_borrow_mut(|group| {
        assert!(group.0 > 0, "in a group");
        group.1.push(Call { factor, ..call });
    });
    SUCCESS
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
