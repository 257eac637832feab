//! Facts about writes at computed indices: values stay in registers, and double buffers are addressed as
//! shared memory.

use crate::{code, count};

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel(block = [64, 1])]
    pub fn blocked(t: Thread<2>, a: Plane<f32>, b: Plane<f32>, mut c: DisjointTiles<f32, 32, 32, 4, 4>) {
        let Some([row, column]) = c.micro_tile(&t) else { return };
        let mut sums = [[0.0; 4]; 4];
        for k in 0..a.width() {
            let of_a: [f32; 4] = core::array::from_fn(|i| a.get(row + i, k).copied().unwrap_or(0.0));
            let of_b: [f32; 4] = core::array::from_fn(|j| b.get(k, column + j).copied().unwrap_or(0.0));
            for i in 0..4 {
                for j in 0..4 {
                    sums[i][j] = of_a[i].mul_add(of_b[j], sums[i][j]);
                }
            }
        }
        c.fill_micro_tiles(&t, |_| sums);
    }

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

    #[kernel]
    pub fn scatter(t: Thread<1>, x: &[f64], places: &[u32], y: ScatterSlice<f64>) {
        let i = t.index().get();
        if let (Some(&x), Some(&place)) = (x.get(i), places.get(i))
            && let Some(y) = y.claim(place as usize)
        {
            *y = x;
        }
    }
}

#[test]
fn a_micro_tile_is_in_registers() {
    for (architecture, lines) in code(kernels::blocked::kernel()) {
        assert_eq!(count(&lines, ".local"), 0, "{architecture}: {lines:#?}");
        // A round of the loop over `k`, or some of them.
        assert_eq!(count(&lines, "fma.rn.f32") % 16, 0, "{architecture}: {lines:#?}");
        assert_eq!(count(&lines, "st.global"), 16, "{architecture}: {lines:#?}");
    }
}

#[test]
fn a_turn_of_stages_has_one_barrier_in_shared_memory() {
    for (architecture, lines) in code(kernels::rounds::kernel()) {
        let found = ["bar.sync", "st.shared", "ld.shared"].map(|opcode| count(&lines, opcode));
        assert_eq!(found, [2, 2, 3], "{architecture}: {lines:#?}");
        let all = ["st.", "st.global", "st.shared"].map(|opcode| count(&lines, opcode));
        assert_eq!(all[0], all[1] + all[2], "{architecture}: {lines:#?}");
    }
}

#[test]
fn a_scatter_is_an_atomic_operation_and_a_store() {
    for (architecture, lines) in code(kernels::scatter::kernel()) {
        assert_eq!(count(&lines, "atom.relaxed.gpu.global.or"), 1, "{architecture}: {lines:#?}");
        assert_eq!(
            count(&lines, "st.global.b64") + count(&lines, "st.global.f64"),
            1,
            "{architecture}: {lines:#?}"
        );
    }
}
