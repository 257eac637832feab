//! Gradients of attention, beside exact ones.

use std::thread;

use ferrogrid::algorithms::{self, Attended, Attention, AttentionGradients, AttentionPass};
use ferrogrid::device::half::{HalfFloat, bf16, f16};
use ferrogrid::prelude::*;
use ferrogrid::{DeviceAttribute, LaunchError, PitchedView, PitchedViewMut};

use super::attention_tensors::{Found, Layout, Shape, Tensor, layouts};
use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("gradients_of_attention_are_close_to_exact", gradients_of_attention_are_close_to_exact),
    ("gradients_of_unseen_rows_are_zero", gradients_of_unseen_rows_are_zero),
    ("gradients_of_attention_are_the_same_in_every_run", gradients_of_attention_are_the_same_in_every_run),
    ("gradients_that_do_not_fit_are_refused", gradients_that_do_not_fit_are_refused),
    ("gradients_of_attention_are_recorded", gradients_of_attention_are_recorded),
];

pub(super) trait Number: Attended + HalfFloat {}
impl<T: Attended + HalfFloat> Number for T {}

impl Shape {
    pub(super) const fn new(heads: [usize; 2], rows: [usize; 2], size: usize) -> Self {
        Shape { heads, rows, size }
    }

    pub(super) fn attention(self, is_causal: bool) -> Attention<'static> {
        let attention = Attention::new(self.heads[0], self.size).key_heads(self.heads[1]);
        if is_causal { attention.causal() } else { attention }
    }

    /// The elements of queries, and of keys.
    fn lengths(self) -> [usize; 2] {
        [0, 1].map(|i| self.heads[i] * self.rows[i] * self.size)
    }
}

/// q, k, v, and dy.
pub(super) type Inputs<T> = [Vec<T>; 4];

/// A number, and the sum of magnitudes that its rounding errors are parts of.
#[derive(Clone, Copy, Default)]
struct Exact {
    value: f64,
    magnitude: f64,
}

impl Exact {
    fn add(&mut self, value: f64, magnitude: f64) {
        self.value += value;
        self.magnitude += magnitude;
    }
}

fn random<T: Number>(shape: Shape, seed: u64) -> Inputs<T> {
    let ([queries, keys], mut random) = (shape.lengths(), fastrand::Rng::with_seed(seed));
    [queries, keys, keys, queries].map(|n| (0..n).map(|_| T::from_f32(random.f32() * 3.0 - 1.5)).collect())
}

/// dq, dk, dv, and the logarithms of sums, exact but for rounding of `f64`. Each head of keys has a thread.
fn exact<T: Number>(shape: Shape, is_causal: bool, inputs: &Inputs<T>) -> ([Vec<Exact>; 3], Vec<f64>) {
    let Shape { heads, rows: [queries, keys], size } = shape;
    let exact_inputs =
        inputs.each_ref().map(|x| x.iter().map(|it| f64::from(it.to_f32())).collect::<Vec<_>>());
    let [of_queries, of_keys] = shape.lengths();
    let [mut dq, mut dk, mut dv] = [of_queries, of_keys, of_keys].map(|n| vec![Exact::default(); n]);
    let mut log_sums = vec![0.0; heads[0] * queries];
    let (rows, elements) = (heads[0] / heads[1] * queries, keys * size);
    let keys_gradients = dk.chunks_mut(elements).zip(dv.chunks_mut(elements));
    let queries_results = dq.chunks_mut(rows * size).zip(log_sums.chunks_mut(rows));
    thread::scope(|scope| {
        for (head, (of_keys, of_queries)) in keys_gradients.zip(queries_results).enumerate() {
            let [q, k, v, dy] = exact_inputs.each_ref();
            let own = [
                &q[head * rows * size..],
                &k[head * elements..],
                &v[head * elements..],
                &dy[head * rows * size..],
            ];
            scope.spawn(move || exact_head(shape, is_causal, own, of_keys, of_queries));
        }
    });
    ([dq, dk, dv], log_sums)
}

