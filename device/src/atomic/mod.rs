//! Atomic numbers: memory that all threads of a launch may change at once, with PTX's scopes and memory
//! orderings.
//!
//! [`DeviceAtomic`] is here; the other files hold its scopes (`scope`), the types that it takes (`value`),
//! structs of atomics (`form`), and the operations themselves (`ptx` for GPUs, `native` for the CPU device).
//!
//! A function is generic over the [`Scope`]; the type of each atomic fixes it:
//!
//! ```
//! use ferrogrid_device::atomic::{self, DeviceAtomic, Ordering, Scope};
//!
//! /// Takes a ticket: each thread of the scope gets a number of its own, from 0 on.
//! fn ticket<S: Scope>(next: &DeviceAtomic<u32, S>) -> u32 {
//!     next.fetch_add(1, Ordering::Relaxed)
//! }
//! let (of_block, of_all) = (DeviceAtomic::<u32, atomic::Block>::new(0), DeviceAtomic::<u32, atomic::System>::new(8));
//! assert_eq!((ticket(&of_block), ticket(&of_block), ticket(&of_all)), (0, 1, 8));
//! let of_device: DeviceAtomic<u32> = DeviceAtomic::<u32, atomic::Device>::new(4); // the default scope
//! assert_eq!(ticket(&of_device), 4);
//! ```

mod form;
#[cfg(not(target_arch = "nvptx64"))]
mod native;
#[cfg(target_arch = "nvptx64")]
mod ptx;
mod scope;
mod value;

use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;

pub use core::sync::atomic::Ordering;
#[doc(hidden)]
pub use form::AtomicField;
pub use form::AtomicForm;
pub use scope::{Block, Device, Scope, System};
pub use value::{AtomicInteger, AtomicLoadStore, AtomicValue};

use crate::element::device_copy::SliceElement;
use crate::element::layout::of_atomic;
use value::{Cell, Manner, Word};

/// A number in device memory that threads change atomically.
///
/// `T` is `u32`, `i32`, `u64`, `i64`, `f32`, `f64`, or one of the pairs `F16x2` and `Bf16x2` of
/// `ferrogrid::device::half`. Integers of 8 and 16 bits, `f16` and `bf16` have loads and stores only. The scope `S` says among which threads the operations are atomic: those of a
/// [`Block`], of the [`Device`] (the default), or of the whole [`System`]. A kernel takes
/// `&[DeviceAtomic<u32>]`; the launch passes `buffer.as_atomic()`.
///
/// Operations and orderings are those of [`core::sync::atomic`]. On the device they are the PTX instructions
/// `ld`, `st` and `atom` with `.relaxed`, `.acquire`, `.release` or `.acq_rel`, and with `.cta`, `.gpu` or
/// `.sys`; `SeqCst` adds a `fence.sc` before them. (The types of `core::sync::atomic` themselves would not
/// do: on `nvptx64` LLVM 22 drops the ordering and scope of their read-modify-write operations.)
///
/// A thread must not spin until another thread changes a value: threads of a block, and blocks, may run one
/// after the other, as they do on the CPU device.
///
/// ```
/// use ferrogrid_device::atomic::{DeviceAtomic, Ordering};
///
/// let counts = [const { DeviceAtomic::<u32>::new(0) }; 2];
/// for value in [3_u32, 4, 6, 8] {
///     counts[(value % 2) as usize].fetch_add(1, Ordering::Relaxed);
/// }
/// assert_eq!(counts[0].load(Ordering::Relaxed), 3);
/// ```
///
/// Bit operations, and a loop for an operation that `DeviceAtomic` lacks:
///
/// ```
/// use ferrogrid_device::atomic::{DeviceAtomic, Ordering::Relaxed};
///
/// /// Multiplies, and returns the previous value.
/// fn fetch_mul(x: &DeviceAtomic<u32>, factor: u32) -> u32 {
///     let mut found = x.load(Relaxed);
///     loop {
///         match x.compare_exchange_weak(found, found * factor, Relaxed, Relaxed) {
///             Ok(before) => return before,
///             Err(other) => found = other, // another thread was faster
///         }
///     }
/// }
///
/// let x = DeviceAtomic::<u32>::new(0);
/// x.store(0b0110, Relaxed);
/// assert_eq!(x.fetch_or(0b1000, Relaxed), 0b0110);
/// assert_eq!(x.fetch_and(0b1010, Relaxed), 0b1110);
/// assert_eq!(x.fetch_xor(0b0011, Relaxed), 0b1010);
/// assert_eq!(x.fetch_sub(4, Relaxed), 0b1001);
/// assert_eq!(fetch_mul(&x, 3), 5);
/// assert_eq!(x.fetch_min(7, Relaxed), 15);
/// assert_eq!(x.into_inner(), 7);
/// ```
///
/// A block counts in its shared memory, for which block scope suffices:
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use atomic::Ordering::Relaxed;
///
/// /// How many of the block's elements have each remainder of a division by 4.
/// #[kernel(block = 64)]
/// pub fn remainders(
///     t: Thread<1>, x: &[u32], mut y: DisjointRows<u32>, mut counts: Shared<[DeviceAtomic<u32, atomic::Block>; 4]>,
/// ) {
///     counts.fill_with(&t, |_| DeviceAtomic::new(0));
///     let counts = t.publish(counts);
///     counts[x[t.index().get()] as usize % 4].fetch_add(1, Relaxed);
///     t.sync_threads();
///     y.fill_with(&t, |remainder| counts[remainder].load(Relaxed));
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&(0..64).map(|i| i * i).collect::<Vec<u32>>())?;
/// let mut y = stream.zeros(4)?;
/// kernels::remainders(&stream, Grid::cover(64), &x, y.view_2d_mut(4, 1)?)?;
/// assert_eq!(stream.download(&y)?, [32, 32, 0, 0]);
/// # Ok(()) }
/// ```
#[repr(transparent)]
pub struct DeviceAtomic<T: AtomicLoadStore, S: Scope = Device> {
    value: UnsafeCell<T>,
    scope: PhantomData<S>,
}

