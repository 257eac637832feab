//! Parameters without bytes, such as a unit struct: the entry point has no parameters for them, so a launch
//! omits them.

use std::ffi::c_void;
use std::ptr::{NonNull, null};

/// Size and alignment of a parameter.
type Shape = (usize, usize);

/// Those of `shapes` that have bytes, in order, and how many they are.
#[doc(hidden)]
pub const fn sized_shapes<const N: usize>(shapes: [Shape; N]) -> ([Shape; N], usize) {
    let (mut kept, mut count, mut at) = ([(0, 1); N], 0, 0);
    while at < N {
        if shapes[at].0 > 0 {
            kept[count] = shapes[at];
            count += 1;
        }
        at += 1;
    }
    (kept, count)
}

/// The addresses of those that have bytes, in order, and how many they are.
#[doc(hidden)]
#[inline]
pub fn sized_addresses<const N: usize>(
    addresses: [*const c_void; N],
    shapes: [Shape; N],
) -> ([*const c_void; N], usize) {
    let (mut kept, mut count) = ([null(); N], 0);
    for (address, (size, _)) in addresses.into_iter().zip(shapes) {
        if size > 0 {
            kept[count] = address;
            count += 1;
        }
    }
    (kept, count)
}

/// The value at address number `next` of `params`, which it counts up; one without bytes has no address.
///
/// # Safety
/// `params` has an address with number `next`, of a value of type `T`, which the caller may copy; or `T` has no
/// bytes, and a value of it can be created from nothing.
#[doc(hidden)]
#[inline(always)]
pub unsafe fn read_param<T>(params: *const *const c_void, next: &mut usize) -> T {
    if size_of::<T>() == 0 {
        // SAFETY: reads no bytes, from an aligned address; the caller vouches for the value.
        return unsafe { NonNull::<T>::dangling().read() };
    }
    // SAFETY: as the caller vouches.
    let value = unsafe { params.add(*next).read().cast::<T>().read() };
    *next += 1;
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::from_ref;

    #[test]
    fn parameters_without_bytes_are_omitted() {
        let (first, last) = (7_u8, 9_u64);
        let shapes = [(1, 1), (0, 4), (8, 8), (0, 1)];
        let addresses = [from_ref(&first).cast(), null(), from_ref(&last).cast(), null()];
        let (kept, count) = sized_addresses(addresses, shapes);
        assert_eq!(kept[..count], [addresses[0], addresses[2]]);
        let (shapes, shape_count) = sized_shapes(shapes);
        assert_eq!((&shapes[..shape_count], shape_count), (&[(1, 1), (8, 8)][..], count));
        let mut next = 0;
        // SAFETY: the addresses are those of values of these types; `[u32; 0]` has no bytes, and a value.
        unsafe {
            assert_eq!(read_param::<u8>(kept.as_ptr(), &mut next), 7);
            assert!(read_param::<[u32; 0]>(kept.as_ptr(), &mut next).is_empty());
            assert_eq!(read_param::<u64>(kept.as_ptr(), &mut next), 9);
        }
        assert_eq!(next, 2);
    }
}
