//! Buffers of a graph: as arguments of launches while it is recorded or updated, and as ids afterwards.

use std::marker::PhantomData;

use derive_where::derive_where;
use ferrogrid_device::DeviceCopy;

use super::slot::Slots;
use crate::backend::recording::Lifetime;
use crate::device::Device;
use crate::error::Result;
use crate::error::graph::GraphError;
use crate::memory::Memory;
use crate::memory::kind::{parts_to_read, parts_to_write};
use crate::view::argument::pass_by_view;
use crate::view::{DeviceView, DeviceViewMut};

/// A buffer of a graph while it is recorded or updated. Launches and copies take `&buffer` and `&mut buffer`, as of a
/// [`DeviceBuffer`](crate::DeviceBuffer), whose methods it has. With a [`PinnedKey`] it is in page-locked memory of the host; with
/// an [`AllocationKey`](crate::AllocationKey) nodes of the graph allocate it, and free it when this is dropped.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let buffer = stream.upload(&[1_u32, 2, 3, 4])?;
/// let (graph, key) = stream.capture(|capture| {
///     let mut buffer = capture.keep(buffer)?;
///     assert!(buffer.len() == 4 && !buffer.is_empty());
///     let mut copy = capture.keep(stream.zeros::<u32>(4)?)?;
///     capture.copy(buffer.slice(2..)?, copy.slice_mut(..2)?)?;
///     capture.fill_into(0, &mut buffer)?; // after the copy
///     Ok(copy.key())
/// })?;
/// let mut graph = graph.instantiate()?;
/// graph.launch(&stream)?;
/// assert_eq!(stream.download(graph.view(key)?)?, [3, 4, 0, 0]);
/// # Ok(()) }
/// ```
#[derive_where(Debug; K)]
pub struct GraphBuffer<'scope, T, K = GraphKey<T>> {
    view: DeviceViewMut<'scope, T>,
    key: K,
    /// Of what a node allocates, until it is freed.
    #[derive_where(skip)]
    lifetime: Option<Lifetime>,
}

