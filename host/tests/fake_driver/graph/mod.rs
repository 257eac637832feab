//! Graphs of the fake driver: an instance keeps a copy of each node's work, and a launch puts that off on a
//! stream, node by node.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::Mutex;

use crate::arrays;
use crate::order::uses;
use crate::pointer::{In, InOut, List, Out, Text};
use crate::work::{Callback, Code, Pointer, SUCCESS, Work, drain_later, real, with};
use crate::{enter, enter_bound, launch, log};
use memory::{Block, Owner};

pub(crate) mod memory;

const INVALID_VALUE: Code = 1;
const OUT_OF_MEMORY: Code = 2;
const NOT_SUPPORTED: Code = 801;

/// A graph or an instance: nodes by handle, in the order in which they were added.
#[derive(Default, Clone)]
struct Graph {
    nodes: Vec<Node>,
    /// What nodes allocate.
    blocks: Vec<Block>,
    /// The last instance.
    instance: usize,
    /// The user objects that it holds a reference of.
    objects: Vec<usize>,
}

/// A user object: called with the data when the last reference is gone.
struct Object {
    destroy: unsafe extern "C" fn(Pointer),
    data: usize,
    references: usize,
}

static OBJECTS: Mutex<Option<HashMap<usize, Object>>> = Mutex::new(None);

fn objects<T>(work: impl FnOnce(&mut HashMap<usize, Object>) -> T) -> T {
    work(OBJECTS.lock().unwrap().get_or_insert_with(HashMap::new))
}

fn retain(all: &[usize]) {
    objects(|objects| all.iter().for_each(|object| objects.get_mut(object).expect("a live object").references += 1));
}

/// Lets go of a reference of each.
pub(crate) fn let_go(all: &[usize]) {
    for object in all {
        let gone = objects(|objects| {
            let it = objects.get_mut(object).expect("a live object");
            it.references -= 1;
            if it.references == 0 { objects.remove(object) } else { None }
        });
        // SAFETY: the caller of `cuUserObjectCreate` passed both, for one call.
        gone.into_iter().for_each(|gone| unsafe { (gone.destroy)(gone.data as Pointer) });
    }
}

impl Graph {
    /// That of nodes which use the same memory, some of them to write, or have user objects of the same data, one comes after the other.
    fn check_order(&self) {
        for (index, node) in self.nodes.iter().enumerate() {
            for other in &self.nodes[..index] {
                if node.conflicts(other) && !self.before(&node.after).contains(&other.handle) {
                    eprintln!("no order: node {index} of a graph does not come after one that it conflicts with");
                    std::process::abort();
                }
            }
        }
    }

    /// The nodes that `after` leads to, with those.
    fn before(&self, after: &[usize]) -> Vec<usize> {
        let (mut found, mut open) = (Vec::new(), after.to_vec());
        while let Some(handle) = open.pop() {
            if !found.contains(&handle) {
                found.push(handle);
                open.extend(&self.nodes.iter().find(|node| node.handle == handle).expect("a node of it").after);
            }
        }
        found
    }

    /// Memory is asked for when the stream is known.
    fn check_memory(&self) -> Result<(), Code> {
        let bytes: u64 = self.blocks.iter().map(|block| block.bytes as u64).sum();
        if bytes > crate::number("memory", 1 << 30) { Err(OUT_OF_MEMORY) } else { Ok(()) }
    }

    /// Brings nodes that depend on later ones behind those; dependencies may be added to any.
    fn sort(&mut self) {
        let mut rest = std::mem::take(&mut self.nodes);
        while !rest.is_empty() {
            let is_done = |handle: &usize| self.nodes.iter().any(|node| node.handle == *handle);
            let next = rest.iter().position(|node| node.after.iter().all(is_done)).expect("no cycle");
            let node = rest.remove(next);
            self.nodes.push(node);
        }
    }
}

/// `CUDA_MEM_ALLOC_NODE_PARAMS`.
#[repr(C)]
struct AllocationParams {
    /// `CUmemPoolProps`.
    properties: [u32; 22],
    access: [usize; 2],
    bytes: usize,
    start: usize,
}

