//! Times work on a device by the device's own clock (events).

use std::time::Duration;

use ferrogrid::{Result, Stream};

/// The effort of a measurement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    /// The time of the launches of one sample.
    sample: Duration,
    /// The approximate time of all samples.
    total: Duration,
    samples: (usize, usize),
}

impl Effort {
    /// For a GPU, or for the CPU, whose times vary more; `quick` does everything once.
    pub(crate) fn new(quick: bool, is_gpu: bool) -> Self {
        if quick {
            return Effort { sample: Duration::ZERO, total: Duration::ZERO, samples: (1, 1) };
        }
        let sample = Duration::from_millis(if is_gpu { 4 } else { 20 });
        Effort { sample, total: Duration::from_millis(600), samples: (5, 21) }
    }
}

/// Times per launch, of several samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sample {
    /// The median, in seconds.
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) samples: usize,
    /// Launches in each sample.
    pub(crate) launches: u32,
}

/// Runs `work` once to warm up, then as often as `effort` says.
pub(crate) fn sample(
    stream: &Stream,
    effort: Effort,
    mut work: impl FnMut() -> Result<()>,
) -> Result<Sample> {
    // A first launch loads the kernel.
    work()?;
    stream.synchronize()?;
    let once = time(stream, 1, &mut work)?;
    let launches = (effort.sample.as_secs_f64() / once.max(1e-9)).ceil().clamp(1.0, 10_000.0) as u32;
    let (fewest, most) = effort.samples;
    let possible = effort.total.as_secs_f64() / (once * f64::from(launches)).max(1e-9);
    let samples = (possible as usize).clamp(fewest, most);
    let mut times = Vec::with_capacity(samples);
    for _ in 0..samples {
        times.push(time(stream, launches, &mut work)?);
    }
    times.sort_by(f64::total_cmp);
    Ok(Sample { median: times[samples / 2], min: times[0], max: times[samples - 1], samples, launches })
}

/// The seconds of a launch, as the mean of `launches` in a row.
fn time(stream: &Stream, launches: u32, work: &mut impl FnMut() -> Result<()>) -> Result<f64> {
    let start = stream.record()?;
    for _ in 0..launches {
        work()?;
    }
    let end = stream.record()?;
    end.synchronize()?;
    Ok(end.elapsed_since(&start)?.as_secs_f64() / f64::from(launches))
}

#[cfg(test)]
mod tests {
    use ferrogrid::Device;

    use super::*;

    #[test]
    fn a_sample_is_sorted_and_counts_its_launches() {
        let stream = Device::cpu().new_stream().unwrap();
        let mut buffer = stream.zeros::<u32>(1000).unwrap();
        let mut calls = 0;
        let effort =
            Effort { sample: Duration::from_micros(200), total: Duration::from_millis(2), samples: (3, 7) };
        let sample = sample(&stream, effort, || {
            calls += 1;
            stream.fill_into(7, &mut buffer)
        })
        .unwrap();
        assert!(0.0 < sample.min && sample.min <= sample.median && sample.median <= sample.max, "{sample:?}");
        assert!((3..=7).contains(&sample.samples), "{sample:?}");
        assert_eq!(calls, 2 + sample.samples * sample.launches as usize);
    }

    #[test]
    fn the_first_error_ends_it() {
        let stream = Device::cpu().new_stream().unwrap();
        let effort = Effort::new(true, false);
        assert!(
            sample(&stream, effort, || Err(ferrogrid::Error::InvalidDevice { ordinal: 1, count: 0 }))
                .is_err()
        );
    }
}
