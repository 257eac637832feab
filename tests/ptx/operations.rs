//! Each warp operation, fence and atomic operation is the instruction that its documentation names. The
//! conformance suite checks their results.

use ferrogrid::__private::Kernel;

use super::{code, count};

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::atomic::{Block, Ordering::Relaxed};
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn shuffles(t: Thread<1>, mut y: DisjointSlice<u32>) {
        let (warp, i) = (t.warp(), t.index());
        let Some(y) = y.get_mut(i) else { return };
        *y = warp.shuffle(*y, 3);
        *y = warp.shuffle_up(*y, 1);
        *y = warp.shuffle_down(*y, 2);
        *y = warp.shuffle_xor(*y, 4);
    }

    #[kernel]
    pub fn votes(t: Thread<1>, mut y: DisjointSlice<u32>) {
        let (warp, i) = (t.warp(), t.index());
        let Some(y) = y.get_mut(i) else { return };
        let odd = *y % 2 == 1;
        *y += warp.ballot(odd) + u32::from(warp.all(odd)) + u32::from(warp.any(odd));
    }

    #[kernel]
    pub fn matches(t: Thread<1>, x: &[u64], mut y: DisjointSlice<u32>) {
        let (warp, i) = (t.warp(), t.index());
        let wide = x.get(i.get()).copied().unwrap_or(0);
        let mut found = warp.match_any(wide as u32) ^ warp.match_any(wide);
        warp.sync();
        found ^= warp.active_mask();
        if let Some(y) = y.get_mut(i) {
            *y = found;
        }
    }

    #[kernel]
    pub fn bits(t: Thread<1>, mut y: DisjointSlice<u32>) {
        if let Some(y) = y.get_mut(t.index()) {
            *y = t.warp().match_bits::<8>(*y);
        }
    }

    #[kernel]
    pub fn reductions(t: Thread<1>, mut y: DisjointSlice<[u32; 6]>, mut z: DisjointSlice<[i32; 2]>) {
        let warp = t.warp();
        if let Some([add, min, max, and, or, xor]) = y.get_mut(t.index()) {
            *add = warp.reduce_add(*add);
            *min = warp.reduce_min(*min);
            *max = warp.reduce_max(*max);
            *and = warp.reduce_and(*and);
            *or = warp.reduce_or(*or);
            *xor = warp.reduce_xor(*xor);
        }
        if let Some([min, max]) = z.get_mut(t.index()) {
            *min = warp.reduce_min(*min);
            *max = warp.reduce_max(*max);
        }
    }

    #[kernel]
    pub fn fences(t: Thread<1>, mut y: DisjointSlice<u32>) {
        let Some(y) = y.get_mut(t.index()) else { return };
        *y += 1;
        fence::block();
        *y += 2;
        fence::device();
        *y += 3;
        fence::system();
    }

    /// Each operation of the integers of one width.
    #[kernel(T = [u32, i32, u64, i64])]
    pub fn integers<T: DeviceCopy + atomic::AtomicInteger>(t: Thread<1>, x: &[T], cells: &[DeviceAtomic<T>]) {
        let i = t.index().get();
        let (Some(&x), Some(cell)) = (x.get(i), cells.get(i)) else { return };
        cell.fetch_add(x, Relaxed);
        cell.fetch_min(x, Relaxed);
        cell.fetch_max(x, Relaxed);
        cell.fetch_and(x, Relaxed);
        cell.fetch_or(x, Relaxed);
        cell.fetch_xor(x, Relaxed);
        let old = cell.swap(x, Relaxed);
        let _ = cell.compare_exchange(old, x, Relaxed, Relaxed);
    }

    #[kernel(T = [f32, f64])]
    pub fn floats<T: DeviceCopy + atomic::AtomicValue>(t: Thread<1>, x: &[T], cells: &[DeviceAtomic<T>]) {
        let i = t.index().get();
        let (Some(&x), Some(cell)) = (x.get(i), cells.get(i)) else { return };
        cell.fetch_add(x, Relaxed);
        let old = cell.swap(x, Relaxed);
        let _ = cell.compare_exchange(old, x, Relaxed, Relaxed);
    }

    /// Loads and stores of integers that have no other atomic operations.
    #[kernel(T = [u8, i16])]
    pub fn small<T: DeviceCopy + atomic::AtomicLoadStore>(
        t: Thread<1>,
        from: &[DeviceAtomic<T>],
        to: &[DeviceAtomic<T>],
    ) {
        let i = t.index().get();
        let (Some(from), Some(to)) = (from.get(i), to.get(i)) else { return };
        to.store(from.load(Relaxed), Relaxed);
    }

    /// The same operations on shared memory.
    #[kernel(block = 32)]
    pub fn shared(
        t: Thread<1>,
        mut words: Shared<[DeviceAtomic<u64, Block>; 32]>,
        mut numbers: Shared<[DeviceAtomic<f32, Block>; 32]>,
        out: &[DeviceAtomic<u64>],
    ) {
        words.fill_with(&t, |_| DeviceAtomic::new(1));
        numbers.fill_with(&t, |_| DeviceAtomic::new(1.0));
        let (words, numbers) = t.publish((words, numbers));
        let lane = t.thread_rank() as usize;
        words[lane].fetch_max(7, Relaxed);
        numbers[lane].fetch_add(2.0, Relaxed);
        let old = words[lane ^ 1].swap(9, Relaxed);
        let _ = words[lane ^ 2].compare_exchange(old, 3, Relaxed, Relaxed);
        t.sync_threads();
        out[lane].fetch_add(words[lane].load(Relaxed) + numbers[lane].load(Relaxed) as u64, Relaxed);
    }
}

