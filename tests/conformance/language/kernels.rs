//! Kernels that several folders use: one for each kind of parameter.

/// Element-wise kernels over slices.
#[ferrogrid::module]
pub mod elementwise {
    use ferrogrid::device::prelude::*;

    /// y <- a*x + y.
    #[kernel]
    pub fn saxpy(t: Thread<1>, a: f32, x: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y += a * x[i.get()];
        }
    }

    /// The same with lengths of 64 bits.
    #[kernel(wide)]
    pub fn wide_saxpy(t: Thread<1>, a: f32, x: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y += a * x[i.get()];
        }
    }

    /// Adds one to each element.
    #[kernel]
    pub fn increment(t: Thread<1>, mut data: DisjointSlice<u32>) {
        if let Some(value) = data.get_mut(t.index()) {
            *value = value.wrapping_add(1);
        }
    }

    /// Takes one from each element that is not 0.
    #[kernel]
    pub fn count_down(t: Thread<1>, mut data: DisjointSlice<u32>) {
        if let Some(value) = data.get_mut(t.index()) {
            *value = value.saturating_sub(1);
        }
    }

    /// output <- input.
    #[kernel]
    pub fn copy(t: Thread<1>, input: &[u32], mut output: DisjointSlice<u32>) {
        let i = t.index();
        if let Some(value) = output.get_mut(i) {
            *value = input[i.get()];
        }
    }
}

/// Parameters of every kind of scalar, and the indices of threads.
#[ferrogrid::module]
pub mod parameters {
    use ferrogrid::device::prelude::*;

    /// A struct with members of different sizes.
    #[derive(Clone, Copy, Debug, PartialEq, DeviceCopy)]
    #[repr(C)]
    pub struct Mixed {
        /// One byte, then padding.
        pub small: u8,
        /// Eight bytes.
        pub large: f64,
        /// An array.
        pub triple: [i16; 3],
        /// A truth value.
        pub flag: bool,
    }

    /// An enum without data.
    #[derive(Clone, Copy, Debug, PartialEq, DeviceCopy)]
    #[repr(u32)]
    pub enum Colour {
        /// 1
        Red = 1,
        /// 7
        Blue = 7,
    }

    /// Writes each scalar as 64 bits, one per element.
    #[kernel]
    #[allow(clippy::too_many_arguments)]
    pub fn scalars(
        t: Thread<1>,
        a: u8,
        b: i8,
        c: u16,
        d: i16,
        e: u32,
        f: i32,
        g: u64,
        h: i64,
        i: f32,
        j: f64,
        k: bool,
        l: char,
        m: usize,
        n: u128,
        mut output: DisjointSlice<u64>,
    ) {
        let all = [
            a as u64,
            b as u64,
            c as u64,
            d as u64,
            e as u64,
            f as u64,
            g,
            h as u64,
            i.to_bits() as u64,
            j.to_bits(),
            k as u64,
            l as u64,
            m as u64,
            n as u64,
            (n >> 64) as u64,
        ];
        let index = t.index();
        if let Some(out) = output.get_mut(index) {
            *out = all[index.get()];
        }
    }

    /// Changes each member of a struct, given by value and as elements.
    #[kernel]
    pub fn structs(t: Thread<1>, by_value: Mixed, input: &[Mixed], mut output: DisjointSlice<Mixed>) {
        let i = t.index();
        if let Some(out) = output.get_mut(i) {
            let element = input[i.get()];
            *out = Mixed {
                small: element.small ^ by_value.small,
                large: element.large + by_value.large,
                triple: core::array::from_fn(|k| element.triple[k].wrapping_sub(by_value.triple[2 - k])),
                flag: element.flag != by_value.flag,
            };
        }
    }

    /// The number of a colour.
    #[kernel]
    pub fn enums(t: Thread<1>, colour: Colour, mut output: DisjointSlice<u32>) {
        if let Some(out) = output.get_mut(t.index()) {
            *out = match colour {
                Colour::Red => 100,
                Colour::Blue => 700,
            } + colour as u32;
        }
    }

    /// A struct without names for its members, and generic.
    #[derive(Clone, Copy, Debug, PartialEq, DeviceCopy)]
    #[repr(C)]
    pub struct Span<T, const N: usize>(pub T, pub [T; N]);

    /// A type without data.
    #[derive(Clone, Copy, Debug, PartialEq, DeviceCopy)]
    #[repr(C)]
    pub struct Marker;

    /// A name for a number.
    #[derive(Clone, Copy, Debug, PartialEq, DeviceCopy)]
    #[repr(transparent)]
    pub struct Metres(pub f32);

    /// Structs in structs, arrays of them, and an enum with data between them.
    #[derive(Clone, Copy, Debug, PartialEq, DeviceCopy)]
    #[repr(C)]
    pub struct Route {
        /// No bytes.
        pub marker: Marker,
        /// An array of structs.
        pub legs: [Span<u8, 2>; 3],
        /// Behind an odd number of bytes.
        pub length: Metres,
        /// A struct with a struct in it.
        pub ends: Span<Metres, 1>,
        /// A tag and data.
        pub last: Stop,
    }

