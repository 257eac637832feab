//! Work enqueued on the fake driver's streams, which runs when something waits for it.

use std::alloc::{Layout, dealloc};
use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use crate::arrays::Arrays;
use crate::feedback::{panic_as_kernels_do, panic_with, print_as_kernels_do};
use crate::order::Orders;
use crate::pool::{Pool, begin_alive};
use crate::{graph, number, setting};

pub(crate) type Code = u32;
pub(crate) type Pointer = *mut c_void;
pub(crate) const SUCCESS: Code = 0;
/// `CU_STREAM_LEGACY`.
pub(crate) const LEGACY: usize = 1;
/// `CU_STREAM_PER_THREAD`.
const PER_THREAD: usize = 2;

/// The stream that a handle means on the calling thread; default streams have other numbers than those that are made.
pub(crate) fn real(stream: Pointer) -> Pointer {
    static NEXT: AtomicUsize = AtomicUsize::new(0x100);
    thread_local!(static OWN: usize = NEXT.fetch_add(1, Ordering::Relaxed));
    let own = || std::ptr::without_provenance_mut(OWN.with(|own| *own));
    if stream as usize == PER_THREAD { own() } else { stream }
}

/// Whether a stream is a default one: it is there before anything is asked of it.
pub(crate) fn is_default(stream: Pointer) -> bool {
    matches!(stream as usize, 0 | LEGACY | PER_THREAD | 0x100..0x1000)
}

/// What a stream is to do.
///
/// Invariant: the memory at its addresses has the extents that it states, is aligned for its type, and is live until the
/// work has run. Callers of the driver must ensure that, because calls that enqueue work are `unsafe`. `Orders` panics
/// if memory is freed or used without an order between the streams, so work that uses the same memory runs one after the
/// other, and all work runs under the lock of `State`.
#[derive(Clone)]
pub(crate) enum Work {
    CopyBytes {
        target: usize,
        source: usize,
        bytes: usize,
    },
    CopyRows {
        target: usize,
        source: usize,
        target_pitch: usize,
        source_pitch: usize,
        width: usize,
        height: usize,
    },
    Fill {
        target: usize,
        pattern: Vec<u8>,
        count: usize,
    },
    FillRows {
        target: usize,
        pattern: Vec<u8>,
        width: usize,
        height: usize,
        pitch: usize,
    },
    Call {
        function: Callback,
        data: usize,
    },
    /// y <- a * x + y
    Saxpy {
        a: f32,
        x: usize,
        y: usize,
        len: usize,
        record: usize,
    },
    /// y <- y * factor + x; panics first if `failure` is not 0
    Mix {
        factor: u32,
        x: usize,
        y: usize,
        len: usize,
        failure: u32,
        record: usize,
    },
    Free {
        pointer: usize,
    },
    Record {
        event: usize,
        version: u64,
    },
    Wait {
        event: usize,
        version: u64,
    },
    /// A graph's memory is there, and is not.
    Map {
        start: usize,
        bytes: usize,
    },
    Unmap {
        start: usize,
        bytes: usize,
    },
    /// A captured call: `prepare` gives each launch its data.
    Prepare {
        prepare: Prepare,
        function: Callback,
        data: usize,
    },
    /// A launch lets go of user objects.
    LetGo {
        objects: Vec<usize>,
    },
    /// Memory of the pool begins to belong to its next owner, with anything in it.
    Begin {
        pointer: usize,
        bytes: usize,
    },
    /// Memory goes back to the pool.
    GiveBack {
        pointer: usize,
        number: usize,
        bytes: usize,
        owner: usize,
    },
}

pub(crate) type Callback = unsafe extern "C" fn(Pointer, Code, Pointer);
pub(crate) type Prepare = unsafe extern "C" fn(Pointer) -> Pointer;

