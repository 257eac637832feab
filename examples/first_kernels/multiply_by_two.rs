//! 1.3 multiply_by_two: a kernel that prints what it does.
//!
//! Shows: `println!` in a kernel, with the thread's place in its block and in the grid.
//! Look at: the lines come in any order, and on a GPU only when the host waits. The second block has threads
//! that find no element and print nothing.
//!
//! `cargo ferrogrid run multiply_by_two`

use std::sync::{Arc, Mutex};

use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;
    use ferrogrid::device::println;

    /// x[i] <- 2 x[i], and a line about it.
    #[kernel]
    pub fn double(t: Thread<1>, mut x: DisjointSlice<u32>) {
        let i = t.index();
        let ([block], [thread]) = (t.block_idx(), t.thread_idx());
        if let Some(x) = x.get_mut(i) {
            let doubled = 2 * *x;
            println!("block {block}, thread {thread}: x[{}] = {}, doubled {doubled}", i.get(), *x);
            *x = doubled;
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    let stream = device.new_stream()?;
    println!("device  {}", device.name());

    // Without this, kernels print to standard output. This program also checks the lines.
    let lines = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&lines);
    device.set_output(move |text| {
        print!("  {text}");
        sink.lock().unwrap().push(text.trim_end().to_owned());
    });

    let input = [3, 1, 4, 1, 5, 9];
    let mut x = stream.upload(&input)?;
    kernels::double(&stream, Grid::cover(input.len()).with_block(4), &mut x)?;
    let result = stream.download(&x)?;

    let mut lines = lines.lock().unwrap().clone();
    lines.sort();
    let expected: Vec<String> = (0..input.len())
        .map(|i| {
            format!(
                "block {}, thread {}: x[{i}] = {}, doubled {}",
                i / 4,
                i % 4,
                input[i],
                input[i] + input[i]
            )
        })
        .collect();
    if lines != expected {
        return Err(format!("the kernel should have printed {expected:?}").into());
    }
    if result != input.map(|x| x + x) {
        return Err(format!("the result is {result:?}").into());
    }
    println!("result  {result:?}");
    println!("PASS");
    Ok(())
}
