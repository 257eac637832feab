//! Raw addresses in device memory, for `unsafe` kernels and other libraries.

use derive_where::derive_where;

macro_rules! device_pointer {
    ($name:ident, $raw:ty, $doc:literal, $(#[$example:meta])*) => {
        #[doc = $doc]
        ///
        /// It is a plain copy of an address: it borrows nothing, and keeps nothing alive. The host must
        /// not read or write through it.
        ///
        $(#[$example])*
        #[derive_where(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(transparent)]
        pub struct $name<T>($raw);

        // SAFETY: it is only an address; uses require `unsafe` code.
        unsafe impl<T: Send> Send for $name<T> {}
        // SAFETY: as above.
        unsafe impl<T: Sync> Sync for $name<T> {}

        impl<T> $name<T> {
            pub(crate) fn new(raw: $raw) -> Self {
                $name(raw)
            }

            /// The pointer with address `raw`.
            ///
            /// # Safety
            /// Launches pass the pointer unchanged: it must point to what they use of it, in memory of
            /// the device that they run on, until they have run.
            pub unsafe fn from_raw(raw: $raw) -> Self {
                $name(raw)
            }

            /// The address.
            pub fn as_raw(self) -> $raw {
                self.0
            }

            /// The address `count` elements further.
            #[must_use]
            #[expect(clippy::should_implement_trait, reason = "named as the method of raw pointers")]
            pub fn add(self, count: usize) -> Self {
                $name(self.0.wrapping_add(count))
            }

            /// The same address, of elements of type `U`.
            pub fn cast<U>(self) -> $name<U> {
                $name(self.0.cast())
            }
        }
    };
}

device_pointer!(
    DevicePtr,
    *const T,
    "An address in device memory to read from: `*const T` as a kernel parameter.",
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// # Safety
    /// /// `x` leads to `n` numbers.
    /// #[kernel]
    /// pub unsafe fn sum(t: Thread<1>, x: *const u16, n: usize, mut sum: DisjointSlice<u32>) {
    ///     if let Some(sum) = sum.get_mut(t.index()) {
    ///         // SAFETY: there are `n` numbers.
    ///         *sum = (0..n).map(|i| u32::from(unsafe { *x.add(i) })).sum();
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// use ferrogrid::DevicePtr;
    ///
    /// let file = stream.upload(&[0xff_u8, 0xff, 1, 0, 2, 0])?; // a header of two bytes, and two numbers
    /// let numbers: DevicePtr<u16> = file.as_device_ptr().add(2).cast();
    /// let mut sum = stream.zeros(1)?;
    /// // SAFETY: they are there, aligned, in a buffer that lives longer than the launch.
    /// unsafe { kernels::sum(&stream, Grid::new(1, 1), numbers, 2, &mut sum)? };
    /// assert_eq!(stream.download(&sum)?, [3]);
    /// // SAFETY: the same pointer, as another library would hand it on.
    /// assert_eq!(unsafe { DevicePtr::from_raw(numbers.as_raw()) }, numbers);
    /// # Ok(()) }
    /// ```
);
device_pointer!(
    DevicePtrMut,
    *mut T,
    "An address in device memory to write to: `*mut T` as a kernel parameter.",
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// # Safety
    /// /// `x` leads to an element for each thread.
    /// #[kernel]
    /// pub unsafe fn negate(t: Thread<1>, x: *mut i32) {
    ///     // SAFETY: there is an element for each thread.
    ///     unsafe { *x.add(t.index().get()) *= -1 };
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// use ferrogrid::DevicePtrMut;
    ///
    /// let mut x = stream.upload(&[1_u32, 2, 3, 4])?;
    /// let right: DevicePtrMut<i32> = x.as_device_ptr_mut().add(2).cast(); // the right half, with a sign
    /// // SAFETY: two threads, two elements, in a buffer that lives longer than the launch.
    /// unsafe { kernels::negate(&stream, Grid::new(1, 2), right)? };
    /// assert_eq!(stream.download(&x)?, [1, 2, -3_i32 as u32, -4_i32 as u32]);
    /// // SAFETY: the same pointer, as another library would hand it on.
    /// assert_eq!(unsafe { DevicePtrMut::from_raw(right.as_raw()) }, right);
    /// assert_eq!(right.cast_const().as_raw(), right.as_raw().cast_const()); // to read from
    /// # Ok(()) }
    /// ```
);

impl<T> DevicePtrMut<T> {
    /// The same address, to read from.
    pub fn cast_const(self) -> DevicePtr<T> {
        DevicePtr(self.0.cast_const())
    }
}
