//! The driver's allocation and free nodes, and the figures of their memory.
//!
//! What uses the memory is recorded with its address, which only the driver's node tells. So the nodes that allocate are made
//! while a graph is recorded, in a graph of the driver's that gets all others when it is instantiated, those that free among
//! them: the driver takes no copy and no fill of memory that a node of the graph frees already. So no node that allocates knows
//! of one that frees, and all allocations of a graph have distinct addresses.

use std::collections::BTreeMap;
use std::ffi::c_uint;
use std::ptr::{from_mut, null, null_mut, with_exposed_provenance_mut};

use cudarc::driver::sys::{CUdeviceptr, CUgraph, CUgraphMem_attribute as Attribute, CUgraphNode};

use crate::backend::PoolKind;
use crate::backend::cuda::device::{CudaDevice, Handle};
use crate::backend::cuda::memory::pool::{NO_POOLS, PoolAccess, PoolProperties};
use crate::backend::operation::{Address, Node, Operation};
use crate::error::{Error, Result};

const STATISTICS: [c_uint; 4] = [
    Attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT as c_uint,
    Attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH as c_uint,
    Attribute::CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT as c_uint,
    Attribute::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH as c_uint,
];

/// The driver's `CUDA_MEM_ALLOC_NODE_PARAMS`.
#[repr(C)]
pub(crate) struct AllocationParams {
    properties: PoolProperties,
    access: *const PoolAccess,
    access_count: usize,
    bytes: usize,
    start: CUdeviceptr,
}

/// A graph of the driver's, destroyed when this is dropped.
pub(crate) struct OwnGraph {
    pub(crate) device: &'static CudaDevice,
    pub(crate) raw: Handle<CUgraph>,
}

/// A graph of the driver's that has the nodes that allocate, and no others yet.
pub(crate) struct MemoryNodes {
    pub(crate) graph: OwnGraph,
    /// By what they allocate, as it was recorded.
    pub(crate) made: BTreeMap<Address, MemoryNode>,
}

/// A node that allocates.
pub(crate) struct MemoryNode {
    pub(crate) node: Handle<CUgraphNode>,
    pub(crate) start: CUdeviceptr,
}

impl OwnGraph {
    /// Takes over a graph.
    pub(super) fn of(device: &'static CudaDevice, raw: CUgraph) -> Self {
        OwnGraph { device, raw: Handle(raw) }
    }

    fn new(device: &'static CudaDevice) -> Result<Self> {
        device.bind()?;
        // SAFETY: `to` is valid for the call.
        let graph = device.get("", |driver, to| unsafe { driver.graph_create(to, 0) })?;
        Ok(OwnGraph { device, raw: Handle(graph) })
    }
}

impl Drop for OwnGraph {
    fn drop(&mut self) {
        // SAFETY: the graph is live and not used again; instances do not need it.
        self.device.release(|driver| unsafe { driver.graph_destroy(self.raw.0) });
    }
}

impl MemoryNodes {
    /// None yet.
    pub(crate) fn new(device: &'static CudaDevice) -> Result<Self> {
        Ok(MemoryNodes { graph: OwnGraph::new(device)?, made: BTreeMap::new() })
    }

    /// Those of `nodes`, in a separate graph with other addresses: for a picture.
    pub(crate) fn copy_of(device: &'static CudaDevice, nodes: &[Node]) -> Result<Self> {
        let mut copy = MemoryNodes::new(device)?;
        for node in nodes {
            if let Operation::Allocate(memory) = &*node.operation {
                let made = copy.add(memory.bytes)?;
                copy.made.insert(memory.start, made);
            }
        }
        Ok(copy)
    }

    /// Makes a node that allocates `bytes` (not 0); where they are.
    pub(crate) fn allocate(&mut self, bytes: usize) -> Result<Address> {
        let device = self.graph.device;
        if !device.has_pools() {
            return Err(Error::unsupported("memory that a graph allocates", device, NO_POOLS));
        }
        device.bind()?;
        let made = self.add(bytes)?;
        let start = Address(with_exposed_provenance_mut(made.start as usize));
        self.made.insert(start, made);
        Ok(start)
    }

    fn add(&self, bytes: usize) -> Result<MemoryNode> {
        let device = self.graph.device;
        let properties = PoolProperties::new(device, PoolKind::Device, false);
        let mut params = AllocationParams { properties, access: null(), access_count: 0, bytes, start: 0 };
        let (graph, mut node) = (self.graph.raw.0, null_mut());
        // SAFETY: all are valid for the call.
        let code = unsafe { device.driver().graph_add_allocation(&mut node, graph, null(), 0, &mut params)? };
        device.check_memory(code, bytes, &format_args!("{bytes} bytes"))?;
        Ok(MemoryNode { node: Handle(node), start: params.start })
    }
}

impl CudaDevice {
    /// Reserved for graphs now and at most, used by them now and at most, in bytes.
    pub(crate) fn graph_memory(&self) -> Result<[u64; 4]> {
        let mut values = [0; 4];
        for (value, attribute) in values.iter_mut().zip(STATISTICS) {
            // SAFETY: these attributes are `u64`s.
            let code =
                unsafe { self.driver().graph_memory_get(self.handle, attribute, from_mut(value).cast())? };
            self.check(code, self)?;
        }
        Ok(values)
    }

    /// Sets the highest figures back to the current ones.
    pub(crate) fn reset_graph_memory(&self) -> Result<()> {
        for attribute in [STATISTICS[1], STATISTICS[3]] {
            let mut value = 0_u64;
            // SAFETY: as above; the driver takes 0 only, and means the current value.
            let code = unsafe {
                self.driver().graph_memory_set(self.handle, attribute, from_mut(&mut value).cast())?
            };
            self.check(code, self)?;
        }
        Ok(())
    }

    /// Gives back what no graph uses.
    pub(crate) fn trim_graph_memory(&self) -> Result<()> {
        // SAFETY: memory that is in use stays.
        let code = unsafe { self.driver().graph_memory_trim(self.handle)? };
        self.check(code, self)
    }
}
