//! Facts about code that only GPUs execute, where the order of instructions and each constant matters: memory
//! orderings, tiles of a warp, the grid barrier, and reports to the host. The conformance suite checks
//! results on a GPU.

use ferrogrid::__private::Kernel;

use super::{code, count, images};

#[ferrogrid::module]
pub(super) mod kernels {
    use ferrogrid::device::atomic::{Block, Ordering::*, Scope, System};
    use ferrogrid::device::prelude::*;

    /// Each operation in each ordering that it may have.
    fn all_orders<S: Scope>(cell: &DeviceAtomic<u32, S>) {
        let found = cell.load(Acquire) ^ cell.load(SeqCst);
        cell.store(found, Release);
        cell.store(found, SeqCst);
        cell.fetch_add(1, Acquire);
        cell.fetch_add(1, Release);
        cell.fetch_add(1, AcqRel);
        cell.fetch_add(1, SeqCst);
    }

    #[kernel]
    pub fn in_block(t: Thread<1>, cells: &[DeviceAtomic<u32, Block>]) {
        if let Some(cell) = cells.get(t.index().get()) {
            all_orders(cell);
        }
    }

    #[kernel]
    pub fn in_device(t: Thread<1>, cells: &[DeviceAtomic<u32>]) {
        if let Some(cell) = cells.get(t.index().get()) {
            all_orders(cell);
        }
    }

    #[kernel]
    pub fn in_system(t: Thread<1>, cells: &[DeviceAtomic<u32, System>]) {
        if let Some(cell) = cells.get(t.index().get()) {
            all_orders(cell);
        }
    }

    #[kernel]
    pub fn whole_warp(t: Thread<1>, mut y: DisjointSlice<u32>) {
        let (tile, i) = (t.warp(), t.index());
        let Some(y) = y.get_mut(i) else { return };
        *y = tile.shuffle(*y, 3);
        *y = tile.shuffle_up(*y, 1);
        *y = tile.shuffle_down(*y, 2);
        *y = tile.shuffle_xor(*y, 4);
    }

    #[kernel]
    pub fn tile_of_eight(t: Thread<1>, mut y: DisjointSlice<u32>) {
        let (tile, i) = (t.warp().tile::<8>(), t.index());
        let Some(y) = y.get_mut(i) else { return };
        *y = tile.shuffle(*y, 3);
        *y = tile.shuffle_up(*y, 1);
        *y = tile.shuffle_down(*y, 2);
        *y = tile.shuffle_xor(*y, 4);
    }

    /// What threads of a tile tell each other without shuffles.
    #[kernel]
    pub fn votes_of_eight(t: Thread<1>, mut y: DisjointSlice<u32>) {
        let (tile, i) = (t.warp().tile::<8>(), t.index());
        let Some(y) = y.get_mut(i) else { return };
        *y += tile.ballot(*y > 3) + u32::from(tile.all(*y > 4)) + u32::from(tile.any(*y > 5));
        *y += tile.match_any(*y) + tile.match_any(u64::from(*y) << 9) + tile.reduce_add(*y);
        tile.sync();
    }

    /// A partner in another tile.
    #[kernel]
    pub fn beyond_the_tile(t: Thread<1>, mut y: DisjointSlice<u32>) {
        let (tile, i) = (t.warp().tile::<8>(), t.index());
        if let Some(y) = y.get_mut(i) {
            *y = tile.shuffle_xor(*y, 8);
        }
    }

    /// In blocks of any size: the last warp may lack lanes.
    #[kernel]
    pub fn partial(t: Thread<1>, x: &[u32], sums: &[DeviceAtomic<u32>]) {
        let own = x.get(t.index().get()).copied().unwrap_or(0);
        let total = t.warp().reduce(own, |a, b| a ^ b);
        sums[0].fetch_add(total, Relaxed);
    }

