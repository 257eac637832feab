//! Page-locked memory, and copies in the background.

use std::panic::{AssertUnwindSafe, catch_unwind};

use ferrogrid::{Device, Error, PinnedBuffer, Transfer};

use crate::runtime::{Case, Gate, Outcome};

pub(crate) const CASES: &[Case] = &[
    ("page_locked_memory_is_a_slice", page_locked_memory_is_a_slice),
    ("a_copy_gives_its_memory_back", a_copy_gives_its_memory_back),
    ("a_copy_is_complete_when_it_has_run", a_copy_is_complete_when_it_has_run),
    ("a_dropped_copy_still_runs", a_dropped_copy_still_runs),
    ("a_forgotten_copy_still_runs", a_forgotten_copy_still_runs),
    ("copies_between_two_streams_are_ordered_by_the_buffer", copies_between_two_streams),
    ("lengths_of_copies_must_agree", lengths_of_copies_must_agree),
    ("empty_copies_work", empty_copies_work),
    ("a_vec_is_page_locked_where_it_is", a_vec_is_page_locked_where_it_is),
    ("a_scope_borrows_memory_of_the_host", a_scope_borrows_memory_of_the_host),
    ("a_scope_waits_even_if_it_panics", a_scope_waits_even_if_it_panics),
    ("impossible_page_locked_memory_is_refused", impossible_page_locked_memory_is_refused),
];

fn numbers(range: std::ops::Range<u32>) -> Vec<u32> {
    range.collect()
}

fn page_locked_memory_is_a_slice(device: &Device) -> Outcome {
    let mut zeros = device.pinned_zeros::<u64>(100)?;
    assert_eq!(*zeros, [0; 100]);
    zeros[99] = 7;
    assert_eq!(zeros.iter().sum::<u64>(), 7);
    let copy = device.pinned_copy(&[1.5_f32, 2.5])?;
    assert_eq!((copy.to_vec(), copy.into_vec()), (vec![1.5, 2.5], vec![1.5, 2.5]));
    let mut write_combined = device.pinned_zeros_write_combined::<u16>(3)?;
    write_combined.copy_from_slice(&[1, 2, 3]);
    assert_eq!(*write_combined, [1, 2, 3]);
    fn is_send_and_sync<T: Send + Sync>(_: &T) {}
    is_send_and_sync(&write_combined);
    Ok(())
}

fn a_copy_gives_its_memory_back(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let host = device.pinned_copy(&numbers(0..5000))?;
    let place = host.as_ptr();
    let mut buffer = stream.zeros::<u32>(6000)?;
    let mut host = stream.upload_async(host, buffer.slice_mut(1000..)?)?.wait()?;
    assert_eq!((host.as_ptr(), host.len()), (place, 5000));
    host.fill(0);
    let host = stream.download_async(buffer.slice(500..5500)?, host)?.wait()?;
    assert_eq!(host[..500], [0; 500]);
    assert_eq!(host[500..], numbers(0..4500));
    Ok(())
}

fn a_copy_is_complete_when_it_has_run(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (source, target) = (device.pinned_copy(&[1_u32, 2, 3])?, device.pinned_zeros(3)?);
    let mut buffer = stream.zeros::<u32>(3)?;
    stream.synchronize()?;
    let gate = Gate::close(&stream)?;
    let upload = stream.upload_async(source, &mut buffer)?;
    let download = stream.download_async(&buffer, target)?;
    assert!(!upload.is_complete()? && !download.is_complete()?, "the gate is closed");
    gate.open();
    assert_eq!(*download.wait()?, [1, 2, 3]);
    assert!(upload.is_complete()?);
    drop(upload);
    Ok(())
}

fn a_dropped_copy_still_runs(device: &Device) -> Outcome {
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    for round in 0..20 {
        let (source, target) = (device.pinned_copy(&[round; 1000])?, device.pinned_zeros::<u32>(1000)?);
        let mut buffer = stream.zeros::<u32>(1000)?;
        let gate = Gate::close(&stream)?;
        drop(stream.upload_async(source, &mut buffer)?);
        drop(stream.download_async(&buffer, target)?);
        gate.open();
        assert_eq!(other.download(&buffer)?, [round; 1000]);
    }
    Ok(stream.synchronize()?)
}

fn a_forgotten_copy_still_runs(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let source = device.pinned_copy(&[4_u8; 100])?;
    let mut buffer = stream.zeros::<u8>(100)?;
    let gate = Gate::close(&stream)?;
    std::mem::forget(stream.upload_async(source, &mut buffer)?);
    gate.open();
    assert_eq!(stream.download(&buffer)?, [4; 100]);
    Ok(())
}

