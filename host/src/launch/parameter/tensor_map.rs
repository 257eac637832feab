//! [`MapInput`] and [`MapOutput`]: the arguments for a `TensorMap<T, W, H>` and a `TensorMapMut<T, W, H>`; [`LaunchMap`]: the tensor map that
//! a launch makes for them, and for a `BoxMap` and a `BoxMapMut`.

use std::ffi::c_void;
use std::ptr::from_ref;

use ferrogrid_device::{AXES, DeviceCopy, MapForm};

use crate::backend::memory::tensor_map::{ALIGNMENT, Encoded, LONGEST, Tiled};
use crate::error::{Error, LaunchError, Result};
use crate::kernel::Kernel;
use crate::launch::extent::Extents;
use crate::launch::host_slice::{In, InOut, Out, Shaped};
use crate::memory::access::Access;
use crate::stream::Stream;
use crate::view::argument::{LaunchInput, LaunchOutput, Staged, StagedInput, StagedOutput, sealed::Sealed};
use crate::view::pitched::{PitchedView, PitchedViewMut};
use crate::view::{DeviceView, DeviceViewMut};
use crate::{GraphIn, GraphOut};

/// Arguments for a kernel's `TensorMap<T, W, H>`: what a `Plane<T>` takes, a [`DeviceView<T, 2>`](DeviceView) above all, or a [`PitchedView`], a part
/// of a larger matrix.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// y <- the plane, row by row.
/// #[kernel(block = 32)]
/// pub fn copy(t: Thread<1>, x: TensorMap<f32, 4, 2>, mut y: DisjointSlice<f32>) {
///     let i = t.index();
///     if let (Some(y), Some(x)) = (y.get_mut(i), x.get(i.get() / x.width(), i.get() % x.width())) {
///         *y = *x;
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0])?;
/// let mut y = stream.zeros(4)?;
/// let part = x.view().pitched(8, 2, 8)?.slice(4..6, ..)?; // 2 rows of 2 elements, which begin at multiples of 16 bytes
/// kernels::copy(&stream, Grid::cover(4), part, &mut y)?;
/// assert_eq!(stream.download(&y)?, [4.0, 5.0, 12.0, 13.0]);
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read as a plane of `{T}` in device memory",
    label = "expected `{T}` elements of a device buffer in rank 2",
    note = "pass `buffer.view_2d(width, height)?`, or a part of a matrix, `buffer.view().pitched(width, height, pitch)?`, with elements of type `{T}` as in the kernel's signature",
    note = "host data goes to the device first: `let buffer = stream.upload(&data)?;`, or for this launch only: `In(&data).into_2d(width, height)`"
)]
pub trait MapInput<'a, T> {
    #[doc(hidden)]
    type Staged: StagedMapInput<T>;
    /// Copies it to the device of `stream` if necessary.
    #[doc(hidden)]
    fn stage(self, stream: &Stream) -> Result<Self::Staged>;
}

/// An argument for a `TensorMap` on its device.
#[doc(hidden)]
pub trait StagedMapInput<T>: Staged {
    fn input(&self) -> MapView<'_, T>;
}

/// Arguments for a kernel's `TensorMapMut<T, W, H>`: what a `DisjointSlice<T, 2>` takes, a [`DeviceViewMut<T, 2>`](DeviceViewMut) above
/// all, or a [`PitchedViewMut`], a part of a larger matrix.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use ferrogrid::device::shared::OutputTile;
///
/// /// y <- the place of each column.
/// #[kernel(block = 32)]
/// pub fn number(t: Thread<1>, y: TensorMapMut<f32, 4, 2>, mut tile: Shared<OutputTile<f32, 4, 2>>) {
///     tile.fill_with(&t, |[_, column]| column as f32);
///     y.store(&t, &t.publish(tile), [0, 0]);
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let mut x = stream.fill(-1.0, 16)?;
/// let part = x.view_mut().pitched(8, 2, 8)?.slice(4.., ..)?; // 2 rows of 4 elements, 16 bytes
/// kernels::number(&stream, Grid::blocks(1), part)?;
/// assert_eq!(stream.download(&x)?[..9], [-1.0, -1.0, -1.0, -1.0, 0.0, 1.0, 2.0, 3.0, -1.0]);
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written as a plane of `{T}` in device memory",
    label = "expected a mutable borrow of `{T}` elements in rank 2",
    note = "pass `buffer.view_2d_mut(width, height)?`, or a part of a matrix, `buffer.view_mut().pitched(width, height, pitch)?`, with elements of type `{T}` as in the kernel's signature"
)]
pub trait MapOutput<'a, T> {
    #[doc(hidden)]
    type Staged: StagedMapOutput<T>;
    /// Copies it to the device of `stream` if necessary.
    #[doc(hidden)]
    fn stage(self, stream: &Stream) -> Result<Self::Staged>;
}