    #[kernel]
    pub fn matches_of_sixteen_bytes(t: Thread<1>, x: &[[u32; 4]], mut y: DisjointSlice<u32>) {
        let Some(&own) = x.get(t.index().get()) else { return };
        let found = t.warp().match_any(own);
        if let Some(y) = y.get_mut(t.index()) {
            *y = found;
        }
    }

    #[kernel(cooperative)]
    pub fn grid_waits(t: Thread<1>, cells: &[DeviceAtomic<u32>]) {
        cells[0].fetch_add(1, Relaxed);
        t.sync_grid();
        cells[1].fetch_add(cells[0].load(Relaxed), Relaxed);
    }

    #[kernel]
    pub fn streamed(t: Thread<1>, x: &[Aligned16<[u32; 4]>], mut y: DisjointSlice<Aligned16<[u32; 4]>>) {
        let i = t.index();
        if let (Some(x), Some(y)) = (x.get(i.get()), y.get_mut(i)) {
            cache::stcs(y, cache::ldcs(x));
        }
    }

    #[kernel(block = 64)]
    pub fn staged(t: Thread<1>, mut y: DisjointSlice<u32>, mut part: Shared<[u32; 64]>) {
        part.fill_with(&t, |i| i as u32);
        let part = t.publish(part);
        if let Some(y) = y.get_mut(t.index()) {
            *y = part[63 - t.thread_rank() as usize];
        }
    }

    /// Prints, and panics.
    #[kernel]
    pub fn reports(t: Thread<1>, x: &[u32]) {
        ferrogrid::device::println!("{}", x[t.index().get()]);
    }
}

/// An instruction without its operands.
fn opcode(line: &str) -> &str {
    let words = line.trim_start_matches("{ .reg .u64 %a; ");
    words.split_whitespace().next().unwrap_or_default().trim_end_matches(';')
}

/// The instructions that access or order memory, in order.
fn ordered<'l>(lines: &[&'l str]) -> Vec<&'l str> {
    let counts = |line: &&str| {
        ["ld.acq", "st.rel", "st.volatile", "atom.", "red.", "fence.", "bar"]
            .iter()
            .any(|it| line.starts_with(it))
    };
    lines.iter().map(|line| opcode(line)).filter(counts).collect()
}

/// Each function of the PTX that is not a kernel, line by line.
fn functions(ptx: &str) -> impl Iterator<Item = Vec<&str>> {
    let parts = ptx.split("\n}").filter(|part| part.contains(".func") && !part.contains(".entry "));
    parts.map(|part| part.lines().map(str::trim).collect())
}

/// The functions with an instruction, for each architecture.
fn functions_with(kernel: &'static Kernel, instruction: &str) -> Vec<(&'static str, Vec<&'static str>)> {
    let mut found = Vec::new();
    for (architecture, ptx) in images(kernel) {
        let having = |lines: &Vec<&str>| lines.iter().any(|line| line.contains(instruction));
        let before = found.len();
        found.extend(functions(ptx).filter(having).map(|lines| (architecture, lines)));
        assert!(found.len() > before, "no function of {architecture} has {instruction}");
    }
    found
}

#[test]
fn every_ordering_of_every_scope_is_in_the_instructions_in_their_order() {
    for (kernel, scope) in [
        (kernels::in_block::kernel(), "cta"),
        (kernels::in_device::kernel(), "gpu"),
        (kernels::in_system::kernel(), "sys"),
    ] {
        let expected = [
            "ld.acquire.S.global.b32",
            "fence.sc.S",
            "ld.acquire.S.global.b32",
            "st.release.S.global.b32",
            "fence.sc.S",
            "st.release.S.global.b32",
            "atom.acquire.S.global.add.u32",
            "atom.release.S.global.add.u32",
            "atom.acq_rel.S.global.add.u32",
            "fence.sc.S",
            "atom.acq_rel.S.global.add.u32",
        ]
        .map(|instruction| instruction.replace(".S", &format!(".{scope}")));
        for (architecture, lines) in code(kernel) {
            assert_eq!(ordered(&lines), expected, "{architecture}: {lines:#?}");
        }
    }
}

