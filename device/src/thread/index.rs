//! [`Index`]: a thread's own index in the grid, which no other thread of the launch has.

use core::marker::PhantomData;

use crate::memory::at::narrow;

/// The index of one thread in a grid of rank `R`, unique among all threads of the launch.
///
/// Only [`Thread::index`](crate::Thread::index) and `Thread::grid_stride` create it, and it borrows the
/// thread, so it cannot be given to another. That makes
/// [`DisjointSlice::get_mut`](crate::DisjointSlice::get_mut) safe.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// #[kernel]
/// pub fn double(t: Thread<2>, x: Plane<f32>, mut y: DisjointSlice<f32, 2>) {
///     let i = t.index();
///     if let Some(y) = y.get_mut(i) {
///         *y = 2.0 * x[i.y()][i.x()]; // numbers read; only the index itself writes
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let mut y = stream.zeros(6)?;
/// kernels::double(&stream, Grid::cover([3, 2]), x.view_2d(3, 2)?, y.view_2d_mut(3, 2)?)?;
/// assert_eq!(stream.download(&y)?[5], 12.0);
/// # Ok(()) }
/// ```
///
/// In three dimensions:
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// Half a ball around (1, 1, 1): the part from layer 1 on.
/// #[kernel]
/// pub fn half_ball(t: Thread<3>, radius: f32, mut inside: DisjointSlice<u8, 3>) {
///     let i = t.index();
///     let distance = i.position().iter().map(|&place| (place as f32 - 1.0).powi(2)).sum::<f32>().sqrt();
///     if let Some(inside) = inside.get_mut(i) {
///         *inside = u8::from(distance <= radius && i.z() >= 1);
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let mut inside = stream.zeros(27)?;
/// kernels::half_ball(&stream, Grid::cover([3, 3, 3]), 1.0, inside.view_3d_mut(3, 3, 3)?)?;
/// let inside = stream.download(&inside)?;
/// assert_eq!(inside[9..18], [0, 1, 0, 1, 1, 1, 0, 1, 0]); // layer 1
/// assert_eq!(inside.iter().sum::<u8>(), 6);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy)]
pub struct Index<'t, const R: usize> {
    position: [usize; R],
    /// Borrows the thread; neither `Send` nor `Sync`, as the thread is not.
    thread: PhantomData<(&'t (), *mut ())>,
}

impl<const R: usize> Index<'_, R> {
    pub(crate) fn new(position: [usize; R]) -> Self {
        Index { position, thread: PhantomData }
    }

    /// The position along x, the fastest dimension: `blockIdx.x * blockDim.x + threadIdx.x`.
    #[inline(always)]
    pub fn x(self) -> usize {
        self.position[0]
    }

    /// The position in all dimensions, x first.
    #[inline(always)]
    pub fn position(self) -> [usize; R] {
        self.position
    }

    /// The position in 32 bits, which hold the index of every thread of a grid; see [`At`](crate::At). A
    /// position beyond, which only a stride in a `wide` kernel reaches, becomes `u32::MAX`.
    #[inline(always)]
    pub fn position32(self) -> [u32; R] {
        self.position.map(narrow)
    }
}

impl Index<'_, 1> {
    /// The index as a number, for input slices: `x[i.get()]`.
    ///
    /// ```
    /// use ferrogrid_device::prelude::*;
    ///
    /// /// The difference of an element and the one before it; none for the first, nor beyond the end.
    /// fn difference(t: &Thread<1>, x: &[i32]) -> Option<i32> {
    ///     let i = t.index().get();
    ///     Some(x.get(i)? - x.get(i.checked_sub(1)?)?)
    /// }
    /// # let block = ferrogrid_device::native::Block::new([0; 3], [4, 1, 1], [1; 3]);
    /// # let mut found = vec![];
    /// # // SAFETY: there are no slices to be written.
    /// # unsafe { block.for_each_thread::<1>(|t| found.push(difference(&t, &[4, 9, 7]))) };
    /// # assert_eq!(found, [None, Some(5), Some(-2), None]);
    /// ```
    #[inline(always)]
    pub fn get(self) -> usize {
        self.position[0]
    }

    /// The index in 32 bits, for [`x.at(i.get32())`](crate::At); saturates as [`Index::position32`] does.
    #[inline(always)]
    pub fn get32(self) -> u32 {
        narrow(self.position[0])
    }
}

impl Index<'_, 2> {
    /// The position along y: `blockIdx.y * blockDim.y + threadIdx.y`.
    #[inline(always)]
    pub fn y(self) -> usize {
        self.position[1]
    }
}

impl Index<'_, 3> {
    /// The position along y: `blockIdx.y * blockDim.y + threadIdx.y`.
    #[inline(always)]
    pub fn y(self) -> usize {
        self.position[1]
    }

    /// The position along z: `blockIdx.z * blockDim.z + threadIdx.z`.
    #[inline(always)]
    pub fn z(self) -> usize {
        self.position[2]
    }
}

/// `row * width + column`: the offset of an element of a plane, in 32 bits where it is known to fit. An
/// address then takes two instructions: a multiply-add and one that widens.
///
/// # Safety
/// Nothing wraps, in 32 bits if `is_narrow`; and row, column and width have no more bits than that.
#[inline(always)]
pub(crate) unsafe fn place(is_narrow: bool, [row, column]: [usize; 2], width: usize) -> usize {
    // SAFETY: the caller's.
    unsafe {
        if is_narrow {
            (row as u32).unchecked_mul(width as u32).unchecked_add(column as u32) as usize
        } else {
            row.unchecked_mul(width).unchecked_add(column)
        }
    }
}
