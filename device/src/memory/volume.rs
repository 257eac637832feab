//! [`Volume`]: a slice as layers of rows.

use core::marker::PhantomData;
use core::ops::Index;

use crate::memory::plane::Plane;

/// The first `depth` layers of `height` rows of `width` elements of a slice: a [`Plane`] in three dimensions.
/// As a kernel's parameter, `x: Volume<f32>`, it takes a view of rank 3, `buffer.view_3d(width, height,
/// depth)?`. A kernel can also make one of a slice ([`Volume::new`]).
///
/// `volume[[layer, row, column]]` is an element, and [`Volume::layer`] a plane. As with planes, an index that
/// the compiler knows to be inside costs no check.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// The sum of each element and those of the six beside it that exist.
/// #[kernel]
/// pub fn stencil(t: Thread<3>, x: Volume<f32>, mut y: DisjointSlice<f32, 3>) {
///     let i = t.index();
///     let Some(y) = y.get_mut(i) else { return };
///     let [column, row, layer] = i.position();
///     let beside = [
///         (layer.wrapping_sub(1), row, column), (layer + 1, row, column),
///         (layer, row.wrapping_sub(1), column), (layer, row + 1, column),
///         (layer, row, column.wrapping_sub(1)), (layer, row, column + 1),
///     ];
///     let beside = beside.into_iter().filter_map(|(layer, row, column)| x.get(layer, row, column));
///     *y = x[[layer, row, column]] + beside.sum::<f32>();
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&(0..24).map(|x| x as f32).collect::<Vec<_>>())?;
/// let mut y = stream.zeros(24)?;
/// kernels::stencil(&stream, Grid::cover([4, 3, 2]), x.view_3d(4, 3, 2)?, y.view_3d_mut(4, 3, 2)?)?;
/// assert_eq!(stream.download(&y)?[0], 0.0 + 1.0 + 4.0 + 12.0);
/// # Ok(()) }
/// ```
///
/// From a slice:
///
/// ```
/// use ferrogrid_device::Volume;
///
/// let numbers: Vec<u32> = (0..24).collect();
/// let volume = Volume::new(&numbers, 4, 3, 2).unwrap();
/// assert_eq!((volume.width(), volume.height(), volume.depth()), (4, 3, 2));
/// assert_eq!((volume[[1, 2, 3]], volume.layer(1).unwrap()[2][3]), (23, 23));
/// assert!(volume.get(2, 0, 0).is_none() && volume.get(0, 3, 0).is_none() && volume.layer(2).is_none());
/// assert!(Volume::new(&numbers, 5, 3, 2).is_none()); // 30 elements
/// ```
pub struct Volume<'a, T> {
    /// The first of `width * height * depth` elements.
    start: *const T,
    width: usize,
    height: usize,
    depth: usize,
    /// Whether there are fewer than 2^32 elements: offsets are then computed in 32 bits.
    is_narrow: bool,
    elements: PhantomData<&'a [T]>,
}

// SAFETY: it is a `&[T]`.
unsafe impl<T: Sync> Send for Volume<'_, T> {}
// SAFETY: it is a `&[T]`.
unsafe impl<T: Sync> Sync for Volume<'_, T> {}

impl<T> Clone for Volume<'_, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Volume<'_, T> {}

impl<'a, T> Volume<'a, T> {
    /// The first `width * height * depth` elements as `depth` layers of `height` rows; `None` if there are fewer.
    #[inline(always)]
    pub fn new(elements: &'a [T], width: usize, height: usize, depth: usize) -> Option<Self> {
        // If an earlier product wraps, the last might be 0.
        let area = if depth == 0 { 0 } else { width.checked_mul(height)? };
        if area.checked_mul(depth)? > elements.len() {
            return None;
        }
        Some(Volume {
            start: elements.as_ptr(),
            width,
            height,
            depth,
            is_narrow: false,
            elements: PhantomData,
        })
    }

