//! Virtual memory and kinds of pools on a fake driver (`fake_driver/libcuda.rs`), each scenario in a separate process:
//! which calls are made, and what is said where the driver or the GPU lacks something.

use crate::scenario::{Scenario, count, fake_driver, run, run_requested, run_with};
use ferrogrid_host::{Device, Error, IpcError, IpcMemoryHandle, PoolKind, PoolOptions, Result};

const SCENARIOS: &[Scenario] = &[
    ("growing_beside_a_peer", growing_beside_a_peer),
    ("no_virtual_memory", no_virtual_memory),
    ("old_driver", old_driver),
    ("mapping_fails", mapping_fails),
    ("kinds_of_pools", kinds_of_pools),
    ("kinds_that_are_not_there", kinds_that_are_not_there),
    ("host_visible_pools_and_a_reset", host_visible_pools_and_a_reset),
    ("shared", shared),
    ("not_shareable", not_shareable),
    ("memory_of_a_graph", memory_of_a_graph),
];

#[test]
#[ignore = "the other tests run it, in a process with a fake driver"]
fn scenario() {
    run_requested(SCENARIOS);
}

#[test]
fn peers_access_earlier_and_later_mappings() {
    let calls = run("growing_beside_a_peer", "devices=2");
    let order: Vec<&str> = calls.iter().filter_map(|call| call.strip_prefix("mapping allows ")).collect();
    // The first piece, then that for the peer, then the second piece for both.
    assert_eq!(order, ["0", "1", "0", "1"]);
    assert_eq!((count(&calls, "cuMemUnmap"), count(&calls, "cuMemAddressFree")), (2, 1));
    assert_eq!((count(&calls, "cuMemCreate"), count(&calls, "cuMemRelease")), (2, 2));
}

fn growing_beside_a_peer() -> Result<()> {
    let (device, peer) = (Device::cuda(0)?, Device::cuda(1)?);
    let stream = device.new_stream()?;
    let mut buffer = stream.growable::<u8>(100 << 20)?;
    let gone = stream.growable::<u8>(100)?;
    assert!(gone.is_empty());
    std::mem::forget(gone); // a peer must not trip over what is left of it
    buffer.resize(&stream, 100, 1)?;
    peer.enable_peer_access(&device)?;
    buffer.resize(&stream, 5 << 20, 2)?;
    drop(buffer);
    stream.synchronize()?;
    // What has been retired goes with the next.
    drop(stream.growable::<u8>(1)?);
    std::mem::forget(stream.growable::<u8>(1)?);
    Ok(())
}

#[test]
fn a_gpu_without_virtual_memory_is_named() {
    let calls = run("no_virtual_memory", "virtual_memory=0");
    assert_eq!(count(&calls, "cuMemAddressReserve"), 0);
}

fn no_virtual_memory() -> Result<()> {
    let refused = Device::cuda(0)?.new_stream()?.growable::<u8>(100).unwrap_err();
    assert!(matches!(refused, Error::Unsupported { operation: "a buffer that grows", .. }), "{refused}");
    Ok(())
}

#[test]
fn a_driver_without_the_functions_is_named() {
    run_with("old_driver", "", &fake_driver(&["virtual_memory"]));
}

fn old_driver() -> Result<()> {
    let refused = Device::cuda(0)?.new_stream()?.growable::<u8>(100).unwrap_err();
    let Error::MissingSymbol { symbol, found, .. } = refused else { panic!("{refused}") };
    assert_eq!((symbol, found), ("cuMemGetAllocationGranularity", (12, 4)));
    Ok(())
}

#[test]
fn a_mapping_that_fails_leaves_nothing() {
    let calls = run("mapping_fails", "fail=cuMemSetAccess:800:2");
    assert_eq!((count(&calls, "cuMemCreate"), count(&calls, "cuMemRelease")), (2, 2));
    assert_eq!(count(&calls, "cuMemUnmap"), 2, "the one that failed, and at the end the first");
}

fn mapping_fails() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let mut buffer = stream.growable::<u8>(100 << 20)?;
    buffer.resize(&stream, 100, 1)?;
    let failed = buffer.resize(&stream, 3 << 20, 2).unwrap_err();
    assert!(matches!(failed, Error::Driver { operation: "cuMemSetAccess", code: 800, .. }), "{failed}");
    assert_eq!(buffer.len(), 100);
    assert_eq!(stream.download(buffer.slice(98..)?)?, [1, 1]);
    drop(buffer);
    stream.synchronize()
}

