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
#[path = "../setting.rs"]
mod setting;
mod turns;

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
    let Some((device, library)) = setting::gpu_and_file("FERROGRID_BENCH_LIBRARY", "CUDA C++") else {
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
