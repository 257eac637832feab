//! Devices. This file has [`Device`]: enumeration, allocation and limits.
//!
//! `properties` queries what a device is like, `kernel` what kernels are on it. `context` is the CUDA context for other code,
//! `peer` the access of devices to each other's memory, `reset` a GPU's new start, and `nvml` its temperature, power and
//! clocks.

pub(crate) mod context;
mod kernel;
#[cfg(feature = "nvml")]
pub(crate) mod nvml;
pub(crate) mod peer;
pub(crate) mod properties;
pub(crate) mod reset;

use std::fmt;
use std::sync::Arc;

use crate::backend::{DeviceBackend, Limits};
use crate::error::{Error, Result};
use crate::properties::cpu_options::CpuOptions;
use crate::properties::memory_info::MemoryInfo;

/// A device that runs kernels: a CUDA GPU, or the CPU. A cheap handle; clones are the same device.
///
/// ```
/// # fn main() -> ferrogrid_host::Result<()> {
/// use ferrogrid_host::Device;
///
/// let device = Device::best()?; // the first CUDA GPU, else the CPU
/// println!("{device}: at most {} threads in a block", device.limits().max_threads_per_block);
/// let stream = device.new_stream()?;
/// # drop(stream);
/// # Ok(()) }
/// ```
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::DeviceKind;
///
/// let device = Device::cpu();
/// assert_eq!((device.kind(), device.is_cuda()), (DeviceKind::Cpu, false));
/// assert_eq!((device.ordinal(), device.compute_capability()), (None, None)); // Some(0), Some((9, 0)) for an H200
/// assert!(device.to_string().contains(device.name()));
/// assert_eq!(device.shared_memory_per_block(), 227 << 10); // 227 KiB
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Device {
    backend: DeviceBackend,
}

/// The kind of a device.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::DeviceKind;
///
/// match Device::best()?.kind() {
///     DeviceKind::Cuda => println!("kernels run on a GPU"),
///     DeviceKind::Cpu => println!("kernels run on the CPU"),
///     _ => println!("kernels run somewhere else"), // further kinds may come
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeviceKind {
    /// A GPU driven by CUDA.
    Cuda,
    /// The machine's own processor.
    Cpu,
}

/// The environment variable that overrides [`Device::best`].
const VARIABLE: &str = "FERROGRID_DEVICE";

impl Device {
    /// The default device: the first CUDA GPU that works, otherwise the CPU.
    ///
    /// The environment variable `FERROGRID_DEVICE` overrides: `cpu`, `cuda` (the first GPU) or
    /// `cuda:N`. Then a missing device is an error.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// let device = Device::best()?;
    /// println!("{device}: {:?}", device.kind()); // CUDA device 0 (NVIDIA H200): Cuda
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Only if `FERROGRID_DEVICE` is set: [`Error::Environment`] for an invalid value, or
    /// the errors of [`Device::cuda`].
    pub fn best() -> Result<Device> {
        match std::env::var_os(VARIABLE) {
            Some(choice) if !choice.is_empty() => Self::named(&choice.to_string_lossy()),
            _ => Ok(Self::first_cuda().unwrap_or_else(Self::cpu)),
        }
    }

    /// CUDA GPU number `ordinal`, in the driver's order (`cuDeviceGet`; `CUDA_VISIBLE_DEVICES`
    /// counts).
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// use ferrogrid_host::{Device, Error};
    ///
    /// match Device::cuda(0) {
    ///     Ok(gpu) => println!("{gpu}"),
    ///     Err(Error::NoDriver { .. } | Error::NoDevice) => println!("no GPU here"),
    ///     Err(error) => return Err(error),
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::NoDriver`], [`Error::DriverTooOld`], [`Error::NoDevice`], [`Error::InvalidDevice`],
    /// or the driver's error if it cannot open the device.
    pub fn cuda(ordinal: usize) -> Result<Device> {
        DeviceBackend::cuda(ordinal).map(Self::from)
    }

    /// The CPU as a device: kernels run natively, blocks in parallel over as many threads as the
    /// machine has (`FERROGRID_CPU_THREADS` overrides). This is the same device each time;
    /// [`Device::cpu_with`] makes others.
    ///
    /// To kernels it is a CUDA device with warps of 32 lanes, at most 1024 threads and 227 KiB of shared
    /// memory in a block, and all the memory of the machine. Shared memory holds bytes of 0xA5 when a block
    /// starts. Threads that may wait for each other have stacks of 256 KiB (`FERROGRID_CPU_STACK` overrides,
    /// in KiB); one that uses more ends the process with a message.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// let device = Device::cpu();
    /// assert!(!device.is_cuda());
    /// assert_eq!(device.shared_memory_per_block(), 227 * 1024);
    /// # Ok(()) }
    /// ```
    pub fn cpu() -> Device {
        Self::from(DeviceBackend::cpu())
    }