#[test]
fn pools_have_the_requested_kind_of_memory() {
    let calls = run("kinds_of_pools", "version=13000,devices=2");
    let made: Vec<&str> = calls.iter().filter_map(|call| call.strip_prefix("pool of ")).collect();
    assert_eq!(made, ["[2, 0, 1, 0]", "[1, 0, 1, 0]", "[1, 0, 2, 0]", "[1, 0, 3, 1]"]);
    let allowed: Vec<&String> = calls.iter().filter(|call| call.contains(" allows ")).collect();
    // The second pool is in the device's memory, so access is granted to the peer only. Pools in the host's grant it to both.
    let expected = ["2 allows 1", "3 allows 0", "3 allows 1", "4 allows 0", "4 allows 1"];
    assert_eq!(
        allowed,
        expected.map(|pool| format!("pool {pool}")).iter().collect::<Vec<_>>(),
        "managed: for all"
    );
    assert_eq!(count(&calls, "cuMemAllocManaged"), 0);
    assert_eq!((count(&calls, "cuMemAllocFromPoolAsync"), count(&calls, "cuMemFreeAsync")), (6, 6));
}

fn kinds_of_pools() -> Result<()> {
    let device = Device::cuda(0)?;
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let kinds = [PoolKind::Managed, PoolKind::Host, PoolKind::HostNuma(1)];
    for (number, kind) in kinds.into_iter().enumerate() {
        let pool = device.new_memory_pool(PoolOptions::new().with_kind(kind))?;
        assert_eq!(pool.kind(), kind);
        let mut numbers = pool.managed_copy(&stream, &[1_u32, 2, 3])?;
        other.fill_into(9, numbers.slice_mut(1..)?)?;
        assert_eq!(numbers.read()?, [1, 9, 9], "after the work of both");
        numbers.write()?[0] = 5;
        assert_eq!(stream.download(&numbers)?, [5, 9, 9]);
        assert_eq!(pool.managed_zeros::<u64>(&stream, 2)?.read()?, [0, 0]);
        if number == 0 {
            // From here on the pools that come have a peer.
            let peer = Device::cuda(1)?;
            peer.enable_peer_access(&device)?;
        }
    }
    device.synchronize()
}

#[test]
fn pools_that_are_not_there_are_named() {
    run("kinds_that_are_not_there", "");
    run("kinds_that_are_not_there", "version=13000,host_pools=0,managed=0,handle_types=0");
}

fn kinds_that_are_not_there() -> Result<()> {
    let device = Device::cuda(0)?;
    for kind in [PoolKind::Managed, PoolKind::Host, PoolKind::HostNuma(0)] {
        let refused = device.new_memory_pool(PoolOptions::new().with_kind(kind));
        assert!(matches!(refused, Err(Error::Unsupported { .. })), "{kind:?}: {refused:?}");
        let both = device.new_memory_pool(PoolOptions::new().with_kind(kind).shareable());
        assert!(matches!(both, Err(Error::Unsupported { operation: "a shareable pool", .. })), "{both:?}");
    }
    let stream = device.new_stream()?;
    for pool in [device.memory_pool(), device.new_memory_pool(PoolOptions::new())?] {
        let refused = pool.managed_zeros::<u8>(&stream, 1);
        assert!(matches!(refused, Err(Error::Unsupported { .. })), "{refused:?}");
    }
    Ok(())
}

/// Slices of the host lead there, so a reset must not take it away.
#[test]
fn memory_of_pools_that_the_host_uses_keeps_a_reset_off() {
    run("host_visible_pools_and_a_reset", "version=13000");
}

fn host_visible_pools_and_a_reset() -> Result<()> {
    let device = Device::cuda(0)?;
    let stream = device.new_stream()?;
    let managed = device.new_memory_pool(PoolOptions::new().with_kind(PoolKind::Managed))?;
    let host = device.new_memory_pool(PoolOptions::new().with_kind(PoolKind::Host))?;
    let (one, two) = (managed.managed_zeros::<u8>(&stream, 5)?, host.managed_zeros::<u8>(&stream, 5)?);
    let (none, ordinary) =
        (host.managed_zeros::<u8>(&stream, 0)?, device.memory_pool().zeros::<u8>(&stream, 5)?);
    // SAFETY: there is no other thread and no other library.
    let reset = || unsafe { device.reset() };
    let refused = reset().unwrap_err();
    assert!(matches!(refused, Error::HostMemoryInUse { pinned: 0, managed: 2, .. }), "{refused}");
    drop((one, two));
    reset()?;
    let gone = ordinary.device().memory_info();
    assert!(matches!(gone, Err(Error::DeviceReset { .. })), "{gone:?}");
    drop((none, managed, host));
    Ok(())
}

#[test]
fn a_pool_is_shared_by_a_descriptor_and_its_buffers_by_bytes() {
    let calls = run("shared", "");
    assert!(calls.iter().any(|call| call == "pool of [1, 1, 1, 0]"));
    assert_eq!((count(&calls, "cuMemPoolImportPointer"), count(&calls, "cuMemFree_v2")), (2, 2));
    assert_eq!(count(&calls, "cuMemPoolDestroy"), 2);
}

