//! Times products of matrices on a GPU against cuBLAS's (benches/cuda/cublas.cu, compiled to a shared library that
//! `FERROGRID_BENCH_LIBRARY` names): alternating in one process, on the same buffers, with results checked. It prints one JSON line per
//! figure, for benches/runtime.py: of a kernel by `mma.sync`, and of `algorithms::gemm` in all orientations. `fused` is a product whose
//! `#[matmul]` function adds a bias and applies GELU, against `algorithms::gemm` of the same factors. `grouped` are products of groups of
//! rows, against cuBLAS's for groups, and against one of its calls for each group.

#[path = "../setting.rs"]
mod setting;
#[path = "../timed.rs"]
mod timed;
#[path = "../runtime/turns.rs"]
mod turns;

use std::cell::RefCell;
use std::ffi::c_void;
use std::time::Duration;

use bytemuck::Pod;
use ferrogrid::device::half::{bf16, f16};
use ferrogrid::device::narrow::{f8e4m3, tf32};
use ferrogrid::prelude::*;
use ferrogrid_algorithms::{self as algorithms, Gemm, Multiplied};
use libloading::Library;
use timed::time;

#[ferrogrid::module]
mod kernels {
    use atomic::Ordering::Relaxed;
    use ferrogrid::device::half::{HalfFloat, bf16, f16};
    use ferrogrid::device::matrix::{Accumulator, FragmentA, FragmentB, MatrixElement};
    use ferrogrid::device::prelude::*;

    /// out <- gelu(a b^T + bias), by the usual approximation.
    #[matmul(factors = bf16, transpose_b)]
    pub fn fused(sum: f32, #[column] bias: &f32) -> bf16 {
        let x = sum + bias;
        let u = x * (x * x).mul_add(0.035_677_408, 0.797_884_6);
        let half = 0.5 * x;
        bf16::from_f32(half.mul_add(u.fast_tanh(), half))
    }

    /// The tile of a block, of 8 warps with 64 x 64 sums each.
    pub const HEIGHT: usize = 128;
    /// See [`HEIGHT`].
    pub const WIDTH: usize = 256;
    /// The tiles below each other whose blocks follow each other: they read the same rows of `b`.
    const TOGETHER: usize = 8;

