//! Launches of prepared kernels on streams: the call of the driver, or the slow path.

use std::ffi::c_void;

use crate::backend::{LaunchConfig, Prepared};
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
    /// As [`launch`](crate::launch::launch_with), with memory ordered, the shape within the limits, and
    /// `prepared` from `prepare` of this kernel here.
    #[inline]
    pub(super) unsafe fn launch(
        &self,
        prepared: Prepared,
        kernel: &'static Kernel,
        config: &LaunchConfig,
        params: &[*const c_void],
        accesses: &[Access<'_>],
        names_writers: bool,
    ) -> Result<()> {
        match self.backend().driver_stream() {
            Some(stream) if !profile::is_observed() => {
                if names_writers {
                    let effects = accesses.iter().map(Access::effect);
                    // SAFETY: passed on.
                    return unsafe { stream.launch_watched(prepared, kernel, config, params, effects) };
                }
                // SAFETY: passed on.
                unsafe { stream.launch(prepared.function, kernel, config, params) }
            }
            // SAFETY: passed on.
            _ => unsafe { self.launch_slow(prepared, kernel, config, params, accesses) },
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
    pub(super) unsafe fn launch_slow(
        &self,
        prepared: Prepared,
        kernel: &'static Kernel,
        config: &LaunchConfig,
        params: &[*const c_void],
        accesses: &[Access<'_>],
    ) -> Result<()> {
        let _announcing = Announcing::on(self);
        profile::observe(self, Work::Kernel { kernel, shape: *config }, || {
            let effects = self.effects(kernel, accesses);
            // SAFETY: passed on.
            unsafe { self.backend().launch(prepared, kernel, config, params, effects) }
        })
    }
}
