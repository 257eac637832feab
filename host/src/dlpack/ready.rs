//! Tensors whose memory is ready in the order of a stream, so that nobody waits when they change hands: what the parameter
//! `stream` of `__dlpack__` is for.

use std::sync::Arc;

use super::abi::{CUDA, DLManagedTensor, DLManagedTensorVersioned};
use super::element::DlpackElement;
use super::tensor::DlpackTensor;
use crate::backend::recording::refusal::not_recordable;
use crate::error::Result;
use crate::memory::Memory;
use crate::memory::buffer::DeviceBuffer;
use crate::order::Use;
use crate::order::writers::Sources;
use crate::stream::Stream;
use crate::stream::announcing::Announcing;
use crate::stream::event::{Event, EventOptions};

/// From when on the memory of a tensor may be used.
pub(super) struct Ready {
    event: Event,
    /// The work whose failure is that of what the memory holds.
    sources: Sources,
}

impl Ready {
    /// After all that `stream` holds now.
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
    /// `buffer` as a tensor of one dimension, for whoever uses it in the order of `consumer`. The host does not wait:
    /// `consumer` does, for all work that uses the buffer.
    ///
    /// This is what `__dlpack__(stream=s)` of Python's protocol asks of whoever has the memory. `s` (1 for the legacy default
    /// stream, 2 for that of the thread, else an address) is a handle for [`Stream::from_raw`]. For -1 the stream is any
    /// on which the buffer is ready.
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
    /// // On the other side, which asked for the tensor on `consumer`.
    /// // SAFETY: from `into_raw`, nobody else has it, and it is ready on that stream.
    /// let tensor = unsafe { DlpackTensor::from_raw_async(&consumer, raw)? };
    /// let buffer = tensor.into_buffer::<u32>(&device.new_stream()?)?; // any stream: the tensor knows since when
    /// assert_eq!(consumer.download(&buffer)?, [7; 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If `consumer` is of another device or records a graph; or if the device fails. A failure of work that wrote the buffer comes
    /// when this crate reads the elements, and not at all to others.
    pub fn from_buffer_async<T: DlpackElement>(
        consumer: &Stream,
        mut buffer: DeviceBuffer<T>,
    ) -> Result<Self> {
        let ready = ready(consumer, buffer.memory(), Use::Write)?;
        let (start, len) = (buffer.as_device_ptr_mut().as_raw().cast(), buffer.len());
        let device = buffer.device().clone();
        Ok(Self::own::<T, _>(start, &[len], (&device, CUDA), buffer).with_ready(ready))
    }

    /// A buffer that stays in use here as a read-only tensor, as [`DlpackTensor::from_shared`], for whoever reads it in the order
    /// of `consumer`. The host does not wait.
    ///
    /// # Errors
    /// As [`DlpackTensor::from_buffer_async`].
    pub fn from_shared_async<T: DlpackElement + Sync>(
        consumer: &Stream,
        buffer: Arc<DeviceBuffer<T>>,
    ) -> Result<Self> {
        let ready = ready(consumer, buffer.memory(), Use::Read)?;
        let (start, len) = (buffer.memory().pointer(), buffer.len());
        let device = buffer.device().clone();
        let tensor = Self::own::<T, _>(start, &[len], (&device, CUDA), buffer);
        Ok(tensor.with_read_only().with_ready(ready))
    }

    /// Takes a tensor over from another library, as [`DlpackTensor::from_raw`], whose work on it need not have run: it comes
    /// before what `stream` is given from now on. That is so if its `__dlpack__` was called with the handle of `stream`
    /// ([`Stream::as_raw`]). Whatever uses the tensor here comes after it, on whichever stream.
    ///
    /// # Errors
    /// As [`DlpackTensor::from_raw`]; if `stream` records a graph, or the device fails.
    ///
    /// # Safety
    /// As [`DlpackTensor::from_raw`], but work that writes the memory has run, or comes before what `stream` is given from
    /// now on.
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

    /// Makes what `stream` is about to be given come after the work on the memory.
    pub(super) fn begin(&self, stream: &Stream) -> Result<()> {
        self.ready.as_ref().map_or(Ok(()), |ready| stream.wait(&ready.event))
    }

    /// Waits for the work on the memory.
    pub(super) fn wait_on_host(&self) -> Result<()> {
        self.ready.as_ref().map_or(Ok(()), |ready| ready.event.synchronize())
    }

    /// The work whose failure is that of what the memory holds.
    pub(super) fn sources(&self) -> Sources {
        self.ready.as_ref().map(|ready| ready.sources.clone()).unwrap_or_default()
    }
}

/// Makes `consumer` wait for what a use of `memory` there must come after.
fn ready(consumer: &Stream, memory: &Memory, usage: Use) -> Result<Ready> {
    let announcing = Announcing::on(consumer.inner());
    memory.begin(consumer.inner(), usage)?;
    drop(announcing);
    Ready::on(consumer, memory.writers().sources())
}
