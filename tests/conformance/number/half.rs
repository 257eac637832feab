//! Half precision: `f16`, `bf16` and their pairs, as parameters, in buffers, in shared memory and through
//! warps. Arithmetic equals that of the crate `half` on the host, bit for bit; functions are tested on all
//! 65536 numbers.

use ferrogrid::device::half::{Bf16x2, F16x2, HalfFloat, bf16, f16};
use ferrogrid::dlpack::{DlpackElement, DlpackTensor, abi};
use ferrogrid::prelude::*;

use crate::{Case, Outcome, expect};

pub(crate) const CASES: &[Case] = &[
    ("arithmetic_of_f16_is_that_of_the_host", arithmetic_is_that_of_the_host::<f16>),
    ("arithmetic_of_bf16_is_that_of_the_host", arithmetic_is_that_of_the_host::<bf16>),
    ("conversions_round_to_the_nearest_half", conversions_round_to_the_nearest),
    ("pairs_of_halves_are_computed_as_single_ones", pairs_are_computed_as_single_ones),
    ("functions_of_f16_are_rounded_once_but_for_a_hair", functions_are_rounded_once_but_for_a_hair::<f16>),
    ("functions_of_bf16_are_rounded_once_but_for_a_hair", functions_are_rounded_once_but_for_a_hair::<bf16>),
    ("halves_are_shared_and_shuffled", halves_are_shared_and_shuffled),
    ("pairs_of_halves_are_changed_atomically", pairs_are_changed_atomically),
    ("no_sum_of_halves_is_lost", no_sum_of_halves_is_lost),
    ("tensors_of_halves_leave_and_return", tensors_of_halves_leave_and_return),
];

#[ferrogrid::module]
pub mod kernels {
    use ferrogrid::device::atomic::{Ordering, System};
    use ferrogrid::device::half::{Bf16x2, F16x2, HalfFloat, bf16, f16};
    use ferrogrid::device::prelude::*;

    /// Operators of a parameter and the elements, as bits; then whether a < x, a <= x, a == x.
    #[kernel(T = [f16, bf16])]
    pub fn operators<T: HalfFloat>(t: Thread<1>, a: T, x: &[T], mut out: DisjointSlice<[u16; 10]>) {
        let i = t.index();
        let Some(out) = out.get_mut(i) else { return };
        let x = x[i.get()];
        let comparisons = u16::from(a < x) | u16::from(a <= x) << 1 | u16::from(a == x) << 2;
        let results = [a + x, a - x, a * x, a / x, a % x, a.min(x), a.max(x), a.mul_add(x, x), -x.abs()];
        let bits = results.map(T::to_bits);
        *out = core::array::from_fn(|k| if k < 9 { bits[k] } else { comparisons });
    }

    /// From an `f32`, and back.
    #[kernel]
    pub fn conversions(
        t: Thread<1>,
        x: &[f32],
        mut out: DisjointSlice<[u16; 4]>,
        mut back: DisjointSlice<[f32; 4]>,
    ) {
        let i = t.index();
        let (Some(out), Some(back)) = (out.get_mut(i), back.get_mut(i)) else { return };
        let x = x[i.get()];
        let other = -x * 1.125;
        let (short, brain) = (F16x2::from_f32([x, other]), Bf16x2::from_f32([x, other]));
        *out = [
            f16::from_f32(x).to_bits(),
            bf16::from_f32(x).to_bits(),
            short.high().to_bits(),
            brain.high().to_bits(),
        ];
        *back = [f16::from_f32(x).to_f32(), bf16::from_f32(x).to_f32(), short.to_f32()[0], brain.to_f32()[0]];
    }