/// The number of `sm_90a`.
fn number(architecture: &str) -> u32 {
    architecture.trim_start_matches("sm_").trim_end_matches(char::is_alphabetic).parse().unwrap()
}

fn demand(kernel: &Kernel, expected: &[(&str, usize)]) {
    for (architecture, lines) in code(kernel) {
        for &(opcode, times) in expected {
            assert_eq!(
                count(&lines, opcode),
                times,
                "{architecture}, {}, {opcode}: {lines:#?}",
                kernel.name()
            );
        }
    }
}

#[test]
fn each_shuffle_is_one_instruction() {
    let kinds = ["shfl.sync.idx.b32", "shfl.sync.up.b32", "shfl.sync.down.b32", "shfl.sync.bfly.b32"];
    demand(kernels::shuffles::kernel(), &kinds.map(|kind| (kind, 1)));
    demand(kernels::shuffles::kernel(), &[("shfl.sync", 4)]);
}

#[test]
fn each_vote_is_one_instruction() {
    let kinds = ["vote.sync.ballot.b32", "vote.sync.all.pred", "vote.sync.any.pred"];
    demand(kernels::votes::kernel(), &kinds.map(|kind| (kind, 1)));
    demand(kernels::votes::kernel(), &[("vote.sync", 3)]);
}

#[test]
fn few_bits_are_matched_by_a_vote_for_each() {
    demand(kernels::bits::kernel(), &[("vote.sync.ballot.b32", 8), ("match.any", 0)]);
}

#[test]
fn matches_the_active_mask_and_the_barrier_of_a_warp_are_instructions() {
    let expected =
        [("match.any.sync.b32", 1), ("match.any.sync.b64", 1), ("activemask.b32", 1), ("bar.warp.sync", 1)];
    demand(kernels::matches::kernel(), &expected);
}

#[test]
fn every_reduction_of_words_is_one_instruction_if_there_is_one() {
    let kinds = ["add.s32", "min.u32", "max.u32", "and.b32", "or.b32", "xor.b32", "min.s32", "max.s32"];
    for (architecture, lines) in code(kernels::reductions::kernel()) {
        let times = usize::from(number(architecture) >= 80);
        for kind in kinds {
            let found = count(&lines, &format!("redux.sync.{kind}"));
            assert_eq!(found, times, "{architecture}, {kind}: {lines:#?}");
        }
        let shuffles = count(&lines, "shfl.sync");
        assert_eq!(shuffles > 0, times == 0, "{architecture}: {lines:#?}");
    }
}

