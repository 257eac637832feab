//! The results of a bench, and their form as JSON. Fields keep their meaning while `schema` is 1.

use ferrogrid::Device;
use serde_json::{Value, json};

use crate::Outcome;
use crate::measure::Sample;

/// The results of a bench.
#[derive(Debug)]
pub struct Report {
    /// The name of the bench.
    pub bench: String,
    /// Whether each case ran only once, so its times mean little.
    pub quick: bool,
    /// By device.
    pub devices: Vec<DeviceReport>,
}

/// The results on a device.
#[derive(Debug)]
#[non_exhaustive]
pub struct DeviceReport {
    /// The device's name.
    pub name: String,
    /// Number of the GPU; `None` for the CPU device.
    pub ordinal: Option<usize>,
    /// Compute capability (major, minor); `None` for the CPU device.
    pub compute_capability: Option<(u32, u32)>,
    /// Multiprocessors, or the threads that the CPU device runs blocks on.
    pub multiprocessors: u32,
    /// The peak bytes per second of its memory bus, if the driver reports it.
    pub peak_memory_bandwidth: Option<u64>,
    /// The roofs of the device.
    pub roof: Roof,
    /// The cases, in order.
    pub cases: Vec<CaseReport>,
    /// The error that ended the cases early, if any.
    pub failure: Option<String>,
}

/// The roofs of a device, measured with dedicated kernels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Roof {
    /// Bytes read and written per second by a copy in its memory.
    pub bytes_per_second: f64,
    /// Operations on `f32` per second, a multiply-add counted as two.
    pub flops_per_second: f64,
}

/// A case, with all block sizes.
#[derive(Debug)]
#[non_exhaustive]
pub struct CaseReport {
    /// Its name.
    pub name: String,
    /// Bytes that a launch moves at least; 0 if unknown.
    pub bytes: u64,
    /// Floating-point operations of a launch; 0 if unknown.
    pub flops: u64,
    /// The run with the default block size, then those of a sweep.
    pub runs: Vec<RunReport>,
}

/// A case with one block size.
#[derive(Debug)]
#[non_exhaustive]
pub struct RunReport {
    /// Threads of a block; `None` for the default.
    pub threads: Option<u32>,
    pub(crate) sample: Sample,
}

impl Roof {
    /// The least seconds of a kernel that does `flops` operations and moves `bytes` bytes. `None` if both are 0.
    pub fn least_seconds(&self, bytes: u64, flops: u64) -> Option<f64> {
        let seconds = (bytes as f64 / self.bytes_per_second).max(flops as f64 / self.flops_per_second);
        (seconds > 0.0).then_some(seconds)
    }
}

impl RunReport {
    /// The median of the times of a launch, in seconds.
    pub fn seconds(&self) -> f64 {
        self.sample.median
    }
}

impl CaseReport {
    /// The fastest run.
    pub fn fastest(&self) -> Option<&RunReport> {
        self.runs.iter().min_by(|a, b| a.seconds().total_cmp(&b.seconds()))
    }

    /// Operations per byte moved; `None` unless both are known.
    pub fn intensity(&self) -> Option<f64> {
        (self.bytes > 0 && self.flops > 0).then(|| self.flops as f64 / self.bytes as f64)
    }

    /// Bytes per second of a run; `None` if the bytes are unknown.
    pub fn bandwidth(&self, run: &RunReport) -> Option<f64> {
        (self.bytes > 0).then(|| self.bytes as f64 / run.seconds())
    }

    /// Operations per second of a run; `None` if the operations are unknown.
    pub fn flop_rate(&self, run: &RunReport) -> Option<f64> {
        (self.flops > 0).then(|| self.flops as f64 / run.seconds())
    }
}

impl DeviceReport {
    pub(crate) fn new(device: &Device, roof: Roof) -> Outcome<Self> {
        let properties = device.properties()?;
        Ok(DeviceReport {
            name: device.name().to_owned(),
            ordinal: device.ordinal(),
            compute_capability: device.compute_capability(),
            multiprocessors: properties.multiprocessor_count,
            peak_memory_bandwidth: properties.peak_memory_bandwidth(),
            roof,
            cases: Vec::new(),
            failure: None,
        })
    }

