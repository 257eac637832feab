//! Facts about cache operators: each is one instruction, for global memory, of the element's width.

use ferrogrid::device::Aligned16;

use crate::{code, count};

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn cached(t: Thread<1>, x: &[f32], mut y: DisjointSlice<[f32; 4]>, mut z: DisjointSlice<f32>) {
        let i = t.index();
        let Some(y) = y.get_mut(i) else { return };
        let first = 4 * i.get();
        y[0] = cache::ldca(&x[first]);
        y[1] = cache::ldcg(&x[first + 1]);
        y[2] = cache::ldcs(&x[first + 2]);
        y[3] = cache::ldlu(&x[first + 3]);
        if let Some(z) = z.get_mut(i) {
            cache::stwb(z, y[0]);
            cache::stcg(z, y[1]);
            cache::stcs(z, y[2]);
            cache::stwt(z, y[3]);
        }
    }

    #[kernel]
    pub fn by_priority(t: Thread<1>, x: &[u64], mut y: DisjointSlice<u64>) {
        let i = t.index();
        let Some(y) = y.get_mut(i) else { return };
        let first = 3 * i.get();
        cache::store_no_allocate(y, cache::load_no_allocate(&x[first]));
        cache::store_evict_first(y, cache::load_evict_first(&x[first + 1]));
        cache::store_evict_last(y, cache::load_evict_last(&x[first + 2]));
    }

    #[kernel(T = [u8, u16, u32, u64, u128, Aligned16<[f32; 4]>])]
    pub fn stream<T: DeviceCopy>(t: Thread<1>, x: &[T], mut y: DisjointSlice<T>) {
        let i = t.index();
        if let (Some(x), Some(y)) = (x.get(i.get()), y.get_mut(i)) {
            cache::stcs(y, cache::ldcs(x));
        }
    }

    #[kernel]
    pub fn by_policy(
        t: Thread<1>,
        x: &[f32],
        mut y: DisjointSlice<f32>,
        mut z: DisjointSlice<Aligned16<[f32; 4]>>,
    ) {
        use cache::{L2Policy, PrimaryPriority, SecondaryPriority};
        let i = t.index();
        let kept = L2Policy::range(PrimaryPriority::EvictLast, x, 1 << 20, SecondaryPriority::EvictFirst);
        let leaving =
            L2Policy::fractional(PrimaryPriority::EvictFirst, 0.5, SecondaryPriority::EvictUnchanged);
        if let (Some(y), Some(z)) = (y.get_mut(i), z.get_mut(i)) {
            let value = cache::load_cache_hint(&x[i.get()], kept);
            cache::store_cache_hint(y, value, leaving);
            let four = cache::load_cache_hint(z, leaving).into_inner();
            cache::store_cache_hint(z, Aligned16::new(four.map(|part| part * value)), kept);
        }
    }

    #[kernel]
    pub fn ahead(t: Thread<1>, x: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index();
        cache::prefetch_l1(x, i.get() + 32);
        cache::prefetch_l2(x, i.get() + 1024);
        if let Some(y) = y.get_mut(i) {
            *y = x[i.get()];
        }
    }

    /// Shared memory has no cache operators.
    #[kernel(block = 64)]
    pub fn shared(t: Thread<1>, mut y: DisjointSlice<u32>, mut tile: Shared<[u32; 64]>) {
        if let Some(place) = tile.get_mut(&t) {
            cache::stcs(place, t.thread_rank());
        }
        let tile = t.publish(tile);
        if let Some(y) = y.get_mut(t.index()) {
            *y = cache::ldcs(&tile[63 - t.thread_rank() as usize]);
        }
    }
}

/// Whether PTX for an architecture has priorities in the first level.
fn has_priorities(architecture: &str) -> bool {
    let digits = architecture.trim_start_matches("sm_").trim_end_matches(char::is_alphabetic);
    digits.parse::<u32>().expect("an architecture has a number") >= 87
}

