//! Claims about bits hold for all values, and are as precise as possible for bitwise operations: an
//! exhaustive test over three bits.

use super::*;

/// A state of knowledge about a value below 8, and the values that two lanes of a warp may have.
struct Known {
    bits: Bits,
    lanes: Vec<(u64, u64)>,
}

/// All of them: each bit is 0, or 1, or the same in all lanes, or differs.
fn all() -> Vec<Known> {
    let known = |number: u64| {
        let state = |bit: u64| number >> (2 * bit) & 3;
        let those = |wanted: u64| (0..3).filter(|&bit| state(bit) == wanted).map(|bit| 1 << bit).sum::<u64>();
        let bits = Bits { varies: those(3), zero: !7 | those(0), one: those(1) };
        let values: Vec<u64> = (0..8).filter(|&value| is_value(value, bits)).collect();
        let pairs = values.iter().flat_map(|a| values.iter().map(move |b| (*a, *b)));
        Known { bits, lanes: pairs.filter(|(a, b)| (a ^ b) & !bits.varies == 0).collect() }
    };
    (0..64).map(known).collect()
}

fn is_value(value: u64, bits: Bits) -> bool {
    value & bits.zero == 0 && value & bits.one == bits.one
}

/// The most precise claim about these pairs.
fn best(pairs: impl Iterator<Item = (u64, u64)>) -> Bits {
    pairs.fold(Bits::NONE, |bits, (a, b)| Bits {
        varies: bits.varies | (a ^ b),
        zero: bits.zero & !a & !b,
        one: bits.one & a & b,
    })
}

/// Asserts that the claim holds for these pairs.
#[track_caller]
fn holds(said: Bits, best: Bits, of: impl std::fmt::Debug) {
    assert_eq!(best.varies & !said.varies, 0, "more differs than {said:?} of {of:?}");
    assert_eq!(said.zero & !best.zero, 0, "not all is 0 that {said:?} says of {of:?}");
    assert_eq!(said.one & !best.one, 0, "not all is 1 that {said:?} says of {of:?}");
}

fn of_one(a: &Known, operation: impl Fn(u64) -> u64) -> Bits {
    best(a.lanes.iter().map(|(a, b)| (operation(*a), operation(*b))))
}

fn of_two(a: &Known, b: &Known, operation: fn(u64, u64) -> u64) -> Bits {
    let pairs = a
        .lanes
        .iter()
        .flat_map(|(a, c)| b.lanes.iter().map(move |(b, d)| (operation(*a, *b), operation(*c, *d))));
    best(pairs)
}

#[test]
fn bitwise_operations_lose_no_precision() {
    let all = all();
    for known in &all {
        let a = known.bits;
        assert_eq!(a.not(), of_one(known, |value| !value), "{a:?}");
        for by in [0, 1, 2, 62, 63, 64, 70] {
            let left = of_one(known, |value| value.checked_shl(by).unwrap_or(0));
            let right = of_one(known, |value| value.checked_shr(by).unwrap_or(0));
            assert_eq!((a.shifted_left(by), a.shifted_right(by)), (left, right), "{a:?} by {by}");
        }
        for bits in [1, 2, 3, 64] {
            let kept = 1_u64.checked_shl(bits).map_or(u64::MAX, |bit| bit - 1);
            assert_eq!(a.truncated(bits), of_one(known, |value| value & kept), "{a:?}, {bits}");
        }
        for other in &all {
            let b = other.bits;
            assert_eq!(a.and(b), of_two(known, other, |a, b| a & b), "{a:?} & {b:?}");
            assert_eq!(a.or(b), of_two(known, other, |a, b| a | b), "{a:?} | {b:?}");
            assert_eq!(a.xor(b), of_two(known, other, |a, b| a ^ b), "{a:?} ^ {b:?}");
            assert_eq!(a.join(b), best(known.lanes.iter().chain(&other.lanes).copied()), "{a:?} or {b:?}");
            let either = || known.lanes.iter().chain(&other.lanes).map(|(value, _)| *value);
            holds(a.join(b).mixed(), best(either().flat_map(|a| either().map(move |b| (a, b)))), (a, b));
            assert_eq!(a.join(b).same().varies, 0);
        }
    }
}

/// Below the lowest bit of one operand the other is unchanged; differences carry upwards only.
#[test]
fn sums_hold_and_keep_lower_bits() {
    let all = all();
    for known in &all {
        for other in &all {
            let (a, b) = (known.bits, other.bits);
            let (sum, best) = (a.sum(b), of_two(known, other, |a, b| a + b));
            holds(sum, best, (a, b));
            assert_eq!(sum, b.sum(a));
            if a.zero | b.zero == u64::MAX {
                assert_eq!(sum, best, "nothing is carried: {a:?} + {b:?}");
            }
            let below = low(a.trailing_zeros().max(b.trailing_zeros()).min(3));
            let exact = [(sum.varies, best.varies), (sum.zero, best.zero), (sum.one, best.one)];
            assert!(exact.iter().all(|(said, most)| said & below == most & below), "{a:?} + {b:?}: {sum:?}");
            let unmoved = low((a.varies | b.varies).trailing_zeros());
            assert_eq!(sum.varies & unmoved, 0, "{a:?} + {b:?}: {sum:?}");
        }
    }
}