    /// c <- a b^T, of as many rows of `a` as of tiles and 64 elements a step. `c` has pairs.
    #[inline(always)]
    #[kernel(block = 256, min_blocks = 1, T = [bf16, f16])]
    pub fn product<T: MatrixElement<Sum = f32> + HalfFloat>(
        t: Thread<1>,
        a: Plane<Aligned16<[T; 8]>>,
        b: Plane<Aligned16<[T; 8]>>,
        c: &[DeviceAtomic<u32>],
        of_a: Shared<Stages<Padded<Aligned16<[T; 8]>, 8, HEIGHT>, 4>>,
        of_b: Shared<Stages<Padded<Aligned16<[T; 8]>, 8, WIDTH>, 4>>,
    ) {
        let (mut of_a, mut of_b) = (of_a.into_stages(), of_b.into_stages());
        let (block, columns) = (t.block_idx()[0] as usize, b.height() / WIDTH);
        let (group, place) = (block / (TOGETHER * columns), block % (TOGETHER * columns));
        let together = (a.height() / HEIGHT - group * TOGETHER).min(TOGETHER);
        let first_row = (group * TOGETHER + place % together) * HEIGHT;
        let first_column = place / together * WIDTH;
        let (warp, number) = (t.warp(), t.thread_rank() as usize / 32);
        let [own_row, own_column] = [number % 2 * 64, number / 2 * 64];

        for step in 0..3 {
            of_a.copy_with(&t, |[row, k]| a.get(first_row + row, step * 8 + k));
            of_b.copy_with(&t, |[row, k]| b.get(first_column + row, step * 8 + k));
            t.advance((&mut of_a, &mut of_b));
        }
        let mut sums = Accumulator::<T, 4, 8>::zero();
        // Each part is loaded before the last one is multiplied, and the next stages are copied between products.
        macro_rules! load {
            ($k:literal) => {
                (
                    FragmentA::load(&warp, of_a.current().rows(), [own_row, $k]),
                    FragmentB::load_transposed(&warp, of_b.current().rows(), [own_column, $k]),
                )
            };
        }
        let mut first = load!(0);
        for step in 3..a.width() / 8 + 3 {
            let second = load!(16);
            sums.add_product(&warp, &first.0, &first.1);
            of_a.copy_with(&t, |[row, k]| a.get(first_row + row, step * 8 + k));
            let third = load!(32);
            sums.add_product(&warp, &second.0, &second.1);
            of_b.copy_with(&t, |[row, k]| b.get(first_column + row, step * 8 + k));
            let fourth = load!(48);
            sums.add_product(&warp, &third.0, &third.1);
            t.advance((&mut of_a, &mut of_b));
            first = load!(0);
            sums.add_product(&warp, &fourth.0, &fourth.1);
        }
        sums.for_each_pair(&warp, |row, column, [left, right]| {
            let place = (first_row + own_row + row) * b.height() + first_column + own_column + column;
            if let Some(c) = c.get(place / 2) {
                let [left, right] = [left, right].map(|sum| u32::from(T::from_f32(sum).to_bits()));
                c.store(left | right << 16, Relaxed);
            }
        });
    }
}

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// (a, b, c, rows, columns, depth, whether `a` and `b` are stored transposed, stream) -> `cublasStatus_t`
type Product = unsafe extern "C" fn(
    *const c_void,
    *const c_void,
    *mut c_void,
    i32,
    i32,
    i32,
    i32,
    i32,
    *mut c_void,
) -> i32;

/// (a, b, c, offsets, groups, columns, depth, whether by one call, stream) -> `cublasStatus_t`
type Grouped = unsafe extern "C" fn(
    *const c_void,
    *const c_void,
    *mut c_void,
    *const i32,
    i32,
    i32,
    i32,
    i32,
    *mut c_void,
) -> i32;

/// Which factors are stored transposed.
type Turned = [bool; 2];

/// The right factor by its columns, as the kernel of this file reads it.
const NT: Turned = [false, true];

/// Rows, columns and depth.
const SHAPES: [[usize; 3]; 11] = [
    [1024, 1024, 1024],
    [2048, 2048, 2048],
    [4096, 4096, 4096],
    [8192, 8192, 8192],
    [16384, 16384, 16384],
    [8192, 8192, 1024],
    [4096, 14336, 4096],
    [64, 8192, 8192],
    [16, 4096, 14336],
    [256, 256, 65536],
    [512, 512, 16384],
];
/// Groups, and rows of all of them, columns and depth.
const GROUPS: [(usize, [usize; 3]); 4] =
    [(8, [4096, 14336, 4096]), (8, [16384, 4096, 4096]), (64, [8192, 2048, 2048]), (64, [256, 2048, 2048])];
const ROUNDS: usize = 11;
/// What a round takes, at least.
const ROUND: Duration = Duration::from_millis(5);

/// A number that both sides compute with.
trait Number {
    /// The elements of the factors.
    type Element: Multiplied<Self::Out>;
    /// The elements of the result.
    type Out: DeviceCopy + Pod + Into<f64>;
    const NAME: &str;
    /// The bits of the fraction of a result, and of sums.
    const DIGITS: [i32; 2];
    /// A number between -1 and 1 as an element.
    fn of(number: f64) -> Self::Element;
    fn value(element: Self::Element) -> f64;
    /// What results are before.
    fn poison() -> Self::Out;
    /// The product by such numbers.
    fn by<'a, 'c>(product: Gemm<'a, 'c, Self::Element, Self::Out>) -> Gemm<'a, 'c, Self::Element, Self::Out>;
}

