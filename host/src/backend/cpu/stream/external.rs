//! Work of other crates on streams of the CPU device.

use std::sync::Arc;

use super::{CpuStream, Item};
use crate::backend::Fault;
use crate::backend::external::{ExternalFn, ExternalStream};
use crate::backend::writers::Flow;
use crate::error::Result;

impl ExternalStream for CpuStream {
    fn run_external(&self, work: ExternalFn, flow: Flow) -> Result<()> {
        self.push(Item::External(work, flow))
    }

    fn note_external(&self, fault: &Arc<Fault>) {
        self.queue.failure.note_shared(fault);
    }
}
