//! Functions of other device code, called where there is no device: what their place on the host does.

/// The payload of the panic of a kernel that called such a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoNativeFunction(pub(crate) &'static str);

/// What the host half of a function does that has no native counterpart.
///
/// # Panics
/// Always: the CPU device makes [`KernelError::NoNativeFunction`](crate::KernelError::NoNativeFunction) of it.
#[doc(hidden)]
#[cold]
pub fn no_native_function(name: &'static str) -> ! {
    std::panic::panic_any(NoNativeFunction(name))
}
