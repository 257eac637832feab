//! The cost of recording and querying an event beside `cuEventRecord` and `cuEventQuery`.

use std::time::Instant;

use ferrogrid::EventOptions;
use ferrogrid::prelude::*;

use crate::Outcome;
use crate::cpp::Cpp;
use crate::turns::duel;

const BATCH: u32 = 400;
const ROUNDS: usize = 301;

pub fn events(device: &Device, cpp: &Cpp) -> Outcome<()> {
    let stream = device.new_stream()?;
    for (name, options) in [
        ("event_record", EventOptions::new()),
        ("event_record_untimed", EventOptions::new().without_timing()),
    ] {
        let event = device.new_event(options)?;
        let ours = || {
            let start = Instant::now();
            (0..BATCH).try_for_each(|_| stream.record_into(&event))?;
            let seconds = start.elapsed().as_secs_f64();
            event.synchronize()?;
            Ok(seconds)
        };
        let theirs = || {
            let seconds = cpp.records(&event, &stream, BATCH)?;
            event.synchronize()?;
            Ok(seconds)
        };
        duel(name, ROUNDS, BATCH.into(), ours, theirs)?;
    }
    let event = stream.record()?;
    event.synchronize()?;
    let ours = || {
        let start = Instant::now();
        for _ in 0..BATCH {
            if !event.is_complete()? {
                return Err("the event was complete before".into());
            }
        }
        Ok(start.elapsed().as_secs_f64())
    };
    duel("event_query", ROUNDS, BATCH.into(), ours, || cpp.queries(&event, BATCH))
}
