//! DLPack tensors that leave a device and return: all kinds of memory, layouts and element types.

use std::sync::Arc;

use ferrogrid::dlpack::abi::{self, DLDevice, DLManagedTensorVersioned};
use ferrogrid::dlpack::{DlpackElement, DlpackError, DlpackTensor};
use ferrogrid::{Device, Error, GraphError, Result, Stream};

use crate::runtime::{Case, Gate, Outcome};

pub(crate) const CASES: &[Case] = &[
    ("page_locked_tensors_leave_and_return", page_locked_tensors_leave_and_return),
    ("managed_tensors_leave_and_return", managed_tensors_leave_and_return),
    ("read_only_tensors_are_read_and_not_written", read_only_tensors_are_read_and_not_written),
    ("tensors_of_any_layout_are_copied", tensors_of_any_layout_are_copied),
    ("tensors_of_the_host_are_copied_to_any_device", tensors_of_the_host_are_copied_to_any_device),
    ("shared_and_copied_buffers_leave", shared_and_copied_buffers_leave),
    ("tensors_leave_in_the_order_of_a_stream", tensors_leave_in_the_order_of_a_stream),
    ("tensors_are_taken_over_in_the_order_of_a_stream", tensors_are_taken_over_in_the_order_of_a_stream),
    ("a_recording_exchanges_no_tensors", a_recording_exchanges_no_tensors),
    ("elements_of_all_types_leave_and_return", elements_of_all_types_leave_and_return),
    ("tensors_of_other_devices_are_refused", tensors_of_other_devices_are_refused),
];

/// The tensor as its receiver would take it over.
fn given_away(tensor: DlpackTensor) -> Result<DlpackTensor> {
    // SAFETY: from `into_raw`, and nothing else refers to it.
    unsafe { DlpackTensor::from_raw(tensor.into_raw()) }
}

fn place(device: &Device, on_gpu: i32) -> DLDevice {
    match device.ordinal() {
        Some(ordinal) => DLDevice { device_type: on_gpu, device_id: ordinal as i32 },
        None => DLDevice { device_type: abi::CPU, device_id: 0 },
    }
}

fn page_locked_tensors_leave_and_return(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut memory = device.pinned_zeros::<u32>(6)?;
    stream.fill_into(5, &mut memory)?; // has run when it leaves
    let tensor = given_away(DlpackTensor::from_pinned(memory)?.with_shape(&[2, 3])?)?;
    let expected = DLDevice { device_id: 0, ..place(device, abi::CUDA_HOST) };
    assert_eq!((tensor.device(), tensor.shape()), (expected, &[2, 3][..]));
    let mut memory = tensor.into_pinned::<u32>(device)?;
    memory[0] = 6;
    assert_eq!(stream.download(&memory)?, [6, 5, 5, 5, 5, 5]);
    stream.fill_into(7, memory.slice_mut(3..)?)?;
    assert_eq!(memory.into_vec(), [6, 5, 5, 7, 7, 7]);

    let none = DlpackTensor::from_pinned(device.pinned_zeros::<u8>(0)?)?;
    assert!(given_away(none)?.into_pinned::<u8>(device)?.is_empty());
    let error = DlpackTensor::from_pinned(device.pinned_zeros::<u8>(4)?)?.with_read_only();
    let error = given_away(error)?.into_pinned::<u8>(device).unwrap_err();
    assert_eq!(error, Error::Dlpack(DlpackError::ReadOnly));
    Ok(())
}