#[derive(Default)]
pub(crate) struct State {
    pub(crate) next: usize,
    pub(crate) streams: HashMap<usize, VecDeque<Work>>,
    /// Streams that are in a callback.
    pub(crate) calling: HashSet<usize>,
    /// Streams that a graph is being launched on.
    pub(crate) launching: HashSet<usize>,
    /// Streams that are captured: the graph that each becomes, and its work so far.
    pub(crate) captures: HashMap<usize, (usize, Vec<Work>)>,
    /// Times recorded, and which of them have happened.
    pub(crate) events: HashMap<usize, (u64, HashSet<u64>)>,
    pub(crate) allocations: HashMap<usize, usize>,
    /// The contexts that allocated.
    pub(crate) owners: HashMap<usize, usize>,
    /// Which contexts may use the memory of which others.
    pub(crate) peers: HashSet<(usize, usize)>,
    /// Page-locked memory of the host, and whether it was registered.
    pub(crate) pinned: HashMap<usize, (usize, bool)>,
    /// Which of it is write-combined.
    pub(crate) write_combined: HashSet<usize>,
    pub(crate) arrays: Arrays,
    pub(crate) pool: Pool,
    pub(crate) orders: Orders,
    /// How many have been made.
    pub(crate) pools: usize,
    /// Those of the host's memory.
    pub(crate) host_pools: HashSet<usize>,
    /// Those of other processes, and what was opened of them.
    pub(crate) imported: HashSet<usize>,
    pub(crate) exported: HashSet<usize>,
    pub(crate) opened: Vec<usize>,
    /// The pools of allocations.
    pub(crate) pool_of: HashMap<usize, usize>,
    pub(crate) high_of: HashMap<usize, u64>,
    pub(crate) calls: HashMap<&'static str, u64>,
    /// The contexts of streams, events and page-locked memory.
    pub(crate) made_in: HashMap<usize, usize>,
    /// How many contexts have been reset.
    pub(crate) resets: u64,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

pub(crate) fn with<T>(f: impl FnOnce(&mut State) -> T) -> T {
    let mut state: MutexGuard<'_, Option<State>> = STATE.lock().unwrap();
    f(state.get_or_insert_with(State::default))
}

/// Drops all work, but for callbacks, which get `code`.
pub(crate) fn end(queue: &mut VecDeque<Work>, code: Code) {
    for work in queue.drain(..) {
        if let Work::Call { function, data } = work {
            // SAFETY: the caller of `cuStreamAddCallback` passed both, for one call.
            unsafe { function(std::ptr::null_mut(), code, data as Pointer) };
        }
    }
}

impl State {
    pub(crate) fn id(&mut self) -> usize {
        self.next += 1;
        0x1000 + self.next
    }

    /// All that was made in `context` is gone; gives the page-locked memory that was.
    pub(crate) fn reset(&mut self, context: usize) -> Vec<(usize, usize)> {
        self.resets += 1;
        let gone = |handle: &usize| self.made_in.get(handle) == Some(&context);
        self.streams.retain(|stream, _| !gone(stream));
        self.events.retain(|event, _| !gone(event));
        self.arrays.reset(gone);
        let owners = std::mem::take(&mut self.owners);
        self.allocations.retain(|start, _| owners.get(start) != Some(&context));
        self.owners = owners.into_iter().filter(|(_, owner)| *owner != context).collect();
        self.peers.retain(|(one, other)| *one != context && *other != context);
        let pinned = self.pinned.extract_if(|start, _| self.made_in.get(start) == Some(&context));
        pinned.map(|(start, (bytes, _))| (start, bytes)).collect()
    }

    /// Gives an event node's work what it stands for in this launch.
    pub(crate) fn stamp(&mut self, work: &mut Work) {
        match work {
            Work::Record { event, version } => {
                let record = self.events.get_mut(event).expect("a live event");
                record.0 += 1;
                *version = record.0;
            }
            Work::Wait { event, version } => *version = self.events[event].0,
            Work::Prepare { prepare, function, data } => {
                // SAFETY: the caller of `fakeCaptureCall` passed both, for any number of calls.
                let data = unsafe { prepare(*data as Pointer) } as usize;
                *work = Work::Call { function: *function, data };
            }
            _ => {}
        }
    }

    /// Whether `address` lies in page-locked memory of the host.
    pub(crate) fn is_page_locked(&self, address: usize) -> bool {
        self.pinned.iter().any(|(start, (bytes, _))| (*start..start + bytes).contains(&address))
    }

    pub(crate) fn push(&mut self, stream: *mut c_void, work: Work) {
        if is_default(stream) {
            self.streams.entry(real(stream) as usize).or_default();
        }
        let stream = real(stream) as usize;
        if let Some((_, captured)) = self.captures.get_mut(&stream) {
            let is_known = matches!(work, Work::CopyBytes { .. } | Work::Prepare { .. });
            assert!(is_known, "this cannot be captured");
            return captured.push(work);
        }
        assert!(!matches!(work, Work::Prepare { .. }), "only a stream that is captured takes it");
        self.pool.note(stream, &work);
        self.note_order(stream, &work);
        self.streams.get_mut(&stream).expect("a live stream").push_back(work);
        begin_alive();
    }

