//! Attention, beside a softmax of exact scores.

use ferrogrid::algorithms::{self, Attention};
use ferrogrid::device::half::{bf16, f16};
use ferrogrid::prelude::*;
use ferrogrid::{CpuOptions, DeviceAttribute, LaunchError};

use super::attention_gradients::{Number, of_8, rows_of_8};
use super::attention_tensors::{self as tensors, Found, Layout, Tensor};
use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("attention_is_close_to_exact", attention_is_close_to_exact),
    ("heads_share_keys", heads_share_keys),
    ("few_queries_see_all_slices_of_the_keys", few_queries_see_all_slices_of_the_keys),
    ("queries_without_keys_get_zeros", queries_without_keys_get_zeros),
    ("scores_of_any_size_have_finite_weights", scores_of_any_size_have_finite_weights),
    ("attention_that_does_not_fit_is_refused", attention_that_does_not_fit_is_refused),
    ("attention_is_recorded", attention_is_recorded),
];

/// Heads of queries and of keys, queries, keys, and the size of a head.
type Shape = ([usize; 2], [usize; 2], usize);

fn random<T: Number>(n: usize, greatest: f32, random: &mut fastrand::Rng) -> Vec<T> {
    (0..n).map(|_| T::from_f32((random.f32() - 0.5) * 2.0 * greatest)).collect()
}

/// The results of one head, exact but for rounding of `f64`.
fn exact<T: Number>([q, k, v]: [&[T]; 3], size: usize, is_causal: bool, scale: f64) -> Vec<f64> {
    let wide = |x: &[T]| x.iter().map(|it| f64::from(it.to_f32())).collect::<Vec<_>>();
    let (q, k, v) = (wide(q), wide(k), wide(v));
    let (queries, keys) = (q.len() / size, k.len() / size);
    let row = |i: usize, q: &[f64]| {
        let seen = if is_causal { (i + 1 + keys).saturating_sub(queries).min(keys) } else { keys };
        let score = |k: &[f64]| scale * q.iter().zip(k).map(|(q, k)| q * k).sum::<f64>();
        let scores: Vec<f64> = k.chunks(size).take(seen).map(score).collect();
        let greatest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores.iter().map(|score| (score - greatest).exp()).collect();
        let total: f64 = weights.iter().sum();
        let mut y = vec![0.0; size];
        for (v, weight) in v.chunks(size).zip(&weights) {
            y.iter_mut().zip(v).for_each(|(y, v)| *y += weight / total * v);
        }
        y
    };
    q.chunks(size).enumerate().flat_map(|(i, q)| row(i, q)).collect()
}

/// The results of inputs head by head, in a layout.
fn attend<T: Number>(
    stream: &Stream,
    attention: Attention,
    shape: tensors::Shape,
    layout: Layout,
    [q, k, v]: [&[T]; 3],
) -> Found<Vec<T>> {
    let tensor = |which, numbers| Tensor::of(stream, shape, which, layout, numbers);
    let (q, k, v, mut y) =
        (tensor(0, q)?, tensor(1, k)?, tensor(1, v)?, Tensor::new(stream, shape, 0, layout)?);
    algorithms::attention(stream, q.view()?, k.view()?, v.view()?, y.view_mut()?, attention)?;
    y.check_between(stream)?;
    Ok(y.download(stream)?)
}

/// Compares with exact results: weights and results are rounded to `T`, whose values are at most 1.
fn check<T: Number>(
    stream: &Stream,
    shape: Shape,
    greatest: f32,
    (attention, scale): (Attention, f64),
    layouts: &[Layout],
) -> Outcome {
    let ([heads, key_heads], [queries, keys], size) = shape;
    for is_causal in [false, true] {
        let mut seed = fastrand::Rng::with_seed(401);
        let q = random::<T>(heads * queries * size, greatest, &mut seed);
        let k = random::<T>(key_heads * keys * size, greatest, &mut seed);
        let v = random::<T>(key_heads * keys * size, 1.0, &mut seed);
        let attention = if is_causal { attention.causal() } else { attention };
        let shape = tensors::Shape { heads: [heads, key_heads], rows: [queries, keys], size };
        let of_head = |x: &Vec<T>, head: usize, rows: usize| x[head * rows * size..][..rows * size].to_vec();
        let exact = |head: usize| {
            let key_head = head / (heads / key_heads);
            let [q, k, v] =
                [of_head(&q, head, queries), of_head(&k, key_head, keys), of_head(&v, key_head, keys)];
            exact([&q, &k, &v], size, is_causal, scale)
        };
        let exact: Vec<f64> = (0..heads).flat_map(exact).collect();
        for layout in layouts {
            let found = attend(stream, attention, shape, *layout, [&q, &k, &v])?;
            for (place, (found, exact)) in found.iter().zip(&exact).enumerate() {
                let is_near =
                    (f64::from(found.to_f32()) - exact).abs() <= 2.0 * f64::from(T::EPSILON.to_f32());
                let what =
                    format!("{shape:?}, {layout:?}, causal {is_causal}, {place}: {found:?} for {exact}");
                expect(&what, is_near, true)?;
            }
        }
    }
    Ok(())
}

