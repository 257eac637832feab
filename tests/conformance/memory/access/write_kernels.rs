//! Kernels that write at computed indices: scatters, micro-tiles, double buffers, claimed elements.

#[ferrogrid::module]
pub mod writing {
    use ferrogrid::device::prelude::*;

    /// Twelve bytes, which no atomic operation writes at once.
    #[derive(Clone, Copy, DeviceCopy, Debug, PartialEq)]
    #[repr(C)]
    pub struct Triple(pub u32, pub f32, pub i32);

    /// y[places[i]] <- x[i].
    #[kernel(T = [u8, Triple, f64])]
    pub fn scatter<T: DeviceCopy>(t: Thread<1>, x: &[T], places: &[u64], y: ScatterSlice<T>) {
        let i = t.index().get();
        if let Some(&x) = x.get(i) {
            y.set(places[i] as usize, x);
        }
    }

    /// The same where lengths have 64 bits.
    #[kernel(wide)]
    pub fn scatter_wide(
        t: Thread<1>,
        x: &[u32],
        places: &[u64],
        y: ScatterSlice<u32>,
        count: &[DeviceAtomic<u64>],
    ) {
        let i = t.index().get();
        if let Some(&x) = x.get(i) {
            y.set(places[i] as usize, x);
            count[0].fetch_add(y.len() as u64 + u64::from(y.is_empty()), atomic::Ordering::Relaxed);
        }
    }

    /// Many threads claim each element; those that get one add to it, and count.
    #[kernel]
    pub fn compete(t: Thread<1>, wanted: usize, y: ScatterSlice<u32>, got: &[DeviceAtomic<u32>]) {
        let i = t.index().get();
        for place in [i % wanted, (i / 3) % wanted, y.len(), usize::MAX] {
            if let Some(element) = y.claim(place) {
                *element += 1;
                got[0].fetch_add(1, atomic::Ordering::Relaxed);
            }
        }
    }

    /// The sum over each tile's threads, and their number: `RUN` results for each, of which the first two count.
    #[kernel(RUN = [1, 2, 40], N = [32, 4])]
    pub fn of_tiles<const RUN: usize, const N: usize>(
        t: Thread<1>,
        x: &[u32],
        mut y: DisjointWarps<[u32; 2], RUN, N>,
    ) {
        let tile = t.warp().tile::<N>();
        let mine = x.get(t.index().get()).copied().unwrap_or(0);
        let sum = tile.reduce(mine, |a, b| a + b);
        let count = tile.ballot(true).count_ones();
        let first = y.first(&t);
        y.fill_with(&t, |place| [sum + (place - first) as u32, count]);
    }

    /// Two outputs with separate claims.
    #[kernel]
    pub fn scatter_twice(t: Thread<1>, a: ScatterSlice<u32>, b: ScatterSlice<u16>) {
        let i = t.index().get();
        if i < a.len() {
            a.set(a.len() - 1 - i, i as u32);
            b.set(i ^ 1, i as u16);
        }
    }

    /// Numbers the elements of a plane, by threads that own `MW` x `MH` each.
    #[kernel(MW = [1, 2, 4], MH = [1, 4])]
    pub fn micro<const MW: usize, const MH: usize>(
        t: Thread<2>,
        how: u32,
        mut y: DisjointTiles<u32, 16, 8, MW, MH>,
        mut first: DisjointSlice<[u32; 2], 2>,
    ) {
        let width = y.width();
        if let (Some(first), Some(place)) = (first.get_mut(t.index()), y.micro_tile(&t)) {
            *first = place.map(|it| it as u32);
        }
        match how {
            0 => y.fill_with(&t, |[row, column]| (row * width + column) as u32),
            1 => y.iter_mut(&t).for_each(|([row, column], y)| *y += (row * width + column) as u32),
            _ => y.fill_micro_tiles(&t, |[row, column]| {
                core::array::from_fn(|i| core::array::from_fn(|j| ((row + i) * width + column + j) as u32))
            }),
        }
    }

    /// Each round every element becomes the sum of the two beside it: `rounds` is any number, and a round has one barrier.
    #[kernel(block = 64)]
    pub fn rounds(
        t: Thread<1>,
        rounds: u32,
        mut x: DisjointSlice<u32>,
        stages: Shared<Stages<[u32; 64], 2>>,
    ) {
        let mut stages = stages.into_stages();
        let (rank, mine) = (t.thread_rank() as usize, x.get_mut(t.index()).map_or(0, |x| *x));
        stages.next_mut().fill_with(&t, |_| mine);
        t.advance(&mut stages);
        for _ in 0..rounds {
            let (current, next) = stages.both();
            let sum = current[(rank + 63) % 64].wrapping_add(current[(rank + 1) % 64]);
            next.fill_with(&t, |_| sum);
            t.advance(&mut stages);
        }
        if let Some(x) = x.get_mut(t.index()) {
            *x = stages.current()[rank];
        }
    }

    /// A bitonic sort of 128 elements in place, by 64 threads: each pair is one thread's, another in each step.
    #[kernel(block = 64)]
    pub fn bitonic(
        t: Thread<1>,
        mut rows: DisjointRows<u32>,
        mut tile: Shared<[u32; 128]>,
        mut scratch: Shared<ClaimScratch<4>>,
    ) {
        let mut own = rows.iter_mut(&t);
        tile.fill_with(&t, |_| own.next().map_or(0, |(_, x)| *x));
        let pair = t.thread_rank() as usize;
        for size in 1..=7 {
            for step in (0..size).rev() {
                let distance = 1 << step;
                let first = pair / distance * 2 * distance + pair % distance;
                let ascending = first >> size & 1 == 0;
                t.with_claims(&mut tile, &mut scratch, |claims| {
                    if let (Some(a), Some(b)) = (claims.claim(first), claims.claim(first + distance))
                        && (*a > *b) == ascending
                    {
                        (*a, *b) = (*b, *a);
                    }
                });
            }
        }
        let tile = t.publish(tile);
        rows.fill_with(&t, |column| tile[column]);
    }

    /// All threads claim all elements of a padded plane, and one beyond: each is given out once.
    #[kernel(block = 32)]
    pub fn all_claim(
        t: Thread<1>,
        mut y: DisjointRows<u32>,
        got: &[DeviceAtomic<u32>],
        mut plane: Shared<Padded<u32, 5, 7>>,
        mut scratch: Shared<ClaimScratch<2>>,
    ) {
        plane.fill_with(&t, |_| 100);
        for _ in 0..3 {
            let mine = t.with_claims(&mut plane, &mut scratch, |claims| {
                let mut mine = 0;
                for k in 0..37 {
                    if let Some(element) = claims.claim((k + t.thread_rank() as usize) % 37) {
                        *element += 1;
                        mine += 1;
                    }
                }
                mine
            });
            got[0].fetch_add(mine, atomic::Ordering::Relaxed);
        }
        let plane = t.publish(plane);
        y.fill_with(&t, |column| plane[column / 5][column % 5]);
    }
}
