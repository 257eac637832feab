//! Facts about blocks in order: the source of a block's number, and the publication of values.

use crate::{code, count};

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel(block = 256)]
    pub fn scan(
        t: Thread<1>,
        x: &[u32],
        mut y: DisjointSlice<u32>,
        order: BlockOrder<u32>,
        mut scratch: Shared<Scratch<u32>>,
    ) {
        let mine = x.get(t.index().get()).copied().unwrap_or(0);
        let within = t.block_inclusive_scan(&mut scratch, mine, |a, b| a + b);
        let sum = t.block_reduce(&mut scratch, mine, |a, b| a + b);
        let before = order.exclusive(&t, sum, |a, b| a + b).unwrap_or(0);
        if let Some(y) = y.get_mut(t.index()) {
            *y = before + within;
        }
    }

    /// Eight bytes that are passed from block to block.
    #[kernel]
    pub fn chain(t: Thread<1>, mut y: DisjointSlice<u64>, order: BlockOrder<u64>) {
        let [block] = t.block_idx();
        let value = if block == 0 { 1 } else { order.wait_for(block - 1) };
        let _ = order.publish(&t, value + 1);
        if let Some(y) = y.get_mut(t.index()) {
            *y = value;
        }
    }

    #[kernel]
    pub fn without(t: Thread<1>, mut y: DisjointSlice<u32>) {
        if let Some(y) = y.get_mut(t.index()) {
            *y = t.block_idx()[0];
        }
    }
}

#[test]
fn the_number_of_a_block_is_taken_once_and_stands_for_its_index() {
    for kernel in [kernels::scan::kernel(), kernels::chain::kernel()] {
        for (architecture, lines) in code(kernel) {
            assert_eq!(count(&lines, "atom."), 1, "{architecture}: {lines:#?}");
            let place = |part: &str| lines.iter().position(|line| line.contains(part));
            let (taken, barrier) = (place("atom.relaxed.gpu.global.add.u64"), place("bar.sync"));
            // The last block prepares the memory for the next launch.
            let renewed = place("@%last red.relaxed.gpu.global.add.u64");
            assert!(taken < renewed && renewed < barrier && taken.is_some(), "{architecture}: {lines:#?}");
            assert!(barrier < place("ld.shared.b32 \t%ferrogrid_block"), "{architecture}: {lines:#?}");
            let launch = lines.iter().position(|line| line.contains("[ferrogrid_block+4]"));
            assert!(barrier < launch, "{architecture}: {lines:#?}");
            assert_eq!(place("%ctaid"), None, "{architecture}: {lines:#?}");
        }
    }
    for (architecture, lines) in code(kernels::without::kernel()) {
        assert!(!lines.iter().any(|line| line.contains("ferrogrid_block")), "{architecture}: {lines:#?}");
    }
}

/// A thread that sees a value by `wait_for` sees what was written before it: release and acquire at device scope.
#[test]
fn values_are_released_and_acquired_in_the_scope_of_the_device() {
    for kernel in [kernels::scan::kernel(), kernels::chain::kernel()] {
        // Look-back needs the values alone, which have their state beside them.
        let released = usize::from(kernel.name().ends_with("chain"));
        for (architecture, lines) in code(kernel) {
            assert_eq!(count(&lines, "st.release.gpu.global.b64"), released, "{architecture}: {lines:#?}");
            assert_eq!(
                count(&lines, "ld.acquire.gpu.global.b64") > 0,
                released > 0,
                "{architecture}: {lines:#?}"
            );
            for weak in ["st.relaxed.cta", "ld.relaxed.cta", "st.release.cta", "ld.acquire.cta", ".sys."] {
                assert!(!lines.iter().any(|line| line.contains(weak)), "{architecture}: {weak}: {lines:#?}");
            }
        }
    }
    for (architecture, lines) in code(kernels::chain::kernel()) {
        let place = |part: &str| lines.iter().rposition(|line| line.contains(part));
        // The value before its flag; and the end of the block after both.
        let order = ["st.relaxed.gpu.global.b64", "st.release.gpu.global.b64"].map(place);
        assert!(place("bar.sync") < order[1] && order[1].is_some(), "{architecture}: {lines:#?}");
        assert_eq!(count(&lines, "st.relaxed.gpu.global.b64"), 2, "{architecture}: {lines:#?}");
    }
}