/// Those of one head of keys, of inputs from there on: `[dk, dv]`, and `[dq, log_sums]`.
fn exact_head(
    Shape { rows: [queries, keys], size, .. }: Shape,
    is_causal: bool,
    [q, k, v, dy]: [&[f64]; 4],
    (dk, dv): (&mut [Exact], &mut [Exact]),
    (dq, log_sums): (&mut [Exact], &mut [f64]),
) {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let scale = 1.0 / (size as f64).sqrt();
    for (row, log_sum) in log_sums.iter_mut().enumerate() {
        let query = row % queries;
        let seen = if is_causal { (query + 1 + keys).saturating_sub(queries).min(keys) } else { keys };
        let (query, of_result) = (&q[row * size..][..size], &dy[row * size..][..size]);
        let scores: Vec<f64> = k.chunks(size).take(seen).map(|key| scale * dot(query, key)).collect();
        let greatest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = scores.iter().map(|score| (score - greatest).exp()).sum();
        *log_sum = if seen == 0 { f64::NEG_INFINITY } else { greatest + total.ln() };
        let weights: Vec<f64> = scores.iter().map(|score| (score - greatest).exp() / total).collect();
        let of_weights: Vec<f64> = v.chunks(size).take(seen).map(|value| dot(of_result, value)).collect();
        let mean = dot(&weights, &of_weights);
        // The mean is computed of results, which are rounded.
        let mut result = vec![0.0; size];
        for (weight, value) in weights.iter().zip(v.chunks(size)) {
            result.iter_mut().zip(value).for_each(|(sum, value)| *sum += weight * value);
        }
        let of_mean: f64 = of_result.iter().zip(result).map(|(of_result, y)| (of_result * y).abs()).sum();
        for (key, (weight, of_weight)) in weights.into_iter().zip(of_weights).enumerate() {
            let of_score = scale * weight * (of_weight - mean);
            let most = scale * weight * (of_weight.abs() + of_mean + mean.abs());
            for i in 0..size {
                let at = key * size + i;
                dq[row * size + i].add(of_score * k[at], most * k[at].abs());
                dk[at].add(of_score * query[i], most * query[i].abs());
                dv[at].add(weight * of_result[i], weight * of_result[i].abs());
            }
        }
    }
}

/// dq, dk, dv, and the logarithms of sums, of heads below each other.
fn computed<T: Number>(
    stream: &Stream,
    shape: Shape,
    is_causal: bool,
    inputs: &Inputs<T>,
) -> Found<([Vec<T>; 3], Vec<f32>)> {
    let attention = shape.attention(is_causal);
    let ([_, dq, dk, dv], sums) = both_passes(stream, attention, shape, Layout::Below, inputs)?;
    Ok(([dq, dk, dv], sums))
}

/// y, dq, dk, dv, and the logarithms of sums; NaN where nothing was written.
pub(super) fn both_passes<T: Number>(
    stream: &Stream,
    attention: Attention,
    shape: Shape,
    layout: Layout,
    inputs: &Inputs<T>,
) -> Found<([Vec<T>; 4], Vec<f32>)> {
    let [q, k, v, dy] = [(0, 0), (1, 1), (2, 1), (3, 0)]
        .map(|(number, which)| Tensor::of(stream, shape, which, layout, &inputs[number]));
    let (q, k, v, dy) = (q?, k?, v?, dy?);
    let [y, dq, dk, dv] = [0, 0, 1, 1].map(|which| Tensor::<T>::new(stream, shape, which, layout));
    let (mut y, mut dq, mut dk, mut dv) = (y?, dq?, dk?, dv?);
    let mut log_sums = stream.fill(f32::NAN, shape.heads[0] * shape.rows[0])?;
    let [of_q, of_k, of_v] = [q.view()?, k.view()?, v.view()?];
    algorithms::attention_with_log_sums(stream, of_q, of_k, of_v, y.view_mut()?, &mut log_sums, attention)?;
    let (of_y, sums) = (y.view()?, log_sums.view());
    let pass = AttentionPass { q: of_q, k: of_k, v: of_v, y: of_y, log_sums: sums, dy: dy.view()? };
    let gradients = AttentionGradients { dq: dq.view_mut()?, dk: dk.view_mut()?, dv: dv.view_mut()? };
    algorithms::attention_gradients(stream, pass, gradients, attention)?;
    for tensor in [&y, &dq, &dk, &dv] {
        tensor.check_between(stream)?;
    }
    let [y, dq, dk, dv] = [&y, &dq, &dk, &dv].map(|tensor| tensor.download(stream));
    Ok(([y?, dq?, dk?, dv?], stream.download(&log_sums)?))
}

