//! Arrays of the crate ndarray: in launches, and copied to buffers and back.

use ferrogrid_device::DeviceCopy;
use ndarray::{Array, ArrayBase, Data, DataMut, Dimension, IntoDimension, Ix1, Ix2, Ix3, Ix4, Ix5};

use crate::error::{Error, Result};
use crate::launch::host_slice::{In, InOut, Out, Shaped};
use crate::memory::buffer::DeviceBuffer;
use crate::stream::Stream;
use crate::view::argument::DeviceInput;

/// An array of ndarray as the input of one launch: in rank 1 for a kernel's `&[T]`, in rank 2 for a `Plane<T>`, in rank 3 for a
/// `Volume<T>`, in ranks but 2 for a `BoxMap`. The last axis is x, so that the elements of a row are neighbours.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// y <- the transpose of x
/// #[kernel]
/// pub fn transpose(t: Thread<2>, x: Plane<f32>, mut y: DisjointSlice<f32, 2>) {
///     let i = t.index();
///     if let Some(y) = y.get_mut(i) {
///         *y = x[i.x()][i.y()];
///     }
/// }
///
/// /// y <- the element at [1, 2, 3] of each of the first axis
/// #[kernel]
/// pub fn of_each(t: Thread<1>, x: BoxMap<[[[[f32; 4]; 1]; 1]; 1]>, mut y: DisjointSlice<f32>) {
///     let i = t.index();
///     if let (Some(y), Some(x)) = (y.get_mut(i), x.get([i.get(), 1, 2, 3])) {
///         *y = *x;
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::interop::{HostArray, HostArrayMut};
/// use ndarray::{Array2, Array4, array};
///
/// let x = array![[1.0_f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
/// let mut y = Array2::zeros((3, 2));
/// kernels::transpose(&stream, Grid::cover([2, 3]), x.as_in()?, y.as_out()?)?;
/// assert_eq!(y, x.t());
///
/// let x = Array4::from_shape_fn((2, 3, 5, 4), |(n, c, h, w)| (1000 * n + 100 * c + 10 * h + w) as f32);
/// let mut y = array![0.0, 0.0];
/// kernels::of_each(&stream, Grid::cover(2), x.as_in()?, y.as_out()?)?;
/// assert_eq!(y, array![123.0, 1123.0]);
/// # Ok(()) }
/// ```
///
/// Only arrays in standard layout are arguments: with the elements of each row beside each other, the rows one after the other, and
/// nothing in between. Of others, make a copy by `as_standard_layout()`.
pub trait HostArray {
    /// [`In`], from rank 2 on [`Shaped`].
    type In<'a>
    where
        Self: 'a;

    /// The array as an input.
    ///
    /// # Errors
    /// [`Error::ArrayLayout`] if the array is not in standard layout.
    fn as_in(&self) -> Result<Self::In<'_>>;
}

/// An array of ndarray as the output of one launch, for a kernel's `DisjointSlice<T, R>`; otherwise as [`HostArray`].
pub trait HostArrayMut: HostArray {
    /// [`Out`], from rank 2 on [`Shaped`].
    type Out<'a>
    where
        Self: 'a;
    /// [`InOut`], from rank 2 on [`Shaped`].
    type InOut<'a>
    where
        Self: 'a;

    /// The array as an output; elements that the kernel does not write become 0.
    ///
    /// # Errors
    /// [`Error::ArrayLayout`] if the array is not in standard layout.
    fn as_out(&mut self) -> Result<Self::Out<'_>>;

    /// The array as what a kernel changes.
    ///
    /// # Errors
    /// [`Error::ArrayLayout`] if the array is not in standard layout.
    fn as_in_out(&mut self) -> Result<Self::InOut<'_>>;
}

/// The elements of an array in standard layout.
fn elements<T, D: Dimension>(array: &ArrayBase<impl Data<Elem = T>, D>) -> Result<&[T]> {
    array.as_slice().ok_or_else(|| layout(array))
}

fn elements_mut<T, D: Dimension>(array: &mut ArrayBase<impl DataMut<Elem = T>, D>) -> Result<&mut [T]> {
    let error = array.as_slice().is_none().then(|| layout(array));
    array.as_slice_mut().ok_or_else(|| error.expect("it has another layout"))
}

