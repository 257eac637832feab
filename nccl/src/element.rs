//! The element types of messages.

use std::fmt;

use ferrogrid_device::DeviceCopy;
#[cfg(feature = "half")]
use ferrogrid_device::half::{bf16, f16};

/// Types of the elements that ranks exchange: `i8`, `u8`, `i32`, `u32`, `i64`, `u64`, `f32`, `f64`, and with the feature
/// `half` `f16` and `bf16` (`ncclDataType_t`).
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::nccl::{Communicator, Element, ReduceOp};
///
/// /// Adds what all ranks have.
/// fn add<T: Element>(
///     communicator: &Communicator,
///     stream: &Stream,
///     data: &mut DeviceBuffer<T>,
/// ) -> ferrogrid::Result<()> {
///     communicator.all_reduce_in_place(ReduceOp::Sum, data).enqueue(stream)
/// }
/// let [alone] = Communicator::all(&[Device::cpu()])?.try_into().unwrap();
/// let stream = alone.device().new_stream()?;
/// let mut data = stream.upload(&[1_u8, 2])?;
/// add(&alone, &stream, &mut data)?;
/// assert_eq!(stream.download(&data)?, [1, 2]);
/// # Ok(()) }
/// ```
pub trait Element: DeviceCopy + sealed::Sealed {
    #[doc(hidden)]
    const TYPE: ElementType;
}

/// The number of an element type in NCCL.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ElementType {
    I8 = 0,
    U8 = 1,
    I32 = 2,
    U32 = 3,
    I64 = 4,
    U64 = 5,
    F16 = 6,
    F32 = 7,
    F64 = 8,
    Bf16 = 9,
}

impl ElementType {
    /// The type with that number.
    pub(crate) fn of_number(number: u64) -> Option<Self> {
        let all = [
            ElementType::I8,
            ElementType::U8,
            ElementType::I32,
            ElementType::U32,
            ElementType::I64,
            ElementType::U64,
            ElementType::F16,
            ElementType::F32,
            ElementType::F64,
            ElementType::Bf16,
        ];
        all.into_iter().find(|element| *element as u64 == number)
    }

    pub(crate) fn size(self) -> usize {
        match self {
            ElementType::I8 | ElementType::U8 => 1,
            ElementType::F16 | ElementType::Bf16 => 2,
            ElementType::I32 | ElementType::U32 | ElementType::F32 => 4,
            ElementType::I64 | ElementType::U64 | ElementType::F64 => 8,
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ElementType::I8 => "i8",
            ElementType::U8 => "u8",
            ElementType::I32 => "i32",
            ElementType::U32 => "u32",
            ElementType::I64 => "i64",
            ElementType::U64 => "u64",
            ElementType::F16 => "f16",
            ElementType::F32 => "f32",
            ElementType::F64 => "f64",
            ElementType::Bf16 => "bf16",
        })
    }
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($(#[$attribute:meta])* $element:ty => $variant:ident;)*) => { $(
        $(#[$attribute])*
        impl sealed::Sealed for $element {}

        $(#[$attribute])*
        impl Element for $element {
            const TYPE: ElementType = ElementType::$variant;
        }
    )* };
}

elements! {
    i8 => I8;
    u8 => U8;
    i32 => I32;
    u32 => U32;
    i64 => I64;
    u64 => U64;
    f32 => F32;
    f64 => F64;
    #[cfg(feature = "half")]
    f16 => F16;
    #[cfg(feature = "half")]
    bf16 => Bf16;
}
