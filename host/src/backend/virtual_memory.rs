//! A range of addresses whose memory comes piece by piece, of either backend.

use std::sync::{Mutex, PoisonError};

use super::{DeviceBackend, cpu, cuda};
use crate::device::Device;
use crate::device::account::Charge;
use crate::error::Result;

/// Addresses that are reserved, the first of which have memory. All of it goes when this is dropped, which must be after
/// all work that uses it.
pub(crate) struct VirtualMemory {
    device: Device,
    range: Range,
    pieces: Mutex<Vec<Piece>>,
}

enum Range {
    Cuda(cuda::VirtualRange),
    Cpu(cpu::VirtualRange),
}

/// Memory that came at once, directly behind the piece before.
struct Piece {
    bytes: usize,
    _charge: Charge,
}

impl VirtualMemory {
    /// At least `bytes` of addresses, none of which have memory.
    pub(crate) fn reserve(device: &Device, bytes: usize) -> Result<Self> {
        let range = match device.backend() {
            DeviceBackend::Cuda(device) => Range::Cuda(cuda::VirtualRange::reserve(device, bytes)?),
            DeviceBackend::Cpu(device) => Range::Cpu(cpu::VirtualRange::reserve(device, bytes)?),
        };
        Ok(VirtualMemory { device: device.clone(), range, pieces: Mutex::new(Vec::new()) })
    }

    /// The first byte.
    pub(crate) fn start(&self) -> *mut u8 {
        match &self.range {
            Range::Cuda(range) => range.start(),
            Range::Cpu(range) => range.start(),
        }
    }

    /// Gives memory to the first `needed` bytes, all of them reserved, and if there is enough to the first `wanted`.
    /// Returns how many have memory now.
    pub(crate) fn grow(&self, needed: usize, wanted: usize) -> Result<usize> {
        let mut pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
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
        let charge = Charge::take(&self.device, bytes)?;
        match &self.range {
            Range::Cuda(range) => range.map(used, bytes)?,
            Range::Cpu(range) => range.map(used, bytes)?,
        }
        Ok(Piece { bytes, _charge: charge })
    }

    /// Takes the memory of whole pieces behind the first `keep` bytes. Returns how many have memory still.
    ///
    /// # Safety
    /// No work uses what is behind them.
    pub(crate) unsafe fn shrink(&self, keep: usize) -> Result<usize> {
        let mut pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        let mut used: usize = pieces.iter().map(|piece| piece.bytes).sum();
        while let Some(last) = pieces.last()
            && used - last.bytes >= keep
        {
            let start = used - last.bytes;
            // SAFETY: mapped at once; the caller vouches for the uses.
            unsafe { self.unmap(start, last.bytes)? };
            pieces.pop();
            used = start;
        }
        Ok(used)
    }

    /// # Safety
    /// These bytes are a piece, which nothing uses.
    unsafe fn unmap(&self, start: usize, bytes: usize) -> Result<()> {
        match &self.range {
            // SAFETY: passed on.
            Range::Cuda(range) => unsafe { range.unmap(start, bytes) },
            // SAFETY: passed on.
            Range::Cpu(range) => unsafe { range.unmap(start, bytes) },
        }
    }

    /// `bytes`, all of them reserved, as a number of bytes that can have memory.
    fn rounded(&self, bytes: usize) -> usize {
        let granularity = match &self.range {
            Range::Cuda(range) => range.granularity(),
            Range::Cpu(range) => range.granularity(),
        };
        // What is reserved is such a number itself.
        bytes.next_multiple_of(granularity)
    }
}

impl Drop for VirtualMemory {
    fn drop(&mut self) {
        // SAFETY: whoever drops it vouches that no work uses it. What cannot be taken back stays: its addresses do, too.
        let _failed = unsafe { self.shrink(0) };
    }
}
