//! Pointers that callers pass to a library: to results ([`Out`]), to descriptions ([`In`], [`InOut`]), to several values
//! ([`List`]), and to texts ([`Text`]).
//!
//! These types have no constructor and the layout of a pointer, so their values only come from callers of `extern "C"` functions,
//! as arguments. Those functions are `unsafe`: as for the real library, a caller must pass pointers that are valid until the call
//! returns. The host crate is the only caller, and these functions keep no such pointer.

use std::ffi::{CStr, c_char};

/// Where a result goes.
#[repr(transparent)]
pub struct Out<T>(*mut T);

impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Out<T> {}

impl<T> Out<T> {
    pub(crate) fn set(self, value: T) {
        // SAFETY: the caller passed a pointer that is valid for writes of a `T` until the call returns. `T` is plain data, so
        // what was there needs no drop.
        unsafe { self.0.write(value) };
    }
}

/// A description that a function reads.
#[repr(transparent)]
pub struct In<T>(*const T);

impl<T> In<T> {
    pub(crate) fn get(&self) -> &T {
        // SAFETY: the caller passed a pointer to an initialised `T`, which it does not change until the call returns. This
        // borrows the argument, so the reference ends before.
        unsafe { &*self.0 }
    }
}

/// A description that a function reads and completes.
#[repr(transparent)]
pub struct InOut<T>(*mut T);

impl<T> InOut<T> {
    pub(crate) fn change<R>(self, change: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: the caller passed a pointer to an initialised `T`, which it does not use until the call returns. This takes the
        // argument, so there is one reference, and that ends here.
        change(unsafe { &mut *self.0 })
    }
}

/// Values, as many as another argument says.
#[repr(transparent)]
pub struct List<T>(*const T);

impl<T> List<T> {
    /// # Safety
    /// There are at least `count`: this is the number that the caller passed with them.
    pub(crate) unsafe fn get(&self, count: usize) -> &[T] {
        // No values may have any address.
        if count == 0 {
            return &[];
        }
        // SAFETY: the caller passed a pointer to so many initialised values, which it does not change until the call returns.
        // This borrows the argument, so the reference ends before.
        unsafe { std::slice::from_raw_parts(self.0, count) }
    }
}

/// A text that ends with a zero byte.
#[repr(transparent)]
pub struct Text(*const c_char);

impl Text {
    pub(crate) fn get(&self) -> &CStr {
        // SAFETY: the caller passed a pointer to a text with a zero byte, which it does not change until the call returns.
        // This borrows the argument, so the reference ends before.
        unsafe { CStr::from_ptr(self.0) }
    }

    /// The text, which the host crate writes in UTF-8.
    pub(crate) fn str(&self) -> &str {
        self.get().to_str().unwrap()
    }
}
