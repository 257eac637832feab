//! Kernels with a program's own types, derived and nested, and kernels whose block shape is a constant.

/// Types that derive `DeviceCopy` alone, and tuples of them.
#[ferrogrid::module]
pub mod own {
    use core::num::NonZero;
    use core::sync::atomic::AtomicU32;

    use ferrogrid::device::prelude::*;

    #[derive(Debug, Clone, Copy, PartialEq, DeviceCopy)]
    #[repr(C)]
    pub struct Complex<T> {
        pub re: T,
        pub im: T,
    }

    /// With padding after the tag, and inside of the pair.
    #[derive(Debug, Clone, Copy, PartialEq, DeviceCopy)]
    #[repr(C)]
    pub struct Tagged {
        pub value: f32,
        pub tag: u8,
        pub pair: (u8, u16),
    }

    #[derive(Debug, Clone, Copy, PartialEq, Eq, DeviceCopy)]
    #[repr(u16)]
    pub enum Phase {
        Waiting,
        Running = 700,
    }

    #[derive(SharedElement)]
    pub struct Bin {
        count: DeviceAtomic<u32>,
        sums: [DeviceAtomic<f32>; 2],
    }

    /// Each element of a block of 64 gets that of the thread opposite, through shared memory.
    #[kernel(block = 64)]
    pub fn opposite(
        t: Thread<1>,
        mut x: DisjointSlice<Tagged>,
        mut y: DisjointSlice<(Complex<f64>, u8)>,
        mut tile: Shared<[Tagged; 64]>,
        mut pairs: Shared<[(Complex<f64>, u8); 64]>,
    ) {
        let i = t.index();
        let own = (t.thread_rank() ^ 63) as usize;
        if let (Some(x), Some(place)) = (x.get_mut(i), tile.get_mut(&t)) {
            *place = *x;
        }
        if let (Some(y), Some(place)) = (y.get_mut(i), pairs.get_mut(&t)) {
            *place = *y;
        }
        let (tile, pairs) = t.publish((tile, pairs));
        if let (Some(x), Some(y)) = (x.get_mut(i), y.get_mut(i)) {
            (*x, *y) = (tile[own], pairs[own]);
        }
    }

    /// The block's product of complex numbers, and the place of its greatest real part.
    #[kernel(block = 96)]
    pub fn product(
        t: Thread<1>,
        x: &[Complex<f32>],
        mut y: DisjointRows<(Complex<f32>, u32)>,
        mut numbers: Shared<Scratch<Complex<f32>>>,
        mut places: Shared<Scratch<(f32, u32)>>,
    ) {
        let i = t.index().get();
        let mine = x.get(i).copied().unwrap_or(Complex { re: 1.0, im: 0.0 });
        let product = t.block_reduce(&mut numbers, mine, |a, b| Complex {
            re: a.re * b.re - a.im * b.im,
            im: a.re * b.im + a.im * b.re,
        });
        let greatest = t.block_reduce(&mut places, (mine.re, i as u32), |a, b| if b.0 > a.0 { b } else { a });
        y.fill_with(&t, |_| (product, greatest.1));
    }

    /// The value of the neighbour in the warp, for types of all shapes; `None` from threads with an odd number.
    #[kernel(block = 32)]
    pub fn neighbours(
        t: Thread<1>,
        x: &[Tagged],
        mut y: DisjointSlice<Tagged>,
        mut z: DisjointSlice<(u32, [u8; 3])>,
    ) {
        let i = t.index();
        let (warp, rank) = (t.warp(), t.thread_rank());
        let tagged = warp.shuffle_xor(x[i.get()], 1);
        let even = (rank % 2 == 0).then_some((rank, [rank as u8, 1, 2]));
        let even = warp.shuffle_xor(even, 1);
        let flag = warp.shuffle_xor(rank % 4 == 0, 1);
        if let (Some(y), Some(z)) = (y.get_mut(i), z.get_mut(i)) {
            *y = tagged;
            *z = even.unwrap_or((u32::MAX, [u8::from(flag); 3]));
        }
    }

