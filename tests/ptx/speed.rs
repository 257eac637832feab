//! Facts that determine the speed of kernels: 32-bit indices, no bounds checks in loops, unrolled loops, and
//! the instructions that mattered in the benches against CUDA C++.

use super::{code, count};

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;
    use ferrogrid::device::random::Philox4x32;

    #[kernel]
    pub fn saxpy(t: Thread<1>, a: f32, x: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index();
        if let (Some(y), Some(x)) = (y.get_mut(i), x.get(i.get())) {
            *y = a.mul_add(*x, *y);
        }
    }

    #[kernel(wide)]
    pub fn wide_saxpy(t: Thread<1>, a: f32, x: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index();
        if let (Some(y), Some(x)) = (y.get_mut(i), x.get(i.get())) {
            *y = a.mul_add(*x, *y);
        }
    }

    #[kernel(block = [16, 16])]
    pub fn product(t: Thread<2>, n: usize, a: &[f32], b: &[f32], mut c: DisjointSlice<f32, 2>) {
        let [column, row] = t.index().position();
        let (Some(a), Some(b)) = (Plane::new(a, n, n), Plane::new(b, n, n)) else { return };
        if column >= n || row >= n {
            return;
        }
        let mut sum = 0.0;
        for k in 0..n {
            sum = a[row][k].mul_add(b[k][column], sum);
        }
        if let Some(c) = c.get_mut(t.index()) {
            *c = sum;
        }
    }

    #[kernel(block = [32, 8])]
    pub fn stencil(t: Thread<2>, x: Plane<f32>, mut y: DisjointSlice<f32, 2>) {
        let i = t.index();
        let (width, height, column, row) = (x.width(), x.height(), i.x(), i.y());
        let (Some(y), Some(&own)) = (y.get_mut(i), x.get(row, column)) else { return };
        let is_inside = column > 0 && row > 0 && column + 1 < width && row + 1 < height;
        *y = if is_inside {
            x[row - 1][column] + x[row][column - 1] + x[row][column + 1] + x[row + 1][column] + own
        } else {
            own
        };
    }

    /// Slices of equal shape, which in C++ share one length.
    #[kernel(same_shape(a, b, c))]
    pub fn sums(t: Thread<1>, a: &[f32], b: &[f32], mut c: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(c) = c.get_mut(i) {
            *c = a[i.get()] + b[i.get()];
        }
    }

    #[kernel(block = [32, 8], same_shape(x, y))]
    pub fn smooth(t: Thread<2>, x: Plane<f32>, mut y: DisjointSlice<f32, 2>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y = x[i.y()][i.x()];
        }
    }

    #[kernel(block = [32, 8])]
    pub fn transpose(
        t: Thread<2>,
        input: Plane<f32>,
        mut output: DisjointTiles<f32, 32, 32>,
        mut tile: Shared<Padded<f32, 32, 32>>,
    ) {
        let [first_row, first_column] = t.block_idx().map(|it| (it * 32) as usize);
        tile.fill_with(&t, |[i, j]| input.get(first_row + i, first_column + j).copied().unwrap_or(0.0));
        let tile = t.publish(tile);
        output.fill_with(&t, |[row, column]| tile[(column - first_row) % 32][(row - first_column) % 32]);
    }

    /// Each thread reads all elements of its block.
    #[kernel(block = 256, min_blocks = 1)]
    pub fn nearest(
        t: Thread<1>,
        x: &[f32],
        mut least: DisjointSlice<f32>,
        mut tile: Shared<[Aligned16<[f32; 4]>; 256]>,
    ) {
        let own = x.get(t.index().get()).copied().unwrap_or(0.0);
        tile.fill_with(&t, |_| Aligned16::new([own; 4]));
        let tile = t.publish(tile);
        let mut nearest = f32::INFINITY;
        for k in 0..256 {
            let [a, b, c, d] = tile[k].into_inner();
            nearest = nearest.min((a - own).abs() + (b - own).abs() * (c - own).abs() * (d - own).abs());
        }
        if let Some(least) = least.get_mut(t.index()) {
            *least = nearest;
        }
    }

    #[kernel(block = 256)]
    pub fn greatest(t: Thread<1>, x: &[f32], mut rows: DisjointRows<f32>, mut scratch: Shared<Scratch<f32>>) {
        let own = t.block_stride(x.len()).fold(f32::NEG_INFINITY, |greatest, i| greatest.max(x[i]));
        let greatest = t.block_reduce(&mut scratch, own, f32::max);
        rows.fill_with(&t, |_| greatest);
    }

    #[kernel(block = 256)]
    pub fn histogram(
        t: Thread<1>,
        data: &[u8],
        counts: &[DeviceAtomic<u32>],
        mut bins: Shared<[DeviceAtomic<u32, atomic::Block>; 256]>,
    ) {
        bins.fill_with(&t, |_| DeviceAtomic::new(0));
        let bins = t.publish(bins);
        for i in t.grid_stride(data.len()) {
            bins[data[i.get()] as usize].fetch_add(1, atomic::Ordering::Relaxed);
        }
        t.sync_threads();
        let bin = t.thread_rank() as usize;
        counts[bin].fetch_add(bins[bin].load(atomic::Ordering::Relaxed), atomic::Ordering::Relaxed);
    }

    #[kernel]
    pub fn philox(t: Thread<1>, seed: u64, mut out: DisjointSlice<Aligned16<[u32; 4]>>) {
        let i = t.index();
        if let Some(out) = out.get_mut(i) {
            *out = Aligned16::new(Philox4x32::new(seed, i.get() as u64, 0).next_u32x4());
        }
    }
}

