//! Raw addresses in device memory, for `unsafe` kernels and other libraries. It must not know what
//! they point into.

use std::fmt;

macro_rules! device_pointer {
    ($name:ident, $raw:ty, $doc:literal) => {
        #[doc = $doc]
        ///
        /// It is a plain copy of an address: it borrows nothing, and keeps nothing alive. The host must
        /// not read or write through it.
        #[repr(transparent)]
        pub struct $name<T>($raw);

        // SAFETY: it is only an address; whoever uses it does so in `unsafe` code.
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
            /// Launches take the pointer as it is: it must point to what they use of it, in memory of
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

        impl<T> Clone for $name<T> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T> Copy for $name<T> {}

        impl<T> PartialEq for $name<T> {
            fn eq(&self, other: &Self) -> bool {
                self.0 == other.0
            }
        }

        impl<T> Eq for $name<T> {}

        impl<T> fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:p})"), self.0)
            }
        }
    };
}

device_pointer!(
    DevicePtr,
    *const T,
    "An address in device memory to read from: `*const T` as a kernel parameter."
);
device_pointer!(
    DevicePtrMut,
    *mut T,
    "An address in device memory to write to: `*mut T` as a kernel parameter."
);

impl<T> DevicePtrMut<T> {
    /// The same address, to read from.
    pub fn cast_const(self) -> DevicePtr<T> {
        DevicePtr(self.0.cast_const())
    }
}
