//! 5.8 heat: heat spreads over a plate, whose rows are shared out among several devices.
//!
//! Shows: messages of `ferrogrid::nccl`. A row at the edge of a device's part needs the next device's row. So before each step
//! neighbours send each other these rows, the halo, in one group and in stream order.
//! Look at: the plate, which has the same bits as that of one device alone.
//!
//! The devices are all GPUs, if there are several; else four CPU devices.
//!
//! `cargo ferrogrid run heat`

use std::ops::Range;

use ferrogrid::nccl::{Communicator, Group};
use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// How much of a difference between neighbours a step evens out.
    const FLOW: f32 = 0.2;

    /// next <- plate after a step. `above` and `below` are the rows beyond it; the edges on the left and the right stay cold.
    #[kernel]
    pub fn spread(
        t: Thread<2>,
        plate: &[f32],
        above: &[f32],
        below: &[f32],
        mut next: DisjointSlice<f32, 2>,
    ) {
        let i = t.index();
        let (width, height) = (next.width(), next.height());
        let Some(next) = next.get_mut(i) else { return };
        let (x, y) = (i.x(), i.y());
        let own = plate[y * width + x];
        let up = if y == 0 { above[x] } else { plate[(y - 1) * width + x] };
        let down = if y + 1 == height { below[x] } else { plate[(y + 1) * width + x] };
        let left = if x == 0 { 0.0 } else { plate[y * width + x - 1] };
        let right = if x + 1 == width { 0.0 } else { plate[y * width + x + 1] };
        *next = own + FLOW * (up + down + left + right - 4.0 * own);
    }
}

const WIDTH: usize = 96;
const HEIGHT: usize = 64;
const STEPS: usize = 200;
/// The temperature of the upper edge.
const HOT: f32 = 100.0;

/// The rows of one device, and those beyond them.
struct Part {
    stream: Stream,
    height: usize,
    plate: DeviceBuffer<f32>,
    next: DeviceBuffer<f32>,
    above: DeviceBuffer<f32>,
    below: DeviceBuffer<f32>,
}

impl Part {
    /// These rows of a cold plate. Beyond its upper edge, at row 0, it is hot.
    fn new(device: &Device, rows: Range<usize>) -> ferrogrid::Result<Self> {
        let stream = device.new_stream()?;
        Ok(Part {
            height: rows.len(),
            plate: stream.zeros(rows.len() * WIDTH)?,
            next: stream.zeros(rows.len() * WIDTH)?,
            above: stream.fill(if rows.start == 0 { HOT } else { 0.0 }, WIDTH)?,
            below: stream.zeros(WIDTH)?,
            stream,
        })
    }

    fn step(&mut self) -> ferrogrid::Result<()> {
        let Part { stream, height, plate, next, above, below } = self;
        let grid = Grid::cover([WIDTH, *height]);
        kernels::spread(stream, grid, &*plate, &*above, &*below, next.view_2d_mut(WIDTH, *height)?)?;
        std::mem::swap(plate, next);
        Ok(())
    }
}

/// Sends the first and the last row of each part to its neighbours.
fn exchange(ranks: &[Communicator], parts: &mut [Part]) -> ferrogrid::Result<()> {
    let mut halo = Group::new();
    for (rank, part) in ranks.iter().zip(parts) {
        let Part { stream, height, plate, above, below, .. } = part;
        if rank.rank() > 0 {
            halo.push(stream, rank.send(rank.rank() - 1, plate.slice(..WIDTH)?));
            halo.push(stream, rank.recv(rank.rank() - 1, above));
        }
        if rank.rank() + 1 < rank.size() {
            halo.push(stream, rank.send(rank.rank() + 1, plate.slice((*height - 1) * WIDTH..)?));
            halo.push(stream, rank.recv(rank.rank() + 1, below));
        }
    }
    halo.run()
}

/// The plate after all steps, with as many rows on each of `devices`.
fn simulate(devices: &[Device]) -> ferrogrid::Result<Vec<f32>> {
    let ranks = Communicator::all(devices)?;
    let height = HEIGHT / devices.len();
    let part = |(rank, device)| Part::new(device, rank * height..(rank + 1) * height);
    let mut parts: Vec<Part> = devices.iter().enumerate().map(part).collect::<Result<_, _>>()?;
    for _ in 0..STEPS {
        exchange(&ranks, &mut parts)?;
        parts.iter_mut().try_for_each(Part::step)?;
    }
    let rows = parts.iter().map(|part| part.stream.download(&part.plate));
    Ok(rows.collect::<Result<Vec<_>, _>>()?.concat())
}

/// Several GPUs of which each has as many rows, or four CPU devices.
fn devices() -> ferrogrid::Result<Vec<Device>> {
    let gpus = if Device::best()?.is_cuda() { Device::count() } else { 0 };
    match [8, 4, 2].into_iter().find(|&count| count <= gpus) {
        Some(count) => (0..count).map(Device::cuda).collect(),
        None => Ok(vec![Device::cpu(); 4]),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let devices = devices()?;
    let together = simulate(&devices)?;
    let alone = simulate(&devices[..1])?;
    let different = together.iter().zip(&alone).filter(|(a, b)| a != b).count();
    let column: Vec<f32> = (0..HEIGHT).step_by(12).map(|y| together[y * WIDTH + WIDTH / 2].round()).collect();

    println!("device     {}", devices[0].name());
    println!("ranks      {}", devices.len());
    println!("plate      {WIDTH} x {HEIGHT}, {STEPS} steps; down its middle {column:?}");
    println!("different  {different} elements from one device's");
    if different > 0 || column[0] <= column[1] {
        return Err("the plate is not that of one device".into());
    }
    println!("PASS");
    Ok(())
}