pass_by_view!(['g, K: Copy,] GraphBuffer<'g, T, K>);
parts_to_read!(['g, K: Copy,] GraphBuffer<'g, T, K>);
parts_to_write!(['g, K: Copy,] GraphBuffer<'g, T, K>);

/// Names a buffer of a graph, to look at it, or to use it in an update:
/// [`ExecutableGraph::view`](crate::ExecutableGraph::view) and
/// [`GraphUpdate::buffer`](crate::GraphUpdate::buffer).
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let (graph, sums) = stream.capture(|capture| Ok(capture.keep(stream.zeros::<f32>(8)?)?.key()))?;
/// assert!(sums.len() == 8 && !sums.is_empty());
/// let mut graph = graph.instantiate()?;
/// stream.fill_into(1.0, graph.view_mut(sums)?)?; // between launches
/// assert_eq!(stream.download(graph.view(sums)?)?, [1.0; 8]);
///
/// let (other, _) = stream.capture(|_| Ok(()))?;
/// assert!(other.instantiate()?.view(sums).is_err()); // it names a buffer of one graph
/// # Ok(()) }
/// ```
#[derive_where(Clone, Copy, Debug)]
pub struct GraphKey<T> {
    graph: u64,
    slot: usize,
    len: usize,
    elements: PhantomData<fn() -> T>,
}

/// Names page-locked memory of a graph, for the host to read and write between launches:
/// [`ExecutableGraph::pinned`](crate::ExecutableGraph::pinned) and
/// [`ExecutableGraph::pinned_mut`](crate::ExecutableGraph::pinned_mut). [`Capture::keep_pinned`](crate::Capture::keep_pinned)
/// makes it.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let frame = stream.device().pinned_copy(&[1_u8, 2, 3])?;
/// let (graph, frame) = stream.capture(|capture| Ok(capture.keep_pinned(frame)?.key()))?;
/// assert!(frame.len() == 3 && !frame.is_empty());
/// assert_eq!(graph.instantiate()?.pinned(frame)?, [1, 2, 3]);
/// # Ok(()) }
/// ```
#[derive_where(Clone, Copy, Debug)]
pub struct PinnedKey<T>(GraphKey<T>);

/// What keys of buffers of a special kind share: all but the kind is in the `GraphKey` inside.
macro_rules! special_key {
    ($Key:ident) => {
        impl<T: ferrogrid_device::DeviceCopy> $Key<T> {
            pub(crate) fn new(key: $crate::GraphKey<T>) -> Self {
                $Key(key)
            }

            pub(crate) fn buffer(self) -> $crate::GraphKey<T> {
                self.0
            }

            /// The number of elements.
            pub fn len(self) -> usize {
                self.0.len()
            }

            /// Whether there are no elements.
            pub fn is_empty(self) -> bool {
                self.0.is_empty()
            }
        }
    };
}

pub(super) use special_key;

special_key!(PinnedKey);

impl<T: DeviceCopy> GraphKey<T> {
    pub(super) fn new(graph: u64, slot: usize, len: usize) -> Self {
        GraphKey { graph, slot, len, elements: PhantomData }
    }

    /// The same buffer with elements of another type, of the same size.
    pub(super) fn with_elements<U: DeviceCopy>(self) -> GraphKey<U> {
        GraphKey::new(self.graph, self.slot, self.len)
    }

    /// The buffer's number, if it is of graph `id`.
    pub(super) fn of(self, id: u64) -> Result<usize> {
        if self.graph == id { Ok(self.slot) } else { Err(GraphError::OtherGraph { what: "buffer" }.into()) }
    }

    /// The buffer's number among `slots`, if it is of a child of the graph that has them.
    pub(super) fn of_child(self, slots: &Slots<'_>) -> Result<usize> {
        let number = slots.of_child(self.graph, self.slot);
        number.ok_or_else(|| GraphError::OtherGraph { what: "buffer" }.into())
    }

    /// The buffer's number among `slots`, which are those of graph `id`.
    pub(super) fn among(self, id: u64, slots: &Slots<'_>) -> Result<usize> {
        self.of(id).or_else(|_| self.of_child(slots))
    }

    /// The elements in `memory`, which is that of the buffer with this key, to read.
    pub(super) fn view(self, memory: &Memory) -> DeviceView<'_, T> {
        DeviceView::whole(start_of(memory), self.len, memory)
    }

    /// The elements in `memory`, which is that of the buffer with this key, to write. Nothing else may use
    /// them as long as the view is there.
    pub(super) fn view_mut(self, memory: &Memory) -> DeviceViewMut<'_, T> {
        DeviceViewMut::whole(start_of(memory), self.len, memory)
    }

    /// The number of elements.
    pub fn len(self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }
}

/// The first element, or a well-aligned address that is not null if nothing was allocated.
fn start_of<T>(memory: &Memory) -> *mut T {
    memory.pointer().cast()
}

impl<'scope, T: DeviceCopy, K: Copy> GraphBuffer<'scope, T, K> {
    pub(super) fn new(view: DeviceViewMut<'scope, T>, key: K) -> Self {
        GraphBuffer { view, key, lifetime: None }
    }

    /// A buffer that a node allocates, with what frees it.
    pub(super) fn with_lifetime(self, lifetime: Option<Lifetime>) -> Self {
        GraphBuffer { lifetime, ..self }
    }

    pub(super) fn into_parts(self) -> (DeviceViewMut<'scope, T>, K, Option<Lifetime>) {
        (self.view, self.key, self.lifetime)
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.view.len()
    }

    /// All elements, to read.
    pub fn view(&self) -> DeviceView<'_, T> {
        self.view.view()
    }

    /// All elements, to write.
    pub fn view_mut(&mut self) -> DeviceViewMut<'_, T> {
        self.view.reborrow()
    }

    /// The device whose memory this is.
    pub fn device(&self) -> &Device {
        self.view.device()
    }

    /// The buffer's name, which stays valid after the recording.
    pub fn key(&self) -> K {
        self.key
    }
}
