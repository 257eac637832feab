//! L2 eviction policies: the priority of the cache lines that loads and stores bring in.

#[cfg(all(target_arch = "nvptx64", any(target_feature = "sm_87", target_feature = "ptx74")))]
use super::ptx as source;
use super::width;
use crate::element::device_copy::DeviceCopy;

/// The order in which L2 evicts cache lines (PTX `primary_priority`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrimaryPriority {
    /// Evicted last: for data that is read repeatedly (CUDA's `cudaAccessPropertyPersisting`).
    EvictLast,
    /// As without a policy; resets the priority that an earlier policy gave to a line (CUDA's
    /// `cudaAccessPropertyNormal`).
    EvictNormal,
    /// Evicted first: for data that is read or written once (CUDA's `cudaAccessPropertyStreaming`).
    EvictFirst,
    /// Keeps the line's priority.
    EvictUnchanged,
}

/// The priority of accesses outside a policy's fraction or range (PTX `secondary_priority`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecondaryPriority {
    /// Keeps the line's priority.
    EvictUnchanged,
    /// Evicted first.
    EvictFirst,
}

/// An L2 eviction policy (PTX `createpolicy`; `cuda::access_property`, `cuda::annotated_ptr`). Each thread
/// creates it once, and passes it to [`load_cache_hint`] and [`store_cache_hint`].
///
/// A policy changes no value. It has no effect on the CPU device, and in code for architectures before
/// `sm_87`, whose PTX lacks it.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use cache::{L2Policy, PrimaryPriority::*, SecondaryPriority};
///
/// /// Half of the table stays in L2, if there is not room for all of it; what is read and written once leaves first.
/// #[kernel]
/// pub fn look_up(t: Thread<1>, x: &[u32], table: &[f32], mut y: DisjointSlice<f32>) {
///     let stays = L2Policy::fractional(EvictLast, 0.5, SecondaryPriority::EvictUnchanged);
///     let leaves = L2Policy::fractional(EvictFirst, 1.0, SecondaryPriority::EvictUnchanged);
///     let i = t.index();
///     if let (Some(y), Some(x)) = (y.get_mut(i), x.get(i.get())) {
///         let place = cache::load_cache_hint(x, leaves);
///         let found = cache::load_cache_hint(&table[place as usize], stays);
///         cache::store_cache_hint(y, found, leaves);
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let (x, table) = (stream.upload(&[2, 0, 2])?, stream.upload(&[1.0, 2.0, 3.0])?);
/// let mut y = stream.zeros(3)?;
/// kernels::look_up(&stream, Grid::cover(3), &x, &table, &mut y)?;
/// assert_eq!(stream.download(&y)?, [3.0, 1.0, 3.0]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct L2Policy {
    /// Created by `createpolicy`; other bits are invalid.
    #[cfg_attr(
        not(all(target_arch = "nvptx64", any(target_feature = "sm_87", target_feature = "ptx74"))),
        expect(dead_code, reason = "policies have no effect there")
    )]
    pub(super) bits: u64,
}

impl L2Policy {
    /// A policy with priority `primary` for a `fraction` of the lines, above 0 and up to 1, and `secondary`
    /// for the others (PTX `createpolicy.fractional`, `cuda::access_property(property, fraction)`). The
    /// address of a line decides which part it belongs to.
    ///
    /// # Panics
    /// If `fraction` is not within these bounds.
    #[track_caller]
    #[inline(always)]
    pub fn fractional(primary: PrimaryPriority, fraction: f32, secondary: SecondaryPriority) -> Self {
        assert!(
            fraction > 0.0 && fraction <= 1.0,
            "a policy is for a fraction above 0 and up to 1 of the lines"
        );
        source::fractional(primary, fraction, secondary)
    }

    /// A policy with priority `primary` for the first `primary_len` elements of `window`, and `secondary` for
    /// its others (PTX `createpolicy.range`, `cuda::access_property(pointer, primary_bytes, bytes, ..)`).
    /// Accesses outside the window are as without a policy. Only the first 4 GiB of a window count; a
    /// `primary_len` above its length means all of it.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// use cache::{L2Policy, PrimaryPriority::EvictLast, SecondaryPriority::EvictFirst};
    ///
    /// /// Sums of elements that a list names, most of which are among the first thousand.
    /// #[kernel]
    /// pub fn gather(t: Thread<1>, list: &[[u32; 4]], x: &[f32], mut y: DisjointSlice<f32>) {
    ///     let policy = L2Policy::range(EvictLast, x, 1000, EvictFirst);
    ///     let i = t.index();
    ///     if let (Some(y), Some(places)) = (y.get_mut(i), list.get(i.get())) {
    ///         *y = places.iter().map(|&place| cache::load_cache_hint(&x[place as usize], policy)).sum();
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let (list, x) = (stream.upload(&[[0, 5, 1, 5000]])?, stream.fill(0.25_f32, 10_000)?);
    /// let mut y = stream.zeros(1)?;
    /// kernels::gather(&stream, Grid::cover(1), &list, &x, &mut y)?;
    /// assert_eq!(stream.download(&y)?, [1.0]);
    /// # Ok(()) }
    /// ```
    #[inline(always)]
    pub fn range<T: DeviceCopy>(
        primary: PrimaryPriority,
        window: &[T],
        primary_len: usize,
        secondary: SecondaryPriority,
    ) -> Self {
        let bytes = |elements: usize| u32::try_from(elements * size_of::<T>()).unwrap_or(u32::MAX);
        let sizes = [primary_len.min(window.len()), window.len()].map(bytes);
        source::range(primary, window.as_ptr(), sizes, secondary)
    }
}

/// Loads with a policy for L2 (PTX `ld.global.L2::cache_hint`); [`L2Policy`] has an example.
#[inline(always)]
pub fn load_cache_hint<T: DeviceCopy>(place: &T, policy: L2Policy) -> T {
    const { width::<T>() };
    source::load(place, policy)
}

/// Stores with a policy for L2 (PTX `st.global.L2::cache_hint`); [`L2Policy`] has an example.
#[inline(always)]
pub fn store_cache_hint<T: DeviceCopy>(place: &mut T, value: T, policy: L2Policy) {
    const { width::<T>() };
    source::store(place, value, policy);
}

/// For targets without policies.
#[cfg(not(all(target_arch = "nvptx64", any(target_feature = "sm_87", target_feature = "ptx74"))))]
mod source {
    use super::{L2Policy, PrimaryPriority, SecondaryPriority};

    pub(super) fn fractional(_: PrimaryPriority, _: f32, _: SecondaryPriority) -> L2Policy {
        L2Policy { bits: 0 }
    }

    pub(super) fn range<T>(_: PrimaryPriority, _: *const T, _: [u32; 2], _: SecondaryPriority) -> L2Policy {
        L2Policy { bits: 0 }
    }

    pub(super) fn load<T: Copy>(place: &T, _: L2Policy) -> T {
        *place
    }

    pub(super) fn store<T>(place: &mut T, value: T, _: L2Policy) {
        *place = value;
    }
}
