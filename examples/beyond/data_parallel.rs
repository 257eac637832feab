//! 5.7 data_parallel: a network trained on several devices, each with a part of the samples.
//!
//! Shows: `ferrogrid::nccl`. Each device is a rank with the same weights; after each pass over its samples, the ranks
//! add their gradients by an all-reduce, in stream order and in one group. Look at: the weights, which stay the same on all
//! ranks, and are close to those of one device that has all samples.
//!
//! The ranks are all GPUs, if there are several; else four CPU devices.
//!
//! `cargo ferrogrid run data_parallel`

use ferrogrid::nccl::{Communicator, Group, ReduceOp};
use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// One hidden layer of 16 units: weights of x, of y, biases, and weights of the output, 16 each.
    pub const HIDDEN: usize = 16;

    /// What the network makes of (x, y), and the hidden value of unit `unit`.
    fn forward(w: &[f32], x: f32, y: f32, unit: usize) -> (f32, f32) {
        let (mut output, mut hidden) = (0.0, 0.0);
        for i in 0..HIDDEN {
            let value = (w[i] * x + w[HIDDEN + i] * y + w[2 * HIDDEN + i]).tanh();
            output += w[3 * HIDDEN + i] * value;
            if i == unit {
                hidden = value;
            }
        }
        (output, hidden)
    }

    /// The derivative of the sum of squared errors by each weight, one per thread, over all samples (x, y, target).
    #[kernel]
    pub fn gradient(t: Thread<1>, samples: &[[f32; 3]], w: &[f32], mut gradient: DisjointSlice<f32>) {
        let i = t.index();
        let Some(gradient) = gradient.get_mut(i) else { return };
        let (role, unit) = (i.get() / HIDDEN, i.get() % HIDDEN);
        let mut sum = 0.0;
        for &[x, y, target] in samples {
            let (output, hidden) = forward(w, x, y, unit);
            let error = 2.0 * (output - target);
            let inner = error * w[3 * HIDDEN + unit] * (1.0 - hidden * hidden);
            sum += match role {
                0 => inner * x,
                1 => inner * y,
                2 => inner,
                _ => error * hidden,
            };
        }
        *gradient = sum;
    }

    /// w <- w - rate * gradient.
    #[kernel]
    pub fn descend(t: Thread<1>, rate: f32, gradient: &[f32], mut w: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(w) = w.get_mut(i) {
            *w -= rate * gradient[i.get()];
        }
    }
}

const WEIGHTS: usize = 4 * kernels::HIDDEN;

/// A rank: its stream, its samples, and its copy of the network.
struct Replica {
    stream: Stream,
    samples: DeviceBuffer<[f32; 3]>,
    weights: DeviceBuffer<f32>,
    gradient: DeviceBuffer<f32>,
}

impl Replica {
    fn new(device: &Device, samples: &[[f32; 3]], weights: &[f32]) -> ferrogrid::Result<Self> {
        let stream = device.new_stream()?;
        let (samples, weights) = (stream.upload(samples)?, stream.upload(weights)?);
        Ok(Replica { gradient: stream.zeros(WEIGHTS)?, stream, samples, weights })
    }
}

/// Trains on all `devices`, and returns the weights of each.
fn train(devices: &[Device], samples: &[[f32; 3]], steps: usize) -> ferrogrid::Result<Vec<Vec<f32>>> {
    let ranks = Communicator::all(devices)?;
    let mut random = fastrand::Rng::with_seed(7);
    let weights: Vec<f32> = (0..WEIGHTS).map(|_| random.f32() - 0.5).collect();
    let share = samples.len() / devices.len();
    let replica = |(device, samples): (&Device, &[[f32; 3]])| Replica::new(device, samples, &weights);
    let mut replicas: Vec<Replica> =
        devices.iter().zip(samples.chunks_exact(share)).map(replica).collect::<Result<_, _>>()?;
    let rate = 0.1 / samples.len() as f32;
    for _ in 0..steps {
        for Replica { stream, samples, weights, gradient } in &mut replicas {
            kernels::gradient(stream, Grid::cover(WEIGHTS), &*samples, &*weights, gradient)?;
        }
        let mut sum = Group::new();
        for (rank, Replica { stream, gradient, .. }) in ranks.iter().zip(&mut replicas) {
            sum.push(stream, rank.all_reduce_in_place(ReduceOp::Sum, gradient));
        }
        sum.run()?;
        for Replica { stream, weights, gradient, .. } in &mut replicas {
            kernels::descend(stream, Grid::cover(WEIGHTS), rate, &*gradient, weights)?;
        }
    }
    replicas.iter().map(|replica| replica.stream.download(&replica.weights)).collect()
}

/// Whether to use GPUs: not if the environment asks for the CPU.
fn devices() -> ferrogrid::Result<Vec<Device>> {
    let gpus = if Device::best()?.is_cuda() { Device::count() } else { 0 };
    // Each has as many samples.
    let count = [8, 4, 2].into_iter().find(|&count| count <= gpus);
    (0..count.unwrap_or(4))
        .map(|rank| if count.is_some() { Device::cuda(rank) } else { Ok(Device::cpu()) })
        .collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let devices = devices()?;
    let mut random = fastrand::Rng::with_seed(42);
    let samples: Vec<[f32; 3]> = (0..256)
        .map(|_| [2.0 * random.f32() - 1.0, 2.0 * random.f32() - 1.0])
        .map(|[x, y]| [x, y, x * y])
        .collect();
    let steps = 100;
    let together = train(&devices, &samples, steps)?;
    let alone = train(&devices[..1], &samples, steps)?.remove(0);
    let difference = together[0].iter().zip(&alone).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);

    println!("device      {}", devices[0].name());
    println!("ranks       {}", devices.len());
    println!("steps       {steps}");
    println!("difference  {difference:.2e}, the greatest of a weight, from training on one device");
    if together.iter().any(|weights| *weights != together[0]) || difference > 1e-4 {
        return Err("the ranks have other weights than one device".into());
    }
    println!("PASS");
    Ok(())
}
