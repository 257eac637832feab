//! Launches of prepared kernels on streams: the call of the driver, or the slow path.

use crate::backend::Launch;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::memory::access::Access;
use crate::order::writers::Effect;
use crate::profile::{self, Work};
use crate::stream::StreamInner;
use crate::stream::announcing::Announcing;

impl StreamInner {
    /// Enqueues a kernel. On a GPU `names_writers` says whether it may panic, or uses memory that names writers.
    ///
    /// # Safety
    /// As [`launch`](crate::launch::launch_with), with memory ordered, the sizes within the limits, and the kernel prepared
    /// here.
    #[inline]
    pub(super) unsafe fn launch(
        &self,
        launch: Launch<'_>,
        accesses: &[Access<'_>],
        names_writers: bool,
    ) -> Result<()> {
        match self.backend().driver_stream() {
            Some(stream) if !profile::is_observed() => {
                if names_writers {
                    let effects = accesses.iter().map(Access::effect);
                    // SAFETY: passed on.
                    return unsafe { stream.launch_watched(launch, effects) };
                }
                // SAFETY: passed on.
                unsafe { stream.launch(launch) }
            }
            // SAFETY: passed on.
            _ => unsafe { self.launch_slow(launch, accesses) },
        }
    }

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

    /// The slow path of `launch`: profiled, recorded or on the CPU.
    ///
    /// # Safety
    /// As for `launch`.
    #[inline(never)]
    pub(super) unsafe fn launch_slow(&self, launch: Launch<'_>, accesses: &[Access<'_>]) -> Result<()> {
        let _announcing = Announcing::on(self);
        let Launch { kernel, config, .. } = launch;
        profile::observe(self, Work::Kernel { kernel, shape: *config }, || {
            // SAFETY: passed on.
            unsafe { self.backend().launch(launch, self.effects(kernel, accesses)) }
        })
    }
}
