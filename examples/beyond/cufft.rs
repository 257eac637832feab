//! 5.5 cufft: one filter by cuFFT and by cuSPARSE, which must agree, by the crate cudarc (on GPUs only).
//!
//! Shows: buffers as elements of a library's own types, and in calls that cudarc gives no safe form.
//! Look at: the transform, a launch that changes the spectrum, and the inverse transform, one after the other on one stream; and
//! how the addresses for cuSPARSE come from views that live until its call is enqueued.
//!
//! The CPU device has no such libraries: there the program says so, and ends.
//!
//! `cargo ferrogrid run cufft`

use std::ffi::c_void;
use std::ptr::{from_ref, null_mut};

use cudarc::cufft::{CudaFft, sys::cufftType, sys::float2};
use cudarc::cusparse::sys::*;
use cudarc::driver::{DevicePtr, DeviceSlice};
use ferrogrid::interop::SharedStream;
use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// Makes the spectrum of `length` numbers that of their filter. cuFFT does not divide by the length: this does.
    #[kernel]
    pub fn filter(t: Thread<1>, length: f32, mut spectrum: DisjointSlice<[f32; 2]>) {
        let i = t.index();
        if let Some(x) = spectrum.get_mut(i) {
            let angle = 2.0 * core::f32::consts::PI * i.get() as f32 / length;
            let weight = (0.5 + 0.5 * angle.cos()) / length;
            *x = [weight * x[0], weight * x[1]];
        }
    }
}

const LENGTH: usize = 1 << 16;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let device = Device::best()?;
    println!("device      {}", device.name());
    // SAFETY: nothing captures the stream into a graph.
    let stream = match unsafe { SharedStream::new(&device) } {
        Err(error @ Error::Unsupported { .. }) => {
            println!("SKIPPED: {error}");
            return Ok(());
        }
        stream => stream?,
    };
    let mut random = fastrand::Rng::new();
    let x = stream.upload(&Vec::from_iter((0..LENGTH).map(|_| random.f32())))?;
    let by_spectrum = stream.download(&filter_by_spectrum(&stream, &x)?)?;
    let by_matrix = stream.download(&filter_by_matrix(&stream, &x)?)?;

    let differences = by_spectrum.iter().zip(&by_matrix).map(|(a, b)| (a - b).abs());
    let difference = differences.fold(0.0, f32::max);
    println!("difference  {difference:.2e}");
    let x = stream.download(&x)?;
    let exact = |i: usize| 0.25 * (x[(i + LENGTH - 1) % LENGTH] + 2.0 * x[i] + x[(i + 1) % LENGTH]);
    let error = (0..LENGTH).map(|i| (by_matrix[i] - exact(i)).abs()).fold(0.0, f32::max);
    println!("max error   {error:.2e}");
    if difference > 1e-5 || error > 1e-6 {
        return Err("the filters disagree".into());
    }
    println!("PASS");
    Ok(())
}

/// The filter as a change of the spectrum.
fn filter_by_spectrum(stream: &SharedStream, x: &DeviceBuffer<f32>) -> Outcome<DeviceBuffer<f32>> {
    let bins = LENGTH / 2 + 1;
    let (mut spectrum, mut y) = (stream.zeros::<[f32; 2]>(bins)?, stream.zeros(LENGTH)?);
    let plan = |kind| CudaFft::plan_1d(LENGTH as i32, kind, 1, stream.cudarc().clone());
    let (forward, back) = (plan(cufftType::CUFFT_R2C)?, plan(cufftType::CUFFT_C2R)?);
    // ANCHOR: types
    // SAFETY: both are two numbers.
    let mut complex = unsafe { stream.write(&mut spectrum)?.transmute::<float2>()? };
    forward.exec_r2c(&stream.read(x)?, &mut complex)?;
    drop(complex); // ends the borrow
    kernels::filter(stream, Grid::cover(bins), LENGTH as f32, &mut spectrum)?;
    // ANCHOR_END: types
    // SAFETY: as above.
    let mut complex = unsafe { stream.write(&mut spectrum)?.transmute::<float2>()? };
    back.exec_c2r(&mut complex, &mut stream.write(&mut y)?)?;
    Ok(y)
}