/// An argument for a `TensorMapMut` on its device.
#[doc(hidden)]
pub trait StagedMapOutput<T>: Staged {
    fn output(&mut self) -> MapView<'_, T>;
}

/// The rows of a plane.
#[doc(hidden)]
pub struct MapView<'a, T> {
    start: *const T,
    access: Access<'a>,
    width: usize,
    /// The elements from the start of a row to that of the next, and the rows.
    spaced: [usize; 2],
}

impl<'a, T: DeviceCopy> MapView<'a, T> {
    fn new(rows: PitchedView<'a, T>) -> Self {
        let spaced = [rows.pitch(), rows.height()];
        MapView { start: rows.start().cast(), access: rows.access(), width: rows.width(), spaced }
    }

    /// Rows that follow each other, to write.
    fn dense(rows: DeviceViewMut<'a, T, 2>) -> Self {
        let [width, height] = rows.extent();
        MapView { start: rows.start(), access: rows.into_access(), width, spaced: [width, height] }
    }

    pub fn access(&self) -> Access<'a> {
        self.access
    }

    /// The host addresses of the parameters that an entry point has for it, but for the tensor map.
    pub fn params(&self) -> [*const c_void; 4] {
        let [pitch, height] = self.spaced.each_ref().map(|it| from_ref(it).cast());
        [from_ref(&self.start).cast(), from_ref(&self.width).cast(), height, pitch]
    }
}

impl<T> Extents for MapView<'_, T> {
    fn extents(&self) -> &[usize] {
        &self.spaced
    }
}

impl<T> Sealed for PitchedView<'_, T> {}

impl<T: DeviceCopy> Staged for PitchedView<'_, T> {
    fn access(&self) -> Access<'_> {
        PitchedView::access(self)
    }
}

impl<T: DeviceCopy> StagedMapInput<T> for PitchedView<'_, T> {
    fn input(&self) -> MapView<'_, T> {
        MapView::new(*self)
    }
}

impl<'a, T: DeviceCopy> MapInput<'a, T> for PitchedView<'a, T> {
    type Staged = Self;

    fn stage(self, _: &Stream) -> Result<Self> {
        Ok(self)
    }
}

impl<T> Sealed for PitchedViewMut<'_, T> {}

impl<T: DeviceCopy> Staged for PitchedViewMut<'_, T> {
    fn access(&self) -> Access<'_> {
        PitchedViewMut::access(self)
    }
}

impl<T: DeviceCopy> StagedMapOutput<T> for PitchedViewMut<'_, T> {
    fn output(&mut self) -> MapView<'_, T> {
        let spaced = [self.pitch(), self.height()];
        MapView {
            start: self.start().cast(),
            access: PitchedViewMut::access(self),
            width: self.width(),
            spaced,
        }
    }
}

impl<'a, T: DeviceCopy> MapOutput<'a, T> for PitchedViewMut<'a, T> {
    type Staged = Self;

    fn stage(self, _: &Stream) -> Result<Self> {
        Ok(self)
    }
}

/// What a `Plane<T>` or a `DisjointSlice<T, 2>` takes: rows that follow each other.
#[doc(hidden)]
pub struct Dense<S>(S);

impl<S> Sealed for Dense<S> {}

impl<S: Staged> Staged for Dense<S> {
    fn access(&self) -> Access<'_> {
        self.0.access()
    }

    fn finish(self, stream: &Stream) -> Result<()> {
        self.0.finish(stream)
    }
}

impl<T: DeviceCopy, S: StagedInput<T, 2>> StagedMapInput<T> for Dense<S> {
    fn input(&self) -> MapView<'_, T> {
        MapView::new(self.0.input().into())
    }
}

impl<T: DeviceCopy, S: StagedOutput<T, 2>> StagedMapOutput<T> for Dense<S> {
    fn output(&mut self) -> MapView<'_, T> {
        MapView::dense(self.0.output())
    }
}

