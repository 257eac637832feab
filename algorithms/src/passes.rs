//! Where each of several passes over memory reads and writes.

use bytemuck::Pod;
use ferrogrid_device::DeviceCopy;

use crate::{DeviceAtomicView, DeviceView, DeviceViewMut, Result, Stream, Temporary};

/// The most elements that a launch takes of more: its blocks count in 32 bits.
pub(crate) const PORTION: usize = 1 << 30;

/// From where to where a pass moves elements: the last one ends in the output.
#[derive(Clone, Copy)]
pub(crate) struct Turn {
    is_first: bool,
    to_output: bool,
}

impl Turn {
    /// That of pass `number` of so many.
    pub(crate) fn of(number: u32, passes: u32) -> Self {
        Turn { is_first: number == 0, to_output: (passes - number) % 2 == 1 }
    }
}

/// Elements that take several passes: passes alternate between the output and memory of their own.
pub(crate) struct Column<'a, 'b, T> {
    pub(crate) input: DeviceView<'a, T>,
    pub(crate) output: DeviceViewMut<'b, T>,
    other: Option<Temporary<T>>,
}

impl<'a, 'b, T: Pod + DeviceCopy> Column<'a, 'b, T> {
    pub(crate) fn new(input: DeviceView<'a, T>, output: DeviceViewMut<'b, T>) -> Self {
        Column { input, output, other: None }
    }

    pub(crate) fn turn(
        &mut self,
        stream: &Stream,
        turn: Turn,
    ) -> Result<(DeviceView<'_, T>, DeviceAtomicView<'_, T>)> {
        let needs_other = !(turn.is_first && turn.to_output);
        if needs_other && self.other.is_none() {
            self.other = Some(stream.temporary(self.input.len())?);
        }
        let output = &mut self.output;
        Ok(match (turn, &mut self.other) {
            (Turn { is_first: true, to_output: false }, Some(other)) => {
                (self.input, other.view_mut().into_atomic())
            }
            (Turn { to_output: true, .. }, Some(other)) => (other.view(), output.reborrow().into_atomic()),
            (Turn { .. }, Some(other)) => (output.view(), other.view_mut().into_atomic()),
            (Turn { .. }, None) => (self.input, output.reborrow().into_atomic()),
        })
    }
}