#[test]
fn products_hold_and_are_exact_by_powers_of_two() {
    for known in all() {
        let a = known.bits;
        for factor in 1..=12_u64 {
            let (product, best) = (a.times(factor), of_one(&known, |value| value * factor));
            holds(product, best, (a, factor));
            if factor.is_power_of_two() {
                assert_eq!(product, best, "{a:?} * {factor}");
            }
            let zeros = (a.trailing_zeros() + factor.trailing_zeros()).min(64);
            assert_eq!(product.zero & low(zeros), low(zeros), "{a:?} * {factor}");
            let unmoved = low(a.varies.trailing_zeros());
            assert_eq!(product.varies & unmoved, 0, "{a:?} * {factor}");
        }
        assert_eq!(a.times(0).zero, u64::MAX);
    }
}

/// A value that differs in its low bits only compares uniformly with multiples of a larger power of two.
#[test]
fn comparisons_that_are_together_have_one_result_in_a_warp() {
    let all = all();
    for known in &all {
        let a = known.bits;
        for other in &all {
            let b = other.bits;
            let agree = |compared: fn(u64, u64) -> bool| {
                known
                    .lanes
                    .iter()
                    .all(|(a, c)| other.lanes.iter().all(|(b, d)| compared(*a, *b) == compared(*c, *d)))
            };
            assert!(!a.is_together_below(b, 32) || agree(|a, b| a < b), "{a:?} < {b:?}");
            assert!(!a.is_together_up_to(b, 32) || agree(|a, b| a <= b), "{a:?} <= {b:?}");
        }
        let differs = low(64 - a.varies.leading_zeros());
        for bound in 0..=8_u64 {
            let number = Bits::constant(bound);
            assert_eq!(a.is_together_below(number, 32), bound & differs == 0, "{a:?} < {bound}");
            assert_eq!(a.is_together_up_to(number, 32), bound & differs == differs, "{a:?} <= {bound}");
        }
        // If any bit may differ, no comparison is uniform.
        let bits = 64 - a.varies.leading_zeros();
        assert!(
            !a.is_together_below(Bits::constant(0), bits)
                && !a.is_together_up_to(Bits::constant(u64::MAX), bits)
        );
    }
}

#[test]
fn a_value_is_known_where_all_its_bits_are() {
    for Known { bits, .. } in all() {
        let mut values = (0..8).filter(|&value| is_value(value, bits));
        let only = values.next().filter(|_| values.next().is_none());
        assert_eq!(bits.value(), only, "{bits:?}");
    }
    assert_eq!((Bits::NONE.value(), Bits::ANY.value(), Bits::SAME.value()), (None, None, None));
    assert_eq!(Bits::constant(u64::MAX).value(), Some(u64::MAX));
}

/// The threads of a block of each shape, 32 of them in a warp, x fastest.
#[test]
fn claims_about_indices_hold_for_each_block_shape() {
    let shapes = [
        [1, 1, 1],
        [2, 2, 2],
        [3, 5, 2],
        [4, 8, 3],
        [5, 1, 1],
        [7, 32, 1],
        [8, 2, 16],
        [16, 4, 1],
        [16, 3, 2],
        [31, 1, 2],
        [32, 2, 2],
        [33, 2, 1],
        [48, 2, 1],
        [64, 1, 3],
        [1, 32, 4],
        [1, 64, 1],
        [1, 1, 64],
        [2, 16, 2],
        [1024, 1, 1],
    ];
    for shape in shapes {
        let threads: u32 = shape.iter().product();
        let index =
            |thread: u32| [thread % shape[0], thread / shape[0] % shape[1], thread / (shape[0] * shape[1])];
        let known = [
            [true; 3],
            [false; 3],
            [true, false, false],
            [true, true, false],
            [false, true, true],
            [true, false, true],
        ];
        for known in known {
            let said: Shape = std::array::from_fn(|axis| known[axis].then_some(shape[axis]));
            for (axis, name) in ["%tid.x", "%tid.y", "%tid.z"].into_iter().enumerate() {
                let of = |thread: u32| u64::from(index(thread)[axis]);
                let pairs = (0..threads)
                    .flat_map(|a| (a / 32 * 32..threads.min(a / 32 * 32 + 32)).map(move |b| (of(a), of(b))));
                holds(special(name, said).unwrap(), best(pairs), (shape, said, name));
            }
        }
        let whole = shape.map(Some);
        for (axis, name) in ["%ntid.x", "%ntid.y", "%ntid.z"].into_iter().enumerate() {
            assert_eq!(special(name, whole).and_then(Bits::value), Some(shape[axis].into()));
            assert_eq!(special(name, [None; 3]), None);
        }
    }
    // Rows of whole warps differ in x only.
    assert_eq!(special("%tid.y", [Some(64), None, None]).unwrap().varies, 0);
    assert_eq!(special("%tid.y", [Some(16), Some(8), None]).unwrap().varies, 1);
    assert_eq!(special("%tid.x", [None, Some(1), Some(1)]).unwrap(), Bits::below(10, 31));
    assert_eq!(special("%tid.z", [None; 3]).unwrap(), Bits::below(6, u64::MAX));
    assert_eq!(special("%laneid", [None; 3]).unwrap(), Bits::below(5, 31));
    for other in ["%ctaid.x", "%tid.w", "tid.x", "%nctaid.x"] {
        assert_eq!(special(other, [Some(32), Some(1), Some(1)]), None, "{other}");
    }
}
