//! Graphs of the fake driver: an instance keeps a copy of each node's work, and a launch puts that off on
//! a stream, node by node. It must not know how work runs.
//!
//! SAFETY: as in `libcuda.rs`.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::Mutex;

use crate::work::{Callback, Code, Pointer, SUCCESS, Work, drain_later, real, with};
use crate::{enter, enter_bound, launch, log};

/// A graph or an instance: nodes by handle, in the order in which they were added.
#[derive(Default, Clone)]
struct Graph {
    nodes: Vec<Node>,
}

#[derive(Clone)]
struct Node {
    handle: usize,
    after: Vec<usize>,
    /// Several of a child graph, one of most others.
    work: Vec<Work>,
    enabled: bool,
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

unsafe fn add(graph: usize, node: *mut usize, after: *const usize, count: usize, work: Vec<Work>) {
    let handle = with(|state| state.id());
    let after =
        if count == 0 { Vec::new() } else { unsafe { std::slice::from_raw_parts(after, count) }.to_vec() };
    graphs(|graphs| {
        let nodes = &mut graphs.get_mut(&graph).expect("a live graph").nodes;
        assert!(after.iter().all(|before| nodes.iter().any(|node| node.handle == *before)));
        nodes.push(Node { handle, after, work, enabled: true });
    });
    unsafe { *node = handle };
}

/// `CUDA_KERNEL_NODE_PARAMS`.
#[repr(C)]
struct KernelParams {
    function: usize,
    shape: [u32; 6],
    shared: u32,
    params: *mut Pointer,
}

fn kernel(params: *const KernelParams) -> Work {
    let params = unsafe { &*params };
    launch(params.function, params.shape, params.params)
}

/// The address that a copy uses: of the host (1), whose page-locked memory it must be, or of the device (4).
fn place(kind: usize, host: usize, device: usize) -> usize {
    // The types are 32-bit numbers, followed by padding.
    match kind as u32 {
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
unsafe extern "C" fn call(_stream: Pointer, _code: Code, data: Pointer) {
    type HostFn = unsafe extern "C" fn(Pointer);
    let [function, data] = unsafe { *data.cast::<[usize; 2]>() };
    unsafe { std::mem::transmute::<usize, HostFn>(function)(data as *mut c_void) };
}

macro_rules! graph_calls {
    ($( fn $name:ident($($argument:ident : $ty:ty),*) $body:block )*) => { $(
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

graph_calls! {
    fn cuGraphCreate(graph: *mut usize, flags: u32) {
        assert_eq!(flags, 0);
        unsafe { *graph = insert(Graph::default()) };
        Ok(())
    }
    fn cuGraphAddKernelNode_v2(node: *mut usize, graph: usize, after: *const usize, count: usize, params: *const KernelParams) {
        unsafe { add(graph, node, after, count, vec![kernel(params)]) };
        Ok(())
    }
    fn cuGraphAddMemcpyNode(node: *mut usize, graph: usize, after: *const usize, count: usize, params: *const [usize; 25], _context: usize) {
        let [0, 0, 0, 0, from, host_source, source, 0, 0, source_pitch, _, 0, 0, 0, 0, to, host_target, target, 0, 0, target_pitch, _, width, height, 1] = (unsafe { *params }) else {
            panic!("no copy of rows");
        };
        let [source, target] = [place(from, host_source, source), place(to, host_target, target)];
        let work = Work::CopyRows { target, source, target_pitch, source_pitch, width, height };
        unsafe { add(graph, node, after, count, vec![work]) };
        Ok(())
    }
    fn cuGraphAddMemsetNode(node: *mut usize, graph: usize, after: *const usize, count: usize, params: *const FillParams, _context: usize) {
        let fill = unsafe { &*params };
        let pattern = fill.value.to_ne_bytes()[..fill.bytes as usize].to_vec();
        let work = Work::FillRows { target: fill.target, pattern, width: fill.width, height: fill.height, pitch: fill.pitch };
        unsafe { add(graph, node, after, count, vec![work]) };
        Ok(())
    }
    fn cuGraphAddHostNode(node: *mut usize, graph: usize, after: *const usize, count: usize, params: *const [usize; 2]) {
        // Leaked: the driver copies them, too.
        let data = Box::into_raw(Box::new(unsafe { *params })) as usize;
        unsafe { add(graph, node, after, count, vec![Work::Call { function: call as Callback, data }]) };
        Ok(())
    }
    fn cuGraphAddEmptyNode(node: *mut usize, graph: usize, after: *const usize, count: usize) {
        unsafe { add(graph, node, after, count, Vec::new()) };
        Ok(())
    }
    fn cuGraphAddEventRecordNode(node: *mut usize, graph: usize, after: *const usize, count: usize, event: usize) {
        unsafe { add(graph, node, after, count, vec![Work::Record { event, version: 0 }]) };
        Ok(())
    }
    fn cuGraphAddEventWaitNode(node: *mut usize, graph: usize, after: *const usize, count: usize, event: usize) {
        unsafe { add(graph, node, after, count, vec![Work::Wait { event, version: 0 }]) };
        Ok(())
    }
    fn cuGraphDebugDotPrint(graph: usize, path: *const std::ffi::c_char, flags: u32) {
        let path = unsafe { std::ffi::CStr::from_ptr(path) }.to_str().unwrap();
        let nodes = graphs(|graphs| graphs[&graph].nodes.len());
        std::fs::write(path, format!("digraph dot {{ nodes={nodes} flags={flags} }}")).unwrap();
        Ok(())
    }
    fn cuGraphAddChildGraphNode(node: *mut usize, graph: usize, after: *const usize, count: usize, child: usize) {
        let works = graphs(|graphs| graphs[&child].nodes.iter().flat_map(|node| node.work.clone()).collect());
        unsafe { add(graph, node, after, count, works) };
        Ok(())
    }
    fn cuGraphKernelNodeSetAttribute(_node: usize, attribute: u32, value: *const [i32; 3]) {
        match attribute {
            1 => log(&format!("node attribute 1 = {}", unsafe { crate::loading::policy(value as usize) })),
            _ => log(&format!("node attribute {attribute} = {:?}", unsafe { *value })),
        }
        Ok(())
    }
    fn cuGraphInstantiateWithFlags(instance: *mut usize, graph: usize, flags: u64) {
        assert_eq!(flags, 0);
        let copy = graphs(|graphs| graphs[&graph].clone());
        unsafe { *instance = insert(copy) };
        Ok(())
    }
    fn cuGraphExecKernelNodeSetParams_v2(instance: usize, node: usize, params: *const KernelParams) {
        let work = kernel(params);
        with_node(instance, node, |node| node.work = vec![work]);
        Ok(())
    }
    fn cuGraphNodeSetEnabled(instance: usize, node: usize, enabled: u32) {
        with_node(instance, node, |node| node.enabled = enabled != 0);
        Ok(())
    }
    fn cuGraphNodeGetEnabled(instance: usize, node: usize, enabled: *mut u32) {
        unsafe { *enabled = u32::from(with_node(instance, node, |node| node.enabled)) };
        Ok(())
    }
    fn cuGraphExecUpdate_v2(instance: usize, graph: usize, _result: Pointer) {
        graphs(|graphs| {
            let works: Vec<Vec<Work>> = graphs[&graph].nodes.iter().map(|node| node.work.clone()).collect();
            let nodes = &mut graphs.get_mut(&instance).unwrap().nodes;
            assert_eq!(nodes.len(), works.len());
            nodes.iter_mut().zip(works).for_each(|(node, work)| node.work = work);
        });
        Ok(())
    }
    fn cuGraphUpload(instance: usize, stream: Pointer) {
        assert!(graphs(|graphs| graphs.contains_key(&instance)));
        with(|state| state.launching.insert(real(stream) as usize));
        (0..8).for_each(|_| std::thread::yield_now());
        with(|state| state.launching.remove(&(real(stream) as usize)));
        Ok(())
    }
    fn cuGraphLaunch(instance: usize, stream: Pointer) {
        let nodes = graphs(|graphs| graphs[&instance].nodes.clone());
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
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphDestroy(graph: usize) -> Code {
    enter("cuGraphDestroy").map(|()| remove(graph)).err().unwrap_or(SUCCESS)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphExecDestroy(instance: usize) -> Code {
    enter("cuGraphExecDestroy").map(|()| remove(instance)).err().unwrap_or(SUCCESS)
}
