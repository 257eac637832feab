//! A kernel as a static of the program: its descriptor, and where each device keeps it once loaded.
//!
//! `image` is the embedded code that it comes from, `math_library` and `extern_function` what that code was
//! linked with. `attributes`, `questions` and `occupancy` are what can be asked of it on a device.

pub(crate) mod attributes;
pub(crate) mod extern_function;
pub(crate) mod image;
pub(crate) mod math_library;
pub(crate) mod occupancy;
pub(crate) mod questions;

use std::ffi::c_void;
use std::fmt;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use ferrogrid_device::native::Block;

use crate::device::Device;
use crate::error::Result;
use crate::kernel::image::ModuleImage;
use crate::kernel::math_library::MathLibrary;
use crate::memory::constant::ConstantMemory;

/// Runs one block of a kernel natively; `params` holds the address of each flattened parameter.
#[doc(hidden)]
pub type CpuEntry = unsafe fn(block: &Block<'_>, params: *const *const c_void);

/// All that the host knows of a kernel at compile time; made by the macros.
#[doc(hidden)]
#[repr(C)] // What every launch reads comes first.
pub struct KernelDescriptor {
    /// The constants that it may read.
    pub constants: &'static [&'static ConstantMemory],
    /// The only shape of a block that it can be launched with, x first; `None` for any.
    pub block: Option<[u32; 3]>,
    /// Blocks along each axis that make a cluster, x first; `None` if blocks do not form clusters.
    pub cluster: Option<[u32; 3]>,
    /// The most threads of a block that it can be launched with; `None` for the device's limit.
    pub max_threads: Option<u32>,
    /// The kernel's name in the source.
    pub name: &'static str,
    /// Its entry point in the PTX.
    pub entry: &'static str,
    /// The rank of its grid.
    pub rank: usize,
    /// Bytes of shared memory that each block has for regions of static size.
    pub shared_bytes: usize,
    /// Whether it has shared memory at all, of static size or by the launch.
    pub uses_shared_memory: bool,
    /// Whether the launch says how many blocks make a cluster.
    pub cluster_at_launch: bool,
    /// Whether its launches may begin before what comes before them has ended: its code waits for that.
    pub dependent_launch: bool,
    /// Whether its blocks are numbered in the order in which they start.
    pub in_order: bool,
    /// (size, alignment) of each flattened parameter.
    pub params: &'static [(usize, usize)],
    /// The device code of its module.
    pub image: &'static ModuleImage,
    /// Its native body.
    pub cpu: CpuEntry,
    /// The source file of the kernel.
    pub file: &'static str,
    /// Its line there.
    pub line: u32,
}

/// A kernel's function as a GPU has loaded it.
#[derive(Clone, Copy)]
pub(crate) struct Loaded {
    pub(crate) function: *mut c_void,
    /// Whether it can panic, as far as its code tells.
    pub(crate) may_panic: bool,
}

/// Devices whose loaded function is cached in the kernel itself; further ones are looked up.
const CACHED_DEVICES: usize = 16;

