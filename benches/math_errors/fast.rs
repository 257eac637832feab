//! The hardware's approximations, as parts of their documented bounds.

use ferrogrid::prelude::*;

use crate::kernels::{approximations as kernels, functions};
use crate::report::Line;
use crate::single::{grid, worst};
use crate::{Effort, Outcome};

/// The largest part of its bound that the error of each approximation is.
pub fn measure(device: &Device, effort: Effort) -> Outcome<Vec<Line>> {
    // On the CPU they are the accurate functions, whose errors are measured anyway.
    if !device.is_cuda() {
        return Ok(Vec::new());
    }
    let stream = device.new_stream()?;
    let mut lines = Vec::new();
    for (function, name) in kernels::NAMES.iter().enumerate() {
        let of_two = ["fast_powf", "fast_div"].contains(name);
        let (count, step) = if of_two {
            (effort.random as u64, 1)
        } else {
            ((1_u64 << 32).div_ceil(u64::from(effort.step)), effort.step)
        };
        let [(error, at), _] = worst(&stream, |words| {
            for_function!(function, kernels::errors[0 1 2 3 4 5 6 7 8 9 10 11]
                (&stream, grid(device), count, step, words.as_atomic()));
            Ok(())
        })?;
        let place = if of_two {
            let [x, y] = functions::pair(at);
            format!("{x:e} and {y:e}")
        } else {
            format!("{:e}", f32::from_bits(at))
        };
        lines.push(Line::new(device, "instruction", "f32", name, count, error, "of its bound", place));
    }
    Ok(lines)
}
