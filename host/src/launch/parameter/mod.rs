//! What single kinds of parameter need at a launch.
//!
//! `shared` lays out shared memory, and `sized_params` leaves out parameters without bytes. `block_order` has the memory of a
//! `BlockOrder`, `zeros` that of a `ScatterSlice`, `tensor_map` the map of a `TensorMap`, and `block_output` checks outputs that
//! belong to blocks. `list` is all parameters of a kernel without a launch function.

pub(crate) mod block_order;
pub(crate) mod block_output;
pub(crate) mod list;
pub(crate) mod shared;
pub(crate) mod sized_params;
pub(crate) mod tensor_map;
pub(crate) mod zeros;
