//! Several devices: copies between them, and the use of each other's memory.

use std::time::Duration;

use ferrogrid::{CpuOptions, Device, Error, GraphError, Stream};

use crate::runtime::{Case, Gate, Outcome};

pub(crate) const CASES: &[Case] = &[
    ("copies_between_devices_arrive", copies_between_devices_arrive),
    ("copies_between_devices_are_in_order", copies_between_devices_are_in_order),
    ("buffers_of_other_devices_may_be_dropped_at_once", buffers_of_other_devices_may_be_dropped_at_once),
    ("a_copy_lets_no_other_work_use_the_buffer", a_copy_lets_no_other_work_use_the_buffer),
    ("peer_access_lets_streams_use_other_buffers", peer_access_lets_streams_use_other_buffers),
    ("wrong_copies_between_devices_are_refused", wrong_copies_between_devices_are_refused),
    ("random_work_on_two_devices_is_ordered", random_work_on_two_devices_is_ordered),
];

/// Devices to copy to and from: for a GPU all others and the CPU, for a CPU device a new one.
fn partners(device: &Device) -> ferrogrid::Result<Vec<Device>> {
    if device.is_cuda() {
        return Ok(Device::all().into_iter().filter(|other| other != device).collect());
    }
    Ok(vec![Device::cpu_with(CpuOptions::new().workers(2))?])
}

fn copies_between_devices_arrive(device: &Device) -> Outcome {
    for partner in partners(device)? {
        let (here, there) = (device.new_stream()?, partner.new_stream()?);
        for len in [0, 1, 1000, 300_000] {
            let data: Vec<u32> = (0..len).collect();
            let ours = here.upload(&data)?;
            let mut theirs = there.zeros::<u32>(data.len())?;
            here.copy_peer(&ours, &mut theirs)?;
            assert_eq!(there.download(&theirs)?, data, "{len} pushed from {device} to {partner}");
            let back = here.duplicate_peer(&theirs)?;
            assert_eq!(back.device(), device);
            assert_eq!(here.download(&back)?, data, "{len} pulled from {partner} to {device}");
            let mut theirs = there.zeros::<u32>(data.len())?;
            there.copy_peer(&ours, &mut theirs)?;
            assert_eq!(there.download(&theirs)?, data, "{len} pulled from {device} to {partner}");
        }
        let ours = here.upload(&[1_u8, 2, 3, 4, 5])?;
        let mut theirs = there.upload(&[9_u8; 4])?;
        there.copy_peer(ours.slice(2..4)?, theirs.slice_mut(1..3)?)?;
        assert_eq!(there.download(&theirs)?, [9, 3, 4, 9]);
    }
    Ok(())
}

fn copies_between_devices_are_in_order(device: &Device) -> Outcome {
    for partner in partners(device)? {
        let (here, there, third) = (device.new_stream()?, partner.new_stream()?, device.new_stream()?);
        for copying in [&here, &there] {
            let mut ours = here.zeros::<u32>(10_000)?;
            let mut theirs = there.zeros::<u32>(10_000)?;
            // All work on our buffer waits for the gate. What a copy with the CPU waits for must end by itself.
            Gate::close(&here)?.open_soon();
            here.fill_into(1, &mut ours)?;
            copying.copy_peer(&ours, &mut theirs)?;
            third.fill_into(2, &mut ours)?;
            there.copy_peer(&theirs, &mut ours)?;
            there.fill_into(3, &mut theirs)?;
            assert_eq!(third.download(&ours)?, [1; 10_000], "{device} and {partner}");
            assert_eq!(there.download(&theirs)?, [3; 10_000], "{device} and {partner}");
        }
    }
    Ok(())
}

fn buffers_of_other_devices_may_be_dropped_at_once(device: &Device) -> Outcome {
    // Other cases allocate on the devices of the suite meanwhile, but not on new ones.
    let device = if device.is_cuda() { device.clone() } else { Device::cpu_with(CpuOptions::new())? };
    for partner in partners(&device)? {
        let (here, there) = (device.new_stream()?, partner.new_stream()?);
        let used =
            || Ok::<_, Error>([&device, &partner].map(|it| it.memory_pool().statistics().map(|s| s.used)));
        let before = used()?;
        for round in 0..20 {
            let ours = here.fill(round, 5000)?;
            let mut theirs = there.zeros::<u32>(5000)?;
            // The last to use either is a stream of the other device.
            there.copy_peer(&ours, &mut theirs)?;
            drop(ours);
            let mut back = here.zeros::<u32>(5000)?;
            here.copy_peer(&theirs, &mut back)?;
            drop(theirs);
            assert_eq!(here.download(&back)?, [round; 5000]);
        }
        here.synchronize()?;
        there.synchronize()?;
        if device.is_cuda() == partner.is_cuda() {
            // Streams that only free memory need no wait.
            std::thread::sleep(Duration::from_millis(20));
            device.synchronize()?;
            partner.synchronize()?;
            assert_eq!(used()?, before, "{device} and {partner}");
        }
    }
    Ok(())
}

