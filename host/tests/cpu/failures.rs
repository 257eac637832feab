//! Reports of kernel failures on the CPU device, and errors for reads of the output of failed kernels.

#[path = "../kernels/mod.rs"]
mod kernels;

use std::fmt::Debug;

use ferrogrid_host::{CpuOptions, Device, DeviceBuffer, Error, Grid, Result, Stream};
use kernels::{mix, slow_increment, unlucky};

/// Has `unlucky` fail on a fresh buffer, at element `at`, which its message names.
fn broken(stream: &Stream, at: usize) -> Result<DeviceBuffer<u32>> {
    let mut values = [0_u32; 8];
    values[at] = 13;
    let mut buffer = stream.upload(&values)?;
    unlucky(stream, Grid::cover(8), &mut buffer)?;
    Ok(buffer)
}

/// Which element `unlucky` failed at.
#[track_caller]
fn failed_at<T: Debug>(result: Result<T>) -> usize {
    match result {
        Err(Error::KernelPanic { message, .. }) => message.split(' ').nth(1).unwrap().parse().unwrap(),
        other => panic!("no failure of a kernel: {other:?}"),
    }
}

#[test]
fn a_waiter_takes_the_failure_of_its_own_work_and_no_later_one() -> Result<()> {
    let stream = Device::cpu().new_stream()?;
    let x = broken(&stream, 1)?;
    let transfer = stream.download_async(&x, stream.device().pinned_zeros::<u32>(8)?)?;
    assert_eq!(failed_at(stream.synchronize()), 1);
    let y = broken(&stream, 2)?;
    stream.record()?.synchronize()?; // it has run
    assert_eq!(failed_at(transfer.wait()), 1);
    assert_eq!(failed_at(stream.synchronize()), 2);
    stream.synchronize()?;
    assert_eq!(failed_at(stream.download(&y)), 2);
    assert_eq!(failed_at(stream.download(&x)), 1);
    Ok(())
}

#[test]
fn a_future_of_a_stream_leaves_later_failures_to_other_waits() -> Result<()> {
    let stream = Device::cpu().new_stream()?;
    let _x = broken(&stream, 1)?;
    let first = stream.completed()?;
    let _y = broken(&stream, 2)?;
    stream.record()?.synchronize()?;
    assert_eq!(failed_at(pollster::block_on(first)), 1);
    assert_eq!(failed_at(stream.synchronize()), 2);
    Ok(())
}

#[test]
fn a_failure_is_reported_once_by_its_stream_and_once_by_the_device() -> Result<()> {
    let device = Device::cpu_with(CpuOptions::new())?;
    let (stream, short) = (device.new_stream()?, device.new_stream()?);
    let z = broken(&short, 3)?;
    drop(short);
    let unrelated = stream.zeros::<u32>(1)?;
    // Every read of its output is an error.
    for _ in 0..2 {
        assert_eq!(failed_at(stream.download(&z)), 3);
        assert_eq!(failed_at(device.new_stream()?.download(&z)), 3);
    }
    drop(z); // and with it the last of the stream
    assert_eq!(failed_at(device.synchronize()), 3);
    device.synchronize()?;
    stream.synchronize()?;
    assert_eq!(stream.download(&unrelated)?, [0]);

    let _live = broken(&stream, 4)?;
    assert_eq!(failed_at(device.synchronize()), 4);
    device.synchronize()?;
    assert_eq!(failed_at(stream.synchronize()), 4);
    stream.synchronize()
}

#[test]
fn the_device_waits_for_dropped_streams_and_reports_each_of_their_failures() -> Result<()> {
    let device = Device::cpu_with(CpuOptions::new().workers(1))?;
    for at in [5, 6] {
        let stream = device.new_stream()?;
        let mut slow = stream.zeros::<u32>(1)?;
        slow_increment(&stream, Grid::new(1, 1), &mut slow)?;
        drop((slow, broken(&stream, at)?));
    }
    let mut told = [failed_at(device.synchronize()), failed_at(device.synchronize())];
    told.sort_unstable();
    assert_eq!(told, [5, 6]);
    device.synchronize()
}

