//! 4.3 stream_dependencies: one stream becomes two and one again, without the host waiting.
//!
//! Shows: `fork` and `join`, `record` and `wait`, and host functions in the order of a stream (`launch_host_func`).
//! Look at: the kernels need none of it. Buffers record which stream used them last, so launches that share a
//! buffer are ordered. Host functions use no buffers: the program states their order.
//!
//! `cargo ferrogrid run stream_dependencies`

use std::sync::{Arc, Mutex};

use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// y[i] = x[i]^2.
    #[kernel]
    pub fn square(t: Thread<1>, x: &[i64], mut y: DisjointSlice<i64>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y = x[i.get()] * x[i.get()];
        }
    }

    /// y[i] = the sum of the whole numbers from 1 to x[i].
    #[kernel]
    pub fn triangle(t: Thread<1>, x: &[i64], mut y: DisjointSlice<i64>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y = 0;
            for k in 1..=x[i.get()] {
                *y += k;
            }
        }
    }

    /// z[i] = 2 y[i] - x[i].
    #[kernel]
    pub fn combine(t: Thread<1>, x: &[i64], y: &[i64], mut z: DisjointSlice<i64>) {
        let i = t.index();
        if let Some(z) = z.get_mut(i) {
            *z = 2 * y[i.get()] - x[i.get()];
        }
    }
}

/// The events, in order.
type Diary = Arc<Mutex<Vec<&'static str>>>;

/// Records `text` once all work enqueued on `stream` so far has run.
fn note(stream: &Stream, diary: &Diary, text: &'static str) -> ferrogrid::Result<()> {
    let diary = Arc::clone(diary);
    stream.launch_host_func(move || diary.lock().unwrap().push(text))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    let stream = device.new_stream()?;
    let diary = Diary::default();
    let n: usize = if device.is_cuda() { 1 << 20 } else { 1 << 14 };
    let input: Vec<i64> = (0..n as i64).map(|i| i % 100).collect();
    let grid = Grid::cover(n);

    let x = stream.upload(&input)?;
    let (mut squares, mut triangles) = (stream.zeros::<i64>(n)?, stream.zeros::<i64>(n)?);
    let mut result = stream.zeros::<i64>(n)?;
    note(&stream, &diary, "start")?;

    // Two streams that start after all work of the first one.
    let (left, right) = (stream.fork()?, stream.fork()?);
    kernels::square(&left, grid, &x, &mut squares)?;
    note(&left, &diary, "squares")?;
    kernels::triangle(&right, grid, &x, &mut triangles)?;
    note(&right, &diary, "triangles")?;

    // The first one continues after both; an event marks a single point of a stream in the same way.
    stream.join([&left])?;
    let triangles_done = right.record()?;
    stream.wait(&triangles_done)?;
    note(&stream, &diary, "joined")?;
    kernels::combine(&stream, grid, &squares, &triangles, &mut result)?;
    note(&stream, &diary, "combined")?;

    // The first and only place where the host waits.
    let result = stream.download(&result)?;
    let diary = diary.lock().unwrap().clone();
    println!("device    {}", device.name());
    println!("elements  {n}");
    println!("order     {}", diary.join(", "));
    let left_first = ["start", "squares", "triangles", "joined", "combined"];
    let right_first = ["start", "triangles", "squares", "joined", "combined"];
    if diary != left_first && diary != right_first {
        return Err("the order is wrong".into());
    }
    // 2 (1 + 2 + ... + x) = x^2 + x.
    if result != input {
        return Err("the result is wrong".into());
    }
    println!("PASS");
    Ok(())
}
