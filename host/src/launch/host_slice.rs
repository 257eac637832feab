//! Host slices as arguments: copied to and from a buffer for one launch.
//!
//! The buffer is the launch's own. Whatever happens in between, it is freed in the order of the stream, so a
//! launch that returns early, or is refused, leaves nothing behind. What comes back is waited for, so the
//! slice is not used after the launch function returns.
//!
//! A recording runs nothing, so what an [`In`] holds is copied to a buffer that the graph then owns; what would have to
//! come back is refused.

use std::marker::PhantomData;
use std::sync::Arc;

use bytemuck::Zeroable;
use ferrogrid_device::DeviceCopy;
use ferrogrid_device::atomic::AtomicForm;

use crate::backend::recording::refusal::not_recordable;
use crate::error::Result;
use crate::memory::Memory;
use crate::memory::access::Access;
use crate::memory::buffer::DeviceBuffer;
use crate::order::Use;
use crate::stream::Stream;
use crate::view::argument::{
    DeviceInput, LaunchInput, LaunchOutput, Staged, StagedInput, StagedOutput, pass_as_atomics,
    pass_to_other_kernels, sealed::Sealed,
};
use crate::view::atomic::DeviceAtomicView;
use crate::view::{DeviceView, DeviceViewMut, check_extent};

/// A slice of the host, to be read by one launch (PyCUDA's `In`): for a kernel's `&[T]`, or with [`In::into_2d`]
/// for a `Plane<T>`.
///
/// It is copied to a buffer of the launch's own before the launch, which waits for the copy but not for the
/// kernel. Where several launches read the same data, [`Stream::upload`] it once instead.
///
/// While a [graph](crate::Graph) is recorded, the graph gets a copy of the slice as it is then, and each launch of the
/// graph reads that copy.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// y <- a*x + y
/// #[kernel]
/// pub fn saxpy(t: Thread<1>, a: f32, x: &[f32], mut y: DisjointSlice<f32>) {
///     let i = t.index();
///     if let Some(y) = y.get_mut(i) {
///         *y += a * x[i.get()];
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::{In, InOut};
///
/// let x = [1.0, 2.0, 3.0];
/// let mut y = vec![10.0; 3];
/// kernels::saxpy(&stream, Grid::cover(3), 2.0, In(&x), InOut(&mut y))?; // no buffer, no copy by hand
/// assert_eq!(y, [12.0, 14.0, 16.0]);
/// # Ok(()) }
/// ```
///
/// With [`In::into_2d`], for a kernel that reads a `Plane<T>`:
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// The sums of the rows of a plane.
/// #[kernel]
/// pub fn sums(t: Thread<1>, x: Plane<u32>, mut y: DisjointSlice<u32>) {
///     let i = t.index();
///     if let Some(y) = y.get_mut(i) {
///         *y = (0..x.width()).map(|column| x[i.get()][column]).sum();
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::{In, Out};
///
/// let mut y = [0; 2];
/// kernels::sums(&stream, Grid::cover(2), In(&[1, 2, 3, 4, 5, 6]).into_2d(3, 2), Out(&mut y))?;
/// assert_eq!(y, [6, 15]);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct In<'a, T>(pub &'a [T]);

