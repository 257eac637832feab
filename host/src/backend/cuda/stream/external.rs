//! Work that other libraries enqueue on CUDA streams.

use std::ffi::c_void;
use std::sync::Arc;

use super::CudaStream;
use super::burst::Burst;
use crate::backend::Fault;
use crate::backend::external::ExternalStream;
use crate::backend::writers::{Line, Sources};
use crate::error::{Error, Result};

impl ExternalStream for CudaStream {
    /// Not of a default stream: its handle means another stream on each thread, or in each context.
    fn external_handle(&self, extends_burst: bool) -> Result<*mut c_void> {
        if self.is_default {
            let reason = "threads of the library enqueue, too: use a stream of `Device::new_stream`";
            return Err(Error::unsupported("communication on a default stream", self.device, reason));
        }
        self.bind()?;
        if !extends_burst {
            self.end_burst();
        }
        Ok(self.raw.0.cast())
    }

    fn begin_burst(&self, line: &Line) -> Result<Arc<Burst>> {
        Ok(self.begin_burst(line))
    }

    fn end_burst(&self) {
        self.end_burst();
    }

    fn has_ended(&self, burst: &Burst) -> Result<bool> {
        self.has_ended(burst)
    }

    fn rest_external(&self, sources: &Sources) {
        self.watch.rest(sources);
    }

    fn note_external(&self, fault: &Arc<Fault>) {
        self.watch.failure().note_shared(fault);
    }
}
