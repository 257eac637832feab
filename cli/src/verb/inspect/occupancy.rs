//! The occupancy of a kernel on each architecture: the resources that ptxas reports, applied to the occupancy
//! rules.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use ferrogrid_build::Arch;
use ferrogrid_build::inspect::{Assembler, CompiledKernel, Resources};
use ferrogrid_host::{BlockResources, MultiprocessorLimits, Occupancy};

/// The architectures of the table, besides those that the program has code for: one for each kind of limits.
const ARCHITECTURES: [&str; 7] = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"];

/// The block sizes for kernels that fix none, if the user names none.
const BLOCKS: [u32; 6] = [32, 64, 128, 256, 512, 1024];

/// The launch parameters that determine the occupancy of a kernel.
pub(super) struct BlockNeeds {
    /// The block sizes.
    pub(super) threads: Vec<u32>,
    shared_bytes: usize,
    max_threads: Option<u32>,
}

impl BlockNeeds {
    /// For blocks of `threads` threads, else of the size that the kernel fixes, else of several sizes.
    pub(super) fn new(kernel: &CompiledKernel, shared_bytes: u64, threads: Option<u32>) -> Self {
        let fixed = kernel.block.map(|[x, y, z]| x * y * z);
        let threads = match threads.or(fixed) {
            Some(threads) => vec![threads],
            None => {
                BLOCKS.into_iter().filter(|it| kernel.max_threads.is_none_or(|most| *it <= most)).collect()
            }
        };
        let shared_bytes = usize::try_from(shared_bytes).unwrap_or(usize::MAX);
        BlockNeeds { threads, shared_bytes, max_threads: fixed.or(kernel.max_threads) }
    }

    fn block(&self, threads: u32, resources: &Resources) -> BlockResources {
        let block = BlockResources::new(threads)
            .with_registers(resources.registers)
            .with_shared_memory(resources.static_shared, self.shared_bytes)
            .with_barriers(resources.barriers);
        match self.max_threads {
            Some(most) => block.with_max_threads(most),
            None => block,
        }
    }
}

/// The occupancy of a kernel on an architecture.
pub(super) struct Row {
    pub(super) arch: Arch,
    /// The architecture whose PTX is loaded there.
    pub(super) ptx: Arch,
    /// Its resources, or why they are unknown.
    pub(super) outcome: Result<Needs, String>,
}

/// The resources of a kernel on an architecture, and its occupancy.
pub(super) struct Needs {
    pub(super) resources: Resources,
    /// By block size.
    pub(super) blocks: Vec<(u32, Occupancy)>,
}

/// A row for each architecture that the kernel can run on.
pub(super) fn table(kernel: &CompiledKernel, assembler: &Assembler, needs: &BlockNeeds) -> Vec<Row> {
    let mut architectures: Vec<Arch> = ARCHITECTURES.iter().filter_map(|name| name.parse().ok()).collect();
    architectures.extend(kernel.images.iter().map(|image| image.arch.clone()));
    architectures.sort_by_key(|arch| arch.capability());
    architectures.dedup();
    // In parallel on all processors: each run of ptxas takes a moment.
    let next = AtomicUsize::new(0);
    let rows = Mutex::new(Vec::new());
    let work = || {
        while let Some(arch) = architectures.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Some(row) = row(kernel, assembler, needs, arch) {
                rows.lock().unwrap_or_else(|it| it.into_inner()).push(row);
            }
        }
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..processors).for_each(|_| drop(scope.spawn(work))));
    let mut rows = rows.into_inner().unwrap_or_else(|it| it.into_inner());
    rows.sort_by_key(|row| (row.arch.capability(), row.arch.clone()));
    rows
}

/// `None` if the program has no code for it, or its limits are not known.
fn row(kernel: &CompiledKernel, assembler: &Assembler, needs: &BlockNeeds, arch: &Arch) -> Option<Row> {
    let limits = MultiprocessorLimits::for_architecture(arch.as_str())?;
    let same = kernel.images.iter().find(|image| image.arch == *arch);
    let image = same.or_else(|| kernel.image_for(arch.capability()))?;
    let assembled =
        assembler.assemble(&image.file, arch, Some(&kernel.entry)).map_err(|error| error.to_string());
    let outcome = assembled.and_then(|assembled| {
        let resources = *assembled.resources.get(&kernel.entry).ok_or("ptxas reports no resources for it")?;
        let of = |&threads: &u32| (threads, limits.occupancy(&needs.block(threads, &resources)));
        Ok(Needs { resources, blocks: needs.threads.iter().map(of).collect() })
    });
    Some(Row { arch: arch.clone(), ptx: image.arch.clone(), outcome })
}
