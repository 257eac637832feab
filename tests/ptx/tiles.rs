//! Facts about products of tiles: `wgmma` for `sm_90a`, nothing in local memory.

use ferrogrid::__private::Kernel;
use ferrogrid::device::half::{bf16, f16};
use ferrogrid::device::narrow::{f8e4m3, f8e5m2};

use crate::{code, count, images};

#[ferrogrid::module]
mod kernels {
    use atomic::{AtomicLoadStore, Ordering::Relaxed};
    use ferrogrid::device::half::{HalfFloat, bf16, f16};
    use ferrogrid::device::matrix::{
        AddedTiles, HalfElement, MatrixElement, PairStep, PairedFactors, PairedPlace, PairedProducts,
        ProductElement, ProductSums, Products, TiledFactor, TwicePlace, TwoProducts,
    };
    use ferrogrid::device::narrow::{f8e4m3, f8e5m2, tf32};
    use ferrogrid::device::prelude::*;

    /// A long function of each sum.
    #[matmul(factors = bf16, transpose_b)]
    pub fn layer(sum: f32, #[column] bias: &f32, residual: &bf16) -> bf16 {
        let x = sum + bias;
        let u = x * (0.071_354_816 * x * x + 1.595_769);
        bf16::from_f32(x.fast_div(1.0 + (-u).fast_exp()) + residual.to_f32())
    }

    /// c <- a b^T, of multiples of 128 and `N` rows. `c` has pairs.
    #[inline(always)]
    #[kernel(block = 384, min_blocks = 1, T = [bf16, f16], N = [32, 64, 128, 256])]
    pub fn product<T: HalfElement, const N: usize>(
        t: Thread<1>,
        a: TensorMap<T, 64, 128>,
        b: TensorMap<T, 64, N>,
        c: &[DeviceAtomic<u32>],
        memory: Shared<Products<T, 128, N, 4>>,
    ) {
        multiply(&t, [a.height(), b.height()], a, b, c, memory);
    }

    /// c <- a b^T of elements of one byte, of 128 and 256 rows.
    #[inline(always)]
    #[kernel(block = 384, min_blocks = 1, T = [i8, u8, f8e4m3, f8e5m2])]
    pub fn bytes<T: ProductElement<Sum: AtomicLoadStore>>(
        t: Thread<1>,
        a: TensorMap<T, 128, 128>,
        b: TensorMap<T, 128, 256>,
        c: &[DeviceAtomic<<T as MatrixElement>::Sum>],
        memory: Shared<Products<T, 128, 256, 4>>,
    ) {
        multiply_one(&t, a, b, c, memory);
    }

    /// As `bytes`, of elements of four.
    #[inline(always)]
    #[kernel(block = 384, min_blocks = 1)]
    pub fn words(
        t: Thread<1>,
        a: TensorMap<tf32, 32, 128>,
        b: TensorMap<tf32, 32, 256>,
        c: &[DeviceAtomic<f32>],
        memory: Shared<Products<tf32, 128, 256, 4>>,
    ) {
        multiply_one(&t, a, b, c, memory);
    }

    /// c <- a b^T, of 128 and 256 rows.
    #[inline(always)]
    fn multiply_one<T: ProductElement<Sum: AtomicLoadStore>, const ID: usize>(
        t: &Thread<1>,
        a: impl TiledFactor<T>,
        b: impl TiledFactor<T>,
        c: &[DeviceAtomic<<T as MatrixElement>::Sum>],
        memory: Shared<Products<T, 128, 256, 4>, ID>,
    ) {
        t.multiply_tiles(memory, a, b, [[0, 0]], |_, sums| {
            sums.for_each_pair(|row, column, pair| {
                for (sum, column) in pair.into_iter().zip(column..) {
                    if let Some(c) = c.get(row * 256 + column) {
                        c.store(sum, Relaxed);
                    }
                }
            });
        });
    }

