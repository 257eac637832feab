//! Tensors that are ordered by a stream instead of a wait on the host: the parameter `stream` of `__dlpack__`.

use std::sync::Arc;

use super::abi::{CUDA, DLManagedTensor, DLManagedTensorVersioned};
use super::element::DlpackElement;
use super::outgoing::parts;
use super::tensor::DlpackTensor;
use crate::backend::EventOptions;
use crate::backend::recording::refusal::not_recordable;
use crate::backend::writers::Sources;
use crate::error::Result;
use crate::memory::Memory;
use crate::memory::buffer::DeviceBuffer;
use crate::order::Use;
use crate::stream::Stream;
use crate::stream::announcing::Announcing;
use crate::stream::event::Event;

/// The point after which the memory of a tensor may be used.
pub(super) struct Ready {
    event: Event,
    /// The work that wrote the memory.
    sources: Sources,
}

impl Ready {
    /// After all work on `stream` so far.
    fn on(stream: &Stream, sources: Sources) -> Result<Self> {
        if stream.inner().recording().is_some() {
            return Err(not_recordable(
                "the exchange of a tensor",
                "tensors change hands once, and a graph runs often",
            ));
        }
        let event = stream.record_with(EventOptions::new().without_timing())?;
        Ok(Ready { event, sources })
    }
}

impl DlpackTensor {
    /// `buffer` as a tensor of one dimension that another library uses on `consumer`. `consumer` waits for all work
    /// that uses the buffer, and the host does not.
    ///
    /// Python's protocol requires this of `__dlpack__(stream=s)`. There `s` is a handle for [`Stream::from_raw`]: 1 is
    /// the legacy default stream, 2 that of the thread.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// use ferrogrid_host::Device;
    /// use ferrogrid_host::dlpack::DlpackTensor;
    ///
    /// let device = Device::cpu();
    /// let (producer, consumer) = (device.new_stream()?, device.new_stream()?);
    /// let buffer = producer.fill(7_u32, 3)?; // may not have run yet
    /// let raw = DlpackTensor::from_buffer_async(&consumer, buffer)?.into_raw();
    ///
    /// // The library that requested the tensor on `consumer`:
    /// // SAFETY: from `into_raw`, with no other owner, and it is ready on that stream.
    /// let tensor = unsafe { DlpackTensor::from_raw_async(&consumer, raw)? };
    /// let buffer = tensor.into_buffer::<u32>(&device.new_stream()?)?; // on any stream
    /// assert_eq!(consumer.download(&buffer)?, [7; 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If `consumer` is of another device or records a graph; or if the device fails. If work that wrote the buffer
    /// fails, reading the elements by this crate returns that error. Other libraries are not told.
    pub fn from_buffer_async<T: DlpackElement>(consumer: &Stream, buffer: DeviceBuffer<T>) -> Result<Self> {
        let ready = ready(consumer, buffer.memory(), Use::Write)?;
        Ok(Self::own::<T, _>(parts(&buffer), CUDA, buffer).with_ready(ready))
    }

    /// As [`DlpackTensor::from_shared`], for a library that reads the tensor on `consumer`. `consumer` waits for work
    /// that writes the buffer, and the host does not.
    ///
    /// # Errors
    /// As [`DlpackTensor::from_buffer_async`].
    pub fn from_shared_async<T: DlpackElement + Sync>(
        consumer: &Stream,
        buffer: Arc<DeviceBuffer<T>>,
    ) -> Result<Self> {
        let ready = ready(consumer, buffer.memory(), Use::Read)?;
        Ok(Self::own::<T, _>(parts(&buffer), CUDA, buffer).with_read_only().with_ready(ready))
    }

    /// As [`DlpackTensor::from_raw`], for a tensor that is ready on `stream`: its `__dlpack__` was called with the handle
    /// of `stream` ([`Stream::as_raw`]). All uses by this crate, on any stream, come after that work.
    ///
    /// # Errors
    /// As [`DlpackTensor::from_raw`]; if `stream` records a graph, or the device fails.
    ///
    /// # Safety
    /// As [`DlpackTensor::from_raw`], but work that writes the memory has run, or comes before all later work on `stream`.
    pub unsafe fn from_raw_async(stream: &Stream, raw: *mut DLManagedTensorVersioned) -> Result<Self> {
        // SAFETY: passed on; no use of the memory begins before the event.
        let tensor = unsafe { Self::from_raw(raw)? };
        Ok(tensor.with_ready(Ready::on(stream, Sources::default())?))
    }

    /// As [`DlpackTensor::from_raw_async`], from the form before DLPack 1.0 (a capsule `dltensor`).
    ///
    /// # Errors
    /// As [`DlpackTensor::from_raw_unversioned`] and [`DlpackTensor::from_raw_async`].
    ///
    /// # Safety
    /// As [`DlpackTensor::from_raw_unversioned`] and [`DlpackTensor::from_raw_async`].
    pub unsafe fn from_raw_unversioned_async(stream: &Stream, raw: *mut DLManagedTensor) -> Result<Self> {
        // SAFETY: passed on; no use of the memory begins before the event.
        let tensor = unsafe { Self::from_raw_unversioned(raw)? };
        Ok(tensor.with_ready(Ready::on(stream, Sources::default())?))
    }

    fn with_ready(self, ready: Ready) -> Self {
        DlpackTensor { ready: Some(ready), ..self }
    }

    /// Makes later work on `stream` wait until the memory may be used.
    pub(super) fn begin(&self, stream: &Stream) -> Result<()> {
        self.ready.as_ref().map_or(Ok(()), |ready| stream.wait(&ready.event))
    }

    /// Waits until the memory may be used.
    pub(super) fn wait_on_host(&self) -> Result<()> {
        self.ready.as_ref().map_or(Ok(()), |ready| ready.event.synchronize())
    }

    /// The work that wrote the memory, if known.
    pub(super) fn sources(&self) -> Sources {
        self.ready.as_ref().map(|ready| ready.sources.clone()).unwrap_or_default()
    }
}

/// Orders a use of `memory` on `consumer`.
fn ready(consumer: &Stream, memory: &Memory, usage: Use) -> Result<Ready> {
    begin(consumer, memory, usage)?;
    Ready::on(consumer, memory.writers().sources())
}

/// Makes what comes on `stream` wait for what a use of `memory` must come after.
pub(super) fn begin(stream: &Stream, memory: &Memory, usage: Use) -> Result<()> {
    let _announcing = Announcing::on(stream.inner());
    memory.begin(stream.inner(), usage)
}