fn managed_tensors_leave_and_return(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut memory = match stream.managed_zeros::<i64>(4) {
        Err(Error::Unsupported { .. }) => return Ok(()),
        memory => memory?,
    };
    stream.fill_into(-5, &mut memory)?;
    let tensor = given_away(DlpackTensor::from_managed(memory)?)?;
    assert_eq!(tensor.device(), place(device, abi::CUDA_MANAGED));
    let mut memory = tensor.into_managed::<i64>(&stream)?;
    memory.write()?[0] = 6;
    stream.fill_into(7, memory.slice_mut(2..)?)?;
    assert_eq!(memory.read()?, [6, -5, 7, 7]);
    // Managed memory is a buffer as well, but a buffer is no managed memory.
    let tensor = given_away(DlpackTensor::from_managed(memory)?)?;
    let buffer = tensor.into_buffer::<i64>(&stream)?;
    assert_eq!(stream.download(&buffer)?, [6, -5, 7, 7]);
    let refused = given_away(DlpackTensor::from_buffer(&stream, buffer)?)?.into_managed::<i64>(&stream);
    match refused {
        Ok(_) if !device.is_cuda() => Ok(()),
        Err(Error::Dlpack(DlpackError::OtherDevice { .. })) if device.is_cuda() => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}

fn read_only_tensors_are_read_and_not_written(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let tensor = || -> Result<DlpackTensor> {
        let buffer = stream.upload(&[1_u32, 2, 3, 4])?;
        given_away(DlpackTensor::from_buffer(&stream, buffer)?.with_read_only())
    };
    assert!(tensor()?.is_read_only());
    let numbers = tensor()?.into_read_only_buffer::<u32>(&stream)?;
    let mut copy = stream.zeros::<u32>(4)?;
    stream.copy(&numbers, &mut copy)?;
    assert_eq!(stream.download(&copy)?, [1, 2, 3, 4]);
    assert_eq!((numbers.len(), stream.download(numbers.slice(2..)?)?), (4, vec![3, 4]));
    assert_eq!(tensor()?.into_buffer::<u32>(&stream).unwrap_err(), Error::Dlpack(DlpackError::ReadOnly));
    assert_eq!(tensor()?.into_managed::<u32>(&stream).unwrap_err(), Error::Dlpack(DlpackError::ReadOnly));
    let unsayable = tensor()?.into_raw_unversioned().unwrap_err();
    assert_eq!(unsayable, Error::Dlpack(DlpackError::UnversionedReadOnly));
    // Writable memory is readable, too.
    let writable = DlpackTensor::from_buffer(&stream, stream.upload(&[9_u8])?)?;
    let read_only = given_away(writable)?.into_read_only_buffer::<u8>(&stream)?;
    assert_eq!(stream.download(&read_only)?, [9]);
    Ok(())
}

/// A shape, strides, the first element, and the expected elements.
type Layout = (&'static [usize], &'static [i64], usize, &'static [u16]);

fn tensors_of_any_layout_are_copied(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let layouts: [Layout; 7] = [
        (&[2, 3], &[3, 1], 0, &[0, 1, 2, 3, 4, 5]),
        (&[4, 2], &[1, 4], 0, &[0, 4, 1, 5, 2, 6, 3, 7]), // transposed
        (&[2, 2], &[8, 1], 3, &[3, 4, 11, 12]),           // a part
        (&[3], &[5], 1, &[1, 6, 11]),                     // every fifth
        (&[4], &[-2], 7, &[7, 5, 3, 1]),                  // backwards
        (&[2, 2], &[0, 1], 22, &[22, 23, 22, 23]),        // repeated
        (&[2, 2, 3], &[12, -4, 1], 4, &[4, 5, 6, 0, 1, 2, 16, 17, 18, 12, 13, 14]),
    ];
    for (shape, strides, offset, expected) in layouts {
        let buffer = stream.upload(&(0..24).collect::<Vec<u16>>())?;
        let tensor = DlpackTensor::from_buffer(&stream, buffer)?.with_layout(shape, strides, offset)?;
        let tensor = given_away(tensor.with_read_only())?;
        assert_eq!((tensor.shape(), tensor.strides()), (shape, strides));
        let copy = tensor.copy_to_buffer::<u16>(&stream)?;
        drop(tensor);
        assert_eq!(stream.download(&copy)?, expected, "{shape:?} {strides:?} {offset}");
    }
    let empty =
        DlpackTensor::from_buffer(&stream, stream.zeros::<u16>(0)?)?.with_layout(&[0, 9], &[5, 5], 0)?;
    assert!(given_away(empty)?.copy_to_buffer::<u16>(&stream)?.is_empty());

    let image = DlpackTensor::from_pitched(&stream, stream.zeros_pitched::<f32>(100, 3)?)?;
    assert_eq!((image.shape(), image.strides()), (&[3, 100][..], &[128, 1][..]));
    let image = given_away(image)?;
    assert_eq!(stream.download(&image.copy_to_buffer::<f32>(&stream)?)?, [0.0; 300]);
    let error = image.into_buffer::<f32>(&stream).unwrap_err();
    let expected = DlpackError::NotContiguous { shape: vec![3, 100], strides: vec![128, 1] };
    assert_eq!(error, Error::Dlpack(expected));

    let tensor = DlpackTensor::from_buffer(&stream, stream.zeros::<u16>(24)?)?;
    let error = tensor.with_layout(&[4, 6], &[6, 2], 0).unwrap_err().to_string();
    for part in ["[4, 6]", "[6, 2]", "0 to 28", "has 24"] {
        assert!(error.contains(part), "{part:?} is missing in {error:?}");
    }
    Ok(())
}

/// On the CPU device, and from there, or from page-locked memory, to a GPU.
fn tensors_of_the_host_are_copied_to_any_device(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let host = Device::cpu().new_stream()?;
    let buffer = host.upload(&[0_u8, 1, 2, 3, 4, 5])?;
    let columns = DlpackTensor::from_buffer(&host, buffer)?.with_layout(&[3, 2], &[1, 3], 0)?;
    let copy = given_away(columns)?.copy_to_buffer::<u8>(&stream)?;
    assert_eq!(stream.download(&copy)?, [0, 3, 1, 4, 2, 5]);
    let pinned = DlpackTensor::from_pinned(device.pinned_copy(&[0_u8, 1, 2, 3, 4, 5])?)?;
    let pinned = given_away(pinned.with_layout(&[2], &[-5], 5)?)?;
    assert_eq!(stream.download(&pinned.copy_to_buffer::<u8>(&stream)?)?, [5, 0]);
    Ok(())
}

fn shared_and_copied_buffers_leave(device: &Device) -> Outcome {
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let mut buffer = stream.zeros::<u32>(1000)?;
    let gate = Gate::close(&stream)?;
    stream.fill_into(4, &mut buffer)?;
    gate.open_soon();
    let mut shared = Arc::new(buffer);
    let tensor = given_away(DlpackTensor::from_shared(&other, shared.clone())?)?;
    assert!(tensor.is_read_only() && !tensor.is_copied());
    let theirs = tensor.into_read_only_buffer::<u32>(&other)?;
    assert_eq!((other.download(&theirs)?, stream.download(&*shared)?), (vec![4; 1000], vec![4; 1000]));
    assert!(Arc::get_mut(&mut shared).is_none(), "it is not writable while it is shared");
    drop(theirs);
    other.synchronize()?;
    let buffer = Arc::get_mut(&mut shared).ok_or("it is not shared any more")?;
    stream.fill_into(5, &mut *buffer)?;

    let copy = given_away(DlpackTensor::from_copy(&stream, buffer.slice(..3)?)?)?;
    assert!(copy.is_copied() && !copy.is_read_only());
    stream.fill_into(6, &mut *buffer)?;
    assert_eq!(stream.download(&copy.into_buffer::<u32>(&stream)?)?, [5; 3]);
    Ok(())
}

fn returns<T: DlpackElement + PartialEq + std::fmt::Debug>(
    stream: &Stream,
    elements: &[T],
    code: u8,
) -> Outcome {
    let tensor = given_away(DlpackTensor::from_buffer(stream, stream.upload(elements)?)?)?;
    let found = tensor.element_type();
    assert_eq!((found.code, usize::from(found.bits), found.lanes), (code, 8 * size_of::<T>(), 1));
    assert_eq!(stream.download(&tensor.into_buffer::<T>(stream)?)?, elements);
    Ok(())
}

fn tensors_leave_in_the_order_of_a_stream(device: &Device) -> Outcome {
    let [producer, consumer, third] = [device.new_stream()?, device.new_stream()?, device.new_stream()?];
    let mut buffer = producer.zeros::<u32>(10_000)?;
    let shared = Arc::new(producer.zeros::<u32>(100)?);
    let (tensor, read_only) = Gate::close(&producer)?.while_closed(|| {
        producer.fill_into(7, &mut buffer)?;
        let read_only = DlpackTensor::from_shared_async(&consumer, shared.clone())?;
        Ok((DlpackTensor::from_buffer_async(&consumer, buffer)?.with_shape(&[100, 100])?, read_only))
    })?;
    assert_eq!((tensor.shape(), tensor.device()), (&[100, 100][..], place(device, abi::CUDA)));
    assert!(read_only.is_read_only() && !tensor.is_read_only());
    // Work in that order sees the data.
    // SAFETY: from `into_raw`, nothing else refers to it, and it is ready on that stream.
    let tensor = unsafe { DlpackTensor::from_raw_async(&consumer, tensor.into_raw())? };
    assert_eq!(third.download(&tensor.into_buffer::<u32>(&third)?)?, [7; 10_000]);
    assert_eq!(third.download(&*read_only.into_read_only_buffer::<u32>(&third)?)?, [0; 100]);

    let other = Device::cpu_with(Default::default())?.new_stream()?;
    let refused = DlpackTensor::from_buffer_async(&other, producer.zeros::<u32>(4)?).unwrap_err();
    assert!(matches!(refused, Error::DeviceMismatch { .. }), "{refused}");
    Ok(())
}

fn tensors_are_taken_over_in_the_order_of_a_stream(device: &Device) -> Outcome {
    let [theirs, ours, third] = [device.new_stream()?, device.new_stream()?, device.new_stream()?];
    let take = |len: usize| -> std::result::Result<DlpackTensor, Box<dyn std::error::Error>> {
        let mut buffer = theirs.zeros::<u32>(len)?;
        let tensor = Gate::close(&theirs)?.while_closed(|| {
            theirs.fill_into(5, &mut buffer)?;
            DlpackTensor::from_buffer_async(&ours, buffer)
        })?;
        // SAFETY: from `into_raw`, nothing else refers to it, and it is ready on that stream.
        Ok(unsafe { DlpackTensor::from_raw_async(&ours, tensor.into_raw())? })
    };
    let mut buffer = take(1000)?.into_buffer::<u32>(&third)?;
    third.fill_into(6, buffer.slice_mut(1..)?)?;
    assert_eq!(theirs.download(buffer.slice(..3)?)?, [5, 6, 6]);
    assert_eq!(third.download(&take(20)?.copy_to_buffer::<u32>(&third)?)?, [5; 20]);

    // Page-locked memory is read by the host itself.
    let mut memory = device.pinned_zeros::<u32>(3)?;
    theirs.fill_into(9, &mut memory)?;
    let raw = DlpackTensor::from_pinned(memory)?.into_raw_unversioned()?;
    // SAFETY: from `into_raw_unversioned`, and nothing else refers to it.
    let tensor = unsafe { DlpackTensor::from_raw_unversioned_async(&ours, raw)? };
    assert_eq!(*tensor.into_pinned::<u32>(device)?, [9; 3]);
    Ok(())
}

fn a_recording_exchanges_no_tensors(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let is_refused = |error: &Error| {
        matches!(error, Error::Graph(GraphError::NotRecordable { .. } | GraphError::UnknownBuffer))
    };
    let raw = DlpackTensor::from_buffer(&stream, stream.zeros::<u32>(4)?)?.into_raw();
    let (graph, errors) = stream.capture(|capture| {
        let out = DlpackTensor::from_buffer_async(capture, stream.zeros::<u32>(4)?);
        // SAFETY: from `into_raw`, and nothing else refers to it.
        let taken = unsafe { DlpackTensor::from_raw_async(capture, raw) };
        Ok([out.map(drop), taken.map(drop)])
    })?;
    assert_eq!(graph.len(), 0);
    for error in errors {
        let error = error.unwrap_err();
        assert!(is_refused(&error), "{error}");
    }
    Ok(())
}

fn elements_of_all_types_leave_and_return(device: &Device) -> Outcome {
    let stream = &device.new_stream()?;
    returns(stream, &[true, false, true], abi::BOOL)?;
    returns(stream, &[i8::MIN, 0, 7], abi::INT)?;
    returns(stream, &[u64::MAX, 0], abi::UINT)?;
    returns(stream, &[1.5_f32, -2.5], abi::FLOAT)?;
    returns(stream, &[[1.0_f32, -1.0], [0.5, 2.5]], abi::COMPLEX)?;
    returns(stream, &[[1.0_f64, -1.0]], abi::COMPLEX)
}

fn tensors_of_other_devices_are_refused(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let elsewhere = |change: fn(&mut DLManagedTensorVersioned)| -> Result<DlpackTensor> {
        let raw = DlpackTensor::from_buffer(&stream, stream.zeros::<u8>(4)?)?.into_raw();
        // SAFETY: from `into_raw`; invalid ones are refused.
        unsafe {
            change(&mut *raw);
            DlpackTensor::from_raw(raw)
        }
    };
    let changes: [fn(&mut DLManagedTensorVersioned); 2] = [
        |raw| raw.dl_tensor.device.device_type = 10, // kDLROCM
        |raw| raw.dl_tensor.device = DLDevice { device_type: abi::CUDA, device_id: 77 },
    ];
    for change in changes {
        let refused = [
            elsewhere(change)?.into_buffer::<u8>(&stream).map(|_| ()),
            elsewhere(change)?.into_read_only_buffer::<u8>(&stream).map(|_| ()),
            elsewhere(change)?.into_managed::<u8>(&stream).map(|_| ()),
            elsewhere(change)?.into_pinned::<u8>(device).map(|_| ()),
            elsewhere(change)?.copy_to_buffer::<u8>(&stream).map(|_| ()),
        ];
        for refused in refused {
            assert!(matches!(refused, Err(Error::Dlpack(DlpackError::OtherDevice { .. }))), "{refused:?}");
        }
    }
    Ok(())
}
