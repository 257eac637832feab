//! The failure record on the host's side. It must not know which kernel it was.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use ferrogrid_device::failure::{BOUNDS, CLAIMED, COMPLETE, FREE, FailureRecord, MESSAGE, MESSAGE_BYTES};

use super::super::device::CudaDevice;
use super::addresses::{self, Source};
use super::{Mapped, set};
use crate::error::Result;

/// The record of a device, in memory that its threads write to.
pub(super) struct PanicRecord {
    memory: Mapped,
    /// The address of the count of threads that have ended before their time, in the device's memory.
    alarm: u64,
    /// Held by whoever takes the record's content.
    taking: Mutex<()>,
}

/// What a panicking thread wrote.
pub(super) struct Panic {
    pub(super) message: String,
    pub(super) file: String,
    pub(super) line: u32,
    pub(super) column: u32,
    pub(super) block: [u32; 3],
    pub(super) thread: [u32; 3],
}

impl PanicRecord {
    pub(super) fn new(device: &CudaDevice) -> Result<Self> {
        let memory = Mapped::allocate(device, size_of::<FailureRecord>())?;
        let alarm = counter(device)?;
        let record = PanicRecord { memory, alarm, taking: Mutex::new(()) };
        // SAFETY: no kernel knows of the record yet.
        unsafe { (*record.record()).alarm = alarm };
        Ok(record)
    }

    /// The address of a `u64` in the device's memory that every thread adds to that panics, or gives up because
    /// another has.
    pub(super) fn alarm(&self) -> u64 {
        self.alarm
    }

    /// Its address for device code.
    pub(super) fn address(&self) -> u64 {
        self.memory.device
    }

    fn record(&self) -> *mut FailureRecord {
        self.memory.host.cast()
    }

    fn state(&self) -> &AtomicU32 {
        // SAFETY: an aligned word of memory that is never freed; both sides reach it as a whole.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.record()).state) }
    }

    /// Whether no thread has panicked since the last panic was taken.
    #[inline]
    pub(super) fn is_free(&self) -> bool {
        self.state().load(Ordering::Acquire) == FREE
    }

    /// Whether a thread has panicked, and not yet written all.
    pub(super) fn is_being_written(&self) -> bool {
        self.state().load(Ordering::Acquire) == CLAIMED
    }

    /// Whether a thread has panicked and written all.
    fn is_complete(&self) -> bool {
        self.state().load(Ordering::Acquire) == COMPLETE
    }

    /// The panic, and the record free for the next; `None` if another thread was faster.
    pub(super) fn take(&self, device: &CudaDevice) -> Option<Panic> {
        let _taking = self.taking.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_complete() {
            return None;
        }
        // SAFETY: a complete record is written by nobody until its state is `FREE`; all of its bits are
        // numbers.
        let record = unsafe { &*self.record() };
        let panic = Panic::read(record, device);
        self.state().store(FREE, Ordering::Release);
        Some(panic)
    }
}

impl Panic {
    /// What `record` says; its addresses are those of `device`.
    fn read(record: &FailureRecord, device: &impl Source) -> Self {
        let message = match record.kind {
            BOUNDS => {
                format!("index out of bounds: the len is {} but the index is {}", record.second, record.first)
            }
            MESSAGE => {
                let words = (record.second as usize).min(MESSAGE_BYTES) / 8;
                addresses::message(device, &record.message[..words])
            }
            _ => addresses::text(device, record.first, record.second),
        };
        Panic {
            message,
            file: addresses::text(device, record.file, record.file_length),
            line: record.line,
            column: record.column,
            block: record.block,
            thread: record.thread,
        }
    }
}

/// A `u64` in the device's memory, 0 at first, for the rest of the process: kernels may write to it whenever they run.
fn counter(device: &CudaDevice) -> Result<u64> {
    let mut address = 0;
    // SAFETY: `address` is valid for the call, and the context is bound.
    let code = unsafe { device.driver().allocate(&mut address, size_of::<u64>()) };
    device.check(code, "cuMemAlloc", "8 bytes")?;
    set(device, address, 0)?;
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::addresses::tests::{START, memory, split, words};
    use super::*;

    /// The bytes of a record with `kind`, and values of its message, without the device's words at its end.
    fn record(kind: u32, first: u64, second: u64, message: &[u64]) -> FailureRecord {
        let mut all = [0; MESSAGE_BYTES / 8];
        all[..message.len()].copy_from_slice(message);
        let [block, thread] = [[1, 0, 0], [2, 0, 0]];
        let (state, line, column, file, file_length, alarm) = (COMPLETE, 3, 9, START + 1, 3, 0);
        FailureRecord {
            state,
            kind,
            block,
            thread,
            line,
            column,
            file,
            file_length,
            first,
            second,
            alarm,
            message: all,
        }
    }

    #[test]
    fn fuzz_panic_records() {
        let seed = |kind: u64, first: u64, second: u64| {
            let numbers = [kind, first, second, START + 1, 3];
            let words: Vec<u64> = numbers.into_iter().chain(words()).collect();
            [memory(), words.iter().flat_map(|word| word.to_le_bytes()).collect()].concat()
        };
        let bytes = 8 * words().len() as u64;
        let seeds = [seed(MESSAGE.into(), 0, bytes), seed(BOUNDS.into(), 7, 5), seed(0, START, 9)];
        crate::fuzz::survive(&seeds, |bytes| {
            let (memory, words) = split(bytes);
            let [kind, first, second, file, file_length, message @ ..] = words.as_slice() else { return };
            let message = &message[..message.len().min(MESSAGE_BYTES / 8)];
            let record = FailureRecord {
                file: *file,
                file_length: *file_length,
                ..record(*kind as u32, *first, *second, message)
            };
            let panic = Panic::read(&record, &memory);
            assert_eq!((panic.line, panic.column, panic.block, panic.thread), (3, 9, [1, 0, 0], [2, 0, 0]));
        });
    }
}
