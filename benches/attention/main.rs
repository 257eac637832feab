//! Times `algorithms::attention` on a GPU, and checks some rows of each result. It prints one JSON line per figure, for
//! benches/python/attention.py, which times PyTorch's beside it.

#[path = "../timed.rs"]
mod timed;

use std::time::Duration;

use ferrogrid::algorithms::{self, Attended, Attention, Drawn, Philox};
use ferrogrid::device::half::{HalfFloat, bf16, f16};
use ferrogrid::prelude::*;
use timed::time;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Batches times length, and heads times size.
const TOKENS: usize = 16384;
const WIDTH: usize = 2048;
const ROUNDS: usize = 11;
/// What a round takes, at least.
const ROUND: Duration = Duration::from_millis(5);

fn measure<T: Attended + Drawn + HalfFloat>(
    stream: &Stream,
    name: &str,
    [length, size]: [usize; 2],
    is_causal: bool,
) -> Outcome<()> {
    let heads = TOKENS / length * (WIDTH / size);
    let mut normal = Philox::new(fastrand::u64(..));
    let [q, k, v] =
        [stream.zeros::<T>(TOKENS * WIDTH)?, stream.zeros(TOKENS * WIDTH)?, stream.zeros(TOKENS * WIDTH)?];
    let mut factors = [q, k, v];
    for factor in &mut factors {
        normal.normal(stream, factor)?;
    }
    let [device_q, device_k, device_v] = &factors;
    let mut y = stream.fill(T::NAN, TOKENS * WIDTH)?;
    let attention = Attention::new(heads, size);
    let attention = if is_causal { attention.causal() } else { attention };
    let mut call = || algorithms::attention(stream, device_q, device_k, device_v, &mut y, attention);
    let calls = (ROUND.as_secs_f64() / time(stream, 1, &mut call)?).ceil().clamp(1.0, 500.0) as u32;
    let mut seconds = (0..ROUNDS).map(|_| time(stream, calls, &mut call)).collect::<Outcome<Vec<_>>>()?;
    seconds.sort_by(f64::total_cmp);

    let [q, k, v, y] = [
        stream.download(device_q)?,
        stream.download(device_k)?,
        stream.download(device_v)?,
        stream.download(&y)?,
    ];
    for row in (0..50).map(|_| fastrand::usize(..heads * length)) {
        let (first, seen) = (row / length * length, if is_causal { row % length + 1 } else { length });
        let of = |x: &[T], row: usize| -> Vec<f64> {
            x[row * size..][..size].iter().map(|it| it.to_f32().into()).collect()
        };
        let query = of(&q, row);
        let score =
            |key: Vec<f64>| query.iter().zip(key).map(|(q, k)| q * k).sum::<f64>() / (size as f64).sqrt();
        let weights: Vec<f64> = (first..first + seen).map(|key| score(of(&k, key)).exp()).collect();
        let (total, mut exact) = (weights.iter().sum::<f64>(), vec![0.0; size]);
        for (key, weight) in (first..).zip(weights) {
            exact.iter_mut().zip(of(&v, key)).for_each(|(y, v)| *y += weight / total * v);
        }
        for (found, exact) in of(&y, row).into_iter().zip(exact) {
            let most = f64::from(T::EPSILON.to_f32()) * (exact.abs() + 0.5);
            if (found - exact).abs() > most || found.is_nan() {
                return Err(format!("{name}: {found} in row {row}, expected {exact}").into());
            }
        }
    }
    let causal = if is_causal { "_causal" } else { "" };
    println!(
        "{{\"name\": \"attention_{name}_{size}{causal}_{length}\", \"seconds\": {}}}",
        seconds[ROUNDS / 2]
    );
    Ok(())
}

fn main() -> Outcome<()> {
    let Ok(device) = Device::cuda(0).inspect_err(|error| println!("no GPU to measure: {error}")) else {
        return Ok(());
    };
    let stream = &device.new_stream()?;
    for size in [64, 128] {
        for is_causal in [false, true] {
            for length in [2048, 8192, 16384] {
                measure::<bf16>(stream, "bf16", [length, size], is_causal)?;
                measure::<f16>(stream, "f16", [length, size], is_causal)?;
            }
        }
    }
    Ok(())
}
