//! The arguments for slice parameters of launches, and the compiler's messages for others.

use ferrogrid_device::DeviceCopy;

use crate::error::Result;
use crate::memory::access::Access;
use crate::memory::buffer::DeviceBuffer;
use crate::stream::Stream;
use crate::view::{DeviceView, DeviceViewMut};

/// Device memory to read, in a copy or for a kernel's `&[T]`: `&DeviceBuffer<T>` or a view of one; for
/// `&[DeviceAtomic<T>]` an atomic view, `buffer.as_atomic()`.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::DeviceInput;
///
/// /// The sum of a buffer, or of a view of one.
/// fn sum<'a>(stream: &Stream, x: impl DeviceInput<'a, u32>) -> ferrogrid::Result<u32> {
///     let x: DeviceView<u32> = x.into_input();
///     Ok(stream.download(x)?.iter().sum())
/// }
/// let buffer = stream.upload(&[1, 2, 3])?;
/// assert_eq!((sum(&stream, &buffer)?, sum(&stream, buffer.slice(1..)?)?), (6, 5));
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read as `&[{T}]` in device memory",
    label = "expected `{T}` elements of a device buffer",
    note = "pass `&buffer` or `buffer.slice(range)?`, with elements of type `{T}` as in the kernel's signature; for elements `DeviceAtomic<..>` pass `buffer.as_atomic()`",
    note = "host data goes to the device first: `let buffer = stream.upload(&data)?;`"
)]
pub trait DeviceInput<'a, T>: LaunchInput<'a, T> {
    /// The elements to read.
    fn into_input(self) -> DeviceView<'a, T>;
}

/// Device memory to write, in a copy or for a kernel's `DisjointSlice<T, R>`: in rank 1 `&mut DeviceBuffer<T>`
/// or a mutable view of one, in rank 2 and 3 a view of that rank.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::DeviceOutput;
///
/// /// Numbers the elements of a buffer, or of a view of one.
/// fn number<'a>(stream: &Stream, y: impl DeviceOutput<'a, usize>) -> ferrogrid::Result<()> {
///     let y: DeviceViewMut<usize> = y.into_output();
///     let numbers: Vec<usize> = (0..y.len()).collect();
///     stream.upload_into(&numbers, y)
/// }
/// let mut buffer = stream.zeros(5)?;
/// number(&stream, &mut buffer)?;
/// number(&stream, buffer.slice_mut(3..)?)?;
/// assert_eq!(stream.download(&buffer)?, [0, 1, 2, 0, 1]);
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written as `DisjointSlice<{T}, {R}>` in device memory",
    label = "expected a mutable borrow of `{T}` elements in rank {R}",
    note = "in rank 1 pass `&mut buffer` or `buffer.slice_mut(range)?`, in rank 2 `buffer.view_2d_mut(width, height)?`, in rank 3 `buffer.view_3d_mut(width, height, depth)?`; the elements are `{T}`, as in the kernel's signature",
    note = "host data goes to the device first: `let mut buffer = stream.upload(&data)?;`"
)]
pub trait DeviceOutput<'a, T, const R: usize = 1>: LaunchOutput<'a, T, R> {
    /// The elements to write.
    fn into_output(self) -> DeviceViewMut<'a, T, R>;
}

/// Arguments for a kernel's `&[T]`, or in rank 2 for its `Plane<T>`: device memory
/// ([`DeviceInput`], [`DeviceView<T, 2>`](DeviceView)), or a slice of the host as [`In`](crate::In); for
/// `&[DeviceAtomic<T>]` also [`InOut`](crate::InOut) and [`Out`](crate::Out).
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// # /// y <- a*x + y
/// # #[kernel]
/// # pub fn saxpy(t: Thread<1>, a: f32, x: &[f32], mut y: DisjointSlice<f32>) {
/// #     let i = t.index();
/// #     if let Some(y) = y.get_mut(i) {
/// #         *y += a * x[i.get()];
/// #     }
/// # }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::{In, LaunchInput};
///
/// /// `y + 2 x`, wherever `x` is.
/// fn add_twice<'a>(
///     stream: &Stream,
///     x: impl LaunchInput<'a, f32>,
///     y: &mut DeviceBuffer<f32>,
/// ) -> ferrogrid::Result<()> {
///     kernels::saxpy(stream, Grid::cover(y.len()), 2.0, x, y)
/// }
/// let x = stream.upload(&[1.0, 2.0])?;
/// let mut y = stream.zeros(2)?;
/// add_twice(&stream, &x, &mut y)?; // in device memory
/// add_twice(&stream, In(&[10.0, 20.0]), &mut y)?; // on the host
/// assert_eq!(stream.download(&y)?, [22.0, 44.0]);
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read as elements `{T}` of rank {R} in device memory",
    label = "expected `{T}` elements of a device buffer in rank {R}",
    note = "for `&[{T}]` pass `&buffer` or `buffer.slice(range)?`, for `Plane<{T}>` `buffer.view_2d(width, height)?`, for `Volume<{T}>` `buffer.view_3d(width, height, depth)?`, with elements of type `{T}` as in the kernel's signature; for elements `DeviceAtomic<..>` pass `buffer.as_atomic()`",
    note = "host data goes to the device first: `let buffer = stream.upload(&data)?;`, or for this launch only: `In(&data)`, in rank 2 `In(&data).into_2d(width, height)`"
)]
pub trait LaunchInput<'a, T, const R: usize = 1> {
    #[doc(hidden)]
    type Staged: StagedInput<T, R>;
    /// Copies it to the device of `stream` if necessary.
    #[doc(hidden)]
    fn stage(self, stream: &Stream) -> Result<Self::Staged>;
}

