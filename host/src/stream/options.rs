//! Options of new streams.

/// Flags and priority of a new stream, for [`Device::new_stream_with`](crate::Device::new_stream_with)
/// (the arguments of `cuStreamCreateWithPriority`).
///
/// ```
/// # fn main() -> ferrogrid_host::Result<()> {
/// use ferrogrid_host::{Device, StreamOptions};
///
/// let device = Device::cpu();
/// let (_least, greatest) = device.stream_priority_range()?;
/// let urgent = device.new_stream_with(StreamOptions::new().with_priority(greatest))?;
/// assert_eq!(urgent.priority()?, greatest);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct StreamOptions {
    pub(crate) ordered_with_legacy: bool,
    pub(crate) priority: i32,
}

impl StreamOptions {
    /// No order with the legacy default stream (`CU_STREAM_NON_BLOCKING`), priority 0.
    pub const fn new() -> Self {
        StreamOptions { ordered_with_legacy: false, priority: 0 }
    }
}

setters! { StreamOptions:
    /// Orders the stream with the legacy default stream, as `CU_STREAM_DEFAULT` does. Work on either waits for earlier work
    /// on the other. For programs that share the device with code that uses the default stream.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// use ferrogrid::StreamOptions;
    ///
    /// let device = Device::best()?;
    /// // Waits for what a C++ library does on "stream 0", and that library for it.
    /// let stream = device.new_stream_with(StreamOptions::new().ordered_with_legacy())?;
    /// let ones = device.legacy_stream()?.fill(1_u32, 3)?;
    /// assert_eq!(stream.download(&ones)?, [1; 3]);
    /// # Ok(()) }
    /// ```
    pub const fn ordered_with_legacy(): ordered_with_legacy = true;

    /// The priority: lower numbers go first, when blocks of several streams wait for a place. See
    /// [`Device::stream_priority_range`](crate::Device::stream_priority_range).
    pub const fn with_priority(priority: i32): priority = priority;
}