fn attention_is_close_to_exact(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    // Around the tiles of 128 queries (of 192 for up to 64 columns, unless half of the last one is empty) and 64 keys, of 32 queries of a warp,
    // and of 64 columns; half as many for more than 128 columns.
    let few = [
        ([1, 1], [1, 1], 8),
        ([2, 2], [33, 65], 64),
        ([1, 1], [129, 128], 72),
        ([1, 1], [70, 200], 128),
        ([1, 1], [65, 33], 136),
        ([2, 1], [17, 40], 256),
    ];
    let many = [
        ([3, 3], [31, 63], 40),
        ([2, 2], [128, 64], 128),
        ([2, 2], [300, 300], 64),
        ([1, 1], [257, 1000], 128),
        ([2, 2], [500, 77], 96),
        ([3, 3], [300, 256], 64),
        ([2, 1], [200, 256], 64),
        ([2, 2], [1, 1024], 128),
        ([3, 1], [200, 300], 256),
        ([1, 1], [300, 128], 192),
        ([2, 1], [300, 192], 256),
        ([1, 1], [700, 640], 136),
        ([1, 1], [129, 256], 248),
        ([2, 2], [700, 640], 120),
        ([1, 1], [513, 1280], 40),
        // More tiles than an H100 has multiprocessors.
        ([140, 70], [70, 128], 64),
        ([70, 10], [130, 128], 128),
    ];
    // Without optimisations a CPU takes a second for each of these.
    let many = if device.is_cuda() { &many[..] } else { &many[..1] };
    let memory = device.attribute(DeviceAttribute::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
    for (number, shape) in few.iter().chain(many).enumerate() {
        let attention = Attention::new(shape.0[0], shape.2).key_heads(shape.0[1]);
        let scale = 1.0 / (shape.2 as f64).sqrt();
        if shape.2 > 64 && memory < 87 << 10 {
            let (x, mut y) = (stream.zeros::<f16>(shape.2)?, stream.zeros(shape.2)?);
            let (x, y) = (x.view_2d(shape.2, 1)?, y.view_2d_mut(shape.2, 1)?);
            let found = algorithms::attention(&stream, x, x, x, y, Attention::new(1, shape.2));
            let is_shared =
                |error: &Error| matches!(error, Error::Launch(LaunchError::SharedMemoryTooLarge { .. }));
            expect_error("little shared memory", found, is_shared)?;
            continue;
        }
        let layouts = tensors::layouts(device, 1, number);
        check::<f16>(&stream, *shape, 2.0, (attention, scale), &layouts)?;
        if number < 2 || device.is_cuda() {
            check::<bf16>(&stream, *shape, 2.0, (attention, scale), &layouts)?;
        }
    }
    Ok(())
}

fn heads_share_keys(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let attention = Attention::new(6, 16).key_heads(2).scale(0.7);
    for (batches, number) in [(1, 0), (1, 1), (2, 1), (2, 2)] {
        let layouts = tensors::layouts(device, batches, number);
        check::<f16>(&stream, ([6, 2], [5, 20], 16), 1.0, (attention, 0.7_f32.into()), &layouts)?;
    }
    Ok(())
}

/// Blocks share the keys of few queries, if a device has the multiprocessors.
fn few_queries_see_all_slices_of_the_keys(device: &Device) -> Outcome {
    let of_many = Device::cpu_with(CpuOptions::new().workers(16))?;
    let (stream, is_gpu) =
        if device.is_cuda() { (device.new_stream()?, true) } else { (of_many.new_stream()?, false) };
    let few = [([4, 2], [1, 600], 16), ([1, 1], [3, 530], 40), ([2, 1], [5, 600], 8)];
    let many = [
        ([8, 1], [1, 5000], 64),
        ([8, 8], [1, 4096], 128),
        ([12, 4], [1, 3001], 128),
        ([16, 2], [1, 1024], 256),
        ([2, 2], [200, 2048], 64),
        ([1, 1], [7, 40_000], 136),
    ];
    for (number, shape) in few.iter().chain(if is_gpu { &many[..] } else { &[] }).enumerate() {
        let ([heads, key_heads], _, size) = *shape;
        let attention = Attention::new(heads, size).key_heads(key_heads);
        let batches = if key_heads.is_multiple_of(2) { 2 } else { 1 };
        let layouts = tensors::layouts(device, batches, number);
        check::<f16>(&stream, *shape, 2.0, (attention, 1.0 / (size as f64).sqrt()), &layouts)?;
    }
    // With the logarithms of sums, and the mask: the first of 40 queries sees keys 0 to 560.
    let (keys, mut log_sums) = (600, stream.fill(f32::NAN, 40)?);
    let (q, k) = (stream.zeros::<f16>(40 * 8)?, stream.zeros::<f16>(keys * 8)?);
    let (k, mut y) = (k.view_2d(8, keys)?, stream.fill(f16::NAN, 40 * 8)?);
    let (q, to, attention) = (q.view_2d(8, 40)?, y.view_2d_mut(8, 40)?, Attention::new(1, 8).causal());
    algorithms::attention_with_log_sums(&stream, q, k, k, to, &mut log_sums, attention)?;
    expect("zeros", stream.download(&y)?, vec![f16::ZERO; 40 * 8])?;
    for (query, sum) in stream.download(&log_sums)?.into_iter().enumerate() {
        let exact = ((keys - 39 + query) as f32).ln();
        expect(&format!("sum {query}: {sum} for {exact}"), (sum - exact).abs() < 1e-4, true)?;
    }
    Ok(())
}

/// Attention of rows of 8 elements.
fn attend_8<T: Number>(
    stream: &Stream,
    [q, k, v]: [&DeviceBuffer<T>; 3],
    y: &mut DeviceBuffer<T>,
    attention: Attention,
) -> ferrogrid::Result<()> {
    algorithms::attention(stream, rows_of_8(q)?, rows_of_8(k)?, rows_of_8(v)?, of_8(y)?, attention)
}

fn queries_without_keys_get_zeros(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (q, none) = (stream.fill(f16::ONE, 40 * 8)?, stream.zeros::<f16>(0)?);
    let mut y = stream.fill(f16::NAN, 40 * 8)?;
    attend_8(&stream, [&q, &none, &none], &mut y, Attention::new(1, 8))?;
    expect("no keys", stream.download(&y)?, vec![f16::ZERO; 40 * 8])?;
    let mut nothing = stream.zeros::<f16>(0)?;
    attend_8(&stream, [&none, &q, &q], &mut nothing, Attention::new(1, 8))?;
    attend_8(&stream, [&none, &none, &none], &mut nothing, Attention::new(0, 8).key_heads(1))?;
    // Of 40 queries the last 3 see keys.
    let v = stream.fill(f16::ONE, 3 * 8)?;
    attend_8(&stream, [&q, &v, &v], &mut y, Attention::new(1, 8).causal())?;
    let expected: Vec<f16> = (0..40 * 8).map(|i| if i < 37 * 8 { f16::ZERO } else { f16::ONE }).collect();
    expect("few keys", stream.download(&y)?, expected)
}

fn scores_of_any_size_have_finite_weights(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    // Scores go beyond the powers of 2 that an `f32` holds, in either direction, and each key exceeds all before.
    for sign in [1.0, -1.0] {
        let keys: Vec<bf16> = (0..150 * 8).map(|i| bf16::from_f32(sign * (i / 8) as f32)).collect();
        let (q, k) = (stream.fill(bf16::from_f32(100.0), 8)?, stream.upload(&keys)?);
        let v = stream.upload(&(0..150 * 8).map(|i| bf16::from_f32((i / 8) as f32)).collect::<Vec<_>>())?;
        let mut y = stream.fill(bf16::NAN, 8)?;
        attend_8(&stream, [&q, &k, &v], &mut y, Attention::new(1, 8))?;
        let best = if sign > 0.0 { 149.0 } else { 0.0 };
        expect("the best key", stream.download(&y)?, vec![bf16::from_f32(best); 8])?;
    }
    // NaN stays in its row.
    let mut rows = vec![bf16::ONE; 3 * 8];
    rows[8] = bf16::NAN;
    let (q, ones, mut y) = (stream.upload(&rows)?, stream.fill(bf16::ONE, 70 * 8)?, stream.zeros(3 * 8)?);
    attend_8(&stream, [&q, &ones, &ones], &mut y, Attention::new(1, 8))?;
    let are_nan: Vec<bool> = stream.download(&y)?.iter().map(|y| y.is_nan()).collect();
    expect("rows of NaN", are_nan, (0..24).map(|i| i / 8 == 1).collect())
}

fn attention_that_does_not_fit_is_refused(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let x = stream.zeros::<f16>(96)?;
    let is_argument = |error: &Error| matches!(error, Error::Argument { function: "attention", .. });
    let refused = |attention, words: &[&str]| {
        let mut y = stream.zeros(96)?;
        let found = attend_8(&stream, [&x, &x, &x], &mut y, attention);
        names(&expect_error("a wrong argument", found, is_argument)?, words)
    };
    refused(Attention::new(1, 12), &["size of a head", "12", "multiple of 8"])?;
    refused(Attention::new(1, 0), &["size of a head", "0"])?;
    refused(Attention::new(1, 264), &["size of a head", "264", "256"])?;
    refused(Attention::new(6, 8).key_heads(4), &["heads of keys", "4 for 6"])?;
    refused(Attention::new(6, 8).key_heads(0), &["heads of keys", "0 for 6"])?;
    refused(Attention::new(5, 8), &["the queries", "12 rows of 8 elements for 5 heads of size 8"])?;
    refused(Attention::new(1, 8).scale(0.0), &["scale", "0"])?;
    refused(Attention::new(1, 8).scale(f32::NAN), &["scale", "NaN"])?;
    let is_shape = |error: &Error| matches!(error, Error::ShapeMismatch { from: [8, 12], to: [8, 11], .. });
    let mut few = stream.zeros(88)?;
    let found = attend_8(&stream, [&x, &x, &x], &mut few, Attention::new(1, 8));
    names(&expect_error("few results", found, is_shape)?, &["queries and results"])?;
    let mut y = stream.zeros(96)?;
    let found = attend_8(&stream, [&x, &x, &few], &mut y, Attention::new(1, 8));
    names(&expect_error("few values", found, is_shape)?, &["keys and values"])?;
    // Heads beside each other, and rows that begin anywhere.
    let of_rows = |width, pitch| x.view().pitched(width, 3, pitch);
    for (width, pitch, heads, words) in [
        (20, 20, 5, ["the queries", "3 rows of 20 elements for 5 heads"]),
        (24, 24, 4, ["the queries", "3 rows of 24 elements for 4 heads"]),
        (8, 12, 1, ["the pitch of the queries", "12 elements"]),
    ] {
        let (rows, y) = (of_rows(width, pitch)?, y.view_mut().pitched(width, 3, 32)?);
        let found = algorithms::attention(&stream, rows, rows, rows, y, Attention::new(heads, 8));
        names(&expect_error("rows", found, is_argument)?, &words)?;
    }
    Ok(())
}

fn attention_is_recorded(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (x, y) = (stream.zeros::<f16>(40 * 8)?, stream.zeros::<f16>(40 * 8)?);
    let (graph, (x, y)) = stream.capture(|capture| {
        let (x, mut y) = (capture.keep(x)?, capture.keep(y)?);
        let x_rows = x.view_2d(8, 40)?;
        let attention = Attention::new(1, 8).causal();
        algorithms::attention(capture, x_rows, x_rows, x_rows, y.view_2d_mut(8, 40)?, attention)?;
        Ok((x.key(), y.key()))
    })?;
    let mut graph = graph.instantiate()?;
    for value in [f16::ONE, f16::from_f32(-2.0)] {
        stream.fill_into(value, graph.view_mut(x)?)?;
        graph.launch(&stream)?;
        expect("recorded", stream.download(graph.view(y)?)?, vec![value; 40 * 8])?;
    }
    Ok(())
}
