//! The library that the mathematical functions of device code come from.

use std::fmt;

use crate::error::Error;

/// The library whose mathematical functions kernels use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Math {
    /// The crate `libm`: plain Rust, the same bits on every machine that builds.
    Libm,
    /// NVIDIA's libdevice, which nvcc uses: faster, and mostly without a stack. It must be installed on the
    /// machine that builds, by a CUDA toolkit or by the PyPI package `nvidia-nvvm`;
    /// [`libdevice::find`](crate::libdevice::find) lists where it is searched.
    Libdevice,
}

impl Math {
    /// Reads the name that Cargo.toml has.
    pub(crate) fn parse(name: &str) -> Result<Self, Error> {
        match name {
            "libm" => Ok(Math::Libm),
            "libdevice" => Ok(Math::Libdevice),
            _ => Err(Error::Setting {
                key: "math",
                value: format!("{name:?}"),
                expected: "\"libm\" or \"libdevice\"",
            }),
        }
    }
}

impl fmt::Display for Math {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Math::Libm => "libm",
            Math::Libdevice => "libdevice",
        })
    }
}
