//! Random work with deliberate failures for a given time, on several devices at once in one process;
//! afterwards memory use must be the same as before.
//!
//! `FERROGRID_SOAK_SECONDS` sets the duration (default 2), `FERROGRID_STRESS_SEED` the sequence of
//! operations. The result is a line of JSON.

use std::time::{Duration, Instant};

use ferrogrid::{Device, Result};

use super::failures::Failing;
use super::{Common, Failure, Launch, Until, number};
use crate::runtime::Outcome;

/// The loss of free memory that is allowed after hours: the driver keeps some for itself.
const DRIVERS_OWN: u64 = 64 << 20;

/// Steps after which a device has made its one-time allocations.
const WARM_UP: usize = 300;

/// Bytes that buffers use, that the pool holds, and that a GPU has free.
struct Memory {
    used: u64,
    reserved: u64,
    free: Option<u64>,
}

impl Memory {
    fn of(device: &Device) -> Result<Self> {
        // The failures of dropped streams are reported here, one at each call. Memory kept for finished work
        // is then released; the second wait is for its memory to be freed.
        while device.synchronize().is_err() {}
        device.synchronize()?;
        device.memory_pool().trim(0)?;
        let statistics = device.memory_pool().statistics()?;
        let free = if device.is_cuda() { device.memory_info()?.map(|memory| memory.free) } else { None };
        Ok(Memory { used: statistics.used, reserved: statistics.reserved, free })
    }

    fn is_as(&self, before: &Memory) -> bool {
        let free = |memory: &Memory| memory.free.unwrap_or(0);
        (self.used, self.reserved) == (before.used, before.reserved)
            && free(self).saturating_add(DRIVERS_OWN) >= free(before)
    }

    fn json(&self) -> String {
        let Memory { used, reserved, free } = self;
        let free = free.map_or("null".to_owned(), |free| free.to_string());
        format!("{{\"used\":{used},\"reserved\":{reserved},\"free\":{free}}}")
    }
}

/// The result of a device.
struct Report {
    json: String,
    wrong: Vec<String>,
}

/// Random work on all of `devices` at once. Returns the line of JSON, and whether all checks passed.
pub(crate) fn soak(
    devices: &[&Device],
    launch: Launch,
    failing: Failing,
) -> std::result::Result<(String, Outcome), Box<dyn std::error::Error>> {
    let seconds = number("FERROGRID_SOAK_SECONDS").unwrap_or(2);
    let seed = number("FERROGRID_STRESS_SEED").unwrap_or_else(|| fastrand::u64(..));
    eprintln!("FERROGRID_SOAK_SECONDS={seconds} FERROGRID_STRESS_SEED={seed}");
    let mut before = Vec::new();
    for device in devices {
        let common = Common::new(device, Some(launch), Some(failing)).map_err(|error| error.to_string())?;
        common.work(seed, Until::Steps(WARM_UP)).into_iter().collect::<std::result::Result<Vec<_>, _>>()?;
        common.end().map_err(|error| error.to_string())?;
        drop(common);
        before.push(Memory::of(device)?);
    }
    let end = Instant::now() + Duration::from_secs(seconds);
    let reports = std::thread::scope(|scope| {
        let work =
            |(device, before)| scope.spawn(move || of_device(device, launch, failing, seed, end, before));
        let running: Vec<_> = devices.iter().copied().zip(before).map(work).collect();
        running.into_iter().map(|run| run.join().expect("no soak panics")).collect::<Vec<_>>()
    });
    let reports = reports.into_iter().collect::<std::result::Result<Vec<_>, _>>();
    let reports = reports.map_err(|error| error.to_string())?;
    let lines: Vec<&str> = reports.iter().map(|report| report.json.as_str()).collect();
    let line = format!("{{\"soak_seconds\":{seconds},\"seed\":{seed},\"devices\":[{}]}}", lines.join(","));
    let wrong: Vec<&str> = reports.iter().flat_map(|report| &report.wrong).map(String::as_str).collect();
    let failed = || Err(format!("seed {seed}: {}", wrong.join("; ")).into());
    Ok((line, if wrong.is_empty() { Ok(()) } else { failed() }))
}

fn of_device(
    device: &Device,
    launch: Launch,
    failing: Failing,
    seed: u64,
    end: Instant,
    before: Memory,
) -> std::result::Result<Report, Failure> {
    let common = Common::new(device, Some(launch), Some(failing))?;
    let (mut operations, mut wrong) = (0, Vec::new());
    for result in common.work(seed, Until::Time(end)) {
        match result {
            Ok(steps) => operations += steps,
            Err(error) => wrong.push(error),
        }
    }
    let results_wrong = wrong.len();
    wrong.extend(common.end().err().map(|error| error.to_string()));
    let (made, told, in_doubt, launches) = {
        let counts = common.made.counts();
        (counts.made, counts.told.len(), counts.in_doubt, counts.launches)
    };
    drop(common);
    let after = Memory::of(device)?;
    if made as usize != told {
        wrong.push(format!("{made} failures were made, and {told} told"));
    }
    if !after.is_as(&before) {
        wrong.push(format!("memory was {}, and is {}", before.json(), after.json()));
    }
    let name = device.name();
    let json = format!(
        "{{\"device\":\"{name}\",\"operations\":{operations},\"launches\":{launches},\"failures_made\":{made},\
         \"failures_reported\":{told},\"buffers_in_doubt\":{in_doubt},\"wrong_results\":{results_wrong},\
         \"memory_before\":{},\"memory_after\":{}}}",
        before.json(),
        after.json()
    );
    Ok(Report { json, wrong })
}
