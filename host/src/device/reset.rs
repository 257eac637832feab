//! Reset of a GPU to its state at the start of the process.

use crate::backend::{DeviceBackend, retired};
use crate::device::Device;
use crate::error::{Error, Result};

impl Device {
    /// Destroys the GPU's primary context and creates it again (`cuDevicePrimaryCtxReset`, `cudaDeviceReset`). Returns the
    /// device to continue with, which [`Device::cuda`] also returns from then on.
    ///
    /// All that was made on the device before is gone. Its handles (streams, buffers, events, modules, graphs, pools, and
    /// this `Device`) give [`Error::DeviceReset`], and dropping them calls no driver. Kernels and constants of the program
    /// are loaded again at their next use, with the values in the source. Settings of the device are as at the start
    /// of the process: limits and thresholds of its pool, where it prints to, access to peers, both ways.
    ///
    /// Page-locked and managed memory would be taken from under the host, so it must be dropped before; registered memory
    /// ([`Device::pin`]) stays as ordinary memory. A GPU that the process has not opened
    /// is left alone.
    ///
    /// After [`Error::LaunchFailed`] NVIDIA's documentation wants the process ended, and drivers have it their way: 580 makes
    /// no context in such a process any more, by none of the ways tried on an H200, and this returns an error
    /// ([`Error::Unsupported`]). To survive such a failure, run kernels in a separate process. A panic of a kernel
    /// in Rust is no such failure, and needs no reset.
    ///
    /// ```no_run
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// fn work(device: &Device) -> ferrogrid::Result<Vec<u32>> {
    ///     let stream = device.new_stream()?;
    ///     let buffer = stream.zeros::<u32>(1000)?;
    ///     // launches ...
    ///     stream.download(&buffer)
    /// }
    ///
    /// let device = Device::cuda(0)?;
    /// let first = work(&device)?;
    /// // SAFETY: nothing of `work` is left, no other thread uses the GPU, and no other library.
    /// let device = unsafe { device.reset()? }; // all memory of the pool is back, limits and constants are as at first
    /// assert_eq!(work(&device)?, first);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Unsupported`] on the CPU device, where no failure outlasts its work, and where the driver makes no new
    /// context; [`Error::HostMemoryInUse`] while there
    /// is page-locked or managed memory; [`Error::DeviceReset`] if this handle is from before another reset; what the
    /// driver says if the new context does not work otherwise.
    ///
    /// # Safety
    /// - While this runs, no other thread uses the device or anything made on it.
    /// - Handles and memory of the primary context that other code holds are not used afterwards: those that `as_raw`
    ///   and `as_device_ptr` returned, exported tensors, and objects of other libraries there.
    /// - Other devices' work, enqueued before or afterwards, uses nothing that was made on this one before: memory that
    ///   they reach as peers, events that their graphs wait for.
    pub unsafe fn reset(&self) -> Result<Device> {
        let Some(device) = self.backend().as_cuda() else {
            return Err(Error::unsupported(
                "a reset",
                self,
                "no failure of a kernel outlasts its work there",
            ));
        };
        // What is kept until work has run may be page-locked memory.
        device.wait_before_reset();
        retired::collect();
        // SAFETY: passed on.
        let fresh = unsafe { device.reset()? };
        // What waits for events of the old device waits no longer.
        retired::collect();
        Ok(Device::from(DeviceBackend::from(fresh)))
    }
}
