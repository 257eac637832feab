//! Times training steps of a network of dense layers on one GPU and on two, each with as many samples as the one: work per GPU is fixed.
//! The gradients of a layer are one bucket, which the ranks add while the backward pass goes on. Weights are checked against those of one
//! device that has all samples. It prints one JSON line for each number of samples, for benches/nccl.py.
//!
//! `FERROGRID_DEVICE=cpu` runs the check alone, on two CPU devices, with small layers.

#[path = "../quartiles.rs"]
mod quartiles;

use std::sync::Barrier;
use std::time::{Duration, Instant};

use ferrogrid::StreamOptions;
use ferrogrid::device::half::bf16;
use ferrogrid::prelude::*;
use ferrogrid_algorithms::{self as algorithms, Gemm, Philox};
use ferrogrid_nccl::{Communicator, CommunicatorOptions, ReduceOp, UniqueId};

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::half::{HalfFloat, bf16};
    use ferrogrid::device::prelude::*;

    #[elementwise]
    pub fn relu(y: &mut bf16) {
        if *y < bf16::ZERO {
            *y = bf16::ZERO;
        }
    }

    /// No gradient passes where `relu` has given 0.
    #[elementwise]
    pub fn mask(y: &bf16, delta: &mut bf16) {
        if *y == bf16::ZERO {
            *delta = bf16::ZERO;
        }
    }

    /// The derivative of half the squared error.
    #[elementwise]
    pub fn error(scale: f32, y: &bf16, target: &bf16, delta: &mut bf16) {
        *delta = bf16::from_f32(scale * (f32::from(*y) - f32::from(*target)));
    }

    /// Weights are kept as `f32`, and rounded for the products.
    #[elementwise]
    pub fn descend(rate: f32, gradient: &bf16, exact: &mut f32, rounded: &mut bf16) {
        *exact -= rate * f32::from(*gradient);
        *rounded = bf16::from_f32(*exact);
    }

    #[elementwise]
    pub fn initial(scale: f32, normal: &bf16, exact: &mut f32, rounded: &mut bf16) {
        *exact = scale * f32::from(*normal);
        *rounded = bf16::from_f32(*exact);
    }
}

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Layers of as many inputs as outputs, and samples of a rank.
#[derive(Clone, Copy)]
struct Shape {
    layers: usize,
    width: usize,
    samples: usize,
}

/// Work grows with the samples, what is exchanged does not.
const OF_GPUS: [Shape; 3] = [of_gpus(8192), of_gpus(16384), of_gpus(32768)];
const OF_CPUS: [Shape; 1] = [Shape { layers: 3, width: 32, samples: 16 }];

const fn of_gpus(samples: usize) -> Shape {
    Shape { layers: 8, width: 4096, samples }
}

const RANKS: usize = 2;

const ROUNDS: usize = 9;

/// Steps of a round: some 100 ms of an H100.
const fn steps(samples: usize) -> usize {
    1 + (10 << 13) / samples
}

/// Steps before weights are compared.
const CHECKED_STEPS: u32 = 3;

/// Far above what a rank waits for another one.
const TIMEOUT: Duration = Duration::from_secs(60);

struct Layer {
    exact: DeviceBuffer<f32>,
    weights: DeviceBuffer<bf16>,
    gradient: DeviceBuffer<bf16>,
    outputs: DeviceBuffer<bf16>,
}

/// The network on one device, with its samples.
struct Replica {
    compute: Stream,
    /// Adds gradients and changes weights, while `compute` has the next layer.
    exchange: Stream,
    shape: Shape,
    /// One over the number of samples of all ranks.
    scale: f32,
    inputs: DeviceBuffer<bf16>,
    targets: DeviceBuffer<bf16>,
    layers: Vec<Layer>,
    /// The gradients by a layer's outputs, and by those of the one before.
    deltas: [DeviceBuffer<bf16>; 2],
}

/// How the steps of a round run.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    /// On rank 0, while the other does nothing.
    Alone,
    /// On all ranks, which exchange nothing.
    Apart,
    Together,
}

impl Replica {
    /// A replica with the samples of these ranks.
    fn new(device: &Device, shape: Shape, ranks: &[usize]) -> Outcome<Self> {
        let (_, urgent) = device.stream_priority_range()?;
        let compute = device.new_stream()?;
        let exchange = device.new_stream_with(StreamOptions::new().with_priority(urgent))?;
        let Shape { width, samples, .. } = shape;
        let total = samples * ranks.len();
        let [mut inputs, mut targets] = [compute.zeros(total * width)?, compute.zeros(total * width)?];
        for (place, &rank) in ranks.iter().enumerate() {
            let part = place * samples * width..(place + 1) * samples * width;
            let mut normal = Philox::new(100 + rank as u64);
            normal.normal(&compute, inputs.slice_mut(part.clone())?)?;
            normal.normal(&compute, targets.slice_mut(part)?)?;
        }
        let mut normal = Philox::new(7);
        let layers = (0..shape.layers)
            .map(|_| Layer::new(&compute, &mut normal, total, width))
            .collect::<Outcome<_>>();
        Ok(Replica {
            shape: Shape { samples: total, ..shape },
            scale: 1.0 / (RANKS * samples) as f32,
            inputs,
            targets,
            layers: layers?,
            deltas: [compute.zeros(total * width)?, compute.zeros(total * width)?],
            compute,
            exchange,
        })
    }

