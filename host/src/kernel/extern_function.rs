//! Native counterparts of functions of other device code.

/// The payload of the panic of a kernel that called such a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoNativeFunction(pub(crate) &'static str);

/// The host half of a function without a native counterpart: panics.
///
/// # Panics
/// Always. The CPU device converts it to [`KernelError::NoNativeFunction`](crate::KernelError::NoNativeFunction).
#[doc(hidden)]
#[cold]
pub fn no_native_function(name: &'static str) -> ! {
    std::panic::panic_any(NoNativeFunction(name))
}
