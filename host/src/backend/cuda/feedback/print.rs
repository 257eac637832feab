//! The host side of the ring buffer of printed messages; `abi/src/output.rs` documents the protocol.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use ferrogrid_device::output::{ENTRY_BYTES, OutputHeader, piece_bytes};

use super::super::device::CudaDevice;
use super::{Mapped, addresses};
use crate::error::Result;
use crate::sync::lock;

/// The ring of a device, in memory that its threads write to.
pub(super) struct PrintBuffer {
    memory: Mapped,
    capacity: u64,
    progress: Mutex<Progress>,
}

/// How far the host has read.
#[derive(Default)]
struct Progress {
    /// Everything before it has been read or lost.
    start: u64,
    /// The bytes of all pieces read so far.
    read: u64,
    /// The lost pieces that were reported.
    lost: u64,
}

/// In place of a position: the piece has been read, though one before it has not.
const READ: u64 = u64::MAX;

impl PrintBuffer {
    /// An empty ring of `capacity` bytes, a power of two.
    pub(super) fn new(device: &CudaDevice, capacity: usize) -> Result<Self> {
        let memory = Mapped::allocate(device, size_of::<OutputHeader>() + capacity)?;
        let buffer = PrintBuffer { memory, capacity: capacity as u64, progress: Mutex::default() };
        // SAFETY: the header lies at the beginning, and no kernel knows of it yet.
        unsafe { (*buffer.header()).capacity = capacity as u64 };
        Ok(buffer)
    }

    /// Its address for device code.
    pub(super) fn address(&self) -> u64 {
        self.memory.device
    }

    fn header(&self) -> *mut OutputHeader {
        self.memory.host.cast()
    }

    /// A word of the header, which the device may change meanwhile.
    fn word(&self, word: impl FnOnce(*mut OutputHeader) -> *mut u64) -> &AtomicU64 {
        // SAFETY: an aligned word of memory that is never freed; both sides reach it as a whole.
        unsafe { AtomicU64::from_ptr(word(self.header())) }
    }

    fn reserved(&self) -> u64 {
        // SAFETY: the address of a field of the live header.
        self.word(|header| unsafe { &raw mut (*header).reserved }).load(Ordering::Acquire)
    }

    fn lost_bytes(&self) -> u64 {
        // SAFETY: as above.
        self.word(|header| unsafe { &raw mut (*header).lost_bytes }).load(Ordering::Acquire)
    }

    fn lost_pieces(&self) -> u64 {
        // SAFETY: as above.
        self.word(|header| unsafe { &raw mut (*header).lost_pieces }).load(Ordering::Acquire)
    }

    fn start(&self) -> &AtomicU64 {
        // SAFETY: as above.
        self.word(|header| unsafe { &raw mut (*header).start })
    }

    /// The word at `position` of the ring, a multiple of 8.
    fn at(&self, position: u64) -> &AtomicU64 {
        let offset = (position & (self.capacity - 1)) as usize;
        // SAFETY: the ring follows the header, the offset is below its length and a multiple of 8, and
        // both sides reach the word as a whole.
        unsafe {
            let ring = self.memory.host.add(size_of::<OutputHeader>());
            AtomicU64::from_ptr(ring.add(offset).cast())
        }
    }

    /// Whether there may be something to read.
    #[inline]
    pub(super) fn has_text(&self) -> bool {
        self.reserved() != self.start().load(Ordering::Relaxed) || self.lost_pieces() != 0
    }

    /// What has been printed since the last call, in order, and how much was lost.
    #[cold]
    pub(super) fn read(&self, device: &CudaDevice) -> Vec<String> {
        let mut progress = lock(&self.progress);
        let mut texts: Vec<String> =
            self.pieces(&mut progress).iter().map(|words| addresses::message(device, words)).collect();
        let lost = self.lost_pieces();
        if lost != progress.lost {
            texts.push(format!(
                "[{} printed texts were lost: the buffer of {} bytes was full]\n",
                lost - progress.lost,
                self.capacity
            ));
            progress.lost = lost;
        }
        texts
    }

    /// The words of all pieces that are complete. A thread that is still writing leaves a gap; what comes
    /// after it is found all the same, since pieces begin at multiples of 16 and state their position.
    fn pieces(&self, progress: &mut Progress) -> Vec<Vec<u64>> {
        let mut pieces = Vec::new();
        let mut gap = None;
        let end = self.reserved().min(progress.start + self.capacity);
        let mut at = progress.start;
        while at < end {
            let stamp = self.at(at).load(Ordering::Acquire);
            let length = self.at(at + 8).load(Ordering::Relaxed);
            let bytes = piece_bytes(length).filter(|bytes| *bytes <= end - at);
            match bytes.filter(|_| stamp == at + 1 || (stamp == READ && gap.is_some())) {
                Some(bytes) => {
                    if stamp != READ {
                        pieces.push(self.words(at, length));
                        progress.read += bytes;
                        self.at(at).store(READ, Ordering::Relaxed);
                    }
                    at += bytes;
                }
                None => {
                    gap.get_or_insert(at);
                    at += ENTRY_BYTES;
                }
            }
        }
        // If all that was taken is read or lost, no thread is writing, and there is nothing to wait for.
        let lost = self.lost_bytes();
        let reserved = self.reserved();
        progress.start = if progress.read + lost == reserved { reserved } else { gap.unwrap_or(at) };
        self.start().store(progress.start, Ordering::Release);
        pieces
    }

    fn words(&self, position: u64, length: u64) -> Vec<u64> {
        let start = position + ENTRY_BYTES;
        (0..length / 8).map(|word| self.at(start + 8 * word).load(Ordering::Relaxed)).collect()
    }
}
