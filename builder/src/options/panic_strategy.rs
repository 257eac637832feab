//! What a panic does in device code.

use crate::error::Error;

/// What a panic does on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PanicStrategy {
    /// The thread tells the host where and why, and exits; the other threads go on, and so does the
    /// device. The host gets `Error::KernelPanic`. Kernels that can panic take up to some 30 registers for
    /// it, or some 50 if a message has arguments.
    #[default]
    Message,
    /// The grid traps: the host gets `Error::LaunchFailed`, and the device cannot be used again in the
    /// process. Nothing is known of the panic. It costs no registers.
    Trap,
}

impl PanicStrategy {
    /// The name that Cargo.toml has.
    pub(crate) fn name(self) -> &'static str {
        match self {
            PanicStrategy::Message => "message",
            PanicStrategy::Trap => "trap",
        }
    }

    /// Reads the name that Cargo.toml has.
    pub(crate) fn parse(name: &str) -> Result<Self, Error> {
        match name {
            "message" => Ok(PanicStrategy::Message),
            "trap" => Ok(PanicStrategy::Trap),
            _ => Err(Error::Setting {
                key: "panic",
                value: format!("{name:?}"),
                expected: "\"message\" or \"trap\"",
            }),
        }
    }
}
