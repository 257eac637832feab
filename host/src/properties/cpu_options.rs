//! The options of CPU devices.

/// The limits of a CPU device created by [`Device::cpu_with`](crate::Device::cpu_with). An option that is not set is
/// as for [`Device::cpu`](crate::Device::cpu).
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::{CpuOptions, Error};
///
/// // A device with 1 MiB of memory: how does the program take that?
/// let small = Device::cpu_with(CpuOptions::new().memory(1 << 20).workers(2))?;
/// let stream = small.new_stream()?;
/// assert!(matches!(stream.zeros::<u8>(2 << 20), Err(Error::OutOfMemory { .. })));
/// # Ok(()) }
/// ```
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// # #[kernel]
/// # pub fn tiled(_t: Thread<1>, _tile: Shared<[f32; 20_000]>) {}
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::{CpuOptions, LaunchError};
///
/// // As on a GPU of compute capability 7.5, whose blocks have 64 KiB of shared memory: does the kernel fit?
/// let turing = Device::cpu_with(CpuOptions::new().shared_memory_per_block(64 << 10))?;
/// let refused = kernels::tiled(&turing.new_stream()?, Grid::new(1, 32)); // 80 000 bytes
/// assert!(matches!(refused, Err(Error::Launch(LaunchError::SharedMemoryTooLarge { .. }))), "{refused:?}");
/// kernels::tiled(&Device::cpu().new_stream()?, Grid::new(1, 32))?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuOptions {
    pub(crate) memory: Option<u64>,
    pub(crate) shared_memory_per_block: Option<usize>,
    pub(crate) workers: Option<usize>,
    pub(crate) without_native_bodies: bool,
}

impl CpuOptions {
    /// A device as [`Device::cpu`](crate::Device::cpu).
    pub fn new() -> Self {
        Self::default()
    }
}

setters! { CpuOptions:
    /// At most `bytes` of memory in its buffers at a time, managed ones and those for several processes
    /// counted; more is [`Error::OutOfMemory`](crate::Error::OutOfMemory). Buffers that are dropped count until the work
    /// before that has run.
    pub const fn memory(bytes: u64): memory = Some(bytes);

    /// At most `bytes` of shared memory in a block, up to 232448 (227 KiB).
    pub const fn shared_memory_per_block(bytes: usize): shared_memory_per_block = Some(bytes);

    /// `threads` threads to run blocks, from 1 to 65535, whatever `FERROGRID_CPU_THREADS` says.
    pub const fn workers(threads: usize): workers = Some(threads);

    /// Runs kernels as kernels, thread by thread, even if they have a body for the CPU (`#[kernel(native = ...)]`), as those of
    /// the ready-made algorithms: to test or debug the kernel itself.
    pub const fn without_native_bodies(): without_native_bodies = true;
}
