//! The instructions of 16-bit numbers, for every architecture that the program is compiled for.

use super::{code, count};

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::atomic::Ordering;
    use ferrogrid::device::half::{Bf16x2, F16x2, HalfFloat, bf16, f16};
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn short(
        t: Thread<1>,
        a: f16,
        x: &[f16],
        mut y: DisjointSlice<[f16; 4]>,
        mut less: DisjointSlice<u32>,
    ) {
        let i = t.index();
        let (Some(y), Some(less)) = (y.get_mut(i), less.get_mut(i)) else { return };
        let x = x[i.get()];
        *y = [x + a, x - a, x * a, x.mul_add(a, x)];
        *less = u32::from(x < a);
    }

    #[kernel]
    pub fn converted(t: Thread<1>, x: &[f32], mut y: DisjointSlice<[u16; 2]>, mut back: DisjointSlice<f32>) {
        let i = t.index();
        let (Some(y), Some(back)) = (y.get_mut(i), back.get_mut(i)) else { return };
        *back = f16::from_bits(y[0]).to_f32() + bf16::from_bits(y[1]).to_f32();
        *y = [f16::from_f32(x[i.get()]).to_bits(), bf16::from_f32(x[i.get()]).to_bits()];
    }

    #[kernel]
    pub fn brain(t: Thread<1>, a: bf16, x: &[bf16], mut y: DisjointSlice<[bf16; 4]>) {
        let i = t.index();
        let Some(y) = y.get_mut(i) else { return };
        let x = x[i.get()];
        *y = [x + a, x - a, x * a, x.mul_add(a, x)];
    }

    #[kernel]
    pub fn pairs(t: Thread<1>, a: F16x2, x: &[F16x2], mut y: DisjointSlice<[F16x2; 6]>) {
        let i = t.index();
        let Some(y) = y.get_mut(i) else { return };
        let x = x[i.get()];
        *y = [x + a, x - a, x * a, x.mul_add(a, x), x.max(a), x.min(a)];
    }

    #[kernel]
    pub fn brain_pairs(t: Thread<1>, a: Bf16x2, x: &[Bf16x2], mut y: DisjointSlice<[Bf16x2; 6]>) {
        let i = t.index();
        let Some(y) = y.get_mut(i) else { return };
        let x = x[i.get()];
        *y = [x + a, x - a, x * a, x.mul_add(a, x), x.max(a), x.min(a)];
    }

    #[kernel]
    pub fn packed(t: Thread<1>, x: &[[f32; 2]], mut y: DisjointSlice<[u32; 2]>) {
        let i = t.index();
        let Some(y) = y.get_mut(i) else { return };
        *y = [F16x2::from_f32(x[i.get()]).to_bits(), Bf16x2::from_f32(x[i.get()]).to_bits()];
    }

    #[kernel]
    pub fn approximate(t: Thread<1>, x: &[f16], z: &[bf16], mut y: DisjointSlice<[u16; 4]>) {
        let i = t.index();
        let Some(y) = y.get_mut(i) else { return };
        let (x, z) = (x[i.get()], z[i.get()]);
        let short = [x.fast_exp2(), x.fast_tanh()].map(f16::to_bits);
        let brain = [z.fast_exp2(), z.fast_tanh()].map(bf16::to_bits);
        *y = [short[0], short[1], brain[0], brain[1]];
    }

    #[kernel]
    pub fn atomics(t: Thread<1>, x: &[DeviceAtomic<F16x2>], y: &[DeviceAtomic<Bf16x2>]) {
        let i = t.index().get();
        x[i].fetch_add(F16x2::splat(f16::ONE), Ordering::Relaxed);
        y[i].fetch_add(Bf16x2::splat(bf16::ONE), Ordering::Relaxed);
    }

    /// As in a row of a matrix product: eight numbers at once, four fused operations.
    #[kernel]
    pub fn eight(
        t: Thread<1>,
        a: F16x2,
        x: &[Aligned16<[F16x2; 4]>],
        mut y: DisjointSlice<Aligned16<[F16x2; 4]>>,
    ) {
        let i = t.index();
        let Some(y) = y.get_mut(i) else { return };
        let (x, mut sums) = (x[i.get()], y.into_inner());
        for (sum, x) in sums.iter_mut().zip(x.iter()) {
            *sum = x.mul_add(a, *sum);
        }
        *y = Aligned16::new(sums);
    }
}