/// The bodies of the loops without a branch inside: from a label to the branch back to it.
fn simple_loops<'l, 't>(lines: &'l [&'t str]) -> Vec<&'l [&'t str]> {
    let ends = |at: usize| lines[at].contains("bra");
    let starts = (0..lines.len()).filter(|&at| lines[at].starts_with("$L") && lines[at].ends_with(':'));
    let bodies = starts.filter_map(|start| {
        let end = (start + 1..lines.len()).find(|&at| ends(at))?;
        let is_back = lines[end].contains(&format!("{};", lines[start].trim_end_matches(':')));
        is_back.then_some(&lines[start..end])
    });
    bodies.collect()
}

/// Comparisons and products of 64 bits.
fn wide_instructions<'t>(lines: &[&'t str]) -> Vec<&'t str> {
    let wide = [
        "setp.lt.u64",
        "setp.ge.u64",
        "setp.le.u64",
        "setp.gt.u64",
        "setp.eq.b64",
        "mul.lo.s64",
        "mad.lo.s64",
    ];
    lines.iter().filter(|line| wide.iter().any(|it| line.contains(it))).copied().collect()
}

#[test]
fn indices_and_lengths_have_32_bits() {
    for kernel in [kernels::saxpy::kernel(), kernels::histogram::kernel(), kernels::philox::kernel()] {
        for (architecture, lines) in code(kernel) {
            let wide = wide_instructions(&lines);
            assert!(wide.is_empty(), "{architecture}, {}: {wide:#?}", kernel.name());
        }
    }
    for (architecture, lines) in code(kernels::wide_saxpy::kernel()) {
        assert!(!wide_instructions(&lines).is_empty(), "{architecture}: {lines:#?}");
    }
}

/// A comparison with null would convert one more address than there are parameters.
#[test]
fn an_existing_element_is_not_compared_with_null() {
    for (kernel, slices) in
        [(kernels::product::kernel(), 3), (kernels::stencil::kernel(), 2), (kernels::saxpy::kernel(), 2)]
    {
        for (architecture, lines) in code(kernel) {
            let converted = count(&lines, "cvta.to.global");
            assert_eq!(converted, slices, "{architecture}, {}: {lines:#?}", kernel.name());
        }
    }
}

#[test]
fn a_sum_over_planes_is_unrolled_and_checks_no_bounds() {
    for (architecture, lines) in code(kernels::product::kernel()) {
        let loops = simple_loops(&lines);
        let unrolled: Vec<_> = loops.iter().filter(|body| count(body, "fma.rn.f32") == 8).collect();
        assert_eq!(unrolled.len(), 1, "{architecture}: {lines:#?}");
        let body = unrolled[0];
        assert_eq!(count(body, "ld.global.nc"), 16, "{architecture}: {body:#?}");
        assert_eq!(count(body, "setp."), 1, "the end of the loop; {architecture}: {body:#?}");
        assert_eq!(count(&lines, "call"), 0, "nothing can panic; {architecture}: {lines:#?}");
    }
}