#[derive(Clone)]
struct Node {
    handle: usize,
    after: Vec<usize>,
    /// Several of a child graph, one of most others.
    work: Vec<Work>,
    enabled: bool,
    /// What its user objects, if it is a child with some, are called with.
    owners: Vec<usize>,
}

impl Node {
    fn conflicts(&self, other: &Node) -> bool {
        let uses = |node: &Node| node.work.iter().flat_map(|work| uses(work, |_| 0).1).collect::<Vec<_>>();
        let (own, theirs) = (uses(self), uses(other));
        let is_race = |(one, other): (&(std::ops::Range<usize>, bool), &(std::ops::Range<usize>, bool))| {
            (one.1 || other.1) && one.0.start < other.0.end && other.0.start < one.0.end
        };
        own.iter().any(|one| theirs.iter().any(|other| is_race((one, other))))
            || self.owners.iter().any(|owner| other.owners.contains(owner))
    }
}

static GRAPHS: Mutex<Option<HashMap<usize, Graph>>> = Mutex::new(None);

fn graphs<T>(work: impl FnOnce(&mut HashMap<usize, Graph>) -> T) -> T {
    work(GRAPHS.lock().unwrap().get_or_insert_with(HashMap::new))
}

fn insert(graph: Graph) -> usize {
    let id = with(|state| state.id());
    graphs(|graphs| graphs.insert(id, graph));
    id
}

/// A graph without nodes.
pub(crate) fn create() -> usize {
    insert(Graph::default())
}

/// Adds nodes one after the other.
pub(crate) fn add_captured(graph: usize, work: Vec<Work>) {
    let mut after = Vec::new();
    for work in work {
        after = vec![add(graph, &after, vec![work])];
    }
}

/// Adds a node that does `work` after the nodes `after`, and gives its handle.
fn add(graph: usize, after: &[usize], work: Vec<Work>) -> usize {
    let (handle, after) = (with(|state| state.id()), after.to_vec());
    graphs(|graphs| {
        let nodes = &mut graphs.get_mut(&graph).expect("a live graph").nodes;
        assert!(after.iter().all(|before| nodes.iter().any(|node| node.handle == *before)));
        nodes.push(Node { handle, after, work, enabled: true, owners: Vec::new() });
    });
    handle
}

/// `CUDA_KERNEL_NODE_PARAMS`.
#[repr(C)]
struct KernelParams {
    function: usize,
    shape: [u32; 6],
    shared: u32,
    params: *mut Pointer,
}

/// # Safety
/// `params` has the parameters of its function.
unsafe fn kernel(params: &KernelParams) -> Work {
    // SAFETY: as the caller promises.
    unsafe { launch(params.function, params.shape, params.params) }
}

/// The address that a copy uses: of the host (1), whose page-locked memory it must be, or of the device (4).
fn place(kind: u32, host: usize, device: usize) -> usize {
    match kind {
        1 => {
            assert!(with(|state| state.is_page_locked(host)), "a graph copies with page-locked memory");
            host
        }
        // `CU_MEMORYTYPE_UNIFIED`: the driver finds out.
        4 => {
            assert!(!with(|state| state.is_page_locked(device)), "memory of the host, as if it were the device's");
            device
        }
        kind => panic!("memory of type {kind}"),
    }
}

/// A copy or fill of memory that a node of the graph frees already is refused, in whatever order (driver 580).
fn refuse_freed(graph: usize, addresses: &[usize]) -> Result<(), Code> {
    let is_freed = |block: &Block| {
        let last = block.owners.last().is_some_and(|owner| owner.freed.is_some());
        last && addresses.iter().any(|address| (block.start..block.start + block.bytes).contains(address))
    };
    let refused = graphs(|graphs| graphs.get(&graph).is_some_and(|graph| graph.blocks.iter().any(is_freed)));
    if refused { Err(INVALID_VALUE) } else { Ok(()) }
}

/// `CUDA_MEMSET_NODE_PARAMS`.
#[repr(C)]
struct FillParams {
    target: usize,
    pitch: usize,
    value: u32,
    bytes: u32,
    width: usize,
    height: usize,
}

