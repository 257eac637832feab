//! Selects the implementation of each mathematical function: `single` for `f32`, `double` for `f64`, with the
//! same names in both. On a device `hardware` has instructions, `derived` what is a line of others, `libdevice` or
//! `portable` the rest; `native` is std, for the CPU device.

#[cfg(any(target_arch = "nvptx64", test))]
mod derived;
#[cfg(target_arch = "nvptx64")]
mod hardware;
#[cfg(all(target_arch = "nvptx64", feature = "libdevice"))]
mod libdevice;
#[cfg(not(target_arch = "nvptx64"))]
mod native;
#[cfg(not(all(target_arch = "nvptx64", feature = "libdevice")))]
mod portable;
#[cfg(test)]
mod tests;

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod single {
    pub(crate) use super::native::single::*;
    pub(crate) use super::portable::single::{erf, erfc, gamma, ln_gamma};
}

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod double {
    pub(crate) use super::native::double::*;
    pub(crate) use super::portable::double::{erf, erfc, gamma, ln_gamma};
}

#[cfg(target_arch = "nvptx64")]
pub(crate) mod single {
    pub(crate) use super::derived::single::*;
    pub(crate) use super::hardware::single::*;
    #[cfg(feature = "libdevice")]
    pub(crate) use super::libdevice::single::*;
    #[cfg(not(feature = "libdevice"))]
    pub(crate) use super::portable::single::*;
}

#[cfg(target_arch = "nvptx64")]
pub(crate) mod double {
    pub(crate) use super::derived::double::*;
    pub(crate) use super::hardware::double::*;
    #[cfg(feature = "libdevice")]
    pub(crate) use super::libdevice::double::*;
    #[cfg(not(feature = "libdevice"))]
    pub(crate) use super::portable::double::*;
}