#[test]
fn a_stencil_inside_of_a_plane_checks_no_bounds() {
    for (architecture, lines) in code(kernels::stencil::kernel()) {
        assert_eq!(count(&lines, "ld.global.nc"), 5, "{architecture}: {lines:#?}");
        assert_eq!(count(&lines, "call"), 0, "nothing can panic; {architecture}: {lines:#?}");
        // Whether the thread is in each of the two planes, and whether it is inside.
        assert!(count(&lines, "setp.") <= 8, "{architecture}: {lines:#?}");
        // The row above, and whether there are a row below and a column to the right.
        let wide = wide_instructions(&lines);
        assert!(wide.len() <= 3, "{architecture}: {wide:#?}");
    }
}

#[test]
fn slices_of_the_same_shape_are_checked_once() {
    for (kernel, checks) in [(kernels::sums::kernel(), 1), (kernels::smooth::kernel(), 2)] {
        for (architecture, lines) in code(kernel) {
            assert_eq!(count(&lines, "setp."), checks, "{architecture}, {}: {lines:#?}", kernel.name());
            assert_eq!(count(&lines, "call"), 0, "nothing can panic; {architecture}: {lines:#?}");
        }
    }
}

#[test]
fn places_in_tiles_have_32_bits() {
    for (architecture, lines) in code(kernels::transpose::kernel()) {
        // A block as wide as a tile divides nothing to find its row and column.
        assert_eq!(count(&lines, "shr.") + count(&lines, "div."), 0, "{architecture}: {lines:#?}");
        let compared = lines.iter().filter(|line| line.starts_with("setp.") && line.contains("64"));
        assert_eq!(compared.count(), 0, "{architecture}: {lines:#?}");
    }
}

#[test]
fn a_loop_over_shared_memory_counts_in_32_bits() {
    for (architecture, lines) in code(kernels::nearest::kernel()) {
        let loops = simple_loops(&lines);
        assert_eq!(loops.len(), 1, "{architecture}: {lines:#?}");
        assert!(count(loops[0], "ld.shared.v") > 1, "{architecture}: {lines:#?}");
        assert_eq!(count(loops[0], "setp.ne.b32"), 1, "{architecture}: {lines:#?}");
    }
}

#[test]
fn a_loop_of_a_block_over_a_slice_is_unrolled_and_checks_no_bounds() {
    for (architecture, lines) in code(kernels::greatest::kernel()) {
        let loops = simple_loops(&lines);
        let unrolled: Vec<_> = loops.iter().filter(|body| count(body, "ld.global.nc") == 8).collect();
        assert_eq!(unrolled.len(), 1, "{architecture}: {lines:#?}");
        assert_eq!(count(unrolled[0], "setp."), 1, "the end of the loop; {architecture}: {lines:#?}");
    }
}

#[test]
fn shared_memory_is_reached_without_generic_addresses() {
    for kernel in [kernels::greatest::kernel(), kernels::histogram::kernel()] {
        for (architecture, lines) in code(kernel) {
            assert_eq!(count(&lines, "cvta.to.shared"), 0, "{architecture}, {}: {lines:#?}", kernel.name());
            let generic = lines.iter().filter(|line| line.starts_with("ld.b") || line.starts_with("st.b"));
            assert_eq!(generic.count(), 0, "{architecture}, {}: {lines:#?}", kernel.name());
        }
    }
}

#[test]
fn a_round_of_philox_is_two_products_in_two_halves() {
    for (architecture, lines) in code(kernels::philox::kernel()) {
        assert_eq!(count(&lines, "mul.hi.u32"), 20, "{architecture}: {lines:#?}");
        // A product of a constant 0 is not computed.
        assert_eq!(count(&lines, "mul.lo.s32"), 19, "{architecture}: {lines:#?}");
    }
}
