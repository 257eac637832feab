//! [`Temporary`]: memory for what passes from one piece of work to the next, on a stream or in a graph.
//! `scratch` is that of one recorded launch.

pub(crate) mod scratch;

use bytemuck::AnyBitPattern;
use ferrogrid_device::DeviceCopy;
use ferrogrid_device::shared::AnyBits;

use crate::error::Result;
use crate::launch::temporary::scratch::Scratch;
use crate::memory::Memory;
use crate::memory::buffer::DeviceBuffer;
use crate::stream::Stream;
use crate::view::{DeviceView, DeviceViewMut};

/// Memory for intermediate results, made by [`Stream::temporary`].
///
/// Dropping it frees it in stream order, as a [`DeviceBuffer`] does. If the stream records a graph, the graph has the
/// memory as long as it exists.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// sums[b] <- the sum of block `b`'s elements
/// #[kernel(block = 64)]
/// pub fn sums(t: Thread<1>, x: &[u32], mut sums: DisjointChunks<u32, 1>, mut scratch: Shared<Scratch<u32>>) {
///     let mine = t.grid_stride(x.len()).map(|i| x[i.get()]).sum();
///     let sum = t.block_reduce(&mut scratch, mine, |a, b| a + b);
///     sums.fill_with(&t, |_| sum);
/// }
/// # }
/// /// Works on a stream, and in the recording of a graph.
/// fn sum(stream: &Stream, x: DeviceView<u32>, sum: DeviceViewMut<u32>) -> ferrogrid::Result<()> {
///     let mut of_blocks = stream.temporary(8)?;
///     kernels::sums(stream, Grid::blocks(8), x, of_blocks.view_mut())?;
///     kernels::sums(stream, Grid::blocks(1), of_blocks.view(), sum)
/// }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let (x, mut y) = (stream.fill(2, 5000)?, stream.zeros(1)?);
/// sum(&stream, x.view(), y.view_mut())?;
/// assert_eq!(stream.download(&y)?, [10_000]);
/// # Ok(()) }
/// ```
pub struct Temporary<T> {
    owner: Owner<T>,
    len: usize,
}

/// A buffer of the stream, or in a recording memory of the graph.
enum Owner<T> {
    Buffer(DeviceBuffer<T>),
    Recorded(Scratch),
}

debug_by_methods!([T: DeviceCopy] Temporary<T> { len });

impl Stream {
    /// Memory for `len` elements, for work that is enqueued on this stream or recorded by it. Its content is arbitrary (in a
    /// graph, zero bytes at each launch).
    ///
    /// # Errors
    /// [`Error::SizeOverflow`](crate::Error::SizeOverflow), [`Error::OutOfMemory`](crate::Error::OutOfMemory), or a failure of
    /// the device.
    pub fn temporary<T: DeviceCopy + AnyBitPattern>(&self, len: usize) -> Result<Temporary<T>> {
        // SAFETY: a `T` takes any bits.
        Temporary::new(self, len, || Ok(unsafe { self.uninit(len)?.assume_init() }))
    }
}

impl<T: DeviceCopy> Temporary<T> {
    /// Arbitrary content.
    pub(crate) fn arbitrary(stream: &Stream, len: usize) -> Result<Self>
    where
        T: AnyBits,
    {
        // SAFETY: any bits are a `T`.
        Temporary::new(stream, len, || Ok(unsafe { stream.uninit(len)?.assume_init() }))
    }

    /// Zero bytes, also at each launch of a graph.
    pub(crate) fn zeros(stream: &Stream, len: usize) -> Result<Self>
    where
        T: bytemuck::Zeroable,
    {
        Temporary::new(stream, len, || stream.zeros(len))
    }

    fn new(stream: &Stream, len: usize, buffer: impl FnOnce() -> Result<DeviceBuffer<T>>) -> Result<Self> {
        let owner = match stream.inner().recording() {
            None => Owner::Buffer(buffer()?),
            Some(_) => Owner::Recorded(Scratch::zeros(stream, DeviceBuffer::<T>::bytes_of(len)?)?),
        };
        Ok(Temporary { owner, len })
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All elements.
    pub fn view(&self) -> DeviceView<'_, T> {
        match &self.owner {
            Owner::Buffer(buffer) => buffer.view(),
            Owner::Recorded(scratch) => scratch.view(self.len),
        }
    }

    /// All elements, to write.
    pub fn view_mut(&mut self) -> DeviceViewMut<'_, T> {
        match &mut self.owner {
            Owner::Buffer(buffer) => buffer.view_mut(),
            Owner::Recorded(scratch) => scratch.view_mut(self.len),
        }
    }

    pub(crate) fn memory(&self) -> &Memory {
        match &self.owner {
            Owner::Buffer(buffer) => buffer.memory(),
            Owner::Recorded(scratch) => scratch.memory(),
        }
    }
}
