//! Fused multiply-add of 16-bit numbers, compared with exact integers. These hold all numbers of `f16`, and
//! those of `bf16` between 2^-32 and 2^26.

extern crate std;

use super::{HalfFloat, bf16, f16};

/// `value * 2^scale`, which is an integer.
fn fixed(value: f32, scale: i32) -> i128 {
    let scaled = f64::from(value) * 2.0_f64.powi(scale);
    assert_eq!(scaled, scaled.trunc());
    scaled as i128
}

/// The bits of the nearest number to `exact / 2^scale` of a format with `digits` significant bits and `least` the
/// exponent of its smallest subnormal number; ties to even.
fn rounded(exact: i128, scale: i32, digits: i32, least: i32) -> f64 {
    let magnitude = exact.unsigned_abs();
    let top = 127 - magnitude.leading_zeros() as i32 - scale;
    // The last place of the result, and how many bits lie below it.
    let place = (top - digits + 1).max(least);
    let below = place + scale;
    let kept = if below <= 0 {
        return exact as f64 * 2.0_f64.powi(-scale);
    } else {
        let (kept, rest, half) = (magnitude >> below, magnitude & ((1 << below) - 1), 1_u128 << (below - 1));
        kept + u128::from(rest > half || rest == half && kept & 1 == 1)
    };
    (kept as f64 * 2.0_f64.powi(place)).copysign(exact as f64)
}

#[test]
fn a_fused_multiply_add_of_f16_rounds_once() {
    let mut random = fastrand::Rng::with_seed(1);
    let mut number = || f16::from_bits(random.u16(..));
    for _ in 0..400_000 {
        let [a, b, c] = [number(), number(), number()];
        let found = a.mul_add(b, c);
        if [a, b, c].iter().any(|it| !it.is_finite()) {
            let wide = a.to_f64() * b.to_f64() + c.to_f64();
            assert!(found.is_nan() == wide.is_nan() && (wide.is_nan() || found.to_f64() == wide));
            continue;
        }
        let exact = fixed(a.to_f32(), 24) * fixed(b.to_f32(), 24) + (fixed(c.to_f32(), 24) << 24);
        if exact == 0 {
            assert_eq!(found.to_f32(), 0.0);
            continue;
        }
        let expected = rounded(exact, 48, 11, -24);
        let expected = if expected.abs() > 65504.0 { f64::INFINITY.copysign(expected) } else { expected };
        assert_eq!(found.to_f64(), expected, "{a} * {b} + {c}");
    }
}

#[test]
fn a_fused_multiply_add_of_bf16_rounds_once() {
    let mut random = fastrand::Rng::with_seed(2);
    // Signs, exponents of 2^-25 to 2^25, seven bits.
    let mut number =
        || bf16::from_bits(random.u16(..2) << 15 | random.u16(102..=152) << 7 | random.u16(..128));
    for _ in 0..400_000 {
        let [a, b, c] = [number(), number(), number()];
        let found = a.mul_add(b, c);
        let exact = fixed(a.to_f32(), 32) * fixed(b.to_f32(), 32) + (fixed(c.to_f32(), 32) << 32);
        let expected = if exact == 0 { 0.0 } else { rounded(exact, 64, 8, -133) };
        assert_eq!(found.to_f64(), expected, "{a} * {b} + {c}");
    }
}

/// The product lies in the middle of two numbers, and what decides is below the last bit of an `f64`.
#[test]
fn low_bits_decide_a_tie() {
    let [one, next] = [bf16::ONE, bf16::ONE + bf16::EPSILON];
    let half_way = bf16::from_f32(1.0 + 1.0 / 128.0);
    let far = |sign: f32| bf16::from_f32(sign * 1e-30);
    // (1 + 2^-7) * (1 + 2^-1) = 1 + 2^-1 + 2^-7 + 2^-8: a tie at 2^-8.
    let factor = bf16::from_f32(1.5);
    let product = half_way.to_f32() * factor.to_f32();
    let (below, above) = (bf16::from_f32(product - 1.0 / 256.0), bf16::from_f32(product + 1.0 / 256.0));
    assert!(below.to_f32() < product && product < above.to_f32());
    assert_eq!(half_way.mul_add(factor, far(1.0)), above);
    assert_eq!(half_way.mul_add(factor, far(-1.0)), below);
    assert_eq!(next.mul_add(one, far(-1.0)), next);
}

#[test]
fn zeros_keep_their_signs() {
    for (a, b, c) in [(0.0_f32, 1.0, -0.0), (-0.0, 1.0, -0.0), (-0.0, 1.0, 0.0), (1.0, -1.0, 1.0)] {
        let expected = a.mul_add(b, c);
        let short = f16::from_f32(a).mul_add(f16::from_f32(b), f16::from_f32(c)).to_f32();
        let brain = bf16::from_f32(a).mul_add(bf16::from_f32(b), bf16::from_f32(c)).to_f32();
        assert_eq!(
            (short.to_bits(), brain.to_bits()),
            (expected.to_bits(), expected.to_bits()),
            "{a} {b} {c}"
        );
    }
}
