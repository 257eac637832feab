//! Atomic views of a device buffer: the arguments for a kernel's `&[DeviceAtomic<T>]`.

use std::marker::PhantomData;
use std::ops::RangeBounds;

use derive_where::derive_where;
use ferrogrid_device::DeviceCopy;
use ferrogrid_device::atomic::AtomicForm;

use crate::device::Device;
use crate::error::Result;
use crate::memory::Memory;
use crate::order::Use;
use crate::stream::Stream;
use crate::view::DeviceView;
use crate::view::argument::{DeviceInput, LaunchInput};

/// Elements of a device buffer, to be changed by many threads at once: what `&[AtomicU32]` is to a
/// `Vec<u32>`. Made by [`DeviceBuffer::as_atomic`](crate::DeviceBuffer::as_atomic), and given to kernels
/// that take `&[DeviceAtomic<T, S>]`, with any scope `S`, core's `&[AtomicU32]` and the like, or structs of atomics
/// ([`AtomicForm`]).
///
/// It borrows the buffer mutably, so that nothing else uses these elements meanwhile, and is `Copy`: it
/// may be given to several parameters and several launches. Launches on different streams are ordered
/// as if each wrote the whole buffer.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// Counts the elements of `x` by their value.
/// #[kernel]
/// pub fn count(t: Thread<1>, x: &[u8], counts: &[DeviceAtomic<u32>]) {
///     if let Some(&x) = x.get(t.index().get()) {
///         counts[x as usize].fetch_add(1, atomic::Ordering::Relaxed);
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&[2_u8, 0, 2, 3])?;
/// let mut counts = stream.zeros::<u32>(4)?;
/// let shared = counts.as_atomic();
/// assert!(shared.len() == 4 && !shared.is_empty() && shared.device() == stream.device());
/// kernels::count(&stream, Grid::cover(4), &x, shared)?;
/// kernels::count(&stream, Grid::cover(4), &x, shared)?; // it is `Copy`
/// assert_eq!(stream.download(&counts)?, [2, 0, 4, 2]);
/// # Ok(()) }
/// ```
#[derive_where(Clone, Copy, Debug)]
pub struct DeviceAtomicView<'a, T> {
    view: DeviceView<'a, T>,
    elements: PhantomData<&'a mut [T]>,
}

// SAFETY: a view is a `&[DeviceAtomic<T>]` in device memory; launches from several host threads at once
// are ordered as those of parts that are written.
unsafe impl<T: Send> Send for DeviceAtomicView<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for DeviceAtomicView<'_, T> {}

/// A part, though it may be the whole: views are copied, so launches from several threads may begin at
/// once, and only the uses of parts are kept apart then (see `order`).
const SHARED_USE: Use = Use::WritePart;

impl<'a, T: DeviceCopy> DeviceAtomicView<'a, T> {
    /// `start` must be followed by `len` elements of `memory`, all borrowed mutably for `'a`.
    pub(crate) fn new(start: *mut T, len: usize, memory: &'a Memory) -> Self {
        let view = DeviceView::with_usage(start, len, memory, SHARED_USE);
        DeviceAtomicView { view, elements: PhantomData }
    }

    /// The same elements without their atomic type, in use as they are here.
    pub(crate) fn as_part(&self) -> DeviceView<'a, T> {
        self.view
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.view.len()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.view.is_empty()
    }

    /// The device whose memory this is.
    pub fn device(&self) -> &'a Device {
        self.view.device()
    }

    /// The elements of `range`.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let mut counts = stream.zeros::<u32>(256)?;
    /// assert_eq!(counts.as_atomic().slice(..16)?.len(), 16);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfRange`](crate::Error::OutOfRange) if the range does not lie in the view.
    pub fn slice(self, range: impl RangeBounds<usize>) -> Result<DeviceAtomicView<'a, T>> {
        Ok(DeviceAtomicView { view: self.view.slice(range)?, ..self })
    }
}

impl<'a, A: AtomicForm> LaunchInput<'a, A> for DeviceAtomicView<'a, A::Value> {
    type Staged = DeviceView<'a, A>;

    #[inline]
    fn stage(self, _: &Stream) -> Result<Self::Staged> {
        Ok(self.into_input())
    }
}

impl<'a, A: AtomicForm> DeviceInput<'a, A> for DeviceAtomicView<'a, A::Value> {
    fn into_input(self) -> DeviceView<'a, A> {
        let (start, len) = (self.view.start().cast(), self.view.len());
        DeviceView::with_usage(start, len, self.view.memory(), SHARED_USE)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Device, Result};

    #[test]
    fn a_view_of_no_elements_is_empty() -> Result<()> {
        let mut counts = Device::cpu().new_stream()?.zeros::<u32>(3)?;
        assert!(!counts.as_atomic().is_empty());
        let none = counts.as_atomic().slice(3..)?;
        assert_eq!((none.is_empty(), none.len()), (true, 0));
        Ok(())
    }
}
