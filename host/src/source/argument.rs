//! Arguments of kernels from text: as those of launch functions, with run-time checks in place of types.

use bytemuck::{NoUninit, bytes_of};
use ferrogrid_build::Travels;
use ferrogrid_device::DeviceCopy;

use super::slot::Slots;
use crate::error::Result;
use crate::launch::extent::Lengths;
use crate::launch::parameter::list::{Elements, Held, ParameterList, Value, for_each_tuple};
use crate::stream::Stream;
use crate::view::DeviceView;
use crate::view::atomic::DeviceAtomicView;

/// An argument of [`SourceKernel::launch`](super::SourceKernel::launch): as those of launch functions, without
/// the types that such a function has. Numbers and structs by value; for `&[T]` and `Plane<T>` `&buffer`, a view, or
/// [`In`](crate::In); for `&[DeviceAtomic<T>]` an atomic view; for `DisjointSlice` and `DisjointRows` `&mut buffer`, a mutable view,
/// [`Out`](crate::Out) or [`InOut`](crate::InOut); for `SharedSlice` its length, a `usize`. Structs are declared on both sides, under the same name,
/// with the same fields; the program's must be [`NoUninit`], and [`Pod`](bytemuck::Pod) where kernels write.
///
/// ```no_run
/// # use ferrogrid::prelude::*;
/// use ferrogrid::{Result, SourceArgument, SourceModule};
///
/// /// The kernel `fill` of a text, for any value that it may be written for.
/// fn fill<'a, T: SourceArgument<'a>, Y: SourceArgument<'a>>(
///     module: &SourceModule,
///     stream: &Stream,
///     n: usize,
///     value: T,
///     y: Y,
/// ) -> Result<()> {
///     module.kernel("fill")?.launch(stream, Grid::cover(n), (value, y))
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a kernel from text",
    label = "neither a plain value nor device memory",
    note = "pass numbers and `NoUninit` structs by value, device memory as `&buffer`, `&mut buffer` or a view, and slices of the host as `In(&data)`, `Out(&mut data)` or `InOut(&mut data)`; what kernels write is `Pod`"
)]
pub trait SourceArgument<'a> {
    #[doc(hidden)]
    type Held: Held;
    #[doc(hidden)]
    fn hold(self, stream: &Stream, slots: &mut Slots) -> Result<Self::Held>;
}

/// A value, or a region of shared memory: offset and length.
pub enum ByValue<T> {
    Value(Value<T>),
    Shared(Value<usize>, Value<usize>),
}

impl<T: DeviceCopy + NoUninit> SourceArgument<'_> for T {
    type Held = ByValue<T>;

    fn hold(self, _: &Stream, slots: &mut Slots) -> Result<ByValue<T>> {
        let slot = slots.next(Lengths::NONE);
        slot.check_value::<T>()?;
        let Travels::SharedSlice { size } = slot.travels() else { return Ok(ByValue::Value(Value(self))) };
        // It is a `usize`.
        let length = bytes_of(&self).try_into().map_or(usize::MAX, usize::from_ne_bytes);
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let [offset, length] = slots.shared.slice_of(size, length);
        Ok(ByValue::Shared(Value(offset), Value(length)))
    }
}

impl<T> Held for ByValue<T> {
    fn list<'a>(&'a self, list: &mut ParameterList<'a>) {
        match self {
            // What has no bytes is no parameter.
            ByValue::Value(_) if size_of::<T>() == 0 => {}
            ByValue::Value(value) => value.list(list),
            ByValue::Shared(offset, length) => {
                offset.list(list);
                length.list(list);
            }
        }
    }
}

impl<'a, T: DeviceCopy + NoUninit> SourceArgument<'a> for DeviceAtomicView<'a, T> {
    type Held = Elements<DeviceView<'a, T>>;

    fn hold(self, _: &Stream, slots: &mut Slots) -> Result<Self::Held> {
        let elements = Elements::input::<T, 1>(self.as_part());
        slots.next(elements.lengths()).check_atomic::<T>()?;
        Ok(elements)
    }
}

/// The arguments of a launch: a tuple of up to 24 of [`SourceArgument`], in the kernel's order, without its `Thread` and
/// `Shared` parameters.
///
/// ```no_run
/// use ferrogrid::{Grid, Result, SourceArguments, SourceKernel, Stream};
///
/// /// One thread for each of `n` elements, in blocks of 128.
/// fn launch<'a>(kernel: SourceKernel, stream: &Stream, n: usize, all: impl SourceArguments<'a>) -> Result<()> {
///     kernel.launch(stream, Grid::cover(n).with_block(128), all)
/// }
/// ```
pub trait SourceArguments<'a> {
    #[doc(hidden)]
    const COUNT: usize;
    #[doc(hidden)]
    type Held: Held;
    #[doc(hidden)]
    fn hold_all(self, stream: &Stream, slots: &mut Slots) -> Result<Self::Held>;
}

macro_rules! tuples {
    ($($argument:ident $parameter:ident)*) => {
        #[allow(non_snake_case, unused_variables, reason = "named as their types; there may be none")]
        impl<'a, $($argument: SourceArgument<'a>),*> SourceArguments<'a> for ($($argument,)*) {
            const COUNT: usize = <[&str]>::len(&[$(stringify!($argument)),*]);
            type Held = ($($argument::Held,)*);

            fn hold_all(self, stream: &Stream, slots: &mut Slots) -> Result<Self::Held> {
                let ($($argument,)*) = self;
                Ok(($($argument.hold(stream, slots)?,)*))
            }
        }
    };
}

for_each_tuple!(tuples);
