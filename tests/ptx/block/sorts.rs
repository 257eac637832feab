//! Facts about sorts and exchanges: items stay in registers and in shared memory, with as few barriers as
//! documented.

use ferrogrid::__private::Kernel;

use crate::{code, count};

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel(block = 256)]
    pub fn keys(
        t: Thread<1>,
        x: &[Aligned16<[u32; 4]>],
        mut y: DisjointSlice<Aligned16<[u32; 4]>>,
        mut scratch: Shared<SortScratch<u32, 256, 4>>,
    ) {
        let i = t.index();
        let keys = x.get(i.get()).map_or([u32::MAX; 4], |keys| keys.into_inner());
        let keys = t.block_radix_sort(&mut scratch, keys, sort::Ascending);
        if let Some(y) = y.get_mut(i) {
            *y = Aligned16::new(keys);
        }
    }

    #[kernel(block = 128)]
    pub fn pairs(
        t: Thread<1>,
        x: &[u64],
        mut keys: DisjointRows<u64>,
        mut values: DisjointRows<u32>,
        mut scratch: Shared<SortScratch<u64, 128, 8, u32>>,
    ) {
        let first = t.block_idx()[0] as usize * 1024 + t.thread_rank() as usize;
        let own = core::array::from_fn(|k| x.get(first + 128 * k).copied().unwrap_or(0));
        let places = core::array::from_fn(|k| (first + 128 * k) as u32);
        let (own, places) = t.block_radix_sort_pairs(&mut scratch, own, places, sort::Descending);
        keys.fill_with(&t, |_| own.iter().fold(0, |sum, key| sum ^ key));
        values.fill_with(&t, |_| places.iter().fold(0, |sum, place| sum ^ place));
    }

    #[kernel(block = 128)]
    pub fn exchange(
        t: Thread<1>,
        x: &[f32],
        mut y: DisjointSlice<f32>,
        mut scratch: Shared<ExchangeScratch<f32, 128, 8>>,
    ) {
        let first = t.index().get();
        let items = core::array::from_fn(|k| x.get(first + 128 * k).copied().unwrap_or(0.0));
        let items = t.block_striped_to_blocked(&mut scratch, items);
        if let Some(y) = y.get_mut(t.index()) {
            *y = items.iter().fold(0.0, |sum, item| 2.0 * sum + item);
        }
    }

    #[kernel(block = 128)]
    pub fn warps(t: Thread<1>, x: &[f32], mut y: DisjointSlice<f32>) {
        let first = t.index().get();
        let items = core::array::from_fn(|k| x.get(first + 128 * k).copied().unwrap_or(0.0));
        let items: [f32; 8] = t.warp().bitonic_sort(items, |a, b| a < b);
        let items = t.warp().blocked_to_striped(items);
        if let Some(y) = y.get_mut(t.index()) {
            *y = items.iter().fold(0.0, |sum, item| 2.0 * sum + item);
        }
    }
}

fn barriers(lines: &[&str]) -> usize {
    count(lines, "bar.sync") + count(lines, "barrier.sync") + count(lines, "barrier.cta.sync")
}

fn all() -> [&'static Kernel; 4] {
    [kernels::keys::kernel(), kernels::pairs::kernel(), kernels::exchange::kernel(), kernels::warps::kernel()]
}

#[test]
fn items_need_no_local_memory() {
    for kernel in all() {
        for (architecture, lines) in code(kernel) {
            let local = lines.iter().filter(|line| line.contains(".local")).count();
            assert_eq!(local, 0, "{architecture}, {}: {lines:#?}", kernel.name());
        }
    }
}

#[test]
fn items_change_places_in_shared_memory() {
    for kernel in all() {
        for (architecture, lines) in code(kernel) {
            let generic = |opcode: &str| {
                let named =
                    ["param", "global", "shared"].map(|space| count(&lines, &format!("{opcode}{space}")));
                count(&lines, opcode) - named.iter().sum::<usize>()
            };
            assert_eq!(generic("ld."), 0, "{architecture}, {}: {lines:#?}", kernel.name());
            assert_eq!(generic("st."), 0, "{architecture}, {}: {lines:#?}", kernel.name());
        }
    }
}

#[test]
fn a_pass_has_six_barriers_and_two_for_values() {
    for (kernel, expected) in [(kernels::keys::kernel(), 6), (kernels::pairs::kernel(), 8)] {
        for (architecture, lines) in code(kernel) {
            assert_eq!(barriers(&lines), expected, "{architecture}, {}: {lines:#?}", kernel.name());
        }
    }
}

#[test]
fn an_exchange_has_two_barriers() {
    for (architecture, lines) in code(kernels::exchange::kernel()) {
        assert_eq!(barriers(&lines), 2, "{architecture}: {lines:#?}");
        assert_eq!(count(&lines, "st.shared"), 8, "{architecture}: {lines:#?}");
        assert_eq!(count(&lines, "ld.shared"), 8, "{architecture}: {lines:#?}");
    }
}

#[test]
fn warps_sort_without_memory_and_barriers() {
    for (architecture, lines) in code(kernels::warps::kernel()) {
        assert_eq!(barriers(&lines), 0, "{architecture}: {lines:#?}");
        assert_eq!(count(&lines, "st.shared") + count(&lines, "ld.shared"), 0, "{architecture}: {lines:#?}");
        assert!(count(&lines, "shfl.sync.bfly.b32") >= 16, "{architecture}: {lines:#?}");
    }
}
