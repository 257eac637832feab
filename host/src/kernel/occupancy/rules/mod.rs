//! The arithmetic of occupancy, by the rules that NVIDIA publishes in `cuda_occupancy.h`: blocks per
//! multiprocessor by warps, blocks, registers, shared memory and barriers.

use std::fmt;

use crate::properties::DeviceProperties;

/// The resources of one multiprocessor of an architecture: the inputs of occupancy calculations.
///
/// ```
/// use ferrogrid_host::{BlockResources, MultiprocessorLimits, OccupancyLimiter};
///
/// let hopper = MultiprocessorLimits::for_architecture("sm_90").unwrap();
/// // 256 threads with 72 registers each, as ptxas reports them:
/// let occupancy = hopper.occupancy(&BlockResources::new(256).with_registers(72));
/// assert_eq!((occupancy.active_blocks, occupancy.active_warps), (3, 24));
/// assert_eq!(occupancy.limited_by(), [OccupancyLimiter::Registers]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MultiprocessorLimits {
    /// Compute capability (major, minor), which determines the allocation granularity of resources.
    pub compute_capability: (u32, u32),
    /// Threads in a warp.
    pub warp_size: u32,
    /// Threads in a block.
    pub max_threads_per_block: u32,
    /// Threads on the multiprocessor at a time.
    pub max_threads_per_multiprocessor: u32,
    /// Blocks on the multiprocessor at a time.
    pub max_blocks_per_multiprocessor: u32,
    /// 32-bit registers that one block may have.
    pub registers_per_block: u32,
    /// 32-bit registers of the multiprocessor; 0 if registers are unlimited (the CPU device).
    pub registers_per_multiprocessor: u32,
    /// Bytes of shared memory that one block may have if it opts in to more than the usual 48 KiB.
    pub shared_memory_per_block_optin: u32,
    /// Bytes of shared memory of the multiprocessor.
    pub shared_memory_per_multiprocessor: u32,
    /// Bytes of shared memory that the system reserves in each block.
    pub reserved_shared_memory_per_block: u32,
}

/// The allocation unit of registers for a warp.
const REGISTER_GRANULARITY: u64 = 256;

/// A thread cannot have more registers than this.
const MAX_REGISTERS_PER_THREAD: u32 = 255;

impl DeviceProperties {
    /// The terms of occupancy calculations for this device.
    pub fn multiprocessor_limits(&self) -> MultiprocessorLimits {
        MultiprocessorLimits {
            compute_capability: self.compute_capability.unwrap_or_default(),
            warp_size: self.warp_size,
            max_threads_per_block: self.max_threads_per_block,
            max_threads_per_multiprocessor: self.max_threads_per_multiprocessor,
            max_blocks_per_multiprocessor: self.max_blocks_per_multiprocessor,
            registers_per_block: self.registers_per_block,
            registers_per_multiprocessor: self.registers_per_multiprocessor,
            shared_memory_per_block_optin: self.shared_memory_per_block_optin,
            shared_memory_per_multiprocessor: self.shared_memory_per_multiprocessor,
            reserved_shared_memory_per_block: self.reserved_shared_memory_per_block,
        }
    }
}

impl MultiprocessorLimits {
    /// The limits of an architecture by name: `sm_75`, `sm_90a`, `compute_100` and so on, from 7.0 to
    /// 12.1 (the table "Technical Specifications per Compute Capability" of the CUDA programming guide).
    /// `None` for an unknown one.
    ///
    /// ```
    /// use ferrogrid_host::MultiprocessorLimits;
    ///
    /// let hopper = MultiprocessorLimits::for_architecture("sm_90a").unwrap();
    /// assert_eq!(hopper, MultiprocessorLimits::for_compute_capability((9, 0)).unwrap());
    /// assert!(MultiprocessorLimits::for_architecture("sm_35").is_none());
    /// ```
    pub fn for_architecture(architecture: &str) -> Option<Self> {
        let number = architecture.strip_prefix("sm_").or(architecture.strip_prefix("compute_"))?;
        let number: u32 = number.trim_end_matches(|c: char| c.is_ascii_lowercase()).parse().ok()?;
        Self::for_compute_capability((number / 10, number % 10))
    }

