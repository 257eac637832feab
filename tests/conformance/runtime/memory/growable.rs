//! Buffers that grow without moving.

use ferrogrid::{CpuOptions, Device, Error, GraphError, GrowableBuffer, Stream};

use crate::runtime::{Case, Gate, Outcome};

pub(crate) const CASES: &[Case] = &[
    ("a_buffer_grows_and_its_elements_stay", a_buffer_grows_and_its_elements_stay),
    ("growing_is_amortised", growing_is_amortised),
    ("a_buffer_that_cannot_grow_keeps_its_elements", a_buffer_that_cannot_grow_keeps_its_elements),
    ("work_on_other_streams_sees_a_buffer_grow_in_order", work_on_other_streams_sees_a_buffer_grow_in_order),
    ("a_growable_buffer_may_be_dropped_before_its_work", a_growable_buffer_may_be_dropped_before_its_work),
    ("a_buffer_shrinks_after_its_work", a_buffer_shrinks_after_its_work),
    ("a_grown_buffer_counts_in_the_limit", a_grown_buffer_counts_in_the_limit),
    ("a_graph_keeps_a_grown_buffer", a_graph_keeps_a_grown_buffer),
    ("buffers_of_no_bytes_grow", buffers_of_no_bytes_grow),
    ("peers_use_a_buffer_that_grows", peers_use_a_buffer_that_grows),
];

/// `None` if the device does not support them.
fn growable(stream: &Stream, max_len: usize) -> ferrogrid::Result<Option<GrowableBuffer<u32>>> {
    match stream.growable(max_len) {
        Err(Error::Unsupported { operation: "a buffer that grows", .. }) => Ok(None),
        buffer => buffer.map(Some),
    }
}

fn a_buffer_grows_and_its_elements_stay(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let Some(mut buffer) = growable(&stream, 20 << 20)? else { return Ok(()) };
    assert_eq!((buffer.len(), buffer.capacity(), buffer.max_len()), (0, 0, 20 << 20));
    assert!(stream.download(&buffer)?.is_empty());
    let start = buffer.as_device_ptr().as_raw();
    let mut model: Vec<u32> = Vec::new();
    for (round, count) in [3, 0, 1000, 1, 700_000, 60_000].into_iter().enumerate() {
        let data: Vec<u32> = (0..count).map(|n| n * 7 + round as u32).collect();
        buffer.extend_from_slice(&stream, &data)?;
        model.extend_from_slice(&data);
        assert_eq!(buffer.as_device_ptr().as_raw(), start, "nothing moves");
        assert_eq!((buffer.len(), buffer.byte_len()), (model.len(), model.len() * 4));
        assert!(buffer.capacity() >= buffer.len());
        assert_eq!(stream.download(&buffer)?, model);
    }
    buffer.resize(&stream, model.len() + 5, 9)?;
    model.extend_from_slice(&[9; 5]);
    buffer.truncate(model.len() - 2);
    model.truncate(model.len() - 2);
    buffer.resize(&stream, 760_000, 1)?; // fewer
    model.truncate(760_000);
    // Earlier contents do not reappear.
    buffer.resize_zeroed(&stream, 760_010)?;
    model.extend_from_slice(&[0; 10]);
    let part = stream.upload(&[5_u32, 6, 7])?;
    buffer.extend_from_device(&stream, part.slice(1..)?)?;
    model.extend_from_slice(&[6, 7]);
    stream.fill_into(8, buffer.slice_mut(..2)?)?;
    model[..2].fill(8);
    assert!(stream.download(&buffer)? == model);
    assert!(buffer.slice(..760_013).is_err(), "there is memory for it, but no element");
    buffer.clear();
    assert!(buffer.is_empty() && stream.download(&buffer)?.is_empty());
    buffer.extend_from_slice(&stream, &[1])?;
    assert_eq!(stream.download(&buffer)?, [1]);
    Ok(())
}

fn growing_is_amortised(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let Some(mut buffer) = growable(&stream, 8 << 20)? else { return Ok(()) };
    let (mut growths, mut capacity) = (0, 0);
    for _ in 0..200 {
        buffer.reserve(20_000)?;
        buffer.resize(&stream, buffer.len() + 20_000, 3)?;
        if buffer.capacity() != capacity {
            (growths, capacity) = (growths + 1, buffer.capacity());
        }
    }
    assert!(growths <= 10, "{growths} growths to {capacity}");
    buffer.reserve((8 << 20) - buffer.len())?;
    assert_eq!(buffer.capacity(), 8 << 20, "no more than its maximum");
    assert!(stream.download(&buffer)? == [3; 4_000_000]);
    Ok(())
}

