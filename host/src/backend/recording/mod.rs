//! The backend that records a graph instead of running work: its nodes, the streams that add them, and the order between
//! them. `stream` is what such a stream takes, `lifetimes` has nodes that allocate and free, `staging` memory of single
//! launches; `bound` confines a recording to its thread, `refusal` has the errors for what no graph can hold.
//!
//! The order is that of ordinary streams: a node comes after the one before it on its stream, after all
//! that its stream was made to wait for, and, for each buffer that it uses, after the nodes that used it
//! in a way that conflicts. So no two nodes race, whatever dependencies are stated by hand.
//!
//! A launch tells first what it uses (`note_use`), then what it is (`add`), so one thread records.

pub(crate) mod bound;
mod lifetimes;
pub(crate) mod refusal;
mod staging;
mod stream;

use std::ptr::from_ref;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

pub(crate) use lifetimes::Lifetime;

use crate::backend::operation::{Address, ConditionalNode, Node, Operation, OwnedLaunch, Place, Repeat};
use crate::backend::{DeviceBackend, Launch, LaunchConfig, MemoryNodes, Prepared, cpu};
use crate::error::Result;
use crate::error::graph::GraphError;
use crate::kernel::Kernel;
use crate::memory::Memory;
use crate::order::Use;
use crate::stream::Stream;
use crate::sync::lock;
use bound::{Bound, Refused};
use refusal::{external_in_body, not_recordable};

/// The number of the graph itself among the bodies.
const GRAPH: u64 = 0;

/// How deep conditional nodes, and child graphs, are nested at most: to run and to drop them takes stack for each level.
pub(crate) const MANY_LEVELS: usize = 32;

/// A buffer that a node uses, but that was not given to the graph.
pub(crate) enum Adopted {
    Constant(&'static Memory),
    /// A value of the host's, as it was when the node was recorded.
    Value(Arc<Memory>),
    /// Memory of one launch, which a node before it fills.
    Scratch(Arc<Memory>),
}

/// A graph that is being recorded.
pub(crate) struct Recorder {
    id: u64,
    device: DeviceBackend,
    /// Whether the graph takes memory that it was not given: an update does not.
    adopts: bool,
    /// How many conditional nodes there are, in bodies as well.
    conditions: AtomicUsize,
    /// Adopted buffers that were not taken yet, by buffer number: the last ones.
    adopted: Mutex<Vec<Adopted>>,
    /// Real, for the values of the host's; made for the first of them.
    staging: Mutex<Option<Stream>>,
    state: Bound<State>,
}

/// What is recorded: the graph itself, or the body of a conditional node in it.
#[derive(Default)]
struct State {
    /// The graph is number 0, and each body has another number.
    body: u64,
    /// How many conditional nodes it is inside of.
    depth: usize,
    /// What it is the body of.
    outer: Option<Box<State>>,
    nodes: Vec<Node>,
    /// For each stream, what its next node comes after.
    tails: Vec<Vec<usize>>,
    /// For each stream, the uses that its next node has announced: a place in `buffers`, and how.
    announced: Vec<Vec<(usize, Use)>>,
    buffers: Vec<BufferUses>,
    /// The last node that each participant in external work is in.
    participants: Vec<(usize, usize)>,
    /// What nodes allocate that no node frees yet.
    allocated: Vec<Allocated>,
    memory: Option<MemoryNodes>,
}

/// A buffer that a node allocates, number `node`.
#[derive(Clone, Copy)]
struct Allocated {
    buffer: usize,
    node: usize,
}

/// A buffer that the graph holds, and which nodes have used it.
struct BufferUses {
    /// Where its `Memory` lives.
    memory: usize,
    start: Address,
    bytes: usize,
    place: Place,
    may_write: bool,
    writer: Option<usize>,
    readers: Vec<usize>,
}

/// A stream that adds to a recording.
pub(crate) struct RecordingStream {
    recorder: Arc<Recorder>,
    body: u64,
    line: usize,
}

/// An event of a recording.
pub(crate) struct RecordedEvent {
    recorder: Arc<Recorder>,
    body: u64,
    nodes: Mutex<Vec<usize>>,
}

impl Recorder {
    pub(crate) fn new(device: DeviceBackend) -> Arc<Self> {
        Recorder::of(device, true)
    }