#[test]
fn cache_operators_are_one_instruction_each() {
    for (architecture, lines) in code(kernels::cached::kernel()) {
        for operator in ["ld.global.ca", "ld.global.cg", "ld.global.cs", "ld.global.lu"] {
            assert_eq!(
                count(&lines, &format!("{operator}.u32")),
                1,
                "{architecture}, {operator}: {lines:#?}"
            );
        }
        for operator in ["st.global.wb", "st.global.cg", "st.global.cs", "st.global.wt"] {
            assert_eq!(
                count(&lines, &format!("{operator}.u32")),
                1,
                "{architecture}, {operator}: {lines:#?}"
            );
        }
        assert_eq!(count(&lines, "ld.global"), 4, "{architecture}: {lines:#?}");
        assert_eq!(count(&lines, "isspacep"), 0, "{architecture}: {lines:#?}");
        assert_eq!(count(&lines, "ld.local") + count(&lines, "st.local"), 0, "{architecture}: {lines:#?}");
    }
}

#[test]
fn priorities_are_in_the_instructions_where_ptx_has_them() {
    for (architecture, lines) in code(kernels::by_priority::kernel()) {
        let operators = if has_priorities(architecture) {
            [".L1::no_allocate", ".L1::evict_first", ".L1::evict_last"]
        } else {
            [".cg", ".cs", ""]
        };
        for operator in operators {
            for opcode in ["ld.global", "st.global"] {
                let instruction = format!("{opcode}{operator}.u64");
                assert_eq!(count(&lines, &instruction), 1, "{architecture}, {instruction}: {lines:#?}");
            }
        }
        assert_eq!(count(&lines, "isspacep"), 0, "{architecture}: {lines:#?}");
    }
}

#[test]
fn an_element_of_any_width_moves_at_once() {
    let widths = [
        (kernels::stream::kernel::<u8>(), "u8"),
        (kernels::stream::kernel::<u16>(), "u16"),
        (kernels::stream::kernel::<u32>(), "u32"),
        (kernels::stream::kernel::<u64>(), "u64"),
        (kernels::stream::kernel::<u128>(), "v4.u32"),
        (kernels::stream::kernel::<Aligned16<[f32; 4]>>(), "v4.u32"),
    ];
    for (kernel, ty) in widths {
        for (architecture, lines) in code(kernel) {
            for opcode in ["ld.global", "st.global"] {
                assert_eq!(
                    (count(&lines, &format!("{opcode}.cs.{ty}")), count(&lines, opcode)),
                    (1, 1),
                    "{architecture}, {ty}: {lines:#?}"
                );
            }
            assert!(!lines.iter().any(|line| line.contains(".local")), "{architecture}, {ty}: {lines:#?}");
        }
    }
}

#[test]
fn prefetches_name_their_level() {
    for (architecture, lines) in code(kernels::ahead::kernel()) {
        for level in ["prefetch.global.L1", "prefetch.global.L2"] {
            assert_eq!(count(&lines, level), 1, "{architecture}, {level}: {lines:#?}");
        }
        assert_eq!(count(&lines, "isspacep"), 0, "{architecture}: {lines:#?}");
    }
}

#[test]
fn shared_memory_is_reached_plainly() {
    for (architecture, lines) in code(kernels::shared::kernel()) {
        assert_eq!(count(&lines, "ld.shared"), 1, "{architecture}: {lines:#?}");
        assert_eq!(count(&lines, "st.shared"), 1, "{architecture}: {lines:#?}");
        assert_eq!(count(&lines, "isspacep.global"), 0, "{architecture}: {lines:#?}");
    }
}

/// Older code has plain loads and stores in place of these.
#[test]
fn a_policy_is_one_instruction_and_an_operand_of_each_access() {
    for (architecture, lines) in code(kernels::by_policy::kernel()) {
        let number: u32 =
            architecture.trim_start_matches("sm_").trim_end_matches(['a', 'f']).parse().expect("a number");
        let expected = [
            "createpolicy.range.L2::evict_last.L2::evict_first.b64",
            "createpolicy.fractional.L2::evict_first.b64",
            "ld.global.L2::cache_hint.u32",
            "ld.global.L2::cache_hint.v4.u32",
            "st.global.L2::cache_hint.u32",
            "st.global.L2::cache_hint.v4.u32",
        ];
        for instruction in expected {
            assert_eq!(
                count(&lines, instruction),
                u32::from(number >= 87) as usize,
                "{architecture}, {instruction}: {lines:#?}"
            );
        }
        assert_eq!(count(&lines, ".local"), 0, "{architecture}: {lines:#?}");
    }
}
