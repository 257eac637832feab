//! The layout of `Option`: how it represents `None`, computed at compile time.

use core::mem::{transmute, zeroed};

use crate::element::device_copy::DeviceCopy;
use crate::element::layout::of_type;
use crate::shared::AnyBits;

// SAFETY: `LAYOUT` has the offset of the value and the bytes around it, of `None` and of `Some`. All bits are
// a value
// of `T`, so nothing within the value can say that it is `None`.
unsafe impl<T: DeviceCopy + AnyBits> DeviceCopy for Option<T> {
    const LAYOUT: u64 = beside_the_value::<T>();
}

/// If the compiler leaves some of these bytes uninitialised in `None` or in `Some`, this is a compile error.
const fn beside_the_value<T: DeviceCopy + AnyBits>() -> u64 {
    // SAFETY: all bits are a value.
    let (none, some): (Option<T>, Option<T>) = (None, Some(unsafe { zeroed() }));
    let (nothing, something) = ((&raw const none).cast::<u8>(), (&raw const some).cast::<u8>());
    let Some(value) = &some else { unreachable!() };
    // SAFETY: the value lies within its option.
    let start = unsafe { (&raw const *value).cast::<u8>().offset_from(something) } as usize;
    let mut layout = of_type("Option", &[("", T::LAYOUT), ("", start as u64)]);
    let mut at = 0;
    while at < size_of::<Option<T>>() {
        if at < start || at >= start + size_of::<T>() {
            // SAFETY: lies within both.
            let bytes = unsafe { [*nothing.add(at), *something.add(at)] };
            layout =
                of_type("", &[("", layout), ("", at as u64), ("", bytes[0] as u64), ("", bytes[1] as u64)]);
        }
        at += 1;
    }
    layout
}

// SAFETY: as large as a `bool`, so `false` and `true` have the bits that they have alone; those of `None` are in `LAYOUT`.
unsafe impl DeviceCopy for Option<bool> {
    const LAYOUT: u64 = {
        // SAFETY: a byte with a value.
        let none = unsafe { transmute::<Option<bool>, u8>(None) };
        of_type("Option", &[("", bool::LAYOUT), ("", none as u64)])
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_different_values_have_different_numbers() {
        let numbers = [
            <Option<u8> as DeviceCopy>::LAYOUT,
            <Option<u32> as DeviceCopy>::LAYOUT,
            <Option<f32> as DeviceCopy>::LAYOUT,
            <Option<[f32; 2]> as DeviceCopy>::LAYOUT,
            <Option<(u64, f32)> as DeviceCopy>::LAYOUT,
            <Option<()> as DeviceCopy>::LAYOUT,
            <Option<bool> as DeviceCopy>::LAYOUT,
            <u32 as DeviceCopy>::LAYOUT,
        ];
        for (at, number) in numbers.iter().enumerate() {
            assert!(!numbers[..at].contains(number) && *number != 0, "{at}");
        }
    }
}