/// A slice of the host, to be written by one launch (PyCUDA's `Out`): for a kernel's `DisjointSlice<T>`, or
/// `&[DeviceAtomic<T>]`.
///
/// The launch waits for the kernel, and then copies *all* elements back. The kernel finds zeros, so elements
/// that it does not write are 0 afterwards, never what the memory held before; [`InOut`] lets them keep their
/// values. If the launch returns an error, the slice keeps its contents, or has those that the kernel left.
///
/// For a kernel of rank 2 or 3 see [`Out::into_2d`] and [`Out::into_3d`]. A recording refuses it
/// ([`GraphError::NotRecordable`](crate::GraphError::NotRecordable)): launches of the graph would write the slice long
/// after. There page-locked memory of [`Capture::keep_pinned`](crate::Capture::keep_pinned) takes its place:
/// [`host.as_out()`](crate::GraphBuffer::as_out).
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// y <- i^2
/// #[kernel]
/// pub fn squares(t: Thread<1>, mut y: DisjointSlice<u32>) {
///     let i = t.index();
///     if let Some(y) = y.get_mut(i) {
///         *y = (i.get() * i.get()) as u32;
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::Out;
///
/// let mut y = [0; 5];
/// kernels::squares(&stream, Grid::cover(5), Out(&mut y))?;
/// assert_eq!(y, [0, 1, 4, 9, 16]);
/// # Ok(()) }
/// ```
///
/// In rank 3 and 2:
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// y <- the distance from the corner, counted in steps along the axes.
/// #[kernel]
/// pub fn steps(t: Thread<3>, mut y: DisjointSlice<u32, 3>) {
///     let i = t.index();
///     if let Some(y) = y.get_mut(i) {
///         *y = i.position().iter().sum::<usize>() as u32;
///     }
/// }
///
/// /// The same in a plane.
/// #[kernel]
/// pub fn steps_2d(t: Thread<2>, mut y: DisjointSlice<u32, 2>) {
///     let i = t.index();
///     if let Some(y) = y.get_mut(i) {
///         *y = i.position().iter().sum::<usize>() as u32;
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::Out;
///
/// let mut y = [0; 8];
/// kernels::steps(&stream, Grid::cover([2, 2, 2]), Out(&mut y).into_3d(2, 2, 2))?;
/// assert_eq!(y, [0, 1, 1, 2, 1, 2, 2, 3]);
/// kernels::steps_2d(&stream, Grid::cover([4, 2]), Out(&mut y).into_2d(4, 2))?;
/// assert_eq!(y, [0, 1, 2, 3, 1, 2, 3, 4]);
/// let refused = kernels::steps_2d(&stream, Grid::cover([4, 4]), Out(&mut y).into_2d(4, 4));
/// assert!(matches!(refused, Err(Error::ViewTooLarge { length: 8, .. }))); // 16 elements of 8
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Out<'a, T>(pub &'a mut [T]);

/// A slice of the host, to be read and written by one launch (PyCUDA's `InOut`): for a kernel's
/// `DisjointSlice<T>`, or `&[DeviceAtomic<T>]`.
///
/// It is copied to a buffer of the launch's own; the launch waits for the kernel, and then copies all elements
/// back. If the launch returns an error, the slice keeps its contents, or has those that the kernel left.
///
/// For a kernel of rank 2 or 3 see [`InOut::into_2d`] and [`InOut::into_3d`]. A recording refuses it, as [`Out`].
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// Multiplies the elements of a plane.
/// #[kernel]
/// pub fn scale(t: Thread<2>, factor: f32, mut y: DisjointSlice<f32, 2>) {
///     if let Some(y) = y.get_mut(t.index()) {
///         *y *= factor;
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::InOut;
///
/// let mut y = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
/// kernels::scale(&stream, Grid::cover([3, 2]), 10.0, InOut(&mut y).into_2d(3, 2))?;
/// assert_eq!(y, [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]);
/// # Ok(()) }
/// ```
///
/// In rank 3:
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// Adds to each element the number of its layer.
/// #[kernel]
/// pub fn add_layer(t: Thread<3>, mut y: DisjointSlice<u32, 3>) {
///     let i = t.index();
///     if let Some(y) = y.get_mut(i) {
///         *y += i.z() as u32;
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::InOut;
///
/// let mut y = [10, 20, 30, 40, 50, 60]; // 3 layers of one row of two
/// kernels::add_layer(&stream, Grid::cover([2, 1, 3]), InOut(&mut y).into_3d(2, 1, 3))?;
/// assert_eq!(y, [10, 20, 31, 41, 52, 62]);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct InOut<'a, T>(pub &'a mut [T]);

/// An [`In`], [`Out`] or [`InOut`] as the place of rows or layers, for a kernel that reads a `Plane<T>` or writes
/// a `DisjointSlice<T, R>`.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// y <- the transpose of x
/// #[kernel]
/// pub fn transpose(t: Thread<2>, x: Plane<u32>, mut y: DisjointSlice<u32, 2>) {
///     let i = t.index();
///     if let Some(y) = y.get_mut(i) {
///         *y = x[i.x()][i.y()];
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::{In, Out};
///
/// let mut y = [0; 6];
/// let x = In(&[1, 2, 3, 4, 5, 6]).into_2d(3, 2); // 2 rows of 3
/// kernels::transpose(&stream, Grid::cover([2, 3]), x, Out(&mut y).into_2d(2, 3))?;
/// assert_eq!(y, [1, 4, 2, 5, 3, 6]);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Shaped<A, const R: usize> {
    slice: A,
    extent: [usize; R],
}