/// A kernel of this program: a `static` beside its launch function.
// A launch reads the start of the descriptor and one function: for the first device they are in one line of the
// processor's cache.
///
/// A kernel's companion module gives it, to be asked what is known of the kernel at compile time, and to be given to
/// [`Device::attributes`](crate::Device::attributes), [`Device::occupancy`](crate::Device::occupancy) and the like:
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// Each block of 16 by 16 threads has a tile.
/// #[kernel(block = [16, 16])]
/// pub fn tiled(t: Thread<2>, mut y: DisjointSlice<f32, 2>, tile: Shared<[[f32; 16]; 16]>) {
/// #   let _ = (t, &mut y, tile);
///     // ...
/// }
/// # }
/// # fn main() {
/// let kernel = kernels::tiled::kernel();
/// assert_eq!((kernel.rank(), kernel.block()), (2, Some([16, 16, 1])));
/// assert_eq!(kernel.shared_size_bytes(), 16 * 16 * 4);
/// println!("{} is at {}:{}", kernel.name(), kernel.location().0, kernel.location().1);
/// # }
/// ```
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// Pairs of blocks, of at most 128 threads.
/// #[kernel(max_threads = 128, cluster = 2)]
/// pub fn paired(_t: Thread<1>) {}
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// let kernel = kernels::paired::kernel();
/// assert_eq!((kernel.max_threads(), kernel.cluster()), (Some(128), Some([2, 1, 1])));
/// assert!(kernel.entry().contains("paired")); // the name to look for in a profiler
///
/// // The device code that is embedded in the program. This module, for the CPU device alone, has none.
/// assert!(kernel.architectures().is_empty() && kernel.ptx().is_none());
/// assert_eq!((kernel.ptx_for("sm_90"), kernel.cubin_for("sm_90")), (None, None));
/// assert_eq!(kernel.math_library(), None);
/// # Ok(()) }
/// ```
#[repr(C, align(64))]
pub struct Kernel {
    /// The function that the first device loaded, if it cannot panic; null until the first launch there, and again when the
    /// device is reset or the module unloaded.
    first: AtomicPtr<c_void>,
    descriptor: KernelDescriptor,
    /// As `first` for the other devices, by number.
    others: [AtomicPtr<c_void>; CACHED_DEVICES - 1],
    /// The functions that may panic, by the number of the device.
    panicking: [AtomicPtr<c_void>; CACHED_DEVICES],
}

impl Kernel {
    /// The kernel that `descriptor` describes.
    #[doc(hidden)]
    pub const fn new(descriptor: KernelDescriptor) -> Self {
        let others = [const { AtomicPtr::new(null_mut()) }; CACHED_DEVICES - 1];
        let panicking = [const { AtomicPtr::new(null_mut()) }; CACHED_DEVICES];
        Kernel { first: AtomicPtr::new(null_mut()), descriptor, others, panicking }
    }