/// Arguments for a kernel's `DisjointSlice<T, R>`: device memory ([`DeviceOutput`]), or a
/// slice of the host as [`Out`](crate::Out) or [`InOut`](crate::InOut).
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// # /// y <- i
/// # #[kernel]
/// # pub fn number(t: Thread<1>, mut y: DisjointSlice<u32>) {
/// #     let i = t.index();
/// #     if let Some(y) = y.get_mut(i) {
/// #         *y = i.get() as u32;
/// #     }
/// # }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::{LaunchOutput, Out};
///
/// /// 0, 1, 2, wherever `y` is.
/// fn number<'a>(stream: &Stream, y: impl LaunchOutput<'a, u32>) -> ferrogrid::Result<()> {
///     kernels::number(stream, Grid::cover(3), y)
/// }
/// let (mut buffer, mut array) = (stream.zeros(3)?, [0; 3]);
/// number(&stream, &mut buffer)?; // in device memory
/// number(&stream, Out(&mut array))?; // on the host
/// assert_eq!((stream.download(&buffer)?, array), (vec![0, 1, 2], [0, 1, 2]));
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written as `DisjointSlice<{T}, {R}>` in device memory",
    label = "expected a mutable borrow of `{T}` elements in rank {R}",
    note = "in rank 1 pass `&mut buffer` or `buffer.slice_mut(range)?`, in rank 2 `buffer.view_2d_mut(width, height)?`, in rank 3 `buffer.view_3d_mut(width, height, depth)?`; the elements are `{T}`, as in the kernel's signature",
    note = "host data goes to the device first: `let mut buffer = stream.upload(&data)?;`, or for this launch only: `InOut(&mut data)`, in rank 2 `InOut(&mut data).into_2d(width, height)`"
)]
pub trait LaunchOutput<'a, T, const R: usize = 1> {
    #[doc(hidden)]
    type Staged: StagedOutput<T, R>;
    /// Copies it to the device of `stream` if necessary.
    #[doc(hidden)]
    fn stage(self, stream: &Stream) -> Result<Self::Staged>;
}

/// An argument on its device. Only types of this crate are one: launches rely on the same answers each
/// time.
#[doc(hidden)]
pub trait Staged: sealed::Sealed + Sized {
    /// What a launch with it uses.
    fn access(&self) -> Access<'_>;

    /// After the launch: brings back what the host is to see, and waits for that.
    #[inline]
    fn finish(self, _: &Stream) -> Result<()> {
        Ok(())
    }
}

/// An argument for `&[T]`, `Plane<T>` or `Volume<T>` on its device.
#[doc(hidden)]
pub trait StagedInput<T, const R: usize = 1>: Staged {
    fn input(&self) -> DeviceView<'_, T, R>;
}

/// An argument for `DisjointSlice<T, R>` on its device.
#[doc(hidden)]
pub trait StagedOutput<T, const R: usize>: Staged {
    fn output(&mut self) -> DeviceViewMut<'_, T, R>;
}

pub(crate) mod sealed {
    pub trait Sealed {}
}

impl<T, const R: usize> sealed::Sealed for DeviceView<'_, T, R> {}

impl<T, const R: usize> Staged for DeviceView<'_, T, R> {
    #[inline]
    fn access(&self) -> Access<'_> {
        DeviceView::access(self)
    }
}

