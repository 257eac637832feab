//! 5.4 cublas: cuRAND, cuBLAS and cuBLASLt between launches, by the crate cudarc (on GPUs only).
//!
//! Shows: a stream that is also cudarc's, and buffers in calls of its libraries, without copies.
//! Look at: no event and no wait stands between launches and libraries. What `read` and `write` return is a borrow: rustc
//! refuses to change what a library still reads.
//!
//! The CPU device has no such libraries: there the program says so, and ends.
//!
//! `cargo ferrogrid run cublas`

use cudarc::cublas::{CudaBlas, Gemm, GemmConfig, sys::cublasOperation_t::CUBLAS_OP_N};
use cudarc::cublaslt::{Activation, CudaBlasLT, Matmul, MatmulConfig};
use cudarc::curand::CudaRng;
use ferrogrid::interop::SharedStream;
use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// x <- a*x + b.
    #[kernel]
    pub fn scale(t: Thread<1>, a: f32, b: f32, mut x: DisjointSlice<f32>) {
        if let Some(x) = x.get_mut(t.index()) {
            *x = a.mul_add(*x, b);
        }
    }

    /// y <- max(y + bias of the row, 0), for columns as long as `bias`.
    #[kernel]
    pub fn activate(t: Thread<1>, bias: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y = (*y + bias[i.get() % bias.len()]).max(0.0);
        }
    }
}

/// Rows and columns of the matrices, which are stored in columns.
const SIZE: usize = 256;
const LENGTH: usize = SIZE * SIZE;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let device = Device::best()?;
    println!("device  {}", device.name());
    // SAFETY: nothing captures the stream into a graph.
    let stream = match unsafe { SharedStream::new(&device) } {
        Err(error @ Error::Unsupported { .. }) => {
            println!("SKIPPED: {error}");
            return Ok(());
        }
        stream => stream?,
    };
    let (a, b, bias) = (random(&stream, LENGTH)?, random(&stream, LENGTH)?, random(&stream, SIZE)?);
    let launched = layer(&stream, &a, &b, &bias)?;
    let fused = fused_layer(&stream, &a, &b, &bias)?;

    let [a, b, bias] = [&a, &b, &bias].map(|x| stream.download(x));
    let (a, b, bias) = (a?, b?, bias?);
    let spread = a.iter().map(|x| x * x).sum::<f32>() / LENGTH as f32;
    expect("cuRAND, spread", (spread - 1.0 / 3.0).abs(), 0.02)?;
    let exact: Vec<f32> = (0..LENGTH).map(|i| exact_element(&a, &b, &bias, i % SIZE, i / SIZE)).collect();
    expect("cuBLAS and a launch, max error", distance(&exact, &stream.download(&launched)?), 1e-4)?;
    // It may round inputs to tf32.
    expect("cuBLASLt, max error", distance(&exact, &stream.download(&fused)?), 0.05)?;
    println!("PASS");
    Ok(())
}

/// Numbers from -1 to 1: cuRAND's, which are from 0 to 1, and a launch.
fn random(stream: &SharedStream, length: usize) -> Outcome<DeviceBuffer<f32>> {
    let mut x = stream.zeros(length)?;
    let generator = CudaRng::new(fastrand::u64(..), stream.cudarc().clone())?;
    generator.fill_with_uniform(&mut stream.write(&mut x)?)?;
    kernels::scale(stream, Grid::cover(length), 2.0, -1.0, &mut x)?;
    Ok(x)
}

// ANCHOR: layer
/// max(a*b + bias, 0), by cuBLAS and a launch.
fn layer(
    stream: &SharedStream,
    a: &DeviceBuffer<f32>,
    b: &DeviceBuffer<f32>,
    bias: &DeviceBuffer<f32>,
) -> Outcome<DeviceBuffer<f32>> {
    let mut c = stream.zeros(LENGTH)?;
    let [transa, transb] = [CUBLAS_OP_N; 2];
    let [m, n, k, lda, ldb, ldc] = [SIZE as i32; 6];
    let config = GemmConfig { transa, transb, m, n, k, alpha: 1.0, lda, ldb, beta: 0.0, ldc };
    let blas = CudaBlas::new(stream.cudarc().clone())?;
    // SAFETY: the matrices have these shapes.
    unsafe { blas.gemm(config, &stream.read(a)?, &stream.read(b)?, &mut stream.write(&mut c)?)? };
    kernels::activate(stream, Grid::cover(LENGTH), bias, &mut c)?;
    Ok(c)
}
// ANCHOR_END: layer

/// The same, by one call of cuBLASLt.
fn fused_layer(
    stream: &SharedStream,
    a: &DeviceBuffer<f32>,
    b: &DeviceBuffer<f32>,
    bias: &DeviceBuffer<f32>,
) -> Outcome<DeviceBuffer<f32>> {
    let mut c = stream.zeros(LENGTH)?;
    let ([m, n, k], [lda, ldb, ldc]) = ([SIZE as u64; 3], [SIZE as i64; 3]);
    #[rustfmt::skip]
    let config = MatmulConfig {
        transa: false, transb: false, transc: false, m, n, k, alpha: 1.0, lda, ldb, beta: 0.0, ldc,
        stride_a: None, stride_b: None, stride_c: None, stride_bias: None, batch_size: None,
    };
    let blas = CudaBlasLT::new(stream.cudarc().clone())?;
    let (a, b, bias) = (stream.read(a)?, stream.read(b)?, stream.read(bias)?);
    // SAFETY: the matrices have these shapes, and the bias is as long as a column.
    unsafe {
        blas.matmul(config, &a, &b, &mut stream.write(&mut c)?, Some(&bias), Some(&Activation::Relu))?;
    }
    Ok(c)
}

fn exact_element(a: &[f32], b: &[f32], bias: &[f32], row: usize, column: usize) -> f32 {
    let terms = (0..SIZE).map(|k| f64::from(a[k * SIZE + row]) * f64::from(b[column * SIZE + k]));
    (terms.sum::<f64>() + f64::from(bias[row])).max(0.0) as f32
}

fn distance(x: &[f32], y: &[f32]) -> f32 {
    x.iter().zip(y).map(|(x, y)| (x - y).abs()).fold(0.0, f32::max)
}

fn expect(what: &str, error: f32, limit: f32) -> Result<(), String> {
    println!("{what} {error:.2e}");
    if error <= limit { Ok(()) } else { Err(format!("{what}: {error} is more than {limit}")) }
}
