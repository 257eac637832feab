//! Buffers beyond upload and download: fills, casts, parts, uninitialised memory, foreign and managed memory,
//! and the pool behind them.

use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ferrogrid::{Advice, Device, DeviceBuffer, DevicePtrMut, Error, Location};

use crate::runtime::{Case, Gate, Outcome};

pub(crate) const CASES: &[Case] = &[
    ("fills_repeat_values_of_every_size", fills_repeat_values_of_every_size),
    ("a_view_is_cast_if_its_bytes_allow_it", a_view_is_cast_if_its_bytes_allow_it),
    ("a_buffer_is_taken_apart", a_buffer_is_taken_apart),
    ("unwritten_buffers_become_buffers", unwritten_buffers_become_buffers),
    ("foreign_memory_is_used_in_order_and_released_at_the_end", memory_of_others),
    ("pointers_that_cannot_be_buffers_are_refused", pointers_that_cannot_be_buffers_are_refused),
    ("the_host_and_the_device_use_managed_memory_in_turn", managed_memory_in_turn),
    (
        "managed_memory_is_read_after_parts_that_two_streams_write",
        managed_memory_is_read_after_parts_that_two_streams_write,
    ),
    ("managed_memory_is_prefetched_and_advised", managed_memory_is_prefetched_and_advised),
    ("a_pool_counts_the_memory_of_its_buffers", a_pool_counts_the_memory_of_its_buffers),
];

fn check_fill<const N: usize>(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let value: [u8; N] = std::array::from_fn(|index| (index % 251) as u8 + 1);
    for count in [0, 1, 2, 3, 7, 64, 1001] {
        let mut buffer = stream.zeros::<[u8; N]>(count + 2)?;
        stream.fill_into(value, buffer.slice_mut(1..count + 1)?)?;
        let found = stream.download(&buffer)?;
        assert_eq!(found[1..=count], vec![value; count], "{count} values of {N} bytes");
        assert_eq!((found[0], found[count + 1]), ([0; N], [0; N]), "what lies beside stays");
    }
    Ok(())
}

fn fills_repeat_values_of_every_size(device: &Device) -> Outcome {
    check_fill::<1>(device)?;
    check_fill::<2>(device)?;
    check_fill::<3>(device)?;
    check_fill::<4>(device)?;
    check_fill::<6>(device)?;
    check_fill::<8>(device)?;
    check_fill::<12>(device)?;
    check_fill::<100>(device)?;
    check_fill::<300>(device)?;
    let stream = device.new_stream()?;
    assert_eq!(stream.download(&stream.fill(0.1_f64, 1000)?)?, [0.1; 1000]);
    assert_eq!(stream.download(&stream.fill([0x0101_0101_u32; 3], 9)?)?, [[0x0101_0101; 3]; 9]);
    assert_eq!(stream.download(&stream.fill(u128::MAX / 3, 5)?)?, [u128::MAX / 3; 5]);
    Ok(())
}

fn a_view_is_cast_if_its_bytes_allow_it(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut bytes = stream.upload(&[1_u8, 0, 0, 0, 2, 0, 0, 0])?;
    assert_eq!(stream.download(bytes.view().cast::<u32>()?)?, [1, 2]);
    assert_eq!(stream.download(bytes.slice(4..)?.cast::<u32>()?)?, [2]);
    stream.fill_into(7_u16, bytes.view_mut().cast::<u16>()?.slice(1..2)?)?;
    assert_eq!(stream.download(&bytes)?, [1, 0, 7, 0, 2, 0, 0, 0]);
    let odd = bytes.slice(1..5)?.cast::<u32>().unwrap_err().to_string();
    assert!(
        odd.contains("4 elements of type `u8` cannot be viewed as `u32`: the bytes do not start"),
        "{odd}"
    );
    let uneven = bytes.slice(..6)?.cast::<u32>().unwrap_err().to_string();
    assert!(uneven.contains("no whole number"), "{uneven}");
    assert!(bytes.slice(3..3)?.cast::<u64>()?.is_empty());
    assert!(bytes.view().cast::<[u8; 0]>().is_err());
    Ok(())
}

