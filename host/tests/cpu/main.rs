//! The CPU device, from upload to result: values, order, errors, limits. No GPU or driver is
//! needed.

#[path = "../kernels/mod.rs"]
mod kernels;
#[path = "../model/mod.rs"]
mod model;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ferrogrid_host::{Axis, Device, DeviceKind, Error, Grid, LaunchError, Result};
use kernels::{coordinates, saxpy, slow_increment, unlucky};

#[test]
fn saxpy_is_right_for_many_sizes() -> Result<()> {
    let stream = Device::cpu().new_stream()?;
    for n in [1, 2, 31, 32, 255, 256, 257, 1000, 4096, 65_537, 1 << 20] {
        let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
        let x = stream.upload(&x)?;
        let mut y = stream.fill(1.0_f32, n)?;
        saxpy(&stream, Grid::cover(n), 2.0, &x, &mut y)?;
        let y = stream.download(&y)?;
        assert_eq!(y.len(), n);
        assert!(y.iter().enumerate().all(|(i, &y)| y == 2.0 * i as f32 + 1.0), "n = {n}");
    }
    Ok(())
}

#[test]
fn every_block_shape_gives_the_same_image() -> Result<()> {
    let stream = Device::cpu().new_stream()?;
    let (width, height) = (37, 21);
    let expected: Vec<u32> = (0..height).flat_map(|y| (0..width).map(move |x| 1000 * y + x)).collect();
    for block in [[1, 1], [32, 8], [16, 16], [1024, 1], [7, 5]] {
        let mut image = stream.zeros::<u32>(width as usize * height as usize)?;
        let grid = Grid::cover([width as usize, height as usize]).with_block(block);
        coordinates(&stream, grid, image.view_2d_mut(width as usize, height as usize)?)?;
        assert_eq!(stream.download(&image)?, expected, "{block:?}");
    }
    Ok(())
}

#[test]
fn every_block_of_an_exact_grid_runs() -> Result<()> {
    let stream = Device::cpu().new_stream()?;
    let mut image = stream.zeros::<u32>(40 * 30)?;
    coordinates(&stream, Grid::new([5, 6], [8, 5]), image.view_2d_mut(40, 30)?)?;
    let image = stream.download(&image)?;
    assert_eq!((image[0], image[39], image[29 * 40 + 39]), (0, 39, 29_039));
    Ok(())
}

#[test]
fn a_launch_returns_before_the_kernel_has_run() -> Result<()> {
    let stream = Device::cpu().new_stream()?;
    let mut counters = stream.zeros::<u32>(1)?;
    let start = Instant::now();
    for _ in 0..5 {
        slow_increment(&stream, Grid::new(1, 1), &mut counters)?;
    }
    assert!(!stream.record()?.is_complete()?);
    assert_eq!(stream.download(&counters)?, [5]);
    assert!(start.elapsed() >= Duration::from_millis(100));
    Ok(())
}

#[test]
fn work_on_two_streams_is_ordered_by_the_buffer() -> Result<()> {
    let device = Device::cpu();
    let (a, b) = (device.new_stream()?, device.new_stream()?);
    let mut counters = a.zeros::<u32>(3)?;
    let mut copy = b.zeros::<u32>(3)?;
    for round in 1..=3 {
        slow_increment(&a, Grid::cover(3), &mut counters)?;
        slow_increment(&b, Grid::cover(3), &mut counters)?;
        b.copy(&counters, &mut copy)?;
        slow_increment(&a, Grid::cover(3), &mut counters)?;
        assert_eq!(b.download(&copy)?, [3 * round - 1; 3], "the copy comes before the third increment");
    }
    assert_eq!(b.download(&counters)?, [9; 3]);
    Ok(())
}

#[test]
fn parts_written_on_two_streams_are_both_there_at_the_end() -> Result<()> {
    let device = Device::cpu();
    let (a, b, c) = (device.new_stream()?, device.new_stream()?, device.new_stream()?);
    let mut counters = a.zeros::<u32>(4)?;
    let (left, right) = counters.split_at_mut(1)?;
    std::thread::scope(|scope| {
        let first = scope.spawn(|| slow_increment(&a, Grid::cover(1), left));
        let second = scope.spawn(|| slow_increment(&b, Grid::cover(3), right));
        first.join().unwrap().and(second.join().unwrap())
    })?;
    assert_eq!(c.download(&counters)?, [1; 4]);
    Ok(())
}