    /// Operators of pairs, and those of their halves.
    #[kernel]
    pub fn pairs(
        t: Thread<1>,
        short: &[[F16x2; 2]],
        brain: &[[Bf16x2; 2]],
        mut out: DisjointSlice<[[u32; 2]; 16]>,
    ) {
        let i = t.index();
        let Some(out) = out.get_mut(i) else { return };
        let ([a, b], [c, d]) = (short[i.get()], brain[i.get()]);
        let by_one =
            |f: fn(f16, f16) -> f16| F16x2::new(f(a.low(), b.low()), f(a.high(), b.high())).to_bits();
        let by_brain =
            |f: fn(bf16, bf16) -> bf16| Bf16x2::new(f(c.low(), d.low()), f(c.high(), d.high())).to_bits();
        *out = [
            [(a + b).to_bits(), by_one(|a, b| a + b)],
            [(a - b).to_bits(), by_one(|a, b| a - b)],
            [(a * b).to_bits(), by_one(|a, b| a * b)],
            [(a / b).to_bits(), by_one(|a, b| a / b)],
            [a.mul_add(b, b).to_bits(), by_one(|a, b| a.mul_add(b, b))],
            [a.min(b).to_bits(), by_one(f16::min)],
            [a.max(b).to_bits(), by_one(f16::max)],
            [(-a).abs().to_bits(), by_one(|a, _| a.abs())],
            [(c + d).to_bits(), by_brain(|a, b| a + b)],
            [(c - d).to_bits(), by_brain(|a, b| a - b)],
            [(c * d).to_bits(), by_brain(|a, b| a * b)],
            [(c / d).to_bits(), by_brain(|a, b| a / b)],
            [c.mul_add(d, d).to_bits(), by_brain(|a, b| a.mul_add(b, b))],
            [c.min(d).to_bits(), by_brain(bf16::min)],
            [c.max(d).to_bits(), by_brain(bf16::max)],
            [(-c).abs().to_bits(), by_brain(|a, _| a.abs())],
        ];
    }

    /// The functions in the order of `FUNCTIONS`.
    #[kernel(T = [f16, bf16])]
    pub fn functions<T: HalfFloat>(t: Thread<1>, x: &[T], mut out: DisjointSlice<[u16; 21]>) {
        let i = t.index();
        let Some(out) = out.get_mut(i) else { return };
        let x = x[i.get()];
        *out = [
            x.sqrt(),
            x.rsqrt(),
            x.recip(),
            x.floor(),
            x.ceil(),
            x.trunc(),
            x.round(),
            x.round_ties_even(),
            x.exp(),
            x.exp2(),
            x.ln(),
            x.log2(),
            x.log10(),
            x.sin(),
            x.cos(),
            x.tan(),
            x.tanh(),
            x.erf(),
            x.powf(T::from_f32(1.5)),
            x.fast_exp2(),
            x.fast_tanh(),
        ]
        .map(T::to_bits);
    }

    /// Thread i: operation i on pair i, with `operand`.
    #[kernel]
    pub fn atomics(
        t: Thread<1>,
        operand: F16x2,
        cells: &[DeviceAtomic<F16x2, System>],
        brain_operand: Bf16x2,
        brain_cells: &[DeviceAtomic<Bf16x2>],
        mut found: DisjointSlice<[u32; 2]>,
    ) {
        let i = t.index();
        let number = i.get();
        let Some(found) = found.get_mut(i) else { return };
        let (cell, brain, order) = (&cells[number], &brain_cells[number], Ordering::AcqRel);
        let (short, brain) = match number {
            0 => (cell.fetch_add(operand, order), brain.fetch_add(brain_operand, order)),
            1 => (cell.fetch_sub(operand, order), brain.fetch_sub(brain_operand, order)),
            2 => (cell.fetch_min(operand, order), brain.fetch_min(brain_operand, order)),
            3 => (cell.fetch_max(operand, order), brain.fetch_max(brain_operand, order)),
            _ => (cell.swap(operand, order), brain.swap(brain_operand, order)),
        };
        *found = [short.to_bits(), brain.to_bits()];
    }