    /// For one node, which uses what the graph holds already.
    pub(crate) fn of_update(device: DeviceBackend) -> Arc<Self> {
        Recorder::of(device, false)
    }

    fn of(device: DeviceBackend, adopts: bool) -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let state = Bound::new(State::default());
        let (conditions, adopted, staging) = (AtomicUsize::new(0), Mutex::default(), Mutex::default());
        Arc::new(Recorder { id, device, adopts, conditions, adopted, staging, state })
    }

    /// A number that no other graph has.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// A further stream of the graph, whose first node comes after the nodes `after`.
    pub(crate) fn stream(self: &Arc<Self>, after: Vec<usize>) -> Result<RecordingStream> {
        self.stream_in(GRAPH, after)
    }

    fn stream_in(self: &Arc<Self>, body: u64, after: Vec<usize>) -> Result<RecordingStream> {
        let line = self.with(body, |state| Ok(state.new_line(after)))?;
        Ok(RecordingStream { recorder: self.clone(), body, line })
    }

    /// Lets nodes use `memory`, which stays where it is while the graph exists. Buffers are numbered in the
    /// order in which they are admitted.
    pub(crate) fn admit(&self, memory: &Memory, may_write: bool) -> Result<()> {
        self.with(GRAPH, |state| {
            state.admit(memory, may_write);
            Ok(())
        })
    }

    /// Lets nodes use `memory` of a child graph; its number, and whether it was not known before.
    pub(crate) fn admit_again(&self, memory: &Memory, may_write: bool) -> Result<(usize, bool)> {
        self.with(GRAPH, |state| {
            let known = state.find(memory);
            if known.is_none() {
                state.admit(memory, may_write);
            }
            Ok((known.unwrap_or(state.buffers.len() - 1), known.is_none()))
        })
    }

    /// The buffers that have been adopted since the last call. They have the numbers after those of the buffers
    /// before, in this order.
    pub(crate) fn take_adopted(&self) -> Vec<Adopted> {
        std::mem::take(&mut lock(&self.adopted))
    }

    fn adopt(&self, memory: Adopted) {
        lock(&self.adopted).push(memory);
    }

    /// The number of nodes so far.
    pub(crate) fn count(&self) -> Result<usize> {
        self.with(GRAPH, |state| Ok(state.nodes.len()))
    }

    /// Makes the nodes from number `first` on empty ones: what recorded them has failed. They stay as such, because
    /// they may have been named.
    pub(crate) fn empty_from(&self, first: usize) {
        // The recording may have ended meanwhile; then there is nothing to do.
        let _ended = self.with(GRAPH, |state| {
            state.empty_from(first);
            Ok(())
        });
    }

    /// The number of conditional nodes so far, in bodies as well.
    pub(crate) fn conditions(&self) -> usize {
        self.conditions.load(Ordering::Relaxed)
    }

    /// Ends the recording: its nodes, and those of them that allocate and free.
    pub(crate) fn finish(&self) -> (Vec<Node>, Option<MemoryNodes>) {
        let Some(mut state) = self.state.end() else { return Default::default() };
        // Bodies that a panic has left.
        while let Some(outer) = state.outer.take() {
            state = *outer;
        }
        state.free_rest();
        (state.nodes, state.memory)
    }

    /// Calls `work` with what is recorded, if that is `body`.
    fn with<R>(&self, body: u64, work: impl FnOnce(&mut State) -> Result<R>) -> Result<R> {
        let had = self
            .state
            .with(|state| if state.body == body { work(state) } else { Err(GraphError::OtherBody.into()) });
        had.map_err(|refused| match refused {
            Refused::OtherThread => GraphError::OtherThread,
            Refused::Ended => GraphError::Ended,
        })?
    }

    /// Begins the body of a conditional node in `outer`; its number.
    fn begin_body(&self, outer: u64) -> Result<u64> {
        static NEXT: AtomicU64 = AtomicU64::new(GRAPH + 1);
        let body = NEXT.fetch_add(1, Ordering::Relaxed);
        self.with(outer, |state| {
            let depth = state.depth + 1;
            if depth > MANY_LEVELS {
                return Err(GraphError::TooDeep { limit: MANY_LEVELS }.into());
            }
            let unused = |buffer: &BufferUses| BufferUses { writer: None, readers: Vec::new(), ..*buffer };
            let buffers = state.buffers.iter().map(unused).collect();
            let outer = Some(Box::new(std::mem::take(state)));
            *state = State { body, depth, outer, buffers, ..State::default() };
            Ok(())
        })?;
        Ok(body)
    }

