//! Surfaces on the CPU device: elements row by row, layer by layer.

use super::Mode;

/// The number of the element at a place, `None` where nothing is outside.
///
/// # Panics
/// Outside, if that is a trap.
fn number<const R: usize>(mode: Mode, place: [i32; R], extent: [u32; R]) -> Option<usize> {
    let mut number = 0;
    for axis in (0..R).rev() {
        let (wanted, extent) = (i64::from(place[axis]), i64::from(extent[axis]));
        let found = match mode {
            _ if (0..extent).contains(&wanted) => wanted,
            Mode::Clamp => wanted.clamp(0, extent - 1),
            Mode::Zero => return None,
            Mode::Trap => panic!("a surface has no element at {place:?}"),
        };
        number = number * extent as usize + found as usize;
    }
    Some(number)
}

/// # Safety
/// `start` leads to as many `T` as `extent` says; no other thread writes that element meanwhile.
pub(super) unsafe fn load<T: bytemuck::Zeroable, const R: usize>(
    mode: Mode,
    start: *const (),
    extent: [u32; R],
    place: [i32; R],
) -> T {
    match number(mode, place, extent) {
        // SAFETY: there is such an element.
        Some(number) => unsafe { start.cast::<T>().add(number).read() },
        None => T::zeroed(),
    }
}

/// # Safety
/// As above, and no other thread reads the element meanwhile.
pub(super) unsafe fn store<T, const R: usize>(
    mode: Mode,
    start: *const (),
    extent: [u32; R],
    place: [i32; R],
    value: T,
) {
    if let Some(number) = number(mode, place, extent) {
        // SAFETY: there is such an element; the memory may be written, as the caller vouches.
        unsafe { start.cast_mut().cast::<T>().add(number).write(value) }
    }
}
