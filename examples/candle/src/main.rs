//! An operation of candle whose forward and backward passes are kernels of Ferrogrid.
//!
//! It is compared with candle's own operations, `gate.silu()? * up`, on fresh random tensors; its gradient with theirs and with finite
//! differences. Then both are timed.
//!
//! `cargo run --release --manifest-path examples/candle/Cargo.toml`, and with `--features cuda` on a GPU

mod swiglu;

use std::time::Instant;

use candle_core::{D, DType, Device, Result, Tensor, Var, bail};
use swiglu::SwiGlu;

fn main() -> Result<()> {
    // With a stream of its own, which Ferrogrid can share.
    let device = if cfg!(feature = "cuda") { Device::new_cuda_with_stream(0)? } else { Device::Cpu };
    let swiglu = SwiGlu::new(&device)?;
    println!("device  {:?}", device.location());

    // One rounding of `bf16` changes a number by 2^-8 of it at most.
    for (dtype, limit) in [(DType::F64, 1e-14), (DType::F32, 2e-6), (DType::BF16, 0.004)] {
        compare_with_candle(&swiglu, &device, dtype, limit)?;
    }
    compare_with_differences(&swiglu, &device)?;
    train(&swiglu, &device)?;
    refuse_what_it_cannot(&swiglu, &device)?;
    let (shape, rounds) = if device.is_cpu() { ((64, 14336), 5) } else { ((8192, 14336), 50) };
    for dtype in [DType::F32, DType::BF16] {
        time(&swiglu, &device, dtype, shape, rounds)?;
    }
    println!("PASS");
    Ok(())
}

type Operation<'a> = &'a dyn Fn(&Tensor, &Tensor) -> Result<Tensor>;

/// The operations of candle that the kernels replace.
fn composed(gate: &Tensor, up: &Tensor) -> Result<Tensor> {
    gate.silu()? * up
}

/// The output, and the gradients of both inputs, if that of the output is `dy`.
fn pass(swiglu: Operation, gate: &Var, up: &Var, dy: &Tensor) -> Result<[Tensor; 3]> {
    let y = swiglu(gate, up)?;
    let mut gradients = (&y * dy)?.sum_all()?.backward()?;
    let mut of = |x: &Var| gradients.remove(x).ok_or_else(|| candle_core::Error::msg("no gradient"));
    Ok([y, of(gate)?, of(up)?])
}

/// The same numbers as `f64`, in which candle's operations show how exact the kernels are.
fn exact(x: &Tensor) -> Result<Tensor> {
    x.to_dtype(DType::F64)
}

fn compare_with_candle(swiglu: &SwiGlu, device: &Device, dtype: DType, limit: f64) -> Result<()> {
    let mut largest = 0.0_f64;
    for shape in [vec![1], vec![3, 1001], vec![2, 64, 257]] {
        let random = || Tensor::randn(0.0, 2.0, shape.as_slice(), device)?.to_dtype(dtype);
        let (gate, up, dy) = (Var::from_tensor(&random()?)?, Var::from_tensor(&random()?)?, random()?);
        let fused = pass(&|gate, up| swiglu.apply(gate, up), &gate, &up, &dy)?;
        let exact_inputs = (Var::from_tensor(&exact(&gate)?)?, Var::from_tensor(&exact(&up)?)?);
        let expected = pass(&composed, &exact_inputs.0, &exact_inputs.1, &exact(&dy)?)?;
        for (fused, expected) in fused.iter().zip(&expected) {
            largest = largest.max(distance(fused, expected)?);
        }
    }
    // Views of larger tensors: columns of a matrix, which are not contiguous, and rows, which do not begin at its start.
    let x = Tensor::randn(0.0, 2.0, (64, 300), device)?.to_dtype(dtype)?;
    let columns = (x.narrow(1, 0, 150)?, x.narrow(1, 150, 150)?);
    let rows = (x.narrow(0, 1, 20)?, x.narrow(0, 33, 20)?);
    for (gate, up) in [columns, rows] {
        let expected = composed(&exact(&gate)?, &exact(&up)?)?;
        largest = largest.max(distance(&swiglu.apply(&gate, &up)?, &expected)?);
    }
    expect(&format!("{dtype:?}, from candle's"), largest, limit)
}

/// The gradients against `(f(x + h) - f(x - h)) / 2h`, in `f64`, for each element: the operation treats each for itself.
fn compare_with_differences(swiglu: &SwiGlu, device: &Device) -> Result<()> {
    let random = || Tensor::randn(0.0, 2.0, 1000, device);
    let (gate, up, dy) = (Var::from_tensor(&random()?)?, Var::from_tensor(&random()?)?, random()?);
    let [_, dgate, dup] = pass(&|gate, up| swiglu.apply(gate, up), &gate, &up, &dy)?;
    let h = 1e-5;
    let slope = |above: Tensor, below: Tensor| ((above - below)? / (2.0 * h))? * &dy;
    let (gate, up) = (gate.as_tensor(), up.as_tensor());
    let by_gate = slope(swiglu.apply(&(gate + h)?, up)?, swiglu.apply(&(gate - h)?, up)?)?;
    let by_up = slope(swiglu.apply(gate, &(up + h)?)?, swiglu.apply(gate, &(up - h)?)?)?;
    expect("gradients, from differences", distance(&dgate, &by_gate)?.max(distance(&dup, &by_up)?), 1e-7)
}

