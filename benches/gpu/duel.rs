//! Two kernels with the same work, alternating on one stream: first each runs on a poisoned output that is
//! checked, then both are timed.

use std::time::Duration;

use ferrogrid::prelude::*;
use ferrogrid::{DeviceCopy, ForeignFunction, ForeignModule};

use crate::Outcome;
use crate::timed::time;

/// Rounds of each side; the result is their median.
const ROUNDS: usize = 21;

/// How long the launches of one round should take together.
const ROUND: Duration = Duration::from_millis(4);

/// The device, stream and kernels of the comparisons.
pub struct Arena<'a> {
    pub stream: &'a Stream,
    /// The kernels of benches/cuda/kernels.cu.
    pub module: &'a ForeignModule,
}

impl Arena<'_> {
    /// The CUDA C++ kernel of this name.
    pub fn cpp(&self, name: &str) -> Outcome<ForeignFunction> {
        Ok(self.module.function(name)?)
    }

    /// Checks both sides' output, which starts as `initial`, by `check`, and prints the median time per
    /// launch of each.
    pub fn duel<T: DeviceCopy>(
        &self,
        name: &str,
        initial: &[T],
        mut rust: impl FnMut(&mut DeviceBuffer<T>) -> ferrogrid::Result<()>,
        mut cpp: impl FnMut(&mut DeviceBuffer<T>) -> ferrogrid::Result<()>,
        check: impl Fn(&[T]) -> Outcome<()>,
    ) -> Outcome<()> {
        let checked = |side: &str, launch: &mut dyn FnMut(&mut DeviceBuffer<T>) -> ferrogrid::Result<()>| {
            let mut output = self.stream.upload(initial)?;
            launch(&mut output)?;
            check(&self.stream.download(&output)?).map_err(|error| format!("{name}, {side}: {error}"))?;
            Outcome::Ok(output)
        };
        drop(checked("Rust", &mut rust)?);
        let mut output = checked("C++", &mut cpp)?;

        let once = self.time(1, || cpp(&mut output))?;
        let launches = (ROUND.as_secs_f64() / once).ceil().clamp(1.0, 1000.0) as u32;
        let (mut of_rust, mut of_cpp) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            if round % 2 == 0 {
                of_rust.push(self.time(launches, || rust(&mut output))?);
            }
            of_cpp.push(self.time(launches, || cpp(&mut output))?);
            if round % 2 == 1 {
                of_rust.push(self.time(launches, || rust(&mut output))?);
            }
        }
        let (rust, cpp) = (median(of_rust), median(of_cpp));
        println!(
            "{{\"name\": \"{name}\", \"rust\": {rust:.9e}, \"c++\": {cpp:.9e}, \"launches\": {launches}}}"
        );
        Ok(())
    }

    /// Seconds per launch, by the device's clock, after one launch that is not counted.
    fn time(&self, launches: u32, mut launch: impl FnMut() -> ferrogrid::Result<()>) -> Outcome<f64> {
        launch()?;
        time(self.stream, launches, launch)
    }
}

/// The median.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Numbers evenly distributed over `range`, different in each run.
pub fn random(n: usize, range: std::ops::Range<f32>) -> Vec<f32> {
    let mut random = fastrand::Rng::new();
    (0..n).map(|_| range.start + random.f32() * (range.end - range.start)).collect()
}

/// Checks that all elements are `exact`, up to an absolute `error`.
pub fn near(found: &[f32], exact: impl Fn(usize) -> f64, error: f64) -> Outcome<()> {
    (0..found.len()).try_for_each(|i| near_at(found, i, &exact, error))
}

/// Checks that 500 random elements, and the first and last, are `exact`, up to an absolute `error`.
pub fn near_sampled(found: &[f32], exact: impl Fn(usize) -> f64, error: f64) -> Outcome<()> {
    let places = (0..500).map(|_| fastrand::usize(..found.len())).chain([0, found.len() - 1]);
    places.into_iter().try_for_each(|i| near_at(found, i, &exact, error))?;
    match found.iter().position(|x| x.is_nan()) {
        Some(i) => Err(format!("element {i} was not written").into()),
        None => Ok(()),
    }
}

fn near_at(found: &[f32], i: usize, exact: &impl Fn(usize) -> f64, error: f64) -> Outcome<()> {
    let (found, exact) = (f64::from(found[i]), exact(i));
    if (found - exact).abs() <= error {
        return Ok(());
    }
    Err(format!("element {i} is {found}, not {exact}").into())
}