    /// Ends `body`; its nodes.
    fn end_body(&self, body: u64) -> Result<Vec<Node>> {
        self.with(body, |state| {
            let outer = state.outer.take().ok_or(GraphError::Ended)?;
            Ok(std::mem::replace(state, *outer).nodes)
        })
    }
}

impl State {
    fn note_use(&mut self, line: usize, memory: &Memory, usage: Use) -> Result<()> {
        let buffer = self.find(memory).ok_or(GraphError::UnknownBuffer)?;
        if usage != Use::Read && !self.buffers[buffer].may_write {
            return Err(GraphError::ReadOnlyBuffer.into());
        }
        self.announced[line].push((buffer, usage));
        Ok(())
    }

    /// The number of a buffer, if it is known.
    fn find(&self, memory: &Memory) -> Option<usize> {
        let address = from_ref(memory).addr();
        self.buffers.iter().position(|buffer| buffer.memory == address)
    }

    /// Where the graph's memory at `address` is.
    fn place_of(&self, address: *const u8) -> Place {
        let has = |buffer: &&BufferUses| {
            address.addr().checked_sub(buffer.start.0.addr()).is_some_and(|offset| offset < buffer.bytes)
        };
        self.buffers.iter().find(has).map_or(Place::Device, |buffer| buffer.place)
    }

    /// Admits it here and, under the same number, in all that this is inside of.
    fn admit(&mut self, memory: &Memory, may_write: bool) {
        self.buffers.push(BufferUses {
            memory: from_ref(memory).addr(),
            start: Address(memory.pointer()),
            bytes: memory.addressed_bytes(),
            place: memory.place(),
            may_write,
            writer: None,
            readers: Vec::new(),
        });
        if let Some(outer) = &mut self.outer {
            outer.admit(memory, may_write);
        }
    }

    /// A further stream, whose first node comes after the nodes `after`; its number.
    fn new_line(&mut self, after: Vec<usize>) -> usize {
        self.tails.push(after);
        self.announced.push(Vec::new());
        self.tails.len() - 1
    }

    fn add(&mut self, line: usize, operation: Operation) -> usize {
        let uses = std::mem::take(&mut self.announced[line]);
        self.add_with(line, operation, uses)
    }

    /// One node of several streams, with the uses that all of them have announced.
    fn add_on_all(&mut self, lines: &[usize], operation: Operation) -> usize {
        let (mut uses, mut after) = (Vec::new(), Vec::new());
        for &line in lines {
            uses.append(&mut self.announced[line]);
            after.append(&mut self.tails[line]);
        }
        self.tails[lines[0]] = after;
        let node = self.add_with(lines[0], operation, strongest(uses));
        lines.iter().for_each(|&line| self.tails[line] = vec![node]);
        node
    }

    fn add_with(&mut self, line: usize, operation: Operation, uses: Vec<(usize, Use)>) -> usize {
        let node = self.nodes.len();
        let mut after = std::mem::replace(&mut self.tails[line], vec![node]);
        for &(buffer, usage) in &uses {
            let buffer = &self.buffers[buffer];
            after.extend(buffer.writer);
            if usage != Use::Read {
                after.extend(&buffer.readers);
            }
        }
        for participant in operation.participants() {
            let id = participant.id();
            match self.participants.iter_mut().find(|(known, _)| *known == id) {
                Some((_, last)) => after.push(std::mem::replace(last, node)),
                None => self.participants.push((id, node)),
            }
        }
        let after = self.without_implied(after);
        self.nodes.push(Node { operation: Arc::new(operation), after, uses, prepares: false });
        self.enter_uses(node);
        node
    }

    /// Enters the uses of the last node, number `node`, with the buffers.
    fn enter_uses(&mut self, node: usize) {
        for &(buffer, usage) in &self.nodes[node].uses {
            let buffer = &mut self.buffers[buffer];
            if usage == Use::Read {
                buffer.readers.push(node);
            } else {
                buffer.writer = Some(node);
                buffer.readers.clear();
            }
        }
    }

