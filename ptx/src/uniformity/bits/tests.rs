//! What is said of bits holds for all values that it is said of, and is as much as can be said where an operation works bit by bit:
//! tried for all that may be known of three bits.

use super::*;

/// All that may be known of values below 8: each bit is 0, or 1, or the same in all lanes, or differs.
fn all() -> impl Iterator<Item = Bits> {
    (0..64_u64).map(|number| {
        let state = |bit: u64| number >> (2 * bit) & 3;
        let those = |wanted: u64| (0..3).filter(|&bit| state(bit) == wanted).map(|bit| 1 << bit).sum::<u64>();
        Bits { varies: those(3), zero: !7 | those(0), one: those(1) }
    })
}

fn is_value(value: u64, bits: Bits) -> bool {
    value & bits.zero == 0 && value & bits.one == bits.one
}

/// The values that two lanes of a warp may have.
fn lanes(bits: Bits) -> impl Iterator<Item = (u64, u64)> {
    let values = move || (0..8).filter(move |&value| is_value(value, bits));
    values().flat_map(move |a| values().filter(move |b| (a ^ b) & !bits.varies == 0).map(move |b| (a, b)))
}

/// The most that can be said of these pairs.
fn best(pairs: impl Iterator<Item = (u64, u64)>) -> Bits {
    pairs.fold(Bits::NONE, |bits, (a, b)| Bits {
        varies: bits.varies | (a ^ b),
        zero: bits.zero & !a & !b,
        one: bits.one & a & b,
    })
}

/// That nothing is said which does not hold for these pairs.
#[track_caller]
fn holds(said: Bits, best: Bits, of: impl std::fmt::Debug) {
    assert_eq!(best.varies & !said.varies, 0, "more differs than {said:?} of {of:?}");
    assert_eq!(said.zero & !best.zero, 0, "not all is 0 that {said:?} says of {of:?}");
    assert_eq!(said.one & !best.one, 0, "not all is 1 that {said:?} says of {of:?}");
}

fn of_two(a: Bits, b: Bits, operation: fn(u64, u64) -> u64) -> Bits {
    best(lanes(a).flat_map(|(a, c)| lanes(b).map(move |(b, d)| (operation(a, b), operation(c, d)))))
}

#[test]
fn what_is_known_after_operations_bit_by_bit_is_all_that_can_be_known() {
    for a in all() {
        assert_eq!(a.not(), best(lanes(a).map(|(a, b)| (!a, !b))), "{a:?}");
        for by in [0, 1, 2, 62, 63, 64, 70] {
            let shifted = |shift: fn(u64, u32) -> Option<u64>| {
                best(lanes(a).map(|(a, b)| (shift(a, by).unwrap_or(0), shift(b, by).unwrap_or(0))))
            };
            assert_eq!(a.shifted_left(by), shifted(|value, by| value.checked_shl(by)), "{a:?} << {by}");
            assert_eq!(a.shifted_right(by), shifted(|value, by| value.checked_shr(by)), "{a:?} >> {by}");
        }
        for bits in [1, 2, 3, 64] {
            let kept = 1_u64.checked_shl(bits).map_or(u64::MAX, |bit| bit - 1);
            assert_eq!(a.truncated(bits), best(lanes(a).map(|(a, b)| (a & kept, b & kept))), "{a:?}, {bits}");
        }
        for b in all() {
            assert_eq!(a.and(b), of_two(a, b, |a, b| a & b), "{a:?} & {b:?}");
            assert_eq!(a.or(b), of_two(a, b, |a, b| a | b), "{a:?} | {b:?}");
            assert_eq!(a.xor(b), of_two(a, b, |a, b| a ^ b), "{a:?} ^ {b:?}");
            let either = best(lanes(a).chain(lanes(b)));
            assert_eq!(a.join(b), either, "{a:?} or {b:?}");
            let within =
                best(lanes(a).flat_map(|(a, c)| lanes(b).flat_map(move |(b, d)| [(a, b), (c, d), (a, d)])));
            holds(a.join(b).mixed(), within, (a, b));
            assert_eq!(a.join(b).same().varies, 0);
        }
    }
}

/// Below the last bit of one the other stays as it is; what differs is carried upwards only.
#[test]
fn sums_hold_and_keep_what_is_below() {
    for a in all() {
        for b in all() {
            let (sum, best) = (a.sum(b), of_two(a, b, |a, b| a + b));
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
    for a in all() {
        for factor in 1..=12_u64 {
            let (product, best) = (a.times(factor), best(lanes(a).map(|(a, b)| (a * factor, b * factor))));
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

/// And of a value that differs in its last bits only, comparisons with multiples of what differs are.
#[test]
fn comparisons_that_are_together_have_one_result_in_a_warp() {
    for a in all() {
        for b in all() {
            let agree = |compared: fn(u64, u64) -> bool| {
                lanes(a).all(|(a, c)| lanes(b).all(|(b, d)| compared(a, b) == compared(c, d)))
            };
            assert!(!a.is_together_below(b, 32) || agree(|a, b| a < b), "{a:?} < {b:?}");
            assert!(!a.is_together_up_to(b, 32) || agree(|a, b| a <= b), "{a:?} <= {b:?}");
        }
        let differs = low(64 - a.varies.leading_zeros());
        for bound in 0..=8_u64 {
            let known = Bits::constant(bound);
            assert_eq!(a.is_together_below(known, 32), bound & differs == 0, "{a:?} < {bound}");
            assert_eq!(a.is_together_up_to(known, 32), bound & differs == differs, "{a:?} <= {bound}");
        }
        // Where any bit may differ, nothing is below.
        let bits = 64 - a.varies.leading_zeros();
        assert!(
            !a.is_together_below(Bits::constant(0), bits)
                && !a.is_together_up_to(Bits::constant(u64::MAX), bits)
        );
    }
}

#[test]
fn a_value_is_known_where_all_its_bits_are() {
    for bits in all() {
        let mut values = (0..8).filter(|&value| is_value(value, bits));
        let only = values.next().filter(|_| values.next().is_none());
        assert_eq!(bits.value(), only, "{bits:?}");
    }
    assert_eq!((Bits::NONE.value(), Bits::ANY.value(), Bits::SAME.value()), (None, None, None));
    assert_eq!(Bits::constant(u64::MAX).value(), Some(u64::MAX));
}

/// The threads of a block of each shape, 32 of them in a warp, x fastest.
#[test]
fn what_is_said_of_indices_holds_for_the_threads_of_each_shape() {
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
    // Rows of whole warps are those that differ in nothing but x.
    assert_eq!(special("%tid.y", [Some(64), None, None]).unwrap().varies, 0);
    assert_eq!(special("%tid.y", [Some(16), Some(8), None]).unwrap().varies, 1);
    assert_eq!(special("%tid.x", [None, Some(1), Some(1)]).unwrap(), Bits::below(10, 31));
    assert_eq!(special("%tid.z", [None; 3]).unwrap(), Bits::below(6, u64::MAX));
    assert_eq!(special("%laneid", [None; 3]).unwrap(), Bits::below(5, 31));
    for other in ["%ctaid.x", "%tid.w", "tid.x", "%nctaid.x"] {
        assert_eq!(special(other, [Some(32), Some(1), Some(1)]), None, "{other}");
    }
}
