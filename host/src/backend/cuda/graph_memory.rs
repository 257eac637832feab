//! Nodes of the driver that allocate and free memory, and the figures of that memory.
//!
//! What uses the memory is recorded with its address, which only the driver's node tells. So these nodes are made while a
//! graph is recorded, in a graph of the driver's that gets the others, and their dependencies, when it is instantiated.
//! A node that frees is there before the next that allocates, which may then be given the same addresses.

use std::collections::BTreeMap;
use std::ffi::c_uint;
use std::ptr::{from_mut, null, null_mut, with_exposed_provenance_mut};

use cudarc::driver::sys::{CUdeviceptr, CUgraph, CUgraphNode};

use super::device::{CudaDevice, Handle};
use super::driver::Code;
use super::pool::{PoolAccess, PoolProperties};
use crate::error::{Error, Result};
use crate::graph::{Node, Operation};
use crate::pool_options::PoolKind;

/// `CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT`, `_HIGH`, `CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT`, `_HIGH`.
const STATISTICS: [c_uint; 4] = [2, 3, 0, 1];

/// The driver's `CUDA_MEM_ALLOC_NODE_PARAMS`.
#[repr(C)]
pub(super) struct AllocationParams {
    properties: PoolProperties,
    access: *const PoolAccess,
    access_count: usize,
    bytes: usize,
    start: CUdeviceptr,
}

/// A graph of the driver's, destroyed when this is dropped.
pub(super) struct OwnGraph {
    pub(super) device: &'static CudaDevice,
    pub(super) raw: Handle<CUgraph>,
}

/// A graph of the driver's that has the nodes that allocate and free, and no others yet.
pub(crate) struct MemoryNodes {
    pub(super) graph: OwnGraph,
    /// By their numbers in the recording.
    pub(super) made: BTreeMap<usize, MemoryNode>,
}

pub(super) struct MemoryNode {
    pub(super) node: Handle<CUgraphNode>,
    /// What the driver knows that it comes after.
    pub(super) after: Vec<Handle<CUgraphNode>>,
    /// What it allocates, or frees.
    start: CUdeviceptr,
}

impl OwnGraph {
    fn new(device: &'static CudaDevice) -> Result<Self> {
        device.bind()?;
        let mut graph = null_mut();
        // SAFETY: `graph` is valid for the call.
        let code = unsafe { device.driver().graph_create(&mut graph, 0) };
        device.check(code, "cuGraphCreate", "")?;
        Ok(OwnGraph { device, raw: Handle(graph) })
    }
}

impl Drop for OwnGraph {
    fn drop(&mut self) {
        if self.device.bind().is_ok() {
            // SAFETY: the graph is live and not used again; instances do not need it.
            let _ = unsafe { self.device.driver().graph_destroy(self.raw.0) };
        }
    }
}

impl MemoryNodes {
    /// None yet.
    pub(crate) fn new(device: &'static CudaDevice) -> Result<Self> {
        Ok(MemoryNodes { graph: OwnGraph::new(device)?, made: BTreeMap::new() })
    }

    /// Those of `nodes`, in a graph of their own with other addresses: for a picture.
    pub(super) fn copy_of(device: &'static CudaDevice, nodes: &[Node]) -> Result<Self> {
        let mut copy = MemoryNodes::new(device)?;
        for (number, node) in nodes.iter().enumerate() {
            if let Operation::Allocate(memory) = &*node.operation {
                copy.add_allocation(number, nodes, &node.after, memory.bytes)?;
            }
            copy.free_until(number + 1, nodes)?;
        }
        Ok(copy)
    }

    /// Makes the node that comes next in the recording of `nodes`, after the nodes `after`; where its `bytes` (not 0) are.
    pub(crate) fn allocate(&mut self, nodes: &[Node], after: &[usize], bytes: usize) -> Result<*mut u8> {
        let device = self.graph.device;
        if !device.has_pools() {
            return Err(Error::Unsupported {
                operation: "memory that a graph allocates",
                device: device.to_string().into(),
                reason: "it allocates no memory in stream order (CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)",
            });
        }
        device.bind()?;
        self.free_all(nodes)?;
        let start = self.add_allocation(nodes.len(), nodes, after, bytes)?;
        Ok(with_exposed_provenance_mut(start as usize))
    }

    /// Makes the nodes that free, as far as `nodes` have been recorded.
    pub(super) fn free_all(&mut self, nodes: &[Node]) -> Result<()> {
        self.free_until(nodes.len(), nodes)
    }