    /// The same by compute capability (major, minor).
    ///
    /// ```
    /// use ferrogrid::MultiprocessorLimits;
    ///
    /// let hopper = MultiprocessorLimits::for_compute_capability((9, 0)).unwrap();
    /// assert_eq!(hopper.shared_memory_per_multiprocessor, 228 << 10); // 228 KiB
    /// assert!(MultiprocessorLimits::for_compute_capability((99, 0)).is_none());
    /// ```
    pub fn for_compute_capability(capability: (u32, u32)) -> Option<Self> {
        // Threads, blocks, and KiB of shared memory: per multiprocessor, per block.
        let (threads, blocks, shared, shared_per_block) = match capability {
            (7, 0 | 2) => (2048, 32, 96, 96),
            (7, 5) => (1024, 16, 64, 64),
            (8, 0) => (2048, 32, 164, 163),
            (8, 6) => (1536, 16, 100, 99),
            (8, 7) => (1536, 16, 164, 163),
            (8, 9) => (1536, 24, 100, 99),
            (9, 0) | (10, 0 | 3) => (2048, 32, 228, 227),
            (10, 1) | (11, 0) => (1536, 24, 228, 227),
            (12, 0 | 1) => (1536, 24, 100, 99),
            _ => return None,
        };
        Some(MultiprocessorLimits {
            compute_capability: capability,
            warp_size: 32,
            max_threads_per_block: 1024,
            max_threads_per_multiprocessor: threads,
            max_blocks_per_multiprocessor: blocks,
            registers_per_block: 65_536,
            registers_per_multiprocessor: 65_536,
            shared_memory_per_block_optin: shared_per_block * 1024,
            shared_memory_per_multiprocessor: shared * 1024,
            reserved_shared_memory_per_block: if capability.0 >= 8 { 1024 } else { 0 },
        })
    }

    /// How many blocks with these needs are on the multiprocessor at a time, and why not more.
    ///
    /// ```
    /// use ferrogrid::{BlockResources, MultiprocessorLimits};
    ///
    /// // The same kernel on three GPUs: blocks of 256 threads with 64 registers each.
    /// let block = BlockResources::new(256).with_registers(64);
    /// let blocks = ["sm_75", "sm_80", "sm_89"].map(|architecture| {
    ///     MultiprocessorLimits::for_architecture(architecture).unwrap().occupancy(&block).active_blocks
    /// });
    /// assert_eq!(blocks, [4, 4, 4]); // by registers, of which each multiprocessor has 65 536
    /// ```
    pub fn occupancy(&self, block: &BlockResources) -> Occupancy {
        let warps = u64::from(block.threads.div_ceil(self.warp_size));
        let registers = self.registers(block, warps);
        let shared = self.shared_memory(block);
        let limits = OccupancyLimits {
            warps: self.by_warps(block, warps),
            blocks: self.max_blocks_per_multiprocessor,
            registers: registers.and_then(|per_warp| self.by_registers(block, warps, per_warp)),
            shared_memory: self.by_shared_memory(shared),
            barriers: self.by_barriers(block.barriers),
        };
        let active_blocks = limits.least();
        Occupancy {
            active_blocks,
            active_warps: active_blocks.saturating_mul(saturate(warps)),
            max_warps: self.max_threads_per_multiprocessor / self.warp_size,
            allocated_registers_per_block: saturate(registers.unwrap_or(0).saturating_mul(warps)),
            allocated_shared_memory_per_block: saturate(shared),
            limits,
        }
    }

    fn by_warps(&self, block: &BlockResources, warps: u64) -> u32 {
        let most = block.max_threads.unwrap_or(u32::MAX).min(self.max_threads_per_block);
        if block.threads == 0 || block.threads > most {
            return 0;
        }
        saturate(u64::from(self.max_threads_per_multiprocessor / self.warp_size) / warps)
    }

    /// Registers allocated to a warp; `None` if unlimited.
    fn registers(&self, block: &BlockResources, warps: u64) -> Option<u64> {
        if self.registers_per_multiprocessor == 0 || block.registers_per_thread == 0 || warps == 0 {
            return None;
        }
        let per_warp = u64::from(block.registers_per_thread) * u64::from(self.warp_size);
        Some(per_warp.next_multiple_of(REGISTER_GRANULARITY))
    }

    fn by_registers(&self, block: &BlockResources, warps: u64, per_warp: u64) -> Option<u32> {
        if block.registers_per_thread > MAX_REGISTERS_PER_THREAD {
            return Some(0);
        }
        // The hardware's check of one block assumes as many warps in every partition.
        let assumed = per_warp * warps.next_multiple_of(self.partitions());
        if assumed > u64::from(self.registers_per_block) {
            return Some(0);
        }
        let warps_per_partition = u64::from(self.registers_per_multiprocessor) / self.partitions() / per_warp;
        Some(saturate(warps_per_partition * self.partitions() / warps))
    }

