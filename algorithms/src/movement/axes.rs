//! Permutations of axes: tiles through shared memory where the last axis moves, else an index for each element.

use bytemuck::Pod;
use ferrogrid_device::DeviceCopy;
use ferrogrid_device::atomic::AtomicLoadStore;
use ferrogrid_device::shared::SharedElement;

use crate::movement::striped::TILE;
use crate::movement::{assert_movable, by_size};
use crate::{DeviceInput, DeviceOutput, DeviceView, DeviceViewMut, Error, Grid, Result, Stream};
use kernels::{Gathered, Tiles, WIDTH, gather_axes, transpose_tiles};

/// The kernels.
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    use atomic::{AtomicLoadStore, Ordering::Relaxed};
    use ferrogrid::device::prelude::*;

    use crate::movement::striped::{RUN, THREADS, each, load};

    /// Rows and columns of a tile: rows of 4-byte elements are two lines of cache.
    pub const WIDTH: usize = 64;

    /// A permutation with tiles along the input's last axis, `a`, and the output's last one, `z`.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    #[repr(C)]
    pub struct Tiles {
        /// Of `a` and `z`.
        pub extents: [u64; 2],
        /// The number of tiles along `a` and `z`, and the extent of a third axis. A fourth has the rest of the blocks.
        pub blocks: [u32; 3],
        /// Makes the size a multiple of 8.
        pub padding: u32,
        /// How far apart in the input neighbours along `z` are, and along the other axes.
        pub from: [u64; 3],
        /// How far apart in the output neighbours along `a` are, and along the other axes.
        pub to: [u64; 3],
    }

    /// y <- x with other axes
    #[kernel(block = THREADS, wide, T = [u8, u16, u32, u64])]
    pub fn transpose_tiles<T: AtomicLoadStore + SharedElement + DeviceCopy + Default>(
        t: Thread<1>,
        axes: Tiles,
        x: &[T],
        y: &[DeviceAtomic<T>],
        mut tile: Shared<Padded<T, 64, 64>>,
    ) {
        let ([mut block], [from, to]) =
            (t.block_idx(), [axes.from, axes.to].map(|it| it.map(|it| it as usize)));
        let [a, z, p] = axes.blocks.map(|extent| {
            let place = block % extent;
            block /= extent;
            place as usize
        });
        let (a, z, q) = (a * WIDTH, z * WIDTH, block as usize);
        let [along_a, along_z] = [axes.extents[0] as usize - a, axes.extents[1] as usize - z];
        let first = z * from[0] + a + p * from[1] + q * from[2];
        tile.fill_with(&t, |[row, column]| {
            let place =
                if row < along_z && column < along_a { first + row * from[0] + column } else { usize::MAX };
            load(x, place)
        });
        let tile = t.publish(tile);
        let (first, rank) = (a * to[0] + z + p * to[1] + q * to[2], t.thread_rank() as usize % THREADS);
        for round in 0..WIDTH * WIDTH / THREADS {
            let number = round * THREADS + rank;
            let (row, column) = (number / WIDTH, number % WIDTH);
            if row < along_a
                && column < along_z
                && let Some(y) = y.get(first + row * to[0] + column)
            {
                y.store(tile[column][row], Relaxed);
            }
        }
    }

    /// A permutation by the index of each element.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    #[repr(C)]
    pub struct Gathered {
        /// Of the output's axes, the last one first; the fourth has the rest.
        pub extents: [u64; 3],
        /// How far apart in the input neighbours along these axes are.
        pub from: [u64; 4],
    }

    impl Gathered {
        /// Where element `i` of the output is in the input.
        #[inline(always)]
        fn place(&self, i: usize) -> usize {
            let ([a, b, c], from, i) = (self.extents, self.from, i as u64);
            let (j, k) = (i / a, i / a / b);
            (i % a * from[0] + j % b * from[1] + k % c * from[2] + k / c * from[3]) as usize
        }

        /// The same where 32 bits suffice: divisions of 64 bits would take longer than the elements. It wraps beyond the
        /// end only, where nothing is stored.
        #[inline(always)]
        fn narrow_place(&self, i: usize) -> usize {
            let ([a, b, c], from, i) =
                (self.extents.map(|it| it as u32), self.from.map(|it| it as u32), i as u32);
            let (j, k) = (i / a, i / a / b);
            let inner = i % a * from[0] + j % b * from[1] + k % c * from[2];
            (k / c).wrapping_mul(from[3]).wrapping_add(inner) as usize
        }
    }

    /// y <- x with other axes
    #[kernel(block = THREADS, wide, same_shape(x, y), T = [u8, u16, u32, u64, u128])]
    pub fn gather_axes<T: DeviceCopy + Default>(
        t: Thread<1>,
        axes: Gathered,
        x: &[T],
        mut y: DisjointWarps<T, RUN>,
    ) {
        let is_narrow = x.len() <= u32::MAX as usize;
        let place = |i| if is_narrow { axes.narrow_place(i) } else { axes.place(i) };
        y.fill_striped(&t, each(&t, y.first(&t), |i| load(x, place(i))));
    }
}

