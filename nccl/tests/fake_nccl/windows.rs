//! Windows: each rank places one where it has room, as the real library does, and all must have chosen the same place. With
//! `no_windows` in FAKE_NCCL the GPUs allow none.

use std::cell::RefCell;
use std::ffi::c_int;
use std::ptr::null_mut;

use crate::group::{ncclGroupEnd, ncclGroupStart};
use crate::state::{CHANGED, State, state};
use crate::{Pointer, SUCCESS};

/// `NCCL_WIN_COLL_SYMMETRIC`.
const SYMMETRIC: c_int = 1;

/// A window that a group registers.
struct Request {
    comm: usize,
    start: usize,
    bytes: usize,
    /// Where its handle goes.
    handle: Pointer,
}

thread_local! {
    static REQUESTS: RefCell<Vec<Request>> = const { RefCell::new(Vec::new()) };
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommWindowRegister(
    comm: Pointer,
    start: Pointer,
    bytes: usize,
    handle: *mut Pointer,
    flags: c_int,
) -> c_int {
    assert_eq!(flags, SYMMETRIC);
    // SAFETY: the caller passes a place for it.
    unsafe { *handle = null_mut() };
    if std::env::var("FAKE_NCCL").is_ok_and(|settings| settings.contains("no_windows")) {
        return SUCCESS;
    }
    ncclGroupStart();
    let request = Request { comm: comm as usize, start: start as usize, bytes, handle: handle.cast() };
    REQUESTS.with_borrow_mut(|requests| requests.push(request));
    // SAFETY: the group has no calls of operations from here.
    unsafe { ncclGroupEnd() }
}

/// Registers the windows of the group that ends, when all ranks have come. False if a communicator is aborted meanwhile.
pub(crate) fn register_all() -> bool {
    let requests = REQUESTS.take();
    let mut state = state();
    let mut rounds = Vec::new();
    for request in &requests {
        assert_eq!(state.allocated.get(&request.start), Some(&request.bytes), "memory that can be shared");
        let registered = state.registered.insert(request.start, (request.comm, request.bytes));
        assert!(registered.is_none(), "registered once");
        let comm = state.comms.get_mut(&request.comm).expect("a live communicator");
        assert!(comm.blocking, "its calls return when the window is there");
        comm.is_in_call = true;
        let place = (0..).find(|place| comm.places.values().all(|other| other != place)).unwrap();
        comm.places.insert(request.start, place);
        let round = (comm.clique, comm.windows);
        comm.windows += 1;
        rounds.push((round, comm.size));
        let places = state.windows.entry(round).or_default();
        places.push(place);
        assert!(places.iter().all(|other| *other == place), "a window has one place on all ranks: {places:?}");
    }
    CHANGED.notify_all();
    let is_aborted =
        |state: &State| requests.iter().any(|it| state.aborted.contains(&state.comms[&it.comm].family));
    let is_complete = |state: &State| rounds.iter().all(|(round, size)| state.windows[round].len() == *size);
    while !is_aborted(&state) && !is_complete(&state) {
        state = CHANGED.wait(state).unwrap();
    }
    for request in &requests {
        state.comms.get_mut(&request.comm).unwrap().is_in_call = false;
        // SAFETY: the caller has passed a place that stays until the group has ended.
        unsafe { *request.handle.cast::<Pointer>() = request.start as Pointer };
    }
    is_complete(&state)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommWindowDeregister(comm: Pointer, window: Pointer) -> c_int {
    let mut state = state();
    let (of, _) = state.registered.remove(&(window as usize)).expect("deregistered once");
    assert_eq!(of, comm as usize);
    let comm = state.comms.get_mut(&of).expect("a live communicator");
    comm.places.remove(&(window as usize)).expect("a window");
    SUCCESS
}
