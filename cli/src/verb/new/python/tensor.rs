//! Tensors of Python as buffers, by DLPack, and streams of its libraries.

use std::ffi::{CStr, c_void};

use ferrogrid::dlpack::{DlpackElement, DlpackTensor, ReadOnlyBuffer};
use ferrogrid::prelude::*;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;

/// Where tensors are, as DLPack says it.
const CPU: i32 = 1;
const CUDA: i32 = 2;

/// The stream for work on `tensor`: on its device, that with the handle, or else the current one of PyTorch or CuPy.
pub fn stream(tensor: &Bound<'_, PyAny>, handle: Option<usize>) -> PyResult<Stream> {
    let (kind, ordinal): (i32, usize) = tensor.call_method0("__dlpack_device__")?.extract()?;
    if kind == CPU {
        return Device::cpu().new_stream().map_err(raise);
    }
    if kind != CUDA {
        return Err(PyTypeError::new_err(format!("a tensor on a device of DLPack's kind {kind}, not on a GPU")));
    }
    let device = Device::cuda(ordinal).map_err(raise)?;
    let handle = handle.map_or_else(|| current_stream(tensor, ordinal), Ok)?;
    // SAFETY: the stream is the caller's, who keeps it, and does not capture it into a graph during the call.
    unsafe { Stream::from_raw(&device, handle as *mut c_void) }.map_err(raise)
}

fn current_stream(tensor: &Bound<'_, PyAny>, ordinal: usize) -> PyResult<usize> {
    let (py, module) = (tensor.py(), tensor.get_type().module()?.to_string());
    match module.split('.').next() {
        Some("torch") => {
            let cuda = py.import("torch.cuda")?;
            cuda.call_method1("current_stream", (ordinal,))?.getattr("cuda_stream")?.extract()
        }
        Some("cupy") => {
            let cuda = py.import("cupy.cuda")?;
            cuda.call_method1("get_current_stream", (ordinal,))?.getattr("ptr")?.extract()
        }
        _ => Err(PyTypeError::new_err(format!("`{module}` has no current stream: pass a handle as `stream`"))),
    }
}

/// The elements of `tensor`, to read on `stream`.
pub fn input<T: DlpackElement>(stream: &Stream, tensor: &Bound<'_, PyAny>) -> PyResult<ReadOnlyBuffer<T>> {
    take(stream, tensor)?.into_read_only_buffer(stream).map_err(raise)
}

/// The elements of `tensor`, to write on `stream`.
pub fn output<T: DlpackElement>(stream: &Stream, tensor: &Bound<'_, PyAny>) -> PyResult<DeviceBuffer<T>> {
    take(stream, tensor)?.into_buffer(stream).map_err(raise)
}

/// Refuses an output that shares memory with an input.
pub fn apart<T: DlpackElement, U: DlpackElement>(x: &ReadOnlyBuffer<T>, y: &DeviceBuffer<U>) -> PyResult<()> {
    let start = |address: *const c_void| address.addr();
    let x = (start(x.as_device_ptr().as_raw().cast()), x.len() * size_of::<T>());
    let y = (start(y.as_device_ptr().as_raw().cast()), y.len() * size_of::<U>());
    if x.0 < y.0 + y.1 && y.0 < x.0 + x.1 {
        return Err(PyValueError::new_err("the output shares memory with an input"));
    }
    Ok(())
}

/// What Python finds in memory of the host must be there when the function returns; work on a GPU goes on in the order of the stream.
pub fn finish(py: Python<'_>, stream: &Stream) -> PyResult<()> {
    if stream.device().is_cuda() {
        return Ok(());
    }
    py.detach(|| stream.synchronize()).map_err(raise)
}

/// An error of Ferrogrid as an exception.
pub fn raise(error: ferrogrid::Error) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// Takes the tensor over from the library that it is of, ready on `stream`.
fn take(stream: &Stream, tensor: &Bound<'_, PyAny>) -> PyResult<DlpackTensor> {
    let arguments = pyo3::types::PyDict::new(tensor.py());
    if let Some(handle) = stream.as_raw() {
        // By the protocol 1 is the legacy default stream, whose handle may be null.
        arguments.set_item("stream", handle.addr().max(1))?;
    }
    arguments.set_item("max_version", (1, 1))?;
    let capsule = tensor.call_method("__dlpack__", (), Some(&arguments)).or_else(|error| {
        if !error.is_instance_of::<PyTypeError>(tensor.py()) {
            return Err(error);
        }
        arguments.del_item("max_version")?; // a library from before DLPack 1.0
        tensor.call_method("__dlpack__", (), Some(&arguments))
    })?;
    // SAFETY: the capsules' names say what they hold; each is taken over once, and renamed, as the protocol wants. The library has made
    // the stream wait for what it has to. That nothing else uses an output is up to the caller, as everywhere in Python.
    unsafe {
        if let Some(raw) = open(&capsule, c"dltensor_versioned", c"used_dltensor_versioned") {
            return DlpackTensor::from_raw_async(stream, raw.cast()).map_err(raise);
        }
        if let Some(raw) = open(&capsule, c"dltensor", c"used_dltensor") {
            return DlpackTensor::from_raw_unversioned_async(stream, raw.cast()).map_err(raise);
        }
    }
    Err(PyTypeError::new_err("`__dlpack__` has returned no capsule with a tensor"))
}

/// What a capsule of that name holds, which is called `used` from now on.
///
/// # Safety
/// The pointer is used once.
unsafe fn open(capsule: &Bound<'_, PyAny>, name: &'static CStr, used: &'static CStr) -> Option<*mut c_void> {
    let capsule = capsule.as_ptr();
    // SAFETY: it is an object, whose kind and name are checked first; the names live forever.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, name.as_ptr()) == 0 {
            return None;
        }
        let raw = ffi::PyCapsule_GetPointer(capsule, name.as_ptr());
        ffi::PyCapsule_SetName(capsule, used.as_ptr());
        Some(raw)
    }
}
