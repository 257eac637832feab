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
    first_kernel = "first-steps/first-kernel.md"
    signature = "kernels/signature.md"
    shared_memory = "kernels/shared-memory.md"
    tensor_cores = "kernels/tensor-cores.md"
    attention = "kernels/attention.md"
    performance = "kernels/performance.md"
    memory_and_streams = "runtime/memory-and-streams.md"
    algorithms = "runtime/algorithms.md"
    errors = "runtime/errors.md"
    cpu_device = "runtime/cpu-device.md"
    graphs = "runtime/graphs.md"
    several_gpus = "runtime/several-gpus.md"
    foreign_kernels = "interop/foreign-kernels.md"
    other_crates = "interop/other-crates.md"
    build_options = "tools/build-options.md"
    command_line = "tools/command-line.md"
    profiling = "tools/profiling.md"
    migration = "migration/overview.md"
    from_cuda = "migration/cuda.md"
    from_pycuda = "migration/pycuda.md"
    from_cupy = "migration/cupy.md"
    from_cuda_core = "migration/cuda-core.md"
    from_cust = "migration/cust.md"
    from_cudarc = "migration/cudarc.md"
    from_cuda_oxide = "migration/cuda-oxide.md"
    features = "reference/features.md"
    // Those of the published crates.
    readme_of_algorithms = "../../algorithms/README.md"
    readme_of_builder = "../../builder/README.md"
    readme_of_device = "../../device/README.md"
    readme_of_host = "../../host/README.md"
    readme_of_ptx = "../../ptx/README.md"
}
