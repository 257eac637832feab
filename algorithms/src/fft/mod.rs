//! Fourier transforms of complex numbers, of lengths that are powers of two.
//!
//! `kernels` has the device code.

pub(crate) mod kernels;

use bytemuck::Pod;

use crate::passes::{Column, Turn};
use crate::{DeviceInput, DeviceOutput, DeviceView, DeviceViewMut, Error, Grid, Result, Stream};
use kernels::kernels::{Part, Pass, TILE, TILE_LOG, fft_pass, roots_of_unity};

/// The binary logarithm of the longest column of a pass, where there are several: 8 neighbours are read together then.
const ROWS_LOG: u32 = 9;

/// A real number whose complex numbers can be transformed: `f32` or `f64`.
#[diagnostic::on_unimplemented(
    message = "there are no Fourier transforms of pairs of `{Self}`",
    label = "expected `f32` or `f64`"
)]
pub trait Transformed: Part + Pod + fft_pass::Instance + roots_of_unity::Instance {}

impl<T: Part + Pod + fft_pass::Instance + roots_of_unity::Instance> Transformed for T {}

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Forward,
    Inverse,
}

fn transform<T: Transformed>(
    function: &'static str,
    stream: &Stream,
    direction: Direction,
    x: DeviceView<[T; 2]>,
    length: usize,
    y: DeviceViewMut<[T; 2]>,
) -> Result<()> {
    if !length.is_power_of_two() || !x.len().is_multiple_of(length) {
        return Err(Error::Argument {
            function,
            argument: "the length of a transform",
            value: format!("{length} for {} elements", x.len()).into(),
            expected: "a power of two that divides the number of elements",
        });
    }
    let (source_length, target_length) = (x.len(), y.len());
    if source_length != target_length {
        return Err(Error::LengthMismatch { operation: function, source_length, target_length });
    }
    if source_length == 0 {
        return Ok(());
    }
    let log = length.ilog2();
    let mut roots = stream.temporary::<[T; 2]>(2 * TILE + (length >> TILE_LOG).max(1))?;
    roots_of_unity::<T>(stream, Grid::cover(roots.view().len()), log, roots.view_mut())?;
    let passes = if log <= TILE_LOG { 1 } else { log.div_ceil(ROWS_LOG) };
    let grid = Grid::blocks(source_length.div_ceil(TILE));
    let mut column = Column::<u64>::new(x.cast()?, y.cast()?);
    let is_inverse = direction == Direction::Inverse;
    for number in 0..passes {
        let (is_first, is_last) = (number == 0, number + 1 == passes);
        let done = log * number / passes;
        let pass = Pass {
            length: log,
            rows: log * (number + 1) / passes - done,
            done,
            swaps: [is_inverse && is_first, is_inverse && is_last],
            scale: if is_inverse && is_last { 1.0 / length as f64 } else { 1.0 },
        };
        let (x, y) = column.turn(stream, Turn::of(number, passes))?;
        fft_pass::<T>(stream, grid, pass, roots.view(), x, y)?;
    }
    Ok(())
}

/// Writes to `y` the discrete Fourier transforms of `x`, of `length` complex numbers each: `y[k]` is the sum of `x[j] exp(-2 pi i j k /
/// length)` (cuFFT's `cufftExecC2C` forward, CuPy's `fft.fft`). A complex number is its real and its imaginary part, as
/// `num_complex::Complex` has them: views of such numbers can be cast.
///
/// `length` is a power of two. A transform of up to 4096 elements reads and writes memory once, one of up to 2^18 twice. Errors grow with the
/// logarithm of the length; results have the same bits in every run.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let x = stream.upload(&[[1.0_f32, 0.0], [2.0, 0.0], [3.0, 0.0], [4.0, 0.0]])?;
/// let mut y = stream.zeros(4)?;
/// algorithms::fft(&stream, &x, 4, &mut y)?;
/// assert_eq!(stream.download(&y)?, [[10.0, 0.0], [-2.0, 2.0], [-2.0, 0.0], [-2.0, -2.0]]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// `Error::Argument` if `length` is no power of two, or does not divide the number of elements; `Error::LengthMismatch` if `x` and `y`
/// differ in length; `Error::ViewCast` if one of them does not start at a multiple of 8 bytes; and those of a launch.
pub fn fft<'a, 'b, T: Transformed + 'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, [T; 2]>,
    length: usize,
    y: impl DeviceOutput<'b, [T; 2]>,
) -> Result<()> {
    transform("fft", stream, Direction::Forward, x.into_input(), length, y.into_output())
}

/// The inverse of [`fft`]: `y[k]` is the sum of `x[j] exp(2 pi i j k / length)`, divided by `length` (CuPy's `fft.ifft`; cuFFT's inverse
/// does not divide).
///
/// # Errors
/// As [`fft`].
pub fn inverse_fft<'a, 'b, T: Transformed + 'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, [T; 2]>,
    length: usize,
    y: impl DeviceOutput<'b, [T; 2]>,
) -> Result<()> {
    transform("inverse_fft", stream, Direction::Inverse, x.into_input(), length, y.into_output())
}
