//! DLPack: tensors that leave and arrive with their types, shapes and ownership, checked by a consumer
//! written here against the structures alone, and by NumPy where Python has it.

use std::ffi::c_void;
use std::process::Command;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};

use ferrogrid_host::dlpack::abi::{
    self, DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLTensor,
};
use ferrogrid_host::dlpack::{DlpackError, DlpackTensor};
use ferrogrid_host::{Device, Error, Result, Stream};

fn stream() -> Stream {
    Device::cpu().new_stream().unwrap()
}

/// Another library's tensor: memory, shape, strides, and how often it was deleted.
struct Foreign {
    memory: Vec<i32>,
    shape: Vec<i64>,
    strides: Vec<i64>,
    deleted: AtomicU32,
}

const INT32: DLDataType = DLDataType { code: abi::INT, bits: 32, lanes: 1 };

impl Foreign {
    /// Lives until the end of the process, so that tests can look at it after its deletion.
    fn new(shape: &[i64], strides: &[i64]) -> &'static mut Foreign {
        Box::leak(Box::new(Foreign {
            memory: (0..24).collect(),
            shape: shape.to_vec(),
            strides: strides.to_vec(),
            deleted: AtomicU32::new(0),
        }))
    }

    fn tensor(&mut self) -> DLTensor {
        DLTensor {
            data: self.memory.as_mut_ptr().cast(),
            device: DLDevice { device_type: abi::CPU, device_id: 0 },
            ndim: self.shape.len() as i32,
            dtype: INT32,
            shape: self.shape.as_mut_ptr(),
            strides: if self.strides.is_empty() { null_mut() } else { self.strides.as_mut_ptr() },
            byte_offset: 0,
        }
    }

    fn managed(&mut self) -> *mut DLManagedTensorVersioned {
        let dl_tensor = self.tensor();
        let manager_ctx = (&raw mut self.deleted).cast::<c_void>();
        let (version, flags) = (abi::VERSION, 0);
        Box::leak(Box::new(DLManagedTensorVersioned {
            version,
            manager_ctx,
            deleter: Some(delete),
            flags,
            dl_tensor,
        }))
    }

    fn deletions(&self) -> u32 {
        self.deleted.load(Ordering::Relaxed)
    }
}

/// # Safety
/// `tensor` is from `managed`, and was not deleted before.
unsafe extern "C" fn delete(tensor: *mut DLManagedTensorVersioned) {
    // SAFETY: made by `managed`, and deleted once, as the tests show.
    unsafe {
        let tensor = Box::from_raw(tensor);
        (*tensor.manager_ctx.cast::<AtomicU32>()).fetch_add(1, Ordering::Relaxed);
    }
}

/// # Safety
/// As `DlpackTensor::from_raw`.
unsafe fn import(raw: *mut DLManagedTensorVersioned) -> DlpackTensor {
    // SAFETY: passed on.
    unsafe { DlpackTensor::from_raw(raw) }.unwrap()
}

