//! The most recent launches on a stream, for error messages if one of them fails. It must
//! cost next to nothing at a launch.

use std::panic::Location;
use std::ptr::{from_ref, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use crate::error::LaunchedKernel;
use crate::kernel::Kernel;

const KEPT: usize = 8;

/// The last launches since the last successful synchronisation. When threads launch on one stream at
/// the same time an entry may be lost, or have the place of another; it only serves a message.
#[repr(C)]
pub(crate) struct Recent {
    next: AtomicUsize,
    launches: [Launch; KEPT],
}

struct Launch {
    /// Null if there was none.
    kernel: AtomicPtr<Kernel>,
    /// Set before the kernel is.
    site: AtomicPtr<Location<'static>>,
}

impl Recent {
    pub(crate) fn new() -> Self {
        let none = || Launch { kernel: AtomicPtr::new(null_mut()), site: AtomicPtr::new(null_mut()) };
        Recent { next: AtomicUsize::new(0), launches: std::array::from_fn(|_| none()) }
    }

    #[inline]
    pub(crate) fn note(&self, kernel: &'static Kernel, site: &'static Location<'static>) {
        let next = self.next.load(Ordering::Relaxed);
        let launch = &self.launches[next % KEPT];
        launch.site.store(from_ref(site).cast_mut(), Ordering::Relaxed);
        launch.kernel.store(from_ref(kernel).cast_mut(), Ordering::Release);
        self.next.store(next.wrapping_add(1), Ordering::Relaxed);
    }

    pub(crate) fn clear(&self) {
        for launch in &self.launches {
            launch.kernel.store(null_mut(), Ordering::Relaxed);
        }
    }

    /// Oldest first.
    pub(crate) fn launches(&self) -> impl Iterator<Item = LaunchedKernel> {
        let next = self.next.load(Ordering::Relaxed);
        (0..KEPT).filter_map(move |step| {
            let launch = &self.launches[next.wrapping_add(step) % KEPT];
            let kernel = launch.kernel.load(Ordering::Acquire);
            let site = launch.site.load(Ordering::Relaxed);
            // SAFETY: each is null, or the address of a `&'static`.
            let (kernel, site) = unsafe { (kernel.as_ref()?, site.as_ref()?) };
            Some(LaunchedKernel::new(kernel.name(), site))
        })
    }
}
