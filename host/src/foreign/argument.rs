//! Arguments of a foreign launch whose types the caller vouches for: values, and pointers to buffers.

use std::ffi::c_void;
use std::ptr::{from_ref, null};

use bytemuck::Zeroable;
use ferrogrid_device::DeviceCopy;

use crate::error::Result;
use crate::launch::host_slice::{In, InOut, Out};
use crate::memory::access::Access;
use crate::memory::buffer::DeviceBuffer;
use crate::stream::Stream;
use crate::view::argument::{Staged, StagedInput, StagedOutput};
use crate::view::atomic::DeviceAtomicView;
use crate::view::pointer::{DevicePtr, DevicePtrMut};
use crate::view::{DeviceView, DeviceViewMut};

/// The greatest alignment that CUDA's own types have, for copies of parameters whose types nobody knows.
const ALIGNMENT: usize = 16;

/// The most parameters of a foreign launch.
const MOST: usize = 48;

/// The parameters of one launch: addresses and sizes, on the stack, and the memory that they lead to.
#[doc(hidden)]
pub struct ParameterList<'a> {
    addresses: [*const c_void; MOST],
    /// Size and alignment of each.
    shapes: [(usize, usize); MOST],
    len: usize,
    accesses: [Option<Access<'a>>; MOST],
}

impl<'a> ParameterList<'a> {
    pub(crate) fn new() -> Self {
        ParameterList {
            addresses: [null(); MOST],
            shapes: [(0, ALIGNMENT); MOST],
            len: 0,
            accesses: [None; MOST],
        }
    }

    /// The parameter at `address`, of `size` bytes.
    fn push(&mut self, address: *const c_void, size: usize) {
        self.addresses[self.len] = address;
        self.shapes[self.len].0 = size;
        self.len += 1;
    }

    /// The same, which leads to the memory of `access`.
    pub(crate) fn push_pointer(&mut self, address: *const c_void, access: Access<'a>) {
        self.accesses[self.len] = Some(access);
        self.push(address, size_of::<*const u8>());
    }

    pub(crate) fn addresses(&self) -> &[*const c_void] {
        &self.addresses[..self.len]
    }

    pub(crate) fn shapes(&self) -> &[(usize, usize)] {
        &self.shapes[..self.len]
    }

    pub(crate) fn accesses(&self) -> impl Iterator<Item = &Access<'a>> + Clone {
        self.accesses[..self.len].iter().flatten()
    }
}

/// An argument in the form in which its parameters can be listed. Never moved between that and the launch.
#[doc(hidden)]
pub trait Held: Sized {
    /// Adds its parameters.
    fn list<'a>(&'a self, list: &mut ParameterList<'a>);

    /// After the launch: brings back what the host is to see, and waits for that.
    fn finish(self, _: &Stream) -> Result<()> {
        Ok(())
    }
}

/// A value, passed as it is.
#[doc(hidden)]
pub struct Value<T>(pub(super) T);

impl<T: DeviceCopy> Held for Value<T> {
    fn list<'a>(&'a self, list: &mut ParameterList<'a>) {
        list.push(from_ref(&self.0).cast(), size_of::<T>());
    }
}

/// The address of the first element of an argument in device memory.
#[doc(hidden)]
pub struct PointerTo<S> {
    staged: S,
    start: *const c_void,
}

/// The address of the first element of an argument in device memory, and the number of elements.
#[doc(hidden)]
pub struct Elements<S> {
    pointer: PointerTo<S>,
    len: usize,
}

impl<S: Staged> PointerTo<S> {
    pub(crate) fn input<T: DeviceCopy>(staged: S) -> Self
    where
        S: StagedInput<T>,
    {
        let start = staged.input().start().cast();
        PointerTo { staged, start }
    }

    pub(crate) fn output<T: DeviceCopy, const R: usize>(mut staged: S) -> Self
    where
        S: StagedOutput<T, R>,
    {
        let start = staged.output().start().cast_const().cast();
        PointerTo { staged, start }
    }
}

impl<S: Staged> Elements<S> {
    pub(crate) fn input<T: DeviceCopy>(staged: S) -> Self
    where
        S: StagedInput<T>,
    {
        let len = staged.input().len();
        Elements { pointer: PointerTo::input(staged), len }
    }

    pub(crate) fn output<T: DeviceCopy>(mut staged: S) -> Self
    where
        S: StagedOutput<T, 1>,
    {
        let len = staged.output().len();
        Elements { pointer: PointerTo::output(staged), len }
    }
}

