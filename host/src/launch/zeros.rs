//! Zeroed memory of one launch: a buffer of its stream, or in a recording memory of the graph that a node zeroes.

use crate::backend::recording::Scratch;
use crate::error::Result;
use crate::memory::Memory;
use crate::memory::access::Access;
use crate::memory::buffer::DeviceBuffer;
use crate::order::Use;
use crate::stream::Stream;

/// Words that are 0 when the launch starts.
pub(crate) enum LaunchZeros {
    Buffer(DeviceBuffer<u64>),
    Recorded(Scratch),
}

impl LaunchZeros {
    /// # Errors
    /// If there is no memory for so many words, and in the update of a graph.
    pub(crate) fn new(words: usize, stream: &Stream) -> Result<Self> {
        match stream.inner().recording() {
            None => stream.zeros(words).map(LaunchZeros::Buffer),
            Some(_) => {
                let bytes = DeviceBuffer::<u64>::bytes_of(words)?;
                Scratch::zeros(stream, bytes).map(LaunchZeros::Recorded)
            }
        }
    }

    pub(crate) fn start<T>(&self) -> *const T {
        self.memory().pointer().cast_const().cast()
    }

    /// The use by a launch.
    pub(crate) fn access(&self) -> Access<'_> {
        Access::new(self.memory(), Use::Write)
    }

    fn memory(&self) -> &Memory {
        match self {
            LaunchZeros::Buffer(buffer) => buffer.memory(),
            LaunchZeros::Recorded(scratch) => scratch.memory(),
        }
    }
}
