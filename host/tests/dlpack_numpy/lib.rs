//! A library for `numpy_test.py` and `gpu_test.py`: tensors of this crate for NumPy, CuPy and PyTorch, and theirs
//! for this crate, on the device that FERROGRID_DEVICE names. It must not check anything itself: the scripts do.

use ferrogrid_host::Device;
use ferrogrid_host::dlpack::DlpackTensor;
use ferrogrid_host::dlpack::abi::{DLManagedTensor, DLManagedTensorVersioned};

fn counting() -> ferrogrid_host::Result<DlpackTensor> {
    let stream = Device::best()?.new_stream()?;
    let buffer = stream.upload(&[1.5_f32, 2.5, 3.5, 4.5, 5.5, 6.5])?;
    DlpackTensor::from_buffer(&stream, buffer)?.with_shape(&[2, 3])
}

/// A tensor of shape (2, 3), for a capsule `dltensor_versioned`.
///
/// # Panics
/// If the device cannot make one: to C it is an abort.
#[unsafe(no_mangle)]
pub extern "C" fn counting_versioned() -> *mut DLManagedTensorVersioned {
    counting().unwrap().into_raw()
}

/// The same, for a capsule `dltensor`.
///
/// # Panics
/// As `counting_versioned`.
#[unsafe(no_mangle)]
pub extern "C" fn counting_unversioned() -> *mut DLManagedTensor {
    counting().unwrap().into_raw_unversioned()
}

/// Doubles the elements of an array of int64 where they are; 0, or 1 for what cannot be taken over.
///
/// # Safety
/// As `DlpackTensor::from_raw_unversioned`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn double_in_place(raw: *mut DLManagedTensor) -> i32 {
    // SAFETY: the script gives each capsule away once, and waits for this to return.
    let tensor = unsafe { DlpackTensor::from_raw_unversioned(raw) };
    let double = || -> ferrogrid_host::Result<()> {
        let stream = Device::best()?.new_stream()?;
        let mut buffer = tensor?.into_buffer::<i64>(&stream)?;
        let doubled: Vec<i64> = stream.download(&buffer)?.iter().map(|value| 2 * value).collect();
        stream.upload_into(&doubled, &mut buffer)
    };
    let outcome = double();
    i32::from(outcome.is_err())
}
