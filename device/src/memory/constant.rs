//! [`Constant`]: constant memory, which kernels read and the host sets between launches.

use core::fmt;
use core::ops::Deref;

/// A value in the constant memory of a device: the type of a module's `#[constant]` (CUDA C++:
/// `__constant__`).
///
/// Kernels and private functions of the module read it by its name, which is a `&T` there: `WEIGHTS[i]`,
/// `*SCALE`, `LINE.slope`. On a GPU that is `ld.const`. A load of one address by all threads of a warp costs
/// as much as a register; loads of different addresses are serialised. So constant memory suits coefficients
/// and tables that all threads read in the same order. A module has at most 65536 bytes.
///
/// The value in the source is the initial value on each device. On the host the same name is a
/// `ferrogrid::DeviceConstant`, which sets and reads it in stream order.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// #[constant]
/// pub static WEIGHTS: Constant<[f32; 3]> = Constant::new([0.25, 0.5, 0.25]);
///
/// /// Each element with its neighbours.
/// #[kernel]
/// pub fn smooth(t: Thread<1>, x: &[f32], mut y: DisjointSlice<f32>) {
///     let i = t.index();
///     if let Some(y) = y.get_mut(i) {
///         let at = |offset: usize| x.get((i.get() + offset).wrapping_sub(1)).copied().unwrap_or(0.0);
///         *y = (0..3).map(|k| WEIGHTS[k] * at(k)).sum();
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&[0.0, 4.0, 8.0])?;
/// let mut y = stream.zeros(3)?;
/// kernels::smooth(&stream, Grid::cover(3), &x, &mut y)?;
/// assert_eq!(stream.download(&y)?, [1.0, 4.0, 5.0]);
/// kernels::WEIGHTS.set(&stream, &[0.0, 0.0, 1.0])?;
/// kernels::smooth(&stream, Grid::cover(3), &x, &mut y)?;
/// assert_eq!(stream.download(&y)?, [4.0, 8.0, 0.0]);
/// # Ok(()) }
/// ```
#[repr(transparent)]
pub struct Constant<T>(T);

// The module checks once, at the type, that `T` is `DeviceCopy`.
impl<T> Constant<T> {
    /// A constant with this initial value.
    pub const fn new(value: T) -> Self {
        Constant(value)
    }
}

impl<T> Deref for Constant<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: fmt::Debug> fmt::Debug for Constant<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The maximum size of all constants of a module together, in bytes.
#[doc(hidden)]
pub const LIMIT: usize = 65536;

/// Borrowed by references to constants, so that none outlives the function that reads it.
#[doc(hidden)]
pub struct Reading;

/// The value of the constant at `start`, for the life of the borrow.
///
/// # Safety
/// `start` is a constant of the module whose kernel runs, in constant memory on a GPU. Nothing writes it
/// while the kernel runs.
#[doc(hidden)]
#[inline(always)]
pub unsafe fn read<T>(_: &Reading, start: *const Constant<T>) -> &T {
    #[cfg(target_arch = "nvptx64")]
    assume_constant(start.cast());
    // SAFETY: the caller's.
    unsafe { &(*start).0 }
}

/// Tells LLVM that the address is in constant memory, which makes the loads `ld.const`.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
fn assume_constant(start: *const u8) {
    unsafe extern "C" {
        #[link_name = "llvm.nvvm.isspacep.const"]
        fn isspacep_const(address: *const u8) -> bool;
    }
    // SAFETY: the address is in constant memory, so what is assumed holds, and nothing is at 0 there; the empty
    // code between keeps LLVM from dropping the assumption before it is of use.
    unsafe {
        let is_constant = isspacep_const(start);
        core::arch::asm!("// {0}", in(reg32) u32::from(is_constant), options(nomem, nostack));
        core::hint::assert_unchecked(is_constant);
        core::hint::assert_unchecked(!start.is_null());
    }
}
