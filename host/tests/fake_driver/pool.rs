//! A pool of the fake driver that gives memory out again as CUDA's may, at once and in stream order, and
//! streams that run by themselves in random order (`alive=1` in FAKE_CUDA; `FERROGRID_TEST_ORDER_SEED` says
//! in which, and is printed).
//!
//! Memory that was freed on a stream belongs to its next owner from the point on where that got it: at once on the
//! same stream, and on streams that come after the free by their waits for events; on other streams once the free has run.

use std::collections::{HashMap, HashSet};
use std::sync::{LazyLock, Once};
use std::time::Duration;

use crate::number;
use crate::work::{Work, advance, with};

/// How far each stream's work is known to be done before some point.
type Clock = HashMap<usize, u64>;

#[derive(Default)]
pub(crate) struct Pool {
    /// What the next work of each stream comes after; of itself, how much it was given.
    clocks: HashMap<usize, Clock>,
    /// What records of events came after.
    records: HashMap<(usize, u64), Clock>,
    free: Vec<Freed>,
    /// Streams whose work has all run.
    ended: HashSet<usize>,
}

struct Freed {
    pointer: usize,
    /// Which free it was: memory may be freed again before that has run.
    number: usize,
    owner: usize,
    bytes: usize,
    stream: usize,
    position: u64,
    /// Whether the free has run.
    has_run: bool,
}

/// Whether streams run by themselves, and the pool gives memory out again.
pub(crate) fn reuses() -> bool {
    static REUSES: LazyLock<bool> = LazyLock::new(|| number("alive", 0) == 1);
    *REUSES
}

impl Pool {
    /// Notes what follows from `work`, which `stream` is given now.
    pub(crate) fn note(&mut self, stream: usize, work: &Work) {
        if !reuses() {
            return;
        }
        let clock = self.clocks.entry(stream).or_default();
        let position = clock.entry(stream).or_default();
        *position += 1;
        let position = *position;
        match *work {
            Work::Record { event, version } => {
                clock.retain(|stream, _| !self.ended.contains(stream));
                let clock = clock.clone();
                self.records.insert((event, version), clock);
                // The record before it is not read any more.
                self.records.remove(&(event, version.wrapping_sub(1)));
            }
            Work::Wait { event, version } => {
                if let Some(record) = self.records.get(&(event, version)) {
                    for (&other, &theirs) in record {
                        let ours = clock.entry(other).or_default();
                        *ours = theirs.max(*ours);
                    }
                }
            }
            Work::GiveBack { pointer, number, bytes, owner } => {
                let freed = Freed { pointer, number, owner, bytes, stream, position, has_run: false };
                assert!(self.free.iter().all(|other| other.pointer != pointer), "freed twice");
                self.free.push(freed);
            }
            _ => {}
        }
    }

    /// Memory of that size that `stream` may have from now on.
    pub(crate) fn take(&mut self, stream: usize, owner: usize, bytes: usize) -> Option<usize> {
        let clock = self.clocks.entry(stream).or_default();
        let place = self.free.iter().rposition(|freed| {
            let comes_after = freed.stream == stream || clock.get(&freed.stream) >= Some(&freed.position);
            freed.bytes == bytes && freed.owner == owner && (comes_after || freed.has_run)
        })?;
        Some(self.free.swap_remove(place).pointer)
    }

    /// Unallocated memory.
    pub(crate) fn free_bytes(&self) -> u64 {
        self.free.iter().map(|freed| freed.bytes as u64).sum()
    }

    /// `stream` is gone, and all its work has run.
    pub(crate) fn end(&mut self, stream: usize) {
        self.clocks.remove(&stream);
        self.ended.insert(stream);
    }

    /// Nothing asks for the event any more.
    pub(crate) fn forget(&mut self, event: usize, version: u64) {
        self.records.remove(&(event, version));
    }

    /// The free of `pointer` has run. If it has an owner already, its work comes later.
    pub(crate) fn has_back(&mut self, pointer: usize, number: usize, bytes: usize) {
        // SAFETY: by the invariant of `Work`, the memory has so many bytes. The pool never returns it to the system, and its next
        // owner's work comes after this.
        unsafe { (pointer as *mut u8).write_bytes(0xdd, bytes) };
        if let Some(freed) = self.free.iter_mut().find(|freed| freed.number == number) {
            freed.has_run = true;
        }
    }
}

/// Lets streams run by themselves from now on, if they are to.
pub(crate) fn begin_alive() {
    static BEGUN: Once = Once::new();
    if reuses() {
        BEGUN.call_once(|| drop(std::thread::spawn(run_for_ever)));
    }
}

/// Runs one stream after the other, as many operations of each as chance has it.
fn run_for_ever() {
    let given = std::env::var("FERROGRID_TEST_ORDER_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = given.unwrap_or_else(|| std::process::id().into());
    eprintln!("FERROGRID_TEST_ORDER_SEED={seed}");
    let mut random = 0x9e37_79b9_7f4a_7c15 ^ seed;
    let mut below = |n: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % n
    };
    loop {
        let busy: Vec<usize> = with(|state| {
            let busy = state.streams.iter().filter(|(_, queue)| !queue.is_empty());
            busy.map(|(stream, _)| *stream).collect()
        });
        if busy.is_empty() || below(4) == 0 {
            std::thread::sleep(Duration::from_micros(below(500)));
            continue;
        }
        let stream = busy[below(busy.len() as u64) as usize];
        for _ in 0..below(64) {
            if with(|state| state.is_blocked(stream)) || !advance(stream) {
                break;
            }
        }
    }
}