    fn empty_from(&mut self, first: usize) {
        // Allocations are freed, whatever has failed.
        let fails =
            |node: &&mut Node| !matches!(*node.operation, Operation::Allocate(_) | Operation::Free { .. });
        for node in self.nodes.iter_mut().skip(first).filter(fails) {
            node.operation = Arc::new(Operation::Empty);
            node.uses.clear();
            node.prepares = false;
        }
        for buffer in &mut self.buffers {
            (buffer.writer, buffer.readers) = (None, Vec::new());
        }
        (0..self.nodes.len()).for_each(|node| self.enter_uses(node));
    }

    /// `after` in order, without what comes before another of them anyway.
    fn without_implied(&self, mut after: Vec<usize>) -> Vec<usize> {
        after.sort_unstable();
        after.dedup();
        let Some(&first) = after.first() else { return after };
        if after.len() == 1 {
            return after;
        }
        // Backwards from each of them, as far as the first.
        let mut before = vec![false; self.nodes.len() - first];
        let mut open: Vec<usize> = after.iter().flat_map(|&node| &self.nodes[node].after).copied().collect();
        while let Some(node) = open.pop() {
            if node >= first && !std::mem::replace(&mut before[node - first], true) {
                open.extend(&self.nodes[node].after);
            }
        }
        after.retain(|&node| !before[node - first]);
        after
    }
}

impl RecordingStream {
    /// A stream whose work comes after what this one has so far.
    pub(crate) fn fork(&self) -> Result<RecordingStream> {
        self.recorder.stream_in(self.body, self.tail()?)
    }

    /// Adds a conditional node: its body is what `work` records on the stream that it is given, its condition
    /// the first element of buffer number `condition` of the graph. The node's number.
    pub(crate) fn conditional<R>(
        &self,
        repeat: Repeat,
        condition: usize,
        work: impl FnOnce(RecordingStream) -> Result<R>,
    ) -> Result<(usize, R)> {
        let address = self.with(|state| {
            let buffer = &state.buffers[condition];
            if buffer.bytes < size_of::<u32>() {
                Err(GraphError::NoCondition.into())
            } else {
                Ok(buffer.start)
            }
        })?;
        let number = self.recorder.begin_body(self.body)?;
        let recorded = self.recorder.stream_in(number, Vec::new()).and_then(work);
        let body = self.recorder.end_body(number)?;
        let result = recorded?;
        let mut uses = vec![(condition, Use::Read)];
        uses.extend(body.iter().flat_map(|node| node.uses.iter().copied()));
        let number = self.recorder.conditions.fetch_add(1, Ordering::Relaxed);
        let node = ConditionalNode { repeat, condition: address, number, body };
        self.with(|state| {
            state.announced[self.line].extend(strongest(uses));
            Ok((state.add(self.line, Operation::Conditional(node)), result))
        })
    }

    /// Adds a node that is a graph of `nodes`; its number.
    pub(crate) fn add_child(&self, nodes: Vec<Node>) -> Result<usize> {
        let uses = nodes.iter().flat_map(|node| node.uses.iter().copied()).collect();
        self.with(|state| {
            state.announced[self.line].extend(strongest(uses));
            Ok(state.add(self.line, Operation::Child(nodes)))
        })
    }

    fn with<R>(&self, work: impl FnOnce(&mut State) -> Result<R>) -> Result<R> {
        self.recorder.with(self.body, work)
    }

    /// The nodes that the next one here comes after.
    pub(crate) fn tail(&self) -> Result<Vec<usize>> {
        self.with(|state| Ok(state.tails[self.line].clone()))
    }

    /// Announces a use by the next node here.
    pub(crate) fn note_use(&self, memory: &Memory, usage: Use) -> Result<()> {
        self.with(|state| state.note_use(self.line, memory, usage))
    }

    /// Takes back what has been announced of the next node here.
    pub(crate) fn retract(&self) {
        // A thread that may not announce has announced nothing.
        let _refused = self.with(|state| {
            state.announced[self.line].clear();
            Ok(())
        });
    }

    /// Announces a use of a constant by the next node here.
    pub(crate) fn note_constant(&self, memory: &'static Memory, usage: Use) -> Result<()> {
        self.with(|state| {
            if state.find(memory).is_none() {
                state.admit(memory, true);
                self.recorder.adopt(Adopted::Constant(memory));
            }
            state.note_use(self.line, memory, usage)
        })
    }

    pub(crate) fn add(&self, operation: Operation) -> Result<usize> {
        self.with(|state| Ok(state.add(self.line, operation)))
    }

