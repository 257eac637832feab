//! Errors of operations that graphs cannot contain, with alternatives.

use crate::error::Error;
use crate::error::graph::GraphError;

/// The error of an operation that no graph can hold.
#[cold]
pub(crate) fn not_recordable(operation: &'static str, reason: &'static str) -> Error {
    GraphError::NotRecordable { operation, reason }.into()
}

/// The error of an order between a stream of a recording and one that is none.
#[cold]
pub(crate) fn other_stream() -> Error {
    not_recordable("order with another stream", "only the streams of the recording take part")
}

#[cold]
pub(crate) fn waiting(operation: &'static str) -> Error {
    not_recordable(operation, "nothing runs before the graph is launched, so there is nothing to wait for")
}

#[cold]
pub(crate) fn host_memory(operation: &'static str) -> Error {
    not_recordable(
        operation,
        "memory of the host may be gone or changed when the graph is launched; give the graph page-locked memory by `capture.keep_pinned`, and copy from or to that",
    )
}

#[cold]
pub(crate) fn allocation() -> Error {
    not_recordable(
        "allocation",
        "allocate by `capture.zeros` or `capture.uninit` what one launch needs, and before, by `capture.keep`, what outlives it",
    )
}

/// The number of times that a body runs is known on the device alone, and bodies on GPUs take no such nodes.
#[cold]
pub(crate) fn external_in_body() -> Error {
    not_recordable(
        "communication in the body of a conditional node",
        "other ranks do not know how often the body runs; record it before or after the conditional node",
    )
}

/// A library looks at memory when its call is recorded.
#[cold]
pub(crate) fn external_on_allocation() -> Error {
    not_recordable(
        "communication with memory that a node allocates",
        "the memory is there only while the graph runs; give the graph a buffer by `capture.keep` or `capture.keep_zeros`",
    )
}