    /// Each thread adds (1, 1/2) to a cell of each kind in global memory, and to one in shared memory, which the
    /// first thread of the block writes out.
    #[kernel(block = 64)]
    pub fn contended(
        t: Thread<1>,
        short: &[DeviceAtomic<F16x2>],
        brain: &[DeviceAtomic<Bf16x2>],
        mut of_block: DisjointRows<F16x2>,
        mut tile: Shared<[DeviceAtomic<F16x2>; 1]>,
    ) {
        let ones = [1.0, 0.5];
        let i = t.index().get();
        tile.fill_with(&t, |_| DeviceAtomic::new(F16x2::default()));
        let shared = t.publish(tile);
        short[i % short.len()].fetch_add(F16x2::from_f32(ones), Ordering::Relaxed);
        brain[i % brain.len()].fetch_add(Bf16x2::from_f32(ones), Ordering::Relaxed);
        shared[0].fetch_add(F16x2::from_f32(ones), Ordering::Relaxed);
        t.sync_threads();
        let total = shared[0].load(Ordering::Relaxed);
        of_block.fill_with(&t, |_| total);
    }

    /// Each thread's number plus that of its neighbour in the warp, and that of the thread opposite in the block.
    #[kernel(block = 64)]
    pub fn neighbours(t: Thread<1>, x: &[f16], mut out: DisjointSlice<f16>, mut tile: Shared<[f16; 64]>) {
        let rank = t.thread_rank() as usize;
        tile.fill_with(&t, |_| x[t.index().get()]);
        let read = t.publish(tile);
        let opposite = read[63 - rank];
        let neighbour = t.warp().shuffle_xor(read[rank], 1);
        if let Some(out) = out.get_mut(t.index()) {
            *out = opposite.mul_add(f16::from_f32(100.0), neighbour);
        }
    }
}

/// All numbers of a format.
fn all<T: HalfFloat>() -> Vec<T> {
    (0..=u16::MAX).map(T::from_bits).collect()
}

/// The bits, with all NaNs normalised.
fn settled<T: HalfFloat>(number: T) -> u16 {
    if number.is_nan() { T::NAN.to_bits() } else { number.to_bits() }
}

/// A type that the generic kernels are compiled for.
trait Launched: HalfFloat {
    fn operators(
        stream: &Stream,
        a: Self,
        x: &DeviceBuffer<Self>,
        out: &mut DeviceBuffer<[u16; 10]>,
    ) -> Outcome;
    fn functions(stream: &Stream, x: &DeviceBuffer<Self>, out: &mut DeviceBuffer<[u16; 21]>) -> Outcome;
    /// Significant bits, and the exponent of the smallest subnormal number.
    const FORMAT: (i32, i32);
    /// The relative error of `fast_exp2` and the absolute one of `fast_tanh`, as documented.
    const FAST: [f64; 2];
}

macro_rules! launched {
    ($ty:ident, $format:expr, $fast:expr) => {
        impl Launched for $ty {
            fn operators(
                stream: &Stream,
                a: $ty,
                x: &DeviceBuffer<$ty>,
                out: &mut DeviceBuffer<[u16; 10]>,
            ) -> Outcome {
                Ok(kernels::operators::<$ty>(stream, Grid::cover(x.len()), a, x, out)?)
            }

            fn functions(
                stream: &Stream,
                x: &DeviceBuffer<$ty>,
                out: &mut DeviceBuffer<[u16; 21]>,
            ) -> Outcome {
                Ok(kernels::functions::<$ty>(stream, Grid::cover(x.len()), x, out)?)
            }

            const FORMAT: (i32, i32) = $format;
            const FAST: [f64; 2] = $fast;
        }
    };
}

// `ex2.approx.f16` and `tanh.approx.f16` of the PTX ISA, plus the rounding of the result on architectures without them.
launched!(f16, (11, -24), [1.05e-3, 4.95e-4]);
launched!(bf16, (8, -133), [7.9e-3, 3.95e-3]);

