//! Looks at what a build has made of kernels: their PTX and machine code beside the lines of the source that it
//! comes from, and what they need of a multiprocessor. It works from what the build left in its `OUT_DIR`, so it
//! shows what the program has; a GPU is not needed, and NVIDIA's assembler and disassembler are used where they are
//! found. It must not know how anything is printed, nor what devices hold.
//!
//! ```no_run
//! use ferrogrid_build::inspect::{Record, Sources};
//! # fn main() -> Result<(), ferrogrid_build::Error> {
//! let record = Record::load("target/debug/build/app-0123456789abcdef/out".as_ref())?;
//! for kernel in record.select(Some("saxpy"), None)? {
//!     let image = &kernel.images[0];
//!     for line in kernel.ptx_listing(image, &record.sources())?.lines {
//!         println!("{}", line.text);
//!     }
//! }
//! # Ok(()) }
//! ```

mod assembler;
mod kernel;
mod listing;
mod record;
mod sass;
mod sources;

pub use assembler::{Assembled, Assembler, Resources};
pub use kernel::{CompiledKernel, ImageFile};
pub use listing::{Line, Listing};
pub use record::Record;
pub use sass::disassemble;
pub use sources::{Place, Sources};