macro_rules! dense {
    (read: $([$($lifetime:lifetime)?] $argument:ty),*) => { $(
        impl<'a, $($lifetime,)? T: DeviceCopy> MapInput<'a, T> for $argument {
            type Staged = Dense<<$argument as LaunchInput<'a, T, 2>>::Staged>;

            fn stage(self, stream: &Stream) -> Result<Self::Staged> {
                LaunchInput::<'a, T, 2>::stage(self, stream).map(Dense)
            }
        }
    )* };
    (write: $($argument:ty),*) => { $(
        impl<'a, T: DeviceCopy> MapOutput<'a, T> for $argument
        where
            $argument: LaunchOutput<'a, T, 2>,
        {
            type Staged = Dense<<$argument as LaunchOutput<'a, T, 2>>::Staged>;

            fn stage(self, stream: &Stream) -> Result<Self::Staged> {
                LaunchOutput::<'a, T, 2>::stage(self, stream).map(Dense)
            }
        }
    )* };
}
dense!(read: [] DeviceView<'a, T, 2>, ['v] &'a DeviceViewMut<'v, T, 2>, [] Shaped<In<'a, T>, 2>, [] GraphIn<'a, T, 2>);
dense!(write: DeviceViewMut<'a, T, 2>, Shaped<Out<'a, T>, 2>, Shaped<InOut<'a, T>, 2>, GraphOut<'a, T, 2>);

/// What a tensor map is made of.
#[doc(hidden)]
pub struct Tensor {
    start: *const u8,
    /// The size of an element in bytes.
    element: usize,
    rank: usize,
    extent: [usize; AXES],
    /// The elements from the start of a row to that of the next.
    pitch: usize,
}

/// The elements of an argument that a tensor map describes.
#[doc(hidden)]
pub trait Mapped {
    fn tensor(&self) -> Tensor;
}

impl<T> Mapped for MapView<'_, T> {
    fn tensor(&self) -> Tensor {
        let [pitch, height] = self.spaced;
        let extent = [self.width, height, 1, 1, 1];
        Tensor { start: self.start.cast(), element: size_of::<T>(), rank: 2, extent, pitch }
    }
}

macro_rules! mapped {
    ($($View:ident)*) => { $(
        impl<T: DeviceCopy, const R: usize> Mapped for $View<'_, T, R> {
            fn tensor(&self) -> Tensor {
                let mut extent = [1; AXES];
                extent[..R].copy_from_slice(self.extents());
                Tensor { start: self.start().cast(), element: size_of::<T>(), rank: R, extent, pitch: extent[0] }
            }
        }
    )* };
}
mapped!(DeviceView DeviceViewMut);

/// A kernel parameter: the driver's tensor map, or zeros where no device code reads it.
#[doc(hidden)]
pub struct LaunchMap(Encoded);

impl LaunchMap {
    /// That of `mapped`, the argument of that name, for boxes of that form.
    ///
    /// # Errors
    /// [`LaunchError::TensorMapUnaligned`], [`LaunchError::TensorMapPartial`] and [`LaunchError::TensorMapTooLarge`]; and if the driver refuses.
    pub fn new(
        kernel: &'static Kernel,
        stream: &Stream,
        argument: &'static str,
        mapped: &impl Mapped,
        form: MapForm,
    ) -> Result<Self> {
        let (kernel, Tensor { start, element, rank, extent, pitch }) = (kernel.name(), mapped.tensor());
        for (axis, value) in extent.into_iter().enumerate() {
            if value > LONGEST {
                return Err(Error::Launch(LaunchError::TensorMapTooLarge {
                    kernel,
                    argument,
                    axis,
                    value,
                    limit: LONGEST,
                }));
            }
        }
        // Nothing is read of what is empty, wherever it is said to begin.
        let first = if extent.contains(&0) { 0 } else { start.addr() % ALIGNMENT };
        let row = pitch * element;
        if rank > 1 && !row.is_multiple_of(ALIGNMENT) || first > 0 {
            return Err(Error::Launch(LaunchError::TensorMapUnaligned {
                kernel,
                argument,
                row,
                start: first,
            }));
        }
        let row = extent[0] * element;
        if form.is_output && !row.is_multiple_of(ALIGNMENT) {
            return Err(Error::Launch(LaunchError::TensorMapPartial { kernel, argument, row }));
        }
        let tiled = Tiled { start, element, rank, extent, pitch, form };
        stream.device().backend().encode(&tiled).map(LaunchMap)
    }

    /// The host address of the kernel parameter.
    pub fn param(&self) -> *const c_void {
        from_ref(&self.0).cast()
    }
}
