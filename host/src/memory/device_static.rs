//! The host's handles of statics in kernel modules: kernels change their values, and the host sets and reads them in stream
//! order.

use std::marker::PhantomData;

use ferrogrid_device::statics::StaticValue;

use crate::memory::constant::{ConstantMemory, variable};
use crate::order::Use;

/// A `#[device] static` of a module: on each device a variable in global memory, which kernels of the module change by atomic
/// operations (CUDA C++: `__device__`, `cudaMemcpyToSymbolAsync`, `cudaMemcpyFromSymbolAsync`; `cuModuleGetGlobal`).
///
/// Each device has a separate one, at first with the value in the source, and again after the device was reset or the module
/// unloaded. It is ordered like a buffer that is written: launches of kernels that mention it run one after the other,
/// also on different streams, and so do `set` and `get`.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use atomic::Ordering::Relaxed;
///
/// /// How many numbers were too large, in all launches together.
/// #[device]
/// pub static CLAMPED: DeviceAtomic<u32> = DeviceAtomic::new(0);
///
/// #[kernel]
/// pub fn clamp(t: Thread<1>, most: f32, mut x: DisjointSlice<f32>) {
///     if let Some(x) = x.get_mut(t.index())
///         && *x > most
///     {
///         *x = most;
///         CLAMPED.fetch_add(1, Relaxed);
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let mut x = stream.upload(&[1.0, 7.0, 3.0, 9.0])?;
/// kernels::clamp(&stream, Grid::cover(4), 5.0, &mut x)?;
/// kernels::clamp(&stream, Grid::cover(4), 2.0, &mut x)?;
/// assert_eq!(kernels::CLAMPED.get(&stream)?, 2 + 3);
/// kernels::CLAMPED.set(&stream, &0)?;
/// # assert_eq!(kernels::CLAMPED.get(&stream)?, 0);
/// # Ok(()) }
/// ```
pub struct DeviceStatic<T> {
    memory: ConstantMemory,
    value: PhantomData<fn() -> T>,
}

variable!(DeviceStatic, Use::Write, T: StaticValue, T, T::Value);
