//! 2.2 transpose: rows become columns, in three ways.
//!
//! Shows: a tile in shared memory that is written in one order and read in the other (`Shared`, `Padded`),
//! an output whose tiles belong to blocks (`DisjointTiles`), and a const generic kernel parameter.
//! Look at: naive reads a column at a time, so that each of a warp's reads touches another line of memory.
//! The tile makes both sides go along rows. One unused element at the end of each row (`P = 1`) puts the
//! elements of a column into different banks of shared memory.
//!
//! `cargo ferrogrid run transpose`

use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// output[row][column] = input[column][row], straight from global memory.
    #[kernel]
    pub fn naive(t: Thread<2>, input: &[u32], mut output: DisjointSlice<u32, 2>) {
        let i = t.index();
        let height = output.height();
        if let Some(output) = output.get_mut(i) {
            *output = input[i.x() * height + i.y()];
        }
    }

    /// The same, through a tile in shared memory whose rows are followed by P unused elements.
    #[kernel(block = [32, 8], P = [0, 1])]
    pub fn tiled<const P: usize>(
        t: Thread<2>,
        input: &[u32],
        mut output: DisjointTiles<u32, 32, 32>,
        mut tile: Shared<Padded<u32, 32, 32, P>>,
    ) {
        // The input is as wide as the output is high.
        let (width, height) = (output.height(), output.width());
        let [first_row, first_column] = t.block_idx().map(|block| block as usize * 32);
        tile.fill_with(&t, |[i, j]| {
            let (row, column) = (first_row + i, first_column + j);
            if row < height && column < width { input[row * width + column] } else { 0 }
        });
        let tile = t.publish(tile);
        output.fill_with(&t, |[row, column]| tile[column - first_row][row - first_column]);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    let stream = device.new_stream()?;
    // The input's size: no multiple of the tile.
    let (width, height): (usize, usize) = if device.is_cuda() { (4100, 4200) } else { (301, 403) };
    let input: Vec<u32> = (0..width * height).map(|i| i as u32).collect();
    println!("device  {}", device.name());
    println!("matrix  {height} rows, {width} columns");
    println!("kernel  {:>9}  {:>8}", "ms", "GB/s");

    let device_input = stream.upload(&input)?;
    let mut output = stream.zeros::<u32>(input.len())?;
    let covering = Grid::cover([height, width]);
    // One block for each tile of the output, of 32 x 32 elements with 256 threads.
    let tiles = Grid::new([height.div_ceil(32), width.div_ceil(32)], [32, 8]);

    for kernel in ["naive", "tiled", "padded"] {
        stream.fill_into(u32::MAX, &mut output)?;
        let timing = stream.time(5, |stream| {
            let output = output.view_2d_mut(height, width)?;
            match kernel {
                "naive" => kernels::naive(stream, covering, &device_input, output),
                "tiled" => kernels::tiled::<0>(stream, tiles, &device_input, output),
                _ => kernels::tiled::<1>(stream, tiles, &device_input, output),
            }
        })?;
        let seconds = timing.median().as_secs_f64();
        let bytes = 2.0 * size_of_val(input.as_slice()) as f64;
        println!("{kernel:<6}  {:9.3}  {:8.3}", seconds * 1e3, bytes / seconds / 1e9);

        let result = stream.download(&output)?;
        for (row, column) in (0..height).flat_map(|row| (0..width).map(move |column| (row, column))) {
            if result[column * height + row] != input[row * width + column] {
                return Err(format!("{kernel}: row {row}, column {column} is wrong").into());
            }
        }
    }
    println!("PASS");
    Ok(())
}
