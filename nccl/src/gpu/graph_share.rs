//! [`GraphShare`]: what a graph has of a rank whose operations it contains.

use std::sync::Arc;

use ferrogrid_host::__private::{LaunchedWork, Participant};
use ferrogrid_host::Result;

use super::rank::Rank;
use super::watchdog;

/// What launches are called in errors.
const OPERATION: &str = "ExecutableGraph::launch";

/// A graph's share of a rank. NCCL ends a communicator only when all graphs with its operations are destroyed, and waits for that
/// without end; so the rank is not ended before all shares are dropped.
pub(super) struct GraphShare(Arc<Rank>);

impl GraphShare {
    /// To be made while operations are locked, in the call that makes the graph.
    pub(super) fn new(rank: &Arc<Rank>) -> Self {
        rank.add_graph();
        GraphShare(rank.clone())
    }
}

impl Participant for GraphShare {
    fn id(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    fn check(&self) -> Result<()> {
        self.0.works()
    }

    fn launched(&self, work: &LaunchedWork<'_>) -> Result<()> {
        // Works are watched in the order of their line.
        let mut operations = self.0.lock_operations();
        watchdog::watch(&self.0, OPERATION, work.watch(&mut operations.line)?)
    }
}

impl Drop for GraphShare {
    fn drop(&mut self) {
        self.0.remove_graph();
    }
}
