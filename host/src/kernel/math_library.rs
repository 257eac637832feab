//! The library of mathematical functions of device code, which the build step records in the first line of its
//! PTX.

/// A library of mathematical functions for device code; see [`Kernel::math_library`](crate::Kernel::math_library).
///
/// ```
/// use ferrogrid::{Kernel, MathLibrary};
///
/// /// Whether `sin` and its like give a kernel the results that nvcc's would.
/// fn agrees_with_nvcc(kernel: &Kernel) -> bool {
///     kernel.math_library() == Some(MathLibrary::Libdevice)
/// }
/// assert_eq!(MathLibrary::Libdevice.to_string(), "libdevice"); // as `cargo ferrogrid inspect` shows it
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MathLibrary {
    /// The crate `libm`, in plain Rust.
    Libm,
    /// NVIDIA's libdevice, which nvcc uses.
    Libdevice,
}

impl MathLibrary {
    pub(crate) fn of_ptx(text: &str) -> Option<Self> {
        match text.lines().next()?.strip_prefix("// Mathematics: ")? {
            "libm" => Some(MathLibrary::Libm),
            "libdevice" => Some(MathLibrary::Libdevice),
            _ => None,
        }
    }
}

display_words!(MathLibrary { Libm = "libm", Libdevice = "libdevice" });