    /// Runs waiting tickets, and returns the positions of the last ones of each block.
    #[kernel]
    pub fn phases(t: Thread<1>, tickets: &[Option<NonZero<u32>>], mut phases: DisjointSlice<Phase>) {
        let i = t.index();
        if let Some(phase) = phases.get_mut(i)
            && tickets[i.get()].is_some_and(|ticket| ticket.get() > 1)
        {
            *phase = Phase::Running;
        }
    }

    /// Count and sums of the numbers of a block by their remainder, in a struct of atomics.
    #[kernel(block = 64)]
    pub fn bins(t: Thread<1>, x: &[u32], mut y: DisjointRows<[f32; 3]>, mut bins: Shared<[Bin; 4]>) {
        let zero = || DeviceAtomic::new(0.0);
        bins.fill_with(&t, |_| Bin { count: DeviceAtomic::new(0), sums: [zero(), zero()] });
        let bins = t.publish(bins);
        if let Some(&x) = x.get(t.index().get()) {
            let bin = &bins[x as usize % 4];
            bin.count.fetch_add(1, Ordering::Relaxed);
            bin.sums[0].fetch_add(x as f32, Ordering::Relaxed);
            bin.sums[1].fetch_add(2.0 * x as f32, Ordering::Relaxed);
        }
        t.sync_threads();
        y.fill_with(&t, |bin| {
            let [once, twice] = bins[bin].sums.each_ref().map(|sum| sum.load(Ordering::Relaxed));
            [bins[bin].count.load(Ordering::Relaxed) as f32, once, twice]
        });
    }

    /// A kernel's result for an element.
    #[derive(Clone, Copy, Debug, PartialEq, DeviceCopy)]
    #[repr(C)]
    pub struct Found {
        pub pair: Option<(u8, f64)>,
        pub complex: Option<Complex<f32>>,
        pub above: Option<bool>,
    }

    /// The result for each element, above the limit if there is one.
    #[kernel]
    pub fn find(t: Thread<1>, limit: Option<f32>, x: &[Option<f32>], mut y: DisjointSlice<Found>) {
        let i = t.index();
        let Some(y) = y.get_mut(i) else { return };
        let found = x[i.get()].filter(|&x| limit.is_none_or(|limit| x > limit));
        *y = Found {
            pair: found.map(|x| (i.get() as u8, x as f64)),
            complex: found.map(|im| Complex { re: 0.0, im }).or(y.complex),
            above: x[i.get()].zip(limit).map(|(x, limit)| x > limit),
        };
    }

    /// The statistics of the numbers with one remainder.
    #[derive(Clone, Copy, Debug, PartialEq, DeviceCopy)]
    #[repr(C)]
    pub struct Tally {
        pub weight: u16,
        pub count: u32,
        pub sums: [f32; 2],
        pub greatest: i64,
    }

    /// A tally that threads keep.
    #[derive(AtomicForm)]
    #[atomic_form(Tally)]
    #[repr(C)]
    pub struct OpenTally {
        weight: u16,
        count: AtomicU32,
        sums: [DeviceAtomic<f32>; 2],
        greatest: DeviceAtomic<i64>,
    }

    /// Tallies numbers by their remainder.
    #[kernel]
    pub fn tally(t: Thread<1>, x: &[i64], tallies: &[OpenTally]) {
        let Some(&x) = x.get(t.index().get()) else { return };
        let tally = &tallies[x.rem_euclid(tallies.len() as i64) as usize];
        tally.count.fetch_add(1, Ordering::Relaxed);
        tally.sums[0].fetch_add(x as f32, Ordering::Relaxed);
        tally.sums[1].fetch_add(x as f32 * tally.weight as f32, Ordering::Relaxed);
        tally.greatest.fetch_max(x, Ordering::Relaxed);
    }

