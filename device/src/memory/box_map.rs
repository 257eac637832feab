//! [`BoxMap`] and [`BoxMapMut`]: tensors of one axis, or of three to five, of which blocks copy whole boxes to shared memory and back.

use core::marker::PhantomData;

use super::tensor_map::{BoxSource, Encoded, MapForm, prefetch};
use super::tensor_map_mut::MapNumber;
use crate::atomic::AtomicValue;
#[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_90a")))]
use crate::atomic::DeviceAtomic;
use crate::element::device_copy::DeviceCopy;
use crate::shared::tiles::array::AXES;
use crate::shared::tiles::output::{self, BoxTarget};
use crate::shared::{BoxArray, OutputBox, Published};
use crate::thread::Thread;

/// A tensor of which blocks copy boxes `A` to shared memory ([`BoxStages`](crate::shared::BoxStages)). `A` is an array of one axis, or
/// of three to five. As a kernel's parameter, `x: BoxMap<[[[f32; 40]; 10]; 6]>`, it takes a view of that rank,
/// `buffer.view_3d(width, height, depth)?` or `buffer.view_nd([width, height, depth, further])?`, and in rank 1 `&buffer`. Rows of the
/// view have a multiple of 16 bytes, but in rank 1. In rank 2 it is a [`TensorMap`](crate::TensorMap), whose tiles are multiplied, too.
///
/// On GPUs of compute capability 9.0, in code for `sm_90a`, one thread starts the copy of a whole box (TMA, PTX
/// `cp.async.bulk.tensor`, `.1d` to `.5d`), by a tensor map that the launch makes (driver API `cuTensorMapEncodeTiled()`). Elsewhere
/// each thread copies elements of its own.
///
/// Elements have 1, 2, 4 or 8 bytes, a box has 1 to 256 of them along each axis, and its rows a multiple of 16 bytes: others are
/// compile errors.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use ferrogrid::device::shared::BoxStages;
///
/// /// y <- the sum of each element's six neighbours; there are zeros beyond the faces.
/// #[kernel(block = [8, 8, 4])]
/// pub fn neighbours(
///     t: Thread<3>, x: BoxMap<[[[f32; 16]; 10]; 6]>, mut y: DisjointSlice<f32, 3>, boxes: Shared<BoxStages<[[[f32; 16]; 10]; 6], 2>>,
/// ) {
///     let (mut boxes, [across, down, deep]) = (boxes.into_stages(), t.block_idx().map(|block| block as isize));
///     boxes.copy(&t, x, [4 * deep - 1, 8 * down - 1, 8 * across - 4]); // a layer and a row before, and 16 bytes
///     t.advance(&mut boxes);
///     let (x, [i, j, k]) = (boxes.current(), t.thread_idx().map(|axis| axis as usize));
///     let [k, j, i] = [k + 1, j + 1, i + 4];
///     if let Some(y) = y.get_mut(t.index()) {
///         let in_layer = x[[k, j, i - 1]] + x[[k, j, i + 1]] + x[[k, j - 1, i]] + x[[k, j + 1, i]];
///         *y = in_layer + x[[k - 1, j, i]] + x[[k + 1, j, i]];
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.fill(1.0_f32, 20 * 10 * 5)?; // 5 layers of 10 rows of 20
/// let mut y = stream.zeros(20 * 10 * 5)?;
/// let grid = Grid::cover([20, 10, 5]).with_block([8, 8, 4]);
/// kernels::neighbours(&stream, grid, x.view_3d(20, 10, 5)?, y.view_3d_mut(20, 10, 5)?)?;
/// let y = stream.download(&y)?;
/// assert_eq!((y[0], y[1], y[21], y[20 * 10 + 21], y[20 * 10 * 5 - 1]), (3.0, 4.0, 5.0, 6.0, 3.0));
/// # Ok(()) }
/// ```
pub struct BoxMap<'a, A: BoxArray> {
    start: *const A::Element,
    extent: [usize; AXES],
    /// The driver's tensor map: readable by the hardware that copies, in code for `sm_90a`.
    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
    map: *const Encoded,
    borrowed: PhantomData<&'a [A::Element]>,
}

// SAFETY: it is a `&[A::Element]`.
unsafe impl<A: BoxArray<Element: Sync>> Send for BoxMap<'_, A> {}
// SAFETY: it is a `&[A::Element]`.
unsafe impl<A: BoxArray<Element: Sync>> Sync for BoxMap<'_, A> {}

impl<A: BoxArray> Clone for BoxMap<'_, A> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<A: BoxArray> Copy for BoxMap<'_, A> {}

