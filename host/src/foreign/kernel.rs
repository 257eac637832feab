//! Foreign kernels whose parameter types were declared once, and which are then safe to launch.

use std::marker::PhantomData;

use derive_where::derive_where;
use ferrogrid_device::DeviceCopy;

use super::function::ForeignFunction;
use crate::error::{Error, Result};
use crate::launch::extent::Extents;
use crate::launch::grid::IntoGrid;
use crate::launch::parameter::list::{Elements, Held, Value, for_each_tuple};
use crate::stream::Stream;
use crate::view::argument::{LaunchInput, LaunchOutput, Staged};

/// A foreign kernel of rank `R` with parameters `P`, stated by [`ForeignFunction::typed`].
///
/// ```no_run
/// # fn main() -> ferrogrid_host::Result<()> {
/// use ferrogrid_host::{Device, ForeignKernel, Grid, Slice, SliceMut};
///
/// // extern "C" __global__ void saxpy(float a, const float* x, size_t nx, float* y, size_t ny)
/// type Saxpy = ForeignKernel<1, (f32, Slice<f32>, SliceMut<f32>)>;
///
/// let device = Device::cuda(0)?;
/// let module = device.load_file("saxpy.ptx")?;
/// // SAFETY: these are its types, and it keeps to the lengths that it is given.
/// let saxpy: Saxpy = unsafe { module.function("saxpy")?.typed()? };
///
/// let stream = device.new_stream()?;
/// let x = stream.upload(&[1.0_f32; 1000])?;
/// let mut y = stream.upload(&[2.0_f32; 1000])?;
/// saxpy.launch(&stream, Grid::cover(1000), (3.0, &x, &mut y))?;
/// # Ok(()) }
/// ```
#[derive_where(Clone, Copy, Debug)]
pub struct ForeignKernel<const R: usize, P> {
    function: ForeignFunction,
    parameters: PhantomData<fn(P)>,
}

/// In the parameters of a [`ForeignKernel`]: `const T*` and a 64-bit length, which is how the
/// `&[T]` of a Rust kernel is passed that is declared `#[kernel(wide)]`. The argument is a buffer or view to read.
///
/// ```no_run
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::{ForeignKernel, Slice, SliceMut};
///
/// let device = Device::cuda(0)?;
/// let stream = device.new_stream()?;
/// // extern "C" __global__ void gather(
/// //     const unsigned* at, size_t n_at, const float* x, size_t n_x, float* y, size_t n_y)
/// let gather = device.load_file("gather.ptx")?.function("gather")?;
/// // SAFETY: these are its types, and it keeps to the lengths that it is given.
/// let gather: ForeignKernel<1, (Slice<u32>, Slice<f32>, SliceMut<f32>)> = unsafe { gather.typed()? };
/// let (at, x) = (stream.upload(&[2_u32, 0])?, stream.upload(&[1.0_f32, 2.0, 3.0])?);
/// let mut y = stream.zeros::<f32>(2)?;
/// gather.launch(&stream, Grid::cover(2), (&at, &x, &mut y))?;
/// assert_eq!(stream.download(&y)?, [3.0, 1.0]);
/// # Ok(()) }
/// ```
pub struct Slice<T>(PhantomData<T>);

/// In the parameters of a [`ForeignKernel`]: `T*` and a 64-bit length. The argument is a buffer or view to
/// write.
///
/// ```no_run
/// use ferrogrid::{DeviceBuffer, ForeignKernel, Grid, Result, SliceMut, Stream};
///
/// /// extern "C" __global__ void clear(float* x, size_t n), of the first half.
/// fn clear(kernel: ForeignKernel<1, (SliceMut<f32>,)>, stream: &Stream, x: &mut DeviceBuffer<f32>) -> Result<()> {
///     let half = x.len() / 2;
///     kernel.launch(stream, Grid::cover(half), (x.slice_mut(..half)?,))
/// }
/// ```
pub struct SliceMut<T>(PhantomData<T>);

/// In the parameters of a [`ForeignKernel`]: `const T*` to at least `N` elements. The argument is a buffer
/// or view to read, of at least that length.
///
/// ```no_run
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::{Array, ArrayMut, ForeignKernel, In};
///
/// let device = Device::cuda(0)?;
/// let stream = device.new_stream()?;
/// // extern "C" __global__ void transform(const float matrix[16], float point[4])
/// let transform = device.load_file("transform.ptx")?.function("transform")?;
/// // SAFETY: these are its types and lengths.
/// let transform: ForeignKernel<1, (Array<f32, 16>, ArrayMut<f32, 4>)> = unsafe { transform.typed()? };
/// let mut point = stream.upload(&[1.0_f32, 2.0, 3.0, 1.0])?;
/// transform.launch(&stream, Grid::new(1, 4), (In(&[1.0_f32; 16]), &mut point))?;
/// let short = stream.zeros::<f32>(9)?;
/// let refused = transform.launch(&stream, Grid::new(1, 4), (&short, &mut point));
/// assert!(matches!(refused, Err(Error::OutOfRange { end: 16, length: 9, .. })));
/// # Ok(()) }
/// ```
pub struct Array<T, const N: usize>(PhantomData<T>);