// SAFETY: it is changed through `&self` by atomic operations only. With a scope that is too narrow for
// the threads at work, updates may be lost, but every value read is one that was written: PTX defines
// races between accesses of one size.
unsafe impl<T: AtomicLoadStore, S: Scope> Sync for DeviceAtomic<T, S> {}

// SAFETY: transparent over a number, and `Sync`.
unsafe impl<T: AtomicLoadStore, S: Scope> SliceElement for DeviceAtomic<T, S> {
    const LAYOUT: u64 = of_atomic(T::LAYOUT);
}

impl<T: AtomicLoadStore, S: Scope> DeviceAtomic<T, S> {
    /// An atomic number with value `value`.
    pub const fn new(value: T) -> Self {
        DeviceAtomic { value: UnsafeCell::new(value), scope: PhantomData }
    }

    /// The value; no other thread can be changing it.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }

    /// Reads the value (PTX `ld.relaxed`, `ld.acquire`).
    ///
    /// # Panics
    /// If `order` is `Release` or `AcqRel`.
    #[inline(always)]
    pub fn load(&self, order: Ordering) -> T {
        // SAFETY: the place is this number's.
        T::from_word(unsafe { T::Word::load(self.word(), Self::manner(order)) })
    }

    /// Writes `value` (PTX `st.relaxed`, `st.release`).
    ///
    /// # Panics
    /// If `order` is `Acquire` or `AcqRel`.
    #[inline(always)]
    pub fn store(&self, value: T, order: Ordering) {
        // SAFETY: the place is this number's.
        unsafe { T::Word::store(self.word(), value.into_word(), Self::manner(order)) }
    }

    #[inline(always)]
    fn word(&self) -> *mut T::Word {
        self.value.get().cast()
    }

    #[inline(always)]
    fn manner(order: Ordering) -> Manner {
        Manner { order, reach: S::REACH }
    }
}

impl<T: AtomicValue, S: Scope> DeviceAtomic<T, S> {
    /// Writes `value` and returns the previous one (PTX `atom.exch`).
    ///
    /// ```
    /// use ferrogrid_device::atomic::{DeviceAtomic, Ordering};
    ///
    /// let x = DeviceAtomic::<u32>::new(5);
    /// assert_eq!(x.swap(7, Ordering::Relaxed), 5);
    /// assert_eq!(x.load(Ordering::Relaxed), 7);
    /// ```
    #[inline(always)]
    pub fn swap(&self, value: T, order: Ordering) -> T {
        // SAFETY: the place is this number's.
        T::from_word(unsafe { T::Word::swap(self.word(), value.into_word(), Self::manner(order)) })
    }

    /// Writes `new` if the value is `current`, and returns the previous value: as `Ok` if `new` was written
    /// (PTX `atom.cas`). Floats are compared bit by bit: a NaN equals itself, and `0.0` differs from `-0.0`.
    ///
    /// ```
    /// use ferrogrid_device::atomic::{DeviceAtomic, Ordering};
    ///
    /// let x = DeviceAtomic::<u32>::new(5);
    /// let order = Ordering::Relaxed;
    /// assert_eq!(x.compare_exchange(5, 6, order, order), Ok(5));
    /// assert_eq!(x.compare_exchange(5, 7, order, order), Err(6));
    /// ```
    ///
    /// # Errors
    /// With the value found, if it is not `current`.
    ///
    /// # Panics
    /// If `failure` is `Release` or `AcqRel`.
    #[inline(always)]
    pub fn compare_exchange(&self, current: T, new: T, success: Ordering, failure: Ordering) -> Result<T, T> {
        let (expected, new) = (current.into_word(), new.into_word());
        let manner = Self::manner(strongest(success, failure));
        // SAFETY: the place is this number's.
        let found = unsafe { T::Word::compare_and_swap(self.word(), expected, new, manner) };
        let value = T::from_word(found);
        if found == expected { Ok(value) } else { Err(value) }
    }

