//! The book's chapters as documentation, so that programs in them that need no build step are compiled and
//! run as doctests. Kernels that need one are in `tests/book`, whole programs in `src/bin`; chapters include
//! parts of them. `tests/chapters.rs` requires every block of Rust to be one or the other.

macro_rules! chapters {
    ($($name:ident = $file:literal)*) => { $(
        #[cfg(doctest)]
        #[doc = include_str!(concat!("../../src/", $file))]
        mod $name {}
    )* };
}

chapters! {
    introduction = "introduction.md"
    first_kernel = "first-kernel.md"
    signature = "signature.md"
    memory_and_streams = "memory-and-streams.md"
    shared_memory = "shared-memory.md"
    tensor_cores = "tensor-cores.md"
    attention = "attention.md"
    algorithms = "algorithms.md"
    errors = "errors.md"
    cpu_device = "cpu-device.md"
    performance = "performance.md"
    graphs = "graphs.md"
    foreign_kernels = "foreign-kernels.md"
    several_gpus = "several-gpus.md"
    other_crates = "other-crates.md"
    build_options = "build-options.md"
    tools = "tools.md"
    profiling = "profiling.md"
    migration = "migration.md"
    from_cuda = "migration/cuda.md"
    from_pycuda = "migration/pycuda.md"
    from_cupy = "migration/cupy.md"
    from_cuda_core = "migration/cuda-core.md"
    from_cust = "migration/cust.md"
    from_cudarc = "migration/cudarc.md"
    from_cuda_oxide = "migration/cuda-oxide.md"
    features = "features.md"
    // Those of the published crates.
    readme_of_algorithms = "../../algorithms/README.md"
    readme_of_builder = "../../builder/README.md"
    readme_of_device = "../../device/README.md"
    readme_of_host = "../../host/README.md"
    readme_of_ptx = "../../ptx/README.md"
}