/// Calls a host function as a callback of a stream is called.
///
/// # Safety
/// `data` is what `cuGraphAddHostNode` leaked.
unsafe extern "C" fn call(_stream: Pointer, _code: Code, data: Pointer) {
    type HostFn = unsafe extern "C" fn(Pointer);
    // SAFETY: `cuGraphAddHostNode` leaked what this points to.
    let [function, data] = unsafe { *data.cast::<[usize; 2]>() };
    // SAFETY: a caller of `cuGraphAddHostNode` passed this address as that of a `CUhostFn`, and its argument, for any number of calls.
    unsafe { std::mem::transmute::<usize, HostFn>(function)(data as *mut c_void) };
}

macro_rules! graph_calls {
    ($( fn $name:ident($($argument:ident : $ty:ty),*) $body:block )*) => { $(
        /// # Safety
        /// As for the function of the real driver.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $ty),*) -> Code {
            let run = || -> Result<(), Code> {
                enter_bound(stringify!($name))?;
                $body
            };
            run().err().unwrap_or(SUCCESS)
        }
    )* };
}

/// Calls that add a node, with the parameters that all of them have: where its handle goes, its graph, and the nodes before it.
macro_rules! node_calls {
    ($( fn $name:ident($node:ident, $graph:ident, $after:ident $(; $($argument:ident : $ty:ty),*)?) $body:block )*) => { $(
        /// # Safety
        /// As for the function of the real driver.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            $node: Out<usize>, $graph: usize, after: List<usize>, count: usize, $($($argument: $ty),*)?
        ) -> Code {
            // SAFETY: the caller passes so many.
            let $after = unsafe { after.get(count) };
            let run = || -> Result<(), Code> {
                enter_bound(stringify!($name))?;
                $body
            };
            run().err().unwrap_or(SUCCESS)
        }
    )* };
}

node_calls! {
    fn cuGraphAddKernelNode_v2(node, graph, after; params: In<KernelParams>) {
        // SAFETY: the caller passes the parameters of its function.
        let work = unsafe { kernel(params.get()) };
        node.set(add(graph, after, vec![work]));
        Ok(())
    }
    fn cuGraphAddMemcpyNode(node, graph, after; params: In<arrays::Copy>, _context: usize) {
        let copy = params.get();
        if copy.is_of_array() {
            let (target, source) = copy.sides(|host| {
                assert!(with(|state| state.is_page_locked(host)), "a graph copies with page-locked memory");
                host
            });
            refuse_freed(graph, &[source, target])?;
            node.set(add(graph, after, vec![copy.work(target, source)]));
            return Ok(());
        }
        let (target, source) = copy.places_of_rows(place);
        refuse_freed(graph, &[source, target])?;
        node.set(add(graph, after, vec![copy.rows(target, source)]));
        Ok(())
    }
    fn cuGraphAddMemsetNode(node, graph, after; params: In<FillParams>, _context: usize) {
        let fill = params.get();
        refuse_freed(graph, &[fill.target])?;
        let pattern = fill.value.to_ne_bytes()[..fill.bytes as usize].to_vec();
        let work = Work::FillRows { target: fill.target, pattern, width: fill.width, height: fill.height, pitch: fill.pitch };
        node.set(add(graph, after, vec![work]));
        Ok(())
    }
    fn cuGraphAddHostNode(node, graph, after; params: In<[usize; 2]>) {
        // Leaked: the driver copies them, too.
        let data = Box::into_raw(Box::new(*params.get())) as usize;
        node.set(add(graph, after, vec![Work::Call { function: call as Callback, data }]));
        Ok(())
    }
    fn cuGraphAddEmptyNode(node, graph, after) {
        node.set(add(graph, after, Vec::new()));
        Ok(())
    }
    fn cuGraphAddEventRecordNode(node, graph, after; event: usize) {
        node.set(add(graph, after, vec![Work::Record { event, version: 0 }]));
        Ok(())
    }
    fn cuGraphAddEventWaitNode(node, graph, after; event: usize) {
        node.set(add(graph, after, vec![Work::Wait { event, version: 0 }]));
        Ok(())
    }
    fn cuGraphAddMemAllocNode(node, graph, after; params: InOut<AllocationParams>) {
        params.change(|params| {
            assert_eq!(params.properties[..3], [1, 0, 1], "pinned memory of a device, for this process");
            assert!(params.access == [0, 0] && params.bytes > 0);
            let handle = add(graph, after, Vec::new());
            node.set(handle);
            let start = graphs(|graphs| {
                let graph = graphs.get_mut(&graph).unwrap();
                let before = graph.before(after);
                Block::take(&mut graph.blocks, params.bytes, handle, &before)
            });
            let (start, bytes) = (start.ok_or(OUT_OF_MEMORY)?, params.bytes.next_multiple_of(4096));
            with_node(graph, handle, |node| node.work = vec![Work::Map { start, bytes }]);
            params.start = start;
            Ok(())
        })
    }
    fn cuGraphAddMemFreeNode(node, graph, after; start: usize) {
        let handle = add(graph, after, Vec::new());
        node.set(handle);
        let bytes = graphs(|graphs| {
            let graph = graphs.get_mut(&graph).unwrap();
            let before = graph.before(after);
            let block = graph.blocks.iter_mut().find(|block| block.start == start).ok_or(INVALID_VALUE)?;
            let is_it = |owner: &&mut Owner| owner.freed.is_none() && before.contains(&owner.allocated);
            block.owners.iter_mut().find(is_it).ok_or(INVALID_VALUE)?.freed = Some(handle);
            Ok::<usize, Code>(block.bytes)
        })?;
        with_node(graph, handle, |node| node.work = vec![Work::Unmap { start, bytes }]);
        Ok(())
    }
    fn cuGraphAddChildGraphNode(node, graph, after; child: usize) {
        assert!(graphs(|graphs| graphs[&child].blocks.is_empty()), "a child that allocates cannot be cloned");
        let works = graphs(|graphs| graphs[&child].nodes.iter().flat_map(|node| node.work.clone()).collect());
        let added = add(graph, after, works);
        node.set(added);
        let inherited = graphs(|graphs| graphs[&child].objects.clone());
        retain(&inherited);
        let owners = objects(|objects| inherited.iter().map(|object| objects[object].data).collect());
        with_node(graph, added, |node| node.owners = owners);
        graphs(|graphs| graphs.get_mut(&graph).unwrap().objects.extend(inherited));
        Ok(())
    }
}