    /// A further CPU device, with its own worker threads and limits, for tests: of several devices in one
    /// process, of too little memory, of any number of workers. It lives as long as the process.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// use ferrogrid_host::{CpuOptions, Device, Error};
    ///
    /// let small = Device::cpu_with(CpuOptions::new().memory(1000).workers(1))?;
    /// let stream = small.new_stream()?;
    /// let buffer = stream.zeros::<u8>(800)?;
    /// assert!(matches!(stream.zeros::<u8>(800), Err(Error::OutOfMemory { free: Some(200), .. })));
    /// drop(buffer);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::CpuOption`] for a value that no device can have, [`Error::Environment`] if
    /// `FERROGRID_CPU_THREADS` applies and is invalid.
    pub fn cpu_with(options: CpuOptions) -> Result<Device> {
        DeviceBackend::cpu_with(&options).map(Self::from)
    }

    /// All devices: the CUDA GPUs in the driver's order (`cuDeviceGetCount`), then the CPU. GPUs are not opened by
    /// this.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// for device in ferrogrid_host::Device::all() {
    ///     println!("{device}, compute capability {:?}", device.compute_capability());
    /// }
    /// # Ok(()) }
    /// ```
    pub fn all() -> Vec<Device> {
        DeviceBackend::all_cuda().map(Self::from).chain([Self::cpu()]).collect()
    }

    /// How many CUDA GPUs there are (`cuDeviceGetCount`): 0 also without a usable driver, as
    /// [`Device::cuda`] says.
    ///
    /// ```
    /// use ferrogrid_host::Device;
    ///
    /// assert_eq!(Device::all().len(), Device::count() + 1); // the CPU device is the last
    /// ```
    #[doc(alias = "get_num_devices")]
    pub fn count() -> usize {
        DeviceBackend::all_cuda().count()
    }

    fn named(choice: &str) -> Result<Device> {
        match choice {
            "cpu" => return Ok(Self::cpu()),
            "cuda" => return Self::cuda(0),
            _ => {}
        }
        let ordinal = choice.strip_prefix("cuda:").and_then(|number| number.parse().ok());
        let ordinal = ordinal.ok_or_else(|| Error::Environment {
            variable: VARIABLE,
            value: choice.into(),
            expected: "`cpu`, `cuda` or `cuda:N`",
        })?;
        Self::cuda(ordinal)
    }

    fn first_cuda() -> Option<Device> {
        DeviceBackend::all_cuda().find(|device| device.works()).map(Self::from)
    }

    /// The device's name from its vendor (`cuDeviceGetName`).
    pub fn name(&self) -> &str {
        self.backend.name()
    }

    /// Its kind.
    pub fn kind(&self) -> DeviceKind {
        if self.backend.is_cuda() { DeviceKind::Cuda } else { DeviceKind::Cpu }
    }

    /// Whether it is a CUDA GPU.
    pub fn is_cuda(&self) -> bool {
        self.kind() == DeviceKind::Cuda
    }

    /// Its number among the CUDA GPUs, as [`Device::cuda`] takes it. `None` for the CPU.
    pub fn ordinal(&self) -> Option<usize> {
        self.backend.ordinal()
    }

    /// The CUDA compute capability (major, minor): (9, 0) for an H200 (`CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR`,
    /// `_MINOR`). `None` for the CPU.
    pub fn compute_capability(&self) -> Option<(u32, u32)> {
        self.backend.compute_capability()
    }

    /// The architecture for its code, `sm_90` for an H200, as in `FERROGRID_ARCH` and for nvcc.
    /// `None` for the CPU.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let device = ferrogrid_host::Device::best()?;
    /// let number = device.compute_capability().map(|(major, minor)| major * 10 + minor);
    /// assert_eq!(device.arch(), number.map(|number| format!("sm_{number}")));
    /// # Ok(()) }
    /// ```
    pub fn arch(&self) -> Option<String> {
        self.compute_capability().map(|(major, minor)| format!("sm_{major}{minor}"))
    }

    /// Its limits for one launch.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// let device = Device::cpu();
    /// let limits = device.limits();
    /// assert_eq!((limits.max_threads_per_block, limits.max_block), (1024, [1024, 1024, 64]));
    /// # Ok(()) }
    /// ```
    #[inline]
    pub fn limits(&self) -> &Limits {
        self.backend.limits()
    }

    /// The most bytes of shared memory that a block can have (`CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN`).
    #[inline]
    pub fn shared_memory_per_block(&self) -> usize {
        self.backend.shared_memory_per_block()
    }

    /// Its memory, free and in all (`cuMemGetInfo`); `None` if the system does not report it.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let device = ferrogrid_host::Device::cpu();
    /// if let Some(memory) = device.memory_info()? {
    ///     assert!(memory.free <= memory.total);
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the driver fails.
    pub fn memory_info(&self) -> Result<Option<MemoryInfo>> {
        self.backend.memory_info()
    }