fn a_buffer_that_cannot_grow_keeps_its_elements(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let Some(mut buffer) = growable(&stream, 4)? else { return Ok(()) };
    buffer.extend_from_slice(&stream, &[1, 2, 3])?;
    let refused = |result| matches!(result, Err(Error::CapacityExceeded { len: 5, max_len: 4 }));
    assert!(refused(buffer.extend_from_slice(&stream, &[4, 5])));
    assert!(refused(buffer.resize(&stream, 5, 0)) && refused(buffer.reserve(2)));
    let huge = buffer.reserve(usize::MAX);
    assert!(matches!(huge, Err(Error::CapacityExceeded { len: usize::MAX, .. })), "{huge:?}");
    assert!(matches!(stream.growable::<u64>(usize::MAX), Err(Error::SizeOverflow { .. })));
    assert!(stream.growable::<u8>(isize::MAX as usize).is_err(), "there are not that many addresses");
    // A stream of another device cannot write future elements.
    let other = Device::cpu_with(CpuOptions::new().workers(1))?.new_stream()?;
    let mismatch = buffer.extend_from_slice(&other, &[4]);
    assert!(matches!(mismatch, Err(Error::DeviceMismatch { .. })), "{mismatch:?}");
    let recorded = stream.capture(|capture| buffer.extend_from_slice(capture, &[4]));
    assert!(matches!(recorded, Err(Error::Graph(_))), "{recorded:?}");
    assert_eq!(stream.download(&buffer)?, [1, 2, 3]);
    buffer.extend_from_slice(&stream, &[4])?;
    assert_eq!(stream.download(&buffer)?, [1, 2, 3, 4]);
    Ok(())
}

fn work_on_other_streams_sees_a_buffer_grow_in_order(device: &Device) -> Outcome {
    let (first, second) = (device.new_stream()?, device.new_stream()?);
    let Some(mut buffer) = growable(&first, 1 << 20)? else { return Ok(()) };
    for round in 0..20_u32 {
        let gate = Gate::close(&first)?;
        let before = buffer.len();
        buffer.resize(&first, before + 10_000, round)?;
        let copy = second.duplicate(&buffer)?;
        buffer.truncate(before + 5000);
        buffer.resize(&second, before + 5001, 77)?;
        gate.open();
        let copy = second.download(&copy)?;
        assert_eq!(copy[before..], vec![round; 10_000]);
        assert_eq!(first.download(buffer.slice(before + 4999..)?)?, [round, 77]);
        buffer.resize(&first, before, 0)?;
        buffer.resize(&second, before + 100, round)?;
    }
    assert_eq!(buffer.len(), 2000);
    Ok(())
}

fn a_growable_buffer_may_be_dropped_before_its_work(device: &Device) -> Outcome {
    let (first, second) = (device.new_stream()?, device.new_stream()?);
    for keep in [false, true] {
        let Some(mut buffer) = growable(&first, 1 << 20)? else { return Ok(()) };
        buffer.resize(&first, 300_000, 1)?;
        let gate = Gate::close(&first)?;
        buffer.resize(&first, 600_000, 2)?;
        let copy = second.duplicate(&buffer)?;
        if keep {
            drop(buffer.into_buffer());
        } else {
            drop(buffer);
        }
        gate.open();
        let copy = second.download(&copy)?;
        assert!(copy[..300_000] == [1; 300_000] && copy[300_000..] == [2; 300_000]);
    }
    Ok(())
}

fn a_buffer_shrinks_after_its_work(device: &Device) -> Outcome {
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let Some(mut buffer) = growable(&stream, 32 << 20)? else { return Ok(()) };
    buffer.extend_from_slice(&stream, &[1, 2])?;
    buffer.resize(&stream, 4 << 20, 3)?;
    buffer.resize(&stream, 12 << 20, 4)?;
    let gate = Gate::close(&other)?;
    let copy = other.duplicate(&buffer)?;
    buffer.truncate(2);
    gate.open_soon();
    buffer.shrink_to_fit()?;
    assert!((2..=1 << 20).contains(&buffer.capacity()), "{}", buffer.capacity());
    assert_eq!(other.download(copy.slice((4 << 20) - 1..(4 << 20) + 1)?)?, [3, 4]);
    assert_eq!(stream.download(&buffer)?, [1, 2]);
    buffer.resize(&stream, 8 << 20, 5)?;
    assert_eq!(stream.download(buffer.slice((8 << 20) - 1..)?)?, [5]);
    buffer.clear();
    buffer.shrink_to_fit()?;
    assert_eq!(buffer.capacity(), 0);
    Ok(())
}

