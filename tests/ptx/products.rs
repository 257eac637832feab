//! Facts about products of matrices: nothing of them goes to local memory, and their memory is reached as what it is.

use ferrogrid::device::half::{bf16, f16};

use crate::{code, count};

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
