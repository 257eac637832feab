//! What may stand for a slice parameter at a launch, and what the compiler says when something else
//! does. It must not know how a launch happens.

use ferrogrid_device::DeviceCopy;

use crate::buffer::DeviceBuffer;
use crate::view::{DeviceView, DeviceViewMut};

/// What may stand at a launch for a kernel's `&[T]`: `&DeviceBuffer<T>` or a view of one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read as `&[{T}]` by a kernel",
    label = "expected `&DeviceBuffer<{T}>` or a view of one",
    note = "pass `&buffer`, `buffer.view()` or `buffer.slice(range)?`, whose elements are `{T}` as in the kernel's signature; host data goes to the device first: `stream.upload(&data)?`"
)]
pub trait DeviceInput<'a, T: DeviceCopy> {
    /// The elements to read.
    fn into_input(self) -> DeviceView<'a, T>;
}

/// What may stand at a launch for a kernel's `DisjointSlice<T, R>`: in rank 1 `&mut DeviceBuffer<T>`
/// or a mutable view of one, in rank 2 a 2-D view.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written as `DisjointSlice<{T}, {R}>` by a kernel",
    label = "expected `&mut DeviceBuffer<{T}>` or a mutable view of rank {R}",
    note = "pass `&mut buffer`, `buffer.slice_mut(range)?` or, in rank 2, `buffer.view_2d_mut(width, height)?`, whose elements are `{T}` as in the kernel's signature; host data goes to the device first: `stream.upload(&data)?`"
)]
pub trait DeviceOutput<'a, T: DeviceCopy, const R: usize = 1> {
    /// The elements to write.
    fn into_output(self) -> DeviceViewMut<'a, T, R>;
}

impl<'a, T: DeviceCopy> DeviceInput<'a, T> for &'a DeviceBuffer<T> {
    fn into_input(self) -> DeviceView<'a, T> {
        self.view()
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

impl<'a, T: DeviceCopy> DeviceOutput<'a, T> for &'a mut DeviceBuffer<T> {
    fn into_output(self) -> DeviceViewMut<'a, T> {
        self.view_mut()
    }
}

impl<'a, T: DeviceCopy, const R: usize> DeviceOutput<'a, T, R> for DeviceViewMut<'a, T, R> {
    fn into_output(self) -> DeviceViewMut<'a, T, R> {
        self
    }
}

/// Bounds that never hold. An impl below that needs one is an explanation: the compiler finds the
/// impl, then reports the bound, with its message, instead of a list of impls that do not fit.
macro_rules! never {
    ($($(#[$attribute:meta])* $name:ident;)*) => { $(
        $(#[$attribute])*
        #[doc(hidden)]
        pub trait $name {}
    )* };
}

never! {
    #[diagnostic::on_unimplemented(
        message = "an output of a kernel needs a mutable borrow, but `{Self}` is a shared one",
        label = "write `&mut` here",
        note = "the kernel's parameter is a `DisjointSlice`, which it writes: pass `&mut buffer` or a mutable view"
    )]
    MutableBorrow;
    #[diagnostic::on_unimplemented(
        message = "a kernel takes a buffer by reference, but `{Self}` is the buffer itself",
        label = "borrow it: `&buffer` to read, `&mut buffer` to write"
    )]
    Borrow;
    #[diagnostic::on_unimplemented(
        message = "an input of a kernel is only read, but `{Self}` is a mutable borrow",
        label = "write `&` instead of `&mut` here",
        note = "the kernel's parameter is `&[T]`: pass `&buffer` or a view"
    )]
    SharedBorrow;
    #[diagnostic::on_unimplemented(
        message = "`{Self}` is host memory, which a kernel cannot reach",
        label = "upload it first: `let buffer = stream.upload(&data)?;`",
        note = "then pass `&buffer` to read or `&mut buffer` to write, and fetch results with `stream.download(&buffer)?`"
    )]
    DeviceMemory;
    #[diagnostic::on_unimplemented(
        message = "an output of rank 2 needs a width and a height, which `{Self}` does not have",
        label = "write `buffer.view_2d_mut(width, height)?` here",
        note = "the kernel's parameter is a `DisjointSlice<T, 2>`: `height` rows of `width` elements"
    )]
    Rank2;
}

/// The impl that a wrong argument would need, under a bound that says why there is none.
macro_rules! explain {
    (input [$($generics:tt)*] $ty:ty : $bound:ident) => {
        #[doc(hidden)]
        impl<'a, T: DeviceCopy, $($generics)*> DeviceInput<'a, T> for $ty
        where
            $ty: $bound,
        {
            fn into_input(self) -> DeviceView<'a, T> {
                unreachable!("no type has this bound")
            }
        }
    };
    (output $rank:tt [$($generics:tt)*] $ty:ty : $bound:ident) => {
        #[doc(hidden)]
        impl<'a, T: DeviceCopy, $($generics)*> DeviceOutput<'a, T, $rank> for $ty
        where
            $ty: $bound,
        {
            fn into_output(self) -> DeviceViewMut<'a, T, $rank> {
                unreachable!("no type has this bound")
            }
        }
    };
}

explain!(input [] DeviceBuffer<T>: Borrow);
explain!(input [] &'a mut DeviceBuffer<T>: SharedBorrow);
explain!(input [] Vec<T>: DeviceMemory);
explain!(input [] &'a Vec<T>: DeviceMemory);
explain!(input [] &'a [T]: DeviceMemory);
explain!(input [const N: usize] [T; N]: DeviceMemory);
explain!(input [const N: usize] &'a [T; N]: DeviceMemory);
explain!(output R [const R: usize] DeviceBuffer<T>: Borrow);
explain!(output R [const R: usize] &'a DeviceBuffer<T>: MutableBorrow);
explain!(output R [const R: usize] DeviceView<'a, T>: MutableBorrow);
explain!(output R [const R: usize] Vec<T>: DeviceMemory);
explain!(output R [const R: usize] &'a mut Vec<T>: DeviceMemory);
explain!(output R [const R: usize] &'a mut [T]: DeviceMemory);
explain!(output R [const R: usize, const N: usize] &'a mut [T; N]: DeviceMemory);
explain!(output 2 [] &'a mut DeviceBuffer<T>: Rank2);
