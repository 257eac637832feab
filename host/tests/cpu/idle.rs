//! An idle CPU device uses no processor. Alone in its process, whose processor time it reads.

#![cfg(unix)]

#[path = "../waiting/mod.rs"]
mod waiting;

use std::thread::sleep;
use std::time::Duration;

use ferrogrid_host::{Grid, Result};
use waiting::{device, enqueue, resources};

/// What this process has used of the processor so far (`clock_gettime`).
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for the call.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    assert_eq!(result, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
fn a_device_that_has_worked_uses_no_processor_when_idle() -> Result<()> {
    let streams = [device(2).new_stream()?, device(16).new_stream()?, device(1).new_stream()?];
    for stream in &streams {
        let mut out = stream.zeros::<u32>(1)?;
        for cooperative in [false, true] {
            enqueue(stream, Grid::new([50, 1, 1], [64, 1, 1]), resources(0, cooperative), &mut out, |t| {
                t.barrier();
            })?;
        }
        stream.synchronize()?;
    }
    // The last of them still look for more work for some microseconds.
    sleep(Duration::from_millis(50));
    let before = processor_time();
    sleep(Duration::from_secs(1));
    let used = processor_time() - before;
    assert!(used < Duration::from_millis(2), "{used:?} in a second");
    Ok(())
}
