//! Events: recording, waiting, timing, and refused calls.

use ferrogrid::{Device, Error, EventOptions};

use crate::runtime::{Case, Gate, Outcome};

pub(crate) const CASES: &[Case] = &[
    ("an_event_that_was_never_recorded_is_complete", an_event_that_was_never_recorded_is_complete),
    ("an_event_stands_for_its_last_record", an_event_stands_for_its_last_record),
    ("a_wait_keeps_the_earlier_record", a_wait_keeps_the_earlier_record),
    ("options_can_be_combined", options_can_be_combined),
    ("missing_times_are_errors", missing_times_are_errors),
    ("an_event_is_recorded_on_streams_of_its_device", an_event_is_recorded_on_streams_of_its_device),
    ("work_is_timed_as_often_as_asked", work_is_timed_as_often_as_asked),
];

fn an_event_that_was_never_recorded_is_complete(device: &Device) -> Outcome {
    let event = device.new_event(EventOptions::new())?;
    assert!(event.is_complete()?);
    event.synchronize()?;
    let stream = device.new_stream()?;
    stream.wait(&event)?;
    Ok(stream.synchronize()?)
}

fn an_event_stands_for_its_last_record(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let event = device.new_event(EventOptions::new())?;
    stream.record_into(&event)?;
    event.synchronize()?;
    assert!(event.is_complete()?);
    let gate = Gate::close(&stream)?;
    assert!(event.is_complete()?, "the recorded work has run");
    stream.record_into(&event)?;
    assert!(!event.is_complete()?, "it now marks the end of the gate");
    gate.open_soon();
    event.synchronize()?;
    assert!(event.is_complete()?);
    Ok(())
}

fn a_wait_keeps_the_earlier_record(device: &Device) -> Outcome {
    let (first, second) = (device.new_stream()?, device.new_stream()?);
    let event = first.record()?;
    second.wait(&event)?;
    let gate = Gate::close(&first)?;
    first.record_into(&event)?;
    let ones = second.fill(1_u8, 4)?;
    assert_eq!(second.download(&ones)?, [1; 4], "it runs with the gate closed");
    gate.open();
    Ok(first.synchronize()?)
}

fn options_can_be_combined(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let all = [
        EventOptions::new(),
        EventOptions::new().without_timing(),
        EventOptions::new().blocking_sync(),
        EventOptions::new().blocking_sync().without_timing(),
    ];
    for options in all {
        let event = device.new_event(options)?;
        let gate = Gate::close(&stream)?;
        stream.record_into(&event)?;
        gate.open_soon();
        event.synchronize()?;
        assert!(event.is_complete()?, "{options:?}");
        let has_timing = [EventOptions::new(), EventOptions::new().blocking_sync()].contains(&options);
        let now = stream.record_with(options)?;
        now.synchronize()?;
        assert_eq!(now.elapsed_since(&now).is_ok(), has_timing, "{options:?}");
    }
    Ok(())
}

fn missing_times_are_errors(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let recorded = stream.record()?;
    let reason_of = |error: ferrogrid::Result<_>| match error {
        Err(Error::EventTime { reason }) => reason,
        other => panic!("no time was expected, found {other:?}"),
    };
    let fresh = device.new_event(EventOptions::new())?;
    assert!(reason_of(fresh.elapsed_since(&recorded)).contains("not been recorded"));
    assert!(reason_of(recorded.elapsed_since(&fresh)).contains("not been recorded"));
    let untimed = device.new_event(EventOptions::new().without_timing())?;
    stream.record_into(&untimed)?;
    assert!(reason_of(untimed.elapsed_since(&recorded)).contains("timing is off"));
    assert!(reason_of(recorded.elapsed_since(&untimed)).contains("timing is off"));
    Ok(())
}

fn an_event_is_recorded_on_streams_of_its_device(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for other in Device::all().iter().filter(|other| *other != device) {
        let event = other.new_event(EventOptions::new())?;
        let error = stream.record_into(&event).unwrap_err();
        assert!(matches!(&error, Error::EventDevice { .. }), "{error}");
        assert!(error.to_string().contains(other.name()) && error.to_string().contains(device.name()));
        let there = other.new_stream()?;
        there.record_into(&event)?;
        stream.wait(&event)?;
        let error = stream.record()?.elapsed_since(&event).unwrap_err();
        assert_eq!(error, Error::EventTime { reason: "they are of different devices" });
    }
    Ok(stream.synchronize()?)
}

fn work_is_timed_as_often_as_asked(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut buffer = stream.zeros::<u32>(1000)?;
    let mut calls = 0;
    let timing = stream.time(4, |stream| {
        calls += 1;
        stream.fill_into(calls, &mut buffer)
    })?;
    assert_eq!((calls, timing.runs().len()), (5, 4), "one to warm up");
    assert!(timing.runs().is_sorted());
    let runs = timing.runs();
    assert_eq!(timing.median(), (runs[1] + runs[2]) / 2);
    assert_eq!((timing.min(), timing.max()), (runs[0], runs[3]));
    assert_eq!(stream.time(0, |_| Ok(()))?.runs().len(), 1);
    let failed = stream.time(3, |_| Err(Error::ZeroChunk));
    assert_eq!(failed.unwrap_err(), Error::ZeroChunk);
    Ok(())
}