fn layout<T, D: Dimension>(array: &ArrayBase<impl Data<Elem = T>, D>) -> Error {
    Error::ArrayLayout { shape: array.shape().into(), strides: array.strides().into() }
}

/// The rank of an array that is an argument: 1 to 5.
pub trait ArrayRank: Dimension {
    /// How the host's elements, an [`In`], [`Out`] or [`InOut`], become an argument of that rank.
    type Of<A>;

    /// `elements` as an array of this shape.
    fn shape<A>(self, elements: A) -> Self::Of<A>;
}

impl ArrayRank for Ix1 {
    type Of<A> = A;

    fn shape<A>(self, elements: A) -> A {
        elements
    }
}

macro_rules! shaped {
    ($($Dimension:ident $rank:literal),*) => { $(
        impl ArrayRank for $Dimension {
            type Of<A> = Shaped<A, $rank>;

            fn shape<A>(self, elements: A) -> Shaped<A, $rank> {
                let mut extent = [0; $rank];
                extent.copy_from_slice(self.slice());
                extent.reverse();
                Shaped::new(elements, extent)
            }
        }
    )* };
}
shaped!(Ix2 2, Ix3 3, Ix4 4, Ix5 5);

impl<T, S: Data<Elem = T>, D: ArrayRank> HostArray for ArrayBase<S, D> {
    type In<'a>
        = D::Of<In<'a, T>>
    where
        Self: 'a;

    fn as_in(&self) -> Result<Self::In<'_>> {
        Ok(self.raw_dim().shape(In(elements(self)?)))
    }
}

impl<T, S: DataMut<Elem = T>, D: ArrayRank> HostArrayMut for ArrayBase<S, D> {
    type Out<'a>
        = D::Of<Out<'a, T>>
    where
        Self: 'a;
    type InOut<'a>
        = D::Of<InOut<'a, T>>
    where
        Self: 'a;

    fn as_out(&mut self) -> Result<Self::Out<'_>> {
        Ok(self.raw_dim().shape(Out(elements_mut(self)?)))
    }

    fn as_in_out(&mut self) -> Result<Self::InOut<'_>> {
        Ok(self.raw_dim().shape(InOut(elements_mut(self)?)))
    }
}

impl Stream {
    /// The elements of an array of ndarray in a new buffer, in the order of its iterator: row by row, whatever its layout.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// use ndarray::array;
    ///
    /// let a = array![[1, 2, 3], [4, 5, 6]];
    /// let columns = stream.upload_ndarray(&a.t())?;
    /// assert_eq!(stream.download(&columns)?, [1, 4, 2, 5, 3, 6]);
    /// assert_eq!(stream.download_ndarray(&columns, (3, 2))?, a.t());
    /// let refused = stream.download_ndarray(&columns, (4, 2));
    /// assert!(matches!(refused, Err(Error::LengthMismatch { source_length: 6, target_length: 8, .. })));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Stream::upload`].
    pub fn upload_ndarray<T: DeviceCopy, D: Dimension>(
        &self,
        array: &ArrayBase<impl Data<Elem = T>, D>,
    ) -> Result<DeviceBuffer<T>> {
        self.upload(elements(&array.as_standard_layout())?)
    }

    /// Elements of a buffer as a new array of ndarray, row by row; see [`Stream::upload_ndarray`].
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the shape is of another number of elements; else as [`Stream::download`].
    pub fn download_ndarray<'a, T: DeviceCopy, D: IntoDimension>(
        &self,
        x: impl DeviceInput<'a, T>,
        shape: D,
    ) -> Result<Array<T, D::Dim>> {
        let (x, shape) = (x.into_input(), shape.into_dimension());
        let (operation, source_length) = ("Stream::download_ndarray", x.len());
        let target_length =
            shape.slice().iter().fold(1, |length: usize, extent| length.saturating_mul(*extent));
        let array = Array::from_shape_vec(shape, self.download(x)?);
        array.map_err(|_| Error::LengthMismatch { operation, source_length, target_length })
    }
}