#[test]
fn buffers_and_streams_may_be_dropped_before_their_work_has_run() -> Result<()> {
    let device = Device::cpu();
    let stream = device.new_stream()?;
    let mut counters = stream.zeros::<u32>(1000)?;
    slow_increment(&stream, Grid::cover(1000), &mut counters)?;
    let other = device.new_stream()?;
    let mut copy = other.zeros::<u32>(1000)?;
    other.copy(&counters, &mut copy)?;
    drop(stream);
    drop(counters);
    assert_eq!(other.download(&copy)?, [1; 1000]);
    Ok(())
}

#[test]
fn buffers_may_be_dropped_on_another_thread() -> Result<()> {
    let stream = Device::cpu().new_stream()?;
    let mut counters = stream.zeros::<u32>(10)?;
    slow_increment(&stream, Grid::cover(10), &mut counters)?;
    std::thread::spawn(move || drop(counters)).join().unwrap();
    stream.synchronize()
}

#[test]
fn a_panic_is_an_error_with_its_location_and_the_stream_stays_usable() -> Result<()> {
    let stream = Device::cpu().new_stream()?;
    let mut data: Vec<u32> = vec![0; 5000];
    (data[1000], data[4000]) = (13, 13);
    let mut buffer = stream.upload(&data)?;
    unlucky(&stream, Grid::cover(5000), &mut buffer)?;
    let Err(Error::KernelPanic { kernel, message, file, line, block, thread, .. }) = stream.synchronize()
    else {
        panic!("no panic was reported");
    };
    assert_eq!((kernel, &*message), ("unlucky", "element 1000 is 13"));
    assert!(file.ends_with("kernels/mod.rs") && line > 100, "{file}:{line}");
    assert_eq!((block, thread), ([3, 0, 0], [232, 0, 0]));

    stream.synchronize()?;
    buffer = stream.zeros(5000)?;
    unlucky(&stream, Grid::cover(5000), &mut buffer)?;
    assert_eq!(stream.download(&buffer)?.len(), 5000);
    Ok(())
}

#[test]
fn a_download_reports_the_panic_before_it() -> Result<()> {
    let stream = Device::cpu().new_stream()?;
    let mut buffer = stream.upload(&[13_u32])?;
    unlucky(&stream, Grid::cover(1), &mut buffer)?;
    assert!(matches!(stream.download(&buffer), Err(Error::KernelPanic { .. })));
    Ok(())
}

#[test]
fn a_panic_reaches_the_stream_that_uses_its_results() -> Result<()> {
    let device = Device::cpu();
    let (a, b) = (device.new_stream()?, device.new_stream()?);
    let mut buffer = a.upload(&[13_u32])?;
    unlucky(&a, Grid::cover(1), &mut buffer)?;
    assert!(matches!(b.download(&buffer), Err(Error::KernelPanic { .. })));
    assert!(matches!(a.synchronize(), Err(Error::KernelPanic { .. })));
    Ok(())
}

#[test]
fn the_device_reports_a_panic_and_leaves_it_to_the_stream() -> Result<()> {
    let device = Device::cpu();
    let stream = device.new_stream()?;
    let mut buffer = stream.upload(&[13_u32])?;
    unlucky(&stream, Grid::cover(1), &mut buffer)?;
    assert!(matches!(device.synchronize(), Err(Error::KernelPanic { .. })));
    assert!(matches!(stream.synchronize(), Err(Error::KernelPanic { .. })));
    Ok(())
}

#[test]
fn empty_buffers_and_grids_work() -> Result<()> {
    let stream = Device::cpu().new_stream()?;
    let x = stream.upload::<f32>(&[])?;
    let mut y = stream.zeros::<f32>(0)?;
    assert!(x.is_empty() && x.as_device_ptr().as_raw().is_aligned() && !x.as_device_ptr().as_raw().is_null());
    saxpy(&stream, Grid::cover(0), 1.0, &x, &mut y)?;
    saxpy(&stream, Grid::new(2, 32), 1.0, &x, &mut y)?;
    stream.copy(&x, &mut y)?;
    stream.fill_into(3.0, &mut y)?;
    stream.upload_into(&[], &mut y)?;
    assert!(stream.download(&y)?.is_empty());
    Ok(())
}

