//! Errors of tensors (DLPack).

use std::fmt::{Display, from_fn};

use crate::dlpack_abi::{self as abi, DLDataType, DLDevice, DLPackVersion};

/// An error about a DLPack tensor.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::dlpack::{DlpackError, DlpackTensor};
///
/// let tensor = DlpackTensor::from_buffer(&stream, stream.zeros::<f32>(6)?)?;
/// let Err(Error::Dlpack(error)) = tensor.into_buffer::<i32>(&stream) else { panic!() };
/// assert!(matches!(error, DlpackError::ElementType { .. }));
/// assert_eq!(error.to_string(), "the tensor has elements of type float32; expected int32");
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DlpackError {
    /// A tensor has a structure of another version.
    #[error("the tensor has version {}.{} of DLPack; expected 1.x", version.major, version.minor)]
    Version {
        /// Its version.
        version: DLPackVersion,
    },
    /// A tensor's structure makes no sense.
    #[error("the tensor is broken: {reason}")]
    Broken {
        /// What is wrong.
        reason: &'static str,
    },
    /// A tensor has elements of another type.
    #[error("the tensor has elements of type {}; expected {}", type_name(found), type_name(expected))]
    ElementType {
        /// Its type.
        found: DLDataType,
        /// The requested type.
        expected: DLDataType,
    },
    /// A tensor is not in memory of the device.
    #[error("the tensor is on device {} of type {} in DLPack's numbers, not on {expected}", found.device_id, found.device_type)]
    OtherDevice {
        /// Where it is.
        found: DLDevice,
        /// The requested device.
        expected: Box<str>,
    },
    /// A tensor's elements do not follow each other.
    #[error(
        "the tensor of shape {shape:?} has strides {strides:?}: its elements do not lie row after row without gaps; copy it first"
    )]
    NotContiguous {
        /// Its shape.
        shape: Vec<usize>,
        /// Its strides in elements.
        strides: Vec<i64>,
    },
    /// A tensor must not be written, and so cannot become a buffer that may be.
    #[error("the tensor is read-only: take it as a `ReadOnlyBuffer`, or copy it")]
    ReadOnly,
    /// A read-only tensor was to leave in a form that cannot say so.
    #[error("the tensor is read-only, which the form before DLPack 1.0 cannot say: use `into_raw`")]
    UnversionedReadOnly,
    /// A layout reaches beyond the elements that there are.
    #[error(
        "shape {shape:?} with strides {strides:?} from element {offset} on reaches elements {first} to {last}, \
         but the tensor has {length}"
    )]
    Layout {
        /// The requested shape.
        shape: Vec<usize>,
        /// The requested strides, in elements.
        strides: Vec<i64>,
        /// The requested first element.
        offset: usize,
        /// The first element that would be reached, or the least number that there is.
        first: i64,
        /// The last element that would be reached, or the greatest number that there is.
        last: i64,
        /// The available elements.
        length: usize,
    },
    /// A layout has not as many strides as dimensions.
    #[error("a shape of {rank} dimensions needs {rank} strides, not {strides}")]
    Rank {
        /// The dimensions of the shape.
        rank: usize,
        /// The strides that were given.
        strides: usize,
    },
    /// A tensor's first element is not aligned for its type.
    #[error(
        "the tensor starts at {address:#x}, which is not aligned to the {alignment} bytes of its elements"
    )]
    Alignment {
        /// The address.
        address: usize,
        /// The alignment of the element type.
        alignment: usize,
    },
    /// A shape has another number of elements than the tensor.
    #[error("a tensor of {length} elements cannot have the shape {shape:?}")]
    Shape {
        /// The requested shape.
        shape: Vec<usize>,
        /// The available elements.
        length: usize,
    },
}

fn type_name(ty: &DLDataType) -> impl Display {
    from_fn(move |f| {
        let DLDataType { code, bits, lanes } = ty;
        match *code {
            abi::INT => write!(f, "int{bits}")?,
            abi::UINT => write!(f, "uint{bits}")?,
            abi::FLOAT => write!(f, "float{bits}")?,
            abi::BFLOAT => write!(f, "bfloat{bits}")?,
            abi::COMPLEX => write!(f, "complex{bits}")?,
            abi::BOOL => f.write_str("bool")?,
            code => write!(f, "code {code} with {bits} bits")?,
        }
        if *lanes == 1 { Ok(()) } else { write!(f, "x{lanes}") }
    })
}