    /// c <- the largest sum of each warp in a b^T, of 128 and 256 rows.
    #[inline(always)]
    #[kernel(block = 384, min_blocks = 1)]
    pub fn largest_of_warps(
        t: Thread<1>,
        a: TensorMap<bf16, 64, 128>,
        b: TensorMap<bf16, 64, 256>,
        c: &[DeviceAtomic<u32>],
        memory: Shared<Products<bf16, 128, 256, 4>>,
    ) {
        t.multiply_tiles(memory, a, b, [[0, 0]], |_, sums| {
            let mut largest = 0.0_f32;
            sums.for_each_pair(|_, _, pair| largest = largest.max(pair[0]).max(pair[1]));
            let largest = t.warp().reduce(largest, f32::max);
            if let Some(c) = c.get(t.thread_rank() as usize / 32) {
                c.store(largest.to_bits(), Relaxed);
            }
        });
    }

    /// c <- a^T b, of multiples of 128 and `N` columns.
    #[inline(always)]
    #[kernel(block = 384, min_blocks = 1, T = [bf16], N = [128, 256])]
    pub fn transposed<T: HalfElement, const N: usize>(
        t: Thread<1>,
        a: TensorMap<T, 64, 64>,
        b: TensorMap<T, 64, 64>,
        c: &[DeviceAtomic<u32>],
        memory: Shared<Products<T, 128, N, 4>>,
    ) {
        multiply(&t, [a.width(), b.width()], a.transposed(), b.transposed(), c, memory);
    }

    /// (p - q) c of 128 rows and a multiple of 64 others, with p = a c^T and q = b d^T.
    #[inline(always)]
    fn multiply_pairs<const ID: usize>(
        t: &Thread<1>,
        [left, right]: [[TensorMap<bf16, 64, 64>; 2]; 2],
        y: &[DeviceAtomic<u32>],
        memory: Shared<PairedProducts<bf16, 128, 64, 64, 4>, ID>,
    ) {
        let row = t.block_idx()[0] as usize * 128;
        let differences = |_: PairStep<64>, p: &ProductSums<64>, q: &mut ProductSums<64>| {
            q.zip_places(p, |_, _, [q, p]| p - q)
        };
        let steps = right[0].height() / 64;
        let factors = PairedFactors { left, right, row, steps, values: None, added: () };
        let places = |step| PairedPlace::of_row(step * 64);
        t.multiply_pairs(memory, factors, places, |_, _| (), differences, |[sums]| store(row, &sums, y));
    }

    /// A block begins with all registers.
    #[inline(always)]
    #[kernel(block = 384, min_blocks = 1)]
    pub fn pairs(
        t: Thread<1>,
        a: TensorMap<bf16, 64, 64>,
        b: TensorMap<bf16, 64, 64>,
        c: TensorMap<bf16, 64, 64>,
        d: TensorMap<bf16, 64, 64>,
        y: &[DeviceAtomic<u32>],
        memory: Shared<PairedProducts<bf16, 128, 64, 64, 4>>,
    ) {
        multiply_pairs(&t, [[a, b], [c, d]], y, memory);
    }

    /// y <- y + (p - q)^T a, with the sums of `pairs`.
    #[inline(always)]
    #[kernel(block = 384, min_blocks = 1)]
    pub fn added_pairs(
        t: Thread<1>,
        a: TensorMap<bf16, 64, 64>,
        b: TensorMap<bf16, 64, 64>,
        c: TensorMap<bf16, 64, 64>,
        d: TensorMap<bf16, 64, 64>,
        values: TensorMap<f32, 64, 2>,
        y: TensorMapMut<f32, 32, 16>,
        memory: Shared<PairedProducts<bf16, 128, 64, 128, 3, AddedTiles<bf16, 128, 64, 128>>>,
    ) {
        let (row, steps) = (t.block_idx()[0] as usize * 128, c.height() / 64);
        let factors =
            PairedFactors { left: [a, b], right: [c, d], row, steps, values: Some(values), added: &y };
        let differences = |step: PairStep<64>, p: &ProductSums<64>, q: &mut ProductSums<64>| {
            q.zip_places(p, |_, column, [q, p]| p - q * step.value(1, column));
        };
        let places = |step| PairedPlace::of_row(step * 64);
        t.multiply_pairs(memory, factors, places, |_, _| (), differences, |[_]| ());
    }

    /// A block may begin with fewer registers.
    #[inline(always)]
    #[kernel(block = 384)]
    pub fn pairs_beside_others(
        t: Thread<1>,
        a: TensorMap<bf16, 64, 64>,
        b: TensorMap<bf16, 64, 64>,
        c: TensorMap<bf16, 64, 64>,
        d: TensorMap<bf16, 64, 64>,
        y: &[DeviceAtomic<u32>],
        memory: Shared<PairedProducts<bf16, 128, 64, 64, 4>>,
    ) {
        multiply_pairs(&t, [[a, b], [c, d]], y, memory);
    }

