//! Checks arguments of kernels from text against the types of their parameters.

use std::any::type_name;

use bytemuck::NoUninit;
use ferrogrid_build::{Facts, Travels};
use ferrogrid_device::__derive::of_atomic;
use ferrogrid_device::DeviceCopy;

use super::kernel::SourceEntry;
use crate::error::Result;
use crate::error::source::SourceError;
use crate::launch::extent::{Extents, Lengths, check_narrow, longest};
use crate::launch::parameter::shared::SharedLayout;

/// The parameters of a kernel, met one after the other.
pub struct Slots {
    entry: &'static SourceEntry,
    next: usize,
    /// The number of each parameter that was met, and the lengths of its argument.
    pub(super) lengths: Vec<(usize, Lengths)>,
    /// The shared memory of the block's slices so far.
    pub(super) shared: SharedLayout,
}

/// The parameter that an argument is for.
#[derive(Clone, Copy)]
pub struct Slot {
    entry: &'static SourceEntry,
    number: usize,
    lengths: Lengths,
}

impl Slots {
    pub(super) fn of(entry: &'static SourceEntry) -> Self {
        Slots { entry, next: 0, lengths: Vec::new(), shared: SharedLayout::of(&entry.kernel) }
    }

    /// The next parameter that takes an argument, which has these lengths. There is one: arguments have been counted.
    pub(crate) fn next(&mut self, lengths: Lengths) -> Slot {
        let parameters = &self.entry.described.parameters;
        while parameters[self.next].travels == Travels::Nowhere {
            self.next += 1;
        }
        let number = self.next;
        self.next += 1;
        self.lengths.push((number, lengths));
        Slot { entry: self.entry, number, lengths }
    }
}

impl Slot {
    pub(super) fn travels(self) -> Travels {
        self.entry.described.parameters[self.number].travels
    }

    /// Checks that the parameter is a `T` by value.
    pub(super) fn check_value<T: DeviceCopy + NoUninit>(self) -> Result<()> {
        let is_right = match self.travels() {
            Travels::Value { facts } => is::<T>(facts),
            Travels::SharedSlice { .. } => {
                is::<T>(Facts { size: None, layout: <usize as DeviceCopy>::LAYOUT })
            }
            _ => false,
        };
        self.verdict(is_right, || format!("`{}`, passed by value", type_name::<T>()))
    }

    /// Checks that the parameter reads elements `T`.
    pub(crate) fn check_input<T: DeviceCopy + NoUninit>(self) -> Result<()> {
        let is_right =
            matches!(self.travels(), Travels::Input { facts, rank } if is::<T>(facts) && rank == self.rank());
        self.check_elements::<T>(is_right, "to read")
    }

    /// Checks that the parameter changes elements `T` atomically: its form has the number of their layout.
    pub(super) fn check_atomic<T: DeviceCopy + NoUninit>(self) -> Result<()> {
        let is_right = matches!(
            self.travels(), Travels::Input { facts, rank: 1 } if has::<T>(facts, of_atomic(T::LAYOUT))
        );
        self.check_elements::<T>(is_right, "to change atomically")
    }

    /// Checks that the parameter writes elements `T`.
    pub(crate) fn check_output<T: DeviceCopy + NoUninit>(self) -> Result<()> {
        let is_right = matches!(
            self.travels(), Travels::Output { facts, rank, .. } if is::<T>(facts) && rank == self.rank()
        );
        self.check_elements::<T>(is_right, "to write")
    }

    fn rank(self) -> usize {
        self.lengths.extents().len()
    }

    fn check_elements<T>(self, is_right: bool, what: &str) -> Result<()> {
        let found = || format!("elements `{}` of rank {} {what}", type_name::<T>(), self.rank());
        self.verdict(is_right, found)?;
        if self.entry.described.wide {
            return Ok(());
        }
        let (name, length) = (self.entry.names[self.number].0, longest(&self.lengths));
        check_narrow(&self.entry.kernel, length, || [(name, length)])
    }

    fn verdict(self, is_right: bool, found: impl FnOnce() -> String) -> Result<()> {
        if is_right {
            return Ok(());
        }
        let (parameter, expected) = self.entry.names[self.number];
        let (kernel, found) = (self.entry.kernel.name(), found().into());
        Err(SourceError::ArgumentType { kernel, parameter, expected, found }.into())
    }
}

/// Whether the device compiler's type is `T`: the same name, fields and layout, as far as `T` is known by these.
fn is<T: DeviceCopy>(facts: Facts) -> bool {
    has::<T>(facts, T::LAYOUT)
}

/// Whether the kernel has elements of `T`'s size and of this layout.
fn has<T: DeviceCopy>(facts: Facts, layout: u64) -> bool {
    let size = (size_of::<T>() as u64, align_of::<T>() as u64);
    T::LAYOUT != 0 && facts.layout == layout && facts.size.is_none_or(|it| it == size)
}
