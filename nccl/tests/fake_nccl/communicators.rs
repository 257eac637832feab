//! Communicators: their ids, their ranks, splits, and whether they are in progress.

use std::ffi::c_int;
use std::ptr::null_mut;

use crate::driver::DRIVER;
use crate::state::{CHANGED, Choice, Comm, State, state};
use crate::{IN_PROGRESS, INVALID_ARGUMENT, Pointer, SUCCESS};

/// The most communicators that there may be.
const MOST: usize = 40;

/// How often a communicator is in progress after it has been made.
const POLLS: u32 = 2;

#[repr(C)]
pub struct Id([u8; 128]);

#[repr(C)]
pub struct Config {
    size: usize,
    magic: u32,
    version: u32,
    blocking: c_int,
    _sizes: [c_int; 3],
    _net: Pointer,
    split_share: c_int,
    _traffic_class: c_int,
}

impl Config {
    /// Whether calls block, and whether what is split shares its resources.
    fn read(&self) -> (bool, bool) {
        assert_eq!((self.size, size_of::<Config>()), (48, 48));
        assert_eq!((self.magic, self.version), (0xcafe_beef, 21_900));
        (self.blocking == 1, self.split_share == 1)
    }
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
    let (blocking, shares) = unsafe { &*config }.read();
    assert!(!blocking, "ranks that do not come are waited for in vain");
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
    let family = state.next;
    let new = Comm::new(clique, rank as usize, size as usize, context as usize);
    let handle = insert(&mut state, Comm { shares, family, ..new });
    // SAFETY: the caller passes a place for it.
    unsafe { *comm = handle as Pointer };
    SUCCESS
}

impl Comm {
    fn new(clique: usize, rank: usize, size: usize, context: usize) -> Self {
        Comm { clique, rank, size, context, polls: POLLS, ..Comm::default() }
    }
}

fn insert(state: &mut State, comm: Comm) -> usize {
    state.next += 1;
    assert!(state.comms.len() < MOST, "communicators are destroyed");
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
    // SAFETY: the caller passes a configuration.
    let (blocking, shares) = unsafe { &*config }.read();
    let mut state = state();
    let own = state.comms.get_mut(&(comm as usize)).expect("a live communicator");
    assert!(!own.blocking, "ranks that do not come are waited for in vain");
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
                let parent = &state.comms[&choice.comm];
                let comm = Comm::new(clique, rank, part.len(), parent.context);
                let family = if parent.shares { parent.family } else { state.next };
                let new = if choice.color < 0 {
                    0
                } else {
                    insert(&mut state, Comm { blocking, shares, family, ..comm })
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
    let mut state = state();
    assert!(state.registered.values().all(|(of, _)| *of != comm as usize), "memory is deregistered before");
    let comm = state.comms.remove(&(comm as usize)).expect("destroyed once");
    assert_eq!(comm.graphs, 0, "the real library waits for its graphs without end");
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommAbort(comm: Pointer) -> c_int {
    let (mut state, ended) = (state(), comm as usize);
    let comm = state.comms.remove(&ended).expect("aborted once");
    state.registered.retain(|_, (of, _)| *of != ended);
    assert!(!comm.is_in_call, "no thread uses it");
    assert_eq!(comm.graphs, 0, "the real library waits for its graphs without end");
    state.aborted.insert(comm.family);
    CHANGED.notify_all();
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommGetAsyncError(comm: Pointer, error: *mut c_int) -> c_int {
    let mut state = state();
    let Some(comm) = state.comms.get_mut(&(comm as usize)) else { return INVALID_ARGUMENT };
    let busy = comm.is_splitting || comm.polls > 0;
    comm.polls = comm.polls.saturating_sub(1);
    // SAFETY: the caller passes a place for it.
    unsafe { *error = if busy { IN_PROGRESS } else { SUCCESS } };
    SUCCESS
}