fn arithmetic_is_that_of_the_host<T: Launched>(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let host = all::<T>();
    let x = stream.upload(&host)?;
    let mut out = stream.upload(&vec![[7_u16; 10]; host.len()])?;
    let special =
        [0.0, -0.0, 1.0, -1.5, 3.0e-6, 1e-39, 65504.0, -3.0e38, f32::INFINITY, f32::NAN].map(T::from_f32);
    let mut random = fastrand::Rng::with_seed(11);
    let some: Vec<T> = (0..6).map(|_| T::from_bits(random.u16(..))).collect();
    for a in special.into_iter().chain(some) {
        T::operators(&stream, a, &x, &mut out)?;
        for (found, x) in stream.download(&out)?.into_iter().zip(&host) {
            let x = *x;
            let results = [a + x, a - x, a * x, a / x, a % x, a.min(x), a.max(x), a.mul_add(x, x), -x.abs()];
            let of_zeros = a == T::ZERO && x == T::ZERO;
            for (k, expected) in results.into_iter().enumerate() {
                // Of two zeros either is the smaller one.
                if of_zeros && (k == 5 || k == 6) {
                    continue;
                }
                if settled(T::from_bits(found[k])) != settled(expected) {
                    let found = T::from_bits(found[k]);
                    return Err(format!("operator {k} of {a:?}, {x:?}: {found:?}, not {expected:?}").into());
                }
            }
            let comparisons = u16::from(a < x) | u16::from(a <= x) << 1 | u16::from(a == x) << 2;
            expect("comparisons", found[9], comparisons)?;
        }
    }
    Ok(())
}

fn conversions_round_to_the_nearest(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(12);
    let mut numbers: Vec<f32> = (0..40_000).map(|_| f32::from_bits(random.u32(..))).collect();
    // Halfway between two numbers of either format, and one bit beside.
    for bits in (0..=u16::MAX).step_by(3) {
        let (short, brain) = (f16::from_bits(bits).to_f32(), bf16::from_bits(bits).to_f32());
        let near =
            |x: f32, half: u32| [0, 1, 2].map(|k| f32::from_bits(x.to_bits().wrapping_add(half - 1 + k)));
        numbers.extend(near(short, 1 << 12).into_iter().chain(near(brain, 1 << 15)));
    }
    let x = stream.upload(&numbers)?;
    let mut out = stream.upload(&vec![[7_u16; 4]; numbers.len()])?;
    let mut back = stream.upload(&vec![[7.0_f32; 4]; numbers.len()])?;
    kernels::conversions(&stream, Grid::cover(numbers.len()), &x, &mut out, &mut back)?;
    let (out, back) = (stream.download(&out)?, stream.download(&back)?);
    for ((x, out), back) in numbers.into_iter().zip(out).zip(back) {
        let other = -x * 1.125;
        let found = [settled(f16::from_bits(out[0])), settled(bf16::from_bits(out[1]))];
        let of_pair = [settled(f16::from_bits(out[2])), settled(bf16::from_bits(out[3]))];
        expect(&format!("{x:e}"), found, [settled(f16::from_f32(x)), settled(bf16::from_f32(x))])?;
        expect(
            &format!("{other:e}"),
            of_pair,
            [settled(f16::from_f32(other)), settled(bf16::from_f32(other))],
        )?;
        let wide = [f16::from_f32(x).to_f32(), bf16::from_f32(x).to_f32()];
        let is_same =
            |k: usize| back[k].to_bits() == wide[k % 2].to_bits() || back[k].is_nan() && wide[k % 2].is_nan();
        expect(&format!("{x:e} and back"), [0, 1, 2, 3].map(is_same), [true; 4])?;
    }
    Ok(())
}

