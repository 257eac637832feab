//! A failure record while an interval's or a graph's launches use it.

use std::sync::{Arc, Mutex};

use super::super::device::CudaDevice;
use super::PanicRecord;
use crate::backend::cuda::stream::recent::Recent;
use crate::backend::failure::Fault;
use crate::error::Result;
use crate::sync::lock;

/// A record with a single owner. It is returned when this is dropped, so all launches that were given its address must
/// have run by then.
pub(crate) struct Lent {
    device: &'static CudaDevice,
    record: PanicRecord,
    /// The panic that was found in it.
    found: Mutex<Option<Arc<Fault>>>,
}

impl Lent {
    pub(crate) fn new(device: &'static CudaDevice) -> Result<Self> {
        Ok(Lent { device, record: device.feedback.lend(device)?, found: Mutex::new(None) })
    }

    /// What kernels are given.
    pub(crate) fn address(&self) -> u64 {
        self.record.address()
    }

    /// The address of the count, in the device's memory, of threads that were given this record, and have panicked or
    /// given up because others had.
    pub(crate) fn alarm(&self) -> u64 {
        self.record.alarm()
    }

    /// The panic of a launch that was given it, if one has panicked; the same one each time.
    pub(crate) fn find(&self, recent: &Recent) -> Result<Option<Arc<Fault>>> {
        self.device.check_not_reset()?;
        let mut found = lock(&self.found);
        if found.is_none() && !self.record.is_free() {
            let recent: Vec<_> = recent.launches().collect();
            let error = self.device.feedback.panic_in(&self.record, self.device, &recent)?;
            *found = error.map(|error| Arc::new(Fault::new(error)));
        }
        Ok(found.clone())
    }

    /// Forgets a panic. All launches that were given the record have run.
    pub(crate) fn clear(&mut self) {
        *lock(&self.found) = None;
        if !self.device.has_been_reset() {
            self.record.clear();
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.device.feedback.take_back(self.device, self.record);
    }
}

debug_by_methods!(Lent { address });