    /// As [`DeviceAtomic::compare_exchange`], but may fail although the value is `current`, so use it in a
    /// loop. On current devices it never does.
    ///
    /// # Errors
    /// With the value found, if `new` was not written.
    ///
    /// # Panics
    /// If `failure` is `Release` or `AcqRel`.
    #[inline(always)]
    pub fn compare_exchange_weak(
        &self,
        current: T,
        new: T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<T, T> {
        self.compare_exchange(current, new, success, failure)
    }

    /// Adds `value`, wrapping around, and returns the previous value (PTX `atom.add`; ptxas uses `red.add`
    /// where the result is not used).
    ///
    /// Sums of floats depend on the order of the additions, which differs from run to run. On a GPU the
    /// addition of `f32` flushes subnormal numbers to zero. Each half of a pair is added atomically (PTX
    /// `atom.add.noftz.f16x2`; `.bf16x2` from `sm_90` on, before that a loop around `atom.cas`), but a GPU
    /// may change one before the other.
    ///
    /// ```
    /// use ferrogrid_device::atomic::{DeviceAtomic, Ordering};
    ///
    /// let x = DeviceAtomic::<f32>::new(1.0);
    /// assert_eq!(x.fetch_add(0.5, Ordering::Relaxed), 1.0);
    /// assert_eq!(x.into_inner(), 1.5);
    /// ```
    #[inline(always)]
    pub fn fetch_add(&self, value: T, order: Ordering) -> T {
        // SAFETY: the place is this number's.
        unsafe { T::fetch_add(self.value.get(), value, Self::manner(order)) }
    }

    /// Subtracts `value`, wrapping around, and returns the previous value (PTX `atom.add` of
    /// `-value`); see [`DeviceAtomic::fetch_add`].
    #[inline(always)]
    pub fn fetch_sub(&self, value: T, order: Ordering) -> T {
        self.fetch_add(value.negated(), order)
    }

    /// Writes the smaller of the value and `value`, and returns the previous one (PTX `atom.min`; for floats
    /// a loop around `atom.cas`). A number wins over NaN.
    #[inline(always)]
    pub fn fetch_min(&self, value: T, order: Ordering) -> T {
        // SAFETY: the place is this number's.
        unsafe { T::fetch_min(self.value.get(), value, Self::manner(order)) }
    }

    /// Writes the larger of the value and `value`, and returns the previous one (PTX `atom.max`; for floats a
    /// loop around `atom.cas`). A number wins over NaN.
    ///
    /// ```
    /// use ferrogrid_device::atomic::{DeviceAtomic, Ordering};
    ///
    /// let x = DeviceAtomic::<i32>::new(-4);
    /// assert_eq!(x.fetch_max(3, Ordering::Relaxed), -4);
    /// assert_eq!(x.into_inner(), 3);
    /// ```
    #[inline(always)]
    pub fn fetch_max(&self, value: T, order: Ordering) -> T {
        // SAFETY: the place is this number's.
        unsafe { T::fetch_max(self.value.get(), value, Self::manner(order)) }
    }
}

impl<T: AtomicInteger, S: Scope> DeviceAtomic<T, S> {
    /// Writes `value & operand`, and returns the previous value (PTX `atom.and`).
    #[inline(always)]
    pub fn fetch_and(&self, operand: T, order: Ordering) -> T {
        // SAFETY: the place is this number's.
        T::from_word(unsafe { T::Word::and(self.word(), operand.into_word(), Self::manner(order)) })
    }

    /// Writes `value | operand`, and returns the previous value (PTX `atom.or`).
    #[inline(always)]
    pub fn fetch_or(&self, operand: T, order: Ordering) -> T {
        // SAFETY: the place is this number's.
        T::from_word(unsafe { T::Word::or(self.word(), operand.into_word(), Self::manner(order)) })
    }

    /// Writes `value ^ operand`, and returns the previous value (PTX `atom.xor`).
    #[inline(always)]
    pub fn fetch_xor(&self, operand: T, order: Ordering) -> T {
        // SAFETY: the place is this number's.
        T::from_word(unsafe { T::Word::xor(self.word(), operand.into_word(), Self::manner(order)) })
    }
}

impl<T: AtomicLoadStore + fmt::Debug, S: Scope> fmt::Debug for DeviceAtomic<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.load(Ordering::Relaxed).fmt(f)
    }
}

/// One ordering that is at least `success` and at least `failure`: an `atom.cas` has only one.
#[inline(always)]
fn strongest(success: Ordering, failure: Ordering) -> Ordering {
    match (success, failure) {
        (_, Ordering::Release | Ordering::AcqRel) => {
            panic!("a compare_exchange that fails writes nothing: its ordering cannot release")
        }
        (Ordering::SeqCst, _) | (_, Ordering::SeqCst) => Ordering::SeqCst,
        (Ordering::Relaxed, Ordering::Acquire) => Ordering::Acquire,
        (Ordering::Release, Ordering::Acquire) => Ordering::AcqRel,
        (success, _) => success,
    }
}
