//! Ordinary Rust in kernels, one kernel for each part of the language. The computing functions are in the
//! module, so the host can call them as well.

/// Ordinary Rust, without Ferrogrid's types.
#[ferrogrid::module]
pub mod ordinary {
    use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

    use ferrogrid::device::prelude::*;

    fn apply(f: impl Fn(u32) -> u32, times: u32, x: u32) -> u32 {
        (0..times).fold(x, |x, _| f(x))
    }

    /// Closures that capture, passed on and returned.
    pub fn closures(i: u32) -> u32 {
        let add = |k: u32| move |x: u32| x.wrapping_mul(3).wrapping_add(k);
        let mut calls = 0_u32;
        let mut count = |x: u32| {
            calls += 1;
            x + calls
        };
        let counted = count(1) + count(10);
        apply(add(i), 5, counted)
    }

    /// Iterators over a slice.
    pub fn iterators(x: &[u32]) -> [u32; 8] {
        [
            x.iter().map(|v| v * 2).sum(),
            x.iter().filter(|v| *v % 3 == 0).count() as u32,
            x.iter().zip(x.iter().skip(1)).fold(0, |sum, (a, b)| sum + a * b),
            x.iter().rev().enumerate().map(|(i, v)| i as u32 * v).sum(),
            x.iter().step_by(3).copied().max().unwrap_or(99),
            x.windows(3).filter(|w| w[0] < w[1] && w[1] < w[2]).count() as u32,
            x.chunks(4).map(|c| c.iter().product::<u32>() % 1000).sum(),
            x.chunks_exact(2).take_while(|c| c[0] != 7).flatten().chain([1, 2].iter()).sum(),
        ]
    }

    /// `match` with guards, ranges, bindings and alternatives.
    pub fn matches(i: u32) -> u32 {
        match i {
            0 => 1000,
            1 | 2 => 2000 + i,
            n @ 3..=9 if n.is_multiple_of(2) => 3000 + n,
            n if n.is_multiple_of(5) => 5000 + n,
            3..=20 => 4000,
            _ => i,
        }
    }

    /// Slices of slices, and patterns of them.
    pub fn slices(x: &[u32], i: usize) -> u32 {
        let (low, high) = x.split_at(i.min(x.len()));
        let ends = match low {
            [] => 0,
            [one] => *one,
            [first, .., last] => first * 100 + last,
        };
        let inner = high.get(1..).and_then(|rest| rest.get(..2)).map_or(0, |two| two[0] + two[1]);
        ends + 10_000 * inner
    }

    const fn powers<const N: usize>(base: u32) -> [u32; N] {
        let mut all = [1; N];
        let mut i = 1;
        while i < N {
            all[i] = all[i - 1] * base;
            i += 1;
        }
        all
    }

    /// Evaluated by the compiler.
    pub const POWERS: [u32; 8] = powers(3);
    /// The same as a static.
    pub static POWERS_OF_5: [u32; 8] = powers(5);

    /// Tables that a `const fn` made.
    pub fn const_fns(i: usize) -> u32 {
        POWERS[i % 8] + POWERS_OF_5[i / 8 % 8]
    }

    trait Shape {
        const CORNERS: u32;
        fn area(&self) -> u32;
        fn weight(&self) -> u32 {
            self.area() * 10 + Self::CORNERS
        }
    }

    struct Square(u32);
    struct Triangle {
        base: u32,
        height: u32,
    }

    impl Shape for Square {
        const CORNERS: u32 = 4;
        fn area(&self) -> u32 {
            self.0 * self.0
        }
    }

    impl Shape for Triangle {
        const CORNERS: u32 = 3;
        fn area(&self) -> u32 {
            self.base * self.height / 2
        }
        fn weight(&self) -> u32 {
            7
        }
    }

    fn both<A: Shape, B: Shape>(a: &A, b: &B) -> u32 {
        a.weight() * 1000 + b.weight() + A::CORNERS * B::CORNERS
    }

    /// Generic functions over traits, with associated constants and defaults.
    pub fn traits(i: u32) -> u32 {
        both(&Square(i % 9), &Triangle { base: i, height: 4 })
            + both(&Triangle { base: 1, height: 1 }, &Square(2))
    }

    #[derive(Debug)]
    enum Trouble {
        Odd(u32),
        Missing,
    }

    fn half(x: u32) -> Result<u32, Trouble> {
        if x.is_multiple_of(2) { Ok(x / 2) } else { Err(Trouble::Odd(x)) }
    }

    fn quarter_at(x: &[u32], i: usize) -> Result<u32, Trouble> {
        let value = *x.get(i).ok_or(Trouble::Missing)?;
        half(half(value)?)
    }

    fn next_of(x: &[u32], value: u32) -> Option<u32> {
        let at = x.iter().position(|it| *it == value)?;
        x.get(at + 1).copied()
    }

    /// `Option` and `Result` with `?`.
    pub fn question_marks(x: &[u32], i: usize) -> [u32; 2] {
        let quarter = match quarter_at(x, i) {
            Ok(value) => value,
            Err(Trouble::Odd(value)) => 1000 + value,
            Err(Trouble::Missing) => 9999,
        };
        [quarter, next_of(x, i as u32).unwrap_or(77)]
    }