#[cfg(feature = "ndarray")]
impl<A, const R: usize> Shaped<A, R> {
    /// `slice` with the extent of an array, x first.
    pub(crate) fn new(slice: A, extent: [usize; R]) -> Self {
        Shaped { slice, extent }
    }
}

macro_rules! shapes {
    ($slice:ident) => {
        impl<'a, T> $slice<'a, T> {
            /// The first `width * height` elements as `height` rows of `width`. The launch is refused
            /// ([`Error::ViewTooLarge`](crate::Error::ViewTooLarge)) if there are fewer.
            pub fn into_2d(self, width: usize, height: usize) -> Shaped<Self, 2> {
                Shaped { slice: self, extent: [width, height] }
            }

            /// The first `width * height * depth` elements as `depth` layers of `height` rows of `width`. The
            /// launch is refused ([`Error::VolumeTooLarge`](crate::Error::VolumeTooLarge)) if there are fewer.
            pub fn into_3d(self, width: usize, height: usize, depth: usize) -> Shaped<Self, 3> {
                Shaped { slice: self, extent: [width, height, depth] }
            }

            /// The first elements in a shape of one to five axes, `[width, height, depth, ..]`. The launch is refused as
            /// [`DeviceView::into_nd`](crate::DeviceView::into_nd) if there are fewer.
            pub fn into_nd<const R: usize>(self, extent: [usize; R]) -> Shaped<Self, R> {
                const { assert!(R >= 1 && R <= 5, "a view has one to five axes") };
                Shaped { slice: self, extent }
            }
        }
    };
}

shapes!(In);
shapes!(Out);
shapes!(InOut);

/// An [`In`] on its device: uploaded for this launch only, or for a node of a graph, which owns it as well.
#[doc(hidden)]
pub struct StagedIn<T: DeviceCopy, const R: usize> {
    memory: Arc<Memory>,
    extent: [usize; R],
    elements: PhantomData<T>,
}

impl<T: DeviceCopy, const R: usize> StagedIn<T, R> {
    /// `data` has at least as many elements as the extent.
    fn new(data: &[T], extent: [usize; R], stream: &Stream) -> Result<Self> {
        let upload = |stream: &Stream| Ok(stream.upload(data)?.into_memory());
        let memory = match stream.inner().recording() {
            None => Arc::new(upload(stream)?),
            Some(recording) => recording.keep(stream.device(), upload)?,
        };
        Ok(StagedIn { memory, extent, elements: PhantomData })
    }
}

/// The error of a slice that a launch of a graph would have to write.
fn check_not_recorded(stream: &Stream, operation: &'static str) -> Result<()> {
    if stream.inner().recording().is_none() {
        return Ok(());
    }
    Err(not_recordable(
        operation,
        "launches of the graph would write the slice, which is borrowed for this call only; launch with page-locked memory of `capture.keep_pinned`: `&mut host` in place, `host.as_out()` or `host.as_in_out()` copied",
    ))
}

/// An [`Out`] or [`InOut`] on its device.
#[doc(hidden)]
pub struct StagedOut<'a, T: DeviceCopy, const R: usize> {
    buffer: DeviceBuffer<T>,
    extent: [usize; R],
    host: &'a mut [T],
}

impl<'a, T: DeviceCopy> StagedOut<'a, T, 1> {
    fn of(buffer: DeviceBuffer<T>, host: &'a mut [T]) -> Self {
        StagedOut { extent: [buffer.len()], buffer, host }
    }
}

impl<T: DeviceCopy, const R: usize> Sealed for StagedIn<T, R> {}
impl<T: DeviceCopy, const R: usize> Sealed for StagedOut<'_, T, R> {}

