//! The host's handles of constants in kernel modules: it sets and reads their values in stream
//! order. `memory` is where each device keeps one, `enqueueing` the lock that replaces borrows.

mod enqueueing;
mod memory;

use std::marker::PhantomData;

use ferrogrid_device::{Constant, DeviceCopy};

use crate::backend::{Contents, Place};
use crate::error::Result;
use crate::memory::buffer::DeviceBuffer;
use crate::order::Use;
use crate::stream::Stream;
use crate::stream::announcing::Announcing;
use crate::view::DeviceView;
use crate::view::agree;
use crate::view::argument::DeviceInput;

pub(crate) use enqueueing::Enqueueing;
pub use memory::ConstantMemory;
pub(crate) use memory::{ENQUEUERS, Running, begin_launch};

/// A `#[constant]` of a module: on each device a value in constant memory, which kernels of the module read
/// (CUDA C++: `__constant__`, `cudaMemcpyToSymbolAsync`, `cudaMemcpyFromSymbolAsync`; `cuModuleGetGlobal`).
///
/// Each device has a separate value, at first the one in the source. It is ordered like a buffer: a launch of a
/// kernel that may read it comes after what set it, on any stream, and what sets it comes after the launches
/// before.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// The weights of a blur of three elements.
/// #[constant]
/// pub static WEIGHTS: Constant<[f32; 3]> = Constant::new([0.25, 0.5, 0.25]);
///
/// #[kernel]
/// pub fn blur(t: Thread<1>, x: &[f32], mut y: DisjointSlice<f32>) {
///     let i = t.index();
///     if let Some(y) = y.get_mut(i) {
///         *y = (0..3).map(|k| WEIGHTS[k] * x[i.get() + k]).sum();
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&[0.0, 4.0, 8.0, 0.0])?;
/// let mut y = stream.zeros(2)?;
/// kernels::blur(&stream, Grid::cover(2), &x, &mut y)?; // with the weights in the source
/// assert_eq!(stream.download(&y)?, [4.0, 5.0]);
/// kernels::WEIGHTS.set(&stream, &[0.0, 0.0, 1.0])?;
/// assert_eq!(kernels::WEIGHTS.get(&stream)?, [0.0, 0.0, 1.0]);
/// kernels::blur(&stream, Grid::cover(2), &x, &mut y)?; // with others
/// assert_eq!(stream.download(&y)?, [8.0, 0.0]);
/// # Ok(()) }
/// ```
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// #[constant]
/// pub static FACTOR: Constant<u32> = Constant::new(2);
///
/// #[kernel]
/// pub fn scale(t: Thread<1>, mut y: DisjointSlice<u32>) {
///     if let Some(y) = y.get_mut(t.index()) {
///         *y *= *FACTOR;
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let factors = stream.upload(&[3, 10])?; // as if a kernel had found them
/// let mut y = stream.fill(1, 4)?;
/// for factor in factors.chunks(1)? {
///     kernels::FACTOR.copy_from(&stream, factor)?; // on the device, without waiting
///     kernels::scale(&stream, Grid::cover(4), &mut y)?;
/// }
/// assert_eq!(stream.download(&y)?, [30; 4]);
/// assert!(kernels::FACTOR.name().ends_with("kernels::FACTOR"));
/// # Ok(()) }
/// ```
pub struct DeviceConstant<T> {
    memory: ConstantMemory,
    value: PhantomData<fn() -> T>,
}

/// What constants and statics of modules share: `$T` is what `new` is given, `$Here` what kernels see, `$Value` what the host
/// sets and reads, byte for byte the same.
macro_rules! variable {
    ($Variable:ident, $by_launches:expr, $T:ident: $Bound:path, $Here:ty, $Value:ty) => {
        // Without bounds: that it may be one, the module demands, once and at the type.
        impl<$T> $Variable<$T> {
            /// The variable `name`, in the PTX of `image` under the name `symbol`.
            #[doc(hidden)]
            pub const fn new(
                name: &'static str,
                symbol: &'static str,
                image: &'static $crate::kernel::image::ModuleImage,
                initial: &'static $crate::memory::constant::InitialValue<$T>,
            ) -> Self {
                let memory = ConstantMemory::new(name, symbol, image, initial, $by_launches);
                $Variable { memory, value: std::marker::PhantomData }
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
            pub fn here(&self) -> *const $Here {
                self.memory.here().cast()
            }
        }

        impl<$T: $Bound> $Variable<$T> {
            /// Sets it on the device of `stream`, after all work there so far, and after all launches so far that may use it
            /// (`cudaMemcpyToSymbol`). Returns when `value` is free to be changed. A graph that records this keeps a copy of
            /// `value` as it is now; to have each launch take another, record `copy_from` a buffer of the graph.
            ///
            /// # Errors
            /// If the module does not load, or a failure of the device.
            pub fn set(&self, stream: &$crate::Stream, value: &$Value) -> $crate::Result<()> {
                // SAFETY: `new` was given a value of that layout.
                unsafe { self.memory.set(stream, value) }
            }

            /// As `set`, with the only element of a buffer or view, without waiting; also in a graph.
            ///
            /// # Errors
            /// [`Error::LengthMismatch`](crate::Error::LengthMismatch) if `source` has not one element, or as `set`.
            pub fn copy_from<'a>(
                &self,
                stream: &$crate::Stream,
                source: impl $crate::DeviceInput<'a, $Value>,
            ) -> $crate::Result<()> {
                // SAFETY: `new` was given a value of that layout.
                unsafe { self.memory.copy_from(stream, source) }
            }

            /// What the device of `stream` has, once all work enqueued there so far has run, and all launches so far that
            /// may change it (`cudaMemcpyFromSymbol`).
            ///
            /// # Errors
            /// A failure of the work before, as [`Stream::synchronize`](crate::Stream::synchronize), and of launches that
            /// changed it; or as `set`.
            pub fn get(&self, stream: &$crate::Stream) -> $crate::Result<$Value> {
                // SAFETY: `new` was given a value of that layout.
                unsafe { self.memory.get(stream) }
            }
        }

        debug_by_methods!([$T] $Variable<$T> { name });
    };
}