    /// Bytes of shared memory allocated to a block.
    fn shared_memory(&self, block: &BlockResources) -> u64 {
        let dynamic = u32::try_from(block.dynamic_shared_memory).unwrap_or(u32::MAX);
        let needed = u64::from(block.static_shared_memory)
            + u64::from(dynamic)
            + u64::from(self.reserved_shared_memory_per_block);
        needed.next_multiple_of(self.shared_memory_granularity())
    }

    fn by_shared_memory(&self, allocated: u64) -> Option<u32> {
        let most = self.shared_memory_per_block_optin + self.reserved_shared_memory_per_block;
        match allocated {
            0 => None,
            _ if allocated > u64::from(most) => Some(0),
            _ => Some(saturate(u64::from(self.shared_memory_per_multiprocessor) / allocated)),
        }
    }

    /// Before 9.0 there are always enough.
    fn by_barriers(&self, barriers: u32) -> Option<u32> {
        if self.compute_capability.0 < 9 || barriers == 0 {
            return None;
        }
        let per_block = match self.compute_capability {
            (10, 1) | (11.., _) => 1,
            _ => 2,
        };
        Some(self.max_blocks_per_multiprocessor * per_block / barriers)
    }

    /// Into how many parts the register file is divided.
    fn partitions(&self) -> u64 {
        if self.compute_capability == (6, 0) { 2 } else { 4 }
    }

    fn shared_memory_granularity(&self) -> u64 {
        if self.compute_capability.0 >= 8 { 128 } else { 256 }
    }
}

/// The resources that one block of a kernel needs; the figures that ptxas (`-v`) or
/// [`KernelAttributes`](crate::KernelAttributes) give.
///
/// ```
/// use ferrogrid::{BlockResources, MultiprocessorLimits};
///
/// // As ptxas reports it, "Used 32 registers, used 1 barriers, 1024 bytes smem", launched with 16 KiB more.
/// let block = BlockResources::new(128)
///     .with_registers(32)
///     .with_shared_memory(1024, 16 << 10)
///     .with_barriers(1)
///     .with_max_threads(256);
/// let occupancy = MultiprocessorLimits::for_architecture("sm_90").unwrap().occupancy(&block);
/// assert_eq!(occupancy.active_blocks, 12); // 18 KiB each, 1 KiB of which the system takes, of 228 KiB
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockResources {
    /// Threads of the block.
    pub threads: u32,
    /// Threads that a block of this kernel may have; `None` for the device's limit.
    pub max_threads: Option<u32>,
    /// 32-bit registers of each thread.
    pub registers_per_thread: u32,
    /// Bytes of shared memory whose size is fixed in the kernel.
    pub static_shared_memory: u32,
    /// Bytes of dynamic shared memory.
    pub dynamic_shared_memory: usize,
    /// Barriers of the block; they limit only from compute capability 9.0 on.
    pub barriers: u32,
}

impl BlockResources {
    /// A block of `threads` threads that needs one barrier and nothing else.
    pub const fn new(threads: u32) -> Self {
        BlockResources {
            threads,
            max_threads: None,
            registers_per_thread: 0,
            static_shared_memory: 0,
            dynamic_shared_memory: 0,
            barriers: 1,
        }
    }
}

setters! { BlockResources:
    /// The same with this many 32-bit registers for each thread.
    pub const fn with_registers(per_thread: u32): registers_per_thread = per_thread;

    /// The same with bytes of static and of dynamic shared memory.
    pub const fn with_shared_memory(fixed: u32, dynamic: usize): static_shared_memory = fixed, dynamic_shared_memory = dynamic;

    /// The same with this many barriers.
    pub const fn with_barriers(barriers: u32): barriers = barriers;

    /// The same with a limit to the threads of a block of this kernel.
    pub const fn with_max_threads(threads: u32): max_threads = Some(threads);
}

/// The number of resident blocks of a kernel per multiprocessor, and its limits.
///
/// ```
/// use ferrogrid::{BlockResources, MultiprocessorLimits, OccupancyLimiter};
///
/// let ada = MultiprocessorLimits::for_compute_capability((8, 9)).unwrap();
/// let occupancy = ada.occupancy(&BlockResources::new(512).with_registers(64));
/// assert_eq!((occupancy.active_blocks, occupancy.active_warps, occupancy.max_warps), (2, 32, 48));
/// assert!((occupancy.fraction() - 2.0 / 3.0).abs() < 1e-9);
/// assert_eq!(occupancy.limited_by(), [OccupancyLimiter::Registers]);
/// assert_eq!(occupancy.to_string(), "2 blocks, 32 of 48 warps (67 %), limited by registers");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Occupancy {
    /// Blocks on the multiprocessor at a time; 0 if such a block cannot be launched at all.
    pub active_blocks: u32,
    /// Their warps.
    pub active_warps: u32,
    /// Warps of the multiprocessor.
    pub max_warps: u32,
    /// 32-bit registers allocated to each block.
    pub allocated_registers_per_block: u32,
    /// Bytes of shared memory allocated to each block, with those that the system reserves.
    pub allocated_shared_memory_per_block: u32,
    /// Blocks that each resource allows.
    pub limits: OccupancyLimits,
}