fn a_grown_buffer_counts_in_the_limit(device: &Device) -> Outcome {
    if device.is_cuda() {
        return Ok(()); // others use that device, too; the account is the same
    }
    let device = Device::cpu_with(CpuOptions::new().memory(7 << 20))?;
    let (stream, pool) = (device.new_stream()?, device.memory_pool());
    let Some(mut buffer) = growable(&stream, 1 << 30)? else { return Ok(()) };
    assert_eq!(pool.statistics()?.used, 0, "addresses are no memory");
    buffer.resize(&stream, 1 << 20, 1)?;
    let used = pool.statistics()?.used;
    assert!((4 << 20..5 << 20).contains(&used), "{used}");
    // Less than it requests is available, but as much as it needs.
    buffer.resize(&stream, (1 << 20) + 300_000, 2)?;
    let full = buffer.resize(&stream, 3 << 20, 2);
    assert!(matches!(full, Err(Error::OutOfMemory { .. })), "{full:?}");
    pool.set_limit(Some(6 << 20));
    let limited = buffer.resize(&stream, 13 << 17, 2);
    assert!(matches!(limited, Err(Error::MemoryLimit { .. })), "{limited:?}");
    assert_eq!(stream.download(buffer.slice((1 << 20) - 1..)?)?[..2], [1, 2]);
    assert_eq!(buffer.len(), (1 << 20) + 300_000);
    drop(buffer);
    stream.synchronize()?;
    assert_eq!((pool.statistics()?.used, device.memory_info()?.unwrap().free), (0, 7 << 20));
    Ok(())
}

fn a_graph_keeps_a_grown_buffer(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let Some(mut buffer) = growable(&stream, 1000)? else { return Ok(()) };
    buffer.extend_from_slice(&stream, &[1, 2, 3])?;
    let refused = stream.capture(|capture| capture.fill_into(5, &mut buffer));
    assert!(matches!(refused, Err(Error::Graph(GraphError::UnknownBuffer))), "it must be given to the graph");
    let (graph, key) = stream.capture(|capture| {
        let mut kept = capture.keep(buffer.into_buffer())?;
        capture.fill_into(5, kept.view_mut().slice(1..)?)?;
        Ok(kept.key())
    })?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    assert_eq!(stream.download(graph.view(key)?)?, [1, 5, 5]);
    Ok(())
}

fn buffers_of_no_bytes_grow(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let Some(mut none) = growable(&stream, 0)? else { return Ok(()) };
    assert!(matches!(none.reserve(1), Err(Error::CapacityExceeded { len: 1, max_len: 0 })));
    none.extend_from_slice(&stream, &[])?;
    none.shrink_to_fit()?;
    assert!(stream.download(&none)?.is_empty());
    let mut empty = stream.growable::<[u32; 0]>(10)?;
    empty.resize_zeroed(&stream, 10)?;
    assert_eq!((empty.len(), empty.capacity(), empty.byte_len()), (10, 10, 0));
    empty.shrink_to_fit()?;
    assert!(empty.resize_zeroed(&stream, 11).is_err());
    Ok(())
}

fn peers_use_a_buffer_that_grows(device: &Device) -> Outcome {
    let others =
        Device::all().into_iter().filter(|other| other != device && other.is_cuda() == device.is_cuda());
    for peer in others {
        if !peer.can_access_peer(device)? {
            continue;
        }
        let (here, there) = (device.new_stream()?, peer.new_stream()?);
        let Some(mut buffer) = growable(&here, 8 << 20)? else { return Ok(()) };
        buffer.resize(&here, 10, 1)?;
        peer.enable_peer_access(device)?;
        buffer.resize(&there, 6 << 20, 2)?; // before and after
        there.fill_into(3, buffer.slice_mut(..2)?)?;
        assert_eq!(here.download(buffer.slice(..3)?)?, [3, 3, 1]);
        assert_eq!(here.download(buffer.slice((6 << 20) - 1..)?)?, [2]);
    }
    Ok(())
}
