//! 4.5 graph: two kernels, recorded once and replayed a hundred times.
//!
//! Shows: `capture` with ordinary launches, a graph that holds its buffers, replay, and the same work by
//! single launches.
//! Look at: the time per step. A launch costs the host some microseconds; a graph pays that once for all
//! its nodes, which counts where kernels are short.
//!
//! `cargo ferrogrid run graph [ELEMENTS]` (2^12 by default)

use std::time::Instant;

use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// v <- v - step * x: the spring pulls back.
    #[kernel]
    pub fn pull(t: Thread<1>, step: f32, x: &[f32], mut v: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(v) = v.get_mut(i) {
            *v -= step * x[i.get()];
        }
    }

    /// x <- x + step * v: the mass moves.
    #[kernel]
    pub fn drift(t: Thread<1>, step: f32, v: &[f32], mut x: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(x) = x.get_mut(i) {
            *x += step * v[i.get()];
        }
    }
}

const STEPS: usize = 100;
const STEP: f32 = 0.01;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let n = match std::env::args().nth(1) {
        Some(text) => text.parse().map_err(|error| format!("ELEMENTS is a number, not {text:?}: {error}"))?,
        None => 1_usize << 12,
    };
    let start: Vec<f32> = (0..n).map(|index| index as f32 / n as f32).collect();
    let device = Device::best()?;
    let stream = device.new_stream()?;

    let (mut x, mut v) = (stream.upload(&start)?, stream.zeros::<f32>(n)?);
    let (graph, (x_key, v_key)) = stream.capture(|capture| {
        let (mut x, mut v) = (capture.write(&mut x)?, capture.write(&mut v)?);
        kernels::pull(capture, Grid::cover(n), STEP, &x, &mut v)?;
        kernels::drift(capture, Grid::cover(n), STEP, &v, &mut x)?;
        Ok((x.key(), v.key()))
    })?;
    print!("{}", graph.to_dot());
    let mut graph = graph.instantiate()?;
    graph.upload(&stream)?;
    graph.launch(&stream)?; // the first may load code
    stream.upload_into(&start, graph.view_mut(x_key)?)?;
    stream.fill_into(0.0, graph.view_mut(v_key)?)?;
    stream.synchronize()?;

    let clock = Instant::now();
    for _ in 0..STEPS {
        graph.launch(&stream)?;
    }
    stream.synchronize()?;
    let replayed = clock.elapsed();
    let by_graph = stream.download(graph.view(x_key)?)?;

    let (mut x, mut v) = (stream.upload(&start)?, stream.zeros::<f32>(n)?);
    stream.synchronize()?;
    let clock = Instant::now();
    for _ in 0..STEPS {
        kernels::pull(&stream, Grid::cover(n), STEP, &x, &mut v)?;
        kernels::drift(&stream, Grid::cover(n), STEP, &v, &mut x)?;
    }
    stream.synchronize()?;
    let launched = clock.elapsed();
    let by_launches = stream.download(&x)?;

    println!("device    {}", device.name());
    println!("elements  {n}, {STEPS} steps of 2 kernels");
    println!("graph     {:.2} us per step", replayed.as_secs_f64() * 1e6 / STEPS as f64);
    println!("launches  {:.2} us per step", launched.as_secs_f64() * 1e6 / STEPS as f64);
    if by_graph != by_launches {
        return Err("the graph and the launches disagree".into());
    }
    // After time 1 a mass on a spring is at cos(1) of where it started; the method's error is of the order of
    // one step.
    let error = start.iter().zip(&by_graph).map(|(start, x)| (start * 1.0_f32.cos() - x).abs());
    let error = error.fold(0.0_f32, f32::max);
    println!("max error {error:.2e}");
    if error > STEP {
        return Err(format!("the result is wrong: error {error:e}").into());
    }
    println!("PASS");
    Ok(())
}
