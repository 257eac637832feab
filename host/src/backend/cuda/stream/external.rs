//! Work that other libraries enqueue on CUDA streams.

use std::ffi::c_void;
use std::sync::Arc;

use super::super::device::is_current;
use super::CudaStream;
use super::burst::Burst;
use crate::backend::Fault;
use crate::backend::external::ExternalStream;
use crate::backend::writers::{Line, Sources};
use crate::error::{Error, Result};

impl CudaStream {
    /// The handle of a stream that is no default one, if its context is current.
    #[inline]
    pub(crate) fn handle_if_current(&self) -> Option<*mut c_void> {
        let is_usable = !self.device.has_been_reset() && is_current(self.driver, self.context.0);
        is_usable.then(|| self.raw.0.cast())
    }
}

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