    /// `first`(a b^T) c of 128 rows, where the sums are doubled before each tile.
    #[inline(always)]
    fn multiply_twice<const ID: usize>(
        t: &Thread<1>,
        [a, b, c]: [TensorMap<bf16, 64, 64>; 3],
        y: &[DeviceAtomic<u32>],
        memory: Shared<TwoProducts<bf16, 128, 64, 64, 4>, ID>,
        first: impl Fn(usize, f32) -> f32,
    ) {
        let row = t.block_idx()[0] as usize * 128;
        let steps = b.height() / 64;
        let first = |_: &mut (), step: usize, units: &mut ProductSums<64>| {
            units.map_places(|_, _, unit| first(step, unit));
        };
        let second = |_: &mut (), sums: &mut ProductSums<64>| sums.map_places(|_, _, sum| sum + sum);
        let finish = |(), sums| store(row, &sums, y);
        t.multiply_twice(memory, [a, b, c], [row, 0], steps, (), first, second, finish);
    }

    /// Stores sums as rows from `row` on.
    #[inline(always)]
    fn store(row: usize, sums: &ProductSums<64>, y: &[DeviceAtomic<u32>]) {
        sums.for_each_pair(|i, j, pair| {
            if let Some(y) = y.get(((row + i) * 64 + j) / 2) {
                y.store(bf16::pair_to_bits(pair), Relaxed);
            }
        });
    }

    #[inline(always)]
    #[kernel(block = 384, min_blocks = 1)]
    pub fn twice(
        t: Thread<1>,
        a: TensorMap<bf16, 64, 64>,
        b: TensorMap<bf16, 64, 64>,
        c: TensorMap<bf16, 64, 64>,
        y: &[DeviceAtomic<u32>],
        memory: Shared<TwoProducts<bf16, 128, 64, 64, 4>>,
    ) {
        multiply_twice(&t, [a, b, c], y, memory, |_, unit| unit.max(0.0));
    }

    /// The first closure may panic.
    #[inline(always)]
    #[kernel(block = 384, min_blocks = 1)]
    pub fn twice_at_most(
        t: Thread<1>,
        a: TensorMap<bf16, 64, 64>,
        b: TensorMap<bf16, 64, 64>,
        c: TensorMap<bf16, 64, 64>,
        most: u32,
        y: &[DeviceAtomic<u32>],
        memory: Shared<TwoProducts<bf16, 128, 64, 64, 4>>,
    ) {
        multiply_twice(&t, [a, b, c], y, memory, |step, unit| {
            assert!(step < most as usize, "too many steps");
            unit.max(0.0)
        });
    }

    /// (a b^T - the greatest of each row in a tile) c, of 128 rows after the other: closures that exchange numbers in a warp.
    #[inline(always)]
    #[kernel(block = 384, min_blocks = 1)]
    pub fn places(
        t: Thread<1>,
        a: TensorMap<bf16, 64, 64>,
        b: TensorMap<bf16, 64, 64>,
        c: TensorMap<bf16, 64, 64>,
        y: &[DeviceAtomic<u32>],
        memory: Shared<TwoProducts<bf16, 128, 64, 64, 4>>,
    ) {
        let (steps, warp) = (b.height() / 64, t.warp());
        let tiles = (t.block_idx()[0]..a.height() as u32 / 128).step_by(t.grid_dim()[0].max(1) as usize);
        let places =
            tiles.map(|tag| TwicePlace { row: tag as usize * 128, steps, tag, ..Default::default() });
        let first = |_: &mut u32, _, units: &mut ProductSums<64>| {
            let greatest = units.reduce_rows(&warp, f32::max);
            units.map_rows(&greatest, |unit, greatest| unit - greatest);
        };
        let finish = |tag: u32, sums| store(tag as usize * 128, &sums, y);
        t.multiply_tiles_twice(memory, [a, b, c], places, |tag| tag, first, |_, _| (), finish);
    }