    /// Whether the host has write-combined memory there.
    pub(crate) fn is_write_combined(&self, address: usize) -> bool {
        self.write_combined
            .iter()
            .any(|start| self.pinned.get(start).is_some_and(|(bytes, _)| (*start..start + bytes).contains(&address)))
    }

    /// Whether streams may write numbers there and wait for them: not in memory of pools.
    pub(crate) fn takes_numbers(&self, address: u64) -> bool {
        let found = address as usize;
        self.pinned.iter().any(|(start, (bytes, _))| (*start..start + bytes).contains(&found))
    }

    /// Whether work that has not run uses this memory.
    pub(crate) fn is_in_use(&self, start: usize, bytes: usize) -> bool {
        let range = start..start + bytes;
        self.streams.values().flatten().any(|work| match work {
            Work::CopyBytes { target, source, .. } | Work::CopyRows { target, source, .. } => {
                range.contains(target) || range.contains(source)
            }
            Work::Saxpy { x, y, .. } | Work::Mix { x, y, .. } => range.contains(x) || range.contains(y),
            Work::Fill { target, .. } | Work::FillRows { target, .. } => range.contains(target),
            _ => false,
        })
    }

    /// Runs the next work of `stream`, if it can run now.
    pub(crate) fn step(&mut self, stream: usize) -> Step {
        if self.calling.contains(&stream) {
            return Step::Busy;
        }
        match self.streams.get_mut(&stream).and_then(VecDeque::pop_front) {
            None => Step::Empty,
            Some(Work::Call { function, data }) => {
                self.orders.has_run(stream);
                self.calling.insert(stream);
                Step::Call { function, data }
            }
            Some(Work::Wait { event, version }) if !self.happened(event, version) => {
                self.streams.get_mut(&stream).unwrap().push_front(Work::Wait { event, version });
                Step::Blocked { event, version }
            }
            Some(work) => {
                self.run(work);
                self.orders.has_run(stream);
                Step::Ran
            }
        }
    }

    /// Whether the next work of `stream` is a wait that is not over.
    pub(crate) fn is_blocked(&self, stream: usize) -> bool {
        match self.streams.get(&stream).and_then(VecDeque::front) {
            Some(&Work::Wait { event, version }) => !self.happened(event, version),
            _ => self.calling.contains(&stream),
        }
    }

    pub(crate) fn happened(&self, event: usize, version: u64) -> bool {
        version == 0 || self.events[&event].1.contains(&version)
    }

    pub(crate) fn run(&mut self, work: Work) {
        match work {
            // SAFETY: by the invariant of `Work`. A caller's ranges must not overlap, as for the real driver.
            Work::CopyBytes { target, source, bytes } => unsafe {
                std::ptr::copy_nonoverlapping(source as *const u8, target as *mut u8, bytes);
            },
            // SAFETY: by the invariant of `Work`: each row has `width` bytes, `pitch` apart. A caller's rows must not overlap.
            Work::CopyRows { target, source, target_pitch, source_pitch, width, height } => unsafe {
                for row in 0..height {
                    let (target, source) = (target + row * target_pitch, source + row * source_pitch);
                    std::ptr::copy_nonoverlapping(source as *const u8, target as *mut u8, width);
                }
            },
            // SAFETY: by the invariant of `Work`: `count` patterns follow each other at `target`.
            Work::Fill { target, pattern, count } => unsafe {
                for index in 0..count {
                    let place = (target + index * pattern.len()) as *mut u8;
                    place.copy_from_nonoverlapping(pattern.as_ptr(), pattern.len());
                }
            },
            Work::FillRows { target, pattern, width, height, pitch } => {
                for row in 0..height {
                    let (target, pattern) = (target + row * pitch, pattern.clone());
                    self.run(Work::Fill { target, pattern, count: width });
                }
            }
            // SAFETY: by the invariant of `Work`: `x` and `y` have `len` elements. They are accessed through raw pointers only, so they
            // may be the same.
            Work::Saxpy { a, x, y, len, record } => unsafe {
                if setting("panic").is_some_and(|value| value.parse() == Ok(a)) {
                    panic_as_kernels_do(record);
                }
                for number in 0..number("print", 0) {
                    print_as_kernels_do(if number % 2 == 0 { "even\n" } else { "odd\n" });
                }
                for index in 0..len {
                    let y = (y as *mut f32).add(index);
                    *y += a * *(x as *const f32).add(index);
                }
            },
            // SAFETY: as for `Saxpy`.
            Work::Mix { factor, x, y, len, failure, record } => unsafe {
                if failure != 0 {
                    panic_with(record, format!("failure {failure}"));
                }
                for index in 0..len {
                    let y = (y as *mut u32).add(index);
                    *y = (*y).wrapping_mul(factor).wrapping_add(*(x as *const u32).add(index));
                }
            },
            Work::Free { pointer } => self.release(pointer),
            Work::Map { start, bytes } => graph::memory::map(start, bytes),
            Work::Unmap { start, bytes } => graph::memory::unmap(start, bytes),
            // SAFETY: by the invariant of `Work`: the pool keeps the memory, and its last owner's work has run.
            Work::Begin { pointer, bytes } => unsafe { (pointer as *mut u8).write_bytes(0xaa, bytes) },
            Work::GiveBack { pointer, number, bytes, .. } => self.pool.has_back(pointer, number, bytes),
            Work::Record { event, version } => {
                if let Some(event) = self.events.get_mut(&event) {
                    event.1.insert(version);
                }
            }
            // It has happened.
            Work::Wait { .. } => {}
            Work::LetGo { objects } => graph::let_go(&objects),
            Work::Call { .. } | Work::Prepare { .. } => unreachable!("called without the lock"),
        }
    }

