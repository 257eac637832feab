//! Page-locked memory that devices use in place, alternating with the host.

use ferrogrid::{CpuOptions, Device, Error, GraphError, Result, Stream};

use crate::runtime::{Case, Gate, Outcome};

pub(crate) const CASES: &[Case] = &[
    ("the_host_reads_writes_of_a_device_in_place", the_host_reads_writes_of_a_device_in_place),
    ("the_host_writes_after_devices_have_read_in_place", the_host_writes_after_devices_have_read_in_place),
    ("uses_in_place_on_two_streams_are_ordered", uses_in_place_on_two_streams_are_ordered),
    ("first_reads_in_place_do_not_wait_for_each_other", first_reads_in_place_do_not_wait_for_each_other),
    ("memory_in_use_in_place_may_be_dropped", memory_in_use_in_place_may_be_dropped),
    ("background_copies_follow_uses_in_place", background_copies_follow_uses_in_place),
    ("every_kind_of_page_locked_memory_is_used_in_place", every_kind_of_page_locked_memory_is_used_in_place),
    ("borrowed_memory_is_free_after_uses_in_place", borrowed_memory_is_free_after_uses_in_place),
    ("threads_share_memory_that_is_used_in_place", threads_share_memory_that_is_used_in_place),
    ("other_devices_use_page_locked_memory_if_they_can", other_devices_use_page_locked_memory_if_they_can),
    ("recordings_refuse_page_locked_memory", recordings_refuse_page_locked_memory),
];

const LENGTH: usize = 1000;

fn the_host_reads_writes_of_a_device_in_place(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut host = device.pinned_zeros::<u32>(LENGTH)?;
    for round in 1..10 {
        let gate = Gate::close(&stream)?;
        stream.fill_into(round, &mut host)?;
        stream.fill_into(0, host.slice_mut(..10)?)?;
        gate.open_soon();
        let found = if round % 2 == 0 { &*host } else { host.read()? };
        assert_eq!((&found[..10], &found[10..]), (&[0; 10][..], &[round; LENGTH - 10][..]));
    }
    let gate = Gate::close(&stream)?;
    stream.fill_into(77, &mut host)?;
    gate.open_soon();
    assert_eq!(host.into_vec(), [77; LENGTH]);
    Ok(())
}

fn the_host_writes_after_devices_have_read_in_place(device: &Device) -> Outcome {
    let (first, second) = (device.new_stream()?, device.new_stream()?);
    let mut host = device.pinned_copy(&[1_u32; LENGTH])?;
    let (mut x, mut y) = (first.zeros::<u32>(LENGTH)?, second.zeros::<u32>(LENGTH)?);
    first.synchronize()?;
    second.synchronize()?;
    for round in 1..10 {
        let gates = (Gate::close(&first)?, Gate::close(&second)?);
        first.copy(&host, &mut x)?;
        second.copy(host.slice(..)?, &mut y)?;
        assert_eq!(host[0], round, "reads do not exclude each other");
        gates.0.open_soon();
        gates.1.open_soon();
        let memory: &mut [u32] = if round % 2 == 0 { &mut host } else { host.write()? };
        memory.fill(round + 1);
        assert_eq!((first.download(&x)?, second.download(&y)?), (vec![round; LENGTH], vec![round; LENGTH]));
    }
    Ok(())
}

fn uses_in_place_on_two_streams_are_ordered(device: &Device) -> Outcome {
    let (first, second) = (device.new_stream()?, device.new_stream()?);
    let mut host = device.pinned_zeros::<u32>(LENGTH)?;
    let mut seen = second.zeros::<u32>(LENGTH)?;
    for round in 1..10 {
        let gate = Gate::close(&first)?;
        first.fill_into(round, &mut host)?;
        second.copy(&host, &mut seen)?;
        first.fill_into(round + 100, &mut host)?;
        gate.open_soon();
        assert_eq!(second.download(&seen)?, [round; LENGTH]);
        assert_eq!(*host, [round + 100; LENGTH]);
    }
    // A dropped stream has used it.
    let gone = device.new_stream()?;
    gone.fill_into(5, &mut host)?;
    drop(gone);
    assert_eq!(second.download(&host)?, [5; LENGTH]);
    Ok(())
}

