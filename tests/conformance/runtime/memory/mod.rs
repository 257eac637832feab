//! Memory of all kinds: buffers, host memory, pools, other devices, and tensors of other libraries.
//!
//! `buffers`, `growable`, `pitched` and `pools` are memory of devices; `host_memory` and `zero_copy` page-locked
//! memory. `peers` uses several devices, `dlpack` exchanges tensors, and `soak` allocates much.

pub(super) mod buffers;
pub(super) mod dlpack;
pub(super) mod growable;
pub(super) mod host_memory;
pub(super) mod peers;
pub(super) mod pitched;
pub(super) mod pools;
pub(super) mod soak;
pub(super) mod zero_copy;
