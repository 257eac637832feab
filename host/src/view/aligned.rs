//! Views with several numbers grouped into elements of 16 bytes.

use ferrogrid_device::{Aligned16, DeviceCopy};

use crate::error::{Error, Result};
use crate::view::{DeviceView, DeviceViewMut};

impl<'a, T: DeviceCopy> DeviceView<'a, T> {
    /// The same memory as groups of `N` elements of 16 bytes together, for a kernel that takes
    /// `&[Aligned16<[T; N]>]`. It is a compile error if `N` elements do not have 16 bytes.
    ///
    /// # Errors
    /// [`Error::UnevenGroups`] if the length is no multiple of `N`; [`Error::UnalignedGroups`] if the
    /// first element is not at a multiple of 16 bytes. (Buffers are; so are slices of them whose start
    /// is a multiple of `N`.)
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let buffer = stream.upload(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])?;
    /// let fours = buffer.view().as_aligned16::<4>()?;
    /// assert_eq!(stream.download(fours)?[1], [5.0, 6.0, 7.0, 8.0].into());
    /// assert!(buffer.slice(..7)?.as_aligned16::<4>().is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// ```compile_fail,E0080
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let buffer = stream.upload(&[0.0_f32; 9])?;
    /// let threes = buffer.view().as_aligned16::<3>()?; // 12 bytes
    /// # Ok(()) }
    /// ```
    pub fn as_aligned16<const N: usize>(self) -> Result<DeviceView<'a, Aligned16<[T; N]>>> {
        let groups = groups::<T, N>(self.start(), self.len())?;
        Ok(self.with_elements(groups))
    }
}

impl<'a, T: DeviceCopy> DeviceViewMut<'a, T> {
    /// The same memory as groups of `N` elements of 16 bytes together, for a kernel that takes
    /// `DisjointSlice<Aligned16<[T; N]>>`. It is a compile error if `N` elements do not have 16 bytes.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// Doubles four elements in each thread, by one load and one store of 16 bytes.
    /// #[kernel]
    /// pub fn double(t: Thread<1>, mut x: DisjointSlice<Aligned16<[f32; 4]>>) {
    ///     if let Some(x) = x.get_mut(t.index()) {
    ///         *x = x.map(|x| 2.0 * x).into();
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let mut x = stream.upload(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])?;
    /// kernels::double(&stream, Grid::cover(2), x.view_mut().as_aligned16::<4>()?)?;
    /// assert_eq!(stream.download(&x)?, [2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`DeviceView::as_aligned16`].
    pub fn as_aligned16<const N: usize>(self) -> Result<DeviceViewMut<'a, Aligned16<[T; N]>>> {
        let groups = groups::<T, N>(self.start(), self.len())?;
        Ok(self.with_elements(groups))
    }
}

/// The number of groups of `N` elements, if they are whole and aligned.
fn groups<T, const N: usize>(start: *const T, length: usize) -> Result<usize> {
    const { assert!(size_of::<[T; N]>() == 16, "a group has exactly 16 bytes: 4 of `f32`, 2 of `f64`") };
    if !length.is_multiple_of(N) {
        return Err(Error::UnevenGroups { length, group: N });
    }
    match start.addr() % 16 {
        0 => Ok(length / N),
        excess if length > 0 => Err(Error::UnalignedGroups { group: N, excess }),
        _ => Ok(0),
    }
}

#[cfg(test)]
mod tests {
    use std::ptr::without_provenance;

    use super::*;

    /// Every place of the first element, to the byte, and every length.
    #[test]
    fn only_whole_groups_at_multiples_of_sixteen_bytes_are_taken() {
        for (offset, length) in (0..=33).flat_map(|offset| (0..=9).map(move |length| (offset, length))) {
            let found = groups::<f32, 4>(without_provenance(4096 + offset), length);
            let expected = match (length % 4, offset % 16) {
                (1.., _) => Err(Error::UnevenGroups { length, group: 4 }),
                (0, 1..) if length > 0 => Err(Error::UnalignedGroups { group: 4, excess: offset % 16 }),
                _ => Ok(length / 4),
            };
            assert_eq!(found, expected, "{length} from {offset}");
        }
        assert_eq!(groups::<u8, 16>(without_provenance(4112), 32), Ok(2));
        assert_eq!(
            groups::<f64, 2>(without_provenance(4112 + 8), 2),
            Err(Error::UnalignedGroups { group: 2, excess: 8 })
        );
    }
}
