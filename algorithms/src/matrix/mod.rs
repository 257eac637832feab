//! Reductions of each row or each column of a matrix.
//!
//! `kernels` has the device code.

pub(crate) mod kernels;

use bytemuck::Pod;
use ferrogrid_device::DeviceCopy;
#[cfg(feature = "half")]
use ferrogrid_device::half::{bf16, f16};
use ferrogrid_host::PitchedView;

use crate::accumulate::Accumulated;
use crate::accumulate::accumulations::{Accumulation, Least, SumFloats, SumIntegers};
use crate::number::numbers::Element;
use crate::reduce::Number;
use crate::{DeviceOutput, DeviceView, DeviceViewMut, Error, Grid, Result, Stream};
use kernels::kernels::{Matrix, THREADS, combine_columns, combine_rows, quotients};

/// A number whose rows and columns are combined.
pub trait Tabular:
    Accumulated<Sum: InSteps, Least: InSteps> + Element<Total: Pod + quotients::Instance>
{
}

impl<T: Accumulated<Sum: InSteps, Least: InSteps> + Element<Total: Pod + quotients::Instance>> Tabular for T {}

/// Has both kernels.
pub trait Instances:
    Accumulation<Item: Pod, Total: Pod> + combine_rows::Instance + combine_columns::Instance
{
}

impl<A> Instances for A where
    A: Accumulation<Item: Pod, Total: Pod> + combine_rows::Instance + combine_columns::Instance
{
}

/// What combines elements, and what combines the results of parts.
pub trait InSteps: Instances {
    /// The second.
    type OfTotals: Instances<Item = Self::Total, Total = Self::Total>;
    /// The second.
    fn of_totals(self) -> Self::OfTotals;
}

macro_rules! in_steps {
    ($($t:ty as $of_totals:ty: $a:pat => $again:expr;)*) => {
        $(impl InSteps for $t {
            type OfTotals = $of_totals;
            fn of_totals(self) -> $of_totals {
                let $a = self;
                $again
            }
        })*
    };
}
in_steps! {
    SumIntegers<u8> as SumIntegers<u64>: _ => SumIntegers { sign: 0 };
    SumIntegers<u16> as SumIntegers<u64>: _ => SumIntegers { sign: 0 };
    SumIntegers<u32> as SumIntegers<u64>: _ => SumIntegers { sign: 0 };
    SumIntegers<u64> as SumIntegers<u64>: a => a;
    SumFloats<f32> as SumFloats<f32>: a => a;
    SumFloats<f64> as SumFloats<f64>: a => a;
    Least<u8> as Least<u8>: a => a;
    Least<u16> as Least<u16>: a => a;
    Least<u32> as Least<u32>: a => a;
    Least<u64> as Least<u64>: a => a;
}
#[cfg(feature = "half")]
in_steps! {
    SumFloats<f16> as SumFloats<f32>: _ => SumFloats { zero: 0.0 };
    SumFloats<bf16> as SumFloats<f32>: _ => SumFloats { zero: 0.0 };
}

/// What has one result.
#[derive(Clone, Copy)]
enum Each {
    Row,
    Column,
}

impl Each {
    /// How a launch divides a matrix. All but the pitch decides on the order in which floats are added: there are no numbers of a device.
    fn divide(self, width: usize, height: usize, pitch: usize) -> Matrix {
        let (len, threads, parts) = match self {
            // Up to 32 elements to a lane; two blocks for each of 4 places on 132 multiprocessors, if there are elements for these.
            Each::Row if width > 1024 => {
                (width, THREADS, width.div_ceil(8192).min(1056_usize.div_ceil(height.max(1))))
            }
            Each::Row => (width, width.div_ceil(4).next_power_of_two().min(32), 1),
            Each::Column => {
                let columns = width.next_power_of_two().clamp(8, 32);
                (
                    height,
                    columns,
                    height.div_ceil(512).min(528_usize.div_ceil(width.div_ceil(columns).max(1))),
                )
            }
        };
        let parts = parts.max(1);
        let [width, height, pitch, length] = [width, height, pitch, len.div_ceil(parts)].map(|it| it as u64);
        Matrix { width, height, pitch, length, parts: parts as u32, shift: threads.ilog2() }
    }

    /// The matrix of the results of parts, which are combined at once.
    fn of_parts(self, Matrix { width, height, parts, .. }: Matrix) -> Matrix {
        let parts = u64::from(parts);
        let (width, height) = match self {
            Each::Row => (parts, height),
            Each::Column => (width, parts),
        };
        let whole = self.divide(width as usize, height as usize, width as usize);
        Matrix { length: parts, parts: 1, ..whole }
    }