#[test]
fn an_earlier_report_to_another_thread_does_not_make_the_data_valid() -> Result<()> {
    let stream = Device::cpu().new_stream()?;
    let (mut y, other) = (broken(&stream, 1)?, stream.zeros::<u32>(1)?);
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(failed_at(stream.download(&other)), 1)).join().unwrap();
    });
    // The failure was not reported to this thread, so its launches read the contents as they are.
    slow_increment(&stream, Grid::new(1, 1), &mut y)?;
    assert_eq!(failed_at(stream.download(&y)), 1);
    // Now it was reported.
    slow_increment(&stream, Grid::new(1, 1), &mut y)?;
    assert_eq!(stream.download(&y)?.len(), 8);
    Ok(())
}

#[test]
fn output_of_failed_work_is_an_error_in_all_copies() -> Result<()> {
    let device = Device::cpu();
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let x = broken(&stream, 1)?;
    assert_eq!(failed_at(stream.synchronize()), 1);

    let copy = other.duplicate(&x)?;
    let mut derived = other.zeros::<u32>(8)?;
    mix(&other, Grid::cover(8), 2, &copy, &mut derived)?;
    assert_eq!(failed_at(other.synchronize()), 1); // it was given what had failed
    assert_eq!(failed_at(other.download(&copy)), 1);
    assert_eq!(failed_at(stream.download(derived.slice(3..4)?)), 1);
    assert_eq!(failed_at(stream.download_async(&derived, device.pinned_zeros(8)?)?.wait()), 1);
    let mut host = [0; 8];
    assert_eq!(failed_at(stream.scope(|scope| scope.download_into(&derived, &mut host))), 1);
    let far = Device::cpu_with(CpuOptions::new())?.new_stream()?;
    assert_eq!(failed_at(far.download(&far.duplicate_peer(&derived)?)), 1);
    let rows = derived.view().pitched(4, 2, 4)?;
    assert_eq!(failed_at(stream.download_2d(rows, &mut host, 4)), 1);
    let mut pitched = stream.zeros_pitched::<u32>(4, 2)?;
    stream.copy_2d(rows, pitched.view_mut())?;
    assert_eq!(failed_at(stream.download_2d(pitched.view(), &mut host, 4)), 1);
    assert_eq!(stream.synchronize(), Ok(()));
    Ok(())
}

#[test]
fn rewritten_memory_is_valid_again_unless_only_a_part_is_written() -> Result<()> {
    let stream = Device::cpu().new_stream()?;
    let good = stream.upload(&[7_u32; 8])?;
    type Write = fn(&Stream, &DeviceBuffer<u32>, &mut DeviceBuffer<u32>) -> Result<()>;
    let wholes: [Write; 5] = [
        |stream, _, target| stream.fill_into(7, target),
        |stream, _, target| stream.upload_into(&[7; 8], target),
        |stream, good, target| stream.copy(good, target),
        |stream, _, target| {
            drop(stream.upload_async(stream.device().pinned_copy(&[7; 8])?, target)?);
            Ok(())
        },
        |stream, _, target| stream.scope(|scope| scope.upload_into(&[7; 8], target))?,
    ];
    for write in wholes {
        let mut x = broken(&stream, 1)?;
        assert_eq!(failed_at(stream.synchronize()), 1);
        write(&stream, &good, &mut x)?;
        assert_eq!(stream.download(&x)?, [7; 8]);
    }
    let parts: [Write; 4] = [
        |stream, _, target| stream.fill_into(7, target.slice_mut(1..)?),
        |stream, _, target| stream.upload_into(&[7; 7], target.slice_mut(..7)?),
        |stream, good, target| stream.copy(good.slice(..3)?, target.slice_mut(..3)?),
        |stream, _, target| slow_increment(stream, Grid::new(1, 1), target.slice_mut(..7)?),
    ];
    for write in parts {
        let mut x = broken(&stream, 1)?;
        assert_eq!(failed_at(stream.synchronize()), 1);
        write(&stream, &good, &mut x)?;
        let _told = stream.synchronize();
        assert_eq!(failed_at(stream.download(&x)), 1);
    }
    Ok(())
}