impl<T, const R: usize> StagedInput<T, R> for DeviceView<'_, T, R> {
    #[inline]
    fn input(&self) -> DeviceView<'_, T, R> {
        *self
    }
}

impl<T, const R: usize> sealed::Sealed for DeviceViewMut<'_, T, R> {}

impl<T, const R: usize> Staged for DeviceViewMut<'_, T, R> {
    #[inline]
    fn access(&self) -> Access<'_> {
        DeviceViewMut::access(self)
    }
}

impl<T, const R: usize> StagedOutput<T, R> for DeviceViewMut<'_, T, R> {
    #[inline]
    fn output(&mut self) -> DeviceViewMut<'_, T, R> {
        self.shorter()
    }
}

/// Implements arguments for elements of kernels that have no launch function, foreign ones and those from text, which read
/// (`read`) or write (`write`) them: what has a `LaunchInput` or `LaunchOutput` of that rank.
macro_rules! pass_to_other_kernels {
    (read: $( [$($generics:tt)*] $argument:ty, $rank:tt );* $(;)?) => { $(
        $crate::view::argument::pass_to_other_kernels!(
            LaunchInput, input, check_input, NoUninit: [$($generics)*] $argument, $rank
        );
    )* };
    (write: $( [$($generics:tt)*] $argument:ty, $rank:tt );* $(;)?) => { $(
        $crate::view::argument::pass_to_other_kernels!(
            LaunchOutput, output, check_output, Pod: [$($generics)*] $argument, $rank
        );
    )* };
    ($kind:ident, $way:ident, $check:ident, $bytes:ident: [$($generics:tt)*] $argument:ty, $rank:tt) => {
        impl<'a, $($generics)*> $crate::LaunchArgument for $argument {
            type Held = $crate::launch::parameter::list::Elements<
                <$argument as $crate::view::argument::$kind<'a, T, { $rank }>>::Staged,
            >;

            fn hold(self, stream: &$crate::Stream) -> $crate::Result<Self::Held> {
                let staged = $crate::view::argument::$kind::<'a, T, { $rank }>::stage(self, stream)?;
                Ok($crate::launch::parameter::list::Elements::$way::<T, { $rank }>(staged).without_lengths())
            }
        }

        #[cfg(feature = "jit")]
        impl<'a, $($generics)*> $crate::SourceArgument<'a> for $argument
        where
            T: bytemuck::$bytes,
        {
            type Held = $crate::launch::parameter::list::Elements<
                <$argument as $crate::view::argument::$kind<'a, T, { $rank }>>::Staged,
            >;

            fn hold(
                self,
                stream: &$crate::Stream,
                slots: &mut $crate::source::slot::Slots,
            ) -> $crate::Result<Self::Held> {
                let staged = $crate::view::argument::$kind::<'a, T, { $rank }>::stage(self, stream)?;
                let elements = $crate::launch::parameter::list::Elements::$way::<T, { $rank }>(staged);
                slots.next(elements.lengths()).$check::<T>()?;
                Ok(elements)
            }
        }
    };
}

/// Implements `&memory` as an argument for elements to read, in kernels of all sources and in copies. The
/// memory has a method `view`; each kind of memory calls the macro in its own file.
macro_rules! read_by_view {
    ([$($generics:tt)*] $memory:ty, $element:path) => {
        impl<'a, $($generics)* T: $element> $crate::LaunchInput<'a, T> for &'a $memory {
            type Staged = $crate::DeviceView<'a, T>;

            #[inline]
            fn stage(self, _: &$crate::Stream) -> $crate::Result<Self::Staged> {
                Ok(self.view())
            }
        }

        impl<'a, $($generics)* T: $element> $crate::DeviceInput<'a, T> for &'a $memory {
            fn into_input(self) -> $crate::DeviceView<'a, T> {
                self.view()
            }
        }

        $crate::view::argument::pass_to_other_kernels!(read: [$($generics)* T: $element] &'a $memory, 1);
    };
}

/// The same, and `&mut memory` for elements to write. The memory has a method `view_mut`, too.
macro_rules! pass_by_view {
    ([$($generics:tt)*] $memory:ty) => {
        $crate::view::argument::read_by_view!([$($generics)*] $memory, ferrogrid_device::DeviceCopy);

        impl<'a, $($generics)* T: ferrogrid_device::DeviceCopy> $crate::LaunchOutput<'a, T>
            for &'a mut $memory
        {
            type Staged = $crate::DeviceViewMut<'a, T>;

            #[inline]
            fn stage(self, _: &$crate::Stream) -> $crate::Result<Self::Staged> {
                Ok(self.view_mut())
            }
        }

        impl<'a, $($generics)* T: ferrogrid_device::DeviceCopy> $crate::DeviceOutput<'a, T>
            for &'a mut $memory
        {
            fn into_output(self) -> $crate::DeviceViewMut<'a, T> {
                self.view_mut()
            }
        }

        $crate::view::argument::pass_to_other_kernels!(
            write: [$($generics)* T: ferrogrid_device::DeviceCopy] &'a mut $memory, 1
        );
    };
}