#[test]
fn launch_limits_are_checked_as_on_a_gpu() -> Result<()> {
    let stream = Device::cpu().new_stream()?;
    let x = stream.zeros::<f32>(1)?;
    let mut y = stream.zeros::<f32>(1)?;
    let mut launch = |grid| saxpy(&stream, grid, 1.0, &x, &mut y);
    assert_eq!(
        launch(Grid::cover(usize::MAX)).unwrap_err().to_string(),
        "kernel `saxpy`: the grid has 72057594037927936 blocks along x, the device's limit is 2147483647"
    );
    assert_eq!(
        launch(Grid::cover(1).with_block(2000)),
        Err(Error::Launch(LaunchError::BlockTooLarge {
            kernel: "saxpy",
            axis: Axis::X,
            value: 2000,
            limit: 1024
        }))
    );
    assert_eq!(launch(Grid::new(0, 1)), Ok(()), "as `Grid::cover(0)`");
    Ok(())
}

#[test]
fn lengths_that_disagree_are_named() -> Result<()> {
    let stream = Device::cpu().new_stream()?;
    let mut buffer = stream.upload(&[1_u8, 2, 3])?;
    let named = |operation, source_length, target_length| {
        Err(Error::LengthMismatch { operation, source_length, target_length })
    };
    assert_eq!(stream.upload_into(&[0; 4], &mut buffer), named("upload_into", 4, 3));
    assert_eq!(stream.download_into(&buffer, &mut [0; 2]), named("download_into", 3, 2));
    let two = stream.upload(&[0_u8; 2])?;
    assert_eq!(stream.copy(&two, &mut buffer), named("copy", 2, 3));
    Ok(())
}

#[test]
fn lengths_whose_bytes_overflow_are_named() -> Result<()> {
    let stream = Device::cpu().new_stream()?;
    let length = usize::MAX / 4;
    assert_eq!(stream.zeros::<u64>(length).unwrap_err(), Error::SizeOverflow { length, element_size: 8 });
    let length = isize::MAX as usize;
    assert_eq!(stream.zeros::<u16>(length).unwrap_err(), Error::SizeOverflow { length, element_size: 2 });
    Ok(())
}

#[test]
fn too_much_memory_is_an_error_and_the_next_allocation_works() -> Result<()> {
    let stream = Device::cpu().new_stream()?;
    let bytes = isize::MAX as usize / 2;
    let Err(Error::OutOfMemory { requested, total: Some(total), .. }) = stream.zeros::<u8>(bytes) else {
        panic!("{bytes} bytes were given");
    };
    assert_eq!(requested, bytes as u64);
    assert!(total < requested);
    assert_eq!(stream.download(&stream.zeros::<u8>(3)?)?, [0; 3]);
    Ok(())
}

#[test]
fn views_stay_inside_their_buffer() -> Result<()> {
    let stream = Device::cpu().new_stream()?;
    let mut buffer = stream.upload(&[0_u32, 1, 2, 3, 4, 5])?;
    assert_eq!(stream.download(buffer.slice(2..=3)?)?, [2, 3]);
    assert!(stream.download(buffer.slice(6..)?)?.is_empty());
    assert_eq!(buffer.slice(3..7).unwrap_err(), Error::OutOfRange { start: 3, end: 7, length: 6 });
    #[expect(clippy::reversed_empty_ranges, reason = "the bad input under test")]
    let reversed = buffer.slice(4..3).unwrap_err();
    assert_eq!(reversed, Error::OutOfRange { start: 4, end: 3, length: 6 });
    assert!(buffer.slice(..=usize::MAX).is_err());
    assert!(buffer.split_at_mut(7).is_err());
    for (width, height) in [(3, 3), (usize::MAX, 2), (7, 1)] {
        let error = buffer.view_2d_mut(width, height).unwrap_err();
        assert_eq!(error, Error::ViewTooLarge { width, height, length: 6 });
    }
    assert_eq!(buffer.view_2d_mut(3, 2)?.extent(), [3, 2]);
    let inner = buffer.slice(1..5)?.slice(1..3)?;
    assert_eq!(stream.download(inner)?, [2, 3]);
    Ok(())
}