fn copies_between_two_streams(device: &Device) -> Outcome {
    let (up, down) = (device.new_stream()?, device.new_stream()?);
    let mut buffer = up.zeros::<u32>(10_000)?;
    let mut host = device.pinned_zeros::<u32>(10_000)?;
    let mut result: PinnedBuffer<u32> = device.pinned_zeros(10_000)?;
    for round in 1..20 {
        host.fill(round);
        let upload: Transfer<u32> = up.upload_async(host, &mut buffer)?;
        result = down.download_async(&buffer, result)?.wait()?;
        assert!(result.iter().all(|value| *value == round), "round {round}");
        host = upload.wait()?;
    }
    Ok(())
}

fn lengths_of_copies_must_agree(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut buffer = stream.zeros::<u32>(3)?;
    let error = stream.upload_async(device.pinned_zeros::<u32>(2)?, &mut buffer).unwrap_err();
    let expected = Error::LengthMismatch { operation: "upload_async", source_length: 2, target_length: 3 };
    assert_eq!(error, expected);
    let error = stream.download_async(&buffer, device.pinned_zeros::<u32>(4)?).unwrap_err();
    let expected = Error::LengthMismatch { operation: "download_async", source_length: 3, target_length: 4 };
    assert_eq!(error, expected);
    let error = stream.scope(|scope| scope.upload_into(&[1, 2], &mut buffer))?.unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { .. }), "{error}");
    Ok(())
}

fn empty_copies_work(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut buffer = stream.zeros::<u32>(0)?;
    let host = device.pinned_zeros::<u32>(0)?;
    let host = stream.upload_async(host, &mut buffer)?.wait()?;
    let host = stream.download_async(&buffer, host)?.wait()?;
    assert!(host.is_empty() && host.into_vec().is_empty());
    let mut reserved: Vec<u32> = Vec::with_capacity(10);
    reserved.extend(device.pin(Vec::<u32>::with_capacity(10))?.into_vec());
    device.with_pinned(&mut reserved, |memory| assert!(memory.is_empty()))?;
    stream.scope(|scope| scope.upload_into(&reserved, &mut buffer))??;
    Ok(())
}

fn a_vec_is_page_locked_where_it_is(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let data = numbers(0..100_000);
    let place = data.as_ptr();
    let host = device.pin(data)?;
    assert_eq!(host.as_ptr(), place);
    let mut buffer = stream.zeros::<u32>(100_000)?;
    let data = stream.upload_async(host, &mut buffer)?.wait()?.into_vec();
    assert_eq!(data.as_ptr(), place);
    assert_eq!(stream.download(&buffer)?, data);
    drop(device.pin(data)?);

    let mut data = numbers(0..5);
    let mut small = stream.zeros::<u32>(5)?;
    device.with_pinned(&mut data, |data| {
        data[0] = 50;
        stream.scope(|scope| scope.upload_into(data, &mut small))
    })???;
    assert_eq!((stream.download(&small)?, data[0]), (vec![50, 1, 2, 3, 4], 50));
    Ok(())
}

fn a_scope_borrows_memory_of_the_host(device: &Device) -> Outcome {
    let (first, second) = (device.new_stream()?, device.new_stream()?);
    let mut pinned = device.pinned_copy(&numbers(0..2000))?;
    let pageable = numbers(5000..6000);
    let mut results = vec![0_u32; 1000];
    let (mut a, mut b) = (first.zeros::<u32>(1000)?, second.zeros::<u32>(1000)?);
    let (input, output) = pinned.split_at_mut(1000);
    first.scope(|scope| {
        second.scope(|other| -> ferrogrid::Result<()> {
            scope.upload_into(input, &mut a)?;
            other.upload_into(&pageable, &mut b)?;
            other.download_into(&a, output)?;
            scope.download_into(&b, &mut results)
        })
    })???;
    assert_eq!(pinned[1000..], numbers(0..1000));
    assert_eq!(results, pageable);
    Ok(())
}

fn a_scope_waits_even_if_it_panics(device: &Device) -> Outcome {
    Gate::allowed()?;
    let stream = device.new_stream()?;
    let buffer = stream.fill(6_u32, 1000)?;
    let mut host = device.pinned_zeros::<u32>(1000)?;
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        stream.scope(|scope| {
            let gate = Gate::close(scope.stream()).unwrap();
            scope.download_into(&buffer, &mut host).unwrap();
            gate.open_soon();
            std::panic::resume_unwind(Box::new("enough"));
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(*host, [6; 1000], "the copy has run by now");
    Ok(())
}

fn impossible_page_locked_memory_is_refused(device: &Device) -> Outcome {
    let length = usize::MAX / 4;
    let error = device.pinned_zeros::<u64>(length).unwrap_err();
    assert_eq!(error, Error::SizeOverflow { length, element_size: 8 });
    let error = device.pinned_zeros::<u64>(1 << 47).unwrap_err();
    assert!(matches!(&error, Error::OutOfMemory { requested, .. } if *requested == 1 << 50), "{error}");
    assert_eq!(*device.pinned_copy(&[1_u8])?, [1]);
    Ok(())
}