/// The last operand but one of `shfl`: bits 8 to 12 name the tile, bits 0 to 4 are its first or last lane.
#[test]
fn shuffles_stay_in_their_tile() {
    for (kernel, tile) in [(kernels::whole_warp::kernel(), 0), (kernels::tile_of_eight::kernel(), 24 << 8)] {
        for (architecture, lines) in code(kernel) {
            for (kind, clamp) in [("idx", 31), ("up", 0), ("down", 31), ("bfly", 31)] {
                let opcode = format!("shfl.sync.{kind}.b32");
                let found: Vec<_> = lines.iter().filter(|line| line.starts_with(&opcode)).collect();
                let operand = found.first().and_then(|line| line.split(',').rev().nth(1)).map(str::trim);
                let expected = (tile | clamp).to_string();
                assert_eq!((found.len(), operand), (1, Some(&expected[..])), "{architecture}: {lines:#?}");
            }
        }
    }
}

#[test]
fn shuffles_ignore_partners_in_other_tiles() {
    for (architecture, lines) in code(kernels::beyond_the_tile::kernel()) {
        // The value is unchanged.
        assert_eq!(count(&lines, "st.global"), 0, "{architecture}: {lines:#?}");
    }
}

/// The last operand is the mask: that of a tile is in a register.
#[test]
fn threads_of_a_tile_wait_for_no_others() {
    for (architecture, lines) in code(kernels::votes_of_eight::kernel()) {
        let reduction = if count(&lines, "redux.sync") > 0 { "redux.sync" } else { "shfl.sync" };
        for operation in [
            "bar.warp.sync",
            "vote.sync.ballot.b32",
            "vote.sync.all.pred",
            "vote.sync.any.pred",
            "match.any.sync.b32",
            "match.any.sync.b64",
            reduction,
        ] {
            let mut found = lines.iter().filter(|line| line.starts_with(operation)).peekable();
            assert!(found.peek().is_some(), "{architecture}, {operation}: {lines:#?}");
            // `redux.sync` takes a mask from a register even if all lanes are meant.
            let is_of_all = |mask: &str| lines.iter().any(|line| line.ends_with(&format!("\t{mask}, -1;")));
            let has_register = |line: &&str| {
                let mask = line.rsplit([',', ' ', '\t']).next().map(|mask| mask.trim_end_matches(';'));
                mask.is_some_and(|mask| mask.starts_with('%') && !is_of_all(mask))
            };
            assert!(found.all(has_register), "{architecture}, {operation}: {lines:#?}");
        }
    }
}

/// The existing lanes are determined by a convergent operation: `activemask` may miss some.
#[test]
fn the_lanes_of_a_partial_warp_are_counted_together() {
    for (architecture, lines) in code(kernels::partial::kernel()) {
        assert!(count(&lines, "vote.sync.ballot.b32") >= 1, "{architecture}: {lines:#?}");
        assert_eq!(count(&lines, "activemask"), 0, "{architecture}: {lines:#?}");
    }
}

#[test]
fn sixteen_bytes_match_where_both_halves_do() {
    for (architecture, lines) in code(kernels::matches_of_sixteen_bytes::kernel()) {
        assert_eq!(count(&lines, "match.any.sync.b64"), 2, "{architecture}: {lines:#?}");
        let last = lines.iter().rposition(|line| line.starts_with("match.any.sync.b64")).unwrap();
        let joined =
            lines[last..].iter().map(|line| opcode(line)).find(|it| ["and.b32", "or.b32"].contains(it));
        assert_eq!(joined, Some("and.b32"), "{architecture}: {lines:#?}");
    }
}