    /// `core::array` and arrays by value.
    pub fn arrays(i: u32) -> u32 {
        let squares: [u32; 6] = core::array::from_fn(|k| (k as u32 + i) * (k as u32 + i));
        let [a, b, ..] = squares.map(|v| v % 11);
        squares.into_iter().rev().fold(a + b, |sum, v| sum.wrapping_mul(2).wrapping_add(v))
    }

    /// Recursion that is no loop.
    pub fn fibonacci(n: u32) -> u32 {
        if n < 2 { n } else { fibonacci(n - 1) + fibonacci(n - 2) }
    }

    /// Everything above, for each thread.
    #[kernel]
    pub fn everything(t: Thread<1>, x: &[u32], mut out: DisjointSlice<[u32; 18]>) {
        let i = t.index().get();
        let Some(out) = out.get_mut(t.index()) else { return };
        *out = all(x, i);
    }

    /// What `everything` writes at `i`.
    pub fn all(x: &[u32], i: usize) -> [u32; 18] {
        let n = i as u32;
        let part = &x[..i % (x.len() + 1)];
        let [a, b, c, d, e, f, g, h] = iterators(part);
        let [q, r] = question_marks(x, i);
        let simple = [closures(n), matches(n), slices(x, i % 9), const_fns(i), traits(n), arrays(n)];
        let [s0, s1, s2, s3, s4, s5] = simple;
        [a, b, c, d, e, f, g, h, q, r, s0, s1, s2, s3, s4, s5, fibonacci(n % 12), part.len() as u32]
    }

    /// A variant for each form of data.
    #[derive(Clone, Copy, Debug, PartialEq, DeviceCopy)]
    #[repr(u8)]
    pub enum Step {
        /// Nothing.
        Stay,
        /// By a number.
        Add(u32),
        /// By fields of other sizes.
        Scale {
            /// 64 bits, after the tag.
            factor: f64,
            /// 16 bits.
            shift: i16,
        },
    }

    /// The same with the layout of C.
    #[derive(Clone, Copy, Debug, PartialEq, DeviceCopy)]
    #[repr(C)]
    pub enum Tagged<T> {
        /// Nothing.
        None,
        /// Something.
        Some(T),
    }

    /// Two of a kind.
    #[derive(Clone, Copy, Debug, PartialEq, DeviceCopy)]
    #[repr(C)]
    pub struct Pair<T, const N: usize> {
        /// The first.
        pub first: T,
        /// The others.
        pub rest: [T; N],
    }

    /// Applies a step to a number.
    pub fn taken(step: Step, x: f64) -> f64 {
        match step {
            Step::Stay => x,
            Step::Add(n) => x + f64::from(n),
            Step::Scale { factor, shift } => x * factor + f64::from(shift),
        }
    }

    /// Applies `last` after the step of each thread, and returns the next step.
    #[kernel]
    pub fn take_steps(
        t: Thread<1>,
        last: Step,
        pair: Pair<Tagged<i16>, 2>,
        steps: &[Step],
        mut x: DisjointSlice<f64>,
        mut next: DisjointSlice<Step>,
    ) {
        let i = t.index();
        let Some(&step) = steps.get(i.get()) else { return };
        let extra = match (pair.first, pair.rest[i.get() % 2]) {
            (Tagged::Some(a), Tagged::Some(b)) => a + b,
            (Tagged::Some(a), Tagged::None) => a,
            (Tagged::None, _) => -1,
        };
        if let (Some(x), Some(next)) = (x.get_mut(i), next.get_mut(i)) {
            *x = taken(last, taken(step, *x));
            *next = match step {
                Step::Stay => Step::Add(i.get() as u32),
                Step::Add(n) => Step::Scale { factor: f64::from(n), shift: extra },
                Step::Scale { .. } => Step::Stay,
            };
        }
    }

    /// Core's atomics: in global memory, and in shared memory by block.
    #[kernel(block = 64)]
    pub fn core_atomics(
        t: Thread<1>,
        totals: &[AtomicU32],
        wide: &[AtomicU64],
        mut bins: Shared<[AtomicU32; 4]>,
    ) {
        bins.fill_with(&t, |_| AtomicU32::new(0));
        let bins = t.publish(bins);
        let i = t.index().get();
        bins[i % 4].fetch_add(i as u32, Ordering::Relaxed);
        wide[0].fetch_max(i as u64 * 10, Ordering::AcqRel);
        wide[1].fetch_xor(1 << (i % 64), Ordering::SeqCst);
        // Adds 3 by compare and exchange.
        let mut seen = wide[2].load(Ordering::Acquire);
        while let Err(now) =
            wide[2].compare_exchange_weak(seen, seen + 3, Ordering::AcqRel, Ordering::Relaxed)
        {
            seen = now;
        }
        t.sync_threads();
        let rank = t.thread_rank() as usize;
        if rank < 4 {
            totals[rank].fetch_add(bins[rank].load(Ordering::Relaxed), Ordering::Release);
        }
    }
}
