//! Streams and events as futures, for any executor.

use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::backend::{EndedIntervals, EventBackend, Signal};
use crate::device::Device;
use crate::error::Result;
use crate::stream::event::Event;
use crate::stream::{Stream, StreamInner};

/// The future of a point in the work of a stream: made by [`Stream::completed`], or by awaiting an
/// [`Event`].
///
/// The task is woken by the device's runtime (`cuStreamAddCallback` on a GPU); nothing polls, and no
/// thread waits. Dropping it before it is complete is safe, and leaves the work as it is.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// async fn count(stream: &Stream) -> ferrogrid::Result<usize> {
///     let ones = stream.fill(1_u32, 1000)?;
///     stream.completed()?.await?; // other tasks run meanwhile
///     Ok(ones.len())
/// }
/// assert_eq!(pollster::block_on(count(&Device::cpu().new_stream()?))?, 1000);
/// # Ok(()) }
/// ```
#[must_use = "it does nothing unless it is awaited"]
pub struct Completion<'a> {
    event: Arc<EventBackend>,
    device: Device,
    /// Where a failure is to be reported; an event reports none.
    stream: Option<Arc<StreamInner>>,
    /// The interval of a GPU's stream that has then run.
    ended: Option<EndedIntervals>,
    signal: Option<Arc<Signal>>,
    borrow: PhantomData<&'a Event>,
}

impl Completion<'static> {
    /// The future of all work of `stream` so far.
    pub(crate) fn of_stream(stream: &Arc<StreamInner>) -> Result<Self> {
        let ended = stream.backend().end_interval();
        let event = Arc::new(stream.tail()?);
        let (device, stream) = (stream.device().clone(), Some(stream.clone()));
        Ok(Completion { event, device, stream, ended, signal: None, borrow: PhantomData })
    }

    /// The event that it waits for, if it is not shared.
    pub(crate) fn into_event(self) -> Option<EventBackend> {
        Arc::into_inner(self.event)
    }
}

impl Completion<'_> {
    /// Whether it is ready now.
    pub(crate) fn is_complete(&self) -> Result<bool> {
        self.event.is_complete()
    }

    /// Passes printed text on.
    pub(crate) fn deliver_output(&self) {
        self.device.deliver_output();
    }

    /// Reports as the future does; waits, if this is the future of a stream.
    pub(crate) fn finish(&self) -> Result<()> {
        match &self.stream {
            Some(stream) => stream.backend().finish(&self.event, self.ended.as_ref()),
            // No waiting: the event may have been recorded again since it was awaited.
            None => {
                self.deliver_output();
                self.is_complete().map(|_| ())
            }
        }
    }

    fn signal(&mut self) -> Result<&Signal> {
        let signal = match self.signal.take() {
            Some(signal) => signal,
            None => {
                let signal = Arc::new(Signal::default());
                self.event.notify(signal.clone())?;
                signal
            }
        };
        Ok(self.signal.insert(signal))
    }
}

impl Future for Completion<'_> {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        // An error is final as well: `finish` gives it.
        if self.is_complete() != Ok(false) {
            return Poll::Ready(self.finish());
        }
        match self.signal() {
            // Ready is to mean that the work has run, so wait here.
            Err(error) => Poll::Ready(self.finish().and(Err(error))),
            Ok(signal) if signal.poll(context.waker()) => Poll::Ready(self.finish()),
            Ok(_) => Poll::Pending,
        }
    }
}

impl<'a> IntoFuture for &'a Event {
    type Output = Result<()>;
    type IntoFuture = Completion<'a>;

    /// The future of what the event was last recorded for, at the first poll.
    fn into_future(self) -> Completion<'a> {
        let (event, device) = (self.shared().clone(), self.device().clone());
        Completion { event, device, stream: None, ended: None, signal: None, borrow: PhantomData }
    }
}

impl Stream {
    /// The future of all work enqueued here so far: what [`Stream::synchronize`] waits for, without a
    /// thread. Enqueues no callback here (the stream does not pause for the task).
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// use ferrogrid_host::Device;
    ///
    /// async fn work() -> ferrogrid_host::Result<()> {
    ///     let stream = Device::cpu().new_stream()?;
    ///     let ones = stream.fill(1_u32, 1000)?;
    ///     stream.completed()?.await?;
    ///     (&stream.record()?).await?; // an event is awaited in the same way
    ///     assert_eq!(stream.download(&ones)?, [1; 1000]);
    ///     Ok(())
    /// }
    /// # pollster::block_on(work())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the device fails. The future itself returns the result of [`Stream::synchronize`].
    pub fn completed(&self) -> Result<Completion<'static>> {
        Completion::of_stream(self.inner())
    }
}

debug_by_methods!(Completion<'_> { is_complete });
