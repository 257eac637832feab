//! Deliberate failures among random work, and which calls must report them.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ferrogrid::{Device, DeviceBuffer, Error, Result, Stream};

use super::{Checked, Failure, LENGTH, Worker};

/// A kernel that does the same as [`Launch`](super::Launch) and may panic: if its last argument is not 0, it
/// panics with the message `failure N`.
type MayFail = fn(&Stream, &DeviceBuffer<u32>, &mut DeviceBuffer<u32>, u32, u32) -> Result<()>;

/// The failures of random work.
#[derive(Clone, Copy)]
pub(crate) struct Failing {
    pub(crate) launch: MayFail,
    /// One in this many kernels fails.
    pub(crate) rate: u32,
}

/// The expected result of reading a buffer.
#[derive(Debug, Default, Clone)]
pub(super) struct State {
    /// The failure that wrote it, or one of its inputs.
    failed: Option<u32>,
    /// Whether a GPU may treat it as failed, because a kernel that may panic wrote it or one of its inputs.
    is_in_doubt: bool,
}

impl State {
    /// It is about to be computed from a buffer in the other state.
    pub(super) fn take_over(&mut self, other: &State) {
        self.failed = self.failed.or(other.failed);
        self.is_in_doubt |= other.is_in_doubt;
    }

    /// A kernel that may fail writes it, with this number.
    pub(super) fn launched(&mut self, number: u32, device: &Device) {
        self.is_in_doubt |= device.is_cuda();
        if number != 0 {
            self.failed = Some(number);
        }
    }

    /// Fails if it could be read.
    pub(super) fn refuse_if_failed(&self, what: &str) -> std::result::Result<(), Failure> {
        match self.failed {
            Some(number) => Err(format!("{what}: failure {number} was lost, its data were read").into()),
            None => Ok(()),
        }
    }
}

/// The deliberate failures, and their reports.
#[derive(Default)]
pub(super) struct Made(Mutex<Counts>);

#[derive(Default)]
pub(super) struct Counts {
    /// The last one, by number.
    pub(super) made: u32,
    /// Those that were reported where required.
    pub(super) told: BTreeSet<u32>,
    /// Buffers that a GPU treated as failed because it could not tell.
    pub(super) in_doubt: u64,
    pub(super) launches: u64,
}

impl Made {
    pub(super) fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> u32 {
        let mut counts = self.counts();
        counts.made += 1;
        counts.made
    }

    /// Fails unless `error` is a deliberate failure.
    pub(super) fn expect(&self, error: Error) -> Result<()> {
        let Error::KernelPanic { message, .. } = &error else { return Err(error) };
        let made = self.counts().made;
        let is_made = match message.strip_prefix("failure ").map(str::parse) {
            Some(Ok(number)) => (1..=made).contains(&number),
            _ => false,
        };
        if is_made { Ok(()) } else { Err(error) }
    }
}

impl Checked {
    /// Checks the contents that were read on a stream without failures of its own.
    pub(super) fn judge(&mut self, found: Result<Vec<u32>>, made: &Made) -> std::result::Result<(), Failure> {
        let error = match found {
            Ok(found) => {
                self.state.refuse_if_failed("a buffer")?;
                return Ok(self.model.check("a buffer", &found)?);
            }
            Err(error) => error,
        };
        let text = error.to_string();
        made.expect(error)?;
        let mut counts = made.counts();
        match self.state.failed {
            Some(number) => {
                counts.told.insert(number);
            }
            None if self.state.is_in_doubt => {
                // It stays in this state.
                counts.in_doubt += 1;
                let (_, number) = text.rsplit_once("failure ").unwrap_or_default();
                self.state.failed = Some(number.parse().unwrap_or(1));
            }
            None => return Err(format!("a buffer that no failed kernel wrote is an error: {text}").into()),
        }
        Ok(())
    }
}

impl Worker<'_> {
    /// The number for a launch of the kernel that may fail, 0 if it must not fail; `None` for the other kernel.
    pub(super) fn next_number(&mut self) -> Option<u32> {
        self.common.made.counts().launches += 1;
        let failing = self.common.failing?;
        if self.random.u32(..failing.rate) == 0 {
            return Some(self.common.made.next());
        }
        self.random.bool().then_some(0)
    }

    /// Reads a buffer that failed work wrote, which must be an error, and rewrites it.
    pub(super) fn repair(&mut self, stream: &Stream, chosen: usize) -> std::result::Result<(), Failure> {
        if self.buffers[chosen].state.failed.is_none() {
            return Ok(());
        }
        self.check(stream, chosen)?;
        Ok(self.upload(stream, chosen)?)
    }

    /// A failure on an unshared stream is reported by the first wait, and by no other.
    pub(super) fn fail_alone(&mut self) -> std::result::Result<(), Failure> {
        let Some(failing) = self.common.failing else { return Ok(()) };
        if self.random.u32(..failing.rate) != 0 {
            return Ok(());
        }
        let (number, x) = (self.common.made.next(), &self.common.shared.buffer);
        self.common.made.counts().launches += 2;
        let mut y = self.own.fill(1_u32, LENGTH)?;
        (failing.launch)(&self.own, x, &mut y, 3, number)?;
        (failing.launch)(&self.own, x, &mut y, 3, 0)?;
        let told = match self.random.u32(..5) {
            0 => self.own.synchronize(),
            1 => pollster::block_on(self.own.completed()?),
            2 => self.own.scope(|_| ()),
            3 => self.own.download(&self.common.shared.buffer).map(drop),
            _ => self.own.download(&y).map(drop),
        };
        let Err(error) = told else { return Err(format!("failure {number} was not told").into()) };
        let is_it =
            matches!(&error, Error::KernelPanic { message, .. } if **message == *format!("failure {number}"));
        if !is_it && !self.common.device.is_cuda() {
            return Err(format!("failure {number} was told as {error}").into());
        }
        self.common.made.expect(error)?;
        self.common.made.counts().told.insert(number);
        self.own.synchronize().map_err(|error| format!("failure {number} was told twice: {error}"))?;
        match self.own.download(&y) {
            Ok(_) => Err(format!("what failure {number} left was read").into()),
            Err(error) => Ok(self.common.made.expect(error)?),
        }
    }
}