macro_rules! numbers {
    ($($t:ident in $element:ident to $out:ident: $digits:expr, $of:expr, $value:expr, $poison:expr, $by:expr;)*) => {
        $(impl Number for $t {
            type Element = $element;
            type Out = $out;
            const NAME: &str = stringify!($t);
            const DIGITS: [i32; 2] = $digits;
            fn of(number: f64) -> $element {
                $of(number)
            }
            fn value(element: $element) -> f64 {
                $value(element)
            }
            fn poison() -> $out {
                $poison
            }
            fn by<'a, 'c>(product: Gemm<'a, 'c, $element, $out>) -> Gemm<'a, 'c, $element, $out> {
                $by(product)
            }
        })*
    };
}
numbers! {
    bf16 in bf16 to bf16: [8, 24], bf16::from_f64, f64::from, bf16::NAN, |it| it;
    f16 in f16 to f16: [11, 24], f16::from_f64, f64::from, f16::NAN, |it| it;
    tf32 in f32 to f32: [24, 24], |it| tf32::from_f32(it as f32).to_f32(), f64::from, f32::NAN, Gemm::tf32;
    f32 in f32 to f32: [24, 24], |it| it as f32, f64::from, f32::NAN, |it| it;
    f64 in f64 to f64: [53, 53], |it| it, |it| it, f64::NAN, |it| it;
    f8e4m3 in f8e4m3 to bf16: [8, 14], |it| f8e4m3::from_f32(it as f32), |it: f8e4m3| it.to_f32().into(), bf16::NAN, |it| it;
    i8 in i8 to i32: [31, 31], |it: f64| (it * 127.0).round() as i8, f64::from, i32::MIN, |it| it;
}

/// The calls that take as long as a round.
fn calls_of_round(stream: &Stream, call: impl FnMut() -> Outcome<()>) -> Outcome<u32> {
    Ok((ROUND.as_secs_f64() / time(stream, 1, call)?).ceil().clamp(1.0, 500.0) as u32)
}

/// A product whose factors are on the device, with a result of each side.
struct Trial<'s, T: Number> {
    stream: &'s Stream,
    shape: [usize; 3],
    turned: Turned,
    host: [Vec<T::Element>; 2],
    factors: [DeviceBuffer<T::Element>; 2],
    results: [RefCell<DeviceBuffer<T::Out>>; 2],
}

impl<'s, T: Number> Trial<'s, T> {
    fn new(stream: &'s Stream, shape @ [m, n, k]: [usize; 3], turned: Turned) -> Outcome<Self> {
        let mut random = fastrand::Rng::new();
        let host =
            [m * k, k * n].map(|len| (0..len).map(|_| T::of(random.f64() * 2.0 - 1.0)).collect::<Vec<_>>());
        let factors = [stream.upload(&host[0])?, stream.upload(&host[1])?];
        let poison = || stream.fill(T::poison(), m * n).map(RefCell::new);
        Ok(Trial { stream, shape, turned, host, factors, results: [poison()?, poison()?] })
    }

    /// Times both sides, and checks places of both results.
    fn duel(&self, name: &str, cublas: &Library, ours: impl Fn() -> ferrogrid::Result<()>) -> Outcome<()> {
        let [m, n, k] = self.shape;
        // SAFETY: benches/cuda/cublas.cu declares it so.
        let theirs: Product = unsafe { *cublas.get(format!("product_{}", T::NAME).as_bytes())? };
        let raw = self.stream.as_raw().ok_or("a stream of a GPU")?;
        let theirs = || -> Outcome<()> {
            let [a, b] = [0, 1].map(|which| self.factors[which].view().as_device_ptr().as_raw().cast());
            let c = self.results[1].borrow_mut().as_device_ptr_mut().as_raw().cast();
            let [turned_a, turned_b] = self.turned.map(i32::from);
            // SAFETY: the buffers have these elements, and outlive the calls.
            match unsafe { theirs(a, b, c, m as i32, n as i32, k as i32, turned_a, turned_b, raw) } {
                0 => Ok(()),
                status => Err(format!("cuBLAS: status {status}").into()),
            }
        };
        let calls = calls_of_round(self.stream, theirs)?;
        let layout = self.turned.map(|turned| if turned { "t" } else { "n" }).concat();
        let figure = format!("{name}_{}_{layout}_{m}_{n}_{k}", T::NAME);
        let seconds = |side: &dyn Fn() -> Outcome<()>| time(self.stream, calls, side);
        turns::duel(&figure, ROUNDS, 1.0, || seconds(&|| Ok(ours()?)), || seconds(&theirs))?;
        self.check(&figure)
    }