    /// Returns unused memory of the device's pool to the driver, except
    /// `keep` bytes, so that other programs can use it (`cuMemPoolTrimTo`). Buffers in use stay.
    /// The CPU device keeps no such memory.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// drop(stream.zeros::<u8>(1 << 20)?); // the pool keeps the megabyte for the next buffer
    /// stream.synchronize()?;
    /// stream.device().trim_memory(0)?; // other programs can have it
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the device has failed.
    pub fn trim_memory(&self, keep: usize) -> Result<()> {
        self.backend.trim_memory(keep)
    }

    /// Passes the output of kernels on this device to `sink` from now on, one call for each `println!` or
    /// `print!`, with its line end. Without this it goes to standard output.
    ///
    /// Text arrives while some thread waits for the device or queries whether its work has run (`synchronize`, `download`,
    /// `is_complete`), on that thread, and never on a thread that runs kernels. No lock is held meanwhile: `sink` may
    /// wait for streams itself, print, or set another sink; and if it panics, so does the call that waits. If several
    /// threads wait at the same time, each outputs a part. Each device has a separate sink.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// use std::sync::{Arc, Mutex};
    ///
    /// let device = ferrogrid_host::Device::cpu();
    /// let lines = Arc::new(Mutex::new(Vec::new()));
    /// let kept = lines.clone();
    /// device.set_output(move |text| kept.lock().unwrap().push(text.to_owned()));
    /// device.clear_output();
    /// # Ok(()) }
    /// ```
    pub fn set_output(&self, sink: impl Fn(&str) + Send + Sync + 'static) {
        self.backend.set_output_sink(Some(Arc::new(sink)));
    }

    /// Sends the output of kernels on this device to standard output again.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// # #[kernel]
    /// # pub fn greet(t: Thread<1>) {
    /// #     ferrogrid::device::println!("thread {}", t.thread_rank());
    /// # }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// use std::sync::{Arc, Mutex};
    ///
    /// let (device, text) = (Device::cpu(), Arc::new(Mutex::new(String::new())));
    /// let kept = text.clone();
    /// device.set_output(move |line| kept.lock().unwrap().push_str(line));
    /// let stream = device.new_stream()?;
    /// kernels::greet(&stream, Grid::new(1, 1))?;
    /// stream.synchronize()?;
    /// device.clear_output();
    /// kernels::greet(&stream, Grid::new(1, 1))?; // to standard output
    /// stream.synchronize()?;
    /// assert_eq!(*text.lock().unwrap(), "thread 0\n");
    /// # Ok(()) }
    /// ```
    pub fn clear_output(&self) {
        self.backend.set_output_sink(None);
    }

    /// Passes printed text on, on a thread that has waited for or queried their work.
    pub(crate) fn deliver_output(&self) {
        self.backend.deliver_output();
    }

    /// Sets how many bytes of printed text the device keeps until a thread waits for it, rounded up to a power of two:
    /// by default 1 MiB on a GPU and 64 MiB on the CPU device. Text beyond that is dropped, and counted.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// let device = Device::cpu(); // best before the first kernel that prints
    /// device.set_output_capacity(16 << 20)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::OutputCapacity`] for less than 4 KiB or more than 1 GiB; [`Error::OutputInUse`] if kernels
    /// that print have been loaded on a GPU.
    pub fn set_output_capacity(&self, bytes: usize) -> Result<()> {
        const LEAST: usize = 1 << 12;
        const MOST: usize = 1 << 30;
        if !(LEAST..=MOST).contains(&bytes) {
            return Err(Error::OutputCapacity { bytes, least: LEAST, most: MOST });
        }
        self.backend.set_output_capacity(bytes.next_power_of_two())
    }

    /// That it is `user`, the device of a stream that is to use what it has; otherwise the error of
    /// [`Error::device_mismatch`].
    pub(crate) fn check_is(&self, user: &Device) -> Result<()> {
        if self == user { Ok(()) } else { Err(Error::device_mismatch(self, user)) }
    }

    pub(crate) fn backend(&self) -> DeviceBackend {
        self.backend
    }
}

impl Error {
    /// That memory or a graph of one device was to be used on another.
    #[cold]
    pub(crate) fn device_mismatch(owner: &Device, user: &Device) -> Self {
        let mut devices = [owner, user].into_iter();
        // Two may have one name, where one is from before a reset.
        if let Some(error) = devices.find_map(|device| device.backend().was_reset()) {
            return error;
        }
        Error::DeviceMismatch { buffer: owner.to_string().into(), stream: user.to_string().into() }
    }
}

impl From<DeviceBackend> for Device {
    fn from(backend: DeviceBackend) -> Self {
        Device { backend }
    }
}

impl fmt::Display for Device {
    /// `CUDA device 0 (NVIDIA H200)` or `the CPU device (its name)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.backend.fmt(f)
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({self})")
    }
}