/// In the parameters of a [`ForeignKernel`]: `T*` to at least `N` elements. The argument is a buffer or
/// view to write, of at least that length.
///
/// ```no_run
/// use ferrogrid::{ArrayMut, DeviceBuffer, ForeignKernel, Grid, Result, Stream};
///
/// /// extern "C" __global__ void totals(float sums[3])
/// fn totals(kernel: ForeignKernel<1, (ArrayMut<f32, 3>,)>, stream: &Stream) -> Result<Vec<f32>> {
///     let mut sums: DeviceBuffer<f32> = stream.zeros(3)?; // not fewer: that is an error
///     kernel.launch(stream, Grid::new(1, 32), (&mut sums,))?;
///     stream.download(&sums)
/// }
/// ```
pub struct ArrayMut<T, const N: usize>(PhantomData<T>);

/// A parameter of a [`ForeignKernel`]: a [`DeviceCopy`] type by value, [`Slice`], [`SliceMut`], [`Array`] or
/// [`ArrayMut`].
///
/// ```
/// use ferrogrid::{Array, ForeignParameter, Slice};
///
/// assert_eq!(<f32 as ForeignParameter>::SIZES, [4]);
/// assert_eq!(<Slice<f32>>::SIZES, [8, 8]); // pointer, length
/// assert_eq!(<Array<f32, 9>>::SIZES, [8]); // pointer
/// ```
///
/// # Safety
/// `SIZES` has the size in bytes of each parameter of the kernel that this stands for, in order.
pub unsafe trait ForeignParameter {
    /// The sizes of the kernel's parameters that this stands for.
    const SIZES: &'static [usize];
}

const POINTER: usize = 8;

// SAFETY: a value is passed as it is.
unsafe impl<T: DeviceCopy> ForeignParameter for T {
    const SIZES: &'static [usize] = &[size_of::<T>()];
}

/// An argument for the parameter `P` of a [`ForeignKernel`].
///
/// ```no_run
/// use ferrogrid::{DeviceBuffer, ForeignKernel, Grid, Result, Slice, SliceMut, Stream, TypedArgument};
///
/// /// y <- x / 2, where `x` is a buffer, a view, or a slice of the host as `In(&x)`.
/// fn halve<'a>(
///     scale: ForeignKernel<1, (f32, Slice<f32>, SliceMut<f32>)>,
///     stream: &Stream,
///     x: impl TypedArgument<'a, Slice<f32>>,
///     y: &'a mut DeviceBuffer<f32>,
/// ) -> Result<()> {
///     scale.launch(stream, Grid::cover(y.len()), (0.5, x, y))
/// }
/// ```
///
/// # Safety
/// The result of `hold` lists parameters of the sizes and meaning of `P`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no argument for the parameter `{P}` of a foreign kernel",
    label = "expected an argument for `{P}`",
    note = "values are of the stated type; `Slice<T>` and `Array<T, N>` take `&buffer` or a view, `SliceMut<T>` and `ArrayMut<T, N>` take `&mut buffer` or a mutable view; slices of the host go as `In(&data)`, `Out(&mut data)`, `InOut(&mut data)`"
)]
pub unsafe trait TypedArgument<'a, P> {
    #[doc(hidden)]
    type Held: Held;
    #[doc(hidden)]
    fn hold(self, stream: &Stream) -> Result<Self::Held>;
}

// SAFETY: the value itself.
unsafe impl<T: DeviceCopy> TypedArgument<'_, T> for T {
    type Held = Value<T>;
    fn hold(self, _: &Stream) -> Result<Value<T>> {
        Ok(Value(self))
    }
}

/// Implements parameters for memory, and their arguments, which are what a kernel of the program takes, too.
macro_rules! memory_parameters {
    ($Slice:ident and $Array:ident: $Argument:ident, $way:ident) => {
        // SAFETY: a pointer and a length.
        unsafe impl<T> ForeignParameter for $Slice<T> {
            const SIZES: &'static [usize] = &[POINTER, POINTER];
        }

        // SAFETY: a pointer.
        unsafe impl<T, const N: usize> ForeignParameter for $Array<T, N> {
            const SIZES: &'static [usize] = &[POINTER];
        }

        // SAFETY: pointer and length of elements that may be used in this way.
        unsafe impl<'a, T: DeviceCopy, A: $Argument<'a, T>> TypedArgument<'a, $Slice<T>> for A {
            type Held = Elements<A::Staged>;

            fn hold(self, stream: &Stream) -> Result<Self::Held> {
                Ok(Elements::$way::<T, 1>(self.stage(stream)?))
            }
        }

        // SAFETY: a pointer to at least `N` elements that may be used in this way.
        unsafe impl<'a, T: DeviceCopy, A: $Argument<'a, T>, const N: usize> TypedArgument<'a, $Array<T, N>>
            for A
        {
            type Held = Elements<A::Staged>;

            fn hold(self, stream: &Stream) -> Result<Self::Held> {
                at_least(N, Elements::$way::<T, 1>(self.stage(stream)?))
            }
        }
    };
}