#[test]
fn fills_repeat_values_of_every_size() -> Result<()> {
    let stream = Device::cpu().new_stream()?;
    assert_eq!(stream.download(&stream.fill(7_u8, 5)?)?, [7; 5]);
    assert_eq!(stream.download(&stream.fill(-2_i16, 3)?)?, [-2; 3]);
    assert_eq!(stream.download(&stream.fill(0.5_f32, 3)?)?, [0.5; 3]);
    assert_eq!(stream.download(&stream.fill([1_u64, 2, 3], 2)?)?, [[1, 2, 3]; 2]);
    let mut buffer = stream.zeros::<u16>(4)?;
    stream.fill_into(9, buffer.slice_mut(1..3)?)?;
    assert_eq!(stream.download(&buffer)?, [0, 9, 9, 0]);
    Ok(())
}

#[test]
fn the_parts_of_one_buffer_may_be_input_and_output() -> Result<()> {
    let stream = Device::cpu().new_stream()?;
    let mut buffer = stream.upload(&[1.0_f32, 2.0, 10.0, 20.0])?;
    let (x, y) = buffer.split_at_mut(2)?;
    saxpy(&stream, Grid::cover(2), 3.0, &x, y)?;
    assert_eq!(stream.download(&buffer)?, [1.0, 2.0, 13.0, 26.0]);
    Ok(())
}

#[test]
fn events_mark_wait_and_time() -> Result<()> {
    let device = Device::cpu();
    let (a, b) = (device.new_stream()?, device.new_stream()?);
    let mut counters = a.zeros::<u32>(1)?;
    let start = a.record()?;
    for _ in 0..5 {
        slow_increment(&a, Grid::new(1, 1), &mut counters)?;
    }
    let end = a.record()?;
    assert!(!end.is_complete()?);
    b.wait(&end)?;
    b.synchronize()?;
    assert!(end.is_complete()?);
    assert!(end.elapsed_since(&start)? >= Duration::from_millis(100));
    assert!(matches!(start.elapsed_since(&end), Err(Error::EventTime { .. })));
    Ok(())
}

#[test]
fn one_stream_may_be_used_from_many_threads() -> Result<()> {
    let stream = Device::cpu().new_stream()?;
    let wrong = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (stream, wrong) = (&stream, &wrong);
            scope.spawn(move || {
                for round in 0..50 {
                    let x = stream.fill(thread as f32, 500).unwrap();
                    let mut y = stream.fill(round as f32, 500).unwrap();
                    saxpy(stream, Grid::cover(500), 2.0, &x, &mut y).unwrap();
                    let expected = 2.0 * thread as f32 + round as f32;
                    if stream.download(&y).unwrap() != [expected; 500] {
                        wrong.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(wrong.into_inner(), 0);
    Ok(())
}

#[test]
fn random_work_on_several_streams_equals_the_model() -> Result<()> {
    model::random_work_equals_the_model(&Device::cpu(), 3000)
}

#[test]
fn there_is_exactly_one_cpu_device() {
    let device = Device::cpu();
    assert_eq!(device, Device::cpu());
    assert_eq!(
        (device.kind(), device.is_cuda(), device.compute_capability()),
        (DeviceKind::Cpu, false, None)
    );
    assert_eq!(device.limits().max_threads_per_block, 1024);
    assert!(!device.name().is_empty());
    assert!(Device::all().contains(&device));
}

/// Runs two of the tests above in a process with `FERROGRID_CPU_THREADS` set.
fn run_with_threads(threads: &str) -> std::process::Output {
    std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "saxpy_is_right_for_many_sizes"])
        .arg("a_panic_is_an_error_with_its_location_and_the_stream_stays_usable")
        .env("FERROGRID_CPU_THREADS", threads)
        .output()
        .unwrap()
}

#[test]
fn results_and_errors_do_not_depend_on_the_number_of_threads() {
    for threads in ["1", "2", "16"] {
        let output = run_with_threads(threads);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("2 passed"), "{threads} threads:\n{text}");
    }
}

#[test]
fn a_number_of_threads_that_means_nothing_is_an_error() {
    for threads in ["0", "many", "-1"] {
        let output = run_with_threads(threads);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(!output.status.success() && text.contains("FERROGRID_CPU_THREADS"), "{threads}:\n{text}");
    }
}
