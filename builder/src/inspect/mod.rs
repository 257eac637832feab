//! Inspection of compiled kernels: PTX and machine code beside the source, and the resources that kernels
//! need. It reads the record that the build left in its `OUT_DIR`. It needs no GPU, and uses NVIDIA's
//! assembler and disassembler where they are installed.
//!
//! | file | holds |
//! |---|---|
//! | `record.rs` | the record of a build, and builds for other architectures |
//! | `kernel.rs` | a compiled kernel |
//! | `signature/` | how a kernel is called, for callers that are not Rust |
//! | `assembler.rs` | ptxas, and the resources that it reports |
//! | `listing.rs`, `sass.rs` | PTX and machine code beside the source |
//! | `sources.rs` | the source files that line tables name |
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
mod signature;
mod sources;

pub use assembler::{Assembled, Assembler, Resources};
pub use kernel::{CompiledKernel, ImageFile};
pub use listing::{Line, Listing};
pub use record::Record;
pub use sass::disassemble;
pub(crate) use signature::stated;
pub use signature::{Argument, BlockOutput, Element, Number, Passing, Signature};
pub use sources::{Place, Sources};
