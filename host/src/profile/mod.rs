//! Where the time goes: a [`Timeline`] of what a device does, with its own times, for Perfetto and
//! chrome://tracing; and, with the cargo features `tracing` and `nvtx`, spans and ranges around what the host
//! asks of a device.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use ferrogrid_host::{Device, profile};
//! use ferrogrid_host::profile::{SpanKind, Timeline};
//!
//! let device = Device::cpu();
//! let timeline = Timeline::start(&device)?;
//! let stream = device.new_stream()?;
//! let ones = {
//!     let _stage = profile::range("prepare");
//!     stream.fill(1_u32, 1 << 16)?
//! };
//! assert_eq!(stream.download(&ones)?[7], 1);
//!
//! let trace = timeline.finish();
//! assert!(trace.spans().iter().any(|span| span.kind == SpanKind::Fill && span.bytes == Some(1 << 18)));
//! # let folder = std::env::temp_dir().join(format!("ferrogrid-timeline-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # let path = folder.join("timeline.json");
//! # #[cfg(any())]
//! let path = "timeline.json";
//! trace.write(path)?; // open it at https://ui.perfetto.dev, or in chrome://tracing
//! # std::fs::remove_dir_all(folder)?;
//! # Ok(()) }
//! ```
//!
//! # What it costs
//! Without a timeline and without the features, a launch looks at one number. While a timeline runs, each piece
//! of work gets two more events in its stream, and each call allocates; with the feature `nvtx` and no
//! tool, or `tracing` and no subscriber, a call looks at one number more.
//!
//! # `tracing`
//! Spans of level `DEBUG`, target `ferrogrid`, around the calls: `launch` (with `kernel`, `grid`, `block`,
//! `shared_bytes`), `upload`, `download`, `copy`, `fill` and `prefetch` (with `bytes`), `graph` (with `nodes`),
//! `host_fn`, `synchronize`, and `range` (with `name`). They last as long as the call does on the host.
//!
//! # NVTX
//! The same as ranges, pushed and popped on the calling thread, where a tool such as Nsight Systems asks for
//! them (it sets `NVTX_INJECTION64_PATH`). No library of NVIDIA's is needed, to build or to run.

// Every call to a device passes `active`, which describes it (`work`) to each `recorder` of a `timeline`, to `tracing` and to
// `nvtx`. A recorder makes a `trace`, which `chrome` writes as JSON. `range` is a stage that the user names.

mod active;
mod chrome;
#[cfg(feature = "nvtx")]
mod nvtx;
mod range;
mod recorder;
mod timeline;
mod trace;
mod work;

pub use range::{Range, range};
pub use timeline::Timeline;
pub use trace::{LaunchShape, Span, SpanKind, Trace, Track};

pub(crate) use active::{is_observed, observe, observe_host};
pub(crate) use work::Work;