/// The blocks that each resource of a multiprocessor allows; `None` if it is no limit.
///
/// ```
/// use ferrogrid::{BlockResources, MultiprocessorLimits};
///
/// let ampere = MultiprocessorLimits::for_architecture("sm_80").unwrap();
/// let block = BlockResources::new(256).with_registers(40).with_shared_memory(0, 40 << 10);
/// let limits = ampere.occupancy(&block).limits;
/// assert_eq!((limits.warps, limits.blocks), (8, 32));
/// assert_eq!((limits.registers, limits.shared_memory), (Some(6), Some(4))); // 4 blocks: less shared memory would help
/// assert_eq!(limits.barriers, None); // they limit nothing before 9.0
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct OccupancyLimits {
    /// By the warps (the threads) of the multiprocessor.
    pub warps: u32,
    /// By its number of blocks.
    pub blocks: u32,
    /// By its registers.
    pub registers: Option<u32>,
    /// By its shared memory.
    pub shared_memory: Option<u32>,
    /// By its barriers.
    pub barriers: Option<u32>,
}

/// A resource that limits occupancy.
///
/// ```
/// use ferrogrid::{BlockResources, MultiprocessorLimits, OccupancyLimiter};
///
/// let turing = MultiprocessorLimits::for_architecture("sm_75").unwrap();
/// let small = turing.occupancy(&BlockResources::new(32));
/// assert_eq!(small.limited_by(), [OccupancyLimiter::Blocks]); // 16 blocks of one warp: take larger ones
/// let large = turing.occupancy(&BlockResources::new(1024));
/// assert_eq!(large.limited_by(), [OccupancyLimiter::Warps]); // it is full
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub enum OccupancyLimiter {
    /// The limits on warps (threads) of a multiprocessor or a block.
    Warps,
    /// The limit on blocks of a multiprocessor.
    Blocks,
    /// Registers.
    Registers,
    /// Shared memory.
    SharedMemory,
    /// Barriers.
    Barriers,
}

impl OccupancyLimits {
    fn each(&self) -> [(OccupancyLimiter, Option<u32>); 5] {
        [
            (OccupancyLimiter::Warps, Some(self.warps)),
            (OccupancyLimiter::Blocks, Some(self.blocks)),
            (OccupancyLimiter::Registers, self.registers),
            (OccupancyLimiter::SharedMemory, self.shared_memory),
            (OccupancyLimiter::Barriers, self.barriers),
        ]
    }

    fn least(&self) -> u32 {
        self.each().iter().filter_map(|(_, limit)| *limit).min().unwrap_or(0)
    }
}

impl Occupancy {
    /// Active warps as a fraction of the multiprocessor's maximum, from 0 to 1.
    pub fn fraction(&self) -> f64 {
        if self.max_warps == 0 { 0.0 } else { f64::from(self.active_warps) / f64::from(self.max_warps) }
    }

    /// The resources that allow no more blocks than these; at least one.
    pub fn limited_by(&self) -> Vec<OccupancyLimiter> {
        let binding = |(limiter, limit): &(OccupancyLimiter, Option<u32>)| {
            (*limit == Some(self.active_blocks)).then_some(*limiter)
        };
        self.limits.each().iter().filter_map(binding).collect()
    }
}

impl fmt::Display for Occupancy {
    /// `3 blocks, 24 of 64 warps (38 %), limited by registers`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limiters: Vec<String> = self.limited_by().iter().map(ToString::to_string).collect();
        write!(
            f,
            "{} blocks, {} of {} warps ({:.0} %), limited by {}",
            self.active_blocks,
            self.active_warps,
            self.max_warps,
            100.0 * self.fraction(),
            limiters.join(", ")
        )
    }
}

display_words!(OccupancyLimiter {
    Warps = "warps",
    Blocks = "blocks",
    Registers = "registers",
    SharedMemory = "shared memory",
    Barriers = "barriers",
});

fn saturate(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
