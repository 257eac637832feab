//! The CUDA backend's driver calls for page-locked and managed memory, background copies, fills and pools, with a fake
//! one (`fake_driver/libcuda.rs`). That results are right is for the cases of `runtime.rs`.

use crate::scenario::{Scenario, count, fake_driver, run, run_requested, run_with};
use ferrogrid_host::{Advice, Device, Error, Location, PinnedBuffer, PoolOptions, Result};

const SCENARIOS: &[Scenario] = &[
    ("pinned", pinned),
    ("unmapped", unmapped),
    ("in_place", in_place),
    ("dropped_copies", dropped_copies),
    ("dropped_copy", dropped_copy),
    ("on_the_host", on_the_host),
    ("scope", scope),
    ("fills", fills),
    ("managed", managed),
    ("no_managed", no_managed),
    ("own_pool", own_pool),
    ("no_pools", no_pools),
    ("pool", pool),
];

#[test]
#[ignore = "the other tests run it, in a process with a fake driver"]
fn scenario() {
    run_requested(SCENARIOS);
}

#[test]
fn page_locked_memory_has_the_requested_flags_and_is_freed() {
    let calls = run("pinned", "memory=100000");
    let made: Vec<&str> = calls.iter().filter_map(|call| call.strip_prefix("pinned ")).collect();
    assert_eq!(made, ["flags=3", "flags=7", "flags=3"], "portable, mapped; write-combined; refused");
    assert_eq!(count(&calls, "cuMemFreeHost"), 2);
    assert_eq!((count(&calls, "cuMemHostRegister_v2"), count(&calls, "cuMemHostUnregister")), (4, 3));
}

fn pinned() -> Result<()> {
    let device = Device::cuda(0)?;
    drop((device.pinned_zeros::<u64>(10)?, device.pinned_zeros_write_combined::<u8>(10)?));
    let error = device.pinned_zeros::<u8>(100_001).unwrap_err().to_string();
    assert_eq!(error, "the host (page-locked memory) is out of memory: 100001 bytes requested");
    let first = device.pin(vec![1_u8; 100])?;
    assert_eq!(first.into_vec(), [1; 100]);
    let mut second = device.pin(vec![2_u8; 100])?;
    let twice = device.with_pinned(&mut second, |_| ()).unwrap_err();
    assert!(matches!(twice, Error::Driver { operation: "cuMemHostRegister", code: 712, .. }), "{twice}");
    device.with_pinned(&mut [1_u16, 2], |memory| memory.reverse())
}

#[test]
fn memory_that_a_device_cannot_map_is_page_locked_but_no_argument() {
    run("unmapped", "maps=0");
}

fn unmapped() -> Result<()> {
    let device = Device::cuda(0)?;
    let stream = device.new_stream()?;
    let mut host = device.pinned_copy(&[1_u32, 2, 3])?;
    let error = stream.fill_into(7, &mut host).unwrap_err().to_string();
    for part in ["page-locked memory in place", "Fake GPU", "CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY"] {
        assert!(error.contains(part), "{part:?} is missing in {error:?}");
    }
    let mut buffer = stream.zeros::<u32>(3)?;
    assert_eq!(stream.upload_async(host, &mut buffer)?.wait()?.into_vec(), [1, 2, 3]);
    let none = device.pinned_zeros::<u32>(0)?;
    assert!(stream.download(&none)?.is_empty());
    Ok(())
}

#[test]
fn a_slice_is_waited_for_once_and_not_if_no_device_uses_it() {
    let calls = run("in_place", "");
    assert_eq!(count(&calls, "cuEventSynchronize"), 2);
    assert_eq!(count(&calls, "cuMemHostGetDevicePointer_v2"), 1);
    assert_eq!(count(&calls, "cuMemFreeHost"), 1);
}

fn in_place() -> Result<()> {
    let device = Device::cuda(0)?;
    let stream = device.new_stream()?;
    let mut host = device.pinned_zeros::<u32>(100)?;
    host.fill(1);
    stream.fill_into(2, &mut host)?;
    assert!((0..100).all(|index| host[index] == 2)); // waits once
    let mut buffer = stream.zeros::<u32>(100)?;
    stream.copy(&host, &mut buffer)?;
    assert_eq!(host[0], 2); // need not wait for a reader
    host.fill(3); // but now it must
    host[0] = 4;
    Ok(())
}

#[test]
fn memory_of_dropped_copies_is_kept_until_they_have_run_and_then_freed() {
    let calls = run("dropped_copies", "");
    assert_eq!(count(&calls, "cuMemHostAlloc"), 10);
    assert_eq!(count(&calls, "cuMemFreeHost"), 10);
    assert_eq!(count(&calls, "cuMemcpyAsync"), 10 + 1, "and one to look at the last");
}