/// Shorter axes leave most of a tile empty.
const SHORTEST: usize = 16;

/// An axis of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Axis {
    extent: usize,
    /// How far apart in the input neighbours are.
    from: usize,
}

/// The axes of the output: without those of one element, and with one for several that stay together. The last is the last one
/// of the output.
fn merged_axes<const R: usize>(shape: [usize; R], axes: [usize; R]) -> Vec<Axis> {
    let mut strides = [1; R];
    for axis in (1..R).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    let mut merged: Vec<Axis> = Vec::new();
    for axis in axes.map(|axis| Axis { extent: shape[axis], from: strides[axis] }) {
        match merged.last_mut() {
            _ if axis.extent == 1 => {}
            Some(before) if before.from == axis.extent * axis.from => {
                *before = Axis { extent: before.extent * axis.extent, from: axis.from };
            }
            _ => merged.push(axis),
        }
    }
    merged
}

fn tiles_as<B: Pod + AtomicLoadStore + SharedElement + DeviceCopy + Default + transpose_tiles::Instance>(
    stream: &Stream,
    merged: &[Axis],
    x: DeviceView<impl Pod + DeviceCopy>,
    y: DeviceViewMut<impl Pod + DeviceCopy>,
) -> Result<()> {
    // From the last axis to the first, each with how far apart in the output neighbours are.
    let mut to = 1;
    let mut axes: Vec<(Axis, usize)> = Vec::new();
    for &axis in merged.iter().rev() {
        axes.push((axis, to));
        to *= axis.extent;
    }
    let (z, _) = axes.remove(0);
    let innermost =
        axes.iter().position(|(axis, _)| axis.from == 1).expect("an axis is the input's last one");
    let (a, to_a) = axes.remove(innermost);
    axes.resize(2, (Axis { extent: 1, from: 0 }, 0));
    let [(p, to_p), (q, to_q)] = [axes[0], axes[1]];
    let tiles = [a.extent.div_ceil(WIDTH), z.extent.div_ceil(WIDTH)];
    let blocks =
        [tiles[0], tiles[1], p.extent, q.extent].iter().try_fold(1_usize, |n, &it| n.checked_mul(it));
    let axes = Tiles {
        extents: [a.extent as u64, z.extent as u64],
        // The launch refuses so many blocks that these do not fit.
        blocks: [tiles[0] as u32, tiles[1] as u32, p.extent as u32],
        padding: 0,
        from: [z.from as u64, p.from as u64, q.from as u64],
        to: [to_a as u64, to_p as u64, to_q as u64],
    };
    let grid = Grid::blocks(blocks.unwrap_or(usize::MAX));
    kernels::transpose_tiles::<B>(stream, grid, axes, x.cast::<B>()?, y.cast::<B>()?.into_atomic())
}

fn gather_as<B: Pod + DeviceCopy + Default + gather_axes::Instance>(
    stream: &Stream,
    merged: &[Axis],
    x: DeviceView<impl Pod + DeviceCopy>,
    y: DeviceViewMut<impl Pod + DeviceCopy>,
) -> Result<()> {
    let (x, y) = (x.cast::<B>()?, y.cast::<B>()?);
    let mut axes = Gathered { extents: [1; 3], from: [0; 4] };
    for (place, axis) in merged.iter().rev().enumerate() {
        axes.from[place] = axis.from as u64;
        if let Some(extent) = axes.extents.get_mut(place) {
            *extent = axis.extent as u64;
        }
    }
    kernels::gather_axes::<B>(stream, Grid::blocks(y.len().div_ceil(TILE)), axes, x, y)
}

/// Whole rows stay together: they are moved by the largest elements that divide them and start where they may.
fn rows_of<T: Pod + DeviceCopy>(
    stream: &Stream,
    mut merged: Vec<Axis>,
    x: DeviceView<T>,
    mut y: DeviceViewMut<T>,
) -> Result<()> {
    let row = merged.last().map_or(1, |last| last.extent) * size_of::<T>();
    let mut size = [16, 8, 4, 2].into_iter().find(|size| row.is_multiple_of(*size)).unwrap_or(1);
    while size > size_of::<T>() && !is_at_multiple_of(size, &x, &mut y) {
        size /= 2;
    }
    let (last, group) = (merged.len() - 1, size / size_of::<T>());
    merged[last].extent /= group;
    merged[..last].iter_mut().for_each(|axis| axis.from /= group);
    match size {
        1 => gather_as::<u8>(stream, &merged, x, y),
        2 => gather_as::<u16>(stream, &merged, x, y),
        4 => gather_as::<u32>(stream, &merged, x, y),
        8 => gather_as::<u64>(stream, &merged, x, y),
        _ => gather_as::<u128>(stream, &merged, x, y),
    }
}

