//! Stream-ordered writes of values, and waits for them. The fake driver would run nothing meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::Duration;

use ferrogrid::{Device, Error, GraphError, StreamValue, WaitValue};

use crate::runtime::{Case, Gate, Outcome};

pub(crate) const LIVE_CASES: &[Case] = &[
    ("a_stream_waits_for_a_value_that_another_writes", a_stream_waits_for_a_value_that_another_writes),
    ("a_stream_waits_for_each_kind_of_condition", a_stream_waits_for_each_kind_of_condition),
    ("a_value_is_written_in_stream_order", a_value_is_written_in_stream_order),
    ("memory_that_cannot_hold_a_value_is_named", memory_that_cannot_hold_a_value_is_named),
    ("a_recording_takes_no_values", a_recording_takes_no_values),
];

fn a_stream_waits_for_a_value_that_another_writes(device: &Device) -> Outcome {
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let order = Arc::new(AtomicU32::new(0));
    let digit = |digit: u32| {
        let order = order.clone();
        move || _ = order.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |all| Some(all * 10 + digit))
    };
    let mut flag = device.pinned_zeros::<u32>(2)?;
    // SAFETY: the number is there until both streams have run, and nothing else uses it.
    unsafe { stream.wait_value(flag.slice(1..)?.as_device_ptr(), WaitValue::Equal(7))? };
    stream.launch_host_func(digit(2))?;
    sleep(Duration::from_millis(20));
    assert!(!stream.is_complete()?);
    other.launch_host_func(digit(1))?;
    // SAFETY: as above.
    unsafe { other.write_value(flag.slice_mut(1..)?.as_device_ptr_mut(), 7)? };
    stream.synchronize()?;
    other.synchronize()?;
    assert_eq!(order.load(Ordering::SeqCst), 12);
    assert_eq!(*flag, [0, 7], "the other number is unchanged");
    Ok(())
}

fn waits_until<V: StreamValue>(device: &Device, from: V, condition: WaitValue<V>, to: V) -> Outcome {
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let mut number = device.pinned_copy(&[from])?;
    // SAFETY: the number is there until both streams have run, and nothing else uses it.
    unsafe { stream.wait_value(number.view().as_device_ptr(), condition)? };
    sleep(Duration::from_millis(2));
    assert!(!stream.is_complete()?);
    // SAFETY: as above.
    unsafe { other.write_value(number.view_mut().as_device_ptr_mut(), to)? };
    stream.synchronize()?;
    Ok(other.synchronize()?)
}

fn a_stream_waits_for_each_kind_of_condition(device: &Device) -> Outcome {
    waits_until(device, 4_u32, WaitValue::GreaterOrEqual(5), 6)?;
    waits_until(device, u32::MAX - 1, WaitValue::GreaterOrEqual(u32::MAX), 0)?;
    waits_until(device, 1_u64 << 40, WaitValue::Equal(2 << 40), 2 << 40)?;
    waits_until(device, 1_u64 << 40, WaitValue::And(3 << 41), 1 << 41)?;
    match waits_until(device, 1_u32, WaitValue::Nor(u32::MAX - 1), 0) {
        Err(error) if matches!(error.downcast_ref(), Some(Error::Unsupported { .. })) => Ok(()),
        other => other,
    }
}

fn a_value_is_written_in_stream_order(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut number = device.pinned_zeros::<u64>(1)?;
    let gate = Gate::close(&stream)?;
    let other = device.new_stream()?;
    // SAFETY: the number is there until both streams have run, and nothing else uses it.
    unsafe {
        stream.write_value(number.view_mut().as_device_ptr_mut(), u64::MAX - 1)?;
        other.wait_value(number.view().as_device_ptr(), WaitValue::Equal(u64::MAX - 1))?;
    }
    sleep(Duration::from_millis(20));
    assert!(!other.is_complete()?);
    gate.open();
    other.synchronize()?;
    assert_eq!(*number, [u64::MAX - 1]);
    Ok(())
}

/// Driver 580 refuses a value in pool memory.
fn memory_that_cannot_hold_a_value_is_named(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut number = stream.zeros::<u32>(1)?;
    // SAFETY: the number is there until the stream has run, and nothing else uses it.
    match unsafe { stream.write_value(number.as_device_ptr_mut(), 3) } {
        Err(Error::Unsupported { reason, .. }) => assert!(reason.contains("pinned_zeros"), "{reason}"),
        written => {
            written?;
            assert_eq!(stream.download(&number)?, [3]);
        }
    }
    Ok(())
}

fn a_recording_takes_no_values(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut number = stream.zeros::<u32>(1)?;
    let (graph, ()) = stream.capture(|capture| {
        // SAFETY: nothing is enqueued.
        let refused = unsafe {
            [
                capture.write_value(number.as_device_ptr_mut(), 1),
                capture.wait_value(number.as_device_ptr(), WaitValue::Equal(1)),
            ]
        };
        for refused in refused {
            assert!(matches!(refused, Err(Error::Graph(GraphError::NotRecordable { .. }))), "{refused:?}");
        }
        Ok(())
    })?;
    assert!(graph.is_empty());
    Ok(())
}
