//! The element types of DLPack.

use ferrogrid_device::DeviceCopy;

#[cfg(feature = "half")]
use ferrogrid_device::half::{bf16, f16};

#[cfg(feature = "half")]
use super::abi::BFLOAT;
use super::abi::{BOOL, COMPLEX, DLDataType, FLOAT, INT, UINT};

/// A type of elements that DLPack has a name for: integers, floating point numbers, `bool`, complex numbers, and with the
/// feature `half` those of 16 bits. A complex number is its real and its imaginary part: `complex64` is `[f32; 2]`,
/// `complex128` is `[f64; 2]`, and types of your own with that layout may implement this trait.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::dlpack::{DlpackElement, DlpackTensor};
///
/// /// A column vector for NumPy.
/// fn column<T: DlpackElement>(stream: &Stream, data: DeviceBuffer<T>) -> ferrogrid::Result<DlpackTensor> {
///     let height = data.len();
///     DlpackTensor::from_buffer(stream, data)?.with_shape(&[height, 1])
/// }
/// let tensor = column(&stream, stream.zeros::<i64>(5)?)?;
/// assert_eq!((tensor.shape(), tensor.element_type()), (&[5, 1][..], i64::TYPE));
/// # Ok(()) }
/// ```
///
/// # Safety
/// `TYPE` describes `Self`.
pub unsafe trait DlpackElement: DeviceCopy + Send {
    /// DLPack's name for it.
    const TYPE: DLDataType;
}

macro_rules! elements {
    ($( $ty:ty: $code:ident, )*) => { $(
        // SAFETY: the code is that of the type, and the size is its own.
        unsafe impl DlpackElement for $ty {
            const TYPE: DLDataType = DLDataType { code: $code, bits: 8 * size_of::<$ty>() as u8, lanes: 1 };
        }
    )* };
}

elements! {
    i8: INT, i16: INT, i32: INT, i64: INT, isize: INT,
    u8: UINT, u16: UINT, u32: UINT, u64: UINT, usize: UINT,
    f32: FLOAT, f64: FLOAT, bool: BOOL,
    [f32; 2]: COMPLEX, [f64; 2]: COMPLEX,
}

#[cfg(feature = "half")]
elements! { f16: FLOAT, bf16: BFLOAT, [f16; 2]: COMPLEX, }
