//! Kernels as functions of Python, on tensors that Python owns.

mod tensor;

use ferrogrid::prelude::*;
use pyo3::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// y <- a*x + y, one element per thread.
    #[kernel]
    pub fn saxpy(t: Thread<1>, a: f32, x: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y += a * x[i.get()];
        }
    }
}

/// y <- a*x + y for vectors of float32 of PyTorch, CuPy, NumPy and others with DLPack. On a GPU it is enqueued on `stream`, a handle,
/// or else on the current stream of PyTorch or CuPy.
#[pyfunction]
#[pyo3(signature = (a, x, y, stream=None))]
fn saxpy(
    py: Python<'_>,
    a: f32,
    x: &Bound<'_, PyAny>,
    y: &Bound<'_, PyAny>,
    stream: Option<usize>,
) -> PyResult<()> {
    let stream = tensor::stream(y, stream)?;
    let (x, mut y) = (tensor::input::<f32>(&stream, x)?, tensor::output::<f32>(&stream, y)?);
    tensor::apart(&x, &y)?;
    kernels::saxpy(&stream, Grid::cover(y.len()), a, &x, &mut y).map_err(tensor::raise)?;
    drop((x, y)); // they belong to Python again after the launch
    tensor::finish(py, &stream)
}

/// Waits for all work on the GPU `device`, and raises the panic of a kernel.
#[pyfunction]
#[pyo3(signature = (device=0))]
fn synchronize(py: Python<'_>, device: usize) -> PyResult<()> {
    let wait = || Device::cuda(device).and_then(|device| device.synchronize());
    py.detach(wait).map_err(tensor::raise)
}

#[pymodule]
fn NAME(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(saxpy, module)?)?;
    module.add_function(wrap_pyfunction!(synchronize, module)?)
}