/// Implements an argument to write as one of atomic elements, to read and write: those of its values.
macro_rules! pass_as_atomics {
    ($Argument:ident, $Staged:ident $(, $Value:path)?) => {
        impl<'a, A: ferrogrid_device::atomic::AtomicForm> LaunchInput<'a, A> for $Argument<'a, A::Value>
        $(where A::Value: $Value)?
        {
            type Staged = $Staged<'a, A::Value, 1>;

            fn stage(self, stream: &Stream) -> Result<Self::Staged> {
                LaunchOutput::<A::Value>::stage(self, stream)
            }
        }
    };
}

pub(crate) use {pass_as_atomics, pass_by_view, pass_to_other_kernels, read_by_view};

// Those of the usual buffer are written out, because rustc shows them where an argument does not fit.

impl<'a, T: DeviceCopy> LaunchInput<'a, T> for &'a DeviceBuffer<T> {
    type Staged = DeviceView<'a, T>;

    #[inline]
    fn stage(self, _: &Stream) -> Result<Self::Staged> {
        Ok(self.into_input())
    }
}

impl<'a, T: DeviceCopy> LaunchOutput<'a, T> for &'a mut DeviceBuffer<T> {
    type Staged = DeviceViewMut<'a, T>;

    #[inline]
    fn stage(self, _: &Stream) -> Result<Self::Staged> {
        Ok(self.into_output())
    }
}

impl<'a, T: DeviceCopy> DeviceInput<'a, T> for &'a DeviceBuffer<T> {
    fn into_input(self) -> DeviceView<'a, T> {
        self.view()
    }
}

impl<'a, T: DeviceCopy> DeviceOutput<'a, T> for &'a mut DeviceBuffer<T> {
    fn into_output(self) -> DeviceViewMut<'a, T> {
        self.view_mut()
    }
}

pass_to_other_kernels! { read:
    [T: DeviceCopy] &'a DeviceBuffer<T>, 1;
    [T: DeviceCopy, const R: usize] DeviceView<'a, T, R>, R;
}

pass_to_other_kernels! { write:
    [T: DeviceCopy] &'a mut DeviceBuffer<T>, 1;
    [T: DeviceCopy, const R: usize] DeviceViewMut<'a, T, R>, R;
}

impl<'a, T: DeviceCopy, const R: usize> LaunchInput<'a, T, R> for DeviceView<'a, T, R> {
    type Staged = DeviceView<'a, T, R>;

    #[inline]
    fn stage(self, _: &Stream) -> Result<Self::Staged> {
        Ok(self)
    }
}

impl<'a, T: DeviceCopy> LaunchInput<'a, T, 2> for &'a DeviceViewMut<'_, T, 2> {
    type Staged = DeviceView<'a, T, 2>;

    #[inline]
    fn stage(self, _: &Stream) -> Result<Self::Staged> {
        Ok(self.view().shaped(self.extent()))
    }
}

impl<'a, T: DeviceCopy> LaunchInput<'a, T, 3> for &'a DeviceViewMut<'_, T, 3> {
    type Staged = DeviceView<'a, T, 3>;

    #[inline]
    fn stage(self, _: &Stream) -> Result<Self::Staged> {
        Ok(self.view().shaped(self.extent()))
    }
}

impl<'a, T: DeviceCopy, const R: usize> LaunchInput<'a, T> for &'a DeviceViewMut<'_, T, R> {
    type Staged = DeviceView<'a, T>;

    #[inline]
    fn stage(self, _: &Stream) -> Result<Self::Staged> {
        Ok(self.into_input())
    }
}

impl<'a, T: DeviceCopy, const R: usize> LaunchOutput<'a, T, R> for DeviceViewMut<'a, T, R> {
    type Staged = DeviceViewMut<'a, T, R>;

    #[inline]
    fn stage(self, _: &Stream) -> Result<Self::Staged> {
        Ok(self.into_output())
    }
}

impl<'a, T: DeviceCopy> DeviceInput<'a, T> for DeviceView<'a, T> {
    fn into_input(self) -> DeviceView<'a, T> {
        self
    }
}