/// The fake driver panics if memory is freed under a copy.
fn dropped_copies() -> Result<()> {
    let device = Device::cuda(0)?;
    let stream = device.new_stream()?;
    let mut buffer = stream.zeros::<u32>(100)?;
    for value in 0..10 {
        let host: PinnedBuffer<u32> = device.pinned_copy(&[value; 100])?;
        drop(stream.upload_async(host, &mut buffer)?);
    }
    assert_eq!(stream.download(&buffer)?, [9; 100]);
    stream.synchronize()
}

#[test]
fn memory_of_a_dropped_copy_is_kept_if_its_completion_is_unknown() {
    let calls = run("dropped_copy", "fail=cuEventQuery:304");
    assert_eq!((count(&calls, "cuMemHostAlloc"), count(&calls, "cuMemFreeHost")), (1, 0));
}

#[test]
fn memory_of_a_dropped_copy_is_freed_if_the_device_has_failed() {
    let calls = run("dropped_copy", "fail=cuEventQuery:719");
    assert_eq!((count(&calls, "cuMemHostAlloc"), count(&calls, "cuMemFreeHost")), (1, 1));
}

fn dropped_copy() -> Result<()> {
    let device = Device::cuda(0)?;
    let stream = device.new_stream()?;
    let mut buffer = stream.zeros::<u32>(100)?;
    stream.synchronize()?;
    drop(stream.upload_async(device.pinned_copy(&[1; 100])?, &mut buffer)?);
    stream.synchronize()
}

#[test]
fn a_scope_waits_once() {
    let calls = run("scope", "");
    assert_eq!(count(&calls, "cuMemcpyAsync"), 2);
    assert_eq!(count(&calls, "cuStreamSynchronize"), 1);
}

/// The driver's other copies wait for the stream, if both sides are the host's.
#[test]
fn copies_within_the_host_do_not_wait_where_the_driver_has_batches() {
    let calls = run("on_the_host", "");
    assert_eq!((count(&calls, "cuMemcpyBatchAsync_v2"), count(&calls, "cuMemcpyAsync")), (3, 1));
    let calls = run_with("on_the_host", "", &fake_driver(&["batches"]));
    assert_eq!(count(&calls, "cuMemcpyAsync"), 4);
}

fn on_the_host() -> Result<()> {
    let device = Device::cuda(0)?;
    let (stream, legacy) = (device.new_stream()?, device.legacy_stream()?);
    let (source, mut target) = (device.pinned_copy(&[1_u32, 2, 3])?, device.pinned_zeros::<u32>(3)?);
    stream.copy(source.slice(..2)?, target.slice_mut(1..)?)?;
    assert_eq!(*target, [0, 1, 2]);
    let source = stream.upload_async(source, &mut target)?.wait()?;
    assert_eq!(*target, [1, 2, 3]);
    let mut target = stream.download_async(source.slice(..)?, target)?.wait()?;
    legacy.copy(source.slice(2..)?, target.slice_mut(..1)?)?; // it takes no batches
    assert_eq!(*target, [3, 2, 3]);
    Ok(())
}

fn scope() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let (mut a, mut b) = (stream.zeros::<u8>(2)?, stream.zeros::<u8>(2)?);
    stream.scope(|scope| {
        scope.upload_into(&[1, 2], &mut a)?;
        scope.upload_into(&[3, 4], &mut b)
    })?
}

#[test]
fn values_of_any_size_are_filled_in_without_waiting() {
    let calls = run("fills", "");
    assert_eq!(count(&calls, "cuStreamSynchronize"), 1, "only the value of 400 bytes is copied");
    assert_eq!(count(&calls, "cuMemsetD8Async"), 1, "equal bytes are one fill");
    assert_eq!(count(&calls, "cuMemsetD32Async"), 2, "two words");
    assert_eq!(count(&calls, "cuMemcpyAsync"), 10 + 2 + 1, "the value itself, then twice as many each time");
}

fn fills() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let buffers = (stream.fill(0.0_f64, 1000)?, stream.fill(0x1_0000_0002_u64, 1000)?);
    let large: [u32; 100] = std::array::from_fn(|index| index as u32);
    let large = stream.fill(large, 3)?;
    std::mem::forget((buffers, large));
    Ok(())
}

#[test]
fn managed_memory_is_prefetched_and_advised_on_request() {
    let calls = run("managed", "");
    let asked: Vec<&str> = calls
        .iter()
        .map(String::as_str)
        .filter(|call| call.contains(" to ") || call.contains(" for "))
        .collect();
    let expected = [
        "prefetch to 0",
        "prefetch to -1",
        "advice 1 for 0",
        "advice 3 for -1",
        "advice 4 for 0",
        "advice 6 for -1",
    ];
    assert_eq!(asked, expected);
    assert_eq!(count(&calls, "cuMemFree_v2"), 1);
}

