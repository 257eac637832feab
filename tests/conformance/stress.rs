//! Random work of many threads, with launches of a kernel in it. It must not know what else is done.

use ferrogrid::prelude::*;

use super::runtime::stress::{LENGTH, random_work};
use super::stress_kernels::stress;
use super::{Case, Outcome};

pub(crate) const CASES: &[Case] =
    &[("random_launches_of_many_threads_equal_the_model", random_launches_equal_the_model)];

fn random_launches_equal_the_model(device: &Device) -> Outcome {
    let launch = |stream: &Stream, x: &DeviceBuffer<u32>, y: &mut DeviceBuffer<u32>, factor: u32| {
        stress::mix(stream, Grid::cover(LENGTH), factor, x, y)
    };
    random_work(device, Some(launch))
}
