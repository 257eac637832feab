//! Memory that runs out, limits on it, and extents beyond any memory: errors that name the request, and never an
//! abort, a wrap-around or a leak. On the CPU device, whose memory is the host's.

mod waiting;

use std::sync::mpsc::channel;

use ferrogrid_host::dlpack::{DlpackError, DlpackTensor};
use ferrogrid_host::{CpuOptions, Device, Error, Grid, Result};
use waiting::{enqueue, resources};

/// Set in the child process, which runs `it` and not the test.
const VARIABLE: &str = "FERROGRID_TEST_CHILD";

#[cfg(target_os = "linux")]
#[test]
fn a_download_that_the_host_cannot_hold_is_an_error() {
    if std::env::var_os(VARIABLE).is_some() {
        return download_into_too_little().unwrap();
    }
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "a_download_that_the_host_cannot_hold_is_an_error", "--nocapture"]);
    let output = child.env(VARIABLE, "1").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The buffer fits into what the process may have, and its copy for the host does not.
#[cfg(target_os = "linux")]
fn download_into_too_little() -> Result<()> {
    const BYTES: usize = 3 << 30;
    let stream = Device::cpu().new_stream()?;
    stream.synchronize()?;
    let pages: u64 = {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap();
        text.split(' ').next().unwrap().parse().unwrap()
    };
    let most = pages * 4096 + BYTES as u64 + (1 << 30);
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: `limit` is valid for the call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
    let big = stream.zeros::<u8>(BYTES)?;
    match stream.download(&big) {
        Err(Error::OutOfMemory { device, requested, .. }) => {
            assert_eq!((&*device, requested), ("the host", BYTES as u64));
        }
        other => panic!("{:?}", other.map(|data| data.len())),
    }
    drop(big);
    assert_eq!(stream.download(&stream.fill(1_u8, 3)?)?, [1; 3]);
    Ok(())
}

fn is_over_the_limit<T>(result: Result<T>) -> bool {
    matches!(result, Err(Error::MemoryLimit { limit: 1000, .. }))
}

fn is_out_of_memory<T>(result: Result<T>) -> bool {
    matches!(result, Err(Error::OutOfMemory { total: Some(1000), .. }))
}

#[test]
fn limits_count_memory_of_all_kinds() -> Result<()> {
    let small = Device::cpu_with(CpuOptions::new().memory(1000))?.new_stream()?;
    assert!(is_out_of_memory(small.zeros::<u8>(2000)));
    assert!(is_out_of_memory(small.managed_zeros::<u8>(2000)));
    assert!(is_out_of_memory(small.ipc_zeros::<u8>(2000)));
    for _ in 0..3 {
        small.synchronize()?; // what the last round dropped is free again
        let (_own, _managed) = (small.zeros::<u8>(300)?, small.managed_zeros::<u8>(300)?);
        let _shared = small.ipc_zeros::<u8>(300)?;
        assert_eq!(small.device().memory_info()?.unwrap().free, 100);
        assert!(is_out_of_memory(small.ipc_zeros::<u8>(101)));
        let _rest = small.ipc_zeros::<u8>(100)?;
        assert!(is_out_of_memory(small.zeros::<u8>(1)));
    }
    let device = Device::cpu_with(CpuOptions::new())?;
    let (limited, pool) = (device.new_stream()?, device.memory_pool());
    pool.set_limit(Some(1000));
    assert!(is_over_the_limit(limited.zeros::<u8>(2000)));
    assert!(is_over_the_limit(limited.managed_zeros::<u8>(2000)));
    assert!(is_over_the_limit(limited.ipc_zeros::<u8>(2000)));
    for _ in 0..3 {
        limited.synchronize()?;
        let (_own, _managed) = (limited.zeros::<u8>(300)?, limited.managed_zeros::<u8>(300)?);
        let _shared = limited.ipc_zeros::<u8>(300)?;
        assert_eq!(pool.statistics()?.used, 900);
        assert!(is_over_the_limit(limited.managed_zeros::<u8>(101)));
        let _rest = limited.managed_zeros::<u8>(100)?;
        assert_eq!(pool.statistics()?.used, 1000);
        assert!(is_over_the_limit(limited.zeros::<u8>(1)));
    }
    limited.synchronize()?;
    assert_eq!(pool.statistics()?.used, 0);
    Ok(())
}

/// It has not been given back to the system then, however often a buffer is made and dropped.
#[test]
fn a_dropped_buffer_counts_until_its_stream_has_freed_it() -> Result<()> {
    let device = Device::cpu_with(CpuOptions::new())?;
    let (stream, pool) = (device.new_stream()?, device.memory_pool());
    pool.set_limit(Some(1000));
    let (open, gate) = channel::<()>();
    stream.launch_host_func(move || {
        let _opened = gate.recv();
    })?;
    drop(stream.upload(&[1_u8; 600])?);
    drop(stream.managed_zeros::<u8>(300)?);
    assert!(is_over_the_limit(stream.upload(&[1_u8; 600])));
    assert_eq!(pool.statistics()?.used, 900);
    open.send(()).unwrap();
    stream.synchronize()?;
    assert_eq!(pool.statistics()?.used, 0);
    assert_eq!(stream.download(&stream.upload(&[1_u8; 600])?)?, [1; 600]);
    Ok(())
}