impl<S: Staged> Held for PointerTo<S> {
    fn list<'a>(&'a self, list: &mut ParameterList<'a>) {
        list.push_pointer(from_ref(&self.start).cast(), self.staged.access());
    }

    fn finish(self, stream: &Stream) -> Result<()> {
        self.staged.finish(stream)
    }
}

impl<S: Staged> Held for Elements<S> {
    fn list<'a>(&'a self, list: &mut ParameterList<'a>) {
        self.pointer.list(list);
        list.push(from_ref(&self.len).cast(), size_of::<usize>());
    }

    fn finish(self, stream: &Stream) -> Result<()> {
        self.pointer.finish(stream)
    }
}

/// What may be an argument of [`ForeignFunction::launch`](super::ForeignFunction::launch): a value, which
/// is passed as it is, or device memory, whose address is passed: `&buffer`, `&mut buffer`, a view, an
/// atomic view. The kernel's order with other work on that memory is kept. A raw [`DevicePtr`] is passed
/// without that. Slices of the host go as [`In`], [`Out`] and [`InOut`], and textures and surfaces (`cudaTextureObject_t`,
/// `cudaSurfaceObject_t`) as a [`TextureView`] and a [`SurfaceViewMut`].
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

/// Arguments that are staged as those of kernels in Rust: `$way` of a pointer to them.
macro_rules! in_memory {
    ($way:ident, $Launch:ident: $( [$($generics:tt)*] $argument:ty ),* $(,)?) => { $(
        impl<'a, $($generics)*> $crate::LaunchArgument for $argument {
            type Held = $crate::foreign::argument::PointerTo<<$argument as $crate::$Launch<'a, T>>::Staged>;
            fn hold(self, stream: &$crate::Stream) -> $crate::Result<Self::Held> {
                let staged = <$argument as $crate::$Launch<'a, T>>::stage(self, stream)?;
                Ok($crate::foreign::argument::PointerTo::$way(staged))
            }
        }
    )* };
}

pub(crate) use in_memory;

in_memory!(input, LaunchInput:
    [T: DeviceCopy] &'a DeviceBuffer<T>,
    [T: DeviceCopy] DeviceView<'a, T>,
    [T: DeviceCopy] In<'a, T>,
);
in_memory!(output, LaunchOutput:
    [T: DeviceCopy] &'a mut DeviceBuffer<T>,
    [T: DeviceCopy + Zeroable] Out<'a, T>,
    [T: DeviceCopy] InOut<'a, T>,
);

impl<T: DeviceCopy, const R: usize> LaunchArgument for DeviceViewMut<'_, T, R> {
    type Held = PointerTo<Self>;
    fn hold(self, _: &Stream) -> Result<Self::Held> {
        Ok(PointerTo::output::<T, R>(self))
    }
}

impl<'a, T: DeviceCopy> LaunchArgument for DeviceAtomicView<'a, T> {
    type Held = PointerTo<DeviceView<'a, T>>;
    fn hold(self, _: &Stream) -> Result<Self::Held> {
        Ok(PointerTo::input::<T>(self.as_part()))
    }
}

/// A texture or surface object, as C++ takes it.
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
    fn with_list(self, stream: &Stream, launch: impl FnOnce(&ParameterList<'_>) -> Result<()>) -> Result<()>;
}

macro_rules! tuples {
    ($($argument:ident)*) => {
        impl<$($argument: LaunchArgument),*> ForeignArguments for ($($argument,)*) {
            #[allow(non_snake_case, unused_variables, reason = "named as their types; there may be none")]
            fn with_list(
                self,
                stream: &Stream,
                launch: impl FnOnce(&ParameterList<'_>) -> Result<()>,
            ) -> Result<()> {
                let ($($argument,)*) = self;
                $( let $argument = $argument.hold(stream)?; )*
                #[allow(unused_mut, reason = "there are no arguments")]
                let mut list = ParameterList::new();
                $( $argument.list(&mut list); )*
                launch(&list)?;
                $( $argument.finish(stream)?; )*
                Ok(())
            }
        }
    };
}

/// Calls the macro for the first 0, 1, 2, ... 24 names.
macro_rules! for_each_tuple {
    ($macro:ident) => {
        $crate::foreign::argument::for_each_tuple!($macro: [] A B C D E F G H I J K L M N O P Q S T U V W X Y);
    };
    ($macro:ident: [$($done:ident)*]) => { $macro!($($done)*); };
    ($macro:ident: [$($done:ident)*] $next:ident $($rest:ident)*) => {
        $macro!($($done)*);
        $crate::foreign::argument::for_each_tuple!($macro: [$($done)* $next] $($rest)*);
    };
}

pub(crate) use for_each_tuple;

for_each_tuple!(tuples);
