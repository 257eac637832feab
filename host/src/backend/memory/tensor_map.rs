//! Tensor maps, by which GPUs of compute capability 9.0 and more copy tiles of a plane, or boxes of a tensor, to shared memory and back.

use ferrogrid_device::{AXES, MapForm};

/// What the driver writes.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
pub(crate) struct Encoded(pub(crate) [u64; 16]);

impl Encoded {
    /// The parameter of kernels that do not read it.
    pub(crate) const UNUSED: Encoded = Encoded([0; 16]);
}

/// The bytes of which the start of a tensor and the lengths of its rows are multiples.
pub(crate) const ALIGNMENT: usize = 16;

/// The most elements along an axis: their places are positive 32-bit numbers.
pub(crate) const LONGEST: usize = i32::MAX as usize;

/// A tensor and its boxes: a plane and its tiles.
pub(crate) struct Tiled {
    pub(crate) start: *const u8,
    /// The size of an element in bytes.
    pub(crate) element: usize,
    pub(crate) rank: usize,
    /// The elements along each axis, the rows' first; 1 along axes that there are not.
    pub(crate) extent: [usize; AXES],
    /// The elements from the start of a row to that of the next.
    pub(crate) pitch: usize,
    /// If the rows of a box have 128 bytes, its layout is swizzled.
    pub(crate) form: MapForm,
}
