//! Facts about atomic operations, grid-stride loops and 16-byte elements.

use crate::{code, count, images};

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::atomic::{Block, Ordering, System};
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn histogram(t: Thread<1>, data: &[u8], counts: &[DeviceAtomic<u32>]) {
        for i in t.grid_stride(data.len()) {
            counts[data[i.get()] as usize].fetch_add(1, Ordering::Relaxed);
        }
    }

    #[kernel]
    pub fn orderings(t: Thread<1>, cells: &[DeviceAtomic<u64>]) {
        let Some(cell) = cells.get(t.index().get()) else { return };
        let loaded = cell.load(Ordering::Acquire) + cell.load(Ordering::Relaxed);
        cell.store(loaded, Ordering::Release);
        cell.fetch_max(7, Ordering::AcqRel);
        cell.swap(9, Ordering::SeqCst);
    }

    #[kernel]
    pub fn scopes(
        t: Thread<1>,
        block: &[DeviceAtomic<f32, Block>],
        device: &[DeviceAtomic<f32>],
        system: &[DeviceAtomic<f32, System>],
    ) {
        let i = t.index().get();
        block[i].fetch_add(1.0, Ordering::Relaxed);
        device[i].fetch_add(1.0, Ordering::Relaxed);
        system[i].fetch_add(1.0, Ordering::Relaxed);
    }

    /// Core's: an exchange of each kind.
    #[kernel]
    pub fn core_atomics(t: Thread<1>, cells: &[core::sync::atomic::AtomicU32]) {
        let Some(cell) = cells.get(t.index().get()) else { return };
        cell.fetch_add(1, Ordering::Relaxed);
        let _ = cell.compare_exchange(3, 4, Ordering::AcqRel, Ordering::Acquire);
        cell.store(5, Ordering::Release);
    }

    /// Prints, and panics.
    #[kernel]
    pub fn reports(t: Thread<1>, x: &[u32]) {
        ferrogrid::device::println!("{}", x[t.index().get()]);
    }

    /// Tables of literals.
    #[kernel]
    pub fn tables(t: Thread<1>, mut y: DisjointSlice<f32>) {
        const SMALL: [f32; 4] = [1.5, 2.5, 3.5, 7.0];
        static LARGE: [f32; 64] = {
            let mut all = [0.0; 64];
            all[7] = 1.25;
            all
        };
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y = SMALL[i.get() % 4] + LARGE[i.get() % 64];
        }
    }

    #[kernel]
    pub fn increment_all(t: Thread<1>, mut data: DisjointSlice<u32>) {
        for i in t.grid_stride(data.len()) {
            if let Some(value) = data.get_mut(i) {
                *value += 1;
            }
        }
    }

    #[kernel]
    pub fn copy_fours(t: Thread<1>, x: &[Aligned16<[f32; 4]>], mut y: DisjointSlice<Aligned16<[f32; 4]>>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y = x[i.get()];
        }
    }

    #[kernel]
    pub fn saxpy_fours(
        t: Thread<1>,
        a: f32,
        x: &[Aligned16<[f32; 4]>],
        mut y: DisjointSlice<Aligned16<[f32; 4]>>,
    ) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            for k in 0..4 {
                y[k] += a * x[i.get()][k];
            }
        }
    }
}

#[test]
fn atomics_of_a_slice_are_global_and_need_no_test_for_it() {
    for kernel in [kernels::histogram::kernel(), kernels::orderings::kernel(), kernels::scopes::kernel()] {
        for (architecture, lines) in code(kernel) {
            let atomics = count(&lines, "atom.");
            assert!(atomics > 0, "{architecture}, {}", kernel.name());
            let global =
                lines.iter().filter(|line| line.contains("atom.") && line.contains(".global.")).count();
            assert_eq!(global, atomics, "{architecture}: {lines:#?}");
            assert_eq!(count(&lines, "isspacep"), 0, "{architecture}: {lines:#?}");
        }
    }
}

#[test]
fn orderings_and_the_fence_are_in_the_instructions() {
    for (architecture, lines) in code(kernels::orderings::kernel()) {
        for instruction in [
            "ld.acquire.gpu.global.b64",
            "ld.relaxed.gpu.global.b64",
            "st.release.gpu.global.b64",
            "atom.acq_rel.gpu.global.max.u64",
            "fence.sc.gpu",
            "atom.acq_rel.gpu.global.exch.b64",
        ] {
            assert_eq!(count(&lines, instruction), 1, "{architecture}, {instruction}: {lines:#?}");
        }
    }
}

