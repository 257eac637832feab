//! Second-level cache policies for memory that kernels use repeatedly.

use ferrogrid_device::DeviceCopy;

use crate::backend::{AccessPolicyWindow, AccessProperty, MemorySyncDomain};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::properties::attribute::DeviceAttribute;
use crate::stream::Stream;
use crate::view::argument::DeviceInput;

impl AccessPolicyWindow {
    /// All uses of `data` are treated as `hit`.
    pub fn new<'a, T: DeviceCopy>(data: impl DeviceInput<'a, T>, hit: AccessProperty) -> Self {
        let data = data.into_input();
        let (start, bytes) = (data.start().addr(), data.len() * size_of::<T>());
        AccessPolicyWindow { start, bytes, hit_ratio: 1.0, hit, streaming_misses: false }
    }
}

impl Stream {
    /// Sets the second-level cache policy of memory for all later launches on this stream
    /// (`cuStreamSetAttribute`, `CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW`); `None` removes it. A launch with its own window
    /// ([`Grid::with_access_policy_window`](crate::Grid::with_access_policy_window)) has that in place of it. No effect on the CPU.
    ///
    /// # Errors
    /// [`Error::AccessPolicyWindowTooLarge`] if it has more bytes than the device takes;
    /// [`GraphError::NotRecordable`](crate::GraphError::NotRecordable) in a recording; or a failure of the driver.
    pub fn set_access_policy_window(&self, window: Option<AccessPolicyWindow>) -> Result<()> {
        self.device().check_access_policy_window(window)?;
        self.inner().backend().set_access_policy_window(window)
    }

    /// Puts all launches here from now on into that domain (`cuStreamSetAttribute`,
    /// `CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN`), except launches that set their own
    /// ([`Grid::with_memory_sync_domain`](crate::Grid::with_memory_sync_domain)). No effect on the CPU.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// use ferrogrid::MemorySyncDomain;
    ///
    /// // Its kernels write to other GPUs: fences of other streams' kernels do not wait for that.
    /// let exchange = Device::cpu().new_stream()?;
    /// exchange.set_memory_sync_domain(MemorySyncDomain::Remote)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`GraphError::NotRecordable`](crate::GraphError::NotRecordable) in a recording; or a failure of the driver.
    pub fn set_memory_sync_domain(&self, domain: MemorySyncDomain) -> Result<()> {
        self.inner().backend().set_memory_sync_domain(domain)
    }
}

impl Device {
    /// Sets aside that much of the second-level cache for memory that persists there (`cuCtxSetLimit`,
    /// `CU_LIMIT_PERSISTING_L2_CACHE_SIZE`), at most
    /// [`MAX_PERSISTING_L2_CACHE_SIZE`](DeviceAttribute::MAX_PERSISTING_L2_CACHE_SIZE); see [`AccessPolicyWindow`]. The driver may
    /// round it. No effect on the CPU.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// use ferrogrid::DeviceAttribute;
    ///
    /// let device = Device::best()?;
    /// if device.is_cuda() {
    ///     let most = device.attribute(DeviceAttribute::MAX_PERSISTING_L2_CACHE_SIZE)?;
    ///     device.set_persisting_l2_cache_size(most.unsigned_abs() as usize / 2)?;
    ///     device.reset_persisting_l2_cache()?;
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The driver's error for more than the cache has.
    pub fn set_persisting_l2_cache_size(&self, bytes: usize) -> Result<()> {
        self.backend().set_persisting_l2_cache_size(bytes)
    }

    /// Resets persisting lines in the second-level cache to normal (`cuCtxResetPersistingL2Cache`). No effect on the CPU.
    ///
    /// # Errors
    /// If the driver fails.
    pub fn reset_persisting_l2_cache(&self) -> Result<()> {
        self.backend().reset_persisting_l2_cache()
    }

    /// Whether the device takes such a window. No effect on the CPU.
    pub(crate) fn check_access_policy_window(&self, window: Option<AccessPolicyWindow>) -> Result<()> {
        let Some(AccessPolicyWindow { bytes, .. }) = window.filter(|_| self.is_cuda()) else { return Ok(()) };
        let limit = self.attribute(DeviceAttribute::MAX_ACCESS_POLICY_WINDOW_SIZE)?.unsigned_abs() as usize;
        if bytes <= limit {
            return Ok(());
        }
        Err(Error::AccessPolicyWindowTooLarge { bytes, device: self.to_string().into(), limit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hit_ratio_lies_between_0_and_1() {
        let x = Device::cpu().new_stream().unwrap().zeros::<u32>(100).unwrap();
        let window = AccessPolicyWindow::new(&x, AccessProperty::Persisting);
        assert_eq!((window.bytes, window.start), (400, x.as_device_ptr().as_raw().addr()));
        for ratio in [0.0, 0.5, 1.0] {
            assert_eq!(window.with_hit_ratio(ratio).unwrap().hit_ratio, ratio);
        }
        for (ratio, name) in [(-0.1, "-0.1"), (1.5, "1.5"), (f32::NAN, "NaN")] {
            assert_eq!(window.with_hit_ratio(ratio), Err(Error::HitRatio { ratio: name.into() }));
        }
        assert_ne!(window.with_hit_ratio(0.5).unwrap(), window);
    }
}
