//! Launches of prepared kernels by the backends of streams, and what they do to memory.

use crate::backend::Launch;
use crate::backend::writers::Effect;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::memory::access::Access;
use crate::profile::{self, Work};
use crate::stream::StreamInner;
use crate::stream::announcing::Announcing;

impl StreamInner {
    /// How a launch of `kernel` uses memory, its constants among it.
    fn effects<'a>(
        &'a self,
        kernel: &'static Kernel,
        accesses: &'a [Access<'a>],
    ) -> impl Iterator<Item = Effect<'a>> + Clone {
        // They have been made ready for the launch.
        let constants = kernel.descriptor().constants.iter();
        let read = constants.filter_map(|constant| {
            let resident = constant.resident(self.device()).ok()?;
            Some((resident.memory.writers(), constant.by_launches, false))
        });
        accesses.iter().map(Access::effect).chain(read)
    }

    /// Enqueues a kernel, which may be observed, by the backend.
    ///
    /// # Safety
    /// As [`launch_with`](crate::launch::launch_with), with memory ordered, the sizes within the limits, and the kernel
    /// prepared here.
    #[inline(never)]
    pub(super) unsafe fn launch(&self, launch: Launch<'_>, accesses: &[Access<'_>]) -> Result<()> {
        let _announcing = Announcing::on(self);
        let Launch { kernel, config, .. } = launch;
        profile::observe(self, Work::Kernel { kernel, shape: *config }, || {
            // SAFETY: passed on.
            unsafe { self.backend().launch(launch, self.effects(kernel, accesses)) }
        })
    }
}
