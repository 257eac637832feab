//! The host side of a failure record.

use std::sync::atomic::{AtomicU32, Ordering};

use ferrogrid_device::failure::{
    BOUNDS, CLAIMED, COMPLETE, FREE, FailureRecord, LANES, MESSAGE, MESSAGE_BYTES,
};

use super::super::device::CudaDevice;
use super::addresses::{self, Source};
use super::{Mapped, set};
use crate::error::Result;

/// The records that are made at a time: 66 KiB.
const RECORDS: usize = 16;

/// A record, in memory that threads of the device write to, and that is never freed.
#[derive(Clone, Copy)]
pub(super) struct PanicRecord {
    memory: Mapped,
    /// The address of the count of threads that have ended before their time, in the device's memory.
    alarm: u64,
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
    /// Free records of `device`, whose context is bound.
    pub(super) fn several(device: &CudaDevice) -> Result<[Self; RECORDS]> {
        let memory = Mapped::allocate(device, RECORDS * size_of::<FailureRecord>())?;
        let alarms = counters(device, RECORDS)?;
        Ok(std::array::from_fn(|index| {
            let memory = memory.at(index * size_of::<FailureRecord>());
            let record = PanicRecord { memory, alarm: alarms + (index * size_of::<u64>()) as u64 };
            // SAFETY: inside the memory, and no kernel knows of the record yet.
            unsafe { (*record.record()).alarm = record.alarm };
            record
        }))
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

    /// Whether no thread has panicked since the record was made, or cleared.
    #[inline]
    pub(super) fn is_free(&self) -> bool {
        self.state().load(Ordering::Acquire) == FREE
    }

    /// Whether a thread has panicked, and not yet written all.
    pub(super) fn is_being_written(&self) -> bool {
        self.state().load(Ordering::Acquire) == CLAIMED
    }

    /// The panic in it, if a thread has panicked and written all. It stays there.
    pub(super) fn read(&self, device: &CudaDevice) -> Option<Panic> {
        if self.state().load(Ordering::Acquire) != COMPLETE {
            return None;
        }
        // SAFETY: a complete record is not written until it is cleared, which requires that it is lent to nothing
        // else; all of its bits are numbers.
        Some(Panic::read(unsafe { &*self.record() }, device))
    }

    /// Makes it free for the next panic. All work that was given it has run.
    pub(super) fn clear(&self) {
        self.state().store(FREE, Ordering::Release);
    }
}

impl Panic {
    /// What `record` says; its addresses are those of `device`.
    fn read(record: &FailureRecord, device: &impl Source) -> Self {
        let message = match record.kind {
            BOUNDS => {
                format!("index out of bounds: the len is {} but the index is {}", record.second, record.first)
            }
            LANES => format!(
                "the warp operation with mask {:#010x} needs lane {}, which is not there",
                record.first,
                record.second.trailing_zeros()
            ),
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

/// As many `u64` in the device's memory, 0 at first, for the rest of the process: kernels may write to them whenever
/// they run.
fn counters(device: &CudaDevice, count: usize) -> Result<u64> {
    // SAFETY: `to` is valid for the call, and the context is bound.
    let address = device.get(&format_args!("{} bytes", count * size_of::<u64>()), |driver, to| unsafe {
        driver.allocate(to, count * size_of::<u64>())
    })?;
    (0..count as u64).try_for_each(|index| set(device, address + 8 * index, 0))?;
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
    fn missing_lanes_are_named() {
        let (memory, _) = split(&memory());
        let panic = Panic::read(&record(LANES, 0xFFFF, 0x00C0, &[]), &memory);
        assert_eq!(panic.message, "the warp operation with mask 0x0000ffff needs lane 6, which is not there");
    }

    #[test]
    fn fuzz_panic_records() {
        let seed = |kind: u64, first: u64, second: u64| {
            let numbers = [kind, first, second, START + 1, 3];
            let words: Vec<u64> = numbers.into_iter().chain(words()).collect();
            [memory(), words.iter().flat_map(|word| word.to_le_bytes()).collect()].concat()
        };
        let bytes = 8 * words().len() as u64;
        let seeds = [
            seed(MESSAGE.into(), 0, bytes),
            seed(BOUNDS.into(), 7, 5),
            seed(LANES.into(), 15, 8),
            seed(0, START, 9),
        ];
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