fn first_reads_in_place_do_not_wait_for_each_other(device: &Device) -> Outcome {
    let (first, second) = (device.new_stream()?, device.new_stream()?);
    let mut host = device.pinned_copy(&[1_u32; LENGTH])?;
    let (mut x, mut y) = (first.zeros::<u32>(LENGTH)?, second.zeros::<u32>(LENGTH)?);
    first.synchronize()?;
    let gate = Gate::close(&first)?;
    first.copy(&host, &mut x)?;
    second.copy(&host, &mut y)?;
    gate.while_closed(|| second.synchronize())?;
    // A stream that read first may write without a wait; others must follow.
    first.fill_into(2, &mut host)?;
    second.copy(&host, &mut y)?;
    assert_eq!((first.download(&x)?, second.download(&y)?), (vec![1; LENGTH], vec![2; LENGTH]));

    let mut host = device.pinned_copy(&[3_u32; LENGTH])?;
    first.copy(&host, &mut x)?;
    let gate = Gate::close(&first)?;
    first.fill_into(4, &mut host)?;
    second.copy(&host, &mut y)?;
    gate.open_soon();
    assert_eq!(second.download(&y)?, [4; LENGTH]);
    Ok(())
}

fn memory_in_use_in_place_may_be_dropped(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut sum = stream.zeros::<u32>(LENGTH)?;
    for round in 0..10 {
        let (read, mut written) =
            (device.pinned_copy(&[round; LENGTH])?, device.pinned_zeros::<u32>(LENGTH)?);
        let registered = device.pin(vec![round; LENGTH])?;
        // Any call may free memory dropped in the previous round, for which the driver waits.
        Gate::close(&stream)?.open_soon();
        stream.copy(&read, &mut sum)?;
        stream.copy(&registered, &mut written)?;
        drop(registered);
        std::thread::spawn(move || drop((read, written))).join().map_err(|_| "the thread panicked")?;
        let others = (device.pinned_copy(&[u32::MAX; LENGTH])?, vec![u32::MAX; LENGTH]);
        assert_eq!(stream.download(&sum)?, [round; LENGTH]);
        drop(others);
    }
    Ok(())
}

fn background_copies_follow_uses_in_place(device: &Device) -> Outcome {
    let (first, second) = (device.new_stream()?, device.new_stream()?);
    let mut host = device.pinned_zeros::<u32>(LENGTH)?;
    let (mut x, mut y) = (second.zeros::<u32>(LENGTH)?, first.zeros::<u32>(LENGTH)?);
    let other = second.fill(50_u32, LENGTH)?;
    first.synchronize()?;
    for round in 1..10 {
        let gate = Gate::close(&first)?;
        first.fill_into(round, &mut host)?;
        let upload = second.upload_async(host, &mut x)?;
        gate.open_soon();
        host = upload.wait()?;
        assert_eq!(second.download(&x)?, [round; LENGTH]);

        let gate = Gate::close(&first)?;
        first.copy(&host, &mut y)?;
        let download = second.download_async(&other, host)?;
        gate.open_soon();
        host = download.wait()?;
        assert_eq!((first.download(&y)?, &*host), (vec![round; LENGTH], &[50; LENGTH][..]));
    }
    Ok(())
}

fn every_kind_of_page_locked_memory_is_used_in_place(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let memories = [
        device.pinned_zeros::<u16>(LENGTH)?,
        device.pinned_zeros_write_combined(LENGTH)?,
        device.pinned_copy(&[0; LENGTH])?,
        device.pin(vec![0; LENGTH])?,
    ];
    for mut host in memories {
        host[LENGTH - 1] = 6;
        assert_eq!(stream.download(host.slice(LENGTH - 2..)?)?, [0, 6]);
        stream.fill_into(7, host.slice_mut(1..)?)?;
        assert_eq!((host[0], host[1], host[LENGTH - 1]), (0, 7, 7));
        let error = host.slice(2..LENGTH + 1).map(|_| ()).unwrap_err();
        assert!(matches!(error, Error::OutOfRange { end: 1001, length: LENGTH, .. }), "{error}");
    }
    let mut none = device.pinned_zeros::<u32>(0)?;
    stream.fill_into(7, &mut none)?;
    assert_eq!(stream.download(&none)?, none.into_vec());
    let mut units = device.pinned_zeros::<()>(3)?;
    stream.copy(&device.pinned_zeros::<()>(3)?, &mut units)?;
    assert_eq!(units.len(), 3);
    Ok(())
}

