//! Memory of either backend: `array` (of textures), `shared_memory` (between processes) and `virtual_memory` (mapped piece
//! by piece). `tensor_map` describes planes whose tiles GPUs copy. `pool` has the options of memory pools, `account` the bytes that buffers use on each device. This file has what
//! all allocations have in common.

mod account;
pub(crate) mod array;
mod pool;
pub(crate) mod shared_memory;
pub(crate) mod tensor_map;
pub(crate) mod virtual_memory;

pub(crate) use account::{Account, Charge};
pub use pool::{PoolKind, PoolOptions};
pub(crate) use shared_memory::SharedMemory;
pub(crate) use virtual_memory::VirtualMemory;

/// The alignment of every allocation in bytes, on every device.
pub(crate) const ALIGNMENT: usize = 256;

/// What fresh memory holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contents {
    /// Anything; it must be written before it is read.
    Uninitialised,
    /// Bytes of value 0.
    Zeroed,
}