    /// A cluster of two blocks, each of which reads the other's values.
    #[kernel(block = 32, cluster = 2)]
    pub fn across(
        t: Thread<1>,
        mut x: DisjointSlice<(Complex<f32>, u8)>,
        mut own: Shared<[(Complex<f32>, u8); 32]>,
    ) {
        let i = t.index();
        if let (Some(x), Some(place)) = (x.get_mut(i), own.get_mut(&t)) {
            *place = *x;
        }
        let all = t.publish_cluster(own);
        let other = all.block(&t, t.cluster_rank() ^ 1)[t.thread_rank() as usize];
        if let Some(x) = x.get_mut(i) {
            *x = other;
        }
        t.sync_cluster();
    }
}

/// The constants of block shapes.
#[ferrogrid::module]
pub mod tile {
    pub const HEIGHT: u32 = 4;
}

#[ferrogrid::module]
pub mod shaped {
    use ferrogrid::device::prelude::*;

    use super::tile;

    const TILE: usize = 32;

    /// Rows become columns, a tile of 32 x 32 to a block of 32 x 4.
    #[kernel(block = [TILE, tile::HEIGHT])]
    pub fn transpose(
        t: Thread<2>,
        x: Plane<u32>,
        mut y: DisjointTiles<u32, TILE, TILE>,
        mut all: Shared<Padded<u32, TILE, TILE>>,
    ) {
        let [x0, y0] = t.block_idx().map(|block| block as usize * TILE);
        all.fill_with(&t, |[row, column]| x.get(x0 + row, y0 + column).copied().unwrap_or(0));
        let all = t.publish(all);
        y.fill_with(&t, |[row, column]| all[column - x0][row - y0]);
    }

    /// The number of threads in a block.
    #[kernel(block = 2 * TILE, min_blocks = 1, T = [u32, f64])]
    pub fn threads<T: From<u16> + DeviceCopy>(t: Thread<1>, mut y: DisjointSlice<T>) {
        if let Some(y) = y.get_mut(t.index()) {
            *y = T::from(t.block_dim()[0] as u16);
        }
    }

    /// The sum of each row.
    #[kernel(block = TILE)]
    pub fn sums(t: Thread<1>, x: Plane<u32>, mut y: DisjointRows<u32>, mut scratch: Shared<Scratch<u32>>) {
        let row = &x[t.block_idx()[0] as usize];
        let mine = t.block_stride(row.len()).map(|i| row[i]).sum();
        let sum = t.block_reduce(&mut scratch, mine, |a, b| a + b);
        y.fill_with(&t, |_| sum);
    }

    /// Each element of a volume and its six neighbours, as far as there are any.
    #[kernel]
    pub fn stencil(t: Thread<3>, x: Volume<u32>, mut y: DisjointSlice<u32, 3>) {
        let i = t.index();
        let Some(y) = y.get_mut(i) else { return };
        let [column, row, layer] = i.position();
        let get = |layer, row, column| x.get(layer, row, column).copied().unwrap_or(0);
        let within = x.layer(layer).map_or(0, |plane| plane[row].iter().sum());
        *y = x[[layer, row, column]]
            + get(layer + 1, row, column)
            + get(layer.wrapping_sub(1), row, column)
            + within;
    }

    /// x <- factor * x, N times.
    #[kernel(T = [f32, u32], N = [1, 3])]
    pub fn scale<T: DeviceCopy + core::ops::Mul<Output = T>, const N: usize>(
        t: Thread<1>,
        factor: T,
        mut x: DisjointSlice<T>,
    ) {
        if let Some(x) = x.get_mut(t.index()) {
            for _ in 0..N {
                *x = *x * factor;
            }
        }
    }

    /// Adds N to each element.
    #[kernel(N = [1, 10])]
    pub fn add<const N: u32>(t: Thread<1>, mut x: DisjointSlice<u32>) {
        if let Some(x) = x.get_mut(t.index()) {
            *x += N;
        }
    }
}
