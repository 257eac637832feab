//! Facts about merge sorts: items stay in registers and in shared memory, with as few barriers as documented.

use ferrogrid::__private::Kernel;

use super::{code, count};

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[derive(Clone, Copy, DeviceCopy)]
    #[repr(C)]
    pub struct Entry {
        key: f32,
        place: u32,
    }

    #[kernel(block = 256)]
    pub fn entries(
        t: Thread<1>,
        valid: u32,
        x: &[Entry],
        mut y: DisjointSlice<f32>,
        mut scratch: Shared<MergeSortScratch<Entry, 256, 8>>,
    ) {
        let first = t.index().get();
        let nothing = Entry { key: 0.0, place: 0 };
        let entries = core::array::from_fn(|k| x.get(first + 256 * k).copied().unwrap_or(nothing));
        let entries = t.block_merge_sort_valid(&mut scratch, entries, valid, |a, b| a.key < b.key);
        if let Some(y) = y.get_mut(t.index()) {
            *y = entries.iter().fold(0.0, |sum, it| 2.0 * sum + it.key + it.place as f32);
        }
    }

    #[kernel(block = 128)]
    pub fn pairs(
        t: Thread<1>,
        x: &[u64],
        mut y: DisjointSlice<u64>,
        mut scratch: Shared<MergeSortScratch<u64, 128, 8, u32>>,
    ) {
        let first = t.index().get();
        let keys = core::array::from_fn(|k| x.get(first + 128 * k).copied().unwrap_or(0));
        let places = core::array::from_fn(|k| (first + 128 * k) as u32);
        let (keys, places) = t.block_merge_sort_pairs(&mut scratch, keys, places, |a, b| a < b);
        if let Some(y) = y.get_mut(t.index()) {
            *y = keys.iter().zip(places).fold(0, |sum, (key, place)| 2 * sum + key + u64::from(place));
        }
    }
}

fn both() -> [(&'static Kernel, usize); 2] {
    [(kernels::entries::kernel(), 2), (kernels::pairs::kernel(), 4)]
}

#[test]
fn merged_items_need_no_local_memory() {
    for (kernel, _) in both() {
        for (architecture, lines) in code(kernel) {
            let local = lines.iter().filter(|line| line.contains(".local")).count();
            assert_eq!(local, 0, "{architecture}, {}: {lines:#?}", kernel.name());
        }
    }
}

#[test]
fn a_merge_has_two_barriers_and_two_for_values() {
    for (kernel, expected) in both() {
        for (architecture, lines) in code(kernel) {
            assert_eq!(count(&lines, "bar.sync"), expected, "{architecture}, {}: {lines:#?}", kernel.name());
        }
    }
}

#[test]
fn merged_items_change_places_in_shared_memory() {
    for (kernel, _) in both() {
        for (architecture, lines) in code(kernel) {
            for opcode in ["ld.", "st."] {
                let named =
                    ["param", "global", "shared"].map(|space| count(&lines, &format!("{opcode}{space}")));
                let generic = count(&lines, opcode) - named.iter().sum::<usize>();
                assert_eq!(generic, 0, "{architecture}, {}: {lines:#?}", kernel.name());
            }
        }
    }
}