    #[inline(always)]
    fn multiply<T: HalfElement, const N: usize, const ID: usize>(
        t: &Thread<1>,
        [height, width]: [usize; 2],
        a: impl TiledFactor<T>,
        b: impl TiledFactor<T>,
        c: &[DeviceAtomic<u32>],
        memory: Shared<Products<T, 128, N, 4>, ID>,
    ) {
        let (down, across) = (height / 128, width / N);
        let (first, step) = (t.block_idx()[0] as usize, t.grid_dim()[0] as usize);
        let tiles = (first..down * across).step_by(step).map(|tile| [tile % down * 128, tile / down * N]);
        t.multiply_tiles(memory, a, b, tiles, |[row, column], sums| {
            sums.for_each_pair(|i, j, pair| {
                if let Some(c) = c.get(((row + i) * width + column + j) / 2) {
                    let [left, right] = pair.map(|sum| u32::from(T::from_f32(sum).to_bits()));
                    c.store(left | right << 16, Relaxed);
                }
            });
        });
    }
}

/// Checks the code of a product with `columns` columns, whose tiles are copied in `copies` parts.
fn check(kernel: &'static Kernel, columns: usize, copies: usize) {
    for (architecture, lines) in code(kernel) {
        let words = ["wgmma.mma_async", "cp.async.bulk.tensor", "mma.sync", ".local"];
        let found = words.map(|word| count(&lines, word));
        // The first products of a tile set the sums, those in the loop add to them.
        let expected = match architecture {
            "sm_75" => [0, 0, 0, 0],
            "sm_90a" => [8, copies, 0, 0],
            // LLVM may unroll the four steps of a tile.
            _ => [0, 0, if found[2] == columns / 2 { columns / 2 } else { columns / 8 }, 0],
        };
        assert_eq!(found, expected, "{architecture}, {columns} columns: {lines:#?}");
        // The hardware reads tensor maps at multiples of 64 bytes.
        let maps =
            lines.iter().filter(|line| line.starts_with(".param .align 64 .b8") && line.contains("[128]"));
        assert_eq!(maps.count(), 2, "{architecture}: {lines:#?}");
        let shape = format!("wgmma.mma_async.sync.aligned.m64n{columns}k16.f32");
        assert_eq!(count(&lines, &shape), found[0], "{architecture}");
    }
}

#[test]
fn products_of_blocks_are_in_registers() {
    check(kernels::product::kernel::<bf16, 32>(), 32, 2);
    check(kernels::product::kernel::<bf16, 64>(), 64, 2);
    check(kernels::product::kernel::<f16, 128>(), 128, 2);
    check(kernels::product::kernel::<bf16, 256>(), 256, 2);
    check(kernels::product::kernel::<f16, 256>(), 256, 2);
    check(kernels::transposed::kernel::<bf16, 128>(), 128, 4);
    check(kernels::transposed::kernel::<bf16, 256>(), 256, 6);
}

/// Of 32 bytes of a row at a time, whatever the elements are.
#[test]
fn products_of_other_elements_are_in_registers_too() {
    let kernels = [
        (kernels::bytes::kernel::<i8>(), "k32.s32.s8.s8"),
        (kernels::bytes::kernel::<u8>(), "k32.s32.u8.u8"),
        (kernels::bytes::kernel::<f8e4m3>(), "k32.f32.e4m3.e4m3"),
        (kernels::bytes::kernel::<f8e5m2>(), "k32.f32.e5m2.e5m2"),
        (kernels::words::kernel(), "k8.f32.tf32.tf32"),
    ];
    for (kernel, form) in kernels {
        for (architecture, lines) in code(kernel) {
            let form = format!("wgmma.mma_async.sync.aligned.m64n256{form}");
            let found = [&form, "wgmma.mma_async", ".local"].map(|word| count(&lines, word));
            let expected = if architecture == "sm_90a" { [8, 8, 0] } else { [0, 0, 0] };
            assert_eq!(found, expected, "{architecture}: {lines:#?}");
        }
    }
}

