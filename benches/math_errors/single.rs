//! Functions of `f32`: all arguments or every n-th, compared on the device itself.

use ferrogrid::prelude::*;

use crate::kernels::functions as kernels;
use crate::report::{self, Line};
use crate::{Effort, Outcome};

/// A launch that uses a GPU fully, and a CPU without waste.
pub fn grid(device: &Device) -> Grid<1> {
    if device.is_cuda() { Grid::new(132 * 16, 128) } else { Grid::new(256, 64) }
}

/// The two largest errors, and the words below them.
pub fn worst(
    stream: &Stream,
    launch: impl FnOnce(&mut DeviceBuffer<u64>) -> Outcome<()>,
) -> Outcome<[(f64, u32); 2]> {
    let mut words = stream.zeros::<u64>(2)?;
    launch(&mut words)?;
    let words = stream.download(&words)?;
    Ok([0, 1].map(|own| (f64::from(f32::from_bits((words[own] >> 32) as u32)), words[own] as u32)))
}

/// The errors of all functions of one and of two `f32`s.
pub fn measure(device: &Device, effort: Effort) -> Outcome<Vec<Line>> {
    let stream = device.new_stream()?;
    let mut lines = Vec::new();
    let count = (1_u64 << 32).div_ceil(u64::from(effort.step));
    for (function, name) in kernels::ONE.iter().enumerate() {
        let found = worst(&stream, |words| {
            for_function!(function, of one kernels::errors_of_one(&stream, grid(device), count, effort.step, words.as_atomic()));
            Ok(())
        })?;
        let place = |bits: u32| format!("{:e}", f32::from_bits(bits));
        lines.extend(report::pair(
            device,
            "f32",
            name,
            count,
            found.map(|(error, bits)| (error, place(bits))),
        ));
    }
    for (function, name) in kernels::TWO.iter().enumerate() {
        let count = effort.random as u64;
        let found = worst(&stream, |words| {
            for_function!(function, kernels::errors_of_two[0 1 2 3](&stream, grid(device), count, words.as_atomic()));
            Ok(())
        })?;
        let place = |number: u32| {
            let [x, y] = kernels::pair(number);
            format!("{x:e} and {y:e}")
        };
        lines.extend(report::pair(
            device,
            "f32",
            name,
            count,
            found.map(|(error, number)| (error, place(number))),
        ));
    }
    Ok(lines)
}
