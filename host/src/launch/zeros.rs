//! Zeroed memory of one launch: a buffer in the order of its stream, or in a recording memory of the graph, which a node
//! zeroes at each launch.

use crate::backend::recording::Scratch;
use crate::error::Result;
use crate::memory::Memory;
use crate::memory::buffer::DeviceBuffer;
use crate::order::Use;
use crate::order::access::Access;
use crate::stream::Stream;

/// Words of value 0 when a stream comes to what is launched next.
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

    /// What a launch with them uses.
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