impl<'a, T: DeviceCopy, const R: usize> DeviceInput<'a, T> for &'a DeviceViewMut<'_, T, R> {
    fn into_input(self) -> DeviceView<'a, T> {
        self.view()
    }
}

impl<'a, T: DeviceCopy, const R: usize> DeviceOutput<'a, T, R> for DeviceViewMut<'a, T, R> {
    fn into_output(self) -> DeviceViewMut<'a, T, R> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dlpack::ReadOnlyBuffer;
    use crate::launch::host_slice::{In, InOut, Out, Shaped};
    use crate::view::atomic::DeviceAtomicView;
    use crate::{
        AllocationKey, GraphBuffer, GraphIn, GraphOut, GrowableBuffer, IpcBuffer, LaunchArgument,
        ManagedBuffer, PinnedBuffer, PinnedKey, PinnedSlice,
    };

    /// The arguments of kernels from text, with the feature `jit`.
    trait FromText<'a> {}
    #[cfg(feature = "jit")]
    impl<'a, A: crate::SourceArgument<'a>> FromText<'a> for A {}
    #[cfg(not(feature = "jit"))]
    impl<A> FromText<'_> for A {}

    /// That kernels in Rust, foreign ones and those from text read it.
    fn launches_read<'a, A: LaunchInput<'a, u32, R> + LaunchArgument + FromText<'a>, const R: usize>() {}

    /// That they write it.
    fn launches_write<'a, A: LaunchOutput<'a, u32, R> + LaunchArgument + FromText<'a>, const R: usize>() {}

    /// That copies read it, too.
    fn all_read<'a, A: DeviceInput<'a, u32> + LaunchArgument + FromText<'a>>() {}

    fn all_write<'a, A: DeviceOutput<'a, u32> + LaunchArgument + FromText<'a>>() {}

    /// Checked by the compiler: an incomplete list does not compile.
    #[test]
    fn every_kind_of_memory_is_an_argument_wherever_a_buffer_is() {
        all_read::<&DeviceBuffer<u32>>();
        all_read::<&ManagedBuffer<u32>>();
        all_read::<&PinnedBuffer<u32>>();
        all_read::<&PinnedSlice<'_, u32>>();
        all_read::<&IpcBuffer<u32>>();
        all_read::<&GrowableBuffer<u32>>();
        all_read::<&GraphBuffer<'_, u32>>();
        all_read::<&GraphBuffer<'_, u32, PinnedKey<u32>>>();
        all_read::<&GraphBuffer<'_, u32, AllocationKey<u32>>>();
        all_read::<&ReadOnlyBuffer<u32>>();
        all_read::<DeviceView<'_, u32>>();
        all_write::<&mut DeviceBuffer<u32>>();
        all_write::<&mut ManagedBuffer<u32>>();
        all_write::<&mut PinnedBuffer<u32>>();
        all_write::<&mut PinnedSlice<'_, u32>>();
        all_write::<&mut IpcBuffer<u32>>();
        all_write::<&mut GrowableBuffer<u32>>();
        all_write::<&mut GraphBuffer<'_, u32>>();
        all_write::<&mut GraphBuffer<'_, u32, PinnedKey<u32>>>();
        all_write::<&mut GraphBuffer<'_, u32, AllocationKey<u32>>>();
        all_write::<DeviceViewMut<'_, u32>>();
    }

    #[test]
    fn every_kernel_takes_views_and_slices_of_the_host_of_each_rank() {
        fn of_rank<const R: usize>() {
            launches_read::<DeviceView<'_, u32, R>, R>();
            launches_read::<Shaped<In<'_, u32>, R>, R>();
            launches_read::<GraphIn<'_, u32, R>, R>();
            launches_write::<DeviceViewMut<'_, u32, R>, R>();
            launches_write::<Shaped<Out<'_, u32>, R>, R>();
            launches_write::<Shaped<InOut<'_, u32>, R>, R>();
            launches_write::<GraphOut<'_, u32, R>, R>();
        }
        of_rank::<1>();
        launches_read::<In<'_, u32>, 1>();
        launches_write::<Out<'_, u32>, 1>();
        launches_write::<InOut<'_, u32>, 1>();
        fn atomics<
            'a,
            A: LaunchInput<'a, ferrogrid_device::DeviceAtomic<u32>> + LaunchArgument + FromText<'a>,
        >() {
        }
        atomics::<DeviceAtomicView<'_, u32>>();
    }
}
