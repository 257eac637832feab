//! The shared memory of a block: its size, and the offsets of its slices.

use crate::kernel::Kernel;
use ferrogrid_device::shared::ALIGNMENT;

/// The shared memory of a block, laid out slice by slice behind the regions of static size. What does not
/// fit into an address space counts as `usize::MAX` bytes, which no device has.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct SharedLayout {
    bytes: usize,
}

impl SharedLayout {
    /// The regions of static size of `kernel`.
    #[inline]
    pub fn of(kernel: &Kernel) -> Self {
        SharedLayout { bytes: kernel.shared_size_bytes() }
    }

    /// Adds a slice of `length` elements: its offset in bytes, and its length, as the kernel's parameters.
    #[inline]
    pub fn slice<T>(&mut self, length: usize) -> [usize; 2] {
        self.slice_of(size_of::<T>(), length)
    }

    /// The same for elements of `size` bytes.
    #[inline]
    pub(crate) fn slice_of(&mut self, size: usize, length: usize) -> [usize; 2] {
        let offset = self.bytes;
        let end = size.checked_mul(length).and_then(|bytes| bytes.checked_add(offset));
        self.bytes = end.and_then(|end| end.checked_next_multiple_of(ALIGNMENT)).unwrap_or(usize::MAX);
        [offset, length]
    }

    /// How many bytes a block needs in all.
    #[inline]
    pub fn bytes(self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_follow_each_other_aligned() {
        let mut layout = SharedLayout { bytes: 32 };
        assert_eq!(layout.slice::<f32>(5), [32, 5]);
        assert_eq!(layout.slice::<u8>(1), [64, 1]);
        assert_eq!(layout.slice::<f64>(0), [80, 0]);
        assert_eq!(layout.bytes(), 80);
    }

    #[test]
    fn a_length_beyond_the_address_space_stays_too_large() {
        let mut layout = SharedLayout { bytes: 0 };
        layout.slice::<f64>(usize::MAX / 2);
        assert_eq!(layout.bytes(), usize::MAX);
        layout.slice::<f64>(3);
        assert_eq!(layout.bytes(), usize::MAX);
    }
}
