//! Neighbouring elements that one thread moves together, 16 bytes at a time where their place allows it: what kernels of
//! `#[elementwise]` read and write.

use core::mem::MaybeUninit;

/// The bytes of one access: the greatest power of two up to 16 that divides the size of a group.
const fn width<T, const N: usize>() -> usize {
    let size = size_of::<[T; N]>() | 16;
    size & size.wrapping_neg()
}

/// Whether a group at `start` can be moved by accesses of [`width`] bytes. The CPU moves any.
#[inline(always)]
pub(crate) fn is_aligned<T, const N: usize>(start: *const [T; N]) -> bool {
    !cfg!(target_arch = "nvptx64") || start.addr().is_multiple_of(const { width::<T, N>() })
}

/// Copies a group by the widest accesses of device memory.
///
/// # Safety
/// Both are valid groups, `from` for reads and `to` for writes, and on a GPU the one in device memory is aligned to
/// [`width`] bytes.
#[inline(always)]
unsafe fn copy<T: Copy, const N: usize>(from: *const [T; N], to: *mut [T; N], from_device: bool) {
    /// Copies it by words `W`, any bits of which, with those of padding, are a `MaybeUninit`.
    ///
    /// # Safety
    /// As for `copy`, and the group in device memory is aligned to a `W`, whose size divides the group's.
    #[inline(always)]
    unsafe fn by<W, G>(from: *const G, to: *mut G, from_device: bool) {
        let (from, to) = (from.cast::<MaybeUninit<W>>(), to.cast::<MaybeUninit<W>>());
        for k in 0..const { size_of::<G>() / size_of::<W>() } {
            // SAFETY: the caller's: so many words are there.
            unsafe {
                if from_device {
                    to.add(k).write_unaligned(from.add(k).read());
                } else {
                    to.add(k).write(from.add(k).read_unaligned());
                }
            }
        }
    }
    // SAFETY: the caller's.
    unsafe {
        if !cfg!(target_arch = "nvptx64") {
            return to.write(from.read());
        }
        match const { width::<T, N>() } {
            // An integer, because LLVM moves one as a whole.
            16 => by::<u128, _>(from, to, from_device),
            8 => by::<u64, _>(from, to, from_device),
            4 => by::<u32, _>(from, to, from_device),
            2 => by::<u16, _>(from, to, from_device),
            _ => by::<u8, _>(from, to, from_device),
        }
    }
}

/// The `N` elements of an input from number `first` on, if there are as many and wide accesses can read them.
#[inline(always)]
pub fn input<T, const N: usize>(x: &[T], first: usize) -> Option<Input<'_, T, N>> {
    let group = x.get(first..)?.first_chunk::<N>()?;
    is_aligned(group).then_some(Input(group))
}

/// A group of an input.
pub struct Input<'x, T, const N: usize>(&'x [T; N]);

impl<T: Copy, const N: usize> Input<'_, T, N> {
    /// The elements.
    #[inline(always)]
    pub fn load(&self) -> [T; N] {
        let mut elements = MaybeUninit::uninit();
        // SAFETY: it was created where it is aligned, and the other is local memory.
        unsafe {
            copy(self.0, elements.as_mut_ptr(), true);
            elements.assume_init()
        }
    }
}

/// The groups of an input whose elements are these, if wide accesses can read them.
#[inline(always)]
pub fn inputs<T, const N: usize>(x: &[T]) -> Option<Inputs<'_, T, N>> {
    let (groups, _) = x.as_chunks();
    is_aligned(groups.as_ptr()).then_some(Inputs(groups))
}

/// Neighbouring groups of an input.
pub struct Inputs<'x, T, const N: usize>(&'x [[T; N]]);

impl<T: Copy, const N: usize> Inputs<'_, T, N> {
    /// The elements of group `k`.
    #[track_caller]
    #[inline(always)]
    pub fn load(&self, k: usize) -> [T; N] {
        // As the first one is aligned, all are.
        Input(&self.0[k]).load()
    }
}

/// Writes a group to device memory.
///
/// # Safety
/// `to` is valid for writes, and [`is_aligned`].
#[inline(always)]
pub(crate) unsafe fn store<T: Copy, const N: usize>(elements: [T; N], to: *mut [T; N]) {
    // SAFETY: the caller's, and the other is local memory.
    unsafe { copy(&elements, to, false) };
}

/// A thread's group of an output, if there is one and wide accesses can reach it.
#[inline(always)]
pub fn output<T, const N: usize>(group: Option<&mut [T; N]>) -> Option<Output<'_, T, N>> {
    group.filter(|group| is_aligned(*group)).map(Output)
}

/// A group of an output.
pub struct Output<'y, T, const N: usize>(&'y mut [T; N]);

impl<T: Copy, const N: usize> Output<'_, T, N> {
    /// The elements.
    #[inline(always)]
    pub fn load(&self) -> [T; N] {
        Input(&*self.0).load()
    }

    /// Writes all elements.
    #[inline(always)]
    pub fn store(self, elements: [T; N]) {
        // SAFETY: it was created where it is aligned.
        unsafe { store(elements, self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_widest_access_divides_the_group() {
        assert_eq!((width::<f32, 4>(), width::<f64, 2>(), width::<u8, 16>()), (16, 16, 16));
        assert_eq!((width::<[u8; 3], 3>(), width::<[u16; 3], 3>(), width::<[f32; 3], 3>()), (1, 2, 4));
        assert_eq!((width::<[f64; 3], 3>(), width::<[f64; 3], 2>(), width::<(), 4>()), (8, 16, 16));
    }

    #[test]
    fn groups_are_whole() {
        let mut x = [1, 2, 3, 4, 5];
        assert_eq!(input::<_, 4>(&x, 1).unwrap().load(), [2, 3, 4, 5]);
        assert!(input::<_, 4>(&x, 2).is_none() && input::<_, 4>(&x, 6).is_none());
        let group = output(x.first_chunk_mut::<2>()).unwrap();
        let [a, b] = group.load();
        group.store([b, a]);
        assert_eq!(x, [2, 1, 3, 4, 5]);
    }
}