impl<T: DeviceCopy, const R: usize> Staged for StagedIn<T, R> {
    fn access(&self) -> Access<'_> {
        Access::new(&self.memory, Use::Read)
    }
}

impl<T: DeviceCopy, const R: usize> Staged for StagedOut<'_, T, R> {
    fn access(&self) -> Access<'_> {
        Access::new(self.buffer.memory(), Use::Write)
    }

    fn finish(self, stream: &Stream) -> Result<()> {
        stream.download_into(&self.buffer, self.host)
    }
}

impl<T: DeviceCopy, const R: usize> StagedInput<T, R> for StagedIn<T, R> {
    fn input(&self) -> DeviceView<'_, T, R> {
        let len = self.extent.iter().product();
        DeviceView::whole(self.memory.pointer().cast(), len, &self.memory).shaped(self.extent)
    }
}

/// For a kernel that changes its elements atomically.
impl<A: AtomicForm> StagedInput<A> for StagedOut<'_, A::Value, 1> {
    fn input(&self) -> DeviceView<'_, A> {
        let buffer = &self.buffer;
        let start = buffer.as_device_ptr().as_raw().cast_mut();
        DeviceAtomicView::new(start, buffer.len(), buffer.memory()).into_input()
    }
}

impl<T: DeviceCopy, const R: usize> StagedOutput<T, R> for StagedOut<'_, T, R> {
    fn output(&mut self) -> DeviceViewMut<'_, T, R> {
        self.buffer.view_mut().shaped(self.extent)
    }
}

impl<'a, T: DeviceCopy> LaunchInput<'a, T> for In<'a, T> {
    type Staged = StagedIn<T, 1>;

    fn stage(self, stream: &Stream) -> Result<Self::Staged> {
        StagedIn::new(self.0, [self.0.len()], stream)
    }
}

impl<'a, T: DeviceCopy, const R: usize> LaunchInput<'a, T, R> for Shaped<In<'a, T>, R> {
    type Staged = StagedIn<T, R>;

    fn stage(self, stream: &Stream) -> Result<Self::Staged> {
        check_extent(self.extent, self.slice.0.len())?;
        StagedIn::new(self.slice.0, self.extent, stream)
    }
}

pass_as_atomics!(Out, StagedOut, Zeroable);
pass_as_atomics!(InOut, StagedOut);

impl<'a, T: DeviceCopy + Zeroable> LaunchOutput<'a, T> for Out<'a, T> {
    type Staged = StagedOut<'a, T, 1>;

    fn stage(self, stream: &Stream) -> Result<Self::Staged> {
        check_not_recorded(stream, "`Out`")?;
        Ok(StagedOut::of(stream.zeros(self.0.len())?, self.0))
    }
}

impl<'a, T: DeviceCopy> LaunchOutput<'a, T> for InOut<'a, T> {
    type Staged = StagedOut<'a, T, 1>;

    fn stage(self, stream: &Stream) -> Result<Self::Staged> {
        check_not_recorded(stream, "`InOut`")?;
        Ok(StagedOut::of(stream.upload(self.0)?, self.0))
    }
}

impl<'a, T: DeviceCopy, A, const R: usize> LaunchOutput<'a, T, R> for Shaped<A, R>
where
    A: LaunchOutput<'a, T, Staged = StagedOut<'a, T, 1>>,
{
    type Staged = StagedOut<'a, T, R>;

    fn stage(self, stream: &Stream) -> Result<Self::Staged> {
        let StagedOut { buffer, host, .. } = self.slice.stage(stream)?;
        check_extent(self.extent, buffer.len())?;
        Ok(StagedOut { buffer, extent: self.extent, host })
    }
}

pass_to_other_kernels! { read:
    [T: DeviceCopy] In<'a, T>, 1;
    [T: DeviceCopy, const R: usize] Shaped<In<'a, T>, R>, R;
}

pass_to_other_kernels! { write:
    [T: DeviceCopy + Zeroable] Out<'a, T>, 1;
    [T: DeviceCopy] InOut<'a, T>, 1;
    [T: DeviceCopy + Zeroable, const R: usize] Shaped<Out<'a, T>, R>, R;
    [T: DeviceCopy, const R: usize] Shaped<InOut<'a, T>, R>, R;
}