/// The number in `sm_90a`.
fn number(architecture: &str) -> u32 {
    let digits: String = architecture.chars().filter(char::is_ascii_digit).collect();
    digits.parse().expect("architectures have numbers")
}

#[track_caller]
fn demand(lines: &[&str], opcode: &str, times: usize) {
    assert_eq!(count(lines, opcode), times, "{opcode}: {lines:#?}");
}

#[test]
fn arithmetic_of_f16_is_one_instruction_each() {
    for (_, lines) in code(kernels::short::kernel()) {
        for opcode in ["add.rn.f16", "sub.rn.f16", "mul.rn.f16", "fma.rn.f16", "setp.lt.f16"] {
            demand(&lines, opcode, 1);
        }
        demand(&lines, "cvt.f32.f16", 0);
    }
}

#[test]
fn conversions_are_the_hardwares() {
    for (architecture, lines) in code(kernels::converted::kernel()) {
        demand(&lines, "cvt.rn.f16.f32", 1);
        // From sm_100 on, a sum takes an `f16` as it is.
        let mixed = usize::from(number(architecture) >= 100);
        demand(&lines, "add.rn.f32.f16", mixed);
        demand(&lines, "cvt.f32.f16", 1 - mixed);
        demand(&lines, "cvt.rn.bf16.f32", usize::from(number(architecture) >= 80));
    }
}

#[test]
fn arithmetic_of_bf16_is_the_hardwares_where_it_has_some() {
    for (architecture, lines) in code(kernels::brain::kernel()) {
        let (sums, fused) = match number(architecture) {
            90.. => (1, 1),
            80.. => (0, 4),
            _ => (0, 0),
        };
        for opcode in ["add.rn.bf16", "sub.rn.bf16", "mul.rn.bf16"] {
            demand(&lines, opcode, sums);
        }
        demand(&lines, "fma.rn.bf16", fused);
    }
}

/// `x * 1 + y`, `x * -1 + y` and `x * y + -0`, which keeps the sign of a zero, where a sum or a product is made of both.
#[test]
fn neutral_operands_of_a_fused_operation_are_one_minus_one_and_minus_zero() {
    let words = |bits: u16| (i32::from(bits as i16), (u32::from(bits) << 16 | u32::from(bits)) as i32);
    for (single, pair) in [0x3F80, 0xBF80, 0x8000].map(words) {
        let singles = code(kernels::brain::kernel()).into_iter().map(|it| (it, format!(", {single};")));
        let pairs = code(kernels::brain_pairs::kernel()).into_iter().map(|it| (it, format!(", {pair};")));
        for ((architecture, lines), constant) in singles.chain(pairs) {
            let moved = lines.iter().filter(|line| line.starts_with("mov.b") && line.ends_with(&constant));
            let fuses = (80..90).contains(&number(architecture));
            assert_eq!(moved.count(), usize::from(fuses), "{constant} for {architecture}: {lines:#?}");
        }
    }
}

/// What a fused operation by a constant multiplies, and what it adds.
fn fused<'l>(lines: &[&'l str], constant: i32) -> [&'l str; 2] {
    let end = format!(", {constant};");
    let moved =
        lines.iter().find(|line| line.starts_with("mov.b") && line.ends_with(&end)).expect("a constant");
    let register = moved.split_whitespace().nth(1).expect("a register").trim_end_matches(',');
    let operands = |line: &&'l str| {
        let operands: Vec<&str> =
            line.strip_prefix("fma.rn.bf16")?.trim_end_matches(';').split(", ").collect();
        (operands.get(2) == Some(&register)).then(|| [operands[1], operands[3]])
    };
    lines.iter().find_map(operands).expect("a fused operation")
}

/// `x + a` is `x * 1 + a`, and `x - a` is `a * -1 + x`.
#[test]
fn a_difference_takes_the_second_number_from_the_first() {
    let (singles, pairs) = (code(kernels::brain::kernel()), code(kernels::brain_pairs::kernel()));
    let of_singles = singles.into_iter().map(|it| (it, [0x3F80, -0x4080]));
    let of_pairs = pairs.into_iter().map(|it| (it, [0x3F80_3F80, 0xBF80_BF80_u32.cast_signed()]));
    for ((architecture, lines), [one, minus_one]) in of_singles.chain(of_pairs) {
        if (80..90).contains(&number(architecture)) {
            let ([x, a], [second, first]) = (fused(&lines, one), fused(&lines, minus_one));
            assert_eq!([first, second], [x, a], "{architecture}: {lines:#?}");
        }
    }
}