fn a_buffer_is_taken_apart(device: &Device) -> Outcome {
    let streams = [device.new_stream()?, device.new_stream()?];
    let mut buffer = streams[0].zeros::<u32>(10)?;
    for (index, part) in buffer.chunks_mut(4)?.enumerate() {
        streams[index % 2].fill_into(index as u32 + 1, part)?;
    }
    assert_eq!(streams[0].download(&buffer)?, [1, 1, 1, 1, 2, 2, 2, 2, 3, 3]);
    let parts: ferrogrid::Result<Vec<Vec<u32>>> =
        buffer.chunks(6)?.map(|part| streams[1].download(part)).collect();
    assert_eq!(parts?, [vec![1, 1, 1, 1, 2, 2], vec![2, 2, 3, 3]]);
    let (left, right) = buffer.view().split_at(9)?;
    assert_eq!((left.len(), streams[0].download(right)?), (9, vec![3]));
    assert_eq!(buffer.view().split_at(11).unwrap_err(), Error::OutOfRange { start: 0, end: 11, length: 10 });
    assert_eq!(buffer.chunks(0).unwrap_err(), Error::ZeroChunk);
    assert_eq!(buffer.chunks_mut(0).unwrap_err(), Error::ZeroChunk);
    assert_eq!(streams[0].zeros::<u8>(0)?.chunks(3)?.count(), 0);
    assert_eq!(buffer.chunks(usize::MAX)?.count(), 1);
    Ok(())
}

fn unwritten_buffers_become_buffers(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut buffer = stream.uninit::<u32>(1000)?;
    let data: Vec<MaybeUninit<u32>> = (0..1000).map(MaybeUninit::new).collect();
    stream.upload_into(&data, &mut buffer)?;
    // SAFETY: all elements have been written.
    let buffer = unsafe { buffer.assume_init() };
    let copy = stream.duplicate(buffer.slice(10..20)?)?;
    assert_eq!(stream.download(&copy)?, (10..20).collect::<Vec<_>>());
    assert!(matches!(stream.uninit::<u64>(usize::MAX), Err(Error::SizeOverflow { .. })));
    Ok(())
}

/// Owns memory for another buffer, and tells when it is dropped.
struct Owner {
    _memory: DeviceBuffer<u32>,
    dropped: Arc<AtomicBool>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.dropped.store(true, Ordering::SeqCst);
    }
}

fn memory_of_others(device: &Device) -> Outcome {
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let mut memory = stream.fill(1_u32, 1000)?;
    let start = memory.as_device_ptr_mut();
    let dropped = Arc::new(AtomicBool::new(false));
    let owner = Owner { _memory: memory, dropped: dropped.clone() };
    // SAFETY: the memory is that of the owner, which was used on this stream only.
    let mut buffer = unsafe { DeviceBuffer::from_raw(&stream, start, 1000, owner)? };
    other.fill_into(2, buffer.slice_mut(500..)?)?;
    let copy = stream.duplicate(&buffer)?;
    let gate = Gate::close(&stream)?;
    drop(buffer);
    assert!(!dropped.load(Ordering::SeqCst), "work is under way");
    gate.open();
    let found = stream.download(&copy)?;
    assert_eq!((&found[..500], &found[500..]), (&[1; 500][..], &[2; 500][..]));
    other.synchronize()?;
    stream.synchronize()?;
    assert!(dropped.load(Ordering::SeqCst), "no work uses it any more");
    Ok(())
}

fn pointers_that_cannot_be_buffers_are_refused(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let take_over = |address: usize| {
        // SAFETY: they are refused before any access.
        unsafe {
            let pointer = DevicePtrMut::<u64>::from_raw(std::ptr::without_provenance_mut(address));
            DeviceBuffer::from_raw(&stream, pointer, 1, ())
        }
    };
    for address in [0, 0x1004] {
        let error = take_over(address).unwrap_err();
        assert!(
            matches!(&error, Error::InvalidPointer { address: named, .. } if *named == address),
            "{error}"
        );
    }
    Ok(())
}