fn check<T: Number>(stream: &Stream, shape: Shape, layouts: &[Layout]) -> Outcome {
    for is_causal in [false, true] {
        let inputs = random::<T>(shape, 402);
        let (expected, exact_sums) = exact(shape, is_causal, &inputs);
        for layout in layouts {
            let what = format!("{shape:?}, {layout:?}, causal {is_causal}");
            let attention = shape.attention(is_causal);
            for (order, attention) in [("one", attention), ("any", attention.any_order())] {
                let ([_, found @ ..], sums) = both_passes(stream, attention, shape, *layout, &inputs)?;
                for (name, (found, exact)) in ["dq", "dk", "dv"].into_iter().zip(found.iter().zip(&expected))
                {
                    check_gradient(&format!("{what}, {order} order, {name}"), found, exact)?;
                }
                for (row, (found, exact)) in sums.into_iter().map(f64::from).zip(&exact_sums).enumerate() {
                    let is_near = found == *exact || (found - exact).abs() < 1e-4;
                    expect(&format!("{what}, log_sums[{row}]: {found} for {exact}"), is_near, true)?;
                }
            }
        }
    }
    Ok(())
}

fn check_gradient<T: Number>(what: &str, found: &[T], exact: &[Exact]) -> Outcome {
    for (place, (found, Exact { value, magnitude })) in found.iter().zip(exact).enumerate() {
        let error = (f64::from(found.to_f32()) - value).abs();
        let is_near = error <= f64::from(T::EPSILON.to_f32()) * (magnitude + value.abs() + 1e-4);
        if !is_near {
            expect(&format!("{what}[{place}]: {found:?} for {value}, of {magnitude}"), is_near, true)?;
        }
    }
    Ok(())
}