    /// Adds a node that is the next one of all `streams`, which are of one recording, and there is one at least.
    pub(crate) fn add_on_all(streams: &[&RecordingStream], operation: Operation) -> Result<usize> {
        let lines: Vec<usize> = streams.iter().map(|stream| stream.line).collect();
        streams[0].with(|state| Ok(state.add_on_all(&lines, operation)))
    }

    /// The number of the graph.
    pub(crate) fn graph(&self) -> u64 {
        self.recorder.id
    }

    /// That work of other crates can be a node here.
    pub(crate) fn check_external(&self) -> Result<()> {
        if self.body == GRAPH { Ok(()) } else { Err(external_in_body()) }
    }

    /// As `add`; if `again`, with the uses of the node before it here.
    fn add_like_last(&self, again: bool, operation: Operation) -> Result<()> {
        self.with(|state| {
            if again && let [last] = state.tails[self.line][..] {
                state.announced[self.line] = state.nodes[last].uses.clone();
            }
            state.add(self.line, operation);
            Ok(())
        })
    }

    /// Makes the next node here come after all that `earlier` have so far; after nothing if one of them is refused.
    pub(crate) fn run_after(&self, earlier: &[&RecordingStream]) -> Result<()> {
        let mut nodes = Vec::new();
        for earlier in earlier {
            if !Arc::ptr_eq(&self.recorder, &earlier.recorder) {
                return Err(GraphError::OtherGraph { what: "stream" }.into());
            }
            if self.body != earlier.body {
                return Err(GraphError::OtherBody.into());
            }
            nodes.extend(earlier.tail()?);
        }
        self.come_after(&nodes)
    }

    pub(crate) fn record(&self, event: &RecordedEvent) -> Result<()> {
        self.check_event(event)?;
        *lock(&event.nodes) = self.tail()?;
        Ok(())
    }

    pub(crate) fn wait(&self, event: &RecordedEvent) -> Result<()> {
        self.check_event(event)?;
        let nodes = lock(&event.nodes).clone();
        self.come_after(&nodes)
    }

    fn check_event(&self, event: &RecordedEvent) -> Result<()> {
        if !Arc::ptr_eq(&self.recorder, &event.recorder) {
            return Err(GraphError::OtherGraph { what: "event" }.into());
        }
        if self.body == event.body { Ok(()) } else { Err(GraphError::OtherBody.into()) }
    }

    fn come_after(&self, nodes: &[usize]) -> Result<()> {
        self.with(|state| {
            state.tails[self.line].extend(nodes);
            Ok(())
        })
    }

    pub(crate) fn prepare(&self, kernel: &'static Kernel) -> Result<Prepared> {
        self.recorder.device.prepare(kernel)
    }

    /// # Safety
    /// As for `StreamBackend::launch`; memory that the parameters lead to stays valid while the graph can run.
    pub(crate) unsafe fn launch(&self, launch: Launch<'_>) -> Result<()> {
        if let DeviceBackend::Cpu(device) = self.recorder.device {
            cpu::check_resources(launch.kernel, launch.config, device)?;
        }
        let config = &node_shape(*launch.config)?;
        // SAFETY: passed on.
        let launch = unsafe { OwnedLaunch::copy(Launch { config, ..launch }) };
        self.add(Operation::Kernel(launch)).map(drop)
    }
}

impl RecordedEvent {
    pub(crate) fn new(stream: &RecordingStream) -> Self {
        RecordedEvent { recorder: stream.recorder.clone(), body: stream.body, nodes: Mutex::default() }
    }
}

/// Each buffer once, with the use among `uses` that excludes most.
fn strongest(mut uses: Vec<(usize, Use)>) -> Vec<(usize, Use)> {
    uses.sort_by_key(|(buffer, usage)| (*buffer, *usage == Use::Read));
    uses.dedup_by_key(|(buffer, _)| *buffer);
    uses
}

/// What of a launch is part of its node: an event would have to outlive the graph, and nodes begin after those before them.
fn node_shape(mut shape: LaunchConfig) -> Result<LaunchConfig> {
    if let Some(attributes) = &mut shape.attributes {
        if attributes.completion_event.is_some() {
            return Err(not_recordable(
                "a launch completion event",
                "events of graphs are nodes of their own",
            ));
        }
        attributes.dependent_launch = false;
    }
    Ok(shape)
}