#[test]
fn an_exported_buffer_keeps_type_shape_and_elements() -> Result<()> {
    let stream = stream();
    let buffer = stream.upload(&[1.0_f64, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    let raw = DlpackTensor::from_buffer(&stream, buffer)?.with_shape(&[3, 2])?.into_raw();
    // SAFETY: `raw` is live until it is deleted below, and its pointers lead to what its numbers say.
    unsafe {
        let DLManagedTensorVersioned { version, flags, dl_tensor: tensor, deleter, .. } = &*raw;
        assert_eq!((version.major, *flags), (1, 0));
        assert_eq!(tensor.dtype, DLDataType { code: abi::FLOAT, bits: 64, lanes: 1 });
        assert_eq!(tensor.device, DLDevice { device_type: abi::CPU, device_id: 0 });
        assert_eq!(std::slice::from_raw_parts(tensor.shape, tensor.ndim as usize), [3, 2]);
        assert_eq!(std::slice::from_raw_parts(tensor.strides, tensor.ndim as usize), [2, 1]);
        let elements = std::slice::from_raw_parts(tensor.data.cast::<f64>(), 6);
        assert_eq!(elements, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        deleter.unwrap()(raw);
    }
    Ok(())
}

#[test]
fn work_on_a_buffer_has_run_when_it_leaves() -> Result<()> {
    let (writer, other) = (stream(), stream());
    let mut buffer = writer.zeros::<u32>(1 << 20)?;
    for value in 1..20 {
        let source = writer.fill(value, 1 << 20)?;
        writer.copy(&source, &mut buffer)?;
    }
    let raw = DlpackTensor::from_buffer(&other, buffer)?.into_raw_unversioned()?;
    // SAFETY: as above.
    unsafe {
        let DLManagedTensor { dl_tensor, deleter, .. } = &*raw;
        let elements = std::slice::from_raw_parts(dl_tensor.data.cast::<u32>(), 1 << 20);
        assert!(elements.iter().all(|&element| element == 19));
        deleter.unwrap()(raw);
    }
    Ok(())
}

#[test]
fn a_tensor_is_used_in_place_and_deleted_once_after_its_last_use() -> Result<()> {
    let stream = stream();
    for strides in [&[][..], &[4, 1]] {
        let foreign = Foreign::new(&[6, 4], strides);
        // SAFETY: live, and not used otherwise until it is dropped.
        let tensor = unsafe { import(foreign.managed()) };
        let mut buffer = tensor.into_buffer::<i32>(&stream)?;
        assert_eq!(stream.download(buffer.slice(20..)?)?, [20, 21, 22, 23]);
        let other = Device::cpu().new_stream()?;
        let sevens = other.fill(7, 24)?;
        other.copy(&sevens, &mut buffer)?;
        assert_eq!(foreign.deletions(), 0);
        drop(buffer);
        // The tensor is freed at a wait after its uses have run.
        other.synchronize()?;
        stream.synchronize()?;
        assert_eq!(foreign.deletions(), 1);
        assert_eq!(foreign.memory, [7; 24]);
    }
    Ok(())
}

#[test]
fn a_tensor_that_is_not_wanted_is_deleted() {
    let foreign = Foreign::new(&[24], &[]);
    // SAFETY: live, and not in use.
    drop(unsafe { import(foreign.managed()) });
    assert_eq!(foreign.deletions(), 1);
    let raw = foreign.managed();
    // SAFETY: live; it may be changed before it is given away.
    let error = unsafe {
        (*raw).version.major = 2;
        DlpackTensor::from_raw(raw).unwrap_err()
    };
    assert_eq!(error.to_string(), "the tensor has version 2.1 of DLPack; expected 1.x");
    assert_eq!(foreign.deletions(), 2);
}

/// Why a tensor with `change` made to it does not become a buffer of `i32`; it is deleted in any case.
fn refusal(
    shape: &[i64],
    strides: &[i64],
    change: impl FnOnce(&mut DLManagedTensorVersioned),
) -> DlpackError {
    let foreign = Foreign::new(shape, strides);
    let raw = foreign.managed();
    // SAFETY: live; it may be changed before it is given away, as long as it is refused.
    let tensor = unsafe {
        change(&mut *raw);
        DlpackTensor::from_raw(raw)
    };
    let error = tensor.and_then(|tensor| tensor.into_buffer::<i32>(&stream())).unwrap_err();
    assert_eq!(foreign.deletions(), 1, "{error}");
    let Error::Dlpack(error) = error else { panic!("{error}") };
    error
}

#[test]
fn tensors_that_cannot_be_buffers_are_refused_and_deleted() {
    let none = |_: &mut DLManagedTensorVersioned| {};
    let error = refusal(&[4, 6], &[1, 4], none);
    assert_eq!(error, DlpackError::NotContiguous { shape: vec![4, 6], strides: vec![1, 4] });
    assert!(matches!(refusal(&[4, 3], &[6, 1], none), DlpackError::NotContiguous { .. }));
    assert!(matches!(refusal(&[24], &[-1], none), DlpackError::NotContiguous { .. }));
    assert_eq!(refusal(&[24], &[], |tensor| tensor.flags = abi::READ_ONLY), DlpackError::ReadOnly);
    let error = refusal(&[24], &[], |tensor| tensor.dl_tensor.dtype.code = abi::FLOAT);
    assert_eq!(error.to_string(), "the tensor has elements of type float32; expected int32");
    let lanes = refusal(&[6], &[], |tensor| tensor.dl_tensor.dtype.lanes = 4);
    assert!(lanes.to_string().contains("int32x4"), "{lanes}");
    let elsewhere = refusal(&[24], &[], |tensor| tensor.dl_tensor.device.device_type = abi::CUDA);
    assert!(matches!(elsewhere, DlpackError::OtherDevice { .. }), "{elsewhere}");
    let odd = refusal(&[20], &[], |tensor| tensor.dl_tensor.byte_offset = 2);
    assert!(matches!(odd, DlpackError::Alignment { alignment: 4, .. }), "{odd}");
    for broken in [
        refusal(&[-1], &[], none),
        refusal(&[i64::MAX, i64::MAX], &[], none),
        refusal(&[24], &[], |tensor| tensor.dl_tensor.ndim = -1),
        refusal(&[24], &[], |tensor| tensor.dl_tensor.data = null_mut()),
        refusal(&[24], &[], |tensor| tensor.dl_tensor.shape = null_mut()),
    ] {
        assert!(matches!(broken, DlpackError::Broken { .. }), "{broken}");
    }
    // SAFETY: refused.
    assert!(unsafe { DlpackTensor::from_raw(null_mut()) }.is_err());
}

#[test]
fn offsets_scalars_and_dimensions_of_one_or_no_elements_are_understood() -> Result<()> {
    let stream = stream();
    let elements = |shape: &[i64], strides: &[i64], offset: u64| -> Result<Vec<i32>> {
        let raw = Foreign::new(shape, strides).managed();
        // SAFETY: live, and not used otherwise.
        let tensor = unsafe {
            (*raw).dl_tensor.byte_offset = offset;
            import(raw)
        };
        stream.download(&tensor.into_buffer::<i32>(&stream)?)
    };
    assert_eq!(elements(&[2], &[], 40)?, [10, 11]);
    assert_eq!(elements(&[], &[], 8)?, [2]);
    assert_eq!(elements(&[1, 3], &[99, 1], 0)?, [0, 1, 2]);
    assert!(elements(&[0, 4], &[], 1)?.is_empty());
    assert!(elements(&[0, i64::MAX, i64::MAX], &[1, 1, 1], 0)?.is_empty());
    Ok(())
}

#[test]
fn a_shape_has_as_many_elements_as_the_tensor() -> Result<()> {
    let stream = stream();
    let tensor = DlpackTensor::from_buffer(&stream, stream.zeros::<u8>(6)?)?;
    let error = tensor.with_shape(&[2, 4]).unwrap_err();
    assert_eq!(error, Error::Dlpack(DlpackError::Shape { shape: vec![2, 4], length: 6 }));
    let empty = DlpackTensor::from_buffer(&stream, stream.zeros::<bool>(0)?)?.with_shape(&[3, 0])?;
    // SAFETY: from `into_raw`.
    let back = unsafe { import(empty.into_raw()) };
    assert_eq!(back.shape(), [3, 0]);
    assert_eq!(back.into_buffer::<bool>(&stream)?.len(), 0);
    Ok(())
}

#[test]
fn numpy_and_this_crate_share_arrays() {
    share_by("numpy_test.py", "import numpy; numpy.from_dlpack");
}

#[test]
fn cupy_or_pytorch_and_this_crate_share_arrays_on_a_gpu() {
    if Device::cuda(0).is_err() {
        return eprintln!("there is no GPU: nothing is shared");
    }
    let either = "try: import cupy\nexcept ImportError: import torch";
    share_by("gpu_test.py", either);
}

/// Runs `script` if Python can do what it `needs`.
fn share_by(script: &str, needs: &str) {
    let python = std::env::var_os("FERROGRID_TEST_PYTHON").unwrap_or("python3".into());
    let able = Command::new(&python).args(["-c", needs]).output();
    if !able.is_ok_and(|output| output.status.success()) {
        return eprintln!(
            "Python cannot `{needs}`: nothing is shared (FERROGRID_TEST_PYTHON names one that can)"
        );
    }
    let test = std::env::current_exe().unwrap();
    let examples = test.ancestors().nth(2).unwrap().join("examples");
    let name = format!("{}dlpack_numpy{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let library = examples.join(name);
    assert!(library.exists(), "{library:?} is missing: cargo build --example dlpack_numpy");
    let script = format!("{}/tests/dlpack_numpy/{script}", env!("CARGO_MANIFEST_DIR"));
    let output =
        Command::new(python).env("FERROGRID_DEVICE", "cpu").arg(script).arg(library).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
