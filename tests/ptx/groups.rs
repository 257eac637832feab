//! Facts about groups formed at run time: their operations are single instructions with the group's mask.

use super::{code, count};

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn append(t: Thread<1>, x: &[u32], kept: &[DeviceAtomic<u32>], counter: &[DeviceAtomic<u32>]) {
        let Some(&x) = x.get(t.index().get()) else { return };
        let warp = t.warp();
        if x % 2 == 1 {
            let group = warp.coalesced();
            let first =
                if group.elect() { counter[0].fetch_add(group.size(), atomic::Ordering::Relaxed) } else { 0 };
            if let Some(kept) = kept.get((group.shuffle(first, 0) + group.rank()) as usize) {
                kept.store(x, atomic::Ordering::Relaxed);
            }
        }
    }

    #[kernel]
    pub fn by_label(t: Thread<1>, labels: &[u64], x: &[u32], mut y: DisjointSlice<[u32; 3]>) {
        let i = t.index();
        let (label, x) = (labels.get(i.get()).copied().unwrap_or(0), x.get(i.get()).copied().unwrap_or(0));
        let group = t.warp().labeled_partition(label);
        let found = [group.ballot_lanes(x > 5), group.reduce_add(x), group.any(x > 7).into()];
        if let Some(y) = y.get_mut(i) {
            *y = found;
        }
    }
}

#[test]
fn threads_of_a_branch_share_an_atomic_operation() {
    for (architecture, lines) in code(kernels::append::kernel()) {
        // The group's own mask, and that of the check before the shuffle.
        for (instruction, times) in
            [("activemask.b32", 2), ("match.any.sync", 1), ("shfl.sync.idx", 1), ("atom.", 1)]
        {
            assert_eq!(count(&lines, instruction), times, "{architecture}, {instruction}: {lines:#?}");
        }
        assert_eq!(count(&lines, ".local"), 0, "{architecture}: {lines:#?}");
        // The source may be any lane up to 31: a group has no segments.
        let shuffle = lines.iter().find(|line| line.starts_with("shfl.sync.idx")).expect("counted above");
        assert_eq!(shuffle.split(", ").nth(3), Some("31"), "{architecture}: {shuffle}");
    }
}

#[test]
fn a_group_by_label_and_its_operations_are_one_instruction_each() {
    for (architecture, lines) in code(kernels::by_label::kernel()) {
        let number: u32 =
            architecture.trim_start_matches("sm_").trim_end_matches(['a', 'f']).parse().expect("a number");
        for instruction in ["match.any.sync.b64", "vote.sync.ballot.b32", "vote.sync.any.pred"] {
            assert_eq!(count(&lines, instruction), 1, "{architecture}, {instruction}: {lines:#?}");
        }
        let reductions = usize::from(number >= 80);
        assert_eq!(count(&lines, "redux.sync.add"), reductions, "{architecture}: {lines:#?}");
    }
}
