//! Compute-bound kernels: n-body, Black-Scholes, the Mandelbrot set, random numbers.

use ferrogrid::prelude::*;

use crate::Outcome;
use crate::duel::{Arena, near, near_sampled, random};

#[ferrogrid::module]
pub mod kernels {
    use ferrogrid::device::prelude::*;
    use ferrogrid::device::random::Philox4x32;

    /// The pull of all bodies (x, y, z, mass) on each; their number is a multiple of 256.
    #[kernel(block = 256, min_blocks = 1, same_shape(bodies, pulls))]
    // A loop with barriers iterates over a range, which is known to be the same in all threads.
    #[allow(clippy::needless_range_loop)]
    pub fn pull(
        t: Thread<1>,
        bodies: &[Aligned16<[f32; 4]>],
        mut pulls: DisjointSlice<Aligned16<[f32; 4]>>,
        mut tile: Shared<[Aligned16<[f32; 4]>; 256]>,
    ) {
        let own = bodies.get(t.index().get()).copied().unwrap_or(Aligned16::new([0.0; 4])).into_inner();
        let (tiles, _) = bodies.as_chunks::<256>();
        let rank = t.thread_rank() as usize;
        let mut pull = [0.0_f32; 3];
        for step in 0..bodies.len() / 256 {
            if let Some(place) = tile.get_mut(&t) {
                *place = tiles[step][rank];
            }
            let read = t.publish(tile);
            for k in 0..256 {
                let other = read[k].into_inner();
                let [dx, dy, dz] = [other[0] - own[0], other[1] - own[1], other[2] - own[2]];
                let square = dz.mul_add(dz, dy.mul_add(dy, dx.mul_add(dx, 1e-3)));
                let inverse = square.fast_rsqrt();
                let strength = other[3] * inverse * inverse * inverse;
                pull = [
                    dx.mul_add(strength, pull[0]),
                    dy.mul_add(strength, pull[1]),
                    dz.mul_add(strength, pull[2]),
                ];
            }
            tile = t.reclaim(read);
        }
        if let Some(place) = pulls.get_mut(t.index()) {
            *place = Aligned16::new([pull[0], pull[1], pull[2], 0.0]);
        }
    }

    /// The price of European calls, with the error function.
    #[kernel(same_shape(price, strike, years, call))]
    pub fn black_scholes(
        t: Thread<1>,
        rate: f32,
        volatility: f32,
        price: &[f32],
        strike: &[f32],
        years: &[f32],
        mut call: DisjointSlice<f32>,
    ) {
        let i = t.index();
        if let Some(call) = call.get_mut(i) {
            let i = i.get();
            let (price, strike, years) = (price[i], strike[i], years[i]);
            let spread = volatility * years.sqrt();
            let drift = (0.5 * volatility).mul_add(volatility, rate);
            let d1 = drift.mul_add(years, (price / strike).ln()) / spread;
            let d2 = d1 - spread;
            let below = |d: f32| 0.5_f32.mul_add((d * core::f32::consts::FRAC_1_SQRT_2).erf(), 0.5);
            let discount = (-rate * years).exp();
            *call = price.mul_add(below(d1), -(strike * discount * below(d2)));
        }
    }

    /// A polynomial for the normal distribution, as in the CUDA samples.
    fn below_fast(d: f32) -> f32 {
        let k = d.abs().mul_add(0.231_641_9, 1.0).fast_recip();
        let tail = 1.330_274_5_f32.mul_add(k, -1.821_255_9);
        let tail = tail.mul_add(k, 1.781_477_9).mul_add(k, -0.356_563_78).mul_add(k, 0.319_381_53);
        let tail = 0.398_942_3 * (-0.5 * d * d).fast_exp() * (k * tail);
        if d > 0.0 { 1.0 - tail } else { tail }
    }