    /// The sum at a place of the result.
    fn exact(&self, place: usize) -> f64 {
        let [m, n, k] = self.shape;
        let (row, column) = (place / n, place % n);
        let term = |depth: usize| -> f64 {
            let of_a = if self.turned[0] { depth * m + row } else { row * k + depth };
            let of_b = if self.turned[1] { column * k + depth } else { depth * n + column };
            T::value(self.host[0][of_a]) * T::value(self.host[1][of_b])
        };
        (0..k).map(term).sum()
    }

    fn check(&self, figure: &str) -> Outcome<()> {
        let [m, n, k] = self.shape;
        let found = self.results.each_ref().map(|c| self.stream.download(&*c.borrow()));
        let mut random = fastrand::Rng::new();
        for place in (0..2000).map(|_| random.usize(..m * n)) {
            let exact = self.exact(place);
            for (side, c) in ["Rust", "cuBLAS"].into_iter().zip(&found) {
                let found: f64 = c.as_ref().map_err(Clone::clone)?[place].into();
                // The rounding of the result, and of sums.
                let [of_result, of_sums] = T::DIGITS.map(|digits| 2.0_f64.powi(1 - digits));
                let most = exact.abs() * of_result + k as f64 * 8.0 * of_sums;
                if (found - exact).abs() > most || found.is_nan() {
                    return Err(format!("{figure}, {side}: {found} at {place}, expected {exact}").into());
                }
            }
        }
        Ok(())
    }
}

fn gemm<T: Number>(stream: &Stream, cublas: &Library, shape: [usize; 3], turned: Turned) -> Outcome<()> {
    let trial = Trial::<T>::new(stream, shape, turned)?;
    let [m, n, k] = shape;
    let stored = |[height, width]: [usize; 2], turned| if turned { [height, width] } else { [width, height] };
    let ([width_a, height_a], [width_b, height_b]) = (stored([m, k], turned[0]), stored([k, n], turned[1]));
    trial.duel("gemm", cublas, || {
        let mut c = trial.results[0].borrow_mut();
        let [a, b] = &trial.factors;
        let product =
            Gemm::new(a.view_2d(width_a, height_a)?, b.view_2d(width_b, height_b)?, c.view_2d_mut(n, m)?);
        let product = if turned[0] { product.transpose_a() } else { product };
        algorithms::gemm(stream, T::by(if turned[1] { product.transpose_b() } else { product }))
    })
}

/// By the kernel of this file.
fn warps<T>(stream: &Stream, cublas: &Library, shape: [usize; 3]) -> Outcome<()>
where
    T: Number<Element = T, Out = T> + Multiplied + kernels::product::Instance,
{
    let trial = Trial::<T>::new(stream, shape, NT)?;
    let [m, n, k] = shape;
    let blocks = Grid::blocks(m / kernels::HEIGHT * (n / kernels::WIDTH));
    trial.duel("product", cublas, || {
        let [a, b] = &trial.factors;
        let (a, b) = (a.view().as_aligned16::<8>()?, b.view().as_aligned16::<8>()?);
        let mut c = trial.results[0].borrow_mut();
        let c = c.view_mut().cast()?.into_atomic();
        kernels::product::<T>(stream, blocks, a.into_2d(k / 8, m)?, b.into_2d(k / 8, n)?, c)
    })
}

