//! The operators of reductions, and what an operation gives to each rank.

use std::ffi::c_int;

use crate::group::{Call, Kind, size_of_element};
use crate::state::state;
use crate::{Pointer, SUCCESS};

/// The numbers of operators that `ncclRedOpCreatePreMulSum` made start here.
const MADE: c_int = 100;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclRedOpCreatePreMulSum(
    op: *mut c_int,
    scalar: *const u8,
    element: c_int,
    place: c_int,
    _comm: Pointer,
) -> c_int {
    assert_eq!(place, 1, "on the host");
    let mut factor = [0; 8];
    // SAFETY: the caller passes an element, and a place for the operation.
    unsafe { factor.as_mut_ptr().copy_from_nonoverlapping(scalar, size_of_element(element)) };
    let mut state = state();
    state.next += 1;
    let number = MADE + state.next as c_int;
    state.made.insert(number, factor);
    // SAFETY: as above.
    unsafe { *op = number };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclRedOpDestroy(op: c_int, _comm: Pointer) -> c_int {
    state().made.remove(&op).expect("destroyed once");
    SUCCESS
}

/// What each rank gets.
pub(crate) fn results(calls: &[(usize, Call, Vec<u8>)]) -> Vec<Vec<u8>> {
    let first = calls[0].1;
    assert!(calls.iter().all(|(_, call, _)| (call.kind, call.count, call.element, call.root)
        == (first.kind, first.count, first.element, first.root)));
    let bytes = first.count * size_of_element(first.element);
    match first.kind {
        Kind::AllReduce | Kind::Reduce => vec![reduced(calls); calls.len()],
        Kind::ReduceScatter => {
            let all = reduced(calls);
            (0..calls.len()).map(|rank| all[rank * bytes..][..bytes].to_vec()).collect()
        }
        Kind::Broadcast => vec![calls[first.root].2.clone(); calls.len()],
        _ => vec![calls.iter().flat_map(|(_, _, sent)| sent.clone()).collect(); calls.len()],
    }
}

macro_rules! reduce {
    ($calls:expr, $type:ty, $add:expr, $multiply:expr, $divide:expr) => {{
        let size = size_of::<$type>();
        let value = |bytes: &[u8]| <$type>::from_ne_bytes(bytes[..size].try_into().unwrap());
        (0..$calls[0].2.len() / size)
            .flat_map(|index| {
                let values = $calls.iter().map(|(_, call, sent)| {
                    let own = value(&sent[index * size..]);
                    if call.op >= MADE { $multiply(own, value(&call.factor)) } else { own }
                });
                let result = values.reduce(|one, other| match $calls[0].1.op {
                    1 => $multiply(one, other),
                    2 => {
                        if other > one {
                            other
                        } else {
                            one
                        }
                    }
                    3 => {
                        if other < one {
                            other
                        } else {
                            one
                        }
                    }
                    _ => $add(one, other),
                });
                let result = result.unwrap();
                (if $calls[0].1.op == 4 { $divide(result, $calls.len() as $type) } else { result })
                    .to_ne_bytes()
            })
            .collect()
    }};
    ($calls:expr, integer $type:ty) => {
        reduce!($calls, $type, <$type>::wrapping_add, <$type>::wrapping_mul, |a: $type, b: $type| a / b)
    };
    ($calls:expr, float $type:ty) => {
        reduce!(
            $calls,
            $type,
            |a: $type, b: $type| a + b,
            |a: $type, b: $type| a * b,
            |a: $type, b: $type| a / b
        )
    };
}

fn reduced(calls: &[(usize, Call, Vec<u8>)]) -> Vec<u8> {
    match calls[0].1.element {
        0 => reduce!(calls, integer i8),
        1 => reduce!(calls, integer u8),
        2 => reduce!(calls, integer i32),
        3 => reduce!(calls, integer u32),
        4 => reduce!(calls, integer i64),
        5 => reduce!(calls, integer u64),
        7 => reduce!(calls, float f32),
        8 => reduce!(calls, float f64),
        other => panic!("no element {other} here"),
    }
}
