//! 4.1 two_streams: two kernels at the same time.
//!
//! Shows: streams as queues: work in one is in order, work in two may overlap.
//! Look at: the times. Each kernel is a single block, which leaves most of a GPU free: on one stream the
//! second waits for the first, on two it does not. Each stream has its own buffer: a buffer that moves to
//! another stream waits there for all work enqueued on its old stream.
//!
//! `cargo ferrogrid run two_streams`

use std::time::Duration;

use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// x[i] <- the generator's state after `steps` steps from x[i] (xorshift).
    #[kernel]
    pub fn scramble(t: Thread<1>, steps: u32, mut x: DisjointSlice<u32>) {
        if let Some(x) = x.get_mut(t.index()) {
            let mut state = *x;
            for _ in 0..steps {
                state ^= state << 13;
                state ^= state >> 17;
                state ^= state << 5;
            }
            *x = state;
        }
    }
}

/// A single block.
const ELEMENTS: usize = 256;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    let streams = [device.new_stream()?, device.new_stream()?];
    let steps = if device.is_cuda() { 200_000 } else { 10_000 };
    let seeds: Vec<u32> = (1..=ELEMENTS as u32).collect();
    let mut buffers = [streams[0].upload(&seeds)?, streams[1].upload(&seeds)?];

    // The first launch of a kernel loads it and is not measured.
    scramble_both([&streams[0], &streams[1]], 1, &mut buffers)?;
    let two = scramble_both([&streams[0], &streams[1]], steps, &mut buffers)?;
    let one = scramble_both([&streams[0], &streams[0]], steps, &mut buffers)?;

    println!("device       {}", device.name());
    println!("one stream   {:.3} ms", one.as_secs_f64() * 1e3);
    println!("two streams  {:.3} ms", two.as_secs_f64() * 1e3);
    println!("faster by    {:.2}", one.as_secs_f64() / two.as_secs_f64());

    let expected: Vec<u32> = seeds.iter().map(|&seed| scrambled(seed, 1 + 2 * steps)).collect();
    for (stream, buffer) in streams.iter().zip(&buffers) {
        if stream.download(buffer)? != expected {
            return Err("the states are wrong".into());
        }
    }
    println!("PASS");
    Ok(())
}

/// Launches once on each stream; how long it takes until both are done.
fn scramble_both(
    streams: [&Stream; 2],
    steps: u32,
    buffers: &mut [DeviceBuffer<u32>; 2],
) -> ferrogrid::Result<Duration> {
    let start = streams[0].record()?;
    streams[1].wait(&start)?;
    for (stream, buffer) in streams.into_iter().zip(buffers) {
        kernels::scramble(stream, Grid::cover(ELEMENTS), steps, buffer)?;
    }
    // The first stream continues when the second has reached this point.
    streams[0].wait_stream(streams[1])?;
    streams[0].record()?.elapsed_since(&start)
}

/// The same generator as a matrix over bits, squared and multiplied: no loop over the steps.
fn scrambled(seed: u32, mut steps: u32) -> u32 {
    let apply = |matrix: &[u32; 32], x: u32| {
        (0..32).filter(|bit| x >> bit & 1 == 1).fold(0, |sum, bit| sum ^ matrix[bit])
    };
    let mut power: [u32; 32] = std::array::from_fn(|bit| {
        let mut x = 1_u32 << bit;
        x ^= x << 13;
        x ^= x >> 17;
        x ^ (x << 5)
    });
    let mut state = seed;
    while steps > 0 {
        if steps % 2 == 1 {
            state = apply(&power, state);
        }
        power = power.map(|column| apply(&power, column));
        steps /= 2;
    }
    state
}
