//! Times `algorithms::attention` and its gradients on a GPU, and checks some rows of each result. It prints one JSON line per figure, for
//! benches/python/attention.py, which times PyTorch's beside it.

#[path = "../timed.rs"]
mod timed;

use std::ops::Range;
use std::time::Duration;

use ferrogrid::device::half::{HalfFloat, bf16, f16};
use ferrogrid::prelude::*;
use ferrogrid_algorithms::{
    self as algorithms, Attended, Attention, AttentionGradients, AttentionPass, Drawn, Philox,
};
use timed::time;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Batches times length, and heads times size.
const TOKENS: usize = 16384;
const WIDTH: usize = 2048;
const ROUNDS: usize = 11;
/// What a round takes, at least.
const ROUND: Duration = Duration::from_millis(5);

/// Where heads lie: below each other, or beside each other.
#[derive(Clone, Copy)]
struct Layout {
    size: usize,
    length: usize,
    is_beside: bool,
}

impl Layout {
    /// The elements of a row of the tensors.
    fn width(self) -> usize {
        if self.is_beside { WIDTH } else { self.size }
    }

    /// Row number `row` among those of all heads.
    fn row<T: HalfFloat>(self, x: &[T], row: usize) -> Vec<f64> {
        let Layout { size, length, is_beside } = self;
        let (head, token, beside) = (row / length, row % length, WIDTH / size);
        let start = if is_beside {
            (head / beside * length + token) * WIDTH + head % beside * size
        } else {
            row * size
        };
        x[start..][..size].iter().map(|it| it.to_f32().into()).collect()
    }
}

fn measure<T: Attended + Drawn + HalfFloat>(
    stream: &Stream,
    name: &str,
    layout @ Layout { length, size, is_beside }: Layout,
    is_causal: bool,
) -> Outcome<()> {
    let heads = TOKENS / length * (WIDTH / size);
    let [width, height] = [layout.width(), TOKENS * WIDTH / layout.width()];
    let mut normal = Philox::new(fastrand::u64(..));
    let [q, k, v] =
        [stream.zeros::<T>(TOKENS * WIDTH)?, stream.zeros(TOKENS * WIDTH)?, stream.zeros(TOKENS * WIDTH)?];
    let mut factors = [q, k, v];
    for factor in &mut factors {
        normal.normal(stream, factor)?;
    }
    let [device_q, device_k, device_v] = &factors;
    let [q, k, v] = [device_q, device_k, device_v].map(|it| it.view_2d(width, height));
    let (of_q, of_k, of_v) = (q?.into(), k?.into(), v?.into());
    let mut y = stream.fill(T::NAN, TOKENS * WIDTH)?;
    let attention = Attention::new(heads, size);
    let attention = if is_causal { attention.causal() } else { attention };
    let seconds = median(stream, || {
        algorithms::attention(stream, of_q, of_k, of_v, y.view_2d_mut(width, height)?, attention)
    })?;

    let mut log_sums = stream.fill(f32::NAN, heads * length)?;
    let mut dy = stream.zeros::<T>(TOKENS * WIDTH)?;
    normal.normal(stream, &mut dy)?;
    algorithms::attention_with_log_sums(
        stream,
        of_q,
        of_k,
        of_v,
        y.view_2d_mut(width, height)?,
        &mut log_sums,
        attention,
    )?;
    let mut gradients = [
        stream.fill(T::NAN, TOKENS * WIDTH)?,
        stream.fill(T::NAN, TOKENS * WIDTH)?,
        stream.fill(T::NAN, TOKENS * WIDTH)?,
    ];
    let (of_y, of_dy) = (y.view_2d(width, height)?.into(), dy.view_2d(width, height)?.into());
    let pass = AttentionPass { q: of_q, k: of_k, v: of_v, y: of_y, log_sums: log_sums.view(), dy: of_dy };
    let [q, k, v, y] = [
        stream.download(device_q)?,
        stream.download(device_k)?,
        stream.download(device_v)?,
        stream.download(&y)?,
    ];
    for row in (0..50).map(|_| fastrand::usize(..heads * length)) {
        let (first, seen) = (row / length * length, if is_causal { row % length + 1 } else { length });
        check_query(layout, [&q, &k, &v, &y], row, first..first + seen, 0.5)
            .map_err(|error| format!("{name}: {error}"))?;
    }
    let (dy, log_sums) = (stream.download(&dy)?, stream.download(&log_sums)?);
    let mut found =
        Found { layout, is_causal, inputs: [q, k, v, y, dy], log_sums, gradients: [const { Vec::new() }; 3] };
    let mut figures = vec![("attention", seconds)];
    for (what, attention) in [("gradients", attention), ("gradients-any-order", attention.any_order())] {
        for gradient in &mut gradients {
            stream.fill_into(T::NAN, gradient)?;
        }
        let seconds = median(stream, || {
            let [dq, dk, dv] = gradients.each_mut().map(|it| it.view_2d_mut(width, height));
            let gradients = AttentionGradients { dq: dq?.into(), dk: dk?.into(), dv: dv?.into() };
            algorithms::attention_gradients(stream, pass, gradients, attention)
        })?;
        let [dq, dk, dv] = gradients.each_ref().map(|it| stream.download(it));
        found.gradients = [dq?, dk?, dv?];
        check_gradients(&found).map_err(|error| format!("{what}, {name}, {size}, {length}: {error}"))?;
        figures.push((what, seconds));
    }
    let (causal, beside) = (if is_causal { "_causal" } else { "" }, if is_beside { "_beside" } else { "" });
    for (what, seconds) in figures {
        println!("{{\"name\": \"{what}_{name}_{size}{causal}_{length}{beside}\", \"seconds\": {seconds}}}");
    }
    Ok(())
}

