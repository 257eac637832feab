//! Kernels on several devices in one program. Copies between devices are in `runtime/memory/peers.rs`.

use ferrogrid::prelude::*;
use ferrogrid::{CpuOptions, Device};

use crate::language::kernels::elementwise;
use crate::table::not_for_this_device;
use crate::{Case, Outcome, expect, expect_error};

pub(crate) const CASES: &[Case] = &[
    ("one_program_runs_on_all_devices", one_program_runs_on_all_devices),
    ("kernels_use_the_memory_of_a_peer", kernels_use_the_memory_of_a_peer),
];

fn one_program_runs_on_all_devices(device: &Device) -> Outcome {
    let mut devices = Device::all();
    devices.push(Device::cpu_with(CpuOptions::new().workers(2))?);
    devices.retain(|other| other != device);
    devices.insert(0, device.clone());
    let n = 100_003;
    let streams: Vec<Stream> = devices.iter().map(Device::new_stream).collect::<ferrogrid::Result<_>>()?;
    // All devices get work before any wait; each part goes from device to device, in a ring.
    let mut parts = Vec::new();
    for (number, stream) in streams.iter().enumerate() {
        let x = stream.fill(number as f32, n)?;
        let mut y = stream.fill(1.0_f32, n)?;
        elementwise::saxpy(stream, Grid::cover(n), 10.0, &x, &mut y)?;
        parts.push(y);
    }
    for (number, stream) in streams.iter().enumerate() {
        let x = stream.duplicate_peer(&parts[(number + 1) % parts.len()])?;
        let mut sum = stream.zeros::<f32>(n)?;
        elementwise::saxpy(stream, Grid::cover(n), 2.0, &x, &mut sum)?;
        let expected = 2.0 * (10.0 * ((number + 1) % parts.len()) as f32 + 1.0);
        let found = stream.download(&sum)?;
        expect(&format!("{}", stream.device()), found.iter().all(|&value| value == expected), true)?;
    }
    Ok(())
}

fn kernels_use_the_memory_of_a_peer(device: &Device) -> Outcome {
    let peer = match device.ordinal() {
        Some(_) => Device::all().into_iter().find(|other| other.is_cuda() && other != device),
        None => Some(Device::cpu_with(CpuOptions::new().workers(2))?),
    };
    let Some(peer) = peer else { return not_for_this_device("there is one GPU") };
    if !peer.can_access_peer(device)? {
        return not_for_this_device("the GPUs cannot reach each other");
    }
    let (theirs, ours) = (peer.new_stream()?, device.new_stream()?);
    let n = 50_000;
    let mut data = ours.upload(&vec![1_u32; n])?;
    let refused = elementwise::increment(&theirs, Grid::cover(n), &mut data);
    expect_error("before", refused, |error| matches!(error, Error::DeviceMismatch { .. }))?;
    peer.enable_peer_access(device)?;
    for _ in 0..50 {
        elementwise::increment(&theirs, Grid::cover(n), &mut data)?;
        elementwise::increment(&ours, Grid::cover(n), &mut data)?;
    }
    let mut copy = theirs.zeros::<u32>(n)?;
    elementwise::copy(&theirs, Grid::cover(n), &data, &mut copy)?;
    drop(data);
    expect("in turns", theirs.download(&copy)?, vec![101; n])
}
