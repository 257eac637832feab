//! Memory of all kinds: buffers, host memory, pools, other devices, and tensors of other libraries.

pub(super) mod buffers;
pub(super) mod dlpack;
pub(super) mod growable;
pub(super) mod host_memory;
pub(super) mod peers;
pub(super) mod pitched;
pub(super) mod pools;
pub(super) mod soak;
pub(super) mod zero_copy;