pub(crate) use variable;

variable!(DeviceConstant, Use::Read, T: DeviceCopy, Constant<T>, T);

impl ConstantMemory {
    /// [`DeviceConstant::set`].
    ///
    /// # Safety
    /// The memory holds `T`s, byte for byte.
    pub(crate) unsafe fn set<T: DeviceCopy>(&self, stream: &Stream, value: &T) -> Result<()> {
        let value = std::slice::from_ref(value);
        let Some(recording) = stream.inner().recording() else {
            // SAFETY: passed on.
            return unsafe { self.copy_from(stream, &stream.upload(value)?) };
        };
        // First: what fails later would leave its value in the graph.
        self.resident(stream.device())?;
        let kept = recording.keep(stream.device(), |stream| Ok(stream.upload(value)?.into_memory()))?;
        let kept = DeviceView::<T>::whole(kept.pointer().cast_const().cast(), 1, &kept);
        // SAFETY: passed on.
        unsafe { self.copy_from(stream, kept) }
    }

    /// [`DeviceConstant::copy_from`].
    ///
    /// # Safety
    /// The memory holds `T`s, byte for byte.
    pub(crate) unsafe fn copy_from<'a, T: DeviceCopy>(
        &self,
        stream: &Stream,
        source: impl DeviceInput<'a, T>,
    ) -> Result<()> {
        let source = source.into_input();
        agree("DeviceConstant::copy_from", source.len(), 1)?;
        let resident = self.resident(stream.device())?;
        let _enqueueing = ENQUEUERS.alone();
        let _announcing = Announcing::on(stream.inner());
        source.access().begin(stream.inner())?;
        resident.begin(stream.inner(), Use::Write)?;
        let places = (Place::Device, source.memory().place());
        // SAFETY: both are a `T` of this device, ordered here for their use: no other thread enqueues a use of the
        // constant meanwhile. They do not overlap: no view leads to constants.
        unsafe {
            stream.inner().copy(resident.memory.pointer(), source.start().cast(), size_of::<T>(), places)?
        };
        if stream.inner().recording().is_none() {
            resident.memory.writers().receive(source.memory().writers().sources(), true);
        }
        Ok(())
    }

    /// [`DeviceConstant::get`].
    ///
    /// # Safety
    /// The memory holds `T`s, byte for byte.
    pub(crate) unsafe fn get<T: DeviceCopy>(&self, stream: &Stream) -> Result<T> {
        let resident = self.resident(stream.device())?;
        let mut copy = DeviceBuffer::<T>::allocate(stream, 1, Contents::Uninitialised)?;
        {
            let _enqueueing = ENQUEUERS.with_others();
            resident.begin(stream.inner(), Use::Read)?;
            let (target, places) = (copy.view_mut().start().cast(), (Place::Device, Place::Device));
            // SAFETY: both are a `T` of this device; the copy is not in use yet, and no thread enqueues a write of
            // the constant meanwhile.
            unsafe { stream.inner().copy(target, resident.memory.pointer(), size_of::<T>(), places)? };
            copy.memory().writers().receive(resident.memory.writers().sources(), true);
        }
        let mut value = stream.download(&copy)?;
        Ok(value.swap_remove(0))
    }
}

/// What a constant holds at first.
#[doc(hidden)]
#[repr(transparent)]
pub struct InitialValue<T>(#[allow(dead_code)] Constant<T>);

// SAFETY: the value is not accessible; `DeviceCopy` values are copied byte for byte.
unsafe impl<T> Sync for InitialValue<T> {}

impl<T> InitialValue<T> {
    /// The value in the source.
    pub const fn new(value: Constant<T>) -> Self {
        InitialValue(value)
    }
}
