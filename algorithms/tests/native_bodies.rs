//! Native bodies have the bits of the kernels that they stand for, on the CPU device.
//!
//! The device that runs kernels has one worker: then each block of a scan finds the total of the one before it, and running
//! sums of floats have one order.

use std::fmt::Debug;

use ferrogrid_algorithms::{self as algorithms, Number, RadixSort};
use ferrogrid_host::{CpuOptions, Device, Result, Stream};

/// Around a row of lanes, a thread for each element, the tiles of 4096 and 8192 elements, and the pieces of a sort.
const LENGTHS: [usize; 14] = [0, 1, 33, 127, 129, 1023, 1025, 4095, 4096, 4097, 8191, 8193, 16_385, 33_000];

/// Streams of both devices: with native bodies, and without.
fn streams() -> [Stream; 2] {
    let kernels = CpuOptions::new().workers(1).without_native_bodies();
    [Device::cpu(), Device::cpu_with(kernels).unwrap()].map(|device| device.new_stream().unwrap())
}

/// Fails unless both devices have the same results. As text, floats differ if their bits do, but for those of NaN.
#[track_caller]
fn same<R: Debug>(what: &str, streams: &[Stream; 2], result: impl Fn(&Stream) -> Result<R>) {
    let [native, kernels] = streams.each_ref().map(|stream| format!("{:?}", result(stream).unwrap()));
    assert!(native == kernels, "{what}: {}", difference(&native, &kernels));
}

fn difference(native: &str, kernels: &str) -> String {
    let at = native.bytes().zip(kernels.bytes()).position(|(a, b)| a != b).unwrap_or(0).saturating_sub(40);
    let part = |text: &str| text.chars().skip(at).take(80).collect::<String>();
    format!("native {}, kernels {}", part(native), part(kernels))
}

/// Random bits (xorshift).
fn random(len: usize) -> impl Iterator<Item = u64> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64 ^ len as u64;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    })
    .take(len)
}

/// Of all magnitudes that sums round differently, so that the order shows; both zeros.
fn rounding(bits: u64) -> f64 {
    let magnitude = (bits >> 60) as i32 - 8;
    match bits % 64 {
        0 => -0.0,
        1 => 0.0,
        _ => ((bits >> 8) as i32 as f64) * 4.0_f64.powi(magnitude),
    }
}

/// With NaN of both signs, infinities and zeros among them.
fn special(bits: u64) -> f64 {
    const SPECIAL: [f64; 6] = [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0];
    SPECIAL.get(bits as usize % 32).copied().unwrap_or_else(|| rounding(bits))
}

fn reductions<T: Number<Total: Debug> + Debug>(streams: &[Stream; 2], x: &[T]) {
    let check = |name: &str| format!("{name} of {} {}", x.len(), std::any::type_name::<T>());
    same(&check("sum"), streams, |s| algorithms::sum(s, &s.upload(x)?));
    same(&check("product"), streams, |s| algorithms::product(s, &s.upload(x)?));
    same(&check("dot"), streams, |s| {
        let (x, y) = (s.upload(x)?, s.upload(&x.iter().rev().copied().collect::<Vec<_>>())?);
        algorithms::dot(s, &x, &y)
    });
    same(&check("moments"), streams, |s| algorithms::moments(s, &s.upload(x)?));
    extrema(streams, x);
}

fn extrema<T: Number + Debug>(streams: &[Stream; 2], x: &[T]) {
    let what = format!("extrema of {} {}", x.len(), std::any::type_name::<T>());
    same(&what, streams, |s| {
        let x = s.upload(x)?;
        let (min, max) = (algorithms::min(s, &x)?, algorithms::max(s, &x)?);
        Ok((min, max, algorithms::argmin(s, &x)?, algorithms::argmax(s, &x)?))
    });
    same(&what, streams, |s| {
        let (device_x, value) = (s.upload(x)?, x.first().copied().unwrap_or(T::ONE));
        let count = algorithms::count(s, &device_x, value)?;
        Ok((count, algorithms::all(s, &device_x)?, algorithms::any(s, &device_x)?))
    });
}

fn norms<T: algorithms::Real>(streams: &[Stream; 2], x: &[T]) {
    let what = format!("norms of {} {}", x.len(), std::any::type_name::<T>());
    same(&what, streams, |s| {
        let x = s.upload(x)?;
        Ok((algorithms::asum(s, &x)?, algorithms::nrm2(s, &x)?, algorithms::amax(s, &x)?))
    });
}