/// The stream has used it, but only for that copy.
fn a_copy_lets_no_other_work_use_the_buffer(device: &Device) -> Outcome {
    for partner in partners(device)? {
        let (here, there) = (device.new_stream()?, partner.new_stream()?);
        let (mut ours, mut theirs) = (here.zeros::<u32>(100)?, there.fill(1_u32, 100)?);
        // Another case may have let GPUs use each other's memory.
        if here.fill_into(1, &mut theirs).is_ok() || there.fill_into(1, &mut ours).is_ok() {
            continue;
        }
        for copying in [&here, &there] {
            copying.copy_peer(&theirs, &mut ours)?;
            copying.copy_peer(&ours, &mut theirs)?;
        }
        for refused in [here.fill_into(2, &mut theirs), there.fill_into(2, &mut ours)] {
            assert!(
                matches!(refused, Err(Error::DeviceMismatch { .. })),
                "{device} and {partner}: {refused:?}"
            );
        }
        assert_eq!(here.download(&ours)?, [1; 100]);
    }
    Ok(())
}

fn peer_access_lets_streams_use_other_buffers(device: &Device) -> Outcome {
    assert!(device.can_access_peer(device)?);
    device.enable_peer_access(device)?;
    for partner in partners(device)? {
        let (here, there) = (device.new_stream()?, partner.new_stream()?);
        let mut theirs = there.upload(&[1_u32, 2, 3])?;
        let refused = here.download(&theirs).unwrap_err();
        assert!(matches!(refused, Error::DeviceMismatch { .. }), "{refused}");
        if !device.can_access_peer(&partner)? {
            let refused = device.enable_peer_access(&partner).unwrap_err();
            assert!(matches!(refused, Error::NoPeerAccess { .. }), "{refused}");
            let text = refused.to_string();
            assert!(text.contains(&device.to_string()) && text.contains(&partner.to_string()), "{text}");
            continue;
        }
        device.enable_peer_access(&partner)?;
        device.enable_peer_access(&partner)?;
        assert_eq!(here.download(&theirs)?, [1, 2, 3]);
        here.fill_into(7, theirs.slice_mut(1..)?)?;
        let ours = here.duplicate(&theirs)?;
        assert_eq!(there.download(&theirs)?, [1, 7, 7]);
        assert_eq!(here.download(&ours)?, [1, 7, 7]);
        // Later buffers, too.
        assert_eq!(here.download(&there.fill(5_u32, 1000)?)?, [5; 1000]);
        // Not the other way round.
        let refused = there.download(&ours).unwrap_err();
        assert!(matches!(refused, Error::DeviceMismatch { .. }), "{refused}");
    }
    Ok(())
}

fn wrong_copies_between_devices_are_refused(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let source = stream.upload(&[1_u32, 2, 3])?;
    for partner in partners(device)? {
        let there = partner.new_stream()?;
        let mut target = there.zeros::<u32>(2)?;
        let refused = stream.copy_peer(&source, &mut target).unwrap_err();
        let expected = Error::LengthMismatch { operation: "copy_peer", source_length: 3, target_length: 2 };
        assert_eq!(refused, expected);
        let third = Device::cpu_with(CpuOptions::new())?.new_stream()?;
        let refused = third.copy_peer(source.slice(1..)?, &mut target).unwrap_err();
        assert!(matches!(refused, Error::DeviceMismatch { .. }), "{refused}");
        let mut zeros = stream.zeros::<u32>(2)?;
        let recorded = stream.capture(|capture| {
            let zeros = capture.write(&mut zeros)?;
            capture.copy_peer(zeros.view(), &mut target)
        });
        let refused = recorded.map(drop).unwrap_err();
        assert!(matches!(refused, Error::Graph(GraphError::NotRecordable { .. })), "{refused}");
    }
    // On one device it is an ordinary copy.
    let copy = stream.duplicate_peer(&source)?;
    assert_eq!(stream.download(&copy)?, [1, 2, 3]);
    Ok(())
}

/// A few buffers on two devices, and what they must hold.
fn random_work_on_two_devices_is_ordered(device: &Device) -> Outcome {
    let mut random = fastrand::Rng::with_seed(0xfe44);
    for partner in partners(device)? {
        let devices = [device, &partner];
        let streams: Vec<Stream> =
            (0..4).map(|number| devices[number % 2].new_stream()).collect::<ferrogrid::Result<_>>()?;
        let mut buffers = Vec::new();
        for stream in &streams {
            buffers.push((stream.zeros::<u32>(2000)?, 0_u32));
        }
        for step in 1..300 {
            let (a, b) = (random.usize(..4), random.usize(..4));
            match random.u32(..6) {
                0 => {
                    let stream = &streams[(a + 2) % 4];
                    let (buffer, value) = &mut buffers[a];
                    stream.fill_into(step, &mut *buffer)?;
                    *value = step;
                }
                1 => {
                    let (buffer, value) = &buffers[a];
                    assert_eq!(streams[(a + 2) % 4].download(buffer)?, [*value; 2000], "step {step}");
                }
                2 => {
                    let stream = &streams[random.usize(..2) * 2 + a % 2];
                    buffers[a] = (stream.fill(step, 2000)?, step);
                }
                _ if a == b => {}
                _ => {
                    let [(source, value), (target, changed)] = buffers.get_disjoint_mut([a, b])?;
                    streams[if random.bool() { a } else { b }].copy_peer(&*source, &mut *target)?;
                    *changed = *value;
                }
            }
        }
        for (number, (buffer, value)) in buffers.iter().enumerate() {
            assert_eq!(streams[number].download(buffer)?, [*value; 2000], "buffer {number}");
        }
    }
    Ok(())
}
