//! The operations by which ranks combine their elements.

use std::ptr::from_ref;

use crate::element::Element;

/// How the elements of all ranks become one (`ncclRedOp_t`).
///
/// Integers wrap. `Min` and `Max` of a NaN and a number are the number.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::nccl::{Communicator, Group, ReduceOp};
///
/// let ranks = Communicator::all(&[Device::cpu(), Device::cpu()])?;
/// let stream = Device::cpu().new_stream()?;
/// let mut reduce = |op: ReduceOp<f32>| {
///     let mut data = [stream.upload(&[1.0, 2.0])?, stream.upload(&[3.0, 10.0])?];
///     let mut group = Group::new();
///     for (rank, data) in ranks.iter().zip(&mut data) {
///         group.push(&stream, rank.all_reduce_in_place(op, data));
///     }
///     group.run()?;
///     stream.download(&data[1])
/// };
/// assert_eq!(reduce(ReduceOp::Sum)?, [4.0, 12.0]);
/// assert_eq!(reduce(ReduceOp::Product)?, [3.0, 20.0]);
/// assert_eq!(reduce(ReduceOp::Min)?, [1.0, 2.0]);
/// assert_eq!(reduce(ReduceOp::Max)?, [3.0, 10.0]);
/// assert_eq!(reduce(ReduceOp::Average)?, [2.0, 6.0]);
/// assert_eq!(reduce(ReduceOp::ScaledSum(0.25))?, [1.0, 3.0]);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum ReduceOp<T> {
    /// The sum (`ncclSum`).
    Sum,
    /// The product (`ncclProd`).
    Product,
    /// The least (`ncclMin`).
    Min,
    /// The greatest (`ncclMax`).
    Max,
    /// The sum divided by the number of ranks (`ncclAvg`); of integers, rounded towards zero.
    Average,
    /// The sum of the elements, each multiplied by its own rank's factor before (`ncclRedOpCreatePreMulSum`).
    ScaledSum(T),
}

/// A `ReduceOp` without its type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reduction {
    Sum,
    Product,
    Min,
    Max,
    Average,
    /// With the bytes of the factor, which is one element.
    ScaledSum(Scalar),
}

/// The bytes of one element, from the first on.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C, align(8))]
pub(crate) struct Scalar([u8; 8]);

impl Scalar {
    fn of<T: Element>(value: T) -> Self {
        const { assert!(size_of::<T>() <= 8 && align_of::<T>() <= 8) };
        let mut scalar = Scalar([0; 8]);
        // SAFETY: both are valid for the bytes of a `T`, which fit; elements are numbers, without padding.
        unsafe { scalar.0.as_mut_ptr().copy_from_nonoverlapping(from_ref(&value).cast(), size_of::<T>()) };
        scalar
    }

    pub(crate) fn bytes(&self) -> &[u8; 8] {
        &self.0
    }

    pub(crate) fn from_bytes(bytes: [u8; 8]) -> Self {
        Scalar(bytes)
    }

    pub(crate) fn as_ptr(&self) -> *const u8 {
        self.0.as_ptr()
    }
}

impl Reduction {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Reduction::Sum => "sum",
            Reduction::Product => "product",
            Reduction::Min => "min",
            Reduction::Max => "max",
            Reduction::Average => "average",
            Reduction::ScaledSum(_) => "scaled sum",
        }
    }
}

impl<T: Element> From<ReduceOp<T>> for Reduction {
    fn from(op: ReduceOp<T>) -> Self {
        match op {
            ReduceOp::Sum => Reduction::Sum,
            ReduceOp::Product => Reduction::Product,
            ReduceOp::Min => Reduction::Min,
            ReduceOp::Max => Reduction::Max,
            ReduceOp::Average => Reduction::Average,
            ReduceOp::ScaledSum(factor) => Reduction::ScaledSum(Scalar::of(factor)),
        }
    }
}