fn scans<T: Number + Debug>(streams: &[Stream; 2], x: &[T], first: T) {
    let what = format!("scans of {} {}", x.len(), std::any::type_name::<T>());
    same(&what, streams, |s| {
        let (x, [mut y, mut z]) = (s.upload(x)?, [s.zeros(x.len())?, s.zeros(x.len())?]);
        algorithms::inclusive_sum(s, &x, &mut y)?;
        algorithms::exclusive_sum(s, &x, first, &mut z)?;
        Ok((s.download(&y)?, s.download(&z)?))
    });
}

#[test]
fn reductions_have_the_bits_of_kernels() {
    let streams = &streams();
    for len in LENGTHS {
        let x: Vec<f64> = random(len).map(rounding).collect();
        let single: Vec<f32> = x.iter().map(|&x| x as f32).collect();
        reductions(streams, &x);
        reductions(streams, &single);
        norms(streams, &x);
        norms(streams, &single);
        let x: Vec<f64> = random(len).map(special).collect();
        extrema(streams, &x);
        extrema(streams, &x.iter().map(|&x| x as f32).collect::<Vec<_>>());
    }
    // Types differ in their kernels, lengths do not any more.
    for len in [1, 4095, 8193] {
        reductions(streams, &random(len).map(|x| x as u8).collect::<Vec<_>>());
        reductions(streams, &random(len).map(|x| x as i16).collect::<Vec<_>>());
        reductions(streams, &random(len).map(|x| x as u32).collect::<Vec<_>>());
        reductions(streams, &random(len).map(|x| x as i64).collect::<Vec<_>>());
        extrema(streams, &vec![f32::NAN; len]);
        norms(streams, &random(len).map(special).collect::<Vec<_>>());
    }
}

#[cfg(feature = "half")]
#[test]
fn halves_have_the_bits_of_kernels() {
    use ferrogrid_device::half::{bf16, f16};

    fn check<T: algorithms::Real<Total: Debug> + Debug>(of_bits: fn(u16) -> T, of_single: fn(f32) -> T) {
        let streams = &streams();
        for len in [1, 4095, 8193] {
            // Sums round in each step, and do not overflow.
            let x: Vec<T> = random(len).map(|bits| of_single(f32::from(bits as i16) / 1024.0)).collect();
            reductions(streams, &x);
            norms(streams, &x);
            let x: Vec<T> = random(len).map(|bits| of_bits(bits as u16 & 0xFF03)).collect();
            extrema(streams, &x);
            selections(streams, &x, len);
        }
    }
    check(f16::from_bits, f16::from_f32);
    check(bf16::from_bits, bf16::from_f32);
}

/// A block has tiles `b` and `b + 2112`, and the last tile is not whole. Of equal elements the first counts.
#[test]
fn blocks_of_several_tiles_have_the_bits_of_kernels() {
    let x: Vec<f32> = random(4096 * 2115 + 5).map(|bits| rounding(bits) as f32).collect();
    let streams = &streams();
    same("sum", streams, |s| algorithms::sum(s, &s.upload(&x)?));
    same("first", streams, |s| algorithms::argmax(s, &s.fill(7_u8, x.len())?));
}

#[test]
fn scans_have_the_bits_of_kernels() {
    let streams = &streams();
    for len in LENGTHS {
        let x: Vec<f64> = random(len).map(rounding).collect();
        scans(streams, &x, 0.1);
        scans(streams, &x.iter().map(|&x| x as f32).collect::<Vec<_>>(), -0.0);
        scans(streams, &vec![-0.0_f32; len], -0.0);
        scans(streams, &random(len).collect::<Vec<u64>>(), 7);
        scans(streams, &random(len).map(|x| x as i8).collect::<Vec<_>>(), -100);
    }
}

fn products<T: algorithms::Multiplied + Debug>(streams: &[Stream; 2], of: impl Fn(f64) -> T) {
    // Parts of tiles, and several rows of them.
    for [rows, columns, depth] in [[1, 1, 1], [5, 300, 9], [9, 16, 40]] {
        let [a, b] = [rows * depth, depth * columns]
            .map(|len| random(len).map(|bits| of(rounding(bits) / 1e9)).collect::<Vec<T>>());
        same(&format!("{rows} x {columns} x {depth} of {}", std::any::type_name::<T>()), streams, |s| {
            let (a, b, mut c) = (s.upload(&a)?, s.upload(&b)?, s.zeros::<T>(rows * columns)?);
            let target = c.view_2d_mut(columns, rows)?;
            algorithms::matmul(s, a.view_2d(depth, rows)?, b.view_2d(columns, depth)?, target)?;
            s.download(&c)
        });
    }
}

