//! What all communicators of a process share: their calls, messages and splits, behind one lock.

use std::collections::{HashMap, HashSet};
use std::ffi::c_int;
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard};

use crate::group::Call;

#[derive(Default)]
pub(crate) struct State {
    pub(crate) next: usize,
    pub(crate) comms: HashMap<usize, Comm>,
    /// By id: the number of its clique, and how many ranks have joined.
    pub(crate) cliques: HashMap<[u8; 128], (usize, usize)>,
    pub(crate) rounds: HashMap<(usize, u64), Round>,
    pub(crate) messages: HashMap<(usize, usize, usize, u64), Vec<u8>>,
    pub(crate) splits: HashMap<(usize, u64), Vec<Choice>>,
    /// The ranks that have called an operation, by clique.
    pub(crate) connected: HashMap<usize, HashSet<usize>>,
    /// The families of communicators of which one has been aborted.
    pub(crate) aborted: HashSet<usize>,
    /// Memory that is registered, by its start: the communicator, and the bytes.
    pub(crate) registered: HashMap<usize, (usize, usize)>,
    /// The windows that ranks have made together, by clique and number: their places.
    pub(crate) windows: HashMap<(usize, u64), Vec<usize>>,
    /// What was allocated here.
    pub(crate) allocated: HashMap<usize, usize>,
    /// The factors of operators that `ncclRedOpCreatePreMulSum` made.
    pub(crate) made: HashMap<c_int, [u8; 8]>,
}

#[derive(Default)]
pub(crate) struct Comm {
    pub(crate) clique: usize,
    pub(crate) rank: usize,
    pub(crate) size: usize,
    pub(crate) context: usize,
    pub(crate) collectives: u64,
    pub(crate) messages: HashMap<(usize, bool), u64>,
    pub(crate) splits: u64,
    pub(crate) is_splitting: bool,
    pub(crate) polls: u32,
    /// Whether its calls block.
    pub(crate) blocking: bool,
    /// Whether what is split from it is of its family.
    pub(crate) shares: bool,
    /// Of those that end with one of them.
    pub(crate) family: usize,
    pub(crate) is_in_call: bool,
    /// How many windows it has made.
    pub(crate) windows: u64,
    /// The places of those that it has, by the starts of their memory.
    pub(crate) places: HashMap<usize, usize>,
    /// How many of its operations graphs have.
    pub(crate) graphs: usize,
}

pub(crate) struct Choice {
    pub(crate) rank: usize,
    pub(crate) color: c_int,
    pub(crate) key: c_int,
    pub(crate) comm: usize,
    /// Where the new communicator goes.
    pub(crate) place: usize,
}

#[derive(Default)]
pub(crate) struct Round {
    pub(crate) calls: Vec<(usize, Call, Vec<u8>)>,
    /// By rank, when all have called.
    pub(crate) results: Option<Vec<Vec<u8>>>,
}

static STATE: LazyLock<Mutex<State>> = LazyLock::new(Mutex::default);
pub(crate) static CHANGED: Condvar = Condvar::new();

pub(crate) fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap()
}
