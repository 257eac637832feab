//! Options of the driver's compiler and linker.

/// Options for loading and linking PTX by the driver (`CUjit_option`). Unset options are left to
/// the driver; machine code is loaded unchanged.
///
/// ```
/// use ferrogrid_host::JitOptions;
///
/// let options = JitOptions::new().with_max_registers(64).with_line_info(true);
/// assert_eq!(options.max_registers, Some(64));
/// ```
///
/// ```
/// use ferrogrid::{JitCacheMode, JitOptions};
///
/// let debug = JitOptions::new()
///     .with_optimization_level(0)
///     .with_debug_info(true) // for cuda-gdb
///     .with_verbose(true); // registers and spills in the log
/// assert_eq!((debug.optimization_level, debug.debug_info, debug.verbose), (Some(0), true, true));
///
/// let streaming = JitOptions::new().with_threads_per_block(256).with_cache_mode(JitCacheMode::Global);
/// assert_eq!(streaming.threads_per_block, Some(256)); // `None` for options left to the driver
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct JitOptions {
    /// The most registers that a thread may use (`CU_JIT_MAX_REGISTERS`).
    pub max_registers: Option<u32>,
    /// The fewest threads of a block to compile for (`CU_JIT_THREADS_PER_BLOCK`).
    pub threads_per_block: Option<u32>,
    /// From 0 to 4, the driver's default (`CU_JIT_OPTIMIZATION_LEVEL`).
    pub optimization_level: Option<u32>,
    /// Whether to generate debug information (`CU_JIT_GENERATE_DEBUG_INFO`).
    pub debug_info: bool,
    /// Whether to generate line numbers (`CU_JIT_GENERATE_LINE_INFO`).
    pub line_info: bool,
    /// Whether the log includes the resources of each kernel (`CU_JIT_LOG_VERBOSE`).
    pub verbose: bool,
    /// How global loads are cached (`CU_JIT_CACHE_MODE`).
    pub cache_mode: Option<JitCacheMode>,
}

/// How global loads are cached (`CUjit_cacheMode`).
///
/// ```no_run
/// use ferrogrid::{Device, ForeignModule, JitCacheMode, JitOptions, Result};
///
/// /// A kernel that reads each element once: past L1.
/// fn load_streaming(device: &Device, ptx: &str) -> Result<ForeignModule> {
///     device.load_image(ptx.as_bytes(), &JitOptions::new().with_cache_mode(JitCacheMode::Global))
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum JitCacheMode {
    /// As the compiler does by default (`CU_JIT_CACHE_OPTION_NONE`).
    Default = 0,
    /// In L2 only (`CU_JIT_CACHE_OPTION_CG`).
    Global = 1,
    /// In L1 and L2 (`CU_JIT_CACHE_OPTION_CA`).
    All = 2,
}

impl JitOptions {
    /// All options unset.
    pub const fn new() -> Self {
        JitOptions {
            max_registers: None,
            threads_per_block: None,
            optimization_level: None,
            debug_info: false,
            line_info: false,
            verbose: false,
            cache_mode: None,
        }
    }
}

setters! { JitOptions:
    /// The same with at most this many registers in a thread.
    pub const fn with_max_registers(registers: u32): max_registers = Some(registers);

    /// The same, compiled for blocks of at least this many threads.
    pub const fn with_threads_per_block(threads: u32): threads_per_block = Some(threads);

    /// The same with this level of optimisation, from 0 to 4.
    pub const fn with_optimization_level(level: u32): optimization_level = Some(level);

    /// The same with or without debug information.
    pub const fn with_debug_info(on: bool): debug_info = on;

    /// The same with or without line numbers.
    pub const fn with_line_info(on: bool): line_info = on;

    /// The same with or without the resources of each kernel in the log.
    pub const fn with_verbose(on: bool): verbose = on;

    /// The same with global loads cached in this way.
    pub const fn with_cache_mode(mode: JitCacheMode): cache_mode = Some(mode);
}