/// The number of an element in memory, if there is one at that place.
#[inline(always)]
fn number(extent: [usize; AXES], place: [usize; AXES]) -> Option<usize> {
    // Without branches, so that a guarded load is predicated.
    let is_inside = (0..AXES).fold(true, |is_inside, axis| is_inside & (place[axis] < extent[axis]));
    let number = (0..AXES)
        .rev()
        .fold(0_usize, |number, axis| number.wrapping_mul(extent[axis]).wrapping_add(place[axis]));
    is_inside.then_some(number)
}

#[inline(always)]
fn is_empty(extent: [usize; AXES]) -> bool {
    (0..AXES).fold(false, |is_empty, axis| is_empty | (extent[axis] == 0))
}

impl<'a, A: BoxArray<Element: DeviceCopy>> BoxMap<'a, A> {
    #[doc(hidden)]
    pub const FORM: MapForm = MapForm::new::<A::Element>(A::EXTENT);

    /// For the code that `#[kernel]` generates: a tensor of that extent, the rows' axis first, 1 along axes that there are not.
    ///
    /// # Safety
    /// `start` leads to that many elements, which are not written during `'a`. In code for `sm_90a` `map` is the address of a tensor
    /// map of them, for such boxes, in the parameters of the kernel, unless there are none.
    #[doc(hidden)]
    #[inline(always)]
    #[allow(unused_variables)]
    pub unsafe fn from_raw_parts(
        start: *const A::Element,
        extent: [usize; AXES],
        map: *const Encoded,
    ) -> Self {
        const { assert!(Self::FORM.lengths[0] > 0) };
        BoxMap {
            start,
            extent,
            #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
            map,
            borrowed: PhantomData,
        }
    }

    /// Elements along each axis, `[width, height, depth, ..]`; 1 along axes that there are not.
    #[inline(always)]
    pub fn extent(&self) -> [usize; 5] {
        self.extent
    }

    /// The element at `[layer, row, column]`, or what it is in this rank; `None` outside.
    #[inline(always)]
    pub fn get(&self, place: A::Place) -> Option<&'a A::Element> {
        self.element(A::of_place(place))
    }

    /// Asks for the box whose first element is at `corner`, which may lie outside, to be brought into the L2 cache, in code for `sm_90a`
    /// (PTX `cp.async.bulk.prefetch.tensor`); elsewhere it does nothing. The column is a multiple of 16 bytes. The block's first thread
    /// asks, the calls of others do nothing.
    ///
    /// # Panics
    /// If the column is no multiple of 16 bytes, or the place is 2^31 or more.
    #[track_caller]
    #[inline(always)]
    pub fn prefetch<const R: usize>(&self, thread: &Thread<'_, R>, corner: A::Corner) {
        prefetch::<A, R>(thread, *self, corner);
    }
}

impl<'a, A: BoxArray<Element: DeviceCopy>> BoxSource<'a, A> for BoxMap<'a, A> {
    #[inline(always)]
    fn element(self, place: [usize; AXES]) -> Option<&'a A::Element> {
        // SAFETY: there is such an element, as `from_raw_parts` vouches.
        number(self.extent, place).map(|number| unsafe { &*self.start.add(number) })
    }

    #[inline(always)]
    fn is_empty(self) -> bool {
        is_empty(self.extent)
    }

    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
    #[inline(always)]
    fn encoded(self) -> *const Encoded {
        self.map
    }
}

