//! Selections: the elements that a flag, or the element before them, singles out.
//!
//! `placing` is device code for all of them, `flagged` and `runs` have the kernels,
//! `native` their bodies for the CPU device; `run_length` has the functions for runs.

pub(crate) mod flagged;
mod native;
pub(crate) mod placing;
mod run_length;
pub(crate) mod runs;

use bytemuck::Pod;
use ferrogrid_device::DeviceCopy;
#[cfg(feature = "half")]
use ferrogrid_device::half::{bf16, f16};
pub(crate) use ferrogrid_host::__private::count_within;
use ferrogrid_host::__private::in_steps;

use crate::number::numbers::Add;
use crate::reduce::counts::kernels::count_same;
use crate::reduce::{Number, totals};
use crate::scan::Scanned;
use crate::sort::Sorted;
use crate::{DeviceAtomicView, DeviceInput, DeviceOutput, DeviceView, DeviceViewMut, Grid, Result, Stream};
use flagged::kernels::{partition as part, partition_wide, select as take, select_wide};
use placing::placing::tile;
use runs::kernels::{decode, encode, encode_wide, unique as first_of_runs, unique_wide};

pub use run_length::{run_length_decode, run_length_decode_into, run_length_encode, run_length_encode_into};

/// The grid for so many elements `T`: one block at least, which writes what there is to say of no elements.
fn grid<T>(len: usize) -> Grid<1> {
    Grid::blocks(len.div_ceil(tile::<T>()).max(1))
}

/// A number that kernels move as the unsigned integer of its size, and whose runs are those of what scans add up: unsigned
/// integers stand for signed ones.
pub trait Selected: Sorted<Unsigned: Flagged + decode::Instance> + Scanned<Bits: InRuns> {}

impl<T> Selected for T where T: Sorted<Unsigned: Flagged + decode::Instance> + Scanned<Bits: InRuns> {}

/// Has kernels for elements with flags.
pub trait Flagged: Pod + DeviceCopy {
    /// Launches the kernel that selects.
    fn select(
        stream: &Stream,
        grid: Grid<1>,
        x: DeviceView<Self>,
        flags: DeviceView<u8>,
        y: DeviceAtomicView<Self>,
        count: DeviceAtomicView<u64>,
    ) -> Result<()>;

    /// Launches the kernel that parts elements of which `count[0]` are flagged.
    fn partition(
        stream: &Stream,
        grid: Grid<1>,
        x: DeviceView<Self>,
        flags: DeviceView<u8>,
        y: DeviceAtomicView<Self>,
        count: DeviceView<u64>,
    ) -> Result<()>;
}

/// Has kernels for runs.
pub trait InRuns: Pod + DeviceCopy {
    /// Launches the kernel for the first elements of runs.
    fn unique(
        stream: &Stream,
        grid: Grid<1>,
        x: DeviceView<Self>,
        y: DeviceAtomicView<Self>,
        count: DeviceAtomicView<u64>,
    ) -> Result<()>;

    /// Launches the kernel for first elements and lengths, of the portion that begins there: with what is known of the runs before
    /// it, and where to write that for the next one.
    fn encode(
        stream: &Stream,
        grid: Grid<1>,
        portion: (DeviceView<Self>, usize),
        carried: (DeviceView<u64>, DeviceAtomicView<u64>),
        values: DeviceAtomicView<Self>,
        lengths: DeviceAtomicView<u32>,
        count: DeviceAtomicView<u64>,
    ) -> Result<()>;
}

macro_rules! flagged {
    ($($t:ty: $select:ident, $partition:ident;)*) => {
        $(impl Flagged for $t {
            fn select(
                stream: &Stream,
                grid: Grid<1>,
                x: DeviceView<Self>,
                flags: DeviceView<u8>,
                y: DeviceAtomicView<Self>,
                count: DeviceAtomicView<u64>,
            ) -> Result<()> {
                $select(stream, grid, x, flags, y, count)
            }

            fn partition(
                stream: &Stream,
                grid: Grid<1>,
                x: DeviceView<Self>,
                flags: DeviceView<u8>,
                y: DeviceAtomicView<Self>,
                count: DeviceView<u64>,
            ) -> Result<()> {
                $partition(stream, grid, x, flags, y, count)
            }
        })*
    };
}
flagged! {
    u8: take, part;
    u16: take, part;
    u32: take, part;
    u64: select_wide, partition_wide;
}