fn gradients_of_attention_are_close_to_exact(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    // Around the tiles of 64 rows and 32 others, of 16 rows of a warp, and of 64 columns.
    let few = [
        Shape::new([1, 1], [1, 1], 8),
        Shape::new([4, 2], [33, 65], 16),
        Shape::new([1, 1], [20, 40], 72),
        Shape::new([1, 1], [17, 33], 200),
    ];
    let many = [
        Shape::new([1, 1], [64, 32], 64),
        Shape::new([3, 1], [65, 97], 64),
        Shape::new([2, 2], [31, 200], 128),
        Shape::new([2, 1], [128, 128], 64),
        Shape::new([2, 2], [256, 384], 128),
        Shape::new([4, 2], [192, 256], 120),
        Shape::new([4, 2], [384, 256], 64),
        Shape::new([8, 4], [320, 320], 128),
        Shape::new([2, 2], [300, 500], 120),
        Shape::new([4, 2], [100, 200], 256),
        Shape::new([2, 2], [256, 128], 136),
    ];
    let many = if device.is_cuda() { &many[..] } else { &many[..0] };
    let memory = device.attribute(DeviceAttribute::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
    for (number, shape) in few.iter().chain(many).enumerate() {
        if shape.size > 64 && memory < if shape.size > 128 { 132 << 10 } else { 87 << 10 } {
            let [x, y] = [(); 2].map(|()| Tensor::<f16>::new(&stream, *shape, 0, Layout::Below));
            let (x, mut y) = (x?, y?);
            let x = x.view()?;
            let found = algorithms::attention(
                &stream,
                x,
                x,
                x,
                y.view_mut()?,
                Attention::new(shape.heads[0], shape.size),
            );
            let is_shared =
                |error: &Error| matches!(error, Error::Launch(LaunchError::SharedMemoryTooLarge { .. }));
            expect_error("little shared memory", found, is_shared)?;
            continue;
        }
        // So that keys of several heads are beside each other, too.
        let batches = if shape.heads[1].is_multiple_of(4) { 2 } else { 1 };
        let layouts = layouts(device, batches, number);
        check::<f16>(&stream, *shape, &layouts)?;
        if number < 1 || device.is_cuda() {
            check::<bf16>(&stream, *shape, &layouts)?;
        }
    }
    Ok(())
}

fn gradients_of_unseen_rows_are_zero(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    // Of 40 queries the last 3 see keys, so those before have no gradient.
    let shape = Shape::new([1, 1], [40, 3], 8);
    let ([dq, ..], sums) = computed(&stream, shape, true, &random::<f16>(shape, 403))?;
    expect("queries", dq[..37 * 8].iter().all(|it| it.to_f32() == 0.0), true)?;
    expect("sums", sums[..37].iter().all(|it| *it == f32::NEG_INFINITY), true)?;
    // No keys, and no queries: then keys have no gradient.
    let shape = Shape::new([1, 1], [5, 0], 8);
    let ([dq, ..], _) = computed(&stream, shape, false, &random::<f16>(shape, 404))?;
    expect("no keys", dq, vec![f16::ZERO; 40])?;
    let shape = Shape::new([1, 1], [0, 5], 8);
    let ([_, dk, dv], _) = computed(&stream, shape, false, &random::<f16>(shape, 405))?;
    expect("no queries", [dk, dv], [(); 2].map(|()| vec![f16::ZERO; 40]))
}

fn gradients_of_attention_are_the_same_in_every_run(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (rows, size) = if device.is_cuda() { ([512, 384], 64) } else { ([20, 40], 8) };
    let shape = Shape::new([4, 2], rows, size);
    let inputs = random::<bf16>(shape, 406);
    let first = computed(&stream, shape, true, &inputs)?;
    for _ in 0..if device.is_cuda() { 20 } else { 1 } {
        expect("bits", computed(&stream, shape, true, &inputs)? == first, true)?;
    }
    Ok(())
}

/// A buffer as rows of 8 elements.
pub(super) fn rows_of_8<T: Number>(buffer: &DeviceBuffer<T>) -> ferrogrid::Result<PitchedView<'_, T>> {
    Ok(buffer.view_2d(8, buffer.len() / 8)?.into())
}

/// The same, to write.
pub(super) fn of_8<T: Number>(buffer: &mut DeviceBuffer<T>) -> ferrogrid::Result<PitchedViewMut<'_, T>> {
    let rows = buffer.len() / 8;
    Ok(buffer.view_2d_mut(8, rows)?.into())
}

fn gradients_that_do_not_fit_are_refused(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (x, few) = (stream.zeros::<f16>(96)?, stream.zeros::<f16>(88)?);
    let (sums, few_sums) = (stream.zeros::<f32>(12)?, stream.zeros::<f32>(11)?);
    let refused = |[k, v, y, dy]: [&DeviceBuffer<f16>; 4], sums: &DeviceBuffer<f32>, of, words: &[&str]| {
        let lengths: [usize; 3] = of;
        let [mut dq, mut dk, mut dv] =
            [stream.zeros(lengths[0])?, stream.zeros(lengths[1])?, stream.zeros(lengths[2])?];
        let [q, k, v, y, dy] = [&x, k, v, y, dy].map(rows_of_8);
        let pass = AttentionPass { q: q?, k: k?, v: v?, y: y?, log_sums: sums.view(), dy: dy? };
        let gradients = AttentionGradients { dq: of_8(&mut dq)?, dk: of_8(&mut dk)?, dv: of_8(&mut dv)? };
        let found = algorithms::attention_gradients(&stream, pass, gradients, Attention::new(1, 8));
        let is_other =
            |error: &Error| matches!(error, Error::ShapeMismatch { .. } | Error::LengthMismatch { .. });
        names(&expect_error("another shape", found, is_other)?, words)
    };
    let all = [96; 3];
    refused([&x, &few, &x, &x], &sums, all, &["keys and values", "12 rows of 8", "11 of 8"])?;
    refused([&x, &x, &few, &x], &sums, all, &["queries and results", "12 rows of 8", "11 of 8"])?;
    refused([&x, &x, &x, &few], &sums, all, &["results and their gradient", "12 rows of 8", "11 of 8"])?;
    refused([&x; 4], &few_sums, all, &["logarithms of sums", "12", "11"])?;
    refused([&x; 4], &sums, [88, 96, 96], &["queries and their gradient", "12 rows of 8", "11 of 8"])?;
    refused([&x; 4], &sums, [96, 88, 96], &["keys and their gradient", "12 rows of 8", "11 of 8"])?;
    refused([&x; 4], &sums, [96, 96, 88], &["values and their gradient", "12 rows of 8", "11 of 8"])?;
    let (mut y, mut few_sums, x) = (stream.zeros(96)?, few_sums, rows_of_8(&x)?);
    let (attention, y) = (Attention::new(1, 8), y.view_2d_mut(8, 12)?);
    let found = algorithms::attention_with_log_sums(&stream, x, x, x, y, &mut few_sums, attention);
    let is_length = |error: &Error| matches!(error, Error::LengthMismatch { .. });
    names(&expect_error("few sums", found, is_length)?, &["queries and logarithms of sums", "12", "11"])
}