    /// One step, which adds gradients among the ranks of a communicator.
    fn step(&mut self, rank: Option<&Communicator>) -> ferrogrid::Result<()> {
        self.forward()?;
        let outputs = &self.layers[self.shape.layers - 1].outputs;
        kernels::error(&self.compute, self.scale, outputs, &self.targets, &mut self.deltas[0])?;
        for layer in (0..self.shape.layers).rev() {
            self.backward(layer)?;
            self.descend(layer, rank)?;
        }
        Ok(())
    }

    /// outputs <- relu(inputs * weights), layer by layer.
    fn forward(&mut self) -> ferrogrid::Result<()> {
        let Shape { width, samples, .. } = self.shape;
        for layer in 0..self.shape.layers {
            let (before, rest) = self.layers.split_at_mut(layer);
            let inputs = before.last().map_or(&self.inputs, |layer| &layer.outputs);
            let Layer { weights, outputs, .. } = &mut rest[0];
            let product = Gemm::new(
                inputs.view_2d(width, samples)?,
                weights.view_2d(width, width)?,
                outputs.view_2d_mut(width, samples)?,
            );
            algorithms::gemm(&self.compute, product)?;
            kernels::relu(&self.compute, outputs)?;
        }
        Ok(())
    }

    /// gradient <- inputs^T * delta, and the delta of the layer before: delta * weights^T.
    fn backward(&mut self, layer: usize) -> ferrogrid::Result<()> {
        let Shape { width, samples, .. } = self.shape;
        let (before, rest) = self.layers.split_at_mut(layer);
        let inputs = before.last().map_or(&self.inputs, |layer| &layer.outputs);
        let Layer { weights, gradient, outputs, .. } = &mut rest[0];
        let [delta, next] = &mut self.deltas;
        kernels::mask(&self.compute, &*outputs, &mut *delta)?;
        let of_weights = Gemm::new(
            inputs.view_2d(width, samples)?,
            delta.view_2d(width, samples)?,
            gradient.view_2d_mut(width, width)?,
        );
        algorithms::gemm(&self.compute, of_weights.transpose_a())?;
        if layer > 0 {
            let of_inputs = Gemm::new(
                delta.view_2d(width, samples)?,
                weights.view_2d(width, width)?,
                next.view_2d_mut(width, samples)?,
            );
            algorithms::gemm(&self.compute, of_inputs.transpose_b())?;
            self.deltas.swap(0, 1);
        }
        Ok(())
    }

    /// Adds the gradient of a layer among ranks, and changes its weights. The buffers order both after the products that come before.
    fn descend(&mut self, layer: usize, rank: Option<&Communicator>) -> ferrogrid::Result<()> {
        let rate = 0.1 / self.shape.width as f32;
        let Layer { exact, weights, gradient, .. } = &mut self.layers[layer];
        if let Some(rank) = rank {
            rank.all_reduce_in_place(ReduceOp::Sum, &mut *gradient).enqueue(&self.exchange)?;
        }
        kernels::descend(&self.exchange, rate, &*gradient, exact, weights)
    }

    /// The weights of all layers.
    fn weights(&self) -> Outcome<Vec<f32>> {
        let layers = self.layers.iter().map(|layer| self.compute.download(&layer.exact));
        Ok(layers.collect::<ferrogrid::Result<Vec<_>>>()?.concat())
    }

    /// Half the squared error of the last step's first samples.
    fn loss(&self) -> Outcome<f64> {
        let outputs = &self.layers[self.shape.layers - 1].outputs;
        let part = ..self.shape.width * self.shape.samples.min(64);
        let [found, expected] = [outputs, &self.targets].map(|it| it.slice(part));
        let [found, expected] = [self.compute.download(found?)?, self.compute.download(expected?)?];
        let square = |(found, expected): (&bf16, &bf16)| (found.to_f64() - expected.to_f64()).powi(2) / 2.0;
        Ok(found.iter().zip(&expected).map(square).sum::<f64>())
    }

    /// Seconds of a step, of a round in which this device takes part or not; all ranks begin together.
    fn round(&mut self, rank: &Communicator, mode: Mode, barrier: &Barrier) -> Outcome<f64> {
        let (takes_part, exchanges) =
            (mode != Mode::Alone || rank.rank() == 0, (mode == Mode::Together).then_some(rank));
        barrier.wait();
        let start = Instant::now();
        let steps = steps(self.shape.samples);
        if takes_part {
            for _ in 0..steps {
                self.step(exchanges)?;
            }
            self.compute.synchronize()?;
            self.exchange.synchronize()?;
        }
        barrier.wait();
        Ok(start.elapsed().as_secs_f64() / steps as f64)
    }
}

