//! What a GPU reports to the host while kernels run: panics and printed text.
//!
//! `output` has the macros that print, `message` sends the arguments of a format string, which the host formats, and
//! `panic` handles panics on the device. Layouts and numbers that the host and the build step read, too, are in the
//! crate `ferrogrid-abi`.

#[doc(hidden)]
pub mod message;
pub mod output;
#[cfg(target_arch = "nvptx64")]
pub(crate) mod panic;

#[doc(hidden)]
pub use ferrogrid_abi::failure;
