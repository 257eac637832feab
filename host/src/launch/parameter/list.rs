//! The argument lists of kernels without launch functions: foreign kernels, and those from text.

use std::ffi::c_void;
use std::ptr::from_ref;

use ferrogrid_device::DeviceCopy;
use smallvec::SmallVec;

use crate::error::Result;
use crate::launch::extent::{Extents, Lengths};
use crate::memory::access::Access;
use crate::stream::Stream;
use crate::view::argument::{Staged, StagedInput, StagedOutput};

/// The greatest alignment that CUDA's own types have, for copies of parameters of unknown types.
pub(crate) const ALIGNMENT: usize = 16;

/// The parameters of one launch: the address and the size in bytes of each, and the memory that they lead to.
#[doc(hidden)]
#[derive(Default)]
pub struct ParameterList<'a> {
    addresses: SmallVec<[*const c_void; 16]>,
    sizes: SmallVec<[usize; 16]>,
    accesses: SmallVec<[Access<'a>; 16]>,
}

impl<'a> ParameterList<'a> {
    /// All parameters of `arguments`.
    pub(crate) fn of(arguments: &'a impl Held) -> Self {
        let mut list = ParameterList::default();
        arguments.list(&mut list);
        list
    }

    fn push<T>(&mut self, value: &'a T) {
        self.push_address(from_ref(value).cast(), size_of::<T>());
    }

    fn push_address(&mut self, address: *const c_void, size: usize) {
        self.addresses.push(address);
        self.sizes.push(size);
    }

    /// The pointer, or handle, at `address`, which leads to the memory of `access`.
    pub(crate) fn push_pointer(&mut self, address: *const c_void, access: Access<'a>) {
        self.push_address(address, size_of::<*const u8>());
        self.accesses.push(access);
    }

    pub(crate) fn addresses(&self) -> &[*const c_void] {
        &self.addresses
    }

    pub(crate) fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    pub(crate) fn accesses(&self) -> &[Access<'a>] {
        &self.accesses
    }
}

/// An argument on its device, in a form in which its parameters can be listed. Never moved between that and the launch.
#[doc(hidden)]
pub trait Held: Sized {
    /// Adds its parameters.
    fn list<'a>(&'a self, list: &mut ParameterList<'a>);

    /// After the launch: copies results to the host, and waits for the copy.
    fn finish(self, _: &Stream) -> Result<()> {
        Ok(())
    }
}

/// A value, passed as it is.
#[doc(hidden)]
pub struct Value<T>(pub(crate) T);

impl<T> Held for Value<T> {
    fn list<'a>(&'a self, list: &mut ParameterList<'a>) {
        list.push(&self.0);
    }
}

/// The address of the first element of an argument in memory, and its lengths if the kernel takes them.
#[doc(hidden)]
pub struct Elements<S> {
    staged: S,
    start: *const c_void,
    lengths: Lengths,
    has_lengths: bool,
}

impl<S: Staged> Elements<S> {
    /// Elements to read.
    pub(crate) fn input<T: DeviceCopy, const R: usize>(staged: S) -> Self
    where
        S: StagedInput<T, R>,
    {
        let view = staged.input();
        let (start, lengths) = (view.start().cast(), Lengths::new(*view.extents()));
        Elements { staged, start, lengths, has_lengths: true }
    }

    /// Elements to write.
    pub(crate) fn output<T: DeviceCopy, const R: usize>(mut staged: S) -> Self
    where
        S: StagedOutput<T, R>,
    {
        let view = staged.output();
        let (start, lengths) = (view.start().cast_const().cast(), Lengths::new(*view.extents()));
        Elements { staged, start, lengths, has_lengths: true }
    }

    /// The address alone.
    pub(crate) fn without_lengths(self) -> Self {
        Elements { has_lengths: false, ..self }
    }

    pub(crate) fn lengths(&self) -> Lengths {
        self.lengths
    }
}

impl<S: Staged> Held for Elements<S> {
    fn list<'a>(&'a self, list: &mut ParameterList<'a>) {
        list.push_pointer(from_ref(&self.start).cast(), self.staged.access());
        if self.has_lengths {
            // A kernel that is not `wide` reads the low half of a length, at the address of the whole.
            self.lengths.extents().iter().for_each(|length| list.push(length));
        }
    }

    fn finish(self, stream: &Stream) -> Result<()> {
        self.staged.finish(stream)
    }
}

/// Calls the macro for the first 0, 1, 2, ... 24 pairs of names: of an argument, and of its parameter.
macro_rules! for_each_tuple {
    ($macro:ident) => {
        $crate::launch::parameter::list::for_each_tuple!($macro: []
            A PA B PB C PC D PD E PE F PF G PG H PH I PI J PJ K PK L PL
            M PM N PN O PO P PP Q PQ S PS T PT U PU V PV W PW X PX Y PY
        );
    };
    ($macro:ident: [$($done:ident)*]) => { $macro!($($done)*); };
    ($macro:ident: [$($done:ident)*] $next:ident $other:ident $($rest:ident)*) => {
        $macro!($($done)*);
        $crate::launch::parameter::list::for_each_tuple!($macro: [$($done)* $next $other] $($rest)*);
    };
}

pub(crate) use for_each_tuple;

macro_rules! held_tuples {
    ($($argument:ident $parameter:ident)*) => {
        #[allow(non_snake_case, unused_variables, reason = "named as their types; there may be none")]
        impl<$($argument: Held),*> Held for ($($argument,)*) {
            fn list<'a>(&'a self, list: &mut ParameterList<'a>) {
                let ($($argument,)*) = self;
                $( $argument.list(list); )*
            }

            fn finish(self, stream: &Stream) -> Result<()> {
                let ($($argument,)*) = self;
                $( $argument.finish(stream)?; )*
                Ok(())
            }
        }
    };
}

for_each_tuple!(held_tuples);
