//! The host's handles of statics in kernel modules: kernels change their values, and the host sets and reads them in stream
//! order.

use std::fmt;
use std::marker::PhantomData;

use ferrogrid_device::statics::StaticValue;

use crate::error::Result;
use crate::kernel::image::ModuleImage;
use crate::launch::argument::DeviceInput;
use crate::memory::constant::{ConstantMemory, InitialValue};
use crate::order::Use;
use crate::stream::Stream;

/// A `#[device] static` of a module: on each device a variable in global memory, which kernels of the module change by atomic
/// operations (CUDA C++: `__device__`, `cudaMemcpyToSymbolAsync`, `cudaMemcpyFromSymbolAsync`; `cuModuleGetGlobal`).
///
/// Each device has a separate one, at first with the value in the source, and again after the device was reset or the module
/// unloaded. It is ordered like a buffer that is written: launches of kernels that mention it come one after the other, on whichever
/// streams, and so do `set` and `get`.
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

// That `T` is a `StaticValue`, the module demands, once and at the type.
impl<T> DeviceStatic<T> {
    /// The static `name`, in the PTX of `image` under the name `symbol`.
    #[doc(hidden)]
    pub const fn new(
        name: &'static str,
        symbol: &'static str,
        image: &'static ModuleImage,
        initial: &'static InitialValue<T>,
    ) -> Self {
        let memory = ConstantMemory::of(name, symbol, image, initial, Use::Write);
        DeviceStatic { memory, value: PhantomData }
    }

    /// Its name, with the path of its module.
    pub fn name(&self) -> &'static str {
        self.memory.name()
    }

    /// Where it is kept, without its type.
    #[doc(hidden)]
    pub const fn memory(&self) -> &ConstantMemory {
        &self.memory
    }

    /// Where the CPU device has it whose kernel runs on this thread.
    ///
    /// # Panics
    /// If no kernel of its module runs here.
    #[doc(hidden)]
    #[inline]
    pub fn here(&self) -> *const T {
        self.memory.here().cast()
    }
}

impl<T: StaticValue> DeviceStatic<T> {
    /// Sets it on the device of `stream`, after all work there so far, and after all launches so far that may use it
    /// (`cudaMemcpyToSymbol`). Returns when `value` can be changed again. A graph that records this keeps a copy of `value`.
    ///
    /// # Errors
    /// If the module does not load, or a failure of the device.
    pub fn set(&self, stream: &Stream, value: &T::Value) -> Result<()> {
        // SAFETY: `new` was given a `T`, which is laid out as its value.
        unsafe { self.memory.set(stream, value) }
    }

    /// As [`set`](DeviceStatic::set), with the only element of a buffer or view, without waiting; also in a graph.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`](crate::Error::LengthMismatch) if `source` has not one element, or as
    /// [`set`](DeviceStatic::set).
    pub fn copy_from<'a>(&self, stream: &Stream, source: impl DeviceInput<'a, T::Value>) -> Result<()> {
        // SAFETY: `new` was given a `T`, which is laid out as its value.
        unsafe { self.memory.copy_from(stream, source) }
    }

    /// The value on the device of `stream`, once all work enqueued there so far has run, and all launches so far that may use it
    /// (`cudaMemcpyFromSymbol`).
    ///
    /// # Errors
    /// A failure of the work before, as [`Stream::synchronize`], and of launches that changed it; or as [`set`](DeviceStatic::set).
    pub fn get(&self, stream: &Stream) -> Result<T::Value> {
        // SAFETY: `new` was given a `T`, which is laid out as its value.
        unsafe { self.memory.get(stream) }
    }
}

impl<T> fmt::Debug for DeviceStatic<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceStatic").field("name", &self.name()).finish_non_exhaustive()
    }
}
