//! Arguments of kernels from text: those of launch functions, held with a check in place of a type.

use std::ffi::c_void;
use std::ptr::from_ref;

use bytemuck::{NoUninit, Pod, Zeroable, bytes_of};
use ferrogrid_build::Travels;
use ferrogrid_device::DeviceCopy;

use super::slot::{Lengths, Slot, Slots};
use crate::error::Result;
use crate::foreign::argument::for_each_tuple;
use crate::launch::host_slice::{In, InOut, Out, Shaped};
use crate::memory::access::Access;
use crate::memory::buffer::DeviceBuffer;
use crate::stream::Stream;
use crate::view::argument::{Staged, StagedInput, StagedOutput};
use crate::view::atomic::DeviceAtomicView;
use crate::view::{DeviceView, DeviceViewMut};

/// The parameters of one launch, with what is to be checked of them together.
#[derive(Default)]
pub struct Passed<'a> {
    /// The address and the size in bytes of each.
    pub(super) params: Vec<(*const c_void, usize)>,
    pub(super) accesses: Vec<Access<'a>>,
    /// The number of each slice parameter, and its lengths.
    pub(super) lengths: Vec<(usize, Lengths)>,
}

/// An argument on its device, checked. Never moved between that and the launch.
pub trait HeldArgument: Sized {
    /// Adds its parameters.
    fn pass<'a>(&'a self, to: &mut Passed<'a>);

    /// After the launch: brings back what the host is to see, and waits for that.
    fn finish(self, stream: &Stream) -> Result<()>;
}

/// What may be an argument of [`SourceKernel::launch`](super::SourceKernel::launch): what a launch function takes, without
/// the types that such a function has. Numbers and structs by value; for `&[T]` and `Plane<T>` `&buffer`, a view, or
/// [`In`]; for `&[DeviceAtomic<T>]` an atomic view; for `DisjointSlice` and `DisjointRows` `&mut buffer`, a mutable view,
/// [`Out`] or [`InOut`]; for `SharedSlice` its length, a `usize`. Structs are declared on both sides, under the same name,
/// with the same fields; the program's must be [`NoUninit`], and [`Pod`] where kernels write.
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
    type Held: HeldArgument;
    #[doc(hidden)]
    fn hold(self, stream: &Stream, slots: &mut Slots) -> Result<Self::Held>;
}

/// A value, or a region of shared memory.
pub enum ByValue<T> {
    Value(T),
    /// Offset and length.
    Shared([usize; 2]),
}

impl<T: DeviceCopy + NoUninit> SourceArgument<'_> for T {
    type Held = ByValue<T>;

    fn hold(self, _: &Stream, slots: &mut Slots) -> Result<ByValue<T>> {
        let slot = slots.next();
        slot.check_value::<T>()?;
        let Travels::SharedSlice { size } = slot.travels() else { return Ok(ByValue::Value(self)) };
        // It is a `usize`.
        let length = bytes_of(&self).try_into().map_or(usize::MAX, usize::from_ne_bytes);
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        Ok(ByValue::Shared(slots.shared.slice_of(size, length)))
    }
}

impl<T> HeldArgument for ByValue<T> {
    fn pass<'a>(&'a self, to: &mut Passed<'a>) {
        match self {
            // What has no bytes is no parameter.
            ByValue::Value(_) if size_of::<T>() == 0 => {}
            ByValue::Value(value) => to.params.push((from_ref(value).cast(), size_of::<T>())),
            ByValue::Shared(parts) => {
                to.params.extend(parts.iter().map(|part| (from_ref(part).cast(), size_of::<usize>())));
            }
        }
    }

    fn finish(self, _: &Stream) -> Result<()> {
        Ok(())
    }
}

/// Elements in device memory.
pub struct Elements<S> {
    staged: S,
    start: *const c_void,
    slot: Slot,
    lengths: Lengths,
}

impl<S: Staged> Elements<S> {
    pub(crate) fn read<T: DeviceCopy + NoUninit, const R: usize>(staged: S, slot: Slot) -> Result<Self>
    where
        S: StagedInput<T, R>,
    {
        let view = staged.input();
        let (start, lengths) = (view.start().cast(), Lengths::new(*view.extents()));
        slot.check_input::<T>(lengths)?;
        Ok(Elements { start, slot, lengths, staged })
    }

    pub(crate) fn written<T: DeviceCopy + Pod, const R: usize>(mut staged: S, slot: Slot) -> Result<Self>
    where
        S: StagedOutput<T, R>,
    {
        let view = staged.output();
        let (start, lengths) = (view.start().cast_const().cast(), Lengths::new(*view.extents()));
        slot.check_output::<T>(lengths)?;
        Ok(Elements { start, slot, lengths, staged })
    }
}

