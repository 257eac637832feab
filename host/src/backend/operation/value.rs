//! The condition of a number in memory that a stream waits for.

/// What a number of 32 or 64 bits must be, as [`WaitValue`](crate::WaitValue) states it.
#[derive(Clone, Copy)]
pub(crate) struct ValueCondition {
    /// The number of the kind in `CUstreamWaitValue_flags`.
    pub(crate) kind: u32,
    pub(crate) value: u64,
    /// Whether the number has 64 bits.
    pub(crate) is_wide: bool,
}

impl ValueCondition {
    /// Whether it holds for `found`.
    pub(crate) fn holds(self, found: u64) -> bool {
        // In the highest bits, where signs and overflow are those of 64 bits.
        let shift = if self.is_wide { 0 } else { 32 };
        let (found, value) = (found << shift, self.value << shift);
        match self.kind {
            0 => found.wrapping_sub(value).cast_signed() >= 0,
            1 => found == value,
            2 => found & value != 0,
            _ => !(found | value) >> shift != 0,
        }
    }
}