fn borrowed_memory_is_free_after_uses_in_place(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut data = vec![1_u32; LENGTH];
    for round in 2..10 {
        let gate = Gate::close(&stream)?;
        let length = device.with_pinned(&mut data, |data| -> Result<usize> {
            stream.fill_into(round, data.slice_mut(1..)?)?;
            stream.fill_into(round, &mut *data)?;
            gate.open_soon();
            Ok(data.len())
        })??;
        assert_eq!((length, &data), (LENGTH, &vec![round; LENGTH]));
    }
    let gate = Gate::close(&stream)?;
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        device.with_pinned(&mut data, |data| {
            stream.fill_into(11, data).unwrap();
            gate.open_soon();
            std::panic::resume_unwind(Box::new("enough"));
        })
    }));
    assert!(unwound.is_err() && data == [11; LENGTH], "it waits even if the work panics");
    Ok(())
}

fn threads_share_memory_that_is_used_in_place(device: &Device) -> Outcome {
    let mut host = device.pinned_zeros::<u32>(LENGTH)?;
    let stream = device.new_stream()?;
    for round in 1..10 {
        let gate = Gate::close(&stream)?;
        stream.fill_into(round, &mut host)?;
        gate.open_soon();
        let read = |stream: &Stream| -> Result<bool> {
            let all = host.iter().all(|value| *value == round);
            Ok(all && stream.download(&host)? == [round; LENGTH])
        };
        let all = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..3)
                .map(|_| scope.spawn(|| device.new_stream().and_then(|stream| read(&stream))))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Result<Vec<bool>>>()
        })?;
        assert_eq!(all, [true; 3]);
    }
    Ok(())
}

fn other_devices_use_page_locked_memory_if_they_can(device: &Device) -> Outcome {
    let mut host = device.pinned_zeros::<u32>(LENGTH)?;
    let cpu = Device::cpu_with(CpuOptions::new())?.new_stream()?;
    let filled = cpu.fill_into(1, &mut host);
    if device.is_cuda() {
        assert!(matches!(filled, Err(Error::DeviceMismatch { .. })), "{filled:?}");
    } else {
        filled?;
        assert_eq!(*host, [1; LENGTH]);
    }
    let others: Vec<Device> =
        Device::all().into_iter().filter(|other| other.is_cuda() && other != device).collect();
    for other in others {
        let theirs = other.new_stream()?;
        let filled = theirs.fill_into(2, &mut host);
        if !device.is_cuda() {
            assert!(matches!(filled, Err(Error::DeviceMismatch { .. })), "{filled:?}");
            continue;
        }
        filled?;
        let mut ours = device.new_stream()?.zeros::<u32>(LENGTH)?;
        let stream = device.new_stream()?;
        stream.copy_peer(&host, &mut ours)?;
        theirs.fill_into(3, &mut host)?;
        assert_eq!((stream.download(&ours)?, &*host), (vec![2; LENGTH], &[3; LENGTH][..]));
    }
    Ok(())
}

fn recordings_refuse_page_locked_memory(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut host = device.pinned_zeros::<u32>(LENGTH)?;
    let refused = stream.capture(|capture| capture.fill_into(1, &mut host)).map(|_| ()).unwrap_err();
    let Error::Graph(GraphError::NotRecordable { operation, .. }) = &refused else {
        return Err(format!("another error: {refused}").into());
    };
    assert_eq!(*operation, "the use of page-locked memory in place");
    stream.fill_into(2, &mut host)?;
    assert_eq!(*host, [2; LENGTH]);
    Ok(())
}