/// The second launch was enqueued before the failure of the first was known.
#[test]
fn a_launch_after_a_failed_one_does_not_hide_its_failure() -> Result<()> {
    let device = Device::cpu();
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let mut x = broken(&stream, 1)?;
    slow_increment(&stream, Grid::new(1, 1), &mut x)?;
    assert_eq!(failed_at(other.download(&x)), 1);
    assert_eq!(failed_at(stream.synchronize()), 1);
    stream.synchronize()
}

#[test]
fn managed_memory_that_failed_work_wrote_cannot_be_read() -> Result<()> {
    let (stream, idle) = (Device::cpu().new_stream()?, Device::cpu().new_stream()?);
    let mut managed = stream.managed_copy(&[13_u32; 4])?;
    unlucky(&stream, Grid::cover(4), &mut managed)?;
    for _ in 0..2 {
        assert_eq!(failed_at(managed.read()), 0);
        assert_eq!(failed_at(managed.write()), 0);
    }
    idle.fill_into(1, &mut managed)?;
    assert_eq!(managed.read()?, [1; 4]);
    // The stream's own failure is still there for who waits for the stream.
    assert_eq!(failed_at(stream.synchronize()), 0);
    Ok(())
}

#[test]
fn output_of_a_graph_after_a_failure_in_it_is_invalid() -> Result<()> {
    let (stream, other) = (Device::cpu().new_stream()?, Device::cpu().new_stream()?);
    let (mut x, mut y) = (stream.upload(&[13_u32; 4])?, stream.zeros::<u32>(4)?);
    let (x, y) = (&mut x, &mut y);
    let graph = stream.capture(|capture| {
        let (mut x, mut y) = (capture.write(&mut *x)?, capture.write(&mut *y)?);
        unlucky(capture, Grid::cover(4), &mut x)?;
        slow_increment(capture, Grid::new(1, 1), &mut y)
    });
    let mut graph = graph?.0.instantiate()?;
    graph.launch(&stream)?;
    drop(graph);
    assert_eq!(failed_at(other.download(&*x)), 0);
    assert_eq!(failed_at(other.download(&*y)), 0);
    assert_eq!(failed_at(stream.synchronize()), 0);
    other.fill_into(0, &mut *x)?;
    assert_eq!(other.download(&*x)?, [0; 4]);
    Ok(())
}

#[test]
fn a_stream_that_waits_for_another_reports_its_failure_and_one_that_shares_a_buffer_does_not() -> Result<()> {
    let device = Device::cpu();
    let (stream, sharing, waiting) = (device.new_stream()?, device.new_stream()?, device.new_stream()?);
    let shared = stream.upload(&[1_u32; 8])?;
    let _broken = broken(&stream, 2)?;
    assert_eq!(sharing.download(&shared)?, [1; 8]);
    waiting.wait_stream(&stream)?;
    waiting.wait(&stream.record()?)?;
    assert_eq!(failed_at(waiting.synchronize()), 2);
    waiting.synchronize()?;
    assert_eq!(failed_at(stream.synchronize()), 2);
    // What has been told is not handed on.
    waiting.wait_stream(&stream)?;
    waiting.synchronize()?;
    sharing.synchronize()
}

#[test]
fn a_scope_that_unwinds_leaves_the_failure_to_the_next_wait() -> Result<()> {
    let stream = Device::cpu().new_stream()?;
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _broken = stream.scope(|_| -> () {
            let _x = broken(&stream, 1);
            std::panic::resume_unwind(Box::new("on purpose"))
        });
    }));
    assert!(unwound.is_err());
    assert_eq!(failed_at(stream.synchronize()), 1);
    Ok(())
}
