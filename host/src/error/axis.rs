//! The axes of grids and blocks in errors.

/// One axis of a grid or a block; x is the fastest.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// # #[kernel]
/// # pub fn empty(_t: Thread<3>) {}
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::{Axis, LaunchError};
///
/// // 65 threads along z, where a block has at most 64.
/// let refused = kernels::empty(&stream, Grid::new([1, 1, 1], [2, 2, 65]));
/// let Err(Error::Launch(LaunchError::BlockTooLarge { axis, value, limit, .. })) = refused else { panic!() };
/// assert_eq!((axis, value, limit), (Axis::Z, 65, 64));
/// assert_eq!(Axis::ALL.map(|axis| axis.to_string()), ["x", "y", "z"]);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Axis {
    /// The first axis.
    X,
    /// The second axis.
    Y,
    /// The third axis.
    Z,
}

impl Axis {
    /// All axes, x first.
    pub const ALL: [Axis; 3] = [Axis::X, Axis::Y, Axis::Z];
}

display_words!(Axis { X = "x", Y = "y", Z = "z" });
