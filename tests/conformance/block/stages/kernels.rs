//! Kernels whose shared memory has stages.

#[ferrogrid::module]
pub mod staging {
    use ferrogrid::device::half::f16;
    use ferrogrid::device::prelude::*;

    /// y[i] <- the sum of row[(j + i + 1) % 48] over `steps` rows of `x`, of 48 elements, the last of which may be shorter.
    #[kernel(
        block = 32,
        T = [u8, f16, u32, u64, (u32, u32, u32), Aligned16<[u16; 8]>],
        N = [2, 3, 5]
    )]
    pub fn sum_rows<T: Copied, const N: usize>(
        t: Thread<1>,
        steps: usize,
        x: &[T],
        mut y: DisjointSlice<u32>,
        rows: Shared<Stages<[T; 48], N>>,
    ) {
        let (mut rows, mut sum) = (rows.into_stages(), 0);
        for step in 0..steps + N - 1 {
            if step < steps {
                rows.copy_with(&t, |place| x.get(step * 48 + place));
            }
            if step >= N - 1 {
                let row = rows.current();
                sum += row[(t.thread_rank() as usize + step + 2 - N) % 48].number();
            }
            t.advance(&mut rows);
        }
        if let Some(y) = y.get_mut(t.index()) {
            *y = sum;
        }
    }

    /// An element with a number.
    pub trait Copied: DeviceCopy + SharedElement {
        /// A number that tells elements apart.
        fn number(self) -> u32;
    }

    macro_rules! copied {
        ($($t:ty: $x:ident => $number:expr;)*) => {
            $(impl Copied for $t {
                fn number(self) -> u32 {
                    let $x = self;
                    $number
                }
            })*
        };
    }
    copied! {
        u8: x => u32::from(x);
        f16: x => x.to_f32() as u32;
        u32: x => x;
        u64: x => (x >> 32) as u32 ^ x as u32;
        (u32, u32, u32): x => x.0 + 3 * x.1 + 5 * x.2;
        Aligned16<[u16; 8]>: x => x.iter().map(|&x| u32::from(x)).sum();
    }

    /// y[i] <- the number that the neighbour's element has after writes of all kinds in one turn: one by copy and then by hand in the
    /// first, by hand and then from elsewhere in the second.
    #[kernel(block = 64)]
    pub fn write_in_turn(
        t: Thread<1>,
        x: &[u32],
        mut y: DisjointSlice<[u32; 4]>,
        mut tile: Shared<[u32; 64]>,
        stages: Shared<Stages<[u32; 64], 3>>,
    ) {
        let rank = t.thread_rank();
        tile.fill_with(&t, |place| 500 + place as u32);
        let tile = t.publish(tile);
        let own = [1000 + rank];
        let mut stages = stages.into_stages();
        stages.copy_with(&t, |place| x.get(place));
        for (_, element) in stages.next_mut().iter_mut(&t) {
            *element += 10; // waits for the copy
        }
        t.advance(&mut stages);
        stages.copy_with(&t, |place| tile.get(place ^ 2));
        t.advance(&mut stages);
        let neighbour = (rank ^ 1) as usize;
        let first = stages.current()[neighbour];
        stages.copy_with(&t, |place| if place % 4 == 0 { None } else { Some(&own[0]) });
        t.advance(&mut stages);
        let second = stages.current()[neighbour];
        t.advance(&mut stages);
        let third = stages.current()[neighbour];
        stages.copy_with(&t, |_| x.last());
        stages.copy_with(&t, |place| x.get(place + 1));
        t.advance(&mut stages);
        t.advance(&mut stages);
        if let Some(y) = y.get_mut(t.index()) {
            *y = [first, second, third, stages.current()[neighbour]];
        }
    }

    /// y[i] <- the sum of products of `a` and `b`, each in stages of its own, which take turns together.
    #[kernel(block = 32)]
    pub fn multiply_together(
        t: Thread<1>,
        steps: usize,
        a: &[u32],
        b: &[u64],
        mut y: DisjointSlice<u64>,
        of_a: Shared<Stages<[u32; 32], 2>>,
        of_b: Shared<Stages<[u64; 64], 4>>,
    ) {
        let (mut of_a, mut of_b, mut sum) = (of_a.into_stages(), of_b.into_stages(), 0);
        for step in 0..steps + 3 {
            of_b.copy_with(&t, |place| b.get(step * 64 + place));
            if step >= 3 {
                let (rank, a, b) = (t.thread_rank() as usize, of_a.current(), of_b.current());
                sum += u64::from(a[31 - rank]) * b[63 - rank];
            }
            // Read one turn later, three turns later than `b`.
            of_a.copy_with(&t, |place| a.get((step + 1).checked_sub(3)? * 32 + place));
            t.advance((&mut of_a, &mut of_b));
        }
        if let Some(y) = y.get_mut(t.index()) {
            *y = sum;
        }
    }
}
