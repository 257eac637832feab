//! Arguments of a foreign launch whose types the caller vouches for: values, and pointers to buffers. It
//! must not know what the kernel's parameters are.

use std::ffi::c_void;
use std::ptr::{from_ref, null};

use ferrogrid_device::DeviceCopy;

use crate::atomic_view::DeviceAtomicView;
use crate::buffer::DeviceBuffer;
use crate::memory::Access;
use crate::pointer::{DevicePtr, DevicePtrMut};
use crate::view::{DeviceView, DeviceViewMut};
use ferrogrid_device::atomic::AtomicValue;

/// The most parameters of a foreign launch.
const MOST: usize = 48;

/// The parameters of one launch: addresses and sizes, on the stack, and the memory that they lead to.
#[doc(hidden)]
pub struct ParameterList<'a> {
    addresses: [*const c_void; MOST],
    sizes: [usize; MOST],
    len: usize,
    accesses: [Option<Access<'a>>; MOST],
}

impl<'a> ParameterList<'a> {
    pub(crate) fn new() -> Self {
        ParameterList { addresses: [null(); MOST], sizes: [0; MOST], len: 0, accesses: [None; MOST] }
    }

    /// The parameter at `address`, of `size` bytes.
    fn push(&mut self, address: *const c_void, size: usize) {
        self.addresses[self.len] = address;
        self.sizes[self.len] = size;
        self.len += 1;
    }

    /// The same, which leads to the memory of `access`.
    fn push_pointer(&mut self, address: *const c_void, access: Access<'a>) {
        self.accesses[self.len] = Some(access);
        self.push(address, size_of::<*const u8>());
    }

    pub(crate) fn addresses(&self) -> &[*const c_void] {
        &self.addresses[..self.len]
    }

    pub(crate) fn sizes(&self) -> &[usize] {
        &self.sizes[..self.len]
    }

    pub(crate) fn accesses(&self) -> impl Iterator<Item = &Access<'a>> {
        self.accesses[..self.len].iter().flatten()
    }
}

/// An argument in the form in which its parameters can be listed. Never moved between that and the launch.
#[doc(hidden)]
pub trait Held {
    /// Adds its parameters.
    fn list<'a>(&'a self, list: &mut ParameterList<'a>);
}

/// A value, passed as it is.
#[doc(hidden)]
pub struct Value<T>(pub(super) T);

impl<T: DeviceCopy> Held for Value<T> {
    fn list<'a>(&'a self, list: &mut ParameterList<'a>) {
        list.push(from_ref(&self.0).cast(), size_of::<T>());
    }
}

/// The address of the first element of a view.
#[doc(hidden)]
pub struct PointerTo<V>(pub(super) V);

/// The address of the first element of a view, and the number of elements.
#[doc(hidden)]
pub struct Elements<V>(pub(super) V);

macro_rules! held_views {
    ($( [$($generics:tt)*] $view:ty ),*) => { $(
        impl<$($generics)*> Held for PointerTo<$view> {
            fn list<'b>(&'b self, list: &mut ParameterList<'b>) {
                list.push_pointer(self.0.params()[0], self.0.access());
            }
        }
    )* };
}

held_views!(['a, T] DeviceView<'a, T>, ['a, T] DeviceViewMut<'a, T, 1>, ['a, T] DeviceViewMut<'a, T, 2>);

macro_rules! held_elements {
    ($($view:ident),*) => { $(
        impl<T> Held for Elements<$view<'_, T>> {
            fn list<'a>(&'a self, list: &mut ParameterList<'a>) {
                let [start, len] = self.0.params();
                list.push_pointer(start, self.0.access());
                list.push(len, size_of::<usize>());
            }
        }
    )* };
}

held_elements!(DeviceView, DeviceViewMut);

/// What may be an argument of [`ForeignFunction::launch`](super::ForeignFunction::launch): a value, which
/// is passed as it is, or device memory, whose address is passed: `&buffer`, `&mut buffer`, a view, an
/// atomic view. The kernel's order with other work on that memory is kept. A raw [`DevicePtr`] is passed
/// without that.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a foreign kernel",
    label = "neither a `DeviceCopy` value nor device memory",
    note = "pass numbers and structs by value, and device memory as `&buffer`, `&mut buffer` or a view"
)]
pub trait LaunchArgument {
    #[doc(hidden)]
    type Held: Held;
    #[doc(hidden)]
    fn hold(self) -> Self::Held;
}

impl<T: DeviceCopy> LaunchArgument for T {
    type Held = Value<T>;
    fn hold(self) -> Value<T> {
        Value(self)
    }
}

impl<'a, T: DeviceCopy> LaunchArgument for &'a DeviceBuffer<T> {
    type Held = PointerTo<DeviceView<'a, T>>;
    fn hold(self) -> Self::Held {
        PointerTo(self.view())
    }
}

impl<'a, T: DeviceCopy> LaunchArgument for &'a mut DeviceBuffer<T> {
    type Held = PointerTo<DeviceViewMut<'a, T>>;
    fn hold(self) -> Self::Held {
        PointerTo(self.view_mut())
    }
}

impl<'a, T> LaunchArgument for DeviceView<'a, T> {
    type Held = PointerTo<DeviceView<'a, T>>;
    fn hold(self) -> Self::Held {
        PointerTo(self)
    }
}

impl<'a, T> LaunchArgument for DeviceViewMut<'a, T, 1> {
    type Held = PointerTo<Self>;
    fn hold(self) -> Self::Held {
        PointerTo(self)
    }
}

impl<'a, T> LaunchArgument for DeviceViewMut<'a, T, 2> {
    type Held = PointerTo<Self>;
    fn hold(self) -> Self::Held {
        PointerTo(self)
    }
}

impl<'a, T: AtomicValue> LaunchArgument for DeviceAtomicView<'a, T> {
    type Held = PointerTo<DeviceView<'a, T>>;
    fn hold(self) -> Self::Held {
        PointerTo(self.as_part())
    }
}

// SAFETY of the two below: an address as 8 bytes; what it leads to is vouched for at the launch.
impl<T: 'static> LaunchArgument for DevicePtr<T> {
    type Held = Value<u64>;
    fn hold(self) -> Value<u64> {
        Value(self.as_raw().expose_provenance() as u64)
    }
}

impl<T: 'static> LaunchArgument for DevicePtrMut<T> {
    type Held = Value<u64>;
    fn hold(self) -> Value<u64> {
        Value(self.as_raw().expose_provenance() as u64)
    }
}

/// The arguments of a foreign launch: a tuple of up to 24 of [`LaunchArgument`], in the kernel's order.
pub trait ForeignArguments {
    #[doc(hidden)]
    fn with_list<R>(self, use_list: impl FnOnce(&ParameterList<'_>) -> R) -> R;
}

macro_rules! tuples {
    ($($argument:ident)*) => {
        impl<$($argument: LaunchArgument),*> ForeignArguments for ($($argument,)*) {
            #[allow(non_snake_case, reason = "named as their types")]
            fn with_list<R>(self, use_list: impl FnOnce(&ParameterList<'_>) -> R) -> R {
                let ($($argument,)*) = self;
                $( let $argument = $argument.hold(); )*
                #[allow(unused_mut, reason = "there are no arguments")]
                let mut list = ParameterList::new();
                $( $argument.list(&mut list); )*
                use_list(&list)
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

pub(super) use for_each_tuple;

for_each_tuple!(tuples);
