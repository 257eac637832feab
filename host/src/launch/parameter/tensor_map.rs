//! [`LaunchMap`]: the tensor map that a launch makes for a `TensorMap<T, W, H>`.

use std::ffi::c_void;
use std::ptr::from_ref;

use crate::backend::memory::tensor_map::{ALIGNMENT, Encoded, LONGEST, Tiled};
use crate::error::{Axis, Error, LaunchError, Result};
use crate::kernel::Kernel;
use crate::stream::Stream;
use crate::view::DeviceView;

/// A kernel parameter: the driver's tensor map, or zeros where no device code reads it.
#[doc(hidden)]
pub struct LaunchMap(Encoded);

impl LaunchMap {
    /// That of `view`, the argument of that name, for tiles with `[width, height]` elements.
    ///
    /// # Errors
    /// [`LaunchError::TensorMapUnaligned`] and [`LaunchError::TensorMapTooLarge`]; and if the driver refuses.
    pub fn new<T>(
        kernel: &'static Kernel,
        stream: &Stream,
        argument: &'static str,
        view: &DeviceView<'_, T, 2>,
        tile: [u32; 2],
    ) -> Result<Self> {
        let (kernel, [width, height]) = (kernel.name(), *view.extents());
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
        let start = if width == 0 || height == 0 { 0 } else { view.start().addr() };
        let row = width * size_of::<T>();
        if !row.is_multiple_of(ALIGNMENT) || !start.is_multiple_of(ALIGNMENT) {
            return Err(Error::Launch(LaunchError::TensorMapUnaligned {
                kernel,
                argument,
                row,
                start: start % ALIGNMENT,
            }));
        }
        let tiled =
            Tiled { start: view.start().cast(), element: size_of::<T>(), extent: [width, height], tile };
        stream.device().backend().encode(&tiled).map(LaunchMap)
    }

    /// The host address of the kernel parameter.
    pub fn param(&self) -> *const c_void {
        from_ref(&self.0).cast()
    }
}
