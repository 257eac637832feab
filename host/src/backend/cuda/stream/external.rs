//! Work that other libraries enqueue on CUDA streams.

use std::ffi::c_void;
use std::sync::Arc;

use super::CudaStream;
use crate::backend::Fault;
use crate::backend::external::ExternalStream;
use crate::backend::writers::Sources;
use crate::error::{Error, Result};

impl ExternalStream for CudaStream {
    /// Not of a default stream: its handle means another stream on each thread, or in each context.
    fn external_handle(&self) -> Result<*mut c_void> {
        if self.is_default {
            let reason = "threads of the library enqueue, too: use a stream of `Device::new_stream`";
            return Err(Error::unsupported("communication on a default stream", self.device, reason));
        }
        self.bind()?;
        Ok(self.raw.0.cast())
    }

    fn rest_external(&self, sources: &Sources) {
        self.watch.rest(sources);
    }

    fn note_external(&self, fault: &Arc<Fault>) {
        self.watch.failure().note_shared(fault);
    }
}