/// The filter as a product with a matrix that has three elements in each row.
fn filter_by_matrix(stream: &SharedStream, x: &DeviceBuffer<f32>) -> Outcome<DeviceBuffer<f32>> {
    let columns = (0..LENGTH).flat_map(|i| [i + LENGTH - 1, i, i + 1]).map(|column| (column % LENGTH) as i32);
    let columns = stream.upload(&Vec::from_iter(columns))?;
    let offsets = stream.upload(&Vec::from_iter((0..=LENGTH).map(|row| 3 * row as i32)))?;
    let weights = stream.upload(&[0.25_f32, 0.5, 0.25].repeat(LENGTH))?;
    let mut y = stream.zeros(LENGTH)?;

    let (offsets, columns) = (stream.read(&offsets)?, stream.read(&columns)?);
    let (weights, x) = (stream.read(&weights)?, stream.read(x)?);
    let result = stream.write(&mut y)?;
    let [rows, elements] = [LENGTH as i64, weights.len() as i64];
    let (one, zero) = (1.0_f32, 0.0_f32);
    let (one, zero): (*const c_void, *const c_void) = (from_ref(&one).cast(), from_ref(&zero).cast());
    let number = cudaDataType::CUDA_R_32F;
    let index = cusparseIndexType_t::CUSPARSE_INDEX_32I;
    let base = cusparseIndexBase_t::CUSPARSE_INDEX_BASE_ZERO;
    let as_it_is = cusparseOperation_t::CUSPARSE_OPERATION_NON_TRANSPOSE;
    let way = cusparseSpMVAlg_t::CUSPARSE_SPMV_ALG_DEFAULT;
    let (mut library, mut matrix, mut bytes) = (null_mut(), null_mut(), 0);
    let (mut from, mut to) = (null_mut(), null_mut());
    // SAFETY: the views have as many elements as cuSPARSE is told, and live until all calls are made.
    unsafe {
        check(cusparseCreate(&mut library))?;
        check(cusparseSetStream(library, stream.handle().cast()))?;
        let [offsets, columns] = [address(stream, &offsets), address(stream, &columns)];
        let [weights, x, y] = [address(stream, &weights), address(stream, &x), address(stream, &result)];
        #[rustfmt::skip]
        check(cusparseCreateCsr(
            &mut matrix, rows, rows, elements, offsets, columns, weights, index, index, base, number,
        ))?;
        check(cusparseCreateDnVec(&mut from, rows, x, number))?;
        check(cusparseCreateDnVec(&mut to, rows, y, number))?;
        #[rustfmt::skip]
        check(cusparseSpMV_bufferSize(
            library, as_it_is, one, matrix, from, zero, to, number, way, &mut bytes,
        ))?;
        let mut memory = stream.zeros::<u8>(bytes)?;
        let memory = stream.write(&mut memory)?;
        let scratch = address(stream, &memory);
        check(cusparseSpMV(library, as_it_is, one, matrix, from, zero, to, number, way, scratch))?;
        check(cusparseDestroyDnVec(to))?;
        check(cusparseDestroyDnVec(from))?;
        check(cusparseDestroySpMat(matrix))?;
        check(cusparseDestroy(library))?;
    }
    drop(result);
    Ok(y)
}

fn check(status: cusparseStatus_t) -> Result<(), String> {
    status.result().map_err(|error| format!("cuSPARSE: {error:?}"))
}

/// The address of a view's elements, for work on `stream`.
fn address<T>(stream: &SharedStream, view: &impl DevicePtr<T>) -> *mut c_void {
    view.device_ptr(stream.cudarc()).0 as *mut c_void
}
