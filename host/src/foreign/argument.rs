//! Arguments of a foreign launch whose types the caller vouches for: values, pointers to buffers, textures and surfaces.

use ferrogrid_device::{DeviceCopy, Texel, TextureElement};

use crate::error::Result;
use crate::launch::parameter::list::{Elements, Held, ParameterList, Value, for_each_tuple};
use crate::stream::Stream;
use crate::texture::{SurfaceViewMut, TextureView};
use crate::view::DeviceView;
use crate::view::atomic::DeviceAtomicView;
use crate::view::pointer::{DevicePtr, DevicePtrMut};

/// An argument of [`ForeignFunction::launch`](super::ForeignFunction::launch): a value, which
/// is passed as it is, or device memory, whose address is passed: `&buffer`, `&mut buffer`, a view, an
/// atomic view, of any rank. The kernel's order with other work on that memory is kept. A raw [`DevicePtr`] is passed
/// without that. Slices of the host go as [`In`](crate::In), [`Out`](crate::Out) and [`InOut`](crate::InOut), and
/// textures and surfaces (`cudaTextureObject_t`, `cudaSurfaceObject_t`) as a [`TextureView`](crate::TextureView) and a
/// [`SurfaceViewMut`](crate::SurfaceViewMut).
///
/// ```no_run
/// use ferrogrid::{ForeignFunction, Grid, In, InOut, LaunchArgument, Result, Stream};
///
/// /// Calls a kernel `(const float* x, float* y, int n)`, wherever `x` and `y` are.
/// ///
/// /// # Safety
/// /// These are its types, and it reads and writes `n` elements at most.
/// unsafe fn call(
///     kernel: &ForeignFunction,
///     stream: &Stream,
///     x: impl LaunchArgument,
///     y: impl LaunchArgument,
///     n: i32,
/// ) -> Result<()> {
///     // SAFETY: passed on.
///     unsafe { kernel.launch(stream, Grid::cover(n as usize), (x, y, n)) }
/// }
///
/// /// As `call`, for slices of the host of the same length.
/// fn on_slices(kernel: &ForeignFunction, stream: &Stream, x: &[f32], y: &mut [f32]) -> Result<()> {
///     let n = x.len().min(y.len()) as i32;
///     // SAFETY: `saxpy` of our CUDA file, with these types.
///     unsafe { call(kernel, stream, In(x), InOut(y), n) }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a foreign kernel",
    label = "neither a `DeviceCopy` value nor device memory",
    note = "pass numbers and structs by value, device memory as `&buffer`, `&mut buffer` or a view, and slices of the host as `In(&data)`, `Out(&mut data)` or `InOut(&mut data)`"
)]
pub trait LaunchArgument {
    #[doc(hidden)]
    type Held: Held;
    #[doc(hidden)]
    fn hold(self, stream: &Stream) -> Result<Self::Held>;
}

impl<T: DeviceCopy> LaunchArgument for T {
    type Held = Value<T>;
    fn hold(self, _: &Stream) -> Result<Value<T>> {
        Ok(Value(self))
    }
}

impl<'a, T: DeviceCopy> LaunchArgument for DeviceAtomicView<'a, T> {
    type Held = Elements<DeviceView<'a, T>>;
    fn hold(self, _: &Stream) -> Result<Self::Held> {
        Ok(Elements::input::<T, 1>(self.as_part()).without_lengths())
    }
}

// SAFETY of the two below: an address as 8 bytes; what it leads to is vouched for at the launch.
impl<T: 'static> LaunchArgument for DevicePtr<T> {
    type Held = Value<u64>;
    fn hold(self, _: &Stream) -> Result<Value<u64>> {
        Ok(Value(self.as_raw().expose_provenance() as u64))
    }
}

impl<T: 'static> LaunchArgument for DevicePtrMut<T> {
    type Held = Value<u64>;
    fn hold(self, _: &Stream) -> Result<Value<u64>> {
        Ok(Value(self.as_raw().expose_provenance() as u64))
    }
}

/// A texture or surface object, as C++ takes it.
macro_rules! texture_arguments {
    ($View:ident, $Element:path) => {
        impl<T, const R: usize> Held for $View<'_, T, R> {
            fn list<'a>(&'a self, list: &mut ParameterList<'a>) {
                list.push_pointer(self.params()[0], self.access());
            }
        }

        impl<T: $Element, const R: usize> LaunchArgument for $View<'_, T, R> {
            type Held = Self;
            fn hold(self, stream: &Stream) -> Result<Self> {
                self.on(stream)
            }
        }
    };
}

texture_arguments!(TextureView, Texel);
texture_arguments!(SurfaceViewMut, TextureElement);

/// The arguments of a foreign launch: a tuple of up to 24 of [`LaunchArgument`], in the kernel's order.
///
/// ```no_run
/// use ferrogrid::{ForeignArguments, ForeignFunction, Grid, Result, Stream, Timing};
///
/// /// The time of a foreign kernel over `n` elements, with the same arguments in ten launches.
/// ///
/// /// # Safety
/// /// As for [`ForeignFunction::launch`].
/// unsafe fn time<A: ForeignArguments + Copy>(
///     kernel: &ForeignFunction,
///     stream: &Stream,
///     n: usize,
///     arguments: A,
/// ) -> Result<Timing> {
///     // SAFETY: passed on.
///     stream.time(10, |stream| unsafe { kernel.launch(stream, Grid::cover(n), arguments) })
/// }
/// ```
pub trait ForeignArguments {
    #[doc(hidden)]
    type Held: Held;
    #[doc(hidden)]
    fn hold_all(self, stream: &Stream) -> Result<Self::Held>;
}

macro_rules! tuples {
    ($($argument:ident $parameter:ident)*) => {
        #[allow(non_snake_case, unused_variables, reason = "named as their types; there may be none")]
        impl<$($argument: LaunchArgument),*> ForeignArguments for ($($argument,)*) {
            type Held = ($($argument::Held,)*);

            fn hold_all(self, stream: &Stream) -> Result<Self::Held> {
                let ($($argument,)*) = self;
                Ok(($($argument.hold(stream)?,)*))
            }
        }
    };
}

for_each_tuple!(tuples);