    /// For the code that `#[kernel]` generates.
    ///
    /// # Safety
    /// `start` points to `shape[0] * shape[1] * shape[2]` elements that are not written during `'a`.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn from_raw_parts(start: *const T, [width, height, depth]: [usize; 3]) -> Self {
        Volume { start, width, height, depth, is_narrow: false, elements: PhantomData }
    }

    /// For the code that `#[kernel]` generates: the same volume, known to have fewer than 2^32 elements.
    ///
    /// # Safety
    /// It has, and so has a layer if there is any.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn narrow(self) -> Self {
        Volume { is_narrow: true, ..self }
    }

    /// Elements per row.
    #[inline(always)]
    pub fn width(self) -> usize {
        self.width
    }

    /// Rows per layer.
    #[inline(always)]
    pub fn height(self) -> usize {
        self.height
    }

    /// The number of layers.
    #[inline(always)]
    pub fn depth(self) -> usize {
        self.depth
    }

    /// Layer `layer`; `None` below the last.
    #[inline(always)]
    pub fn layer(self, layer: usize) -> Option<Plane<'a, T>> {
        if layer >= self.depth {
            return None;
        }
        // SAFETY: there is such a layer, so that nothing wraps up to its end, which is no further than that of the
        // elements; nor in 32 bits if the volume is narrow.
        unsafe {
            let number = if self.is_narrow {
                let area = (self.width as u32).unchecked_mul(self.height as u32);
                (layer as u32).unchecked_mul(area) as usize
            } else {
                layer.unchecked_mul(self.width.unchecked_mul(self.height))
            };
            let plane = Plane::from_raw_parts(self.start.add(number), [self.width, self.height]);
            Some(if self.is_narrow { plane.narrow() } else { plane })
        }
    }

    /// The element at `layer`, `row` and `column`; `None` outside.
    #[inline(always)]
    pub fn get(self, layer: usize, row: usize, column: usize) -> Option<&'a T> {
        // A single condition, so that a guarded load is predicated.
        if layer >= self.depth || row >= self.height || column >= self.width {
            return None;
        }
        self.layer(layer)?.get(row, column)
    }
}

impl<T> Index<[usize; 3]> for Volume<'_, T> {
    type Output = T;

    /// The element at `[layer, row, column]`.
    #[track_caller]
    #[inline(always)]
    fn index(&self, [layer, row, column]: [usize; 3]) -> &T {
        match self.get(layer, row, column) {
            Some(element) => element,
            None => outside(),
        }
    }
}

#[track_caller]
#[cold]
fn outside() -> ! {
    panic!("no element of the volume has this place")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_in_32_bits_as_in_64() {
        let numbers: [usize; 60] = core::array::from_fn(|i| i);
        for [width, height, depth] in
            [[3, 4, 5], [5, 4, 3], [60, 1, 1], [1, 1, 60], [7, 2, 4], [0, 4, 5], [3, 0, 5]]
        {
            let wide = Volume::new(&numbers, width, height, depth).unwrap();
            // SAFETY: 60 elements are fewer than 2^32.
            let narrow = unsafe { wide.narrow() };
            for volume in [wide, narrow] {
                for number in 0..width * height * depth {
                    let [layer, row, column] =
                        [number / width / height, number / width % height, number % width];
                    assert_eq!(volume[[layer, row, column]], number);
                    assert_eq!(volume.layer(layer).unwrap()[row][column], number);
                }
                assert!(volume.get(depth, 0, 0).is_none() && volume.get(0, height, 0).is_none());
                assert!(volume.get(0, 0, width).is_none() && volume.layer(depth).is_none());
            }
        }
    }

    #[test]
    fn a_volume_has_no_more_elements_than_the_slice() {
        let numbers = [0_u8; 8];
        assert!(
            Volume::new(&numbers, 2, 2, 2).is_some() && Volume::new(&numbers, 0, 3, usize::MAX).is_some()
        );
        assert!(Volume::new(&numbers, 3, 3, 1).is_none());
        assert!(Volume::new(&numbers, 1 << 32, 1 << 31, 2).is_none(), "the product would wrap to 0");
        assert!(Volume::new(&numbers, 1 << 32, 1 << 32, 1).is_none(), "the area would wrap to 0");
    }

    #[test]
    #[should_panic(expected = "no element of the volume has this place")]
    fn a_place_outside_is_a_panic() {
        let _ = Volume::new(&[0_u8; 8], 2, 2, 2).unwrap()[[0, 2, 0]];
    }
}