    pub(crate) fn release(&mut self, pointer: usize) {
        let bytes = self.allocations.remove(&pointer).expect("freed once");
        // SAFETY: all that is in `allocations` was allocated with this layout. It was removed, so this happens once.
        unsafe {
            (pointer as *mut u8).write_bytes(0xdd, bytes);
            dealloc(pointer as *mut u8, Layout::from_size_align(bytes, 256).unwrap());
        }
    }

    /// How much is used of `pool`.
    pub(crate) fn used_of(&self, pool: usize) -> u64 {
        let own = self.allocations.iter().filter(|(start, _)| self.pool_of.get(start) == Some(&pool));
        own.map(|(_, &bytes)| bytes as u64).sum()
    }

    /// Memory at `start` is from `pool`.
    pub(crate) fn enter(&mut self, start: usize, pool: usize) {
        self.pool_of.insert(start, pool);
        let (used, high) = (self.used_of(pool), self.high_of.entry(pool).or_default());
        *high = used.max(*high);
    }

    pub(crate) fn used(&self) -> u64 {
        let allocated: u64 = self.allocations.values().map(|&bytes| bytes as u64).sum();
        allocated - self.pool.free_bytes()
    }
}

/// What came of the next work of a stream.
pub(crate) enum Step {
    Ran,
    Empty,
    /// A callback is to be called, without the lock.
    Call {
        function: Callback,
        data: usize,
    },
    /// Another thread is in a callback of this stream.
    Busy,
    Blocked {
        event: usize,
        version: u64,
    },
}

/// Runs the next work of `stream`, and what it waits for; tells whether there may be more.
pub(crate) fn advance(stream: usize) -> bool {
    match with(|state| state.step(stream)) {
        Step::Ran => true,
        Step::Empty => false,
        Step::Call { function, data } => {
            // SAFETY: the caller of `cuStreamAddCallback` passed both, for one call: `step` has removed the work. Nodes of graphs
            // pass theirs for any number of calls.
            unsafe { function(std::ptr::null_mut(), SUCCESS, data as Pointer) };
            with(|state| state.calling.remove(&stream));
            true
        }
        Step::Busy => {
            std::thread::yield_now();
            true
        }
        Step::Blocked { event, version } => {
            wait(event, version);
            true
        }
    }
}

/// Runs all work of `stream`, and what it waits for.
pub(crate) fn drain(stream: usize) {
    while advance(stream) {}
}

/// Runs the stream with the record that is waited for, up to it.
pub(crate) fn wait(event: usize, version: u64) {
    loop {
        let is_it = |work: &Work| matches!(work, Work::Record { event: e, version: v } if (*e, *v) == (event, version));
        let stream = with(|state| {
            if state.happened(event, version) {
                return None;
            }
            let stream = state.streams.iter().find(|(_, queue)| queue.iter().any(is_it));
            Some(*stream.expect("the record is in some stream").0)
        });
        let Some(stream) = stream else { return };
        advance(stream);
    }
}

/// Lets work of `stream` run a little later, as if by itself.
pub(crate) fn drain_later(stream: usize, then: impl FnOnce() + Send + 'static) {
    std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(5));
        drain(stream);
        then();
    });
}