    /// The kernel's name.
    pub fn name(&self) -> &'static str {
        self.descriptor.name
    }

    /// The rank of its grid: 1, 2 or 3.
    pub fn rank(&self) -> usize {
        self.descriptor.rank
    }

    /// The shape of a block that `#[kernel(block = ...)]` fixes (PTX `.reqntid`), x first, 1 above the rank.
    pub fn block(&self) -> Option<[u32; 3]> {
        self.descriptor.block
    }

    /// The most threads in a block that `#[kernel(max_threads = ...)]` allows (PTX `.maxntid`).
    pub fn max_threads(&self) -> Option<u32> {
        self.descriptor.max_threads
    }

    /// The blocks along each axis that `#[kernel(cluster = ...)]` makes a cluster of (PTX `.reqnctapercluster`), x
    /// first, 1 above the rank.
    pub fn cluster(&self) -> Option<[u32; 3]> {
        self.descriptor.cluster
    }

    /// What a block's shared regions may take together of the `bytes` that a device has for a block: where blocks are in
    /// order, a GPU keeps their number there.
    pub(crate) fn shared_memory_limit(&self, bytes: usize) -> usize {
        if self.descriptor.in_order { bytes.saturating_sub(16) } else { bytes }
    }

    /// Whether each launch says how many blocks make a cluster, by [`Grid::with_cluster`](crate::Grid::with_cluster):
    /// `#[kernel(cluster)]`.
    pub fn takes_clusters(&self) -> bool {
        self.descriptor.cluster_at_launch
    }

    /// Bytes of shared memory that each block has for its `Shared` parameters; the launch adds what its
    /// `SharedSlice` parameters need.
    pub fn shared_size_bytes(&self) -> usize {
        self.descriptor.shared_bytes
    }

    /// The name of its entry point in the PTX (`.entry`).
    pub fn entry(&self) -> &'static str {
        self.descriptor.entry
    }

    /// The source file and line of the kernel.
    pub fn location(&self) -> (&'static str, u32) {
        (self.descriptor.file, self.descriptor.line)
    }

    /// The architectures that its module was compiled for (`sm_75`, ...); none in a `host_only`
    /// module.
    pub fn architectures(&self) -> Vec<&'static str> {
        self.descriptor.image.texts().map(|ptx| ptx.arch).collect()
    }

    /// The PTX of its module for the first architecture; `None` in a `host_only` module.
    ///
    /// Entry points of kernels that may panic have one more parameter after their own, `__ferrogrid_record`. Ferrogrid gives
    /// it at a launch, also of [`Device::load_ptx`](crate::Device::load_ptx); other launchers give 0 as a 64-bit number: a
    /// panic is then a trap, which ends the context.
    pub fn ptx(&self) -> Option<&'static str> {
        self.descriptor.image.texts().next().map(|ptx| ptx.text)
    }

    /// The PTX of its module for `architecture` (`"sm_90"`), if it was compiled for that.
    pub fn ptx_for(&self, architecture: &str) -> Option<&'static str> {
        self.descriptor.image.texts().find(|ptx| ptx.arch == architecture).map(|ptx| ptx.text)
    }

    /// The machine code (cubin) of its module for `architecture` (`"sm_90"`), if the build made it
    /// (`ferrogrid_build::Build::cubin`). A device of that very compute capability loads it in place of the PTX.
    pub fn cubin_for(&self, architecture: &str) -> Option<&'static [u8]> {
        let found = self.descriptor.image.texts().find(|ptx| ptx.arch == architecture);
        found.map(|ptx| ptx.cubin).filter(|cubin| !cubin.is_empty())
    }

    /// The library that its device code takes mathematical functions from, for every architecture the same;
    /// `None` in a `host_only` module. On the CPU device it is the platform's C library in any case. A build
    /// pins one with `math` in `[package.metadata.ferrogrid]` or `ferrogrid_build::Build::math`.
    pub fn math_library(&self) -> Option<MathLibrary> {
        self.ptx().and_then(MathLibrary::of_ptx)
    }

    /// The driver's handle (`CUfunction`) on `device`, for calls such as `cuFuncGetAttribute` and `cuFuncGetModule`; it
    /// is loaded if it was not, and valid until it is unloaded by [`Kernel::unload`]. `None` on the CPU device.
    ///
    /// Who launches it by that handle passes what the generated launch function would, in the order of the `.param`s of
    /// its PTX: at the end of those of a kernel that may panic, `__ferrogrid_record`, which is 0. A panic is then a trap.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// # #[kernel]
    /// # pub fn step(_t: Thread<1>) {}
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// assert_eq!(kernels::step::kernel().as_raw(&Device::cpu())?, None);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the kernel does not load, as at a launch.
    pub fn as_raw(&'static self, device: &Device) -> Result<Option<*mut c_void>> {
        let device = device.backend();
        Ok(device.is_cuda().then(|| device.prepare(self)).transpose()?.map(|loaded| loaded.function))
    }

    pub(crate) fn descriptor(&self) -> &KernelDescriptor {
        &self.descriptor
    }

    /// The function that device number `device` loaded for this kernel, if it cannot panic; null if none is cached.
    #[inline]
    pub(crate) fn quiet_function(&self, device: usize) -> *mut c_void {
        self.slot(device).map_or(null_mut(), |function| function.load(Ordering::Acquire))
    }

    /// What device number `device` loaded for this kernel, if it is cached.
    pub(crate) fn loaded(&self, device: usize) -> Option<Loaded> {
        let loaded = |function: *mut c_void, may_panic| {
            (!function.is_null()).then_some(Loaded { function, may_panic })
        };
        let panicking = self.panicking.get(device)?.load(Ordering::Acquire);
        loaded(panicking, true).or_else(|| loaded(self.quiet_function(device), false))
    }

    /// Caches what device number `device` loaded.
    pub(crate) fn set_loaded(&self, device: usize, loaded: Loaded) {
        let slot = if loaded.may_panic { self.panicking.get(device) } else { self.slot(device) };
        if let Some(slot) = slot {
            slot.store(loaded.function, Ordering::Release);
        }
    }

    /// Forgets what device number `device` loaded.
    pub(crate) fn forget_loaded(&self, device: usize) {
        for slot in [self.slot(device), self.panicking.get(device)].into_iter().flatten() {
            slot.store(null_mut(), Ordering::Release);
        }
    }

    #[inline]
    fn slot(&self, device: usize) -> Option<&AtomicPtr<c_void>> {
        if device == 0 { Some(&self.first) } else { self.others.get(device - 1) }
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel")
            .field("name", &self.name())
            .field("rank", &self.rank())
            .field("location", &self.location())
            .finish_non_exhaustive()
    }
}