/// The counter is behind the workspace's size; the first block adds what is missing to half the range, the others one.
#[test]
fn the_barrier_of_the_grid_releases_and_acquires_at_its_counter() {
    for (architecture, lines) in functions_with(kernels::grid_waits::kernel(), "%envreg1") {
        let found = ordered(&lines);
        let are = |operation: &str, all: &str| {
            let mut ones = found.iter().filter(|it| it.starts_with(operation)).peekable();
            ones.peek().is_some() && ones.all(|it| it.starts_with(all))
        };
        assert!(
            are("atom.", "atom.acq_rel.gpu.") && are("ld.", "ld.acquire.gpu."),
            "{architecture}: {lines:#?}"
        );
        assert_eq!(found.iter().filter(|it| it.starts_with("bar")).count(), 2, "{architecture}: {lines:#?}");
        let number = |operand: &str| lines.iter().filter(|line| line.contains(operand)).count();
        assert_eq!((number("%envreg1"), number("%envreg2")), (1, 1), "{architecture}: {lines:#?}");
        // 2^31 + 1 less the number of blocks.
        assert_eq!((number(", 4;"), number("-2147483647")), (1, 1), "{architecture}: {lines:#?}");
    }
}

#[test]
fn sixteen_bytes_are_stored_in_the_order_in_which_they_were_loaded() {
    for (architecture, lines) in code(kernels::streamed::kernel()) {
        let registers = |opcode: &str| {
            let line = lines.iter().find(|line| line.starts_with(opcode)).expect("it is there");
            line.split(['{', '}']).nth(1).expect("four registers").to_owned()
        };
        let (loaded, stored) = (registers("ld.global.cs.v4.u32"), registers("st.global.cs.v4.u32"));
        assert_eq!(loaded, stored, "{architecture}: {lines:#?}");
    }
}

#[test]
fn shared_memory_is_aligned_to_sixteen_bytes() {
    let kernel = kernels::staged::kernel();
    for (architecture, ptx) in images(kernel) {
        assert!(ptx.contains(".extern .shared .align 16 .b8 ferrogrid_shared[]"), "{architecture}");
    }
}

/// The text and its length before the word that publishes them to the host; counters at device scope.
#[test]
fn printed_text_is_visible_to_the_host_before_its_mark() {
    for (architecture, lines) in functions_with(kernels::reports::kernel(), "global.add.u64 %") {
        let found = ordered(&lines);
        // Lost text: pieces are counted before bytes.
        let add = "atom.relaxed.gpu.global.add.u64";
        let is_counted = found.windows(3).any(|it| it == [add, "fence.acq_rel.sys", add]);
        assert!(is_counted, "{architecture}: {found:?}");
        let end = found.iter().rposition(|it| it.starts_with("st.volatile")).expect("a mark");
        assert_eq!(found[end - 1], "fence.acq_rel.sys", "{architecture}: {found:?}");
        assert!(found[end - 2].starts_with("st.volatile"), "{architecture}: {found:?}");
        for it in found.iter().filter(|it| it.starts_with("atom.")) {
            assert_eq!(*it, "atom.relaxed.gpu.global.add.u64", "{architecture}: {found:?}");
        }
    }
}

/// A panic's report is visible before the record is marked complete, and written only after the record is claimed.
#[test]
fn a_panic_claims_its_record_and_then_fills_it() {
    let claim = "atom.relaxed.gpu.global.cas.b32";
    for (architecture, lines) in functions_with(kernels::reports::kernel(), claim) {
        let found = ordered(&lines);
        let at = found.iter().position(|it| *it == claim).expect("it is there");
        assert_eq!(found[at + 1], "fence.acq_rel.sys", "{architecture}: {found:?}");
        let end = found.iter().rposition(|it| it.starts_with("st.volatile")).expect("a mark");
        assert_eq!(found[end - 1], "fence.acq_rel.sys", "{architecture}: {found:?}");
        // The device's panic counter is incremented before.
        assert!(found[..at].contains(&"red.relaxed.gpu.global.add.u64"), "{architecture}: {found:?}");
    }
}
