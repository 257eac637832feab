//! [`MapInput`]: the arguments for a `TensorMap<T, W, H>`; [`LaunchMap`]: the tensor map that a launch makes for it.

use std::ffi::c_void;
use std::ptr::from_ref;

use ferrogrid_device::DeviceCopy;

use crate::GraphIn;
use crate::backend::memory::tensor_map::{ALIGNMENT, Encoded, LONGEST, Tiled};
use crate::error::{Axis, Error, LaunchError, Result};
use crate::kernel::Kernel;
use crate::launch::extent::Extents;
use crate::launch::host_slice::{In, Shaped};
use crate::memory::access::Access;
use crate::stream::Stream;
use crate::view::argument::{LaunchInput, Staged, StagedInput, sealed::Sealed};
use crate::view::pitched::PitchedView;
use crate::view::{DeviceView, DeviceViewMut};

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

/// The rows of a plane.
#[doc(hidden)]
pub struct MapView<'a, T> {
    rows: PitchedView<'a, T>,
    width: usize,
    /// The elements from the start of a row to that of the next, and the rows.
    spaced: [usize; 2],
}

impl<'a, T: DeviceCopy> MapView<'a, T> {
    fn new(rows: PitchedView<'a, T>) -> Self {
        MapView { rows, width: rows.width(), spaced: [rows.pitch(), rows.height()] }
    }

    pub fn access(&self) -> Access<'a> {
        self.rows.access()
    }

    /// The host addresses of the parameters that an entry point has for it, but for the tensor map.
    pub fn params(&self) -> [*const c_void; 4] {
        let [pitch, height] = self.spaced.each_ref().map(|it| from_ref(it).cast());
        [self.rows.start_param(), from_ref(&self.width).cast(), height, pitch]
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

/// What a `Plane<T>` takes: rows that follow each other.
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

macro_rules! dense {
    ($([$($lifetime:lifetime)?] $argument:ty),*) => { $(
        impl<'a, $($lifetime,)? T: DeviceCopy> MapInput<'a, T> for $argument {
            type Staged = Dense<<$argument as LaunchInput<'a, T, 2>>::Staged>;

            fn stage(self, stream: &Stream) -> Result<Self::Staged> {
                LaunchInput::<'a, T, 2>::stage(self, stream).map(Dense)
            }
        }
    )* };
}
dense!([] DeviceView<'a, T, 2>, ['v] &'a DeviceViewMut<'v, T, 2>, [] Shaped<In<'a, T>, 2>, [] GraphIn<'a, T, 2>);

/// A kernel parameter: the driver's tensor map, or zeros where no device code reads it.
#[doc(hidden)]
pub struct LaunchMap(Encoded);

impl LaunchMap {
    /// That of `view`, the argument of that name, for tiles with `[width, height]` elements.
    ///
    /// # Errors
    /// [`LaunchError::TensorMapUnaligned`] and [`LaunchError::TensorMapTooLarge`]; and if the driver refuses.
    pub fn new<T: DeviceCopy>(
        kernel: &'static Kernel,
        stream: &Stream,
        argument: &'static str,
        view: &MapView<'_, T>,
        tile: [u32; 2],
    ) -> Result<Self> {
        let (kernel, width, [pitch, height]) = (kernel.name(), view.width, view.spaced);
        for (axis, value) in [(Axis::X, width), (Axis::Y, height)] {
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
        let start = if width == 0 || height == 0 { 0 } else { view.rows.start().addr() };
        let row = pitch * size_of::<T>();
        if !row.is_multiple_of(ALIGNMENT) || !start.is_multiple_of(ALIGNMENT) {
            return Err(Error::Launch(LaunchError::TensorMapUnaligned {
                kernel,
                argument,
                row,
                start: start % ALIGNMENT,
            }));
        }
        let tiled =
            Tiled { start: view.rows.start(), element: size_of::<T>(), extent: [width, height], pitch, tile };
        stream.device().backend().encode(&tiled).map(LaunchMap)
    }

    /// The host address of the kernel parameter.
    pub fn param(&self) -> *const c_void {
        from_ref(&self.0).cast()
    }
}