    /// The same, on the hardware's approximations.
    #[kernel(same_shape(price, strike, years, call))]
    pub fn black_scholes_fast(
        t: Thread<1>,
        rate: f32,
        volatility: f32,
        price: &[f32],
        strike: &[f32],
        years: &[f32],
        mut call: DisjointSlice<f32>,
    ) {
        let i = t.index();
        if let Some(call) = call.get_mut(i) {
            let i = i.get();
            let (price, strike, years) = (price[i], strike[i], years[i]);
            let spread = volatility * years.fast_sqrt();
            let drift = (0.5 * volatility).mul_add(volatility, rate);
            let d1 = drift.mul_add(years, price.fast_div(strike).fast_ln()).fast_div(spread);
            let d2 = d1 - spread;
            let discount = (-rate * years).fast_exp();
            *call = price.mul_add(below_fast(d1), -(strike * discount * below_fast(d2)));
        }
    }

    /// The number of steps of z^2 + c after which a point leaves the circle of radius 2, at most `most`.
    #[kernel(block = [16, 16])]
    pub fn mandelbrot(
        t: Thread<2>,
        most: u32,
        corner: [f32; 2],
        step: f32,
        mut steps: DisjointSlice<u32, 2>,
    ) {
        let i = t.index();
        if let Some(place) = steps.get_mut(i) {
            let [cx, cy] = [
                (i.x() as u32 as f32).mul_add(step, corner[0]),
                (i.y() as u32 as f32).mul_add(step, corner[1]),
            ];
            let (mut x, mut y, mut count) = (0.0_f32, 0.0_f32, 0);
            while count < most && x.mul_add(x, y * y) <= 4.0 {
                let next = x.mul_add(x, cx) - y * y;
                y = (2.0 * x).mul_add(y, cy);
                x = next;
                count += 1;
            }
            *place = count;
        }
    }

    /// Four numbers for each thread, of its own subsequence.
    #[kernel]
    pub fn philox(t: Thread<1>, seed: u64, mut out: DisjointSlice<Aligned16<[f32; 4]>>) {
        let i = t.index();
        if let Some(out) = out.get_mut(i) {
            let subsequence = u64::from(i.get() as u32);
            *out = Aligned16::new(Philox4x32::new(seed, subsequence, 0).next_uniform_f32x4());
        }
    }
}

pub fn pull(arena: &Arena) -> Outcome<()> {
    let n = 32_768;
    let x = random(4 * n, -1.0..1.0);
    let input = arena.stream.upload(&x)?;
    let cpp = arena.cpp("pull")?;
    let grid = Grid::new(n as u32 / 256, 256);
    let exact = |i: usize| {
        let (own, axis) = (&x[i / 4 * 4..][..4], i % 4);
        if axis == 3 {
            return 0.0;
        }
        let pull = |other: &[f32]| {
            let d: [f64; 3] = std::array::from_fn(|k| f64::from(other[k]) - f64::from(own[k]));
            f64::from(other[3]) * d[axis] / (1e-3 + d.iter().map(|d| d * d).sum::<f64>()).powf(1.5)
        };
        x.chunks_exact(4).map(pull).sum()
    };
    arena.duel(
        "n_body",
        &vec![f32::NAN; 4 * n],
        |out| kernels::pull(arena.stream, grid, input.view().as_aligned16()?, out.view_mut().as_aligned16()?),
        // SAFETY: `pull(int n, const float4* bodies, float4* pulls)`, both of n groups of four.
        |out| unsafe { cpp.launch(arena.stream, grid, (n as i32, &input, out)) },
        // Sums of 32768 terms of either sign, the greatest about 400.
        |found| near_sampled(found, exact, 1.0),
    )
}

type Pricing = for<'a> fn(
    &Stream,
    Grid<1>,
    f32,
    f32,
    &'a DeviceBuffer<f32>,
    &'a DeviceBuffer<f32>,
    &'a DeviceBuffer<f32>,
    &'a mut DeviceBuffer<f32>,
) -> ferrogrid::Result<()>;

pub fn black_scholes(arena: &Arena) -> Outcome<()> {
    prices(arena, "black_scholes", |stream, grid, r, v, p, s, y, call| {
        kernels::black_scholes(stream, grid, r, v, p, s, y, call)
    })?;
    prices(arena, "black_scholes_fast", |stream, grid, r, v, p, s, y, call| {
        kernels::black_scholes_fast(stream, grid, r, v, p, s, y, call)
    })
}