macro_rules! in_runs {
    ($($t:ty: $unique:ident, $encode:ident;)*) => {
        $(impl InRuns for $t {
            fn unique(
                stream: &Stream,
                grid: Grid<1>,
                x: DeviceView<Self>,
                y: DeviceAtomicView<Self>,
                count: DeviceAtomicView<u64>,
            ) -> Result<()> {
                $unique(stream, grid, x, y, count)
            }

            fn encode(
                stream: &Stream,
                grid: Grid<1>,
                (x, begin): (DeviceView<Self>, usize),
                (before, next): (DeviceView<u64>, DeviceAtomicView<u64>),
                values: DeviceAtomicView<Self>,
                lengths: DeviceAtomicView<u32>,
                count: DeviceAtomicView<u64>,
            ) -> Result<()> {
                $encode(stream, grid, x, begin as u64, before, next, values, lengths, count)
            }
        })*
    };
}
in_runs! {
    u8: first_of_runs, encode;
    u16: first_of_runs, encode;
    u32: first_of_runs, encode;
    f32: first_of_runs, encode;
    u64: unique_wide, encode_wide;
    f64: unique_wide, encode_wide;
}
#[cfg(feature = "half")]
in_runs! {
    f16: first_of_runs, encode;
    bf16: first_of_runs, encode;
}

/// What marks an element: a `bool`, or a `u8` that is not 0.
pub trait Flag: DeviceCopy + bytemuck::NoUninit {}

impl Flag for bool {}
impl Flag for u8 {}

fn select_of<T: Number>(
    stream: &Stream,
    x: DeviceView<T>,
    flags: DeviceView<impl Flag>,
    y: DeviceViewMut<T>,
    count: DeviceViewMut<u64>,
) -> Result<()> {
    let (flags, count) = (flags.cast::<u8>()?, count.slice(..1)?.into_atomic());
    let (x, y) = (x.cast::<T::Unsigned>()?, y.cast::<T::Unsigned>()?.into_atomic());
    T::Unsigned::select(stream, grid::<T>(x.len()), x, flags, y, count)
}

fn partition_of<T: Number>(
    stream: &Stream,
    x: DeviceView<T>,
    flags: DeviceView<impl Flag>,
    y: DeviceViewMut<T>,
    count: DeviceViewMut<u64>,
) -> Result<()> {
    let (flags, mut count) = (flags.cast::<u8>()?, count.slice(..1)?);
    in_steps(
        stream,
        flags.len(),
        count.reborrow(),
        |grid, counts| count_same::<u8>(stream, grid, 0, false, flags, counts),
        |grid, counts, out| totals::kernels::totals::<u64, Add>(stream, grid, counts, out),
    )?;
    let (x, y) = (x.cast::<T::Unsigned>()?, y.cast::<T::Unsigned>()?.into_atomic());
    T::Unsigned::partition(stream, grid::<T>(x.len()), x, flags, y, count.view())
}

fn unique_of<T: Number>(
    stream: &Stream,
    x: DeviceView<T>,
    y: DeviceViewMut<T>,
    count: DeviceViewMut<u64>,
) -> Result<()> {
    let (x, y) = (x.cast::<T::Bits>()?, y.cast::<T::Bits>()?.into_atomic());
    T::Bits::unique(stream, grid::<T>(x.len()), x, y, count.slice(..1)?.into_atomic())
}

/// Writes the elements of `x` whose flag is set to the beginning of `y`, in their order, and returns how many they are (CUB's
/// `DeviceSelect::Flagged`, Thrust's `copy_if` with a stencil). The rest of `y` is unchanged.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let (x, flags) = (stream.upload(&[3, 1, 4, 1, 5])?, stream.upload(&[true, false, true, false, true])?);
/// let mut y = stream.zeros(5)?;
/// assert_eq!(algorithms::select(&stream, &x, &flags, &mut y)?, 3);
/// assert_eq!(stream.download(y.slice(..3)?)?, [3, 4, 5]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of a launch and of a copy: `x` and `flags` have the same length. `Error::OutOfRange` if `y` is too
/// short for the result: then it has as many of the elements as it can take.
pub fn select<'a, 'b, 'c, T: Number + 'a, F: Flag + 'b>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    flags: impl DeviceInput<'b, F>,
    y: impl DeviceOutput<'c, T>,
) -> Result<usize> {
    let (x, flags, y) = (x.into_input(), flags.into_input(), y.into_output());
    count_within(stream, y.len(), |count| select_of(stream, x, flags, y, count))
}

