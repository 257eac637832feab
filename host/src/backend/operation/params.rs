//! A launch's parameters, copied so that they outlive the call.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ffi::c_void;
use std::ptr::NonNull;

/// Copies of parameter values, and their addresses.
pub(crate) struct CopiedParams {
    values: NonNull<u8>,
    layout: Layout,
    addresses: Vec<*const c_void>,
}

// SAFETY: the values are only read, byte for byte as given, by the threads that run blocks; kernel parameters are
// `DeviceCopy` and so `Send + Sync`, views of elements that are, or pointers in launches whose `unsafe` covers them.
unsafe impl Send for CopiedParams {}
// SAFETY: as above.
unsafe impl Sync for CopiedParams {}

impl CopiedParams {
    /// Copies the values at `params`.
    ///
    /// # Safety
    /// `params` and `shapes` have equal lengths; each address is that of a value with the size of its shape. The
    /// copies have its alignment.
    pub(crate) unsafe fn copy(params: &[*const c_void], shapes: &[(usize, usize)]) -> Self {
        let (layout, offsets) = arrange(shapes);
        let values = if layout.size() == 0 {
            NonNull::dangling()
        } else {
            // SAFETY: not of size 0.
            NonNull::new(unsafe { alloc(layout) }).unwrap_or_else(|| handle_alloc_error(layout))
        };
        let place = |((&param, &(size, align)), offset): ((&*const c_void, &(usize, usize)), usize)| {
            if size == 0 {
                return std::ptr::without_provenance(align);
            }
            // SAFETY: `arrange` gave this value its own `size` bytes of the allocation, and the caller
            // vouches for as many at `param`.
            unsafe {
                let copy = values.as_ptr().add(offset);
                copy.copy_from_nonoverlapping(param.cast(), size);
                copy.cast_const().cast()
            }
        };
        let addresses = params.iter().zip(shapes).zip(offsets).map(place).collect();
        CopiedParams { values, layout, addresses }
    }

    pub(crate) fn addresses(&self) -> &[*const c_void] {
        &self.addresses
    }
}

impl Drop for CopiedParams {
    fn drop(&mut self) {
        if self.layout.size() > 0 {
            // SAFETY: allocated with this layout in `copy`, and freed once.
            unsafe { dealloc(self.values.as_ptr(), self.layout) };
        }
    }
}

/// A layout for all values one after the other, and the offset of each.
fn arrange(shapes: &[(usize, usize)]) -> (Layout, Vec<usize>) {
    let mut whole = Layout::new::<()>();
    let mut offsets = Vec::with_capacity(shapes.len());
    for &(size, align) in shapes {
        let next = Layout::from_size_align(size, align).and_then(|one| whole.extend(one));
        let (longer, offset) = next.expect("the shapes of a kernel's parameters are those of types");
        whole = longer;
        offsets.push(offset);
    }
    (whole, offsets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::from_ref;

    #[repr(align(64))]
    struct Wide([u8; 64]);

    #[test]
    fn values_keep_their_bytes_and_alignment() {
        let (a, b, c, d) = (7_u8, Wide([9; 64]), (), 11_u64);
        let params = [from_ref(&a).cast(), from_ref(&b).cast(), from_ref(&c).cast(), from_ref(&d).cast()];
        // SAFETY: the shapes are those of the values.
        let copy = unsafe { CopiedParams::copy(&params, &[(1, 1), (64, 64), (0, 1), (8, 8)]) };
        let address = |index: usize| copy.addresses[index];
        assert!(address(1).cast::<Wide>().is_aligned() && address(3).cast::<u64>().is_aligned());
        // SAFETY: these are the copies of values of these types.
        unsafe {
            assert_eq!(address(0).cast::<u8>().read(), 7);
            assert_eq!(address(1).cast::<Wide>().read().0, [9; 64]);
            assert_eq!(address(3).cast::<u64>().read(), 11);
        }
        assert!(params.iter().zip(&copy.addresses).all(|(given, copied)| given != copied));
    }
}