#[test]
fn pairs_are_computed_at_once() {
    for (architecture, lines) in code(kernels::pairs::kernel()) {
        for opcode in ["add.rn.f16x2", "sub.rn.f16x2", "mul.rn.f16x2", "fma.rn.f16x2"] {
            demand(&lines, opcode, 1);
        }
        for opcode in ["min.f16x2", "max.f16x2"] {
            demand(&lines, opcode, usize::from(number(architecture) >= 80));
        }
    }
    for (architecture, lines) in code(kernels::brain_pairs::kernel()) {
        let number = number(architecture);
        demand(&lines, "add.rn.bf16x2", usize::from(number >= 90));
        demand(
            &lines,
            "fma.rn.bf16x2",
            if number >= 90 {
                1
            } else if number >= 80 {
                4
            } else {
                0
            },
        );
        for opcode in ["min.bf16x2", "max.bf16x2"] {
            demand(&lines, opcode, usize::from(number >= 80));
        }
    }
    for (architecture, lines) in code(kernels::packed::kernel()) {
        let is_at_once = usize::from(number(architecture) >= 80);
        demand(&lines, "cvt.rn.f16x2.f32", is_at_once);
        demand(&lines, "cvt.rn.bf16x2.f32", is_at_once);
        demand(&lines, "cvt.rn.f16.f32", 2 - 2 * is_at_once);
    }
}

/// The instruction takes the high half first.
#[test]
fn the_first_of_two_converted_numbers_is_in_the_low_half() {
    for (architecture, lines) in code(kernels::packed::kernel()) {
        let conversions = lines.iter().filter(|line| line.contains("f16x2.f32"));
        for conversion in conversions {
            let high = conversion.split([',', ';']).nth(1).unwrap().trim();
            let load = lines.iter().find(|line| line.contains("ld.global") && line.contains(high)).unwrap();
            assert!(load.contains("+4]"), "{architecture}: {conversion} of {load}");
        }
    }
}

#[test]
fn approximations_are_instructions_where_the_architecture_has_them() {
    for (architecture, lines) in code(kernels::approximate::kernel()) {
        let number = number(architecture);
        for opcode in ["ex2.approx.f16", "tanh.approx.f16"] {
            demand(&lines, opcode, usize::from(number >= 80));
        }
        for opcode in ["ex2.approx.ftz.bf16", "tanh.approx.bf16"] {
            demand(&lines, opcode, usize::from(number >= 90));
        }
    }
}

#[test]
fn pairs_are_added_atomically_by_one_instruction_if_there_is_one() {
    for (architecture, lines) in code(kernels::atomics::kernel()) {
        let is_there = usize::from(number(architecture) >= 90);
        demand(&lines, "atom.relaxed.gpu.global.add.noftz.f16x2", 1);
        demand(&lines, "atom.relaxed.gpu.global.add.noftz.bf16x2", is_there);
        demand(&lines, "atom.relaxed.gpu.global.cas.b32", 1 - is_there);
    }
}

#[test]
fn pairs_move_sixteen_bytes_at_once_and_nothing_has_a_stack() {
    for (architecture, lines) in code(kernels::eight::kernel()) {
        let is_wide =
            |line: &&&str| line.contains(".v4.") || line.contains(".v2.b64") || line.contains(".b128");
        let wide = lines.iter().filter(|line| line.contains(".global")).filter(is_wide).count();
        assert_eq!(wide, 3, "{architecture}: {lines:#?}");
        demand(&lines, "fma.rn.f16x2", 4);
    }
    for kernel in [
        kernels::short::kernel(),
        kernels::converted::kernel(),
        kernels::brain::kernel(),
        kernels::pairs::kernel(),
        kernels::brain_pairs::kernel(),
        kernels::packed::kernel(),
        kernels::approximate::kernel(),
        kernels::eight::kernel(),
    ] {
        for (architecture, lines) in code(kernel) {
            assert!(!lines.iter().any(|line| line.contains(".local")), "{architecture}, {}", kernel.name());
        }
    }
}
