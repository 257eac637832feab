//! Page-locked memory of a graph as `In`, `Out` and `InOut` of a recorded launch.

use std::marker::PhantomData;

use bytemuck::Zeroable;
use derive_where::derive_where;
use ferrogrid_device::DeviceCopy;
use ferrogrid_device::atomic::AtomicForm;

use crate::error::Result;
use crate::error::graph::GraphError;
use crate::graph::buffer::{GraphBuffer, PinnedKey};
use crate::launch::temporary::scratch::Scratch;
use crate::memory::access::Access;
use crate::order::Use;
use crate::stream::Stream;
use crate::view::argument::{
    DeviceInput, LaunchInput, LaunchOutput, Staged, StagedInput, StagedOutput, pass_as_atomics,
    pass_to_other_kernels, sealed::Sealed,
};
use crate::view::atomic::DeviceAtomicView;
use crate::view::{DeviceView, DeviceViewMut};

/// Page-locked memory of a graph as the input of one kernel, like [`In`](crate::In) of an immediate launch. A node
/// copies it to the device before the kernel, at each launch of the graph. Made by [`GraphBuffer::as_in`].
#[derive_where(Debug)]
pub struct GraphIn<'a, T, const R: usize = 1> {
    source: DeviceView<'a, T>,
    extent: [usize; R],
}

/// Page-locked memory of a graph as the output of one kernel, like [`Out`](crate::Out) and [`InOut`](crate::InOut) of
/// an immediate launch. A node copies all elements back after the kernel, at each launch of the graph. Made by
/// [`GraphBuffer::as_out`] and [`GraphBuffer::as_in_out`].
#[derive_where(Debug)]
pub struct GraphOut<'a, T, const R: usize = 1> {
    target: DeviceViewMut<'a, T>,
    /// Whether the kernel reads the elements; otherwise it reads zeros.
    is_read: bool,
    extent: [usize; R],
}

impl<T: DeviceCopy> GraphBuffer<'_, T, PinnedKey<T>> {
    /// For a kernel's `&[T]`: a node copies the elements to the device before the kernel. With `&host` the kernel reads
    /// them in place instead, over the bus.
    pub fn as_in(&self) -> GraphIn<'_, T> {
        GraphIn { extent: [self.len()], source: self.view() }
    }

    /// For a kernel's `DisjointSlice<T>` or `&[DeviceAtomic<T>]`: the kernel starts with zeros, and a node copies all
    /// elements back after it. The host reads them by [`ExecutableGraph::pinned`](crate::ExecutableGraph::pinned).
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// y <- x^2
    /// #[kernel]
    /// pub fn square(t: Thread<1>, x: &[u32], mut y: DisjointSlice<u32>) {
    ///     let i = t.index();
    ///     if let Some(y) = y.get_mut(i) {
    ///         *y = x[i.get()] * x[i.get()];
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let (x, y) = (stream.device().pinned_zeros::<u32>(3)?, stream.device().pinned_zeros::<u32>(3)?);
    /// let (graph, (x, y)) = stream.capture(|capture| {
    ///     let (x, mut y) = (capture.keep_pinned(x)?, capture.keep_pinned(y)?);
    ///     kernels::square(capture, Grid::cover(3), x.as_in(), y.as_out())?; // an upload, a kernel, a download
    ///     Ok((x.key(), y.key()))
    /// })?;
    /// let mut graph = graph.instantiate()?;
    /// for start in [1, 5] {
    ///     graph.pinned_mut(x)?.copy_from_slice(&[start, start + 1, start + 2]);
    ///     graph.launch(&stream)?;
    ///     assert_eq!(graph.pinned(y)?, [start, start + 1, start + 2].map(|x| x * x));
    /// }
    /// # Ok(()) }
    /// ```
    pub fn as_out(&mut self) -> GraphOut<'_, T>
    where
        T: Zeroable,
    {
        GraphOut { extent: [self.len()], target: self.view_mut(), is_read: false }
    }

    /// As [`GraphBuffer::as_out`], but the kernel starts with the elements, which a node copies before it.
    pub fn as_in_out(&mut self) -> GraphOut<'_, T> {
        GraphOut { extent: [self.len()], target: self.view_mut(), is_read: true }
    }
}

impl<'a, T: DeviceCopy> GraphIn<'a, T> {
    /// The first `width * height` elements as `height` rows of `width`: for a kernel's `Plane<T>`.
    ///
    /// # Errors
    /// [`Error::ViewTooLarge`](crate::Error::ViewTooLarge) if that is more than the memory has.
    pub fn into_2d(self, width: usize, height: usize) -> Result<GraphIn<'a, T, 2>> {
        self.into_nd([width, height])
    }

    /// The first `width * height * depth` elements as `depth` layers of `height` rows of `width`: for a kernel's `Volume<T>`.
    ///
    /// # Errors
    /// [`Error::VolumeTooLarge`](crate::Error::VolumeTooLarge) if that is more than the memory has.
    pub fn into_3d(self, width: usize, height: usize, depth: usize) -> Result<GraphIn<'a, T, 3>> {
        self.into_nd([width, height, depth])
    }

    /// The first elements in a shape of one to five axes, `[width, height, depth, ..]`: for a kernel's `BoxMap`.
    ///
    /// # Errors
    /// As [`DeviceView::into_nd`](crate::DeviceView::into_nd).
    pub fn into_nd<const R: usize>(self, extent: [usize; R]) -> Result<GraphIn<'a, T, R>> {
        self.source.into_nd(extent)?;
        Ok(GraphIn { source: self.source, extent })
    }
}

