//! Sparse matrices: the product of one in compressed rows and a vector.

pub(crate) mod rows;

use bytemuck::Pod;
use ferrogrid_device::DeviceCopy;

use crate::segmented::Offset;
use crate::{DeviceInput, DeviceOutput, DeviceView, Error, Grid, Result, Stream};
use rows::kernels::{THREADS, multiply_sparse};

/// A number of sparse matrices: `f32` or `f64`.
#[diagnostic::on_unimplemented(
    message = "sparse matrices have no elements of type `{Self}`",
    label = "expected `f32` or `f64`"
)]
pub trait SparseNumber: DeviceCopy + Pod + multiply_sparse::Instance {}

impl<T: DeviceCopy + Pod + multiply_sparse::Instance> SparseNumber for T {}

/// A sparse matrix in compressed rows, CSR (cuSPARSE's `cusparseCreateCsr`, CuPy's and SciPy's `csr_matrix`).
///
/// The elements of row `r` are number `offsets[r]` up to `offsets[r + 1]` of `columns` and `values`, in any order. Elements of one place
/// are added. Offsets are `u32` or `u64`; for those of signed integers use [`DeviceView::cast`].
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid_algorithms::Csr;
///
/// let offsets = stream.upload(&[0_u32, 2, 2, 3])?;
/// let (columns, values) = (stream.upload(&[0, 2, 1])?, stream.upload(&[1.0, 2.0, 3.0])?);
/// let a = Csr::new(4, &offsets, &columns, &values)?; // 1 0 2 0; 0 0 0 0; 0 3 0 0
/// assert_eq!((a.width(), a.height(), a.len(), a.is_empty()), (4, 3, 3, false));
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Csr<'a, T, O = u32> {
    width: usize,
    offsets: DeviceView<'a, O>,
    columns: DeviceView<'a, u32>,
    values: DeviceView<'a, T>,
}

impl<'a, T: SparseNumber, O: Offset> Csr<'a, T, O> {
    /// A matrix of so many columns, and of a row less than there are offsets.
    ///
    /// # Errors
    /// `Error::Argument` if there are no offsets; `Error::LengthMismatch` if `columns` and `values` differ in length. That
    /// offsets ascend and columns are below the width is checked by the kernels that use the matrix.
    pub fn new(
        width: usize,
        offsets: impl DeviceInput<'a, O>,
        columns: impl DeviceInput<'a, u32>,
        values: impl DeviceInput<'a, T>,
    ) -> Result<Self> {
        let (offsets, columns, values) = (offsets.into_input(), columns.into_input(), values.into_input());
        if offsets.is_empty() {
            return Err(Error::Argument {
                function: "Csr::new",
                argument: "the number of offsets",
                value: "0".into(),
                expected: "one more than there are rows",
            });
        }
        let (source_length, target_length) = (columns.len(), values.len());
        if source_length != target_length {
            let operation = "a column for each value";
            return Err(Error::LengthMismatch { operation, source_length, target_length });
        }
        Ok(Csr { width, offsets, columns, values })
    }

    /// The number of columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The number of rows.
    pub fn height(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The number of elements that are stored.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether no elements are stored.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

/// y <- alpha A x + beta y (cuSPARSE's `cusparseSpMV`, CuPy's `a @ x`). If `beta` is 0, `y` is not read.
///
/// Up to a warp has a row, by the mean length of rows; a row that is much longer has a block. Sums have the same bits on every device:
/// their order depends on the length of the row and the mean length.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// use algorithms::Csr;
///
/// let (offsets, columns) = (stream.upload(&[0_u32, 2, 2, 3])?, stream.upload(&[0, 2, 1])?);
/// let values = stream.upload(&[1.0_f32, 2.0, 3.0])?;
/// let a = Csr::new(3, &offsets, &columns, &values)?;
/// let (x, mut y) = (stream.upload(&[10.0, 20.0, 30.0])?, stream.upload(&[1.0, 2.0, 3.0])?);
/// algorithms::spmv(&stream, 1.0, a, &x, 0.5, &mut y)?;
/// assert_eq!(stream.download(&y)?, [70.5, 1.0, 61.5]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// `Error::LengthMismatch` if `x` has not the width of the matrix, or `y` its height; and those of a launch. Offsets that do not ascend or exceed
/// the number of elements, and columns beyond the width, are the error `Error::KernelPanic` of a later call that waits.
pub fn spmv<'a, 'b, T: SparseNumber + 'a, O: Offset>(
    stream: &Stream,
    alpha: T,
    a: Csr<T, O>,
    x: impl DeviceInput<'a, T>,
    beta: T,
    y: impl DeviceOutput<'b, T>,
) -> Result<()> {
    let (x, y, rows) = (x.into_input(), y.into_output(), a.height());
    for (operation, source_length, target_length) in
        [("an element of x for each column", a.width, x.len()), ("a result for each row", rows, y.len())]
    {
        if source_length != target_length {
            return Err(Error::LengthMismatch { operation, source_length, target_length });
        }
    }
    if rows == 0 {
        return Ok(());
    }
    // A lane for four elements of an average row.
    let shift = (a.len() / rows).div_ceil(4).next_power_of_two().min(32).ilog2();
    let grid = Grid::blocks(rows.div_ceil(THREADS >> shift));
    let (short, long) = Offset::split(a.offsets)?;
    let y = y.into_atomic();
    rows::kernels::multiply_sparse::<T>(
        stream, grid, alpha, beta, shift, short, long, a.columns, a.values, x, y,
    )
}
