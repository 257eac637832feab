//! Write GPU kernels in Rust, beside the code that launches them.
//!
//! A `#[kernel]` in a `#[ferrogrid::module]` is compiled by rustc to PTX in a build step and embedded
//! in the program; the host gets a typed launch function of the same name. Where there is no GPU, the
//! same program runs the same kernels on the CPU. This crate is the facade: it re-exports the other crates
//! and makes no driver calls of its own.
//!
//! ```
//! use ferrogrid::prelude::*;
//!
//! #[ferrogrid::module(host_only)] // in a crate with a build.rs: #[ferrogrid::module]
//! mod kernels {
//!     use ferrogrid::device::prelude::*;
//!
//!     /// y <- a*x + y, one element per thread.
//!     #[kernel]
//!     pub fn saxpy(t: Thread<1>, a: f32, x: &[f32], mut y: DisjointSlice<f32>) {
//!         let i = t.index();
//!         if let Some(y) = y.get_mut(i) {
//!             *y += a * x[i.get()];
//!         }
//!     }
//! }
//!
//! fn main() -> ferrogrid::Result<()> {
//! #   let device = Device::cpu();
//! #   #[cfg(any())]
//!     let device = Device::best()?; // the first CUDA GPU, else the CPU
//!     let stream = device.new_stream()?;
//!     let x = stream.upload(&vec![1.0_f32; 1000])?;
//!     let mut y = stream.upload(&vec![2.0_f32; 1000])?;
//!     kernels::saxpy(&stream, Grid::cover(x.len()), 3.0, &x, &mut y)?;
//!     assert_eq!(stream.download(&y)?[0], 5.0);
//!     Ok(())
//! }
//! ```
//!
//! # Overview
//!
//! - Kernels and their parameters: [`module`], [`kernel`] and [`constant`]; the API inside kernels:
//!   [`device`], with a table of CUDA C++'s names.
//! - Devices and streams to run on: [`Device`] and [`Stream`]; the shape of a launch: [`Grid`].
//! - Memory: [`DeviceBuffer`] and its views ([`DeviceView`], [`DeviceViewMut`], [`DeviceAtomicView`]), host
//!   slices for one launch ([`In`], [`Out`], [`InOut`]), [`PinnedBuffer`], [`ManagedBuffer`],
//!   [`PitchedBuffer`], [`TextureArray`]; element types: [`DeviceCopy`](trait@DeviceCopy).
//! - Timing and ordering: [`Event`], [`Stream::time`], [`profile::Timeline`].
//! - Many launches as one graph: [`Stream::capture`], [`Graph`].
//! - Resources and occupancy of kernels: [`Device::attributes`], [`Device::occupancy`].
//! - Kernels of other compilers: [`ForeignModule`], [`Nvrtc`].
//! - Several devices that work together: `ferrogrid::nccl`, with the feature `nccl`.
//! - Errors: [`Error`], with the kernel, the limit and the value; a panic in a kernel is
//!   [`Error::KernelPanic`].
//!
//! # In a crate of yours
//!
//! `ferrogrid` is a dependency, `ferrogrid-build` a build dependency, and `build.rs` is
//! `fn main() { ferrogrid_build::compile() }`. `cargo ferrogrid new NAME` makes such a crate, `cargo
//! ferrogrid doctor` lists what a machine lacks.

#![deny(missing_docs)]

// Kernels of this crate use the same path as those of any other crate.
extern crate self as ferrogrid;

#[cfg(feature = "algorithms")]
pub use ferrogrid_algorithms as algorithms;
pub use ferrogrid_device as device;
#[doc(hidden)]
pub use ferrogrid_device::__derive;
pub use ferrogrid_device::{AddressMode, DeviceCopy, FilterMode, bytemuck};
/// ```
/// use ferrogrid::prelude::*;
///
/// #[ferrogrid::module(host_only)] // in a crate with a build.rs: #[ferrogrid::module]
/// mod kernels {
///     use ferrogrid::device::prelude::*;
///
///     /// The weights of a blur of three elements.
///     #[constant]
///     pub static WEIGHTS: Constant<[f32; 3]> = Constant::new([0.25, 0.5, 0.25]);
///
///     #[kernel]
///     pub fn blur(t: Thread<1>, x: &[f32], mut y: DisjointSlice<f32>) {
///         if let Some(y) = y.get_mut(t.index()) {
///             *y = (0..3).map(|k| WEIGHTS[k] * x[t.index().get() + k]).sum();
///         }
///     }
/// }
///
/// # fn main() -> ferrogrid::Result<()> {
/// let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&[0.0, 4.0, 8.0])?;
/// let mut y = stream.zeros(1)?;
/// kernels::blur(&stream, Grid::cover(1), &x, &mut y)?; // with the weights in the source
/// assert_eq!(stream.download(&y)?, [4.0]);
/// kernels::WEIGHTS.set(&stream, &[1.0, 0.0, 0.0])?;
/// kernels::blur(&stream, Grid::cover(1), &x, &mut y)?; // with others
/// assert_eq!(stream.download(&y)?, [0.0]);
/// # Ok(()) }
/// ```
pub use ferrogrid_host::DeviceConstant;
pub use ferrogrid_host::*;
pub use ferrogrid_macros::{comparison, constant, elementwise, kernel, matmul, module, reduction, scan};
#[cfg(feature = "nccl")]
pub use ferrogrid_nccl as nccl;

#[cfg(doctest)]
mod macro_examples;

#[doc(hidden)]
pub use ferrogrid_host::__private;

/// The prelude of host code that launches kernels: `use ferrogrid::prelude::*`.
///
/// ```
/// use ferrogrid::prelude::*;
///
/// #[derive(Clone, Copy, DeviceCopy)]
/// #[repr(C)]
/// struct Particle {
///     position: [f32; 2],
///     charge: f32,
/// }
///
/// /// The sum of the charges, computed on the host.
/// fn charge(stream: &Stream, particles: DeviceView<Particle>) -> Result<f32, Error> {
///     Ok(stream.download(particles)?.iter().map(|particle| particle.charge).sum())
/// }
///
/// # fn main() -> ferrogrid::Result<()> {
/// let stream = Device::cpu().new_stream()?;
/// let one = Particle { position: [0.5, 2.0], charge: 1.0 };
/// let mut particles: DeviceBuffer<Particle> = stream.upload(&[one; 4])?;
/// let left: DeviceViewMut<Particle> = particles.slice_mut(..1)?;
/// stream.upload_into(&[Particle { charge: -3.0, ..one }], left)?;
/// assert_eq!(charge(&stream, particles.view())?, 0.0);
/// assert_eq!(Grid::<1>::cover(particles.len()), Grid::cover(4)); // a thread for each
/// # Ok(()) }
/// ```
pub mod prelude {
    pub use crate::device::DeviceCopy;
    pub use crate::{Device, DeviceBuffer, DeviceView, DeviceViewMut, Error, Grid, Stream};
}

/// Runs the programs of the README that need no build step.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