fn gradients_of_attention_are_recorded(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let shapes = [(Attention::new(1, 8), 8, 40), (Attention::new(1, 64).any_order(), 64, 128)];
    for (attention, size, rows) in shapes {
        let len = rows * size;
        let ramp: Vec<f16> = (0..len).map(|i| f16::from_f32((i % 37) as f32 / 37.0)).collect();
        let (x, keys, sums) =
            (stream.fill(f16::ONE, len)?, stream.upload(&ramp)?, stream.zeros::<f32>(rows)?);
        let [y, dq, dv] = [stream.zeros::<f16>(len)?, stream.zeros(len)?, stream.zeros(len)?];
        let (graph, (x, dq, dv)) = stream.capture(|capture| {
            let (x, keys, mut sums) = (capture.keep(x)?, capture.keep(keys)?, capture.keep(sums)?);
            let (mut y, mut dq, mut dv) = (capture.keep(y)?, capture.keep(dq)?, capture.keep(dv)?);
            let mut dk = capture.zeros(len)?;
            let (q, k) = (x.view_2d(size, rows)?.into(), keys.view_2d(size, rows)?.into());
            let of_y = y.view_2d_mut(size, rows)?;
            algorithms::attention_with_log_sums(capture, q, k, k, of_y, &mut sums, attention)?;
            let (y, log_sums) = (y.view_2d(size, rows)?.into(), sums.view());
            let pass = AttentionPass { q, k, v: k, y, log_sums, dy: q };
            let (dq_view, dk_view) = (dq.view_2d_mut(size, rows)?.into(), dk.view_2d_mut(size, rows)?.into());
            let gradients =
                AttentionGradients { dq: dq_view, dk: dk_view, dv: dv.view_2d_mut(size, rows)?.into() };
            algorithms::attention_gradients(capture, pass, gradients, attention)?;
            Ok((x.key(), dq.key(), dv.key()))
        })?;
        let mut graph = graph.instantiate()?;
        for value in [f16::ONE, f16::from_f32(-2.0)] {
            stream.fill_into(value, graph.view_mut(x)?)?;
            graph.launch(&stream)?;
            let first = stream.download(graph.view(dq)?)?;
            graph.launch(&stream)?;
            // Nothing is left of the launch before.
            expect("queries, recorded", stream.download(graph.view(dq)?)?, first.clone())?;
            expect("queries have gradients", first.iter().any(|it| it.to_f32() != 0.0), true)?;
            // The weights of a query are 1 together, so values have the gradient of a result on average.
            let mean =
                stream.download(graph.view(dv)?)?.iter().map(|it| it.to_f32()).sum::<f32>() / len as f32;
            expect("values, recorded", (mean - value.to_f32()).abs() < 2e-2, true)?;
        }
    }
    Ok(())
}
