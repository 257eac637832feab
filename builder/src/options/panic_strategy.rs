//! The behaviour of a panic in device code.

use crate::error::Error;

/// The behaviour of a panic on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PanicStrategy {
    /// The thread reports message and location to the host, and exits; other threads and the device continue.
    /// The host gets `Error::KernelPanic`. Kernels that can panic take up to some 30 registers for it, or
    /// some 50 if a message has arguments.
    #[default]
    Message,
    /// The grid traps: the host gets `Error::LaunchFailed`, without the message, and the device is unusable
    /// in the process. It costs no registers.
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
