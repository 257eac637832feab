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
    for (_, lines) in code(kernels::product::kernel::<bf16>()).into_iter().filter(|(it, _)| *it == "sm_75") {
        assert_eq!(
            ["mma.sync", "ldmatrix", "cp.async"].map(|word| count(&lines, word)),
            [0; 3],
            "{lines:#?}"
        );
    }
}
