//! Movement by indices: gather and scatter.

use bytemuck::Pod;
use ferrogrid_device::DeviceCopy;
use ferrogrid_device::atomic::AtomicLoadStore;

use crate::movement::striped::TILE;
use crate::movement::{assert_movable, by_size};
use crate::{DeviceInput, DeviceOutput, DeviceView, DeviceViewMut, Grid, Result, Stream};
use kernels::{gather_elements, scatter_elements};

/// The kernels.
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    use atomic::{AtomicLoadStore, Ordering::Relaxed};
    use ferrogrid::device::prelude::*;

    use crate::movement::striped::{ROWS, RUN, THREADS, TILE, each, load};

    /// An index of 32 or 64 bits.
    pub trait Place: DeviceCopy + Default {
        /// As a `usize`.
        fn place(self) -> usize;
    }

    impl Place for u32 {
        #[inline(always)]
        fn place(self) -> usize {
            self as usize
        }
    }

    impl Place for u64 {
        #[inline(always)]
        fn place(self) -> usize {
            self as usize
        }
    }

    /// The greatest place: one check for all, because a branch for each would keep later loads waiting.
    #[inline(always)]
    fn greatest(places: &[usize; ROWS]) -> usize {
        places.iter().fold(0, |a, &b| a.max(b))
    }

    /// y[i] <- x[indices[i]]
    #[kernel(
        block = THREADS,
        wide,
        same_shape(indices, y),
        I = [u32, u64],
        T = [u8, u16, u32, u64, u128]
    )]
    pub fn gather_elements<I: Place, T: DeviceCopy + Default>(
        t: Thread<1>,
        x: &[T],
        indices: &[I],
        mut y: DisjointWarps<T, RUN>,
    ) {
        let places = each(&t, y.first(&t), |i| load(indices, i).place());
        let _ = &x[greatest(&places)];
        y.fill_striped(&t, places.map(|place| load(x, place)));
    }

    /// y[indices[i]] <- x[i]
    #[kernel(
        block = THREADS,
        wide,
        same_shape(x, indices),
        I = [u32, u64],
        T = [u8, u16, u32, u64]
    )]
    pub fn scatter_elements<I: Place, T: AtomicLoadStore + DeviceCopy + Default>(
        t: Thread<1>,
        x: &[T],
        indices: &[I],
        y: &[DeviceAtomic<T>],
    ) {
        let first = t.block_idx()[0] as usize * TILE + t.thread_rank() as usize / 32 * RUN;
        let items = each(&t, first, |i| load(x, i));
        let places = each(&t, first, |i| load(indices, i).place());
        let _ = &y[greatest(&places)];
        let own = first + t.thread_rank() as usize % 32;
        for row in 0..ROWS {
            if own + 32 * row < x.len()
                && let Some(y) = y.get(places[row])
            {
                y.store(items[row], Relaxed);
            }
        }
    }
}

/// A number that says where an element is: `u32`, `u64`, `i32` or `i64`. Negative ones are beyond the end.
pub trait PlaceNumber: Pod + DeviceCopy {
    /// The unsigned integer of its size.
    type Unsigned: Pod
        + gather_elements::Instance<u8>
        + gather_elements::Instance<u16>
        + gather_elements::Instance<u32>
        + gather_elements::Instance<u64>
        + gather_elements::Instance<u128>
        + scatter_elements::Instance<u8>
        + scatter_elements::Instance<u16>
        + scatter_elements::Instance<u32>
        + scatter_elements::Instance<u64>;
}

macro_rules! place_numbers {
    ($($t:ty: $unsigned:ty),*) => {
        $(impl PlaceNumber for $t {
            type Unsigned = $unsigned;
        })*
    };
}
place_numbers!(u32: u32, i32: u32, u64: u64, i64: u64);

fn gather_as<B: Pod + DeviceCopy + Default>(
    stream: &Stream,
    x: DeviceView<impl Pod + DeviceCopy>,
    indices: DeviceView<impl Pod + gather_elements::Instance<B>>,
    y: DeviceViewMut<impl Pod + DeviceCopy>,
) -> Result<()> {
    let grid = Grid::blocks(indices.len().div_ceil(TILE).max(1));
    kernels::gather_elements::<_, B>(stream, grid, x.cast()?, indices, y.cast()?)
}

fn scatter_as<B: Pod + AtomicLoadStore + DeviceCopy + Default>(
    stream: &Stream,
    x: DeviceView<impl Pod + DeviceCopy>,
    indices: DeviceView<impl Pod + scatter_elements::Instance<B>>,
    y: DeviceViewMut<impl Pod + DeviceCopy>,
) -> Result<()> {
    let grid = Grid::blocks(x.len().div_ceil(TILE).max(1));
    kernels::scatter_elements::<_, B>(stream, grid, x.cast()?, indices, y.cast::<B>()?.into_atomic())
}

/// Writes `x[indices[i]]` to `y[i]` (Thrust's `gather`, CuPy's `x.take(indices)`). Elements are plain data of 1, 2, 4, 8 or 16
/// bytes.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let (x, indices) = (stream.upload(&[0.5_f32, 1.5, 2.5])?, stream.upload(&[2_u32, 0, 2, 1])?);
/// let mut y = stream.zeros(4)?;
/// algorithms::gather(&stream, &x, &indices, &mut y)?;
/// assert_eq!(stream.download(&y)?, [2.5, 0.5, 2.5, 1.5]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of a launch: `indices` and `y` have the same length. `Error::ViewCast` if elements of 8 or 16 bytes do not start at
/// a multiple of that. An index beyond the end of `x` is the error `Error::KernelPanic` of a later call that waits.
pub fn gather<'a, 'b, 'c, T: Pod + DeviceCopy, I: PlaceNumber>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    indices: impl DeviceInput<'b, I>,
    y: impl DeviceOutput<'c, T>,
) -> Result<()> {
    const { assert_movable::<T>(16) };
    let (x, indices, y) = (x.into_input(), indices.into_input().cast::<I::Unsigned>()?, y.into_output());
    if indices.is_empty() && y.is_empty() {
        return Ok(());
    }
    by_size!(T as 1: u8, 2: u16, 4: u32, 8: u64, 16: u128; gather_as(stream, x, indices, y))
}

/// Writes `x[i]` to `y[indices[i]]` (Thrust's `scatter`, NumPy's `y[indices] = x`). The other elements of `y` are unchanged.
/// If an index is there several times, one of its elements is written: any, and not always the same. Elements are plain data of
/// 1, 2, 4 or 8 bytes.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let (x, indices) = (stream.upload(&[7_u8, 8])?, stream.upload(&[2_u32, 0])?);
/// let mut y = stream.zeros(3)?;
/// algorithms::scatter(&stream, &x, &indices, &mut y)?;
/// assert_eq!(stream.download(&y)?, [8, 0, 7]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`gather`], for `x` and `indices`, and indices beyond the end of `y`.
pub fn scatter<'a, 'b, 'c, T: Pod + DeviceCopy, I: PlaceNumber>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    indices: impl DeviceInput<'b, I>,
    y: impl DeviceOutput<'c, T>,
) -> Result<()> {
    const { assert_movable::<T>(8) };
    let (x, indices, y) = (x.into_input(), indices.into_input().cast::<I::Unsigned>()?, y.into_output());
    if indices.is_empty() && x.is_empty() {
        return Ok(());
    }
    by_size!(T as 1: u8, 2: u16, 4: u32, 8: u64; scatter_as(stream, x, indices, y))
}