fn managed_memory_in_turn(device: &Device) -> Outcome {
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let mut data = match stream.managed_zeros::<u32>(1000) {
        Err(Error::Unsupported { .. }) => return Ok(()),
        data => data?,
    };
    assert_eq!(data.read()?, [0; 1000]);
    for round in 1..10 {
        data.write()?[0] = round;
        let gate = Gate::close(&stream)?;
        stream.fill_into(round, data.slice_mut(1..)?)?;
        gate.open_soon();
        assert_eq!(data.read()?, [round; 1000], "reading waits for the fill");
        let gate = Gate::close(&other)?;
        let copy = other.duplicate(&data)?;
        gate.open_soon();
        data.write()?.fill(0); // after the copy
        assert_eq!(other.download(&copy)?, [round; 1000]);
    }
    let copy = stream.managed_copy(&[3_u8, 4])?;
    assert_eq!((copy.read()?, stream.managed_zeros::<u8>(0)?.read()?), (&[3, 4][..], &[][..]));
    Ok(())
}

fn managed_memory_is_read_after_parts_that_two_streams_write(device: &Device) -> Outcome {
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let mut data = match stream.managed_zeros::<u32>(1000) {
        Err(Error::Unsupported { .. }) => return Ok(()),
        data => data?,
    };
    for round in 1..5 {
        let (left, right) = data.view_mut().split_at(500)?;
        let gate = Gate::close(&other)?;
        stream.fill_into(round, left)?;
        other.fill_into(round, right)?;
        gate.open_soon();
        assert_eq!(data.read()?, [round; 1000], "reading waits for both");
    }
    Ok(())
}

fn managed_memory_is_prefetched_and_advised(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let data = match stream.managed_copy(&[1_u32, 2, 3]) {
        Err(Error::Unsupported { .. }) => return Ok(()),
        data => data?,
    };
    let all = [
        Advice::ReadMostly(true),
        Advice::ReadMostly(false),
        Advice::PreferredLocation(Some(Location::Device)),
        Advice::PreferredLocation(Some(Location::Host)),
        Advice::PreferredLocation(None),
        Advice::AccessedBy(Location::Host, true),
        Advice::AccessedBy(Location::Device, true),
        Advice::AccessedBy(Location::Device, false),
    ];
    for advice in all {
        data.advise(advice)?;
    }
    stream.prefetch(&data, Location::Device)?;
    assert_eq!(stream.download(&data)?, [1, 2, 3]);
    stream.prefetch(&data, Location::Host)?;
    assert_eq!(data.read()?, [1, 2, 3]);
    Ok(())
}

/// The only case that sets a limit, and it does so far above the use of other cases at the same time.
fn a_pool_counts_the_memory_of_its_buffers(device: &Device) -> Outcome {
    const BYTES: usize = 64 << 20;
    let (stream, pool) = (device.new_stream()?, device.memory_pool());
    pool.reset_statistics()?;
    let buffer = stream.zeros::<u8>(BYTES)?;
    let statistics = pool.statistics()?;
    assert!(statistics.used >= BYTES as u64, "{statistics:?}");
    assert!(statistics.used_high >= BYTES as u64 && statistics.reserved >= BYTES as u64, "{statistics:?}");
    assert_eq!(pool.limit(), None);
    pool.set_limit(Some(1 << 60));
    let error = stream.uninit::<u8>(1 << 61).unwrap_err();
    pool.set_limit(None);
    assert!(
        matches!(&error, Error::MemoryLimit { requested, limit, .. } if (*requested, *limit) == (1 << 61, 1 << 60)),
        "{error}"
    );
    pool.set_release_threshold(0)?;
    pool.set_release_threshold(u64::MAX)?;
    assert_eq!(stream.download(buffer.slice(..2)?)?, [0, 0]);
    drop(buffer);
    stream.synchronize()?;
    pool.trim(0)?;
    Ok(())
}
