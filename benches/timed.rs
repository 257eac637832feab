//! How long calls on a stream take.

use std::error::Error;

use ferrogrid::Stream;

use crate::Outcome;

/// Seconds of a call by the device's clock, of `calls` in a row.
pub fn time<E: Into<Box<dyn Error>>>(
    stream: &Stream,
    calls: u32,
    mut call: impl FnMut() -> Result<(), E>,
) -> Outcome<f64> {
    let start = stream.record()?;
    for _ in 0..calls {
        call().map_err(Into::into)?;
    }
    let end = stream.record()?;
    end.synchronize()?;
    Ok(end.elapsed_since(&start)?.as_secs_f64() / f64::from(calls))
}
