//! Text that kernels print: the macros, and how it reaches the host.
//!
//! ```
//! use ferrogrid_device::prelude::*;
//! use ferrogrid_device::println;
//!
//! fn report(t: Thread<1>, value: f32) {
//!     if value.is_nan() {
//!         println!("thread {}: not a number", t.index().get());
//!     }
//! }
//! ```

// Printing is `native` on the CPU device, and `ptx` on a GPU.

use core::fmt;

#[doc(hidden)]
pub use ferrogrid_abi::output::{ENTRY_BYTES, OUTPUT_SYMBOL, OutputHeader, piece_bytes};

#[cfg(not(target_arch = "nvptx64"))]
mod native;
#[cfg(target_arch = "nvptx64")]
mod ptx;

#[cfg(not(target_arch = "nvptx64"))]
#[doc(hidden)]
pub use native::connect;

/// Prints a line from a kernel, formatted as by std's `println!`.
///
/// The host prints it when it next waits for the device: on standard output, or where `Device::set_output`
/// says. A line stays whole; lines of different threads come in any order. Lines that do not fit in the
/// device's buffer are lost, and the host reports how many.
///
/// On a GPU the host formats. It supports integers, floating-point numbers, `bool`, `char`, `&str` (its first
/// 1024 bytes) and pointers; arrays of up to 255 bytes and slices (their first 1024 bytes) of numbers,
/// `bool`s and `char`s; and references to all of these, with all formatting traits and options. A value of
/// any other type prints as its type's name in angle brackets.
///
/// A module of kernels imports it by `use ferrogrid::device::println;`. It is not in the prelude, because std
/// has that name. Without the import the module does not compile for a device, which has no std; a
/// `module(host_only)` uses std's.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use ferrogrid::device::println; // not in the prelude: std has that name
///
/// #[kernel]
/// pub fn report(t: Thread<1>, x: &[f32]) {
///     let i = t.index().get();
///     if i < x.len() && x[i].is_nan() {
///         println!("element {i} is not a number: {:?}", x);
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let (sender, lines) = std::sync::mpsc::channel();
/// stream.device().set_output(move |line| sender.send(line.to_owned()).unwrap());
/// let x = stream.upload(&[1.0, f32::NAN])?;
/// kernels::report(&stream, Grid::cover(2), &x)?;
/// stream.synchronize()?;
/// assert_eq!(lines.recv().unwrap(), "element 1 is not a number: [1.0, NaN]\n");
/// # Ok(()) }
/// ```
#[macro_export]
macro_rules! println {
    () => {
        $crate::output::print(::core::format_args!("\n"))
    };
    ($($argument:tt)*) => {
        $crate::output::print(::core::format_args!("{}\n", ::core::format_args!($($argument)*)))
    };
}

/// As [`println!`](crate::println), without the line end. The text of one `print!` stays whole.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use ferrogrid::device::print;
///
/// /// Shows a plane of digits, by one thread: pieces of different threads come in any order.
/// #[kernel]
/// pub fn show(_t: Thread<1>, x: Plane<u8>) {
///     for row in 0..x.height() {
///         for column in 0..x.width() {
///             print!("{}{}", x[row][column], if column + 1 == x.width() { "\n" } else { " " });
///         }
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let text = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
/// let shown = text.clone();
/// stream.device().set_output(move |piece| shown.lock().unwrap().push_str(piece));
/// let x = stream.upload(&[1_u8, 2, 3, 4, 5, 6])?;
/// kernels::show(&stream, Grid::new(1, 1), x.view_2d(3, 2)?)?;
/// stream.synchronize()?;
/// assert_eq!(*text.lock().unwrap(), "1 2 3\n4 5 6\n");
/// # Ok(()) }
/// ```
#[macro_export]
macro_rules! print {
    ($($argument:tt)*) => {
        $crate::output::print(::core::format_args!($($argument)*))
    };
}

/// Called by the macros.
#[doc(hidden)]
pub fn print(text: fmt::Arguments<'_>) {
    #[cfg(target_arch = "nvptx64")]
    ptx::print(text);
    #[cfg(not(target_arch = "nvptx64"))]
    native::print(text);
}
