//! Facts about products of matrices: nothing of them goes to local memory, and their memory is reached as what it is.

use ferrogrid::device::half::{bf16, f16};
use ferrogrid::device::narrow::{f8e4m3, f8e5m2, tf32};

use crate::{code, count, images};

#[ferrogrid::module]
mod kernels {
    use atomic::Ordering::Relaxed;
    use ferrogrid::device::half::{bf16, f16};
    use ferrogrid::device::matrix::{Accumulator, FragmentA, FragmentB, MatrixElement};
    use ferrogrid::device::prelude::*;

    /// c <- a b^T, of 64 rows each, by one warp.
    #[inline(always)]
    #[kernel(block = 32, T = [bf16, f16])]
    pub fn product<T: MatrixElement<Sum = f32>>(
        t: Thread<1>,
        a: Plane<Aligned16<[T; 8]>>,
        b: Plane<Aligned16<[T; 8]>>,
        c: &[DeviceAtomic<f32>],
        of_a: Shared<Stages<Padded<Aligned16<[T; 8]>, 2, 64>, 3>>,
        of_b: Shared<Stages<Padded<Aligned16<[T; 8]>, 2, 64>, 3>>,
    ) {
        let (mut of_a, mut of_b, warp) = (of_a.into_stages(), of_b.into_stages(), t.warp());
        let mut sums = Accumulator::<T, 4, 8>::zero();
        for step in 0..a.width() / 2 + 2 {
            of_a.copy_with(&t, |[row, k]| a.get(row, step * 2 + k));
            of_b.copy_with(&t, |[row, k]| b.get(row, step * 2 + k));
            if step >= 2 {
                let own_a = FragmentA::load(&warp, of_a.current().rows(), [0, 0]);
                let own_b = FragmentB::load_transposed(&warp, of_b.current().rows(), [0, 0]);
                sums.add_product(&warp, &own_a, &own_b);
            }
            t.advance((&mut of_a, &mut of_b));
        }
        sums.for_each(&warp, |row, column, sum| {
            if let Some(c) = c.get(row * 64 + column) {
                c.store(sum, Relaxed);
            }
        });
    }
}

#[ferrogrid::module(arch = ["sm_75", "sm_80", "sm_90"])]
mod doubles {
    use atomic::Ordering::Relaxed;
    use ferrogrid::device::matrix::{Accumulator, FragmentA, FragmentB};
    use ferrogrid::device::prelude::*;

    type Rows<const N: usize> = Stages<Padded<Aligned16<[f64; 2]>, 4, N, 2>, 3>;

    /// c <- a b^T, of 64 and 32 rows, by one warp.
    #[inline(always)]
    #[kernel(block = 32)]
    pub fn product(
        t: Thread<1>,
        a: Plane<Aligned16<[f64; 2]>>,
        b: Plane<Aligned16<[f64; 2]>>,
        c: &[DeviceAtomic<f64>],
        of_a: Shared<Rows<64>>,
        of_b: Shared<Rows<32>>,
    ) {
        let (mut of_a, mut of_b, warp) = (of_a.into_stages(), of_b.into_stages(), t.warp());
        let mut sums = Accumulator::<f64, 4, 4>::zero();
        for step in 0..a.width() / 4 + 2 {
            of_a.copy_with(&t, |[row, k]| a.get(row, step * 4 + k));
            of_b.copy_with(&t, |[row, k]| b.get(row, step * 4 + k));
            if step >= 2 {
                let own_a = FragmentA::load(&warp, of_a.current().rows(), [0, 0]);
                let own_b = FragmentB::load_transposed(&warp, of_b.current().rows(), [0, 0]);
                sums.add_product(&warp, &own_a, &own_b);
            }
            t.advance((&mut of_a, &mut of_b));
        }
        sums.for_each(&warp, |row, column, sum| {
            if let Some(c) = c.get(row * 32 + column) {
                c.store(sum, Relaxed);
            }
        });
    }
}

#[ferrogrid::module(arch = ["sm_75", "sm_80", "sm_90"])]
mod narrow {
    use atomic::Ordering::Relaxed;
    use ferrogrid::device::matrix::{Accumulator, FragmentA, FragmentB, MatrixElement};
    use ferrogrid::device::narrow::{f8e4m3, f8e5m2, tf32};
    use ferrogrid::device::prelude::*;

    /// c <- a b^T, of 64 and 32 rows and the depth of a fragment.
    #[inline(always)]
    #[kernel(block = 32, T = [tf32, f8e4m3, f8e5m2])]
    pub fn product<T: MatrixElement<Sum = f32> + Default>(
        t: Thread<1>,
        a: Plane<T>,
        b: Plane<T>,
        c: &[DeviceAtomic<f32>],
        mut of_a: Shared<Padded<T, 32, 64, 16>>,
        mut of_b: Shared<Padded<T, 32, 32, 16>>,
    ) {
        of_a.fill_with(&t, |[row, k]| a.get(row, k).copied().unwrap_or_default());
        of_b.fill_with(&t, |[row, k]| b.get(row, k).copied().unwrap_or_default());
        let ((of_a, of_b), warp) = (t.publish((of_a, of_b)), t.warp());
        let mut sums = Accumulator::<T, 4, 4>::zero();
        let own_a = FragmentA::load(&warp, of_a.rows(), [0, 0]);
        let own_b = FragmentB::load_transposed(&warp, of_b.rows(), [0, 0]);
        sums.add_product(&warp, &own_a, &own_b);
        sums.for_each(&warp, |row, column, sum| {
            if let Some(c) = c.get(row * 32 + column) {
                c.store(sum, Relaxed);
            }
        });
    }