/// An output tensor to which blocks store boxes `A` from shared memory ([`OutputBox`]), or add them: [`store`](Self::store),
/// [`add`](Self::add). `A` is an array of one axis, or of three to five. As a kernel's parameter, `y: BoxMapMut<[[[f32; 32]; 8]; 4]>`, it
/// takes a mutable view of that rank, `buffer.view_3d_mut(width, height, depth)?` or
/// `buffer.view_nd_mut([width, height, depth, further])?`, and in rank 1 `&mut buffer`, whose rows have a multiple of 16 bytes. For the
/// rest it is as a [`TensorMapMut`](crate::TensorMapMut), which is that of rank 2.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use ferrogrid::device::shared::OutputBox;
///
/// /// y <- the number of each element's layer; sums <- sums + those of all blocks, row by row.
/// #[kernel(block = 128)]
/// pub fn number(
///     t: Thread<1>, y: BoxMapMut<[[[u32; 8]; 4]; 4]>, sums: BoxMapMut<[u32; 8]>,
///     mut out: Shared<OutputBox<[[[u32; 8]; 4]; 4]>>, mut row: Shared<OutputBox<[u32; 8]>>,
/// ) {
///     let first = 4 * t.block_idx()[0] as usize;
///     out.fill_with(&t, |[layer, _, _]| (first + layer) as u32);
///     row.fill_with(&t, |_| (first..first + 4).sum::<usize>() as u32);
///     let (out, row) = t.publish((out, row));
///     y.store(&t, &out, [first, 0, 0]); // beyond the faces nothing is stored
///     sums.add(&t, &row, 0);
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let (mut y, mut sums) = (stream.zeros(8 * 3 * 6)?, stream.zeros(8)?); // 6 layers of 3 rows of 8
/// kernels::number(&stream, Grid::blocks(2), y.view_3d_mut(8, 3, 6)?, &mut sums)?;
/// let y = stream.download(&y)?;
/// assert_eq!((y[23], y[24], y[5 * 24], y[6 * 24 - 1]), (0, 1, 5, 5));
/// assert_eq!(stream.download(&sums)?, [28; 8]);
/// # Ok(()) }
/// ```
pub struct BoxMapMut<'a, A: BoxArray> {
    start: *mut A::Element,
    extent: [usize; AXES],
    /// The driver's tensor map: readable by the hardware that stores, in code for `sm_90a`.
    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
    map: *const Encoded,
    borrowed: PhantomData<&'a mut [A::Element]>,
}

impl<A: BoxArray<Element: MapNumber>> BoxMapMut<'_, A> {
    #[doc(hidden)]
    pub const FORM: MapForm = MapForm {
        is_output: true,
        is_float: <A::Element as MapNumber>::IS_FLOAT,
        ..MapForm::new::<A::Element>(A::EXTENT)
    };

    /// For the code that `#[kernel]` generates: a tensor of that extent, the rows' axis first, 1 along axes that there are not.
    ///
    /// # Safety
    /// While the kernel runs, that many elements behind `start` are valid for reads and writes, and only values of this type that have
    /// the same start, in all threads, reach them. In code for `sm_90a` `map` is the address of a tensor map of them, for such boxes, in
    /// the parameters of the kernel, unless there are none; rows have a multiple of 16 bytes.
    #[doc(hidden)]
    #[inline(always)]
    #[allow(unused_variables)]
    pub unsafe fn from_raw_parts(start: *mut A::Element, extent: [usize; AXES], map: *const Encoded) -> Self {
        const { assert!(Self::FORM.lengths[0] > 0) };
        BoxMapMut {
            start,
            extent,
            #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
            map,
            borrowed: PhantomData,
        }
    }

    /// Elements along each axis, `[width, height, depth, ..]`; 1 along axes that there are not.
    #[inline(always)]
    pub fn extent(&self) -> [usize; 5] {
        self.extent
    }

    /// Stores the box, its first element at a place, as [`TensorMapMut::store`](crate::TensorMapMut::store).
    ///
    /// # Panics
    /// If the column is no multiple of 16 bytes, or the place is 2^31 or more.
    #[track_caller]
    #[inline(always)]
    pub fn store<const R: usize, const ID: usize>(
        &self,
        thread: &Thread<'_, R>,
        output: &Published<'_, OutputBox<A>, ID>,
        place: A::Place,
    ) {
        output::store(self, thread, output, place);
    }

    /// Adds the box to the elements, as [`TensorMapMut::add`](crate::TensorMapMut::add).
    ///
    /// # Panics
    /// As [`store`](Self::store).
    #[track_caller]
    #[inline(always)]
    pub fn add<const R: usize, const ID: usize>(
        &self,
        thread: &Thread<'_, R>,
        output: &Published<'_, OutputBox<A>, ID>,
        place: A::Place,
    ) where
        A::Element: AtomicValue,
    {
        output::add(self, thread, output, place);
    }
}

impl<A: BoxArray<Element: MapNumber>> BoxTarget<A> for BoxMapMut<'_, A> {
    #[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_90a")))]
    #[inline(always)]
    fn element(&self, place: [usize; AXES]) -> Option<&DeviceAtomic<A::Element>> {
        // SAFETY: there is such an element, as `from_raw_parts` vouches. All threads reach it by atomic operations.
        number(self.extent, place)
            .map(|number| unsafe { &*self.start.add(number).cast::<DeviceAtomic<A::Element>>() })
    }

    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
    #[inline(always)]
    fn encoded(&self) -> (*const Encoded, bool) {
        (self.map, !is_empty(self.extent))
    }
}
