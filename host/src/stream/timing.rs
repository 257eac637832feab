//! Execution times on a device, measured with events.

use std::time::Duration;

use crate::error::Result;
use crate::stream::Stream;

/// How long each of several runs took on the device; never empty.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// let stream = Device::cpu().new_stream()?;
/// let mut buffer = stream.zeros::<u32>(1 << 16)?;
/// let timing = stream.time(5, |stream| stream.fill_into(1, &mut buffer))?;
/// assert_eq!(timing.runs().len(), 5);
/// assert!(timing.min() <= timing.median() && timing.median() <= timing.max());
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timing {
    /// Sorted.
    runs: Vec<Duration>,
}

impl Timing {
    /// The middle of the runs; of an even number, the mean of the two in the middle.
    pub fn median(&self) -> Duration {
        let middle = self.runs.len() / 2;
        let upper = self.runs[middle];
        if self.runs.len().is_multiple_of(2) { (self.runs[middle - 1] + upper) / 2 } else { upper }
    }

    /// The fastest run.
    pub fn min(&self) -> Duration {
        self.runs[0]
    }

    /// The slowest run.
    pub fn max(&self) -> Duration {
        self.runs[self.runs.len() - 1]
    }

    /// All runs, the fastest first.
    pub fn runs(&self) -> &[Duration] {
        &self.runs
    }
}

impl Stream {
    /// Runs `work` once to warm up and then `runs` times (at least once), each between two events. Returns the time of the
    /// device between these events (`cuEventElapsedTime`).
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let mut buffer = stream.zeros::<u32>(1000)?;
    /// let timing = stream.time(5, |stream| stream.fill_into(7, &mut buffer))?;
    /// assert_eq!(timing.runs().len(), 5);
    /// assert!(timing.min() <= timing.median() && timing.median() <= timing.max());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The first error of `work`, or of the device.
    pub fn time(&self, runs: usize, mut work: impl FnMut(&Stream) -> Result<()>) -> Result<Timing> {
        work(self)?;
        let mut durations = Vec::new();
        for _ in 0..runs.max(1) {
            let start = self.record()?;
            work(self)?;
            let end = self.record()?;
            durations.push(end.elapsed_since(&start)?);
        }
        self.synchronize()?;
        durations.sort_unstable();
        Ok(Timing { runs: durations })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        let of = |runs: &[u64]| Timing { runs: runs.iter().map(|&ms| Duration::from_millis(ms)).collect() };
        for (runs, median) in
            [(&[7][..], 7), (&[1, 9], 5), (&[1, 2, 100], 2), (&[1, 2, 8, 100], 5), (&[1, 2, 3, 5, 8, 9], 4)]
        {
            assert_eq!(of(runs).median(), Duration::from_millis(median), "{runs:?}");
        }
        assert_eq!(
            (of(&[1, 2, 9]).min(), of(&[1, 2, 9]).max()),
            (Duration::from_millis(1), Duration::from_millis(9))
        );
    }
}