    fn launch<A: Instances>(
        self,
        stream: &Stream,
        a: A,
        m: Matrix,
        x: DeviceView<A::Item>,
        y: DeviceViewMut<A::Total>,
    ) -> Result<()> {
        let (rows, columns) = (m.height as usize, m.width as usize);
        let blocks = match self {
            Each::Row => rows.div_ceil(THREADS >> m.shift),
            Each::Column => columns.div_ceil(1 << m.shift),
        };
        let (grid, y) = (Grid::blocks(blocks.saturating_mul(m.parts as usize)), y.into_atomic());
        match self {
            Each::Row => kernels::kernels::combine_rows::<A>(stream, grid, a, m, x, y),
            Each::Column => kernels::kernels::combine_columns::<A>(stream, grid, a, m, x, y),
        }
    }

    /// Combines the elements of each row or column.
    fn reduce<T: Number, A: InSteps>(
        self,
        stream: &Stream,
        a: A,
        x: PitchedView<T>,
        y: DeviceViewMut<impl Pod + DeviceCopy>,
    ) -> Result<()> {
        let (operation, results) = match self {
            Each::Row => ("a result for each row", x.height()),
            Each::Column => ("a result for each column", x.width()),
        };
        if y.len() != results {
            return Err(Error::LengthMismatch { operation, source_length: results, target_length: y.len() });
        }
        if results == 0 {
            return Ok(());
        }
        let m = self.divide(x.width(), x.height(), x.pitch());
        let (x, y) = (x.span().cast()?, y.cast()?);
        if m.parts == 1 {
            return self.launch(stream, a, m, x, y);
        }
        let mut of_parts = stream.temporary::<A::Total>(results * m.parts as usize)?;
        self.launch(stream, a, m, x, of_parts.view_mut())?;
        self.launch(stream, a.of_totals(), self.of_parts(m), of_parts.view(), y)
    }

    fn means<T: Number>(self, stream: &Stream, x: PitchedView<T>, y: DeviceViewMut<f64>) -> Result<()> {
        let len = match self {
            Each::Row => x.width(),
            Each::Column => x.height(),
        };
        if y.is_empty() {
            return self.reduce(stream, T::SUM, x, y);
        }
        let mut sums = stream.temporary::<T::Total>(y.len())?;
        self.reduce(stream, T::SUM, x, sums.view_mut())?;
        quotients_of::<T::Total>(stream, len, sums.view(), y)
    }
}

fn quotients_of<T: Element + quotients::Instance>(
    stream: &Stream,
    divisor: usize,
    x: DeviceView<T>,
    y: DeviceViewMut<f64>,
) -> Result<()> {
    kernels::kernels::quotients::<T>(stream, kernels::kernels::quotients::grid(x.len()), divisor as f64, x, y)
}

/// Writes the sum of each row of `x` to `sums` (CuPy's `x.sum(axis=1)`).
///
/// The matrix is a view in two dimensions, or one with a pitch: a part of an image or of a larger matrix. Sums are those of
/// [`sum`](crate::sum()): of integers in 64 bits, and sums of floats have the same bits on every device. Their order depends on width
/// and height alone. A matrix of few long rows is combined in two steps.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let (x, mut sums) = (stream.upload(&[1, 2, 3, 4, 5, 6])?, stream.zeros(2)?);
/// algorithms::row_sums(&stream, x.view_2d(3, 2)?, &mut sums)?;
/// assert_eq!(stream.download(&sums)?, [6_i64, 15]);
/// let left = x.view().pitched(3, 2, 3)?.slice(..2, ..)?; // two of three columns
/// algorithms::row_sums(&stream, left, &mut sums)?;
/// assert_eq!(stream.download(&sums)?, [3_i64, 9]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// `Error::LengthMismatch` if there is not one result for each row; and those of a launch.
pub fn row_sums<'a, 'b, T: Number + 'a>(
    stream: &Stream,
    x: impl Into<PitchedView<'a, T>>,
    sums: impl DeviceOutput<'b, <T as Element>::Total>,
) -> Result<()> {
    Each::Row.reduce(stream, T::SUM, x.into(), sums.into_output())
}