#[test]
fn scopes_are_in_the_instructions() {
    for (architecture, lines) in code(kernels::scopes::kernel()) {
        for scope in ["cta", "gpu", "sys"] {
            let instruction = format!("atom.relaxed.{scope}.global.add.f32");
            assert_eq!(count(&lines, &instruction), 1, "{architecture}, {instruction}: {lines:#?}");
        }
    }
}

#[test]
fn atomic_memory_is_not_read_through_the_read_only_path() {
    for (architecture, lines) in code(kernels::orderings::kernel()) {
        assert_eq!(count(&lines, "ld.global.nc"), 0, "{architecture}: {lines:#?}");
    }
}

#[test]
fn a_grid_stride_loop_neither_divides_nor_checks_bounds_again() {
    for (architecture, lines) in code(kernels::increment_all::kernel()) {
        assert_eq!(count(&lines, "div.") + count(&lines, "rem."), 0, "{architecture}: {lines:#?}");
        // Before the loop, and at its end.
        assert_eq!(count(&lines, "setp."), 2, "{architecture}: {lines:#?}");
    }
}

#[test]
fn sixteen_bytes_are_copied_and_computed_at_once() {
    for kernel in [kernels::copy_fours::kernel(), kernels::saxpy_fours::kernel()] {
        for (architecture, lines) in code(kernel) {
            let wide = |opcode: &str| {
                let is_wide = |line: &&&str| line.contains(".v4.b32") || line.contains(".v2.b64");
                lines.iter().filter(|line| line.starts_with(opcode)).filter(is_wide).count()
            };
            assert_eq!(wide("ld.global.nc"), 1, "{architecture}: {lines:#?}");
            assert_eq!((wide("st.global"), count(&lines, "st.global")), (1, 1), "{architecture}: {lines:#?}");
        }
    }
}

#[test]
fn core_atomics_have_an_ordering_and_global_addresses() {
    for (architecture, lines) in code(kernels::core_atomics::kernel()) {
        assert_eq!(count(&lines, "atom.acq_rel.sys.global.add.u32"), 1, "{architecture}: {lines:#?}");
        assert_eq!(count(&lines, "atom.acq_rel.sys.global.cas.b32"), 1, "{architecture}: {lines:#?}");
        assert_eq!(count(&lines, "st.release.sys.global.b32"), 1, "{architecture}: {lines:#?}");
        assert_eq!(count(&lines, "atom."), 2, "{architecture}: {lines:#?}");
        assert!(count(&lines, "fence.sc.sys") >= 1, "{architecture}: {lines:#?}");
    }
}

/// The failure record and the ring of printed text are in host memory, where a GPU supports system-scope
/// atomics only if the bus does; only kernels that request that scope use it.
#[test]
fn reports_to_the_host_are_exchanged_in_the_scope_of_the_device() {
    let asking = [
        kernels::scopes::kernel(),
        kernels::core_atomics::kernel(),
        crate::orders::kernels::in_system::kernel(),
    ]
    .map(|kernel| kernel.entry());
    let kernel = kernels::reports::kernel();
    for (architecture, ptx) in images(kernel) {
        let atomics = |part: &str, scope: &str| {
            part.lines().filter(|line| line.contains("atom.") && line.contains(scope)).count()
        };
        let mut claims = 0;
        let mut additions = 0;
        for part in ptx.split("\n}\n") {
            if asking.iter().any(|entry| part.contains(&format!(".entry {entry}("))) {
                assert!(atomics(part, ".sys.") > 0, "{architecture}: {part}");
                continue;
            }
            assert_eq!(atomics(part, ".sys."), 0, "{architecture}: {part}");
            if !part.contains(".entry ") {
                claims += atomics(part, "atom.relaxed.gpu.global.cas.b32");
                additions += atomics(part, "atom.relaxed.gpu.global.add.u64");
            }
        }
        assert!(claims > 0 && additions > 0, "{architecture}: {claims} claims, {additions} additions");
    }
}

/// `const` and `static` tables lie in global memory, and are read through the read-only path.
#[test]
fn tables_of_literals_are_read_only_global_memory() {
    for (architecture, lines) in code(kernels::tables::kernel()) {
        assert_eq!(count(&lines, "ld.global.nc."), 2, "{architecture}: {lines:#?}");
        assert_eq!(count(&lines, "ld.local") + count(&lines, "ld.const"), 0, "{architecture}: {lines:#?}");
    }
}