    /// Variants with data, without, and with names.
    #[derive(Clone, Copy, Debug, PartialEq, DeviceCopy)]
    #[repr(C, u16)]
    pub enum Stop {
        /// Without.
        None,
        /// A struct.
        At(Span<u32, 1>),
        /// With names.
        Between {
            /// With fields of another size.
            from: u8,
            /// With fields of a third size.
            to: f64,
        },
    }

    /// Turns each route round.
    #[kernel]
    pub fn routes(
        t: Thread<1>,
        by: Span<u8, 2>,
        _marker: Marker,
        input: &[Route],
        mut output: DisjointSlice<Route>,
    ) {
        let i = t.index();
        if let Some(out) = output.get_mut(i) {
            *out = turned(by, input[i.get()]);
        }
    }

    /// The same route backwards, its legs moved.
    pub fn turned(by: Span<u8, 2>, route: Route) -> Route {
        let mut legs = route.legs.map(|Span(a, [b, c])| Span(a ^ by.0, [c ^ by.1[0], b ^ by.1[1]]));
        legs.reverse();
        let Span(from, [to]) = route.ends;
        let last = match route.last {
            Stop::None => Stop::At(Span(7, [u32::from(legs[0].0)])),
            Stop::At(Span(a, [b])) => Stop::Between { from: a as u8, to: f64::from(b) },
            Stop::Between { .. } => Stop::None,
        };
        Route { legs, length: Metres(-route.length.0), ends: Span(to, [from]), last, ..route }
    }

    /// The members of a tuple, and of one within it, as 64 bits each.
    #[kernel(T = [u8, f64])]
    pub fn tuples<T: DeviceCopy + Into<f64>>(
        t: Thread<1>,
        pair: (f32, u32),
        mut nested: (i8, (T, Mixed, ()), [u16; 3], (bool,)),
        mut output: DisjointSlice<[f64; 8]>,
    ) {
        if let Some(out) = output.get_mut(t.index()) {
            let (_, _, [first, ..], (flag,)) = nested;
            nested.0 -= 1;
            let (generic, mixed, ()) = nested.1;
            *out = [
                f64::from(pair.0),
                f64::from(pair.1),
                f64::from(nested.0),
                generic.into(),
                mixed.large,
                f64::from(mixed.triple[2]),
                f64::from(first) + f64::from(nested.2[2]),
                f64::from(u8::from(flag)),
            ];
        }
    }

    /// Barriers that depend on members of tuples.
    #[kernel(block = 32)]
    pub fn tuple_of_rounds(
        t: Thread<1>,
        rounds: (u32, (bool, u16)),
        mut tile: Shared<[u32; 32]>,
        mut output: DisjointSlice<u32>,
    ) {
        let (count, (_, skipped)) = rounds;
        let rank = t.thread_rank() as usize;
        tile.fill_with(&t, |_| rank as u32);
        for round in 0..count {
            if rounds.1.0 && round == skipped as u32 {
                continue;
            }
            let read = t.publish(tile);
            let next = read[(rank + 1) % 32];
            tile = t.reclaim(read);
            tile.fill_with(&t, |_| next);
        }
        let read = t.publish(tile);
        if let Some(out) = output.get_mut(t.index()) {
            *out = read[rank];
        }
    }

    /// The names `stream` and `grid` are the kernel's own.
    #[kernel]
    pub fn taken_names(stream: u32, grid: u32, t: Thread<1>, mut output: DisjointSlice<u32>) {
        if let Some(out) = output.get_mut(t.index()) {
            *out = stream - grid;
        }
    }
}

/// Ranks: a thread's indices in grids of one, two and three dimensions.
#[ferrogrid::module]
pub mod ranks {
    use ferrogrid::device::prelude::*;

    /// Block, thread, block size and grid size of each thread.
    #[kernel]
    pub fn coordinates_1d(t: Thread<1>, mut output: DisjointSlice<[u32; 4]>) {
        let place = [t.block_idx()[0], t.thread_idx()[0], t.block_dim()[0], t.grid_dim()[0]];
        if let Some(out) = output.get_mut(t.index()) {
            *out = place;
        }
    }

    /// Column and row of each thread, and the shape that it sees.
    #[kernel]
    pub fn coordinates_2d(t: Thread<2>, mut output: DisjointSlice<[u32; 4], 2>) {
        let i = t.index();
        let shape = [output.width() as u32, output.height() as u32];
        if let Some(out) = output.get_mut(i) {
            *out = [i.x() as u32, i.y() as u32, shape[0], shape[1]];
        }
    }

    /// Writes 1 + the linear number of each thread of a 3-D grid that covers `shape`.
    ///
    /// # Safety
    /// `output` is valid for as many elements as `shape` has places.
    #[kernel]
    pub unsafe fn coordinates_3d(t: Thread<3>, shape: [u32; 3], output: *mut u64) {
        let i = t.index();
        let [width, height, depth] = shape.map(|extent| extent as usize);
        if i.x() < width && i.y() < height && i.z() < depth {
            let place = (i.z() * height + i.y()) * width + i.x();
            // SAFETY: inside the shape, which is what the caller vouched for.
            unsafe { *output.add(place) = 1 + place as u64 };
        }
    }

