//! The kernels last launched on a stream, remembered for the case that one of them fails. It must
//! cost next to nothing at a launch.

use std::ptr::{from_ref, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use crate::kernel::Kernel;

const KEPT: usize = 8;

/// The last kernels since the last successful synchronisation. When threads launch on one stream at
/// the same time an entry may be lost; it only serves a message.
pub(super) struct Recent {
    next: AtomicUsize,
    kernels: [AtomicPtr<Kernel>; KEPT],
}

impl Recent {
    pub(super) fn new() -> Self {
        Recent { next: AtomicUsize::new(0), kernels: [const { AtomicPtr::new(null_mut()) }; KEPT] }
    }

    #[inline]
    pub(super) fn note(&self, kernel: &'static Kernel) {
        let next = self.next.load(Ordering::Relaxed);
        self.kernels[next % KEPT].store(from_ref(kernel).cast_mut(), Ordering::Relaxed);
        self.next.store(next.wrapping_add(1), Ordering::Relaxed);
    }

    pub(super) fn clear(&self) {
        for kernel in &self.kernels {
            kernel.store(null_mut(), Ordering::Relaxed);
        }
    }

    /// Names, oldest first.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        let next = self.next.load(Ordering::Relaxed);
        (0..KEPT).filter_map(move |step| {
            let kernel = self.kernels[next.wrapping_add(step) % KEPT].load(Ordering::Relaxed);
            // SAFETY: null, or the address of a `&'static Kernel`.
            unsafe { kernel.as_ref() }.map(Kernel::name)
        })
    }
}
