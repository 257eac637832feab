//! [`ScatterSlice`]: an output whose elements go to the first thread that claims them; the launch keeps one
//! claim for each.

use core::marker::PhantomData;

use crate::atomic::{DeviceAtomic, Ordering};

/// A mutable slice of device memory that threads write at any index, each element once per launch: for
/// scatters, whose indices are computed at run time. The launch checks that they are all different.
///
/// At the launch it is a `&mut DeviceBuffer<T>` or a mutable view, as for
/// [`DisjointSlice`](crate::DisjointSlice). The launch keeps one bit per element, initially 0, also at each
/// launch of a graph. An access costs one atomic operation more than that of a `DisjointSlice`.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// #[derive(Clone, Copy, DeviceCopy)]
/// #[repr(C)]
/// pub struct Particle {
///     pub place: [f32; 3],
///     pub cell: u32,
/// }
///
/// /// Puts each particle where its order says.
/// #[kernel]
/// pub fn reorder(t: Thread<1>, particles: &[Particle], order: &[u32], sorted: ScatterSlice<Particle>) {
///     let i = t.index().get();
///     if let (Some(particle), Some(&place)) = (particles.get(i), order.get(i)) {
///         sorted.set(place as usize, *particle); // panics if two have one place
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let particle = |cell| kernels::Particle { place: [0.0; 3], cell };
/// let particles = stream.upload(&[particle(5), particle(6), particle(7)])?;
/// let mut sorted = stream.upload(&[particle(0); 3])?;
/// let order = stream.upload(&[2, 0, 1])?;
/// kernels::reorder(&stream, Grid::cover(3), &particles, &order, &mut sorted)?;
/// assert_eq!(stream.download(&sorted)?.iter().map(|it| it.cell).collect::<Vec<_>>(), [6, 7, 5]);
///
/// let wrong = stream.upload(&[2, 0, 2])?;
/// kernels::reorder(&stream, Grid::cover(3), &particles, &wrong, &mut sorted)?;
/// let error = stream.synchronize().unwrap_err();
/// assert!(error.to_string().contains("element 2 of a `ScatterSlice` has been claimed before"));
/// # Ok(()) }
/// ```
pub struct ScatterSlice<'a, T> {
    start: *mut T,
    len: usize,
    /// One bit per element: whether it is claimed.
    claims: *const DeviceAtomic<u32>,
    borrowed: PhantomData<&'a mut [T]>,
}

impl<'a, T> ScatterSlice<'a, T> {
    /// The memory from `start` on.
    ///
    /// # Safety
    /// For `'a`, `start` must be valid for reads and writes of `len` elements, all initialised (or
    /// well-aligned and non-null when that is 0), and `claims` for as many bits in whole words. Nothing else
    /// may reach either except `ScatterSlice`s with the same values in threads of one launch. All bits are 0
    /// before that launch.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn from_raw_parts(start: *mut T, [len]: [usize; 1], claims: *const u32) -> Self {
        ScatterSlice { start, len, claims: claims.cast(), borrowed: PhantomData }
    }

    /// The number of elements.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Claims the element at `index`, which belongs to this thread from now on. `None` beyond the end, and if
    /// any thread of the launch, including this one, has claimed it before.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// Each thread marks a cell, unless another has.
    /// #[kernel]
    /// pub fn mark(t: Thread<1>, cells: &[u32], first: ScatterSlice<u32>) {
    ///     let i = t.index().get();
    ///     if let Some(mark) = cells.get(i).and_then(|&cell| first.claim(cell as usize)) {
    ///         *mark += 1;
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let (cells, mut first) = (stream.upload(&[1, 3, 1, 100, 3, 1])?, stream.upload(&[10, 20, 30, 40])?);
    /// kernels::mark(&stream, Grid::cover(6), &cells, &mut first)?;
    /// assert_eq!(stream.download(&first)?, [10, 21, 30, 41]);
    /// # Ok(()) }
    /// ```
    #[inline(always)]
    pub fn claim(&self, index: usize) -> Option<&'a mut T> {
        if index >= self.len {
            return None;
        }
        let bit = 1 << (index % 32);
        // SAFETY: there is a word for the bit, which is changed by atomic operations only.
        let word = unsafe { &*self.claims.add(index / 32) };
        if word.fetch_or(bit, Ordering::Relaxed) & bit != 0 {
            return None;
        }
        // SAFETY: in bounds; the bit was 0, so no other thread has had this element in this launch, nor will.
        Some(unsafe { &mut *self.start.add(index) })
    }

    /// Writes `value` to the element at `index`.
    ///
    /// # Panics
    /// If `index` is out of bounds, or if any thread of the launch, including this one, has claimed the
    /// element before.
    #[track_caller]
    #[inline(always)]
    pub fn set(&self, index: usize, value: T) {
        let len = self.len;
        assert!(index < len, "a `ScatterSlice` has {len} elements, but the index is {index}");
        match self.claim(index) {
            Some(element) => *element = value,
            None => panic!("element {index} of a `ScatterSlice` has been claimed before in this launch"),
        }
    }
}
