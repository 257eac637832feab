//! A range of addresses to which memory is mapped piece by piece, of either backend.

use std::sync::Mutex;

use crate::backend::{Charge, DeviceBackend, cpu, cuda};
use crate::error::Result;
use crate::sync::lock;

/// Addresses that are reserved, the first of which have memory. All of it goes when this is dropped, which must be after
/// all work that uses it.
pub(crate) struct VirtualMemory {
    device: DeviceBackend,
    range: Box<dyn BackendRange>,
    pieces: Mutex<Vec<Piece>>,
}

/// Addresses that are reserved on a device.
pub(crate) trait BackendRange: Send + Sync {
    /// The first byte.
    fn start(&self) -> *mut u8;

    /// What sizes of memory are multiples of.
    fn granularity(&self) -> usize;

    /// Maps new memory to the `bytes` from `start` on: reserved, without memory, multiples of the granularity.
    fn map(&self, start: usize, bytes: usize) -> Result<()>;

    /// # Safety
    /// These bytes were given to `map` together, and no work uses them.
    unsafe fn unmap(&self, start: usize, bytes: usize) -> Result<()>;
}

/// Memory that came at once, directly behind the piece before.
struct Piece {
    bytes: usize,
    _charge: Charge,
}

impl VirtualMemory {
    /// At least `bytes` of addresses, none of which have memory.
    pub(crate) fn reserve(device: DeviceBackend, bytes: usize) -> Result<Self> {
        let range: Box<dyn BackendRange> = match device {
            DeviceBackend::Cuda(device) => Box::new(cuda::VirtualRange::reserve(device, bytes)?),
            DeviceBackend::Cpu(device) => Box::new(cpu::VirtualRange::reserve(device, bytes)?),
        };
        Ok(VirtualMemory { device, range, pieces: Mutex::new(Vec::new()) })
    }

    /// The first byte.
    pub(crate) fn start(&self) -> *mut u8 {
        self.range.start()
    }

    /// Gives memory to the first `needed` bytes, all of them reserved, and if there is enough to the first `wanted`.
    /// Returns how many have memory now.
    pub(crate) fn grow(&self, needed: usize, wanted: usize) -> Result<usize> {
        let mut pieces = lock(&self.pieces);
        let used: usize = pieces.iter().map(|piece| piece.bytes).sum();
        if needed <= used {
            return Ok(used);
        }
        let piece = match self.add(used, self.rounded(wanted)) {
            Err(_) if self.rounded(needed) < self.rounded(wanted) => self.add(used, self.rounded(needed))?,
            piece => piece?,
        };
        let used = used + piece.bytes;
        pieces.push(piece);
        Ok(used)
    }

    /// Memory for the bytes from `used` to `end`.
    fn add(&self, used: usize, end: usize) -> Result<Piece> {
        let bytes = end - used;
        let charge = Charge::take(self.device, bytes)?;
        self.range.map(used, bytes)?;
        Ok(Piece { bytes, _charge: charge })
    }

    /// Takes the memory of whole pieces behind the first `keep` bytes. Returns how many have memory still.
    ///
    /// # Safety
    /// No work uses what is behind them.
    pub(crate) unsafe fn shrink(&self, keep: usize) -> Result<usize> {
        let mut pieces = lock(&self.pieces);
        let mut used: usize = pieces.iter().map(|piece| piece.bytes).sum();
        while let Some(last) = pieces.last()
            && used - last.bytes >= keep
        {
            let start = used - last.bytes;
            // SAFETY: mapped at once; the caller vouches for the uses.
            unsafe { self.range.unmap(start, last.bytes)? };
            pieces.pop();
            used = start;
        }
        Ok(used)
    }

    /// `bytes`, all of them reserved, as a number of bytes that can have memory.
    fn rounded(&self, bytes: usize) -> usize {
        // What is reserved is such a number itself.
        bytes.next_multiple_of(self.range.granularity())
    }
}

impl Drop for VirtualMemory {
    fn drop(&mut self) {
        // SAFETY: the owner vouches that no work uses it. What cannot be unmapped stays, and so do its addresses.
        let _failed = unsafe { self.shrink(0) };
    }
}
