//! Memory that nodes of a graph allocate and free; it exists only while the graph runs.

use std::mem::MaybeUninit;

use bytemuck::Zeroable;
use derive_where::derive_where;
use ferrogrid_device::DeviceCopy;

use super::{Capture, recording};
use crate::backend::operation::{Allocation, Operation};
use crate::backend::recording::RecordingStream;
use crate::backend::{Charge, Contents};
use crate::error::Result;
use crate::graph::GraphNode;
use crate::graph::buffer::{GraphBuffer, GraphKey, special_key};
use crate::memory::buffer::DeviceBuffer;

/// Names the buffer of an allocation node, for use in an update:
/// [`GraphUpdate::allocation`](crate::GraphUpdate::allocation). Nothing else can be done with it: outside the graph that memory
/// is not there. [`Capture::zeros`](crate::Capture::zeros) makes it.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// x <- x + step
/// #[kernel]
/// pub fn add(t: Thread<1>, step: u32, mut x: DisjointSlice<u32>) {
///     if let Some(x) = x.get_mut(t.index()) {
///         *x += step;
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let mut y = stream.zeros::<u32>(4)?;
/// let (graph, (add, sums)) = stream.capture(|capture| {
///     let (mut sums, mut y) = (capture.zeros::<u32>(4)?, capture.write(&mut y)?);
///     assert!(sums.key().len() == 4 && !sums.key().is_empty());
///     let add = capture.node(&[], |stream| kernels::add(stream, Grid::cover(4), 1, &mut sums))?;
///     capture.copy(&sums, &mut y)?;
///     Ok((add, sums.key()))
/// })?;
/// let mut graph = graph.instantiate()?;
/// graph.update_kernel(add, |update| {
///     kernels::add(update, Grid::cover(4), 10, &mut update.allocation(sums)?)
/// })?;
/// graph.launch(&stream)?;
/// drop(graph);
/// assert_eq!(stream.download(&y)?, [10; 4]);
/// # Ok(()) }
/// ```
#[derive_where(Clone, Copy, Debug)]
pub struct AllocationKey<T>(GraphKey<T>);