    fn free_until(&mut self, end: usize, nodes: &[Node]) -> Result<()> {
        // All that come before the last one that was made are there.
        let first = self.made.last_key_value().map_or(0, |(last, _)| last + 1);
        for number in first..end {
            if let Operation::Free { allocation } = *nodes[number].operation {
                self.add_free(number, nodes, allocation)?;
            }
        }
        Ok(())
    }

    fn add_allocation(
        &mut self,
        number: usize,
        nodes: &[Node],
        after: &[usize],
        bytes: usize,
    ) -> Result<CUdeviceptr> {
        let device = self.graph.device;
        let properties = PoolProperties::new(device, PoolKind::Device, false);
        let mut params = AllocationParams { properties, access: null(), access_count: 0, bytes, start: 0 };
        let (after, mut node) = (self.nearest(nodes, after), null_mut());
        let (graph, before) = (self.graph.raw.0, raw(&after));
        // SAFETY: all are valid for the call.
        let code = unsafe {
            let count = before.len();
            device.driver().graph_add_allocation(&mut node, graph, before.as_ptr(), count, &mut params)?
        };
        device.check_memory(code, "cuGraphAddMemAllocNode", bytes, &format!("{bytes} bytes"))?;
        self.made.insert(number, MemoryNode { node: Handle(node), after, start: params.start });
        Ok(params.start)
    }

    fn add_free(&mut self, number: usize, nodes: &[Node], allocation: usize) -> Result<()> {
        let (device, start) = (self.graph.device, self.made[&allocation].start);
        let (after, mut node) = (self.nearest(nodes, &nodes[number].after), null_mut());
        let (graph, before) = (self.graph.raw.0, raw(&after));
        // SAFETY: all are valid for the call; the memory is that of an allocation of this graph, freed once.
        let code = unsafe {
            device.driver().graph_add_free(&mut node, graph, before.as_ptr(), before.len(), start)?
        };
        device.check(code, "cuGraphAddMemFreeNode", &format!("node {number}"))?;
        self.made.insert(number, MemoryNode { node: Handle(node), after, start });
        Ok(())
    }

    /// The nodes that have been made and that `after`, or what is before them, leads to. So what the driver is told of the
    /// order between the nodes here is all there is.
    fn nearest(&self, nodes: &[Node], after: &[usize]) -> Vec<Handle<CUgraphNode>> {
        let (mut seen, mut open) = (vec![false; nodes.len()], after.to_vec());
        let mut found = Vec::new();
        while let Some(number) = open.pop() {
            if std::mem::replace(&mut seen[number], true) {
                continue;
            }
            match self.made.get(&number) {
                Some(made) => found.push(made.node),
                None => open.extend(&nodes[number].after),
            }
        }
        found
    }
}

fn raw(nodes: &[Handle<CUgraphNode>]) -> Vec<CUgraphNode> {
    nodes.iter().map(|node| node.0).collect()
}

impl CudaDevice {
    /// As `check`, of a call that needs `bytes` of memory, or none that it knows of.
    pub(super) fn check_memory(
        &self,
        code: Code,
        operation: &'static str,
        bytes: usize,
        object: &str,
    ) -> Result<()> {
        if code == Code::OUT_OF_MEMORY && bytes > 0 {
            return Err(self.out_of_memory(bytes));
        }
        self.check(code, operation, object)
    }

    /// Reserved for graphs now and at most, used by them now and at most, in bytes.
    pub(crate) fn graph_memory(&self) -> Result<[u64; 4]> {
        let mut values = [0; 4];
        for (value, attribute) in values.iter_mut().zip(STATISTICS) {
            // SAFETY: these attributes are `u64`s.
            let code =
                unsafe { self.driver().graph_memory_get(self.handle(), attribute, from_mut(value).cast())? };
            self.check(code, "cuDeviceGetGraphMemAttribute", &self.to_string())?;
        }
        Ok(values)
    }

    /// Lets the highest figures start anew.
    pub(crate) fn reset_graph_memory(&self) -> Result<()> {
        for attribute in [STATISTICS[1], STATISTICS[3]] {
            let mut value = 0_u64;
            // SAFETY: as above; the driver takes 0 only, and means the current value.
            let code = unsafe {
                self.driver().graph_memory_set(self.handle(), attribute, from_mut(&mut value).cast())?
            };
            self.check(code, "cuDeviceSetGraphMemAttribute", &self.to_string())?;
        }
        Ok(())
    }

    /// Gives back what no graph uses.
    pub(crate) fn trim_graph_memory(&self) -> Result<()> {
        // SAFETY: memory that is in use stays.
        let code = unsafe { self.driver().graph_memory_trim(self.handle())? };
        self.check(code, "cuDeviceGraphMemTrim", &self.to_string())
    }
}