/// A product with bias and GELU, and without; each takes its own result, and the first one is checked.
fn fused(stream: &Stream, shape @ [m, n, k]: [usize; 3]) -> Outcome<()> {
    let trial = Trial::<bf16>::new(stream, shape, NT)?;
    let bias: Vec<f32> = (0..n).map(|_| fastrand::f32() * 4.0 - 2.0).collect();
    let device_bias = stream.upload(&bias)?;
    let [a, b] = [trial.factors[0].view_2d(k, m)?, trial.factors[1].view_2d(k, n)?];
    let fused = || -> Outcome<()> {
        let mut out = trial.results[0].borrow_mut();
        Ok(kernels::fused(stream, a, b, &device_bias, out.view_2d_mut(n, m)?)?)
    };
    let plain = || -> Outcome<()> {
        let mut c = trial.results[1].borrow_mut();
        Ok(algorithms::gemm(stream, Gemm::new(a, b, c.view_2d_mut(n, m)?).transpose_b())?)
    };
    let calls = calls_of_round(stream, plain)?;
    let figure = format!("fused_bf16_{m}_{n}_{k}");
    turns::duel(&figure, ROUNDS, 1.0, || time(stream, calls, fused), || time(stream, calls, plain))?;
    let found = stream.download(&*trial.results[0].borrow())?;
    for place in (0..2000).map(|_| fastrand::usize(..m * n)) {
        let x = trial.exact(place) + f64::from(bias[place % n]);
        let exact = x / 2.0 * (1.0 + (0.797_884_560_8 * (x + 0.044_715 * x.powi(3))).tanh());
        // The rounding of the result and of sums, and the approximation.
        let most = exact.abs() / 128.0 + k as f64 * 8.0 / f64::from(1 << 23) + 1e-3;
        if (f64::from(found[place]) - exact).abs() > most {
            return Err(format!("{figure}: {} at {place}, expected {exact}", found[place]).into());
        }
    }
    Ok(())
}

/// Rows in groups of random sizes, none empty, by a matrix for each.
fn grouped(
    stream: &Stream,
    cublas: &Library,
    groups: usize,
    [m, n, k]: [usize; 3],
    is_one_call: bool,
) -> Outcome<()> {
    let random = |len: usize| (0..len).map(|_| bf16::from_f32(fastrand::f32() * 2.0 - 1.0)).collect();
    let host: [Vec<bf16>; 2] = [random(m * k), random(groups * n * k)];
    let mut inner = fastrand::choose_multiple(1..m as i32, groups - 1);
    inner.sort_unstable();
    let offsets: Vec<i32> = [0].into_iter().chain(inner).chain([m as i32]).collect();
    let device_offsets = stream.upload(&offsets)?;
    let [a, b] = [stream.upload(&host[0])?, stream.upload(&host[1])?];
    let poison = || stream.fill(bf16::NAN, m * n).map(RefCell::new);
    let results = [poison()?, poison()?];
    let ours = || -> Outcome<()> {
        let mut c = results[0].borrow_mut();
        let product = Gemm::new(a.view_2d(k, m)?, b.view_2d(k, groups * n)?, c.view_2d_mut(n, m)?);
        Ok(algorithms::gemm(stream, product.transpose_b().groups(device_offsets.view().cast()?))?)
    };
    // SAFETY: benches/cuda/cublas.cu declares it so.
    let call: Grouped = unsafe { *cublas.get(b"grouped_bf16")? };
    let raw = stream.as_raw().ok_or("a stream of a GPU")?;
    let theirs = || -> Outcome<()> {
        let [a, b] = [&a, &b].map(|factor| factor.view().as_device_ptr().as_raw().cast());
        let c = results[1].borrow_mut().as_device_ptr_mut().as_raw().cast();
        let [groups, n, k] = [groups, n, k].map(|it| it as i32);
        // SAFETY: the buffers have these elements, and outlive the calls.
        match unsafe { call(a, b, c, offsets.as_ptr(), groups, n, k, is_one_call.into(), raw) } {
            0 => Ok(()),
            status => Err(format!("cuBLAS: status {status}").into()),
        }
    };
    let calls = calls_of_round(stream, theirs)?;
    let how = if is_one_call { "" } else { "_by_calls" };
    let figure = format!("grouped{how}_bf16_{groups}_{m}_{n}_{k}");
    turns::duel(&figure, ROUNDS, 1.0, || time(stream, calls, ours), || time(stream, calls, theirs))?;
    let found = [stream.download(&*results[0].borrow())?, stream.download(&*results[1].borrow())?];
    for place in (0..2000).map(|_| fastrand::usize(..m * n)) {
        let (row, column) = (place / n, place % n);
        let group = offsets.partition_point(|first| *first <= row as i32) - 1;
        let (left, right) = (&host[0][row * k..][..k], &host[1][(group * n + column) * k..][..k]);
        let exact: f64 = left.iter().zip(right).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
        let most = exact.abs() / 128.0 + k as f64 * 8.0 / f64::from(1 << 23);
        for (side, c) in ["Rust", "cuBLAS"].into_iter().zip(&found) {
            let found = f64::from(c[place]);
            if (found - exact).abs() > most || found.is_nan() {
                return Err(format!("{figure}, {side}: {found} at {place}, expected {exact}").into());
            }
        }
    }
    Ok(())
}