#[test]
fn products_of_matrices_have_the_bits_of_kernels() {
    let streams = &streams();
    products(streams, |it| it as f32);
    products(streams, |it| it);
    #[cfg(feature = "half")]
    products(streams, ferrogrid_device::half::bf16::from_f64);
}

/// Runs of 1 to 300 elements, some of them NaN or zeros of both signs; and one run of all.
#[test]
fn selections_have_the_results_of_kernels() {
    let streams = &streams();
    for len in [0, 1, 4096, 4097, 16_385, 33_000] {
        let run = |bits| vec![special(bits); bits as usize % 300 + 1];
        let x: Vec<f64> = random(len).flat_map(run).take(len).collect();
        selections(streams, &x, len);
        selections(streams, &x, len / 3);
        selections(streams, &vec![7_u8; len], len);
    }
}

fn selections<T: Number + Debug>(streams: &[Stream; 2], x: &[T], room: usize) {
    let what = format!("selections of {} {} in {room}", x.len(), std::any::type_name::<T>());
    let flags: Vec<u8> = random(x.len()).map(|bits| (bits % 3 == 0).into()).collect();
    same(&what, streams, |s| {
        let (x, flags, mut count) = (s.upload(x)?, s.upload(&flags)?, s.zeros::<u64>(3)?);
        let [mut selected, mut unique, mut values] = [s.zeros(room)?, s.zeros(room)?, s.zeros(room)?];
        let (mut lengths, mut parts) = (s.zeros(room)?, s.zeros(x.len())?);
        algorithms::select_into(s, &x, &flags, &mut selected, count.slice_mut(..1)?)?;
        algorithms::unique_into(s, &x, &mut unique, count.slice_mut(1..2)?)?;
        algorithms::run_length_encode_into(s, &x, &mut values, &mut lengths, count.slice_mut(2..)?)?;
        let kept = algorithms::partition(s, &x, &flags, &mut parts)?;
        let lists = [&selected, &unique, &values, &parts].map(|list| s.download(list));
        let [selected, unique, values, parts] = lists;
        Ok((selected?, unique?, values?, parts?, s.download(&lengths)?, s.download(&count)?, kept))
    });
    same(&what, streams, |s| {
        let lengths: Vec<u32> = random(x.len()).map(|bits| bits as u32 % 5).collect();
        let (x, lengths, mut y) = (s.upload(x)?, s.upload(&lengths)?, s.zeros(room)?);
        let mut count = s.zeros(1)?;
        algorithms::run_length_decode_into(s, &x, &lengths, &mut y, &mut count)?;
        Ok((s.download(&y)?, s.download(&count)?))
    });
}

#[test]
fn sorts_have_the_bits_of_kernels() {
    let streams = &streams();
    let sorts = [
        RadixSort::ascending(),
        RadixSort::descending(),
        RadixSort::descending().of_bits(3..17),
        RadixSort::ascending().of_bits(5..5),
        RadixSort::ascending().in_portions_of(2048),
    ];
    macro_rules! sorted {
        ($x:expr, $bits:ty, $value:ty, $sorts:expr) => {{
            let (x, len) = (&$x, $x.len());
            for sort in $sorts {
                let what = format!("{sort:?} of {len} {}", stringify!($bits));
                same(&what, streams, |s| {
                    let (x, mut y, mut z) = (s.upload(x)?, s.upload(x)?, s.upload(x)?);
                    let values = s.upload(&(0..len as $value).collect::<Vec<_>>())?;
                    let mut moved = s.zeros(len)?;
                    sort.keys(s, &x, &mut y)?;
                    sort.pairs(s, &x, &values, &mut z, &mut moved)?;
                    let (y, z) = (y.view().cast::<$bits>()?, z.view().cast::<$bits>()?);
                    Ok((s.download(y)?, s.download(z)?, s.download(&moved)?))
                });
            }
        }};
    }
    // Emulated passes are slow: all sorts at one length.
    for len in [0, 1, 4095, 4096, 16_383, 16_385] {
        sorted!(random(len).map(|bits| special(bits) as f32).collect::<Vec<f32>>(), u32, u64, &sorts[..1]);
    }
    sorted!(random(4097).map(|bits| special(bits) as f32).collect::<Vec<f32>>(), u32, u32, &sorts);
    sorted!(random(33_000).map(|bits| bits as u8).collect::<Vec<u8>>(), u8, u32, &sorts[1..2]);
    sorted!(random(4097).map(|bits| bits as i16 & 255).collect::<Vec<i16>>(), u16, u64, &sorts[2..]);
    sorted!(random(257).map(special).collect::<Vec<f64>>(), u64, u64, &sorts);
}
