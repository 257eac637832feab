//! Nodes with work of neighbouring crates, in which others take part: the ranks of communicators.

use std::sync::Arc;

use crate::backend::cuda::OwnGraph;
use crate::backend::external::ExternalFn;
use crate::error::Result;
use crate::stream::external::LaunchedWork;

/// A node whose work a neighbouring crate does.
pub(crate) struct ExternalNode {
    pub(crate) work: NodeWork,
    /// For people.
    pub(crate) label: String,
    /// Dropped after the work, which may need them to its end.
    pub(crate) participants: Vec<Arc<dyn Participant>>,
}

/// What a node does.
pub(crate) enum NodeWork {
    /// Calls what this returns when a launch is enqueued.
    Calls(Box<dyn Fn() -> ExternalFn + Send + Sync>),
    /// A library has enqueued it on a stream that was captured.
    Captured(OwnGraph),
}

/// One that takes part in work of a node: a rank of a communicator. A graph and its instances hold it to their end.
#[doc(hidden)]
pub trait Participant: Send + Sync {
    /// The number of what takes part. Nodes with the same one run one after the other, in the order of recording.
    fn id(&self) -> usize;

    /// Whether a launch can begin.
    ///
    /// # Errors
    /// Why none can.
    fn check(&self) -> Result<()>;

    /// Called when a launch has been enqueued.
    ///
    /// # Errors
    /// Why the launch fails.
    fn launched(&self, _work: &LaunchedWork<'_>) -> Result<()> {
        Ok(())
    }
}

/// Each participant once.
pub(crate) fn distinct(all: impl IntoIterator<Item = Arc<dyn Participant>>) -> Vec<Arc<dyn Participant>> {
    let mut found: Vec<Arc<dyn Participant>> = Vec::new();
    for one in all {
        if !found.iter().any(|known| known.id() == one.id()) {
            found.push(one);
        }
    }
    found
}