fn pairs_are_computed_as_single_ones(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(13);
    let mut pairs = || [random.u32(..), random.u32(..)];
    let numbers: Vec<[u32; 2]> = (0..50_000).map(|_| pairs()).collect();
    let short: Vec<_> = numbers.iter().map(|pair| pair.map(F16x2::from_bits)).collect();
    let brain: Vec<_> = numbers.iter().map(|pair| pair.map(Bf16x2::from_bits)).collect();
    let (device_short, device_brain) = (stream.upload(&short)?, stream.upload(&brain)?);
    let mut out = stream.upload(&vec![[[7_u32; 2]; 16]; numbers.len()])?;
    kernels::pairs(&stream, Grid::cover(numbers.len()), &device_short, &device_brain, &mut out)?;
    let settle = |k: usize, bits: u32| {
        let each = [bits as u16, (bits >> 16) as u16];
        if k < 8 {
            each.map(|it| settled(f16::from_bits(it)))
        } else {
            each.map(|it| settled(bf16::from_bits(it)))
        }
    };
    for (i, out) in stream.download(&out)?.into_iter().enumerate() {
        for (k, [at_once, single]) in out.into_iter().enumerate() {
            expect(&format!("operator {k} of {:x?}", numbers[i]), settle(k, at_once), settle(k, single))?;
        }
        let sum = short[i][0] + short[i][1];
        expect(&format!("sum of {:x?}", numbers[i]), settle(0, out[0][0]), settle(0, sum.to_bits()))?;
    }
    Ok(())
}

/// A function of `f64`.
type Exact = fn(f64) -> f64;

/// The functions, up to those that are approximate.
const FUNCTIONS: [(&str, Exact); 19] = [
    ("sqrt", f64::sqrt),
    ("rsqrt", |x| 1.0 / x.sqrt()),
    ("recip", |x| 1.0 / x),
    ("floor", f64::floor),
    ("ceil", f64::ceil),
    ("trunc", f64::trunc),
    ("round", f64::round),
    ("round_ties_even", f64::round_ties_even),
    ("exp", f64::exp),
    ("exp2", f64::exp2),
    ("ln", f64::ln),
    ("log2", f64::log2),
    ("log10", f64::log10),
    ("sin", f64::sin),
    ("cos", f64::cos),
    ("tan", f64::tan),
    ("tanh", f64::tanh),
    ("erf", |x| ferrogrid::device::math::Float::erf(x)),
    ("powf", |x| x.powf(1.5)),
];

/// Units in the last place between a number and an exact value.
fn ulps<T: Launched>(found: T, exact: f64) -> f64 {
    let nearest = T::from_f32(exact as f32);
    if settled(found) == settled(nearest) {
        return 0.0;
    }
    let (digits, least) = T::FORMAT;
    let place = (exact.abs().log2().floor() as i32 - digits + 1).max(least);
    (f64::from(found.to_f32()) - exact).abs() / f64::from(place).exp2()
}

fn functions_are_rounded_once_but_for_a_hair<T: Launched>(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let host = all::<T>();
    let x = stream.upload(&host)?;
    let mut out = stream.upload(&vec![[7_u16; 21]; host.len()])?;
    T::functions(&stream, &x, &mut out)?;
    for (found, x) in stream.download(&out)?.into_iter().zip(host) {
        let wide = f64::from(x.to_f32());
        for ((name, exact), found) in FUNCTIONS.iter().zip(found) {
            let (found, exact) = (T::from_bits(found), exact(wide));
            let off = ulps(found, exact);
            if off.is_nan() || off > 0.51 {
                return Err(format!("{name} of {x:?}: {found:?}, not {exact:e}: {off} ulp").into());
            }
        }
        let [power, tangent] = [19, 20].map(|k| f64::from(T::from_bits(found[k]).to_f32()));
        let exact = wide.exp2();
        // Subnormal results may be zero, those above the largest number infinite.
        let smallest = f64::from(T::MIN_POSITIVE.to_f32());
        let is_near = (power - exact).abs() <= T::FAST[0] * exact.max(smallest)
            || exact < smallest && (0.0..=smallest).contains(&power)
            || power == f64::INFINITY && exact * (1.0 + T::FAST[0]) > f64::from(T::MAX.to_f32())
            || power.is_nan() && exact.is_nan();
        expect(&format!("fast_exp2 of {x:?}: {power:e}, exactly {exact:e}"), is_near, true)?;
        let exact = wide.tanh();
        let is_near = (tangent - exact).abs() <= T::FAST[1] || tangent.is_nan() && exact.is_nan();
        expect(&format!("fast_tanh of {x:?}: {tangent:e}, exactly {exact:e}"), is_near, true)?;
    }
    Ok(())
}

