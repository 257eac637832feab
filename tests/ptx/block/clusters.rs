//! Facts about clusters and dependent launches, for architectures that have them; for others the kernels
//! contain neither.

use crate::{code, count};

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel(block = [64, 1], cluster = [2, 1])]
    pub fn swap(t: Thread<2>, mut out: DisjointSlice<f32, 2>, mut part: Shared<[f32; 64]>) {
        let [x, _] = t.thread_idx();
        part.fill_with(&t, |i| i as f32);
        let part = t.publish_cluster(part);
        let other = part.block(&t, 1 - t.cluster_rank())[63 - x as usize];
        if let Some(out) = out.get_mut(t.index()) {
            *out = other;
        }
    }
}

#[ferrogrid::module]
mod dependents {
    use ferrogrid::device::prelude::*;

    #[kernel(dependent_launch)]
    pub fn step(t: Thread<1>, x: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y = x[i.get()];
        }
        t.launch_dependents();
    }
}

#[ferrogrid::module]
mod places {
    use ferrogrid::device::prelude::*;

    #[kernel(cluster = [2, 2, 2])]
    pub fn places(t: Thread<3>, out: &[DeviceAtomic<u32>]) {
        let own = t.cluster_block_idx().into_iter().chain(t.cluster_dim()).chain(t.cluster_idx());
        for (cell, value) in out.iter().zip(own.chain([t.cluster_rank(), t.cluster_blocks()])) {
            cell.store(value, atomic::Ordering::Relaxed);
        }
    }
}

/// Each special register is read, and none in place of another.
#[test]
fn positions_in_a_cluster_are_special_registers() {
    let axes = |name: &str| ["x", "y", "z"].map(|axis| format!("%{name}.{axis}"));
    let mut registers: Vec<String> = ["cluster_ctaid", "cluster_nctaid", "clusterid"].map(axes).concat();
    registers.extend(["%cluster_ctarank".into(), "%cluster_nctarank".into()]);
    for (architecture, lines) in code(places::places::kernel()) {
        for register in &registers {
            let reads = lines.iter().filter(|line| line.ends_with(&format!("{register};"))).count();
            assert_eq!(
                reads,
                usize::from(has_clusters(architecture)),
                "{architecture}, {register}: {lines:#?}"
            );
        }
    }
}

#[test]
fn a_dependent_launch_waits_before_it_touches_memory() {
    for (architecture, lines) in code(dependents::step::kernel()) {
        let has = usize::from(has_clusters(architecture));
        assert_eq!(count(&lines, "griddepcontrol.launch_dependents;"), has, "{architecture}: {lines:#?}");
        let waits = lines.iter().position(|line| line.starts_with("griddepcontrol.wait;"));
        assert_eq!(waits.is_some(), has == 1, "{architecture}: {lines:#?}");
        let is_first =
            |at: usize| lines[..at].iter().all(|line| !line.starts_with("ld.") && !line.starts_with("st."));
        assert!(waits.is_none_or(is_first), "{architecture}: {lines:#?}");
    }
}

/// Whether `architecture` has clusters.
fn has_clusters(architecture: &str) -> bool {
    let digits = architecture.trim_start_matches("sm_").trim_end_matches(char::is_alphabetic);
    digits.parse::<u32>().is_ok_and(|number| number >= 90)
}

#[test]
fn clusters_have_their_own_directives_barriers_and_loads() {
    for (architecture, lines) in code(kernels::swap::kernel()) {
        let has = usize::from(has_clusters(architecture));
        let directive = lines.iter().filter(|line| line.starts_with(".reqnctapercluster 2, 1, 1")).count();
        assert_eq!(directive, has, "{architecture}: {lines:#?}");
        // That of `publish_cluster`, and that at the end.
        assert_eq!(count(&lines, "barrier.cluster.arrive"), 2 * has, "{architecture}: {lines:#?}");
        assert_eq!(count(&lines, "barrier.cluster.arrive.relaxed"), 0, "{architecture}: {lines:#?}");
        assert_eq!(count(&lines, "barrier.cluster.wait"), 2 * has, "{architecture}: {lines:#?}");
        assert_eq!(count(&lines, "mapa.u64"), has, "{architecture}: {lines:#?}");
        assert_eq!(count(&lines, "ld.shared::cluster."), has, "{architecture}: {lines:#?}");
    }
}