/// As [`row_sums`], the sum of each column (CuPy's `x.sum(axis=0)`).
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let (x, mut sums) = (stream.upload(&[0.5_f32, 2.0, 3.0, 4.0, 5.0, 6.0])?, stream.zeros(3)?);
/// algorithms::column_sums(&stream, x.view_2d(3, 2)?, &mut sums)?;
/// assert_eq!(stream.download(&sums)?, [4.5, 7.0, 9.0]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// `Error::LengthMismatch` if there is not one result for each column; and those of a launch.
pub fn column_sums<'a, 'b, T: Number + 'a>(
    stream: &Stream,
    x: impl Into<PitchedView<'a, T>>,
    sums: impl DeviceOutput<'b, <T as Element>::Total>,
) -> Result<()> {
    Each::Column.reduce(stream, T::SUM, x.into(), sums.into_output())
}

/// Writes the mean of each row of `x` to `means`: the sum of [`row_sums`] over the width (CuPy's `x.mean(axis=1)`). The mean of
/// nothing is NaN.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let (x, mut rows, mut columns) = (stream.upload(&[1_u8, 2, 3, 255])?, stream.zeros(2)?, stream.zeros(2)?);
/// algorithms::row_means(&stream, x.view_2d(2, 2)?, &mut rows)?;
/// algorithms::column_means(&stream, x.view_2d(2, 2)?, &mut columns)?;
/// assert_eq!(stream.download(&rows)?, [1.5, 129.0]);
/// assert_eq!(stream.download(&columns)?, [2.0, 128.5]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`row_sums`].
pub fn row_means<'a, 'b, T: Number + 'a>(
    stream: &Stream,
    x: impl Into<PitchedView<'a, T>>,
    means: impl DeviceOutput<'b, f64>,
) -> Result<()> {
    Each::Row.means(stream, x.into(), means.into_output())
}

/// As [`row_means`], the mean of each column (CuPy's `x.mean(axis=0)`).
///
/// # Errors
/// As [`column_sums`].
pub fn column_means<'a, 'b, T: Number + 'a>(
    stream: &Stream,
    x: impl Into<PitchedView<'a, T>>,
    means: impl DeviceOutput<'b, f64>,
) -> Result<()> {
    Each::Column.means(stream, x.into(), means.into_output())
}

/// Writes the least element of each row of `x` to `y` (CuPy's `nanmin(x, axis=1)`). NaN is skipped, as by [`min`](crate::min); the
/// least of nothing is the greatest integer, or NaN. The matrix is as for [`row_sums`].
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let (x, mut y) = (stream.upload(&[3.0, f32::NAN, 1.0, 4.0])?, stream.zeros(2)?);
/// algorithms::row_minima(&stream, x.view_2d(2, 2)?, &mut y)?;
/// assert_eq!(stream.download(&y)?, [3.0, 1.0]);
/// algorithms::column_maxima(&stream, x.view_2d(2, 2)?, &mut y)?;
/// assert_eq!(stream.download(&y)?, [3.0, 4.0]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`row_sums`].
pub fn row_minima<'a, 'b, T: Number + 'a>(
    stream: &Stream,
    x: impl Into<PitchedView<'a, T>>,
    y: impl DeviceOutput<'b, T>,
) -> Result<()> {
    Each::Row.reduce(stream, T::MIN, x.into(), y.into_output())
}

/// As [`row_minima`], the greatest element of each row (CuPy's `nanmax(x, axis=1)`). That of nothing is the least integer, or NaN.
///
/// # Errors
/// As [`row_sums`].
pub fn row_maxima<'a, 'b, T: Number + 'a>(
    stream: &Stream,
    x: impl Into<PitchedView<'a, T>>,
    y: impl DeviceOutput<'b, T>,
) -> Result<()> {
    Each::Row.reduce(stream, T::MAX, x.into(), y.into_output())
}

/// As [`row_minima`], the least element of each column (CuPy's `nanmin(x, axis=0)`).
///
/// # Errors
/// As [`column_sums`].
pub fn column_minima<'a, 'b, T: Number + 'a>(
    stream: &Stream,
    x: impl Into<PitchedView<'a, T>>,
    y: impl DeviceOutput<'b, T>,
) -> Result<()> {
    Each::Column.reduce(stream, T::MIN, x.into(), y.into_output())
}

/// As [`row_maxima`], the greatest element of each column (CuPy's `nanmax(x, axis=0)`).
///
/// # Errors
/// As [`column_sums`].
pub fn column_maxima<'a, 'b, T: Number + 'a>(
    stream: &Stream,
    x: impl Into<PitchedView<'a, T>>,
    y: impl DeviceOutput<'b, T>,
) -> Result<()> {
    Each::Column.reduce(stream, T::MAX, x.into(), y.into_output())
}