fn halves_are_shared_and_shuffled(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let host: Vec<f16> = (0..256).map(|k| f16::from_f32(k as f32 / 8.0)).collect();
    let x = stream.upload(&host)?;
    let mut out = stream.zeros::<f16>(host.len())?;
    kernels::neighbours(&stream, Grid::cover(host.len()), &x, &mut out)?;
    let found: Vec<u16> = stream.download(&out)?.into_iter().map(f16::to_bits).collect();
    let expected = (0..host.len()).map(|i| {
        let opposite = host[i / 64 * 64 + 63 - i % 64];
        opposite.mul_add(f16::from_f32(100.0), host[i ^ 1]).to_bits()
    });
    expect("sums", found, expected.collect())
}

fn pairs_are_changed_atomically(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (start, operand) = ([1.5_f32, -7.0], [0.25_f32, 3.0e-5]);
    let (short, brain) = (F16x2::from_f32(start), Bf16x2::from_f32(start));
    let (short_operand, brain_operand) = (F16x2::from_f32(operand), Bf16x2::from_f32(operand));
    let mut cells = stream.upload(&[short; 5])?;
    let mut brain_cells = stream.upload(&[brain; 5])?;
    let mut found = stream.upload(&[[7_u32; 2]; 5])?;
    kernels::atomics(
        &stream,
        Grid::cover(5),
        short_operand,
        cells.as_atomic(),
        brain_operand,
        brain_cells.as_atomic(),
        &mut found,
    )?;
    expect("what was there", stream.download(&found)?, vec![[short.to_bits(), brain.to_bits()]; 5])?;
    let (a, b) = (short, short_operand);
    let expected = [a + b, a - b, a.min(b), a.max(b), b];
    expect("what is there", stream.download(&cells)?, expected.to_vec())?;
    let (a, b) = (brain, brain_operand);
    let expected = [a + b, a - b, a.min(b), a.max(b), b];
    expect("what is there of bf16", stream.download(&brain_cells)?, expected.to_vec())
}

/// 124 times (1, 1/2) in each cell: exact in both formats, in any order.
fn no_sum_of_halves_is_lost(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut short = stream.zeros::<F16x2>(16)?;
    let mut brain = stream.zeros::<Bf16x2>(16)?;
    let (blocks, threads) = (31, 64);
    let mut of_block = stream.zeros::<F16x2>(blocks)?;
    let rows = of_block.view_2d_mut(1, blocks)?;
    kernels::contended(
        &stream,
        Grid::new(blocks as u32, threads),
        short.as_atomic(),
        brain.as_atomic(),
        rows,
    )?;
    expect("f16", stream.download(&short)?, vec![F16x2::from_f32([124.0, 62.0]); 16])?;
    expect("bf16", stream.download(&brain)?, vec![Bf16x2::from_f32([124.0, 62.0]); 16])?;
    expect("in shared memory", stream.download(&of_block)?, vec![F16x2::from_f32([64.0, 32.0]); blocks])
}

fn tensors_of_halves_leave_and_return(device: &Device) -> Outcome {
    let stream = &device.new_stream()?;
    returns(stream, [f16::from_f32(1.5), f16::NEG_INFINITY], abi::FLOAT)?;
    returns(stream, [bf16::from_f32(1.5), bf16::MAX], abi::BFLOAT)?;
    returns(stream, [[f16::ONE, f16::NEG_ONE], [f16::ZERO, f16::ONE]], abi::COMPLEX)
}

fn returns<T: DlpackElement + PartialEq + std::fmt::Debug>(stream: &Stream, x: [T; 2], code: u8) -> Outcome {
    let tensor = DlpackTensor::from_buffer(stream, stream.upload(&x)?)?;
    // SAFETY: from `into_raw`, and nothing else refers to it.
    let tensor = unsafe { DlpackTensor::from_raw(tensor.into_raw())? };
    let found = tensor.element_type();
    expect("type", (found.code, usize::from(found.bits)), (code, 8 * size_of::<T>()))?;
    expect("elements", stream.download(&tensor.into_buffer::<T>(stream)?)?, x.to_vec())
}