/// From the recording to the end of the last launch.
#[test]
fn memory_of_graphs_counts_while_they_exist() -> Result<()> {
    let small = Device::cpu_with(CpuOptions::new().memory(1000))?.new_stream()?;
    assert!(is_out_of_memory(small.capture(|capture| capture.zeros::<u8>(2000).map(drop))));
    let device = Device::cpu_with(CpuOptions::new())?;
    let (stream, pool, memory) = (device.new_stream()?, device.memory_pool(), device.graph_memory());
    pool.set_limit(Some(1000));
    assert!(is_over_the_limit(stream.capture(|capture| capture.uninit::<u8>(2000).map(drop))));
    let record = || {
        stream.capture(|capture| {
            drop(capture.zeros::<u8>(600)?);
            assert!(is_over_the_limit(capture.zeros::<u8>(401)), "also after the other was freed");
            Ok(())
        })
    };
    let mut graph = record()?.0.instantiate()?;
    assert_eq!((pool.statistics()?.used, memory.statistics()?.used), (600, 600));
    let (open, gate) = channel::<()>();
    stream.launch_host_func(move || {
        let _opened = gate.recv();
    })?;
    graph.launch(&stream)?;
    drop(graph);
    assert!(is_over_the_limit(record()), "it may still run");
    open.send(()).unwrap();
    stream.synchronize()?;
    assert_eq!((pool.statistics()?.used, memory.statistics()?.used_high), (0, 600));
    for _ in 0..10 {
        drop(record()?);
        stream.synchronize()?;
    }
    memory.reset_statistics()?;
    assert_eq!(memory.statistics()?.used_high, 0);
    let limited = Device::cpu_with(CpuOptions::new().memory(1000))?.new_stream()?;
    let graph = limited.capture(|capture| capture.zeros::<u8>(700).map(drop))?.0;
    assert_eq!(limited.device().memory_info()?.unwrap().free, 300);
    drop(graph);
    limited.synchronize()?;
    assert_eq!(limited.device().memory_info()?.unwrap().free, 1000);
    Ok(())
}

#[test]
fn empty_rows_of_any_extent_are_copied() -> Result<()> {
    const HUGE: usize = usize::MAX;
    let stream = Device::cpu().new_stream()?;
    let (a, mut b) = (stream.fill(1_u32, 8)?, stream.fill(2_u32, 8)?);
    stream.copy_2d(a.view().pitched(0, 2, HUGE)?, b.view_mut().pitched(0, 2, HUGE)?)?;
    stream.copy_2d(a.slice(..0)?.step_by(HUGE)?, b.slice_mut(..0)?.step_by(HUGE)?)?;
    stream.upload_2d(&[], HUGE, b.slice_mut(..0)?.pitched(1, 0, 1)?)?;
    stream.download_2d(a.view().pitched(3, 0, 3)?, &mut [], HUGE)?;
    let (wide, mut other) =
        (stream.zeros_pitched::<u32>(HUGE / 2 + 1, 0)?, stream.zeros_pitched(HUGE / 2 + 1, 0)?);
    stream.copy_2d(wide.view(), other.view_mut())?;
    assert!(matches!(stream.zeros_pitched::<u32>(HUGE, 0), Err(Error::SizeOverflow { .. })));
    assert_eq!(stream.download(&b)?, [2; 8]);
    Ok(())
}

#[test]
fn dimensions_that_dlpack_cannot_represent_are_refused() -> Result<()> {
    let stream = Device::cpu().new_stream()?;
    let empty = || DlpackTensor::from_buffer(&stream, stream.zeros::<u32>(0)?);
    let shape = [0, i64::MAX as usize + 1];
    let refused = empty()?.with_shape(&shape).map(drop);
    assert_eq!(refused, Err(DlpackError::Shape { shape: shape.to_vec(), length: 0 }.into()));
    let raw = empty()?.with_shape(&[0, i64::MAX as usize])?.into_raw();
    // SAFETY: just made, and taken over once.
    let back = unsafe { DlpackTensor::from_raw(raw)? };
    assert_eq!(back.shape(), [0, i64::MAX as usize]);
    Ok(())
}

#[cfg(target_os = "linux")]
#[test]
fn threads_of_virtual_devices_end_with_their_streams() -> Result<()> {
    let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
    let mut devices = Vec::new();
    let work = |device: &Device| -> Result<()> {
        let stream = device.new_stream()?;
        let mut out = stream.zeros::<u32>(1)?;
        // Each takes long enough to be shared out.
        enqueue(&stream, Grid::new([64, 1, 1], [1, 1, 1]), resources(0, false), &mut out, |_| {
            std::thread::sleep(std::time::Duration::from_micros(100));
        })?;
        stream.synchronize()
    };
    for _ in 0..50 {
        let device = Device::cpu_with(CpuOptions::new().workers(8))?;
        work(&device)?;
        devices.push(device);
    }
    // They end by themselves, a little later; other tests have separate ones.
    let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while threads() > 100 && std::time::Instant::now() < end {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(threads() <= 100, "{} threads for 50 devices without work", threads());
    // And begin again.
    work(&devices[0])
}
