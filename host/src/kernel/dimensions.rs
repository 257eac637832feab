//! Numbers of blocks and threads along the axes of a grid.

/// A number of blocks or threads along each axis: a `u32` or `usize` for rank 1, `[u32; R]` or `[usize; R]` for any
/// rank; and `i32`, the default type of literals.
///
/// A number that exceeds the device's limits or 32 bits, or is negative, is an error of the launch.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::Dimensions;
///
/// assert_eq!(256.dimensions(), [256]); // a literal without a type
/// assert_eq!([32_u32, 8].dimensions(), [32, 8]);
/// let blocks: usize = 1000_usize.div_ceil(256); // as `div_ceil` gives it, without a conversion
/// assert_eq!(Grid::<1>::new(blocks, 256), Grid::new(4_u32, 256_u32));
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the number of blocks or threads of this grid",
    label = "expected `u32` or `usize`, or an array of them",
    note = "a grid of rank 1 takes numbers, `Grid::new(blocks, 256)`, of rank 2 `[x, y]`, of rank 3 `[x, y, z]`; of other integers `usize::try_from` makes one",
    note = "for a thread for each of `n` elements there is `Grid::cover(n)`"
)]
pub trait Dimensions<const R: usize> {
    /// The number along each axis, x first.
    fn dimensions(self) -> [i128; R];
}

macro_rules! dimensions {
    ($($number:ty),*) => { $(
        impl Dimensions<1> for $number {
            #[inline]
            fn dimensions(self) -> [i128; 1] {
                [self as i128]
            }
        }

        impl<const R: usize> Dimensions<R> for [$number; R] {
            #[inline]
            fn dimensions(self) -> [i128; R] {
                self.map(|number| number as i128)
            }
        }
    )* };
}

dimensions!(u32, usize, i32);

/// With 1 along further axes. A number that has not 32 bits fits no device, as neither does the one that stands for it.
pub(crate) fn padded<const R: usize>(dimensions: impl Dimensions<R>) -> [u32; 3] {
    let dimensions = dimensions.dimensions();
    std::array::from_fn(|axis| {
        dimensions.get(axis).map_or(1, |&number| u32::try_from(number.max(0)).unwrap_or(u32::MAX))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_are_padded_with_ones_and_fit_no_device_if_they_fit_no_number() {
        assert_eq!(padded(7_u32), [7, 1, 1]);
        assert_eq!(padded([2_u32, 3]), [2, 3, 1]);
        assert_eq!(padded([2_i32, -3, 4]), [2, 0, 4]);
        assert_eq!(padded([1_usize << 32, u32::MAX as usize]), [u32::MAX, u32::MAX, 1]);
    }
}