#[test]
fn a_fence_is_one_instruction_of_its_scope() {
    let scopes = [
        ["membar.cta", "fence.acq_rel.cta"],
        ["membar.gl", "fence.acq_rel.gpu"],
        ["membar.sys", "fence.acq_rel.sys"],
    ];
    for (architecture, lines) in code(kernels::fences::kernel()) {
        for names in scopes {
            let found: usize = names.iter().map(|name| count(&lines, name)).sum();
            assert_eq!(found, 1, "{architecture}, {names:?}: {lines:#?}");
        }
    }
}

#[test]
fn every_atomic_operation_of_integers_is_one_instruction() {
    let kernels = [
        (kernels::integers::kernel::<u32>(), "u32", "b32"),
        (kernels::integers::kernel::<i32>(), "s32", "b32"),
        (kernels::integers::kernel::<u64>(), "u64", "b64"),
        (kernels::integers::kernel::<i64>(), "s64", "b64"),
    ];
    for (kernel, number, bits) in kernels {
        for (architecture, lines) in code(kernel) {
            for operation in ["min", "max"] {
                let opcode = format!("atom.relaxed.gpu.global.{operation}.{number}");
                assert_eq!(count(&lines, &opcode), 1, "{architecture}, {opcode}: {lines:#?}");
            }
            for operation in ["and", "or", "xor", "exch", "cas"] {
                let opcode = format!("atom.relaxed.gpu.global.{operation}.{bits}");
                assert_eq!(count(&lines, &opcode), 1, "{architecture}, {opcode}: {lines:#?}");
            }
            assert_eq!(count(&lines, "atom.relaxed.gpu.global.add."), 1, "{architecture}: {lines:#?}");
            assert_eq!(count(&lines, "atom."), 8, "{architecture}: {lines:#?}");
        }
    }
}

#[test]
fn small_integers_are_loaded_and_stored_by_one_instruction_each() {
    for (kernel, bits) in [(kernels::small::kernel::<u8>(), "b8"), (kernels::small::kernel::<i16>(), "b16")] {
        let opcodes = ["ld", "st"].map(|kind| format!("{kind}.relaxed.gpu.global.{bits}"));
        demand(kernel, &[(&opcodes[0], 1), (&opcodes[1], 1), ("atom.", 0)]);
    }
}

#[test]
fn adding_and_exchanging_floats_is_one_instruction_each() {
    for (kernel, number, bits) in
        [(kernels::floats::kernel::<f32>(), "f32", "b32"), (kernels::floats::kernel::<f64>(), "f64", "b64")]
    {
        for (architecture, lines) in code(kernel) {
            for opcode in [format!("add.{number}"), format!("exch.{bits}"), format!("cas.{bits}")] {
                let opcode = format!("atom.relaxed.gpu.global.{opcode}");
                assert_eq!(count(&lines, &opcode), 1, "{architecture}, {opcode}: {lines:#?}");
            }
            assert_eq!(count(&lines, "atom."), 3, "{architecture}: {lines:#?}");
        }
    }
}

#[test]
fn atomics_in_shared_memory_stay_in_its_state_space() {
    let kinds = ["max.u64", "add.f32", "exch.b64", "cas.b64"];
    for (architecture, lines) in code(kernels::shared::kernel()) {
        for kind in kinds {
            let opcode = format!("atom.relaxed.cta.shared.{kind}");
            assert_eq!(count(&lines, &opcode), 1, "{architecture}, {opcode}: {lines:#?}");
        }
        assert_eq!(count(&lines, "ld.relaxed.cta.shared"), 2, "{architecture}: {lines:#?}");
        assert_eq!(count(&lines, "atom.relaxed.gpu.global.add.u64"), 1, "{architecture}: {lines:#?}");
    }
}