/// Both sides in one process, as the driver allows.
fn shared() -> Result<()> {
    let device = Device::cuda(0)?;
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let pool = device.new_memory_pool(PoolOptions::new().shareable())?;
    let buffer = pool.upload(&stream, &[1_u32, 2, 3, 4])?;
    stream.synchronize()?;
    let bytes = pool.ipc_handle(&buffer)?.to_bytes();
    let handle = IpcMemoryHandle::from_bytes(&bytes)?;
    assert_eq!(handle.byte_len(), 16);

    let opened = device.open_memory_pool(pool.share()?)?;
    // SAFETY: four `u32`, which have been written and outlive what opens them here; uses are waited for.
    let open = |stream: &_| unsafe { opened.open::<u32>(stream, &handle) };
    let mut theirs = open(&other)?;
    assert_eq!(other.download(&theirs)?, [1, 2, 3, 4]);
    other.fill_into(7, theirs.slice_mut(2..)?)?;
    let copy = stream.duplicate(&theirs)?;
    drop(theirs); // closed after the copy
    assert_eq!(stream.download(&copy)?, [1, 2, 7, 7]);
    assert_eq!(stream.download(&buffer)?, [1, 2, 7, 7]);
    let again = open(&stream)?;
    drop(opened); // the buffer keeps it
    assert_eq!(stream.download(&again)?, [1, 2, 7, 7]);
    drop(again);
    stream.synchronize()?;
    drop((buffer, pool));
    stream.synchronize()
}

#[test]
fn memory_that_cannot_be_shared_is_refused() {
    run("not_shareable", "");
}

fn not_shareable() -> Result<()> {
    let device = Device::cuda(0)?;
    let stream = device.new_stream()?;
    let is_other = |error: Error| matches!(error, Error::Ipc(IpcError::OtherPool));
    let (pool, plain) = (
        device.new_memory_pool(PoolOptions::new().shareable())?,
        device.new_memory_pool(PoolOptions::new())?,
    );
    let (own, foreign, device_own) =
        (pool.zeros::<u16>(&stream, 3)?, plain.zeros::<u16>(&stream, 3)?, stream.zeros::<u16>(3)?);
    assert!(is_other(plain.share().unwrap_err()) && is_other(device.memory_pool().share().unwrap_err()));
    assert!(is_other(plain.ipc_handle(&foreign).unwrap_err()));
    assert!(is_other(pool.ipc_handle(&foreign).unwrap_err()));
    assert!(is_other(pool.ipc_handle(&device_own).unwrap_err()));
    let empty = pool.ipc_handle(&pool.zeros::<u16>(&stream, 0)?).unwrap_err();
    assert!(matches!(empty, Error::Ipc(IpcError::Empty)), "{empty}");

    let no_pool = device.open_memory_pool(std::fs::File::open("/dev/null").unwrap()).unwrap_err();
    assert!(matches!(no_pool, Error::Driver { code: 1, .. }), "{no_pool}");
    let cpu = Device::cpu().open_memory_pool(std::io::stdin()).unwrap_err();
    assert!(matches!(cpu, Error::Unsupported { .. }), "{cpu}");
    let opened = device.open_memory_pool(pool.share()?)?;
    let handle = pool.ipc_handle(&own)?;
    // SAFETY: none of them opens anything.
    let (wrong_size, wrong_kind, elsewhere) = unsafe {
        (
            opened.open::<u32>(&stream, &handle).unwrap_err(),
            stream.ipc_open::<u16>(&handle).unwrap_err(),
            opened.open::<u16>(&Device::cpu().new_stream()?, &handle).unwrap_err(),
        )
    };
    assert!(
        matches!(wrong_size, Error::Ipc(IpcError::Elements { bytes: 6, element_size: 4, .. })),
        "{wrong_size}"
    );
    assert!(matches!(wrong_kind, Error::Ipc(IpcError::OtherKind { .. })), "{wrong_kind}");
    assert!(matches!(elsewhere, Error::DeviceMismatch { .. }), "{elsewhere}");
    Ok(())
}

/// Memory that nothing is written to is there when its node has run; only what else must have run needs another.
#[test]
fn an_allocation_that_waits_for_nothing_is_a_single_node() {
    let calls = run("memory_of_a_graph", "");
    let nodes = ["cuGraphAddMemAllocNode", "cuGraphAddEmptyNode"].map(|call| count(&calls, call));
    assert_eq!(nodes, [2, 1]);
}

fn memory_of_a_graph() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let mut y = stream.zeros::<u16>(300)?;
    let (graph, ()) = stream.capture(|capture| {
        let mut y = capture.write(&mut y)?;
        drop(capture.uninit_node::<u16>(&[], 300)?);
        let before = capture.node(&[], |line| line.fill_into(1, &mut y))?;
        drop(capture.uninit_node::<u16>(&[before], 300)?);
        Ok(())
    })?;
    graph.instantiate().map(drop)
}
