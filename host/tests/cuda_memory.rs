//! Virtual memory and kinds of pools on a fake driver (`fake_driver/libcuda.rs`), each scenario in a process of its own:
//! which calls are made, and what is said where the driver or the GPU lacks something.
#![cfg(target_os = "linux")]

mod scenario;

use ferrogrid_host::{Device, Error, Result};
use scenario::{Scenario, count, fake_driver, run, run_requested, run_with};

const SCENARIOS: &[Scenario] = &[
    ("growing_beside_a_peer", growing_beside_a_peer),
    ("no_virtual_memory", no_virtual_memory),
    ("old_driver", old_driver),
    ("mapping_fails", mapping_fails),
];

#[test]
#[ignore = "the other tests run it, in a process with a fake driver"]
fn scenario() {
    run_requested(SCENARIOS);
}

#[test]
fn peers_are_allowed_into_what_is_mapped_before_and_after() {
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
