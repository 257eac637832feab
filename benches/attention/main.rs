//! Times `algorithms::attention` and its gradients on a GPU, and checks some rows of each result. It prints one JSON line per figure, for
//! benches/python/attention.py, which times PyTorch's beside it.

#[path = "../timed.rs"]
mod timed;

use std::time::Duration;

use ferrogrid::algorithms::{self, Attended, Attention, AttentionGradients, AttentionPass, Drawn, Philox};
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
    let seconds =
        median(stream, || algorithms::attention(stream, device_q, device_k, device_v, &mut y, attention))?;

    let mut log_sums = stream.fill(f32::NAN, heads * length)?;
    let mut dy = stream.zeros::<T>(TOKENS * WIDTH)?;
    normal.normal(stream, &mut dy)?;
    algorithms::attention_with_log_sums(
        stream,
        device_q,
        device_k,
        device_v,
        &mut y,
        &mut log_sums,
        attention,
    )?;
    let mut gradients = [
        stream.fill(T::NAN, TOKENS * WIDTH)?,
        stream.fill(T::NAN, TOKENS * WIDTH)?,
        stream.fill(T::NAN, TOKENS * WIDTH)?,
    ];
    let (q, k, v) = (device_q.view(), device_k.view(), device_v.view());
    let pass = AttentionPass { q, k, v, y: y.view(), log_sums: log_sums.view(), dy: dy.view() };
    let seconds_of_gradients = median(stream, || {
        let [dq, dk, dv] = gradients.each_mut().map(|it| it.view_mut());
        algorithms::attention_gradients(stream, pass, AttentionGradients { dq, dk, dv }, attention)
    })?;
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
    let [dq, dk, dv] = [&gradients[0], &gradients[1], &gradients[2]].map(|it| stream.download(it));
    let (dy, log_sums) = (stream.download(&dy)?, stream.download(&log_sums)?);
    check_gradients(&Found {
        size,
        length,
        is_causal,
        inputs: [q, k, v, y, dy],
        log_sums,
        gradients: [dq?, dk?, dv?],
    })
    .map_err(|error| format!("{name}, {size}, {length}: {error}"))?;
    let causal = if is_causal { "_causal" } else { "" };
    for (what, seconds) in [("attention", seconds), ("gradients", seconds_of_gradients)] {
        println!("{{\"name\": \"{what}_{name}_{size}{causal}_{length}\", \"seconds\": {seconds}}}");
    }
    Ok(())
}

/// The median of several rounds.
fn median(stream: &Stream, mut call: impl FnMut() -> ferrogrid::Result<()>) -> Outcome<f64> {
    let calls = (ROUND.as_secs_f64() / time(stream, 1, &mut call)?).ceil().clamp(1.0, 500.0) as u32;
    let mut seconds = (0..ROUNDS).map(|_| time(stream, calls, &mut call)).collect::<Outcome<Vec<_>>>()?;
    seconds.sort_by(f64::total_cmp);
    Ok(seconds[ROUNDS / 2])
}

/// Results to check: q, k, v, y and dy, and dq, dk and dv.
struct Found<T> {
    size: usize,
    length: usize,
    is_causal: bool,
    inputs: [Vec<T>; 5],
    log_sums: Vec<f32>,
    gradients: [Vec<T>; 3],
}

/// Compares some rows of each gradient with those of the results and the sums of weights, which are rounded.
fn check_gradients<T: HalfFloat>(found: &Found<T>) -> Outcome<()> {
    let Found { size, length, is_causal, inputs: [q, k, v, y, dy], log_sums, gradients } = found;
    let of = |x: &[T], row: usize| -> Vec<f64> {
        x[row * size..][..*size].iter().map(|it| it.to_f32().into()).collect()
    };
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let scale = 1.0 / (*size as f64).sqrt();
    // The weight of a key, the gradient of the score, and what rounding errors of that are parts of.
    let pair = |query: usize, key: usize| {
        let (row, of_result) = (of(q, query), of(dy, query));
        let weight = (scale * dot(&row, &of(k, key)) - f64::from(log_sums[query])).exp();
        let (of_weight, mean) = (dot(&of_result, &of(v, key)), dot(&of_result, &of(y, query)));
        (weight, scale * weight * (of_weight - mean), scale * weight * (of_weight.abs() + 8.0))
    };
    for row in (0..8).map(|_| fastrand::usize(..log_sums.len())) {
        let (first, place) = (row / length * length, row % length);
        let keys = first..first + if *is_causal { place + 1 } else { *length };
        let queries = if *is_causal { row } else { first }..first + length;
        let mut exact = vec![[(0.0, 0.0); 3]; *size];
        let mut add = |which: usize, weight: f64, most: f64, row: Vec<f64>| {
            for (exact, x) in exact.iter_mut().zip(row) {
                exact[which].0 += weight * x;
                exact[which].1 += (most * x).abs();
            }
        };
        for key in keys {
            let (_, of_score, most) = pair(row, key);
            add(0, of_score, most, of(k, key));
        }
        for query in queries {
            let (weight, of_score, most) = pair(query, row);
            add(1, of_score, most, of(q, query));
            add(2, weight, weight, of(dy, query));
        }
        for (which, name) in ["dq", "dk", "dv"].into_iter().enumerate() {
            for (found, exact) in of(&gradients[which], row).into_iter().zip(&exact) {
                let (exact, magnitude) = exact[which];
                let most = f64::from(T::EPSILON.to_f32()) * (exact.abs() + magnitude + 1e-3);
                if (found - exact).abs() > most || found.is_nan() {
                    return Err(format!("{found} in row {row} of {name}, expected {exact}").into());
                }
            }
        }
    }
    Ok(())
}

fn main() -> Outcome<()> {
    let Ok(device) = Device::cuda(0).inspect_err(|error| println!("no GPU to measure: {error}")) else {
        return Ok(());
    };
    let stream = &device.new_stream()?;
    // With an argument only heads of that size.
    let only = std::env::args().skip(1).find_map(|argument| argument.parse::<usize>().ok());
    for size in [64, 128, 256].into_iter().filter(|size| only.is_none_or(|only| *size == only)) {
        for is_causal in [false, true] {
            for length in if size == 256 { &[8192][..] } else { &[2048, 8192, 16384] } {
                measure::<bf16>(stream, "bf16", [*length, size], is_causal)?;
                measure::<f16>(stream, "f16", [*length, size], is_causal)?;
            }
        }
    }
    Ok(())
}
