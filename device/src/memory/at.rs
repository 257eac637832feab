//! Indexing by `u32`, the type in which threads and blocks are counted.

use crate::memory::plane::Plane;

/// Indexing by `u32`, as CUDA C++ indexes by `int`: `x.at(i)` is `x[i as usize]`.
///
/// Threads, blocks and lanes are counted in `u32`, in which a GPU computes twice as fast as in `usize`. With
/// this trait such numbers need no conversion to index rows of a [`Plane`] or elements of a slice, an array
/// or shared memory.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// Each element, and 10 times the one at the same place of the row below; of the last row, only the element.
/// #[kernel(block = 32)]
/// pub fn below(t: Thread<1>, x: Plane<u32>, mut y: DisjointSlice<u32>, mut tile: Shared<[u32; 32]>) {
///     let i = t.index();
///     let (row, column) = (i.get32() / x.at(0).len32(), i.get32() % x.at(0).len32());
///     tile.fill_with(&t, |_| x.get_at(row + 1).map_or(0, |row| *row.at(column)));
///     let tile = t.publish(tile);
///     if let Some(y) = y.get_mut(i) {
///         *y = x.at(row).at(column) + 10 * tile.at(t.thread_rank());
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&(0..64).collect::<Vec<u32>>())?;
/// let mut y = stream.zeros(64)?;
/// kernels::below(&stream, Grid::blocks(2), x.view_2d(16, 4)?, &mut y)?;
/// let y = stream.download(&y)?;
/// assert_eq!((y[0], y[17], y[63]), (160, 17 + 330, 63));
/// # Ok(()) }
/// ```
pub trait At {
    /// The element.
    type Element: ?Sized;

    /// Element `i`.
    ///
    /// # Panics
    /// If `i` is out of bounds, as `x[i as usize]` does.
    fn at(&self, i: u32) -> &Self::Element;

    /// Element `i`, or `None` if `i` is out of bounds.
    fn get_at(&self, i: u32) -> Option<&Self::Element>;

    /// The number of elements, or `u32::MAX` if there are more, which only slices of `wide` kernels have.
    fn len32(&self) -> u32;
}

impl<T> At for [T] {
    type Element = T;

    #[track_caller]
    #[inline(always)]
    fn at(&self, i: u32) -> &T {
        &self[i as usize]
    }

    #[inline(always)]
    fn get_at(&self, i: u32) -> Option<&T> {
        self.get(i as usize)
    }

    #[inline(always)]
    fn len32(&self) -> u32 {
        narrow(self.len())
    }
}

/// The rows of a plane.
impl<T> At for Plane<'_, T> {
    type Element = [T];

    #[track_caller]
    #[inline(always)]
    fn at(&self, row: u32) -> &[T] {
        &self[row as usize]
    }

    #[inline(always)]
    fn get_at(&self, row: u32) -> Option<&[T]> {
        self.row(row as usize)
    }

    #[inline(always)]
    fn len32(&self) -> u32 {
        narrow(self.height())
    }
}

#[inline(always)]
pub(crate) fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_of_32_bits_give_the_elements_of_usize() {
        let x = [[1, 2, 3], [4, 5, 6]];
        assert_eq!((*x.at(1).at(2), x.len32(), x.get_at(2)), (6, 2, None));
        let plane = Plane::new(x.as_flattened(), 2, 3).unwrap();
        assert_eq!((*plane.at(2).at(0), plane.len32(), plane.get_at(3)), (5, 3, None));
        let many = [(); usize::MAX];
        assert_eq!((many.len32(), many.get_at(u32::MAX)), (u32::MAX, Some(&())));
    }

    #[test]
    #[should_panic(expected = "the len is 2 but the index is 2")]
    fn a_number_too_great_is_a_panic() {
        [0, 1].at(2);
    }
}