fn prices(arena: &Arena, name: &str, rust: Pricing) -> Outcome<()> {
    let n = 1 << 26;
    let (price, strike, years) = (random(n, 5.0..30.0), random(n, 1.0..100.0), random(n, 0.25..10.0));
    let [p, s, y] =
        [arena.stream.upload(&price)?, arena.stream.upload(&strike)?, arena.stream.upload(&years)?];
    let cpp = arena.cpp(name)?;
    let grid = Grid::new(n as u32 / 256, 256);
    let exact = |i: usize| {
        let (price, strike, years) = (f64::from(price[i]), f64::from(strike[i]), f64::from(years[i]));
        let (rate, volatility) = (0.02, 0.3);
        let spread = volatility * years.sqrt();
        let d1 = ((price / strike).ln() + (rate + 0.5 * volatility * volatility) * years) / spread;
        let below =
            |d: f64| 0.5 + 0.5 * ferrogrid::device::math::Float::erf(d * std::f64::consts::FRAC_1_SQRT_2);
        price * below(d1) - strike * (-rate * years).exp() * below(d1 - spread)
    };
    arena.duel(
        name,
        &vec![f32::NAN; n],
        |out| rust(arena.stream, grid, 0.02, 0.3, &p, &s, &y, out),
        // SAFETY: `(int n, float rate, float volatility, const float* price, const float* strike,
        // const float* years, float* call)`, all of n elements.
        |out| unsafe { cpp.launch(arena.stream, grid, (n as i32, 0.02_f32, 0.3_f32, &p, &s, &y, out)) },
        |found| near_sampled(found, exact, 1e-4),
    )
}

pub fn mandelbrot(arena: &Arena) -> Outcome<()> {
    const N: usize = 4096;
    const MOST: u32 = 512;
    // A fresh corner each time.
    let corner = [-2.0 - fastrand::f32() * 1e-3, -1.25 - fastrand::f32() * 1e-3];
    let step = 2.5 / N as f32;
    let cpp = arena.cpp("mandelbrot")?;
    let grid = Grid::new([N as u32 / 16; 2], [16; 2]);
    let exact = |i: usize| {
        let at = |place: usize, corner: f32| f64::from((place as f32).mul_add(step, corner));
        let (cx, cy) = (at(i % N, corner[0]), at(i / N, corner[1]));
        let (mut x, mut y, mut count) = (0.0, 0.0, 0);
        while count < MOST && x * x + y * y <= 4.0 {
            (x, y, count) = (x * x - y * y + cx, 2.0 * x * y + cy, count + 1);
        }
        count
    };
    arena.duel(
        "mandelbrot",
        &vec![u32::MAX; N * N],
        |out| kernels::mandelbrot(arena.stream, grid, MOST, corner, step, out.view_2d_mut(N, N)?),
        // SAFETY: `mandelbrot(int width, int height, unsigned most, float x, float y, float step,
        // unsigned* steps)`, of that plane.
        |out| unsafe {
            let arguments = (N as i32, N as i32, MOST, corner[0], corner[1], step, out);
            cpp.launch(arena.stream, grid, arguments)
        },
        |found| {
            // Near the border, rounding decides: of 4096 points at most 2 in 100 may differ.
            let places = (0..4096).map(|_| fastrand::usize(..N * N));
            let wrong = places.filter(|&i| found[i] != exact(i)).count();
            if wrong <= 82 { Ok(()) } else { Err(format!("{wrong} of 4096 points are wrong").into()) }
        },
    )
}

pub fn philox(arena: &Arena) -> Outcome<()> {
    use ferrogrid::device::random::Philox4x32;
    let n = 1 << 27;
    let seed = fastrand::u64(..);
    let cpp = arena.cpp("philox")?;
    let grid = Grid::new(n as u32 / 1024, 256);
    let exact = |i: usize| f64::from(Philox4x32::new(seed, i as u64 / 4, 0).next_uniform_f32x4()[i % 4]);
    arena.duel(
        "philox_uniform",
        &vec![f32::NAN; n],
        |out| kernels::philox(arena.stream, grid, seed, out.view_mut().as_aligned16()?),
        // SAFETY: `philox(int groups, unsigned long long seed, float4* out)`, of that many groups.
        |out| unsafe { cpp.launch(arena.stream, grid, ((n / 4) as i32, seed, out)) },
        |found| near(found, exact, 0.0),
    )
}
