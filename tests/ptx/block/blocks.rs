//! Facts about shared memory, barriers and warps: shared memory is addressed as such, every barrier occurs
//! once, inner loops have no bounds checks, and warp operations are single instructions.

use crate::{code, count};

#[ferrogrid::module]
mod together {
    use ferrogrid::device::prelude::*;

    #[kernel(block = [16, 16])]
    pub fn matmul(
        t: Thread<2>,
        n: usize,
        a: &[f32],
        b: &[f32],
        mut c: DisjointSlice<f32, 2>,
        mut tile_a: Shared<[[f32; 16]; 16]>,
        mut tile_b: Shared<[[f32; 16]; 16]>,
    ) {
        let [x, y] = t.thread_idx().map(|it| it as usize);
        let [column, row] = t.index().position();
        let mut sum = 0.0_f32;
        for step in 0..n / 16 {
            tile_a.fill_with(&t, |[i, k]| a[(row - y + i) * n + step * 16 + k]);
            tile_b.fill_with(&t, |[k, j]| b[(step * 16 + k) * n + column - x + j]);
            let (a, b) = t.publish((tile_a, tile_b));
            for k in 0..16 {
                sum = a[y][k].mul_add(b[k][x], sum);
            }
            (tile_a, tile_b) = t.reclaim((a, b));
        }
        if let Some(c) = c.get_mut(t.index()) {
            *c = sum;
        }
    }

    #[kernel]
    pub fn dynamic(t: Thread<1>, mut data: DisjointSlice<f32>, mut part: SharedSlice<f32>) {
        part.fill_with(&t, |i| i as f32);
        let part = t.publish(part);
        if let Some(value) = data.get_mut(t.index()) {
            *value = part[part.len() - 1];
        }
    }

    #[kernel]
    pub fn count_bytes(
        t: Thread<1>,
        data: &[u8],
        mut bins: Shared<[DeviceAtomic<u32, atomic::Block>; 256]>,
        counts: &[DeviceAtomic<u32>],
    ) {
        bins.fill_with(&t, |_| DeviceAtomic::new(0));
        let bins = t.publish(bins);
        for i in t.grid_stride(data.len()) {
            bins[data[i.get()] as usize].fetch_add(1, atomic::Ordering::Relaxed);
        }
        t.sync_threads();
        let bin = t.thread_rank() as usize % 256;
        counts[bin].fetch_add(bins[bin].load(atomic::Ordering::Relaxed), atomic::Ordering::Relaxed);
    }

    #[kernel(block = 256)]
    pub fn sums(t: Thread<1>, x: &[f32], sums: &[DeviceAtomic<f32>]) {
        let total = t.warp().reduce(x[t.index().get()], |a, b| a + b);
        if t.warp().elect() {
            sums[0].fetch_add(total, atomic::Ordering::Relaxed);
        }
    }

    #[kernel]
    pub fn decide(t: Thread<1>, x: &[u32], mut y: DisjointSlice<u32>) {
        let odd = x[t.index().get()] % 2 == 1;
        let (count, all, any) = (t.sync_threads_count(odd), t.sync_threads_and(odd), t.sync_threads_or(odd));
        if let Some(y) = y.get_mut(t.index()) {
            *y = count + u32::from(all) + u32::from(any);
        }
    }

    #[kernel]
    pub fn pairs(t: Thread<1>, mut y: DisjointSlice<f64>) {
        let warp = t.warp();
        if let Some(y) = y.get_mut(t.index()) {
            *y = warp.shuffle_down(*y, 1);
        }
    }

    #[kernel]
    pub fn greatest(t: Thread<1>, mut y: DisjointSlice<i32>) {
        if let Some(y) = y.get_mut(t.index()) {
            *y = t.warp().reduce_max(*y);
        }
    }
}

#[test]
fn shared_memory_is_named_in_every_access() {
    for kernel in [together::matmul::kernel(), together::dynamic::kernel(), together::count_bytes::kernel()] {
        for (architecture, lines) in code(kernel) {
            let generic = |line: &&&str| {
                ["ld.", "st.", "atom.", "red."].iter().any(|opcode| {
                    line.starts_with(opcode)
                        && ![".param", ".global", ".shared"].iter().any(|it| line.contains(it))
                })
            };
            let found: Vec<_> = lines.iter().filter(generic).collect();
            assert!(found.is_empty(), "{architecture}, {}: {found:#?}", kernel.name());
            assert!(count(&lines, "st.shared") > 0, "{architecture}, {}", kernel.name());
            assert!(!lines.iter().any(|line| line.contains(".local")), "{architecture}, {}", kernel.name());
        }
    }
}

#[test]
fn a_tile_of_a_product_costs_two_barriers_and_no_bounds_check() {
    for (architecture, lines) in code(together::matmul::kernel()) {
        assert_eq!(
            count(&lines, "bar.sync") + count(&lines, "barrier.sync"),
            2,
            "{architecture}: {lines:#?}"
        );
        assert_eq!(count(&lines, "fma.rn.f32"), 16, "{architecture}: {lines:#?}");
        let first = lines.iter().position(|line| line.contains("fma.rn.f32")).unwrap();
        let last = lines.iter().rposition(|line| line.contains("fma.rn.f32")).unwrap();
        let branches = count(&lines[first..last], "bra") + count(&lines[first..last], "setp");
        assert_eq!(branches, 0, "{architecture}: {lines:#?}");
    }
}

#[test]
fn counting_in_shared_memory_is_one_instruction() {
    for (architecture, lines) in code(together::count_bytes::kernel()) {
        let shared = lines.iter().filter(|line| line.contains("atom.relaxed.cta.shared.add.u32")).count();
        assert_eq!(shared, 1, "{architecture}: {lines:#?}");
    }
}

#[test]
fn a_warp_of_a_full_block_sums_in_five_shuffles() {
    for (architecture, lines) in code(together::sums::kernel()) {
        assert_eq!(count(&lines, "shfl.sync.bfly.b32"), 5, "{architecture}: {lines:#?}");
        assert_eq!(count(&lines, "shfl.sync"), 5, "{architecture}: {lines:#?}");
    }
}

#[test]
fn eight_bytes_take_two_shuffles() {
    for (architecture, lines) in code(together::pairs::kernel()) {
        assert_eq!(count(&lines, "shfl.sync.down.b32"), 2, "{architecture}: {lines:#?}");
    }
}

#[test]
fn barriers_that_decide_are_one_instruction_each() {
    for (architecture, lines) in code(together::decide::kernel()) {
        for kind in ["popc", "and", "or"] {
            let found = lines.iter().filter(|line| line.contains(&format!(".red.{kind}."))).count();
            assert_eq!(found, 1, "{architecture}, {kind}: {lines:#?}");
        }
    }
}

#[test]
fn architectures_that_reduce_integers_do_it_in_one_instruction() {
    for (architecture, lines) in code(together::greatest::kernel()) {
        let number: u32 =
            architecture.trim_start_matches("sm_").trim_end_matches(char::is_alphabetic).parse().unwrap();
        let redux = count(&lines, "redux.sync.max.s32");
        assert_eq!(redux, usize::from(number >= 80), "{architecture}: {lines:#?}");
    }
}
