//! Times kernels on a GPU against the same algorithms in CUDA C++ (benches/cuda/kernels.cu, compiled to a
//! cubin that `FERROGRID_BENCH_CUBIN` names), alternating in one process on the same buffers, and typed
//! launches against the driver's own. It prints one JSON line per figure, for benches/compare.py.
//! `FERROGRID_BENCH_ONLY=softmax` runs only the benches with that in their name.

mod arithmetic;
mod duel;
mod launches;
mod matmul;
mod memory;
mod reduction;
#[path = "../setting.rs"]
mod setting;
mod sorting;
#[path = "../timed.rs"]
mod timed;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

type Bench = (&'static str, fn(&duel::Arena) -> Outcome<()>);

const BENCHES: &[Bench] = &[
    ("saxpy", memory::saxpy),
    ("copy", memory::copy),
    ("matmul_naive", matmul::naive),
    ("matmul_tiled_16", matmul::tiled_16),
    ("matmul_tiled_32", matmul::tiled_32),
    ("transpose", memory::transpose),
    ("block_sum", reduction::block_sum),
    ("warp_sums", reduction::warp_sums),
    ("histogram", reduction::histogram),
    ("stencil", memory::stencil),
    ("n_body", arithmetic::pull),
    ("black_scholes", arithmetic::black_scholes),
    ("mandelbrot", arithmetic::mandelbrot),
    ("softmax", reduction::softmax),
    ("philox", arithmetic::philox),
    ("block_sort", sorting::block_sort),
];

fn main() -> Outcome<()> {
    let Some((device, cubin)) = setting::gpu_and_file("FERROGRID_BENCH_CUBIN", "CUDA C++") else {
        return Ok(());
    };
    let stream = device.new_stream()?;
    let module = device.load_file(cubin)?;
    let arena = duel::Arena { stream: &stream, module: &module };
    let only = std::env::var("FERROGRID_BENCH_ONLY").unwrap_or_default();
    let mut failed = 0;
    for (name, bench) in BENCHES.iter().filter(|(name, _)| name.contains(&only)) {
        if let Err(error) = bench(&arena) {
            eprintln!("{name}: {error}");
            failed += 1;
        }
    }
    launches::launches(&stream)?;
    if failed > 0 { Err(format!("{failed} benches failed").into()) } else { Ok(()) }
}