    /// The fraction of the roof that a run reaches; 1 is the roof.
    pub fn of_roof(&self, case: &CaseReport, run: &RunReport) -> Option<f64> {
        Some(self.roof.least_seconds(case.bytes, case.flops)? / run.seconds())
    }

    fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "kind": if self.ordinal.is_some() { "cuda" } else { "cpu" },
            "ordinal": self.ordinal,
            "compute_capability": self.compute_capability.map(|(major, minor)| format!("{major}.{minor}")),
            "multiprocessors": self.multiprocessors,
            "peak_memory_bandwidth": self.peak_memory_bandwidth,
            "measured_bytes_per_second": self.roof.bytes_per_second,
            "measured_flops_per_second": self.roof.flops_per_second,
            "cases": self.cases.iter().map(|case| self.case_to_json(case)).collect::<Vec<_>>(),
            "failure": self.failure,
        })
    }

    fn case_to_json(&self, case: &CaseReport) -> Value {
        let run = |run: &RunReport| {
            json!({
                "threads_per_block": run.threads,
                "seconds": run.sample.median,
                "min_seconds": run.sample.min,
                "max_seconds": run.sample.max,
                "samples": run.sample.samples,
                "launches_per_sample": run.sample.launches,
                "bytes_per_second": case.bandwidth(run),
                "flops_per_second": case.flop_rate(run),
                "of_roof": self.of_roof(case, run),
            })
        };
        json!({
            "name": case.name,
            "bytes": case.bytes,
            "flops": case.flops,
            "flops_per_byte": case.intensity(),
            "runs": case.runs.iter().map(run).collect::<Vec<_>>(),
        })
    }
}

impl Report {
    /// The report as JSON; numbers are in SI units.
    pub fn to_json(&self) -> Value {
        json!({
            "schema": 1,
            "bench": self.bench,
            "quick": self.quick,
            "devices": self.devices.iter().map(DeviceReport::to_json).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A device that moves 100 bytes and does 1000 operations per second.
    pub(crate) fn device() -> DeviceReport {
        let run = |threads, median| RunReport {
            threads,
            sample: Sample { median, min: median / 2.0, max: 2.0 * median, samples: 5, launches: 3 },
        };
        let runs = vec![run(None, 4.0), run(Some(64), 8.0), run(Some(128), 2.5)];
        let of_memory = CaseReport { name: "copy".to_owned(), bytes: 200, flops: 400, runs };
        let of_arithmetic =
            CaseReport { name: "pull".to_owned(), bytes: 100, flops: 4000, runs: vec![run(None, 5.0)] };
        let untold = CaseReport { name: "other".to_owned(), bytes: 0, flops: 0, runs: vec![run(None, 1.0)] };
        DeviceReport {
            name: "A GPU".to_owned(),
            ordinal: Some(0),
            compute_capability: Some((9, 0)),
            multiprocessors: 4,
            peak_memory_bandwidth: None,
            roof: Roof { bytes_per_second: 100.0, flops_per_second: 1000.0 },
            cases: vec![of_memory, of_arithmetic, untold],
            failure: None,
        }
    }

    #[test]
    fn the_roof_is_bandwidth_or_arithmetic_whichever_takes_longer() {
        let device = device();
        let [copy, pull, untold] = &device.cases[..] else { panic!() };
        assert_eq!(device.of_roof(copy, &copy.runs[0]), Some(0.5));
        assert_eq!(device.of_roof(pull, &pull.runs[0]), Some(0.8));
        assert_eq!(device.of_roof(untold, &untold.runs[0]), None);
        assert_eq!(copy.fastest().unwrap().threads, Some(128));
        assert_eq!((copy.intensity(), untold.intensity()), (Some(2.0), None));
    }
}
