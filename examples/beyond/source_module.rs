//! 5.6 source_module: a kernel whose formula is known only at run time, compiled while the program runs.
//!
//! Shows: `KernelSource`, Rust text that becomes a kernel; a launch without `unsafe`, whose arguments are
//! checked against the compiler's types; errors with lines of the text. Look at: the error for a formula with
//! a mistake, and that for an argument of another type; both come while the program runs, and neither ends
//! it.
//!
//! A device toolchain compiles the text, as `cargo ferrogrid setup` installs it. The result runs on GPUs
//! only; on the CPU device the program compiles it, and ends.
//!
//! `cargo ferrogrid run source_module 'x * x + 1.0'`

use ferrogrid::prelude::*;
use ferrogrid::{KernelSource, SourceError};

/// y[i] <- the formula of x[i].
fn source(formula: &str) -> KernelSource {
    let text = format!(
        "#[kernel]
pub fn apply(t: Thread<1>, x: &[f32], mut y: DisjointSlice<f32>) {{
    let i = t.index();
    if let (Some(y), Some(&x)) = (y.get_mut(i), x.get(i.get())) {{
        *y = {formula};
    }}
}}"
    );
    KernelSource::new(text).with_name("apply.rs")
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    println!("device  {}", device.name());
    let given = std::env::args().nth(1);
    let formula = given.as_deref().unwrap_or("x * x + 1.0");
    let architecture = device.arch().unwrap_or("sm_75".to_owned());
    let compiled = match source(formula).compile_for(&architecture) {
        Err(error @ Error::Source(SourceError::NoToolchain { .. })) => {
            println!("{error}");
            println!("SKIPPED: there is no device toolchain");
            return Ok(());
        }
        compiled => compiled?,
    };
    println!("{formula}: {} bytes of PTX for {architecture}", compiled.ptx().len());

    match source("x.to_string()").compile_for(&architecture) {
        Err(Error::Source(SourceError::Compile { diagnostics, .. })) => println!("{diagnostics}"),
        other => return Err(format!("a formula that is no number was compiled: {other:?}").into()),
    }

    let module = match compiled.load(&device) {
        Err(error @ Error::Unsupported { .. }) => {
            println!("SKIPPED: {error}");
            return Ok(());
        }
        module => module?,
    };
    let apply = module.kernel("apply")?;
    let stream = device.new_stream()?;
    let x = stream.upload(&[0.0_f32, 1.0, 2.0, 3.0])?;
    let mut y = stream.zeros::<f32>(4)?;
    match apply.launch(&stream, Grid::cover(4), (&stream.zeros::<f64>(4)?, &mut y)) {
        Err(Error::Source(error @ SourceError::ArgumentType { .. })) => println!("{error}"),
        other => return Err(format!("an argument of another type was taken: {other:?}").into()),
    }
    apply.launch(&stream, Grid::cover(4), (&x, &mut y))?;
    let found = stream.download(&y)?;
    println!("{found:?}");
    if given.is_none() && found != [1.0, 2.0, 5.0, 10.0] {
        return Err(format!("found {found:?}").into());
    }
    println!("PASS");
    Ok(())
}
