//! Fused multiply-add of 16-bit numbers where no instruction has it: exact in two `f64`s, rounded to odd, so
//! that the last rounding equals a single one.

/// `a * b + c`, rounded to an odd `f32`: rounded again, to at most 22 bits, it is what one rounding would give.
/// The three have at most 11 significant bits each.
#[inline]
pub(super) fn fused(a: f32, b: f32, c: f32) -> f32 {
    let (product, addend) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = product + addend;
    if !sum.is_finite() {
        return sum as f32;
    }
    // Knuth's TwoSum: `sum + error` is `product + addend`.
    let part = sum - product;
    let error = (product - (sum - part)) + (addend - part);
    narrowed(to_odd(sum, error))
}

/// The number next to `sum + error` that is odd, where `sum` is the nearest one; `sum` if that is exact.
#[inline]
fn to_odd(sum: f64, error: f64) -> f64 {
    let bits = sum.to_bits();
    if error == 0.0 || bits & 1 == 1 {
        return sum;
    }
    let is_further_out = (error > 0.0) == (sum > 0.0);
    f64::from_bits(if is_further_out { bits + 1 } else { bits - 1 })
}

/// The same for an `f64` as an `f32`.
#[inline]
fn narrowed(wide: f64) -> f32 {
    let near = wide as f32;
    let bits = near.to_bits();
    if f64::from(near) == wide || bits & 1 == 1 || near.is_infinite() {
        return near;
    }
    let is_further_out = wide.abs() > f64::from(near.abs());
    f32::from_bits(if is_further_out { bits + 1 } else { bits - 1 })
}
