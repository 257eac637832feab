//! Stream memory operations: a stream writes a number in order, or waits for one.

use ferrogrid_device::DeviceCopy;

use crate::backend::operation::ValueCondition;
use crate::error::Result;
use crate::stream::Stream;
use crate::view::pointer::{DevicePtr, DevicePtrMut};

/// A number that streams write and wait for: `u32` or `u64`.
///
/// ```
/// use ferrogrid_host::StreamValue;
///
/// fn bits<V: StreamValue>() -> usize {
///     8 * size_of::<V>()
/// }
/// assert_eq!((bits::<u32>(), bits::<u64>()), (32, 64));
/// ```
pub trait StreamValue: DeviceCopy + sealed::Sealed {}

impl StreamValue for u32 {}
impl StreamValue for u64 {}

mod sealed {
    pub trait Sealed: Into<u64> {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
}

/// What [`Stream::wait_value`] waits for (`CUstreamWaitValue_flags`).
///
/// ```
/// # fn main() -> ferrogrid_host::Result<()> {
/// use ferrogrid_host::WaitValue;
///
/// let device = ferrogrid_host::Device::cpu();
/// let (stream, count) = (device.new_stream()?, device.pinned_copy(&[5_u64])?);
/// for condition in [WaitValue::GreaterOrEqual(4), WaitValue::Equal(5), WaitValue::And(4), WaitValue::Nor(5)] {
///     // SAFETY: the number is there until the stream has waited, and is not written meanwhile.
///     unsafe { stream.wait_value(count.view().as_device_ptr(), condition)? };
/// }
/// stream.synchronize()
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitValue<V> {
    /// The number has reached this one: their difference, as a signed number, is not negative. So a counter may wrap around.
    GreaterOrEqual(V),
    /// It is this one.
    Equal(V),
    /// They have a bit in common.
    And(V),
    /// There is a bit that neither has. Not all GPUs can wait for it
    /// ([`CAN_USE_STREAM_WAIT_VALUE_NOR`](crate::DeviceAttribute::CAN_USE_STREAM_WAIT_VALUE_NOR)).
    Nor(V),
}

impl<V: StreamValue> From<WaitValue<V>> for ValueCondition {
    fn from(condition: WaitValue<V>) -> Self {
        let (kind, value) = match condition {
            WaitValue::GreaterOrEqual(value) => (0, value),
            WaitValue::Equal(value) => (1, value),
            WaitValue::And(value) => (2, value),
            WaitValue::Nor(value) => (3, value),
        };
        ValueCondition { kind, value: value.into(), is_wide: size_of::<V>() == 8 }
    }
}

impl Stream {
    /// Writes `value` once all work enqueued here so far has run (`cuStreamWriteValue32`, `cuStreamWriteValue64`). What that
    /// work wrote is visible to every reader of the value.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// use ferrogrid_host::WaitValue;
    ///
    /// let device = ferrogrid_host::Device::cpu();
    /// let (producer, consumer) = (device.new_stream()?, device.new_stream()?);
    /// let mut flag = device.pinned_zeros::<u32>(1)?;
    /// // SAFETY: the flag lives until both streams have run, and nothing else uses it.
    /// unsafe {
    ///     consumer.wait_value(flag.view().as_device_ptr(), WaitValue::Equal(1))?;
    ///     producer.write_value(flag.view_mut().as_device_ptr_mut(), 1)?;
    /// }
    /// producer.synchronize()?;
    /// consumer.synchronize()
    /// # }
    /// ```
    ///
    /// The driver supports no numbers in memory of pools, where [`DeviceBuffer`](crate::DeviceBuffer)s are (seen with driver
    /// 580): use page-locked memory, or memory from `cuMemAlloc`.
    ///
    /// # Errors
    /// [`Error::Unsupported`](crate::Error::Unsupported) for such memory on a GPU;
    /// [`GraphError::NotRecordable`](crate::GraphError::NotRecordable) in a recording; or a failure of the driver.
    ///
    /// # Safety
    /// `target` must be aligned, and lead to a number in memory of this device until the stream has written it. The buffer's
    /// own order does not cover it: until then only [`Stream::wait_value`] and atomic operations may use the
    /// number.
    pub unsafe fn write_value<V: StreamValue>(&self, target: DevicePtrMut<V>, value: V) -> Result<()> {
        let (address, is_wide) = (target.as_raw().cast::<u8>(), size_of::<V>() == 8);
        // SAFETY: passed on.
        unsafe { self.inner().backend().write_value(address, value.into(), is_wide) }
    }

    /// Holds later work here until `condition` holds of a number (`cuStreamWaitValue32`, `cuStreamWaitValue64`): until a
    /// kernel, another stream ([`Stream::write_value`]) or another process has written it. The host does not wait, and
    /// no thread of the GPU does. On the CPU device the stream looks again and again.
    ///
    /// A GPU runs streams over a limited number of channels (`CUDA_DEVICE_MAX_CONNECTIONS`). Enqueue the write before the
    /// wait where that is possible: otherwise it may be queued behind the wait in the same channel.
    ///
    /// # Errors
    /// [`Error::Unsupported`](crate::Error::Unsupported) if the device cannot wait for it, or not in this memory, as for
    /// [`Stream::write_value`];
    /// [`GraphError::NotRecordable`](crate::GraphError::NotRecordable) in a recording; or a failure of the driver.
    ///
    /// # Safety
    /// `source` must be aligned, and lead to a number in memory of this device until the stream has waited. The buffer's own
    /// order does not cover it: meanwhile the number may be written only by [`Stream::write_value`] or
    /// atomically. It must be written eventually, by work that does not come after this stream's: the buffer's other
    /// uses on other streams may.
    pub unsafe fn wait_value<V: StreamValue>(
        &self,
        source: DevicePtr<V>,
        condition: WaitValue<V>,
    ) -> Result<()> {
        let (address, condition) = (source.as_raw().cast::<u8>(), condition.into());
        // SAFETY: passed on.
        unsafe { self.inner().backend().wait_value(address, condition) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds<V: StreamValue>(condition: WaitValue<V>, found: V) -> bool {
        ValueCondition::from(condition).holds(found.into())
    }

    #[test]
    fn a_counter_may_wrap_around() {
        assert!(
            holds(WaitValue::GreaterOrEqual(u32::MAX), 1) && !holds(WaitValue::GreaterOrEqual(1), u32::MAX)
        );
        assert!(
            holds(WaitValue::GreaterOrEqual(u64::MAX), 1) && !holds(WaitValue::GreaterOrEqual(1), u64::MAX)
        );
        assert!(holds(WaitValue::GreaterOrEqual(7_u32), 7) && holds(WaitValue::GreaterOrEqual(7_u64), 8));
        assert!(
            !holds(WaitValue::GreaterOrEqual(0_u32), 1 << 31)
                && holds(WaitValue::GreaterOrEqual(0_u64), 1 << 31)
        );
    }

    #[test]
    fn bits_are_those_of_the_number() {
        assert!(holds(WaitValue::And(6_u32), 2) && !holds(WaitValue::And(6_u64), 9));
        assert!(holds(WaitValue::Nor(1_u32), 2) && !holds(WaitValue::Nor(u32::MAX - 1), 1));
        assert!(holds(WaitValue::Nor(u64::from(u32::MAX) - 1), 1) && !holds(WaitValue::Nor(u64::MAX), 0));
        assert!(holds(WaitValue::Equal(5_u64), 5) && !holds(WaitValue::Equal(5_u32), 4));
    }
}
