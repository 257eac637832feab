//! A library for `numpy_test.py` and `gpu_test.py`: tensors of this crate for NumPy, CuPy and PyTorch, and
//! theirs for this crate, on the device that FERROGRID_DEVICE names. The scripts check the results.

use std::sync::Arc;

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
    counting().unwrap().into_raw_unversioned().unwrap()
}

/// A read-only tensor of shape (3,), for a capsule `dltensor_versioned`.
///
/// # Panics
/// As `counting_versioned`.
#[unsafe(no_mangle)]
pub extern "C" fn read_only() -> *mut DLManagedTensorVersioned {
    let tensor = || -> ferrogrid_host::Result<DlpackTensor> {
        let stream = Device::best()?.new_stream()?;
        DlpackTensor::from_shared(&stream, Arc::new(stream.upload(&[1_u8, 2, 3])?))
    };
    tensor().unwrap().into_raw()
}

/// Complex numbers, the columns of a matrix of shape (2, 3) as rows, for a capsule `dltensor_versioned`.
///
/// # Panics
/// As `counting_versioned`.
#[unsafe(no_mangle)]
pub extern "C" fn complex_columns() -> *mut DLManagedTensorVersioned {
    let tensor = || -> ferrogrid_host::Result<DlpackTensor> {
        let stream = Device::best()?.new_stream()?;
        let numbers: [[f32; 2]; 6] = std::array::from_fn(|i| [i as f32, -(i as f32)]);
        DlpackTensor::from_buffer(&stream, stream.upload(&numbers)?)?.with_layout(&[3, 2], &[1, 3], 0)
    };
    tensor().unwrap().into_raw()
}

/// Copies the elements of an array of float64 in any layout to `out`, row after row; 0, or 1 for what cannot be.
///
/// # Safety
/// As `DlpackTensor::from_raw`; `out` has room for all elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gather(raw: *mut DLManagedTensorVersioned, out: *mut f64) -> i32 {
    // SAFETY: the script gives each capsule away once, and waits for this to return.
    let tensor = unsafe { DlpackTensor::from_raw(raw) };
    let gathered = || -> ferrogrid_host::Result<Vec<f64>> {
        let stream = Device::best()?.new_stream()?;
        stream.download(&tensor?.copy_to_buffer::<f64>(&stream)?)
    };
    let Ok(gathered) = gathered() else { return 1 };
    // SAFETY: there is room for them.
    unsafe { out.copy_from_nonoverlapping(gathered.as_ptr(), gathered.len()) };
    0
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
        stream.upload_into(&doubled, &mut buffer)?;
        drop(buffer);
        stream.synchronize() // the tensor has been let go of
    };
    let outcome = double();
    i32::from(outcome.is_err())
}