memory_parameters!(Slice and Array: LaunchInput, input);
memory_parameters!(SliceMut and ArrayMut: LaunchOutput, output);

/// The address of `elements` alone, if they are as many.
fn at_least<S: Staged>(end: usize, elements: Elements<S>) -> Result<Elements<S>> {
    let length = elements.lengths().extents()[0];
    if length < end {
        return Err(Error::OutOfRange { start: 0, end, length });
    }
    Ok(elements.without_lengths())
}

/// The parameters of a [`ForeignKernel`]: a tuple of up to 24 of [`ForeignParameter`].
///
/// ```
/// use ferrogrid::{ForeignParameters, Slice, SliceMut};
///
/// // __global__ void saxpy(float a, const float* x, size_t nx, float* y, size_t ny)
/// assert_eq!(<(f32, Slice<f32>, SliceMut<f32>)>::sizes(), [4, 8, 8, 8, 8]);
/// ```
pub trait ForeignParameters {
    /// The size of each parameter of the kernel in bytes, in order.
    fn sizes() -> Vec<usize>;
}

/// Arguments for the parameters `P` of a [`ForeignKernel`]: a tuple of as many of [`TypedArgument`].
///
/// ```no_run
/// use ferrogrid::{ForeignKernel, Grid, Result, Stream, TypedArguments};
///
/// /// One thread for each of `n` elements, in blocks of 128.
/// fn launch<'a, P, A: TypedArguments<'a, P>>(
///     kernel: ForeignKernel<1, P>,
///     stream: &Stream,
///     n: usize,
///     arguments: A,
/// ) -> Result<()> {
///     kernel.launch(stream, Grid::cover(n).with_block(128), arguments)
/// }
/// ```
///
/// # Safety
/// The result of `hold_all` lists the parameters that `P` stands for.
pub unsafe trait TypedArguments<'a, P> {
    #[doc(hidden)]
    type Held: Held;
    #[doc(hidden)]
    fn hold_all(self, stream: &Stream) -> Result<Self::Held>;
}

macro_rules! typed_tuples {
    ($($argument:ident $parameter:ident)*) => {
        impl<$($parameter: ForeignParameter),*> ForeignParameters for ($($parameter,)*) {
            fn sizes() -> Vec<usize> {
                let sizes: &[&[usize]] = &[$($parameter::SIZES),*];
                sizes.concat()
            }
        }

        // SAFETY: each argument lists what its parameter stands for, in order.
        #[allow(non_snake_case, unused_variables, reason = "named as their types; there may be none")]
        unsafe impl<'a, $($parameter, $argument: TypedArgument<'a, $parameter>),*>
            TypedArguments<'a, ($($parameter,)*)> for ($($argument,)*)
        {
            type Held = ($($argument::Held,)*);

            fn hold_all(self, stream: &Stream) -> Result<Self::Held> {
                let ($($argument,)*) = self;
                Ok(($($argument.hold(stream)?,)*))
            }
        }
    };
}

for_each_tuple!(typed_tuples);

impl<const R: usize, P: ForeignParameters> ForeignKernel<R, P> {
    /// # Safety
    /// As [`ForeignFunction::typed`].
    pub(super) unsafe fn new(function: ForeignFunction) -> Result<Self> {
        function.check(&P::sizes())?;
        Ok(ForeignKernel { function, parameters: PhantomData })
    }
}

impl<const R: usize, P> ForeignKernel<R, P> {
    /// Enqueues the kernel on `stream` (`cuLaunchKernel`), in order with other work on the same buffers.
    ///
    /// # Errors
    /// As [`ForeignFunction::launch`]; [`Error::OutOfRange`] if the argument of an array is too short.
    #[track_caller]
    pub fn launch<'a>(
        &self,
        stream: &Stream,
        grid: impl IntoGrid<R>,
        arguments: impl TypedArguments<'a, P>,
    ) -> Result<()> {
        // SAFETY: the declaration of the types vouched for every launch with such arguments.
        unsafe { self.function.launch_held(stream, grid.into_grid(), arguments.hold_all(stream)?) }
    }

    /// The kernel without its types: attributes, occupancy, parameters.
    pub fn function(&self) -> ForeignFunction {
        self.function
    }
}
