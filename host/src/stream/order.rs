//! Explicit order between streams: waiting, forking, joining.

use crate::backend::recording::refusal::other_stream;
use crate::error::Result;
use crate::order::OrderedStream;
use crate::stream::Stream;

impl Stream {
    /// Makes work enqueued here from now on start after all that `other` holds so far, of any device
    /// (`cuEventRecord`, `cuStreamWaitEvent`). The host does not wait, except between a GPU and the CPU
    /// device.
    ///
    /// # Errors
    /// If the device fails.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// use std::sync::Arc;
    ///
    /// let device = ferrogrid_host::Device::cpu();
    /// let (first, second) = (device.new_stream()?, device.new_stream()?);
    /// let value = Arc::new(AtomicU32::new(0));
    /// let set = value.clone();
    /// first.launch_host_func(move || set.store(7, Ordering::Relaxed))?;
    /// second.wait_stream(&first)?;
    /// second.synchronize()?;
    /// assert_eq!(value.load(Ordering::Relaxed), 7);
    /// # Ok(()) }
    /// ```
    pub fn wait_stream(&self, other: &Stream) -> Result<()> {
        if self.inner().id() == other.inner().id() {
            return Ok(());
        }
        self.inner().backend().join(other.inner().backend())
    }

    /// A new stream of this device whose work starts after all that this one holds so far: the fork of
    /// a fork and join.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let (mut a, mut b) = (stream.zeros::<u32>(3)?, stream.zeros::<u32>(3)?);
    /// let branch = stream.fork()?; // comes after both
    /// stream.fill_into(1, &mut a)?;
    /// branch.fill_into(2, &mut b)?; // at the same time
    /// stream.join([&branch])?;
    /// assert_eq!((stream.download(&a)?, stream.download(&b)?), (vec![1; 3], vec![2; 3]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Device::new_stream`](crate::Device::new_stream).
    pub fn fork(&self) -> Result<Stream> {
        if let Some(recording) = self.inner().recording() {
            return Ok(Stream::new(self.device(), recording.fork()?));
        }
        let fork = self.device().new_stream()?;
        fork.wait_stream(self)?;
        Ok(fork)
    }

    /// Makes work enqueued here from now on start after all that each of `others` holds so far.
    ///
    /// # Errors
    /// If the device fails.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let branches = [stream.fork()?, stream.fork()?];
    /// // ... independent work on the branches ...
    /// stream.join(&branches)?;
    /// # Ok(()) }
    /// ```
    pub fn join<'a>(&self, others: impl IntoIterator<Item = &'a Stream>) -> Result<()> {
        let mut others = others.into_iter();
        let Some(recording) = self.inner().recording() else {
            return others.try_for_each(|other| self.wait_stream(other));
        };
        // All or none: a recording keeps no trace of a call that is refused.
        let others = others.filter(|other| other.inner().id() != self.inner().id());
        let others: Result<Vec<_>> =
            others.map(|other| other.inner().recording().ok_or_else(other_stream)).collect();
        recording.run_after(&others?)
    }
}