fn managed() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let data = stream.managed_zeros::<u32>(10)?;
    stream.prefetch(&data, Location::Device)?;
    stream.prefetch(&data, Location::Host)?;
    data.advise(Advice::ReadMostly(true))?;
    data.advise(Advice::PreferredLocation(Some(Location::Host)))?;
    data.advise(Advice::PreferredLocation(None))?;
    data.advise(Advice::AccessedBy(Location::Host, false))?;
    assert_eq!(data.read()?, [0; 10]);
    Ok(())
}

#[test]
fn managed_memory_that_the_host_may_not_use_at_any_time_is_unsupported() {
    let calls = run("no_managed", "managed=0");
    assert_eq!(count(&calls, "cuMemAllocManaged"), 0);
}

fn no_managed() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let error = stream.managed_zeros::<u8>(1).unwrap_err().to_string();
    assert!(
        error.starts_with("managed memory is not supported on CUDA device 0 (Fake GPU): the host"),
        "{error}"
    );
    Ok(())
}

#[test]
fn a_new_pool_has_the_requested_settings_and_is_destroyed_after_its_last_buffer() {
    let calls = run("own_pool", "devices=3");
    let about: Vec<&str> = calls.iter().filter_map(|call| call.strip_prefix("pool ")).collect();
    let expected = [
        "of [1, 0, 1, 0]", // plain memory of device 0: the pool of the device
        "attribute 4 = 18446744073709551615",
        "1 allows 1",
        "of [1, 0, 1, 0]",
        "attribute 4 = 18446744073709551615",
        "2 allows 1", // which was a peer before
        "attribute 4 = 4096",
        "attribute 1 = 0",
        "attribute 2 = 0",
        "attribute 3 = 0",
        "1 allows 2",
        "2 allows 2", // which is one now
        "attribute 4 = 8192",
        "2 destroyed",
    ];
    assert_eq!(about, expected);
    let order = ["allocated from pool 2", "cuMemPoolTrimTo", "cuMemFreeAsync", "cuMemPoolDestroy"];
    let order_found: Vec<&String> = calls.iter().filter(|call| order.contains(&call.as_str())).collect();
    assert_eq!(order_found, order);
}

fn own_pool() -> Result<()> {
    let device = Device::cuda(0)?;
    let stream = device.new_stream()?;
    Device::cuda(1)?.enable_peer_access(&device)?;
    let options = PoolOptions::new()
        .with_release_threshold(4096)
        .with_reuse_follow_event_dependencies(false)
        .with_reuse_allow_opportunistic(false)
        .with_reuse_allow_internal_dependencies(false);
    let pool = device.new_memory_pool(options)?;
    Device::cuda(2)?.enable_peer_access(&device)?;
    let buffer = pool.zeros::<u8>(&stream, 100)?;
    pool.set_release_threshold(8192)?;
    pool.trim(0)?;
    drop(pool);
    assert_eq!(stream.download(&buffer)?, [0; 100]);
    drop(buffer);
    stream.synchronize()
}

#[test]
fn a_gpu_without_pools_is_an_error() {
    run("no_pools", "pools=0");
}

fn no_pools() -> Result<()> {
    let device = Device::cuda(0)?;
    let error = device.new_memory_pool(PoolOptions::new()).unwrap_err();
    let Error::Unsupported { operation: "memory pools", device: name, .. } = &error else {
        panic!("{error}")
    };
    assert!(name.contains("Fake GPU"), "{error}");
    let stream = device.new_stream()?;
    assert_eq!(stream.download(&device.memory_pool().zeros::<u8>(&stream, 3)?)?, [0; 3]);
    Ok(())
}

#[test]
fn a_pool_keeps_freed_memory_by_default() {
    let calls = run("pool", "");
    let set: Vec<&str> = calls.iter().filter_map(|call| call.strip_prefix("pool attribute ")).collect();
    assert_eq!(set, ["4 = 18446744073709551615", "6 = 0", "8 = 0", "4 = 5000"]);
}

fn pool() -> Result<()> {
    let device = Device::cuda(0)?;
    let (stream, pool) = (device.new_stream()?, device.memory_pool());
    let (small, large) = (stream.zeros::<u8>(300)?, stream.zeros::<u8>(700)?);
    drop(large);
    stream.synchronize()?;
    let statistics = pool.statistics()?;
    assert_eq!((statistics.used, statistics.used_high), (300, 1000));
    pool.reset_statistics()?;
    assert_eq!(pool.statistics()?.used_high, 300);
    pool.set_release_threshold(5000)?;

    pool.set_limit(Some(500));
    let error = stream.zeros::<u8>(201).unwrap_err().to_string();
    assert!(error.contains("201 bytes requested, but 300 of at most 500 are in use"), "{error}");
    let rest = stream.zeros::<u8>(200)?;
    drop((small, rest));
    stream.zeros::<u8>(500)?;
    Ok(())
}