/// [`select`], with the number of elements written to `count[0]` in stream order, without waiting for it. If `y` is too short,
/// it has as many of the elements as it can take, and the number is that of all.
///
/// # Errors
/// Those of a launch. `x` and `flags` have the same length, and `count` has at least one element.
pub fn select_into<'a, 'b, 'c, 'd, T: Number + 'a, F: Flag + 'b>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    flags: impl DeviceInput<'b, F>,
    y: impl DeviceOutput<'c, T>,
    count: impl DeviceOutput<'d, u64>,
) -> Result<()> {
    select_of(stream, x.into_input(), flags.into_input(), y.into_output(), count.into_output())
}

/// Writes to `y` the elements of `x` whose flag is set, then the others, and returns how many have it. Both parts keep their
/// order (Thrust's `stable_partition_copy`; CUB's `DevicePartition::Flagged` reverses the second part).
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let (x, flags) = (stream.upload(&[3, 1, 4, 1, 5])?, stream.upload(&[0_u8, 1, 0, 1, 0])?);
/// let mut y = stream.zeros(5)?;
/// assert_eq!(algorithms::partition(&stream, &x, &flags, &mut y)?, 2);
/// assert_eq!(stream.download(&y)?, [1, 1, 3, 4, 5]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of a launch and of a copy: `x`, `flags` and `y` have the same length.
pub fn partition<'a, 'b, 'c, T: Number + 'a, F: Flag + 'b>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    flags: impl DeviceInput<'b, F>,
    y: impl DeviceOutput<'c, T>,
) -> Result<usize> {
    let (x, flags, y) = (x.into_input(), flags.into_input(), y.into_output());
    count_within(stream, y.len(), |count| partition_of(stream, x, flags, y, count))
}

/// [`partition`], with the number of flagged elements written to `count[0]` in stream order, without waiting for it.
///
/// # Errors
/// Those of a launch. `x`, `flags` and `y` have the same length, and `count` has at least one element.
pub fn partition_into<'a, 'b, 'c, 'd, T: Number + 'a, F: Flag + 'b>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    flags: impl DeviceInput<'b, F>,
    y: impl DeviceOutput<'c, T>,
    count: impl DeviceOutput<'d, u64>,
) -> Result<()> {
    partition_of(stream, x.into_input(), flags.into_input(), y.into_output(), count.into_output())
}

/// Writes the first of each run of equal elements of `x` to the beginning of `y`, and returns how many runs there are (CUB's
/// `DeviceSelect::Unique`; of sorted elements, NumPy's `unique`). The rest of `y` is unchanged.
///
/// Floats are equal as in their order: the zeros are equal, and so are all NaN. (For `==`, and so for CUB, each NaN is a run.)
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let (x, mut y) = (stream.upload(&[3, 3, 1, 1, 1, 3])?, stream.zeros(6)?);
/// assert_eq!(algorithms::unique(&stream, &x, &mut y)?, 3);
/// assert_eq!(stream.download(y.slice(..3)?)?, [3, 1, 3]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of a launch and of a copy. `Error::OutOfRange` if `y` is too short for the
/// result: then it has as many of the elements as it can take.
pub fn unique<'a, 'b, T: Number + 'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    y: impl DeviceOutput<'b, T>,
) -> Result<usize> {
    let (x, y) = (x.into_input(), y.into_output());
    count_within(stream, y.len(), |count| unique_of(stream, x, y, count))
}

/// [`unique`], with the number of runs written to `count[0]` in stream order, without waiting for it. If `y` is too short, it
/// has as many of the elements as it can take, and the number is that of all.
///
/// # Errors
/// Those of a launch. `count` has at least one element.
pub fn unique_into<'a, 'b, 'c, T: Number + 'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    y: impl DeviceOutput<'b, T>,
    count: impl DeviceOutput<'c, u64>,
) -> Result<()> {
    unique_of(stream, x.into_input(), y.into_output(), count.into_output())
}