    /// y <- x, rounded
    #[kernel]
    pub fn round(t: Thread<1>, x: &[f32], mut y: DisjointSlice<(tf32, f8e4m3, f8e5m2)>) {
        let i = t.index();
        if let (Some(&x), Some(y)) = (x.get(i.get()), y.get_mut(i)) {
            *y = (tf32::from_f32(x), f8e4m3::from_f32(x), f8e5m2::from_f32(x));
        }
    }
}

#[test]
fn products_of_narrow_floats_are_one_instruction() {
    let kernels = [
        (narrow::product::kernel::<tf32>(), "m16n8k8.row.col.f32.tf32.tf32.f32", "sm_80"),
        (narrow::product::kernel::<f8e4m3>(), "m16n8k32.row.col.f32.e4m3.e4m3.f32", "sm_90"),
        (narrow::product::kernel::<f8e5m2>(), "m16n8k32.row.col.f32.e5m2.e5m2.f32", "sm_90"),
    ];
    for (kernel, instruction, first) in kernels {
        for (architecture, lines) in code(kernel) {
            let products = lines.iter().filter(|line| line.contains(instruction)).count();
            let expected = if architecture >= first { [16, 0] } else { [0, 0] };
            let found = [products, if products == 0 { 0 } else { count(&lines, ".local") }];
            assert_eq!(found, expected, "{architecture}, {}: {lines:#?}", kernel.name());
            // 4 parts of 16 rows of `a`, and 2 of twice 8 rows of `b`.
            let is_loaded = count(&lines, "ldmatrix") == 6 || products == 0;
            assert!(is_loaded, "{architecture}, {}: {lines:#?}", kernel.name());
        }
    }
}

/// Drivers before that of CUDA 12.4 do not take 8.4.
#[test]
fn products_of_8_bit_floats_raise_the_version_of_their_module() {
    for (architecture, ptx) in images(narrow::product::kernel::<f8e4m3>()) {
        let has_products = !["sm_75", "sm_80"].contains(&architecture);
        assert_eq!(ptx.contains(".version 8.4"), has_products, "{architecture}");
    }
}

#[test]
fn narrow_floats_are_rounded_by_an_instruction() {
    for (architecture, lines) in code(narrow::round::kernel()) {
        let found = ["cvt.rna.tf32.f32", "cvt.rn.satfinite.e4m3x2.f32", "cvt.rn.satfinite.e5m2x2.f32"]
            .map(|instruction| count(&lines, instruction));
        let expected = match architecture {
            "sm_75" => [0, 0, 0],
            "sm_80" => [1, 0, 0],
            _ => [1, 1, 1],
        };
        assert_eq!(found, expected, "{architecture}: {lines:#?}");
    }
}

/// Of doubles `sm_80` has products of 8 x 4 by 4 x 8 elements only.
#[test]
fn a_product_of_doubles_is_in_registers() {
    for (architecture, lines) in code(doubles::product::kernel()).into_iter().filter(|(it, _)| *it != "sm_75")
    {
        let products = ["m16n8k8.row.col.f64", "m8n8k4.row.col.f64"];
        let found = products.map(|shape| lines.iter().filter(|line| line.contains(shape)).count());
        assert_eq!(
            found,
            if architecture == "sm_80" { [0, 64] } else { [16, 0] },
            "{architecture}: {lines:#?}"
        );
        // 64 + 32 rows of 4 groups, by 32 threads; and 4 elements of each fragment of `a`, 2 of `b`.
        let words = [".local", "ldmatrix", "isspacep.global", "cp.async.cg.shared.global", "ld.shared"];
        assert_eq!(words.map(|word| count(&lines, word)), [0, 0, 0, 12, 24], "{architecture}: {lines:#?}");
    }
}

#[test]
fn a_product_of_many_fragments_is_in_registers() {
    for kernel in [kernels::product::kernel::<bf16>(), kernels::product::kernel::<f16>()] {
        for (architecture, lines) in code(kernel).into_iter().filter(|(it, _)| *it != "sm_75") {
            let found = ["mma.sync", ".local", "isspacep.global", "bar.sync"].map(|word| count(&lines, word));
            assert_eq!(found, [32, 0, 0, 1], "{architecture}: {lines:#?}");
            // 64 rows of 2 elements of 16 bytes each, by 32 threads; and 4 parts for 16 rows of `a`, 4 for 8 rows of `b` twice.
            let from_memory = ["cp.async.cg.shared.global", "ldmatrix"].map(|word| count(&lines, word));
            assert_eq!(from_memory, [8, 8], "{architecture}: {lines:#?}");
            let is_generic = |line: &&&str| line.contains("ldmatrix") && !line.contains(".shared.");
            assert_eq!(lines.iter().find(is_generic), None, "{architecture}");
        }
    }
}

#[test]
fn older_architectures_copy_and_multiply_without_these_instructions() {
    let images = [kernels::product::kernel::<bf16>(), doubles::product::kernel()].map(code);
    for (_, lines) in images.into_iter().flatten().filter(|(it, _)| *it == "sm_75") {
        assert_eq!(
            ["mma.sync", "ldmatrix", "cp.async"].map(|word| count(&lines, word)),
            [0; 3],
            "{lines:#?}"
        );
    }
}