graph_calls! {
    fn cuUserObjectCreate(object: Out<usize>, data: usize, destroy: unsafe extern "C" fn(Pointer), references: u32, flags: u32) {
        assert_eq!((references, flags), (1, 1), "the destructor is not waited for");
        let made = with(|state| state.id());
        objects(|objects| objects.insert(made, Object { destroy, data, references: 1 }));
        object.set(made);
        Ok(())
    }
    fn cuGraphRetainUserObject(graph: usize, object: usize, count: u32, flags: u32) {
        assert_eq!((count, flags), (1, 1), "the caller's reference becomes the graph's");
        graphs(|graphs| graphs.get_mut(&graph).expect("a live graph").objects.push(object));
        Ok(())
    }
    fn cuGraphCreate(graph: Out<usize>, flags: u32) {
        assert_eq!(flags, 0);
        graph.set(create());
        Ok(())
    }
    fn cuGraphDebugDotPrint(graph: usize, path: Text, flags: u32) {
        let path = path.str();
        let nodes = graphs(|graphs| graphs[&graph].nodes.len());
        std::fs::write(path, format!("digraph dot {{ nodes={nodes} flags={flags} }}")).unwrap();
        Ok(())
    }
    fn cuGraphKernelNodeSetAttribute(_node: usize, attribute: u32, value: *const [i32; 3]) {
        match attribute {
            // SAFETY: 1 is the attribute whose value is such a window.
            1 => log(&format!("node attribute 1 = {}", unsafe { crate::loading::policy(value as usize) })),
            // SAFETY: the value is a union of 64 bytes.
            _ => log(&format!("node attribute {attribute} = {:?}", unsafe { *value })),
        }
        Ok(())
    }
    fn cuGraphInstantiateWithFlags(instance: Out<usize>, graph: usize, flags: u64) {
        assert_eq!(flags, 0);
        let mut copy = graphs(|graphs| graphs[&graph].clone());
        let mut owners = copy.blocks.iter().flat_map(|block| &block.owners);
        assert!(owners.all(|owner| owner.freed.is_some()), "what is not freed cannot be launched again");
        if !copy.blocks.is_empty() && graphs(|graphs| graphs.contains_key(&copy.instance)) {
            return Err(NOT_SUPPORTED);
        }
        copy.sort();
        copy.check_order();
        retain(&copy.objects);
        let made = insert(copy);
        graphs(|graphs| graphs.get_mut(&graph).unwrap().instance = made);
        instance.set(made);
        Ok(())
    }
    fn cuGraphExecKernelNodeSetParams_v2(instance: usize, node: usize, params: In<KernelParams>) {
        // SAFETY: the caller passes the parameters of its function.
        let work = unsafe { kernel(params.get()) };
        with_node(instance, node, |node| node.work = vec![work]);
        Ok(())
    }
    fn cuGraphNodeSetEnabled(instance: usize, node: usize, enabled: u32) {
        with_node(instance, node, |node| node.enabled = enabled != 0);
        Ok(())
    }
    fn cuGraphNodeGetEnabled(instance: usize, node: usize, enabled: Out<u32>) {
        enabled.set(u32::from(with_node(instance, node, |node| node.enabled)));
        Ok(())
    }
    fn cuGraphExecUpdate_v2(instance: usize, graph: usize, _result: Pointer) {
        graphs(|graphs| {
            assert!(graphs[&graph].blocks.is_empty(), "what allocates is not updated");
            let works: Vec<Vec<Work>> = graphs[&graph].nodes.iter().map(|node| node.work.clone()).collect();
            let nodes = &mut graphs.get_mut(&instance).unwrap().nodes;
            assert_eq!(nodes.len(), works.len());
            nodes.iter_mut().zip(works).for_each(|(node, work)| node.work = work);
        });
        Ok(())
    }
    fn cuGraphUpload(instance: usize, stream: Pointer) {
        graphs(|graphs| graphs[&instance].check_memory())?;
        with(|state| state.launching.insert(real(stream) as usize));
        (0..8).for_each(|_| std::thread::yield_now());
        with(|state| state.launching.remove(&(real(stream) as usize)));
        Ok(())
    }
    fn cuGraphLaunch(instance: usize, stream: Pointer) {
        let nodes = graphs(|graphs| graphs[&instance].check_memory().map(|()| graphs[&instance].nodes.clone()))?;
        // The launch has references of its own.
        let held = graphs(|graphs| graphs[&instance].objects.clone());
        retain(&held);
        let mut calls = false;
        with(|state| state.launching.insert(real(stream) as usize));
        for node in nodes.into_iter().filter(|node| node.enabled) {
            for mut work in node.work {
                with(|state| state.stamp(&mut work));
                calls |= matches!(work, Work::Call { .. });
                with(|state| state.push(stream, work));
                std::thread::yield_now();
            }
        }
        with(|state| state.push(stream, Work::LetGo { objects: held }));
        with(|state| state.launching.remove(&(real(stream) as usize)));
        if calls {
            drain_later(real(stream) as usize, || ());
        }
        Ok(())
    }
}

/// The node of `instance` that was made of `handle`.
fn with_node<T>(instance: usize, handle: usize, work: impl FnOnce(&mut Node) -> T) -> T {
    graphs(|graphs| {
        let nodes = &mut graphs.get_mut(&instance).expect("a live instance").nodes;
        let node = nodes.iter_mut().find(|node| node.handle == handle);
        work(node.expect("a node of the graph that was instantiated"))
    })
}

fn remove(graph: usize) {
    let graph = graphs(|graphs| graphs.remove(&graph)).expect("destroyed once");
    assert!(graph.nodes.iter().all(|node| !node.after.contains(&node.handle)));
    let_go(&graph.objects);
}

/// # Safety
/// As for the function of the real driver.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphDestroy(graph: usize) -> Code {
    enter("cuGraphDestroy").map(|()| remove(graph)).err().unwrap_or(SUCCESS)
}

/// # Safety
/// As for the function of the real driver.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphExecDestroy(instance: usize) -> Code {
    enter("cuGraphExecDestroy").map(|()| remove(instance)).err().unwrap_or(SUCCESS)
}