impl Layer {
    /// The same weights on each device.
    fn new(stream: &Stream, normal: &mut Philox, samples: usize, width: usize) -> Outcome<Self> {
        let mut drawn = stream.zeros::<bf16>(width * width)?;
        normal.normal(stream, &mut drawn)?;
        let (mut exact, mut weights) = (stream.zeros(width * width)?, stream.zeros(width * width)?);
        kernels::initial(stream, (2.0 / width as f32).sqrt(), &drawn, &mut exact, &mut weights)?;
        Ok(Layer { exact, weights, gradient: drawn, outputs: stream.zeros(samples * width)? })
    }
}

/// Compares the weights of ranks after some steps with those of one device that has the samples of all.
fn check(device: &Device, shape: Shape, found: &[Vec<f32>]) -> Outcome<()> {
    let mut all = Replica::new(device, shape, &[0, 1])?;
    let initial = all.weights()?;
    let losses = (0..CHECKED_STEPS)
        .map(|_| {
            all.step(None)?;
            all.loss()
        })
        .collect::<Outcome<Vec<f64>>>()?;
    let expected = all.weights()?;
    let norm =
        |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>().sqrt();
    let difference = norm(&found[0], &expected) / norm(&initial, &expected);
    println!("{{\"name\": \"check\", \"difference\": {difference:.3e}, \"losses\": {losses:.2?}}}");
    if found.iter().any(|weights| weights.iter().zip(&found[0]).any(|(a, b)| a != b)) {
        return Err("the ranks have different weights".into());
    }
    // Gradients are rounded to 8 bits: twice, where ranks add theirs.
    if difference.is_nan() || difference > 0.02 {
        return Err(format!("the weights differ by {difference:.3} of how far they have moved").into());
    }
    if losses.windows(2).any(|pair| pair[1] >= pair[0]) {
        return Err(format!("the loss does not fall: {losses:?}").into());
    }
    Ok(())
}

/// The weights of a rank after the checked steps, from the start.
fn train(rank: &Communicator, shape: Shape) -> Outcome<Vec<f32>> {
    let mut replica = Replica::new(rank.device(), shape, &[rank.rank()])?;
    for _ in 0..CHECKED_STEPS {
        replica.step(Some(rank))?;
    }
    replica.weights()
}

/// The quartiles of a step's seconds, in each mode.
fn measure(rank: &Communicator, shape: Shape, barrier: &Barrier) -> Outcome<[[f64; 3]; 3]> {
    let mut replica = Replica::new(rank.device(), shape, &[rank.rank()])?;
    let mut seconds = [const { Vec::new() }; 3];
    for round in 0..=ROUNDS {
        for (mode, seconds) in [Mode::Alone, Mode::Apart, Mode::Together].into_iter().zip(&mut seconds) {
            let measured = replica.round(rank, mode, barrier)?;
            // The first round warms up.
            if round > 0 {
                seconds.push(measured);
            }
        }
    }
    Ok(seconds.map(quartiles::quartiles))
}

/// What one rank does: the checked steps with the first shape, and measurements on a GPU, which rank 0 prints.
fn run(rank: &Communicator, shapes: &[Shape], barrier: &Barrier) -> Outcome<Vec<f32>> {
    let weights = train(rank, shapes[0])?;
    for &shape in shapes.iter().filter(|_| rank.device().is_cuda()) {
        let [alone, apart, together] = measure(rank, shape, barrier)?.map(quartiles::list);
        if rank.rank() == 0 {
            let of_modes = format!("\"alone\": {alone}, \"apart\": {apart}, \"together\": {together}");
            println!("{{\"name\": \"training\", \"samples\": {}, {of_modes}}}", shape.samples);
        }
    }
    Ok(weights)
}

/// Two GPUs, or if the environment asks for them two CPU devices.
fn devices() -> Outcome<Option<(Vec<Device>, &'static [Shape])>> {
    if !Device::best()?.is_cuda() {
        return Ok(Some((vec![Device::cpu(); RANKS], &OF_CPUS)));
    }
    if Device::count() < RANKS {
        println!("training needs {RANKS} GPUs");
        return Ok(None);
    }
    Ok(Some(((0..RANKS).map(Device::cuda).collect::<Result<_, _>>()?, &OF_GPUS)))
}

fn main() -> Outcome<()> {
    let Some((devices, shapes)) = devices()? else { return Ok(()) };
    let (id, barrier) = (UniqueId::new(&devices[0])?, Barrier::new(RANKS));
    let rank_of = |rank: usize| {
        let options = CommunicatorOptions::new().with_timeout(TIMEOUT);
        let communicator = Communicator::new_with(&devices[rank], &id, rank, RANKS, options)?;
        run(&communicator, shapes, &barrier)
    };
    let weights_of = |rank: usize| {
        rank_of(rank).unwrap_or_else(|error| {
            eprintln!("rank {rank}: {error}");
            // The other one waits for this one.
            std::process::exit(1)
        })
    };
    let (first, second) = std::thread::scope(|scope| {
        let second = scope.spawn(|| weights_of(1));
        (weights_of(0), second.join().expect("no panic"))
    });
    check(&devices[0], shapes[0], &[first, second])
}
