//! What a GPU reports to the host while kernels run: panics and printed text.
//!
//! `failure` is the record of a panic and `output` the macros and the ring buffer of printed text, both
//! shared with the host. `message` sends the arguments of a format string, which the host formats. `panic`
//! handles panics on the device.

#[doc(hidden)]
pub mod failure;
#[doc(hidden)]
pub mod message;
pub mod output;
#[cfg(target_arch = "nvptx64")]
pub(crate) mod panic;
