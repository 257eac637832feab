//! Times the host runtime on a GPU against the driver's own calls and against CUDA C++
//! (benches/cuda/runtime.cu, compiled to a shared library that `FERROGRID_BENCH_LIBRARY` names): alternating
//! in one process, in one context, on the same streams and memory. It prints one JSON line per figure, for
//! benches/runtime.py.

mod copies;
mod counting;
mod cpp;
mod events;
mod graphs;
mod kernels;
mod launches;
mod pipeline;
mod turns;

use std::path::PathBuf;

use ferrogrid::prelude::*;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

type Bench = (&'static str, fn(&Device, &cpp::Cpp) -> Outcome<()>);

const BENCHES: &[Bench] = &[
    ("launches", launches::launches),
    ("launches_of_two_streams", launches::launches_of_two_streams),
    ("allocations", launches::allocations),
    ("events", events::events),
    ("graphs", graphs::graphs),
    ("copies", copies::copies),
    ("pipeline", pipeline::pipeline),
];

fn main() -> Outcome<()> {
    // `cargo test --benches` runs this too; there is nothing to check where there is no GPU.
    let device = match Device::cuda(0) {
        Ok(device) => device,
        Err(error) => {
            println!("no GPU to measure: {error}");
            return Ok(());
        }
    };
    let Some(library) = std::env::var_os("FERROGRID_BENCH_LIBRARY").map(PathBuf::from) else {
        println!("no CUDA C++ to measure against: FERROGRID_BENCH_LIBRARY is not set");
        return Ok(());
    };
    let cpp = cpp::Cpp::load(&library)?;
    let mut failed = 0;
    for (name, bench) in BENCHES {
        if let Err(error) = bench(&device, &cpp) {
            eprintln!("{name}: {error}");
            failed += 1;
        }
    }
    if failed > 0 { Err(format!("{failed} benches failed").into()) } else { Ok(()) }
}