/// Steps of a network in which candle's products stand before and after the operation, without a wait: both ways reach the same weights.
fn train(swiglu: &SwiGlu, device: &Device) -> Result<()> {
    let random = |spread: f64, shape: (usize, usize)| Tensor::randn(0.0, spread, shape, device);
    let (x, target) = (random(1.0, (32, 64))?, random(1.0, (32, 64))?);
    let start = [random(0.1, (64, 128))?, random(0.1, (64, 128))?, random(0.1, (128, 64))?];
    let trained = |swiglu: Operation| {
        let weights = start.each_ref().map(|weights| Var::from_tensor(&weights.copy()?));
        let [gate, up, down] = weights;
        let weights = [gate?, up?, down?];
        for _ in 0..100 {
            let [gate, up, down] = weights.each_ref().map(Var::as_tensor);
            let y = swiglu(&x.matmul(gate)?, &x.matmul(up)?)?.matmul(down)?;
            let gradients = (y - &target)?.sqr()?.sum_all()?.backward()?;
            for weights in &weights {
                let Some(gradient) = gradients.get(weights) else { bail!("no gradient") };
                weights.set(&(weights.as_tensor() - (gradient * 1e-3)?)?)?;
            }
        }
        together(weights.each_ref().map(Var::as_tensor))
    };
    let (fused, expected) = (trained(&|gate, up| swiglu.apply(gate, up))?, trained(&composed)?);
    let way = distance(&expected, &together(start.each_ref())?)?;
    println!("100 steps change a weight by {way:.2} at most");
    expect("weights after them, from candle's", distance(&fused, &expected)?, 1e-9 * way)
}

fn together(weights: [&Tensor; 3]) -> Result<Tensor> {
    let [gate, up, down] = weights.map(|weights| weights.flatten_all());
    Tensor::cat(&[gate?, up?, down?], 0)
}

fn refuse_what_it_cannot(swiglu: &SwiGlu, device: &Device) -> Result<()> {
    let x = |shape: (usize, usize), dtype| Tensor::zeros(shape, dtype, device);
    let shapes = swiglu.apply(&x((2, 3), DType::F32)?, &x((3, 2), DType::F32)?);
    let types = swiglu.apply(&x((2, 3), DType::U8)?, &x((2, 3), DType::U8)?);
    for refused in [shapes, types] {
        match refused {
            Ok(_) => bail!("it accepts what it has no kernel for"),
            Err(error) => println!("refused: {}", error.to_string().lines().next().unwrap_or_default()),
        }
    }
    Ok(())
}

fn time(swiglu: &SwiGlu, device: &Device, dtype: DType, shape: (usize, usize), rounds: usize) -> Result<()> {
    let random = || Tensor::randn(0.0, 1.0, shape, device)?.to_dtype(dtype);
    let (gate, up, dy) = (Var::from_tensor(&random()?)?, Var::from_tensor(&random()?)?, random()?);
    let fused: Operation = &|gate, up| swiglu.apply(gate, up);
    let measured = |operation: Operation, backward: bool| -> Result<f64> {
        device.synchronize()?;
        let start = Instant::now();
        if backward {
            pass(operation, &gate, &up, &dy)?;
        } else {
            operation(&gate.as_detached_tensor(), &up.as_detached_tensor())?;
        }
        device.synchronize()?;
        Ok(start.elapsed().as_secs_f64() * 1e6)
    };
    for (name, backward) in [("forward", false), ("forward and backward", true)] {
        let mut times = [vec![], vec![]];
        // In turns, so that both see the same clock; the first round loads modules and fills pools.
        for round in 0..=rounds {
            for (times, operation) in times.iter_mut().zip([fused, &composed]) {
                let time = measured(operation, backward)?;
                times.extend((round > 0).then_some(time));
            }
        }
        let [fused, candle] = times.map(median);
        let ratio = candle / fused;
        println!(
            "{dtype:?} {shape:?}, {name}: {fused:.0} us, candle's own {candle:.0} us, {ratio:.2} times as long"
        );
    }
    Ok(())
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The largest difference, relative to numbers above 1.
fn distance(x: &Tensor, y: &Tensor) -> Result<f64> {
    let (x, y) = (x.to_dtype(DType::F64)?.flatten_all()?, y.to_dtype(DType::F64)?.flatten_all()?);
    let scale = y.abs()?.maximum(1.0)?;
    ((x - y)?.abs()? / scale)?.max(D::Minus1)?.to_scalar()
}

fn expect(what: &str, error: f64, limit: f64) -> Result<()> {
    println!("{what}: {error:.1e}");
    // So that a NaN is refused, too.
    if error <= limit { Ok(()) } else { bail!("{what}: {error} is more than {limit}") }
}