/// The first products, of each step those by rounded sums, and those of the next step.
#[test]
fn third_products_are_added_at_once() {
    for (architecture, lines) in code(kernels::added_pairs::kernel()) {
        let words = [
            "wgmma.mma_async",
            "setmaxnreg",
            "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add",
            "ld.shared.v2.f32",
        ];
        let found = words.map(|word| count(&lines, word));
        // Pairs before and in the loop, what they make, and third products in the loop and behind it. Values of two columns are read at once.
        let expected = if architecture == "sm_90a" { [2 * 2 * 8 + 4 + 2 * 8, 2, 4, 8] } else { [0; 4] };
        assert_eq!(found, expected, "{architecture}: {lines:#?}");
    }
}

#[test]
fn pairs_of_products_share_registers_if_a_block_has_all() {
    for (kernel, shared) in [(kernels::pairs::kernel(), 2), (kernels::pairs_beside_others::kernel(), 0)] {
        for (architecture, lines) in code(kernel) {
            let found = ["wgmma.mma_async", "setmaxnreg"].map(|word| count(&lines, word));
            let expected = if architecture == "sm_90a" { [8 + 4 + 8, shared] } else { [0, 0] };
            assert_eq!(found, expected, "{architecture}: {lines:#?}");
        }
    }
}

/// So its operations are not checked: a check calls a function that panics.
#[test]
fn warps_are_whole_in_the_closure_of_a_product() {
    for (architecture, lines) in code(kernels::largest_of_warps::kernel()) {
        let calls = lines.iter().filter(|line| line.starts_with("call")).count();
        assert_eq!(calls, 0, "{architecture}: {lines:#?}");
    }
}

/// A thread that panics beside products in flight is an error to compute-sanitizer.
#[test]
fn a_second_product_is_in_flight_beside_a_closure_that_cannot_panic() {
    for (kernel, in_flight) in [(kernels::twice::kernel(), 1), (kernels::twice_at_most::kernel(), 0)] {
        for (architecture, lines) in code(kernel) {
            let waits = lines.iter().filter(|line| line.starts_with("wgmma.wait_group.sync.aligned 1;"));
            let found = [waits.count(), count(&lines, "setmaxnreg.inc")];
            let expected = if architecture == "sm_90a" { in_flight } else { 0 };
            assert_eq!(found, [expected; 2], "{architecture}: {lines:#?}");
        }
    }
}

/// ptxas would wait for the second product before the closure's work, as nothing of that depends on it.
#[test]
fn a_closure_has_computed_its_sums_before_the_wait_for_the_second_product() {
    for (architecture, lines) in code(kernels::twice::kernel()) {
        if architecture == "sm_90a" {
            let after = |start: usize, part: &str| {
                start + lines[start..].iter().position(|line| line.contains(part)).expect(part)
            };
            let of_first = after(0, "wgmma.wait_group.sync.aligned 1;");
            let [settled, of_second] =
                ["@%never st.shared", "wgmma.wait_group.sync.aligned 0;"].map(|part| after(of_first, part));
            assert!(settled < of_second, "{lines:#?}");
        }
    }
}

/// Where lanes might be missing, the closures would panic, and the registers stay with the threads that copy.
#[test]
fn warps_are_whole_at_all_places() {
    for (architecture, lines) in code(kernels::places::kernel()) {
        let found = ["wgmma.mma_async", "setmaxnreg"].map(|word| count(&lines, word));
        // Each product is in the code twice: before and in the loop over steps, in it and behind it.
        let expected = if architecture == "sm_90a" { [2 * 4 + 2 * 4, 2] } else { [0, 0] };
        assert_eq!(found, expected, "{architecture}: {lines:#?}");
    }
}

/// Calls are those to panic.
#[test]
fn functions_of_sums_are_inlined() {
    for (architecture, ptx) in images(kernels::words::kernel()) {
        for tile in ["large", "small", "narrow"] {
            let start = ptx.find(&format!(".entry layer_{tile}_")).expect("the entry is in the PTX");
            let end = start + ptx[start..].find("\n}").expect("the entry ends");
            let lines: Vec<&str> = ptx[start..end].lines().map(str::trim).collect();
            assert_eq!(count(&lines, ".local"), 0, "{architecture}, {tile}");
            let calls = lines.iter().filter(|line| line.starts_with("call") && !line.contains("panic"));
            assert_eq!(calls.count(), 0, "{architecture}, {tile}");
            let products = count(&lines, "wgmma.mma_async");
            assert_eq!(products, if architecture == "sm_90a" { 8 } else { 0 }, "{architecture}, {tile}");
        }
    }
}