impl<'scope, 'b> Capture<'scope, 'b> {
    /// Adds a node that allocates a buffer of `len` elements at each launch, whose bytes are all 0
    /// (`cuGraphAddMemAllocNode`, `cuGraphAddMemsetNode`). When the buffer is dropped, a node is added that frees it
    /// (`cuGraphAddMemFreeNode`), after all nodes that use it; what is left at the end of the recording is freed at the
    /// end of the graph. Both nodes are in the order of this stream.
    ///
    /// So the driver can use the same memory for buffers that do not exist at the same time, in this graph and in others.
    /// It keeps memory for the next launch: [`Device::graph_memory`](crate::Device::graph_memory). On the CPU device memory is
    /// allocated here, and freed with the graph. The buffer counts in the limit of the device's pool
    /// ([`MemoryPool::set_limit`](crate::MemoryPool::set_limit)) as long as the graph exists.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let (x, mut y) = (stream.upload(&[1_u32, 2, 3])?, stream.zeros::<u32>(3)?);
    /// let (graph, ()) = stream.capture(|capture| {
    ///     let (x, mut y) = (capture.read(&x)?, capture.write(&mut y)?);
    ///     let mut between = capture.zeros::<u32>(3)?;
    ///     capture.copy(x.slice(..2)?, between.slice_mut(..2)?)?; // or kernels
    ///     capture.copy(&between, &mut y)?;
    ///     drop(between); // freed here
    ///     let _more = capture.zeros::<f64>(100)?; // may have the same address; freed at the end
    ///     Ok(())
    /// })?;
    /// assert_eq!(graph.len(), 6); // of which two allocate, and two free
    /// let mut graph = graph.instantiate()?;
    /// graph.launch(&stream)?;
    /// graph.launch(&stream)?;
    /// drop(graph);
    /// assert_eq!(stream.download(&y)?, [1, 2, 0]);
    /// # Ok(()) }
    /// ```
    ///
    /// Outside the recording it cannot be used:
    ///
    /// ```compile_fail
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let (graph, between) = stream.capture(|capture| capture.zeros::<u32>(3))?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::SizeOverflow`](crate::Error::SizeOverflow), [`Error::MemoryLimit`](crate::Error::MemoryLimit);
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory), which on a GPU may also come when the graph is uploaded or
    /// launched; [`GraphError::NotRecordable`](crate::GraphError::NotRecordable) in the body of a conditional node;
    /// [`Error::Unsupported`](crate::Error::Unsupported) on a GPU without pools; or a failure of the device.
    pub fn zeros<T: DeviceCopy + Zeroable + Send + 'b>(
        &'scope self,
        len: usize,
    ) -> Result<GraphBuffer<'scope, T, AllocationKey<T>>> {
        Ok(self.allocate(recording(self), len, Contents::Zeroed)?.1)
    }

    /// As [`Capture::zeros`], of uninitialised elements. [`GraphBuffer::assume_init`] makes it a buffer of `T`.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// use std::mem::MaybeUninit;
    ///
    /// let mut y = stream.zeros::<u32>(3)?;
    /// let (graph, ()) = stream.capture(|capture| {
    ///     let mut between = capture.uninit::<u32>(3)?; // no time for zeros
    ///     let values = stream.upload(&[MaybeUninit::new(7); 3])?;
    ///     capture.copy(&capture.keep(values)?, &mut between)?; // or a kernel
    ///     // SAFETY: the copy has written all elements, and what follows comes after it.
    ///     let between = unsafe { between.assume_init() };
    ///     capture.copy(&between, &mut capture.write(&mut y)?)
    /// })?;
    /// graph.instantiate()?.launch(&stream)?;
    /// assert_eq!(stream.download(&y)?, [7; 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Capture::zeros`].
    pub fn uninit<T: DeviceCopy + Send + 'b>(
        &'scope self,
        len: usize,
    ) -> Result<GraphBuffer<'scope, MaybeUninit<T>, AllocationKey<MaybeUninit<T>>>> {
        Ok(self.allocate(recording(self), len, Contents::Uninitialised)?.1)
    }

    /// As [`Capture::zeros`], after the nodes `after` and nothing else; also returns the node.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let (graph, (allocate, fill, free)) = stream.capture(|capture| {
    ///     let (allocate, mut buffer) = capture.zeros_node::<u32>(&[], 100)?;
    ///     let fill = capture.node(&[], |stream| stream.fill_into(1, &mut buffer))?;
    ///     let free = capture.free_node(&[], buffer)?;
    ///     Ok((allocate, fill, free))
    /// })?;
    /// // What uses the buffer automatically comes after the allocating node and before the freeing one.
    /// assert_eq!((graph.dependencies(fill)?, graph.dependencies(free)?), (vec![allocate], vec![fill]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Capture::zeros`] and [`Capture::node`].
    pub fn zeros_node<T: DeviceCopy + Zeroable + Send + 'b>(
        &'scope self,
        after: &[GraphNode],
        len: usize,
    ) -> Result<(GraphNode, GraphBuffer<'scope, T, AllocationKey<T>>)> {
        self.allocate(&self.line(after)?, len, Contents::Zeroed)
    }

    /// As [`Capture::uninit`], after the nodes `after` and nothing else; also returns the node.
    ///
    /// # Errors
    /// As [`Capture::zeros`] and [`Capture::node`].
    #[expect(clippy::type_complexity, reason = "what `zeros_node` gives, of uninitialised elements")]
    pub fn uninit_node<T: DeviceCopy + Send + 'b>(
        &'scope self,
        after: &[GraphNode],
        len: usize,
    ) -> Result<(GraphNode, GraphBuffer<'scope, MaybeUninit<T>, AllocationKey<MaybeUninit<T>>>)> {
        self.allocate(&self.line(after)?, len, Contents::Uninitialised)
    }

    /// Adds the node that frees `buffer` (`cuGraphAddMemFreeNode`), after the nodes `after` and all that use it. Without it
    /// that node is added when the buffer is dropped.
    ///
    /// # Errors
    /// [`GraphError::NotRecordable`](crate::GraphError::NotRecordable) in the body of a conditional node; those of
    /// [`Capture::node`]. The buffer is then freed at the end of the graph.
    pub fn free_node<T: DeviceCopy>(
        &self,
        after: &[GraphNode],
        buffer: GraphBuffer<'scope, T, AllocationKey<T>>,
    ) -> Result<GraphNode> {
        let line = self.line(after)?;
        let node = match buffer.into_parts().2 {
            Some(lifetime) => line.free(&lifetime)?,
            None => line.add(Operation::Empty)?,
        };
        Ok(self.name(node))
    }

    fn allocate<T: DeviceCopy>(
        &'scope self,
        line: &RecordingStream,
        len: usize,
        contents: Contents,
    ) -> Result<(GraphNode, GraphBuffer<'scope, T, AllocationKey<T>>)> {
        let bytes = DeviceBuffer::<T>::bytes_of(len)?;
        if bytes == 0 {
            let (memory, key) = self.keep_nothing(len)?;
            let node = self.name(line.add(Operation::Empty)?);
            return Ok((node, GraphBuffer::new(key.view_mut(memory), AllocationKey::new(key))));
        }
        let charge = Charge::of_graph(self.device().backend(), bytes)?;
        let (start, owner) = line.new_memory(bytes)?;
        let (memory, key) = self.keep_allocation(start, Box::new((owner, charge)), len)?;
        let (node, lifetime) = line.allocate(key.of(self.id())?, Allocation { start, bytes, contents })?;
        let buffer = GraphBuffer::new(key.view_mut(memory), AllocationKey::new(key));
        Ok((self.name(node), buffer.with_lifetime(Some(lifetime))))
    }
}

impl<'scope, T: DeviceCopy> GraphBuffer<'scope, MaybeUninit<T>, AllocationKey<MaybeUninit<T>>> {
    /// The same buffer, of elements that are known to be written. See [`Capture::uninit`].
    ///
    /// # Safety
    /// At each launch every element has been written, by nodes that any later use of the buffer comes after.
    pub unsafe fn assume_init(self) -> GraphBuffer<'scope, T, AllocationKey<T>> {
        let (view, key, lifetime) = self.into_parts();
        let len = key.len();
        GraphBuffer::new(view.with_elements(len), AllocationKey::new(key.buffer().with_elements()))
            .with_lifetime(lifetime)
    }
}

special_key!(AllocationKey);
