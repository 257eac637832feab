//! Programmatic dependent launch: lets the next launch on the stream begin early.

use crate::thread::Thread;

impl<const R: usize> Thread<'_, R> {
    /// Lets the next launch on the stream begin before this one ends (PTX `griddepcontrol.launch_dependents`,
    /// CUDA's `cudaTriggerProgrammaticLaunchCompletion`). Its kernel must be a `#[kernel(dependent_launch)]`.
    /// It begins as soon as all blocks of this launch have called this or have ended; its blocks wait for the
    /// end of this kernel before they touch memory.
    ///
    /// The call is a hint and may stand anywhere; it is best where little work is left. One call by any
    /// thread counts for the whole block. Without it the next launch begins when the last blocks have ended.
    ///
    /// It does nothing before compute capability 9.0 and on the CPU device.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// One step of many: the next one's blocks are there when this one ends.
    /// #[kernel(dependent_launch)]
    /// pub fn step(t: Thread<1>, x: &[f32], mut y: DisjointSlice<f32>) {
    ///     t.launch_dependents();
    ///     let i = t.index();
    ///     if let Some(y) = y.get_mut(i) {
    ///         *y = 0.5 * (x[i.get()] + x[(i.get() + 1) % x.len()]);
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let (mut a, mut b) = (stream.upload(&[1.0_f32, 0.0])?, stream.zeros(2)?);
    /// for _ in 0..10 {
    ///     kernels::step(&stream, Grid::cover(2), &a, &mut b)?;
    ///     kernels::step(&stream, Grid::cover(2), &b, &mut a)?;
    /// }
    /// assert_eq!(stream.download(&a)?, [0.5, 0.5]);
    /// # Ok(()) }
    /// ```
    #[inline(always)]
    pub fn launch_dependents(&self) {
        #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90"))]
        // SAFETY: it touches no memory; what begins by it waits for the end of this grid before it does.
        unsafe {
            core::arch::asm!("griddepcontrol.launch_dependents;", options(nomem, nostack, preserves_flags));
        }
    }
}