    /// output[i] = input[n - 1 - i], through pointers.
    ///
    /// # Safety
    /// Both pointers are valid for `n` elements and do not overlap.
    #[kernel]
    pub unsafe fn reverse(t: Thread<1>, n: u32, input: *const u16, output: *mut u16) {
        let i = t.index().get();
        if i < n as usize {
            // SAFETY: both places are below `n`.
            unsafe { *output.add(i) = *input.add(n as usize - 1 - i) };
        }
    }
}

/// Ordinary Rust in and around kernels.
#[ferrogrid::module]
pub mod language {
    use ferrogrid::device::prelude::*;

    /// A constant of the module.
    pub const OFFSET: u32 = 1000;

    /// A trait for static dispatch.
    pub trait Operation {
        /// The operation.
        fn apply(&self, value: u32) -> u32;
    }

    /// Multiplies.
    pub struct Times(pub u32);

    impl Operation for Times {
        fn apply(&self, value: u32) -> u32 {
            value.wrapping_mul(self.0)
        }
    }

    fn twice(operation: &impl Operation, value: u32) -> u32 {
        operation.apply(operation.apply(value))
    }

    fn first_divisor(value: u32) -> Option<u32> {
        (2..value).find(|divisor| value.is_multiple_of(*divisor))
    }

    /// Traits, closures, iterators, `Option` and constants.
    #[kernel]
    pub fn ordinary_rust(t: Thread<1>, input: &[u32], mut output: DisjointSlice<u32>) {
        let i = t.index();
        let Some(out) = output.get_mut(i) else { return };
        let divisor = first_divisor(input[i.get()]).unwrap_or(0);
        let sum: u32 = input
            .iter()
            .zip(1..)
            .map(|(value, weight)| value.wrapping_mul(weight))
            .fold(0, u32::wrapping_add);
        *out = twice(&Times(3), divisor).wrapping_add(sum).wrapping_add(OFFSET);
    }

    /// Calls another kernel of this module as a function.
    #[kernel]
    pub fn calls_a_kernel(t: Thread<1>, input: &[u32], output: DisjointSlice<u32>) {
        ordinary_rust(t, input, output)
    }

    /// Calls a function of another annotated module.
    #[kernel]
    pub fn calls_another_module(t: Thread<1>, mut output: DisjointSlice<u32>) {
        let i = t.index();
        if let Some(out) = output.get_mut(i) {
            *out = super::nested::deeper::square(i.get() as u32);
        }
    }
}

/// Kernels with type and const parameters, compiled for the listed instances.
#[ferrogrid::module]
pub mod generic {
    use core::ops::{Add, Mul};

    use ferrogrid::device::prelude::*;

    /// A number that starts at zero.
    pub trait Number: DeviceCopy + Add<Output = Self> + Mul<Output = Self> {
        /// Nothing.
        const ZERO: Self;
    }

    impl Number for f32 {
        const ZERO: f32 = 0.0;
    }

    impl Number for f64 {
        const ZERO: f64 = 0.0;
    }

    impl Number for u32 {
        const ZERO: u32 = 0;
    }

    /// The value of one polynomial at each element of `x`, by Horner's rule.
    #[kernel(T = [f32, f64, u32], N = [1, 4])]
    pub fn polynomial<T, const N: usize>(t: Thread<1>, coefficients: [T; N], x: &[T], mut y: DisjointSlice<T>)
    where
        T: Number,
    {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            let x = x[i.get()];
            *y = coefficients.iter().rev().fold(T::ZERO, |sum, &coefficient| sum * x + coefficient);
        }
    }

    /// Calls a generic kernel as a function.
    #[kernel(max_threads = 128)]
    pub fn square_plus_one(t: Thread<1>, x: &[u32], y: DisjointSlice<u32>) {
        polynomial(t, [1, 0, 1, 0], x, y)
    }
}

/// Promises about launches.
#[ferrogrid::module]
pub mod bounds {
    use ferrogrid::device::prelude::*;

    /// The block's shape, as each thread sees it; only ever 16 x 4.
    #[kernel(block = [16, 4], min_blocks = 2)]
    pub fn fixed(t: Thread<2>, mut output: DisjointSlice<[u32; 2], 2>) {
        let shape = t.block_dim();
        if let Some(out) = output.get_mut(t.index()) {
            *out = shape;
        }
    }

    /// The number of threads in a block; at most 96.
    #[kernel(max_threads = 96)]
    pub fn limited(t: Thread<1>, mut output: DisjointSlice<u32>) {
        let threads = t.block_dim()[0];
        if let Some(out) = output.get_mut(t.index()) {
            *out = threads;
        }
    }
}

/// Not annotated itself; holds an annotated module.
pub mod nested {
    /// Functions for kernels of other modules.
    #[ferrogrid::module]
    pub mod deeper {
        /// value * value.
        pub fn square(value: u32) -> u32 {
            value.wrapping_mul(value)
        }
    }
}