fn main() -> Outcome<()> {
    let Some((device, path)) = setting::gpu_and_file("FERROGRID_BENCH_LIBRARY", "cuBLAS") else {
        return Ok(());
    };
    // SAFETY: the library of benches/cuda/cublas.cu, which runs nothing when it is loaded except the CUDA runtime's own initialisation.
    let cublas = unsafe { Library::new(path)? };
    let stream = &device.new_stream()?;
    // With a number only shapes of so many rows, with `fused` or `grouped` those products alone.
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let only = arguments.iter().find_map(|argument| argument.parse::<usize>().ok());
    let is_chosen = |rows: usize| only.is_none_or(|only| rows == only);
    let is_asked = |name: &str| arguments.iter().any(|argument| argument == name);
    if is_asked("fused") {
        let shapes = SHAPES.into_iter().filter(|[m, ..]| m % kernels::HEIGHT == 0 && is_chosen(*m));
        return shapes.into_iter().try_for_each(|shape| fused(stream, shape));
    }
    for (groups, shape) in GROUPS.into_iter().filter(|(_, [m, ..])| is_chosen(*m)) {
        grouped(stream, &cublas, groups, shape, true)?;
        grouped(stream, &cublas, groups, shape, false)?;
    }
    if is_asked("grouped") {
        return Ok(());
    }
    for size in [1024, 2048, 8192].into_iter().filter(|size| is_chosen(*size)) {
        gemm::<f32>(stream, &cublas, [size; 3], [false, false])?;
        gemm::<tf32>(stream, &cublas, [size; 3], [false, false])?;
        gemm::<f64>(stream, &cublas, [size; 3], [false, false])?;
    }
    for shape @ [m, ..] in SHAPES.into_iter().filter(|[m, ..]| is_chosen(*m)) {
        gemm::<f8e4m3>(stream, &cublas, shape, NT)?;
        gemm::<i8>(stream, &cublas, shape, NT)?;
        if m % kernels::HEIGHT == 0 {
            fused(stream, shape)?;
            warps::<bf16>(stream, &cublas, shape)?;
            warps::<f16>(stream, &cublas, shape)?;
        }
        for turned in [NT, [false, false], [true, false], [true, true]] {
            gemm::<bf16>(stream, &cublas, shape, turned)?;
            gemm::<f16>(stream, &cublas, shape, turned)?;
            if shape == [4096; 3] {
                gemm::<f32>(stream, &cublas, shape, turned)?;
                gemm::<tf32>(stream, &cublas, shape, turned)?;
                gemm::<f64>(stream, &cublas, shape, turned)?;
            }
        }
    }
    Ok(())
}
