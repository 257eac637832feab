//! Copies and fills as nodes.

use super::RecordingStream;
use crate::backend::array::{ArrayShape, Side};
use crate::backend::recording::node::{Address, ArrayCopy, Fill, Operation};
use crate::backend::recording::refusal::host_memory;
use crate::backend::{Place, Rows};
use crate::error::Result;
use crate::error::graph::GraphError;

/// The most words in the value of a fill: each becomes a node.
const MANY_WORDS: usize = 16;

impl RecordingStream {
    /// Copies rows between buffers of the graph.
    pub(crate) fn copy_rows(
        &self,
        target: *mut u8,
        source: *const u8,
        rows: Rows,
        places: (Place, Place),
    ) -> Result<()> {
        if places != (Place::Device, Place::Device) {
            return Err(host_memory("a copy from or to the host"));
        }
        let places = self.with(|state| Ok((state.place_of(target), state.place_of(source))))?;
        let (target, source) = (Address(target), Address(source.cast_mut()));
        self.add(Operation::Copy { target, source, rows, places }).map(drop)
    }

    pub(crate) fn copy(&self, target: *mut u8, source: *const u8, bytes: usize) -> Result<()> {
        let rows = Rows { width: bytes, height: 1, source_pitch: bytes, target_pitch: bytes };
        self.copy_rows(target, source, rows, (Place::Device, Place::Device))
    }

    /// Copies a whole texture array, from or to a buffer of the graph.
    pub(crate) fn copy_array(&self, target: Side, source: Side, shape: &ArrayShape) -> Result<()> {
        self.with(|state| {
            let placed = |side| match side {
                Side::Device(start) if state.place_of(start) == Place::Host => Side::Host(start),
                side => side,
            };
            let copy = ArrayCopy { target: placed(target), source: placed(source), shape: *shape };
            Ok(state.add(self.line, Operation::CopyArray(copy)))
        })
        .map(drop)
    }

    /// Writes `pattern` (not empty) `count` times.
    pub(crate) fn fill(&self, target: *mut u8, pattern: &[u8], count: usize) -> Result<()> {
        let bytes = pattern.len();
        let one = |target, word: &[u8], width, height| Fill {
            target: Address(target),
            word: std::array::from_fn(|index| word.get(index).copied().unwrap_or(0)),
            bytes: word.len(),
            width,
            height,
            pitch: bytes,
        };
        if pattern.iter().all(|byte| *byte == pattern[0]) {
            return self.add(Operation::Fill(one(target, &pattern[..1], bytes * count, 1))).map(drop);
        }
        let fits = |word: &usize| bytes.is_multiple_of(*word) && target.addr().is_multiple_of(*word);
        let word = [4, 2].into_iter().find(fits).unwrap_or(1);
        if word == bytes {
            return self.add(Operation::Fill(one(target, pattern, count, 1))).map(drop);
        }
        if bytes / word > MANY_WORDS {
            return Err(GraphError::LargeFill { bytes, limit: MANY_WORDS * word }.into());
        }
        for (index, part) in pattern.chunks_exact(word).enumerate() {
            let place = target.wrapping_add(index * word);
            self.add_like_last(index > 0, Operation::Fill(one(place, part, 1, count)))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::backend::Place;
    use crate::backend::recording::Recorder;
    use crate::device::Device;
    use crate::memory::{Memory, Origin};

    /// The handle of an array may be any number: as an address it would lie just before the memory of the host.
    #[test]
    fn no_address_is_in_an_array() {
        let stream = Device::cpu().new_stream().unwrap();
        let host = stream.device().pinned_zeros::<u32>(4).unwrap().into_memory(stream.inner()).unwrap();
        let handle = host.pointer().wrapping_sub(8);
        // SAFETY: it stands for the handle of an array, which nothing uses.
        let array = unsafe { Memory::owned(stream.inner(), Origin::Array, handle, 1 << 20, Box::new(())) };
        let recorder = Recorder::new(stream.device().backend());
        recorder.admit(&array, true).unwrap();
        recorder.admit(&host, true).unwrap();
        let place = recorder.with(0, |state| Ok(state.place_of(host.pointer()))).unwrap();
        assert_eq!(place, Place::Host);
    }
}
