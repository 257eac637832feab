//! Streams that are also cudarc's, and memory in its calls. On the CPU device they are refused.

use cudarc::driver::{CudaContext, DevicePtr};
use ferrogrid::interop::SharedStream;
use ferrogrid::{Device, Error};

use crate::runtime::{Case, Gate, Outcome};

pub(crate) const CASES: &[Case] = &[
    ("calls_of_cudarc_are_ordered_with_other_streams", calls_of_cudarc_are_ordered_with_other_streams),
    ("other_streams_of_cudarc_wait_and_are_waited_for", other_streams_of_cudarc_wait_and_are_waited_for),
    ("memory_of_cudarc_becomes_a_buffer", memory_of_cudarc_becomes_a_buffer),
    ("a_stream_of_cudarc_outlives_its_shared_handle", a_stream_of_cudarc_outlives_its_shared_handle),
    ("elements_go_to_cudarc_as_another_type", elements_go_to_cudarc_as_another_type),
    ("what_cannot_be_shared_is_refused", what_cannot_be_shared_is_refused),
];

const LENGTH: usize = 10_000;

/// `None` on a device without such streams, which must say so.
pub(crate) fn shared(device: &Device) -> ferrogrid::Result<Option<SharedStream>> {
    // SAFETY: nothing captures the stream.
    match unsafe { SharedStream::new(device) } {
        Err(Error::Unsupported { .. }) if !device.is_cuda() => Ok(None),
        stream => stream.map(Some),
    }
}

fn calls_of_cudarc_are_ordered_with_other_streams(device: &Device) -> Outcome {
    let Some(stream) = shared(device)? else { return Ok(()) };
    let (first, last) = (device.new_stream()?, device.new_stream()?);
    let (mut x, mut y) = (first.zeros::<u32>(LENGTH)?, first.zeros::<u32>(LENGTH)?);
    // Each begins long before the one before it has run.
    let gate = Gate::close(&first)?;
    first.fill_into(7, &mut x)?;
    stream.cudarc().memcpy_dtod(&stream.read(&x)?, &mut stream.write(&mut y)?)?;
    last.fill_into(8, &mut x)?;
    gate.open();
    assert_eq!(last.download(&y)?, [7; LENGTH], "a copy after the first fill, and before the second");
    assert_eq!(stream.download(&x)?, [8; LENGTH]);
    Ok(())
}

fn other_streams_of_cudarc_wait_and_are_waited_for(device: &Device) -> Outcome {
    let Some(stream) = shared(device)? else { return Ok(()) };
    let theirs = stream.cudarc().context().new_stream()?;
    let first = device.new_stream()?;
    let (mut x, mut y) = (first.fill(1_u32, LENGTH)?, first.zeros::<u32>(LENGTH)?);
    let gate = Gate::close(&first)?;
    first.fill_into(2, &mut x)?;
    gate.open_soon();
    theirs.memcpy_dtod(&stream.read(&x)?, &mut stream.write(&mut y)?)?;
    first.fill_into(3, &mut x)?;
    assert_eq!(first.download(&y)?, [2; LENGTH]);
    Ok(())
}

fn memory_of_cudarc_becomes_a_buffer(device: &Device) -> Outcome {
    let Some(stream) = shared(device)? else { return Ok(()) };
    let other = device.new_stream()?;
    let context = stream.cudarc().context();
    // cudarc keeps no account of uses in a context without streams of its own.
    let without_account = CudaContext::new(context.ordinal())?;
    for theirs in [context.new_stream()?, without_account.default_stream(), stream.cudarc().clone()] {
        let slice = theirs.clone_htod(&[1_u32, 2, 3])?;
        let copied = theirs.clone_dtod(&slice)?;
        let (mut buffer, copied) = (stream.adopt(slice)?, stream.adopt(copied)?);
        other.fill_into(9, buffer.slice_mut(1..)?)?;
        assert_eq!(other.download(&buffer)?, [1, 9, 9]);
        assert_eq!(other.download(&copied)?, [1, 2, 3]);
        drop((buffer, copied));
    }
    device.synchronize()?;
    Ok(context.check_err()?)
}

fn a_stream_of_cudarc_outlives_its_shared_handle(device: &Device) -> Outcome {
    let Some(stream) = shared(device)? else { return Ok(()) };
    let theirs = stream.cudarc().clone();
    let buffer = stream.fill(5_u32, LENGTH)?;
    drop(stream);
    // SAFETY: nothing captures the stream.
    let stream = unsafe { SharedStream::from_cudarc(theirs.clone())? };
    let copied = theirs.clone_dtoh(&stream.read(&buffer)?)?;
    assert_eq!(copied, [5; LENGTH]);
    Ok(())
}

fn elements_go_to_cudarc_as_another_type(device: &Device) -> Outcome {
    let Some(stream) = shared(device)? else { return Ok(()) };
    let pairs = stream.upload(&[[1_u32, 0], [2, 0]])?;
    // SAFETY: both are eight bytes of any value.
    let numbers = unsafe { stream.read(&pairs)?.transmute::<u64>()? };
    let start = numbers.device_ptr(stream.cudarc()).0 as usize;
    assert_eq!(stream.cudarc().clone_dtoh(&numbers)?, [1, 2]);
    let shifted = stream.upload(&[0_u32; 5])?;
    let shifted = shifted.slice(1..)?.cast::<[u32; 2]>()?;
    // SAFETY: as above.
    let refused = unsafe { stream.read(shifted)?.transmute::<u64>() };
    assert!(
        matches!(refused, Err(Error::InvalidPointer { address, .. }) if address % 8 == 4 && address != start)
    );
    Ok(())
}

fn what_cannot_be_shared_is_refused(device: &Device) -> Outcome {
    let Some(stream) = shared(device)? else { return Ok(()) };
    let context = stream.cudarc().context();
    // SAFETY: nothing captures the stream.
    let refused = unsafe { SharedStream::from_cudarc(context.per_thread_stream()) };
    assert!(matches!(refused, Err(Error::Unsupported { .. })), "{:?}", refused.err());
    for other in Device::all().iter().filter(|other| other.is_cuda() && *other != device) {
        let theirs = shared(other)?.ok_or("it is a GPU")?;
        let x = theirs.fill(1_u32, 1)?;
        assert!(matches!(stream.read(&x).map(drop), Err(Error::DeviceMismatch { .. })));
        let refused = stream.adopt(theirs.cudarc().clone_htod(&[1_u32])?);
        assert!(matches!(refused, Err(Error::DeviceMismatch { .. })), "{:?}", refused.err());
    }
    Ok(())
}