/// Whether both start at a multiple of `size` bytes.
fn is_at_multiple_of<T: DeviceCopy>(size: usize, x: &DeviceView<T>, y: &mut DeviceViewMut<T>) -> bool {
    let starts = [x.as_device_ptr().as_raw().addr(), y.as_device_ptr_mut().as_raw().addr()];
    starts.iter().all(|start| start.is_multiple_of(size))
}

/// Writes the elements of `x`, an array of `shape`, to `y`, whose axis `k` is axis `axes[k]` of `x` (CuPy's
/// `x.transpose(axes)`, with the result in order). The last axis is the one whose elements are neighbours. Elements are plain data
/// of 1, 2, 4, 8 or 16 bytes, and there are up to four axes; those that stay together count as one.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// // Two pictures of three pixels, each of red and green; then all red, and all green of each picture.
/// let (x, mut y) = (stream.upload(&[1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6])?, stream.zeros(12)?);
/// algorithms::permute(&stream, &x, [2, 3, 2], [0, 2, 1], &mut y)?;
/// assert_eq!(stream.download(&y)?, [1, 2, 3, -1, -2, -3, 4, 5, 6, -4, -5, -6]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of a launch. `Error::NoPermutation` if `axes` does not name each axis once; `Error::LengthMismatch` if the lengths of
/// `x` and `y` are not that of the shape; `Error::ViewCast` if elements of 8 or 16 bytes do not start at a multiple of that.
pub fn permute<'a, 'b, T: Pod + DeviceCopy, const R: usize>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    shape: [usize; R],
    axes: [usize; R],
    y: impl DeviceOutput<'b, T>,
) -> Result<()> {
    const { assert!(R <= 4, "up to four axes can be permuted") };
    const { assert_movable::<T>(16) };
    let (x, y) = (x.into_input(), y.into_output());
    if (0..R).any(|axis| !axes.contains(&axis)) {
        return Err(Error::NoPermutation { axes: axes.into() });
    }
    let elements = shape.iter().try_fold(1_usize, |n, &extent| n.checked_mul(extent)).unwrap_or(usize::MAX);
    for length in [x.len(), y.len()] {
        if length != elements {
            let (source_length, target_length) = (elements, length);
            return Err(Error::LengthMismatch { operation: "permute", source_length, target_length });
        }
    }
    if elements == 0 {
        return Ok(());
    }
    let merged = merged_axes(shape, axes);
    let is_short = |axis: &Axis| axis.extent < SHORTEST;
    match merged.last() {
        _ if merged.len() <= 1 => stream.copy(x, y),
        Some(last) if last.from == 1 => rows_of(stream, merged, x, y),
        Some(last) if is_short(last) || merged.iter().any(|it| it.from == 1 && is_short(it)) => {
            by_size!(T as 1: u8, 2: u16, 4: u32, 8: u64, 16: u128; gather_as(stream, &merged, x, y))
        }
        _ if size_of::<T>() == 16 => gather_as::<u128>(stream, &merged, x, y),
        _ => by_size!(T as 1: u8, 2: u16, 4: u32, 8: u64; tiles_as(stream, &merged, x, y)),
    }
}

/// Writes the transpose of `x`, `rows` rows of `columns` elements, to `y`: `columns` rows of `rows` elements (cuBLAS's `geam`,
/// CuPy's `x.T.copy()`). As [`permute`] in all else.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let (x, mut y) = (stream.upload(&[1, 2, 3, 4, 5, 6])?, stream.zeros(6)?);
/// algorithms::transpose(&stream, &x, 2, 3, &mut y)?;
/// assert_eq!(stream.download(&y)?, [1, 4, 2, 5, 3, 6]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`permute`].
pub fn transpose<'a, 'b, T: Pod + DeviceCopy>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    rows: usize,
    columns: usize,
    y: impl DeviceOutput<'b, T>,
) -> Result<()> {
    permute(stream, x, [rows, columns], [1, 0], y)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged<const R: usize>(shape: [usize; R], axes: [usize; R]) -> Vec<(usize, usize)> {
        merged_axes(shape, axes).iter().map(|it| (it.extent, it.from)).collect()
    }

    #[test]
    fn axes_that_stay_together_become_one() {
        assert_eq!(merged([2, 3, 5, 7], [0, 1, 2, 3]), [(210, 1)]);
        assert_eq!(merged([2, 3, 5, 7], [2, 3, 0, 1]), [(35, 1), (6, 35)]);
        assert_eq!(merged([2, 3, 5, 7], [0, 3, 1, 2]), [(2, 105), (7, 1), (15, 7)]);
        assert_eq!(merged([2, 3, 5, 7], [3, 2, 1, 0]), [(7, 1), (5, 7), (3, 35), (2, 105)]);
        assert_eq!(merged([2, 1, 5, 1], [3, 2, 1, 0]), [(5, 1), (2, 5)]);
        assert_eq!(merged([1, 1], [1, 0]), []);
        assert_eq!(merged([], []), []);
    }
}