impl<'a, T: DeviceCopy> GraphOut<'a, T> {
    /// As [`GraphIn::into_2d`], for a kernel of rank 2 to write.
    ///
    /// # Errors
    /// As [`GraphIn::into_2d`].
    pub fn into_2d(self, width: usize, height: usize) -> Result<GraphOut<'a, T, 2>> {
        self.into_nd([width, height])
    }

    /// As [`GraphIn::into_3d`], for a kernel of rank 3 to write.
    ///
    /// # Errors
    /// As [`GraphIn::into_3d`].
    pub fn into_3d(self, width: usize, height: usize, depth: usize) -> Result<GraphOut<'a, T, 3>> {
        self.into_nd([width, height, depth])
    }

    /// As [`GraphIn::into_nd`], for a kernel's `BoxMapMut`.
    ///
    /// # Errors
    /// As [`GraphIn::into_nd`].
    pub fn into_nd<const R: usize>(self, extent: [usize; R]) -> Result<GraphOut<'a, T, R>> {
        self.target.view().into_nd(extent)?;
        Ok(GraphOut { target: self.target, is_read: self.is_read, extent })
    }
}

/// The device's copy of a [`GraphIn`].
#[doc(hidden)]
pub struct StagedGraphIn<T, const R: usize> {
    copy: Scratch,
    len: usize,
    extent: [usize; R],
    elements: PhantomData<T>,
}

/// The device's copy of a [`GraphOut`].
#[doc(hidden)]
pub struct StagedGraphOut<'a, T, const R: usize> {
    copy: Scratch,
    target: DeviceViewMut<'a, T>,
    extent: [usize; R],
}

/// Copies of memory of a graph are nodes, so the stream must record.
fn check_recording(stream: &Stream) -> Result<()> {
    match stream.inner().recording() {
        Some(_) => Ok(()),
        None => Err(GraphError::OtherGraph { what: "buffer" }.into()),
    }
}

impl<T: DeviceCopy, const R: usize> Sealed for StagedGraphIn<T, R> {}
impl<T: DeviceCopy, const R: usize> Sealed for StagedGraphOut<'_, T, R> {}

impl<T: DeviceCopy, const R: usize> Staged for StagedGraphIn<T, R> {
    fn access(&self) -> Access<'_> {
        Access::new(self.copy.memory(), Use::Read)
    }
}

impl<T: DeviceCopy, const R: usize> Staged for StagedGraphOut<'_, T, R> {
    fn access(&self) -> Access<'_> {
        Access::new(self.copy.memory(), Use::Write)
    }

    fn finish(self, stream: &Stream) -> Result<()> {
        stream.copy(self.copy.view(self.target.len()), self.target)
    }
}

impl<T: DeviceCopy, const R: usize> StagedInput<T, R> for StagedGraphIn<T, R> {
    fn input(&self) -> DeviceView<'_, T, R> {
        self.copy.view(self.len).shaped(self.extent)
    }
}

impl<T: DeviceCopy, const R: usize> StagedOutput<T, R> for StagedGraphOut<'_, T, R> {
    fn output(&mut self) -> DeviceViewMut<'_, T, R> {
        self.copy.view_mut(self.target.len()).shaped(self.extent)
    }
}

/// For a kernel that changes its elements atomically.
impl<A: AtomicForm> StagedInput<A> for StagedGraphOut<'_, A::Value, 1> {
    fn input(&self) -> DeviceView<'_, A> {
        let (memory, len) = (self.copy.memory(), self.target.len());
        DeviceAtomicView::new(memory.pointer().cast(), len, memory).into_input()
    }
}

impl<'a, T: DeviceCopy, const R: usize> LaunchInput<'a, T, R> for GraphIn<'a, T, R> {
    type Staged = StagedGraphIn<T, R>;

    fn stage(self, stream: &Stream) -> Result<Self::Staged> {
        check_recording(stream)?;
        let (len, extent) = (self.source.len(), self.extent);
        Ok(StagedGraphIn { copy: Scratch::copy(stream, self.source)?, len, extent, elements: PhantomData })
    }
}

impl<'a, T: DeviceCopy, const R: usize> LaunchOutput<'a, T, R> for GraphOut<'a, T, R> {
    type Staged = StagedGraphOut<'a, T, R>;

    fn stage(self, stream: &Stream) -> Result<Self::Staged> {
        check_recording(stream)?;
        let copy = if self.is_read {
            Scratch::copy(stream, self.target.view())?
        } else {
            Scratch::zeros(stream, self.target.len() * size_of::<T>())?
        };
        Ok(StagedGraphOut { copy, target: self.target, extent: self.extent })
    }
}

pass_to_other_kernels! { read: [T: DeviceCopy, const R: usize] GraphIn<'a, T, R>, R; }
pass_to_other_kernels! { write: [T: DeviceCopy, const R: usize] GraphOut<'a, T, R>, R; }

pass_as_atomics!(GraphOut, StagedGraphOut);