/// Compares the result of a query that sees these keys, with errors of so many times a rounding beyond that of the result.
fn check_query<T: HalfFloat>(
    layout: Layout,
    [q, k, v, y]: [&[T]; 4],
    query: usize,
    keys: Range<usize>,
    most: f64,
) -> Outcome<()> {
    let (own, scale) = (layout.row(q, query), 1.0 / (layout.size as f64).sqrt());
    let score = |key| scale * own.iter().zip(layout.row(k, key)).map(|(q, k)| q * k).sum::<f64>();
    let weights: Vec<f64> = keys.clone().map(|key| score(key).exp()).collect();
    let (total, mut exact) = (weights.iter().sum::<f64>(), vec![0.0; layout.size]);
    for (key, weight) in keys.zip(weights) {
        exact.iter_mut().zip(layout.row(v, key)).for_each(|(y, v)| *y += weight / total * v);
    }
    for (found, exact) in layout.row(y, query).into_iter().zip(exact) {
        let is_near = (found - exact).abs() <= f64::from(T::EPSILON.to_f32()) * (exact.abs() + most);
        if !is_near {
            return Err(format!("{found} in row {query}, expected {exact}").into());
        }
    }
    Ok(())
}

/// One query for each of 32 heads in each batch, which share 8 heads of keys: a step of a model that writes a text.
fn decode(stream: &Stream, [batches, keys]: [usize; 2]) -> Outcome<()> {
    let ([heads, key_heads], size, mut normal) =
        ([32 * batches, 8 * batches], 128, Philox::new(fastrand::u64(..)));
    let [mut q, mut k, mut v] =
        [heads, key_heads * keys, key_heads * keys].map(|rows| stream.zeros::<bf16>(rows * size));
    for factor in [&mut q, &mut k, &mut v] {
        normal.normal(stream, factor.as_mut().map_err(|error| error.clone())?)?;
    }
    let (q, k, v, mut y) = (q?, k?, v?, stream.fill(bf16::NAN, heads * size)?);
    let (of_q, of_k, of_v) =
        (q.view_2d(size, heads)?, k.view_2d(size, key_heads * keys)?, v.view_2d(size, key_heads * keys)?);
    let attention = Attention::new(heads, size).key_heads(key_heads);
    let seconds = median(stream, || {
        algorithms::attention(stream, of_q, of_k, of_v, y.view_2d_mut(size, heads)?, attention)
    })?;
    let [q, k, v, y] = [&q, &k, &v, &y].map(|it| stream.download(it));
    let (q, k, v, y) = (q?, k?, v?, y?);
    let layout = Layout { size, length: keys, is_beside: false };
    for head in (0..20).map(|_| fastrand::usize(..heads)) {
        let first = head / 4 * keys;
        // Results of slices of the keys are rounded, too.
        check_query(layout, [&q, &k, &v, &y], head, first..first + keys, 0.1)
            .map_err(|error| format!("{batches} batches of {keys} keys: {error}"))?;
    }
    println!("{{\"name\": \"decode_bf16_128_{batches}_{keys}\", \"seconds\": {seconds}}}");
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
    layout: Layout,
    is_causal: bool,
    inputs: [Vec<T>; 5],
    log_sums: Vec<f32>,
    gradients: [Vec<T>; 3],
}

/// Compares some rows of each gradient with those of the results and the sums of weights, which are rounded.
fn check_gradients<T: HalfFloat>(found: &Found<T>) -> Outcome<()> {
    let Found { layout, is_causal, inputs: [q, k, v, y, dy], log_sums, gradients } = found;
    let (Layout { size, length, .. }, of) = (layout, |x: &[T], row: usize| layout.row(x, row));
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
    // With `decode` steps of one query; with a number only heads of that size; with `beside` heads beside each other.
    if std::env::args().any(|argument| argument == "decode") {
        let shapes = [[1, 4096], [1, 32768], [1, 131_072], [16, 4096], [16, 32768], [64, 4096]];
        return shapes.into_iter().try_for_each(|shape| decode(stream, shape));
    }
    let only = std::env::args().skip(1).find_map(|argument| argument.parse::<usize>().ok());
    let is_beside = std::env::args().any(|argument| argument == "beside");
    for size in [64, 128, 256].into_iter().filter(|size| only.is_none_or(|only| *size == only)) {
        for is_causal in [false, true] {
            for length in if size == 256 { &[8192][..] } else { &[2048, 8192, 16384] } {
                let layout = Layout { size, length: *length, is_beside };
                measure::<bf16>(stream, "bf16", layout, is_causal)?;
                measure::<f16>(stream, "f16", layout, is_causal)?;
            }
        }
    }
    Ok(())
}