impl<S: Staged> HeldArgument for Elements<S> {
    fn pass<'a>(&'a self, to: &mut Passed<'a>) {
        to.params.push((from_ref(&self.start).cast(), size_of::<*const u8>()));
        // A kernel that is not `wide` reads the low half of a length, at the address of the whole.
        let axes = self.lengths.axes[..self.lengths.rank].iter();
        to.params.extend(axes.map(|axis| (from_ref(axis).cast(), size_of::<usize>())));
        to.accesses.push(self.staged.access());
        to.lengths.push((self.slot.number, self.lengths));
    }

    fn finish(self, stream: &Stream) -> Result<()> {
        self.staged.finish(stream)
    }
}

/// Arguments that are staged as those of kernels in Rust, and then `$way` by the kernel.
macro_rules! in_memory {
    ($way:ident, $Launch:ident: $( [$($generics:tt)*] $argument:ty, $rank:literal; )*) => { $(
        impl<'a, $($generics)*> $crate::SourceArgument<'a> for $argument {
            type Held = $crate::source::argument::Elements<<$argument as $crate::$Launch<'a, T, $rank>>::Staged>;

            fn hold(
                self,
                stream: &$crate::Stream,
                slots: &mut $crate::source::slot::Slots,
            ) -> $crate::Result<Self::Held> {
                let staged = <$argument as $crate::$Launch<'a, T, $rank>>::stage(self, stream)?;
                $crate::source::argument::Elements::$way(staged, slots.next())
            }
        }
    )* };
}

pub(crate) use in_memory;

in_memory! { read, LaunchInput:
    [T: DeviceCopy + NoUninit] &'a DeviceBuffer<T>, 1;
    [T: DeviceCopy + NoUninit] DeviceView<'a, T, 1>, 1;
    [T: DeviceCopy + NoUninit] DeviceView<'a, T, 2>, 2;
    [T: DeviceCopy + NoUninit] In<'a, T>, 1;
    [T: DeviceCopy + NoUninit] Shaped<In<'a, T>, 2>, 2;
    [T: DeviceCopy + NoUninit] DeviceView<'a, T, 3>, 3;
    [T: DeviceCopy + NoUninit] Shaped<In<'a, T>, 3>, 3;
}

in_memory! { written, LaunchOutput:
    [T: DeviceCopy + Pod] &'a mut DeviceBuffer<T>, 1;
    [T: DeviceCopy + Pod] DeviceViewMut<'a, T, 1>, 1;
    [T: DeviceCopy + Pod] DeviceViewMut<'a, T, 2>, 2;
    [T: DeviceCopy + Pod] DeviceViewMut<'a, T, 3>, 3;
    [T: DeviceCopy + Pod + Zeroable] Out<'a, T>, 1;
    [T: DeviceCopy + Pod] InOut<'a, T>, 1;
    [T: DeviceCopy + Pod + Zeroable] Shaped<Out<'a, T>, 2>, 2;
    [T: DeviceCopy + Pod] Shaped<InOut<'a, T>, 2>, 2;
    [T: DeviceCopy + Pod + Zeroable] Shaped<Out<'a, T>, 3>, 3;
    [T: DeviceCopy + Pod] Shaped<InOut<'a, T>, 3>, 3;
}

impl<'a, T: DeviceCopy + NoUninit> SourceArgument<'a> for DeviceAtomicView<'a, T> {
    type Held = Elements<DeviceView<'a, T>>;

    fn hold(self, _: &Stream, slots: &mut Slots) -> Result<Self::Held> {
        let (staged, slot, lengths) = (self.as_part(), slots.next(), Lengths::new([self.len()]));
        slot.check_atomic::<T>(lengths)?;
        Ok(Elements { start: staged.start().cast(), slot, lengths, staged })
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
    type Held: HeldArgument;
    #[doc(hidden)]
    fn hold_all(self, stream: &Stream, slots: &mut Slots) -> Result<Self::Held>;
}

macro_rules! tuples {
    ($($argument:ident)*) => {
        impl<'a, $($argument: SourceArgument<'a>),*> SourceArguments<'a> for ($($argument,)*) {
            const COUNT: usize = <[&str]>::len(&[$(stringify!($argument)),*]);
            type Held = AllHeld<($($argument::Held,)*)>;

            #[allow(non_snake_case, unused_variables, reason = "named as their types; there may be none")]
            fn hold_all(self, stream: &Stream, slots: &mut Slots) -> Result<Self::Held> {
                let ($($argument,)*) = self;
                Ok(AllHeld(($($argument.hold(stream, slots)?,)*)))
            }
        }

        impl<$($argument: HeldArgument),*> HeldArgument for AllHeld<($($argument,)*)> {
            #[allow(non_snake_case, unused_variables, reason = "as above")]
            fn pass<'a>(&'a self, to: &mut Passed<'a>) {
                let ($($argument,)*) = &self.0;
                $( $argument.pass(to); )*
            }

            #[allow(non_snake_case, unused_variables, reason = "as above")]
            fn finish(self, stream: &Stream) -> Result<()> {
                let ($($argument,)*) = self.0;
                $( $argument.finish(stream)?; )*
                Ok(())
            }
        }
    };
}

/// All arguments of a launch.
pub struct AllHeld<A>(A);

for_each_tuple!(tuples);
