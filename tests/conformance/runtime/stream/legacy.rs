//! The legacy default stream, and streams that synchronise with it.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ferrogrid::{Device, Stream, StreamOptions};

use crate::runtime::{Case, Gate, Outcome};

pub(crate) const CASES: &[Case] = &[
    ("the_legacy_stream_and_ordered_streams_wait_for_each_other", they_wait_for_each_other),
    ("ordinary_streams_do_not_wait_for_the_legacy_stream", ordinary_streams_do_not_wait),
    ("buffers_are_ordered_on_the_legacy_stream", buffers_are_ordered_on_the_legacy_stream),
    ("handles_are_equal_if_their_stream_is_one", handles_are_equal_if_their_stream_is_one),
];

/// Whether work on `second` waits for earlier work on `first`.
fn waits(first: &Stream, second: &Stream) -> Result<bool, Box<dyn std::error::Error>> {
    let (ended, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let gate = Gate::close(first)?;
    let end = ended.clone();
    first.launch_host_func(move || end.store(true, Ordering::SeqCst))?;
    let see = seen.clone();
    second.launch_host_func(move || see.store(ended.load(Ordering::SeqCst), Ordering::SeqCst))?;
    gate.open_soon();
    second.synchronize()?;
    first.synchronize()?;
    Ok(seen.load(Ordering::SeqCst))
}

fn they_wait_for_each_other(device: &Device) -> Outcome {
    let legacy = device.legacy_stream()?;
    let ordered = device.new_stream_with(StreamOptions::new().ordered_with_legacy())?;
    assert!(waits(&ordered, &legacy)?, "the legacy stream waits for an ordered one");
    assert!(waits(&legacy, &ordered)?, "an ordered stream waits for the legacy one");
    assert!(waits(&legacy, &*device.per_thread_stream()?)?, "a thread's default stream is ordered");
    Ok(())
}

fn ordinary_streams_do_not_wait(device: &Device) -> Outcome {
    let (legacy, ordinary) = (device.legacy_stream()?, device.new_stream()?);
    let gate = Gate::close(&legacy)?;
    let _ones = ordinary.fill(1_u32, 1000)?;
    ordinary.synchronize()?; // with the gate closed
    gate.open();
    Ok(legacy.synchronize()?)
}

fn buffers_are_ordered_on_the_legacy_stream(device: &Device) -> Outcome {
    let (legacy, other) = (device.legacy_stream()?, device.new_stream()?);
    let mut buffer = legacy.zeros::<u32>(10_000)?;
    for round in 1..20 {
        other.fill_into(round, &mut buffer)?;
        assert_eq!(legacy.download(&legacy.duplicate(&buffer)?)?, vec![round; 10_000]);
    }
    drop(legacy);
    assert_eq!(other.download(&buffer)?, vec![19; 10_000]);
    Ok(())
}

fn handles_are_equal_if_their_stream_is_one(device: &Device) -> Outcome {
    let legacy = [device.legacy_stream()?, device.legacy_stream()?];
    let ordered = device.new_stream_with(StreamOptions::new().ordered_with_legacy())?;
    let (per_thread, ordinary) = (device.per_thread_stream()?, device.new_stream()?);
    let streams = [&legacy[0], &legacy[1], &ordered, &per_thread, &ordinary];
    assert_eq!(streams.into_iter().collect::<HashSet<_>>().len(), 4);
    assert_eq!(legacy[0], legacy[1]);
    assert_eq!(per_thread, device.per_thread_stream()?);
    for stream in streams {
        assert_eq!(stream.is_nonblocking()?, stream == &ordinary, "{stream:?}");
    }
    Ok(())
}
