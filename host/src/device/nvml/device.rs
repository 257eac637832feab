//! A GPU in NVML: methods for common queries, and the raw handle for others.

use nvml_wrapper::bitmasks::device::ThrottleReasons;
#[cfg(target_os = "linux")]
use nvml_wrapper::enum_wrappers::device::TopologyLevel;
use nvml_wrapper::enum_wrappers::device::{
    Clock, EccCounter, MemoryError, PcieUtilCounter, TemperatureSensor, TemperatureThreshold,
};
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;

use super::{failed, figure, library};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::properties::PciAddress;

/// The most NVLinks that a GPU has (`NVML_NVLINK_MAX_LINKS`).
const MOST_LINKS: u32 = 18;

/// A GPU as NVIDIA's management library knows it, from [`Device::nvml`], or one of [`NvmlDevice::all`], which includes
/// those that `CUDA_VISIBLE_DEVICES` hides. A figure that the GPU or the driver does not have is `None`.
///
/// For other queries, use the crate `nvml-wrapper`, which is re-exported as
/// [`nvml_wrapper`](crate::nvml_wrapper), by [`NvmlDevice::handle`].
///
/// ```
/// use ferrogrid_host::{Error, NvmlDevice};
///
/// match NvmlDevice::all() {
///     Err(Error::Nvml { reason }) => println!("no NVML: {reason}"),
///     Err(error) => panic!("{error}"),
///     Ok(gpus) => {
///         for gpu in gpus {
///             let (memory, power) = (gpu.memory()?, gpu.power()?);
///             println!("{}: {} of {} bytes, {:?} mW", gpu.name()?, memory.used, memory.total, power.usage);
///             for process in gpu.processes()? {
///                 println!("  {} has {:?} bytes", process.pid, process.memory);
///             }
///             let serial = gpu.handle().serial(); // any function of the crate
///             println!("  {serial:?}");
///         }
///     }
/// }
/// # Ok::<(), Error>(())
/// ```
pub struct NvmlDevice {
    handle: nvml_wrapper::Device<'static>,
}

/// One clock of a GPU in MHz.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct NvmlClock {
    /// Now (`nvmlDeviceGetClockInfo`).
    pub now: Option<u32>,
    /// At most (`nvmlDeviceGetMaxClockInfo`).
    pub max: Option<u32>,
}

/// The clocks of a GPU, from [`NvmlDevice::clocks`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct NvmlClocks {
    /// Of the graphics engines.
    pub graphics: NvmlClock,
    /// Of the multiprocessors.
    pub sm: NvmlClock,
    /// Of the memory.
    pub memory: NvmlClock,
    /// Of the video engines.
    pub video: NvmlClock,
}

/// The memory of a GPU in bytes, by all programs together, from [`NvmlDevice::memory`] (`nvmlDeviceGetMemoryInfo`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct NvmlMemory {
    /// All of it.
    pub total: u64,
    /// In use.
    pub used: u64,
    /// Free.
    pub free: u64,
}

/// A process that uses a GPU, from [`NvmlDevice::processes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct NvmlProcess {
    /// Its number in the system.
    pub pid: u32,
    /// Bytes of the GPU's memory, if the system reports them.
    pub memory: Option<u64>,
    /// Its kind of work there.
    pub kind: NvmlProcessKind,
}

/// The kind of work of a process on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub enum NvmlProcessKind {
    /// It computes (`nvmlDeviceGetComputeRunningProcesses`).
    Compute,
    /// It draws (`nvmlDeviceGetGraphicsRunningProcesses`).
    Graphics,
}

/// An active NVLink of a GPU, from [`NvmlDevice::nvlinks`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct NvmlLink {
    /// Its number on this GPU.
    pub link: u32,
    /// Its version (`nvmlDeviceGetNvLinkVersion`).
    pub version: Option<u32>,
    /// The other end: another GPU, or a switch (`nvmlDeviceGetNvLinkRemotePciInfo`).
    pub peer: Option<PciAddress>,
}

/// Figures that are read one by one: the struct that has them, and the method of [`NvmlDevice`] that reads each.
macro_rules! figures {
    ($(
        $(#[$doc:meta])* $name:ident
        $(#[$read_doc:meta])* by $read:ident, of $gpu:ident {
            $( $(#[$figure_doc:meta])* $figure:ident: $ty:ty = $asked:expr; )*
        }
    )*) => { $(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        #[non_exhaustive]
        pub struct $name {
            $( $(#[$figure_doc])* pub $figure: Option<$ty>, )*
        }

        impl NvmlDevice {
            $(#[$read_doc])*
            ///
            /// # Errors
            /// If NVML fails.
            pub fn $read(&self) -> Result<$name> {
                let $gpu = &self.handle;
                Ok($name { $( $figure: figure($asked)?, )* })
            }
        }
    )* };
}

figures! {
    /// The current figures of a GPU, from [`Device::nvml_figures`]. A figure that this GPU does not have is
    /// `None`.
    ///
    /// ```
    /// use ferrogrid_host::{Device, Error, NvmlFigures};
    ///
    /// /// The power that is drawn, as a part of what may be.
    /// fn load(figures: NvmlFigures) -> Option<f64> {
    ///     Some(f64::from(figures.power_usage?) / f64::from(figures.power_limit?))
    /// }
    /// assert_eq!(load(NvmlFigures::default()), None); // a GPU that does not tell
    /// for gpu in Device::all().iter().filter(|device| device.is_cuda()) {
    ///     match gpu.nvml_figures() {
    ///         Ok(figures) => println!("{gpu}: {:?} °C, load {:?}", figures.temperature, load(figures)),
    ///         Err(Error::Nvml { reason }) => println!("no figures: {reason}"),
    ///         Err(error) => println!("{error}"),
    ///     }
    /// }
    /// ```
    NvmlFigures
    /// The most common figures together.
    by figures, of gpu {
        /// Temperature of the chip in degrees Celsius (`nvmlDeviceGetTemperature`).
        temperature: u32 = gpu.temperature(TemperatureSensor::Gpu);
        /// Power drawn in milliwatts (`nvmlDeviceGetPowerUsage`).
        power_usage: u32 = gpu.power_usage();
        /// The most power that it may draw in milliwatts (`nvmlDeviceGetEnforcedPowerLimit`).
        power_limit: u32 = gpu.enforced_power_limit();
        /// Energy used since the driver was loaded in millijoules (`nvmlDeviceGetTotalEnergyConsumption`).
        total_energy: u64 = gpu.total_energy_consumption();
        /// Clock of the multiprocessors in MHz (`nvmlDeviceGetClockInfo`).
        sm_clock: u32 = gpu.clock_info(Clock::SM);
        /// Clock of the memory in MHz (`nvmlDeviceGetClockInfo`).
        memory_clock: u32 = gpu.clock_info(Clock::Memory);
        /// Per cent of the last sample period with a kernel running (`nvmlDeviceGetUtilizationRates`).
        gpu_utilization: u32 = gpu.utilization_rates().map(|rates| rates.gpu);
        /// Per cent of the last sample period with memory in use (`nvmlDeviceGetUtilizationRates`).
        memory_utilization: u32 = gpu.utilization_rates().map(|rates| rates.memory);
        /// Bytes of memory that all programs use together (`nvmlDeviceGetMemoryInfo`).
        memory_used: u64 = gpu.memory_info().map(|memory| memory.used);
    }

    /// Temperatures of a GPU in degrees Celsius, from [`NvmlDevice::temperatures`].
    NvmlTemperatures
    /// How hot it is, and may be.
    by temperatures, of gpu {
        /// That of the chip (`nvmlDeviceGetTemperature`).
        gpu: u32 = gpu.temperature(TemperatureSensor::Gpu);
        /// Where its clocks are lowered (`NVML_TEMPERATURE_THRESHOLD_SLOWDOWN`).
        slowdown: u32 = gpu.temperature_threshold(TemperatureThreshold::Slowdown);
        /// Where it is switched off (`NVML_TEMPERATURE_THRESHOLD_SHUTDOWN`).
        shutdown: u32 = gpu.temperature_threshold(TemperatureThreshold::Shutdown);
    }

    /// Power of a GPU in milliwatts, from [`NvmlDevice::power`].
    NvmlPower
    /// Its power draw and limit.
    by power, of gpu {
        /// Drawn now (`nvmlDeviceGetPowerUsage`).
        usage: u32 = gpu.power_usage();
        /// The limit that holds, of all that are set (`nvmlDeviceGetEnforcedPowerLimit`).
        enforced_limit: u32 = gpu.enforced_power_limit();
        /// The limit that was set (`nvmlDeviceGetPowerManagementLimit`).
        limit: u32 = gpu.power_management_limit();
        /// The limit at first (`nvmlDeviceGetPowerManagementDefaultLimit`).
        default_limit: u32 = gpu.power_management_limit_default();
        /// The least and the greatest limit that can be set (`nvmlDeviceGetPowerManagementLimitConstraints`).
        limit_range: (u32, u32) =
            gpu.power_management_limit_constraints().map(|range| (range.min_limit, range.max_limit));
        /// Energy used since the driver was loaded, in millijoules (`nvmlDeviceGetTotalEnergyConsumption`).
        total_energy: u64 = gpu.total_energy_consumption();
    }

    /// How busy a GPU was in the last sample period, in per cent, from [`NvmlDevice::utilization`].
    NvmlUtilization
    /// How busy it is.
    by utilization, of gpu {
        /// With a kernel running (`nvmlDeviceGetUtilizationRates`).
        gpu: u32 = gpu.utilization_rates().map(|rates| rates.gpu);
        /// With memory in use (`nvmlDeviceGetUtilizationRates`).
        memory: u32 = gpu.utilization_rates().map(|rates| rates.memory);
        /// With video being encoded (`nvmlDeviceGetEncoderUtilization`).
        encoder: u32 = gpu.encoder_utilization().map(|encoder| encoder.utilization);
        /// With video being decoded (`nvmlDeviceGetDecoderUtilization`).
        decoder: u32 = gpu.decoder_utilization().map(|decoder| decoder.utilization);
    }

    /// Errors in the memory of a GPU, from [`NvmlDevice::ecc`] (`nvmlDeviceGetTotalEccErrors`).
    NvmlEcc
    /// Errors that were found in its memory.
    by ecc, of gpu {
        /// Whether they are looked for (`nvmlDeviceGetEccMode`).
        enabled: bool = gpu.is_ecc_enabled().map(|mode| mode.currently_enabled);
        /// Corrected since the driver was loaded.
        corrected: u64 = gpu.total_ecc_errors(MemoryError::Corrected, EccCounter::Volatile);
        /// Not corrected since the driver was loaded.
        uncorrected: u64 = gpu.total_ecc_errors(MemoryError::Uncorrected, EccCounter::Volatile);
        /// Corrected in the GPU's life.
        corrected_total: u64 = gpu.total_ecc_errors(MemoryError::Corrected, EccCounter::Aggregate);
        /// Not corrected in the GPU's life.
        uncorrected_total: u64 = gpu.total_ecc_errors(MemoryError::Uncorrected, EccCounter::Aggregate);
    }

    /// A GPU's link to the host, from [`NvmlDevice::pcie`].
    NvmlPcie
    /// Its link to the host. The throughput is measured meanwhile, for 20 ms each way.
    by pcie, of gpu {
        /// Its generation now (`nvmlDeviceGetCurrPcieLinkGeneration`).
        generation: u32 = gpu.current_pcie_link_gen();
        /// Its generation at most (`nvmlDeviceGetMaxPcieLinkGeneration`).
        max_generation: u32 = gpu.max_pcie_link_gen();
        /// Its lanes now (`nvmlDeviceGetCurrPcieLinkWidth`).
        width: u32 = gpu.current_pcie_link_width();
        /// Its lanes at most (`nvmlDeviceGetMaxPcieLinkWidth`).
        max_width: u32 = gpu.max_pcie_link_width();
        /// The bytes that the GPU sends, in KB/s over 20 ms (`nvmlDeviceGetPcieThroughput`).
        sent: u32 = gpu.pcie_throughput(PcieUtilCounter::Send);
        /// The bytes that it receives, in KB/s over 20 ms.
        received: u32 = gpu.pcie_throughput(PcieUtilCounter::Receive);
        /// The number of retransmissions (`nvmlDeviceGetPcieReplayCounter`).
        replays: u32 = gpu.pcie_replay_counter();
    }
}

impl Device {
    /// The GPU as NVML knows it, found by its UUID (`nvmlDeviceGetHandleByUUID`).
    ///
    /// ```
    /// # use ferrogrid_host::{Device, Error};
    /// let refused = Device::cpu().nvml().unwrap_err();
    /// assert!(matches!(refused, Error::Unsupported { operation: "NVML", .. }));
    /// ```
    ///
    /// # Errors
    /// [`Error::Nvml`] if NVML is not installed or fails; [`Error::Unsupported`] on the CPU.
    pub fn nvml(&self) -> Result<NvmlDevice> {
        if !self.is_cuda() {
            return Err(Error::unsupported("NVML", self, "it knows NVIDIA's GPUs only"));
        }
        let uuid = self.properties()?.uuid.map(|uuid| uuid.to_string()).unwrap_or_default();
        NvmlDevice::by_uuid(&uuid)
    }
}

impl NvmlDevice {
    /// All GPUs of the machine, in NVML's order, which is that of their PCI addresses (`nvmlDeviceGetCount`).
    ///
    /// # Errors
    /// [`Error::Nvml`] if NVML is not installed or fails.
    pub fn all() -> Result<Vec<NvmlDevice>> {
        let count = asked(library()?.device_count())?;
        (0..count).map(NvmlDevice::by_index).collect()
    }

    /// GPU number `index` in NVML's order (`nvmlDeviceGetHandleByIndex`), which need not be CUDA's.
    ///
    /// # Errors
    /// [`Error::Nvml`] if NVML is not installed or fails, or has no such GPU.
    pub fn by_index(index: u32) -> Result<NvmlDevice> {
        asked(library()?.device_by_index(index)).map(|handle| NvmlDevice { handle })
    }

    /// The GPU with that UUID, `GPU-` and so on (`nvmlDeviceGetHandleByUUID`).
    ///
    /// # Errors
    /// As [`NvmlDevice::by_index`].
    pub fn by_uuid(uuid: &str) -> Result<NvmlDevice> {
        asked(library()?.device_by_uuid(uuid)).map(|handle| NvmlDevice { handle })
    }

    /// The version of the driver, such as `580.82.07` (`nvmlSystemGetDriverVersion`).
    ///
    /// # Errors
    /// [`Error::Nvml`] if NVML is not installed or fails.
    pub fn driver_version() -> Result<String> {
        asked(library()?.sys_driver_version())
    }

    /// The device of the crate `nvml-wrapper`: for all else that it offers. Its `handle` is NVML's own.
    pub fn handle(&self) -> &nvml_wrapper::Device<'static> {
        &self.handle
    }

    /// The same mutably, to set clocks, fans and modes.
    pub fn handle_mut(&mut self) -> &mut nvml_wrapper::Device<'static> {
        &mut self.handle
    }

    /// Its number in NVML's order (`nvmlDeviceGetIndex`).
    ///
    /// # Errors
    /// If NVML fails.
    pub fn index(&self) -> Result<u32> {
        asked(self.handle.index())
    }

    /// Its name (`nvmlDeviceGetName`).
    ///
    /// # Errors
    /// If NVML fails.
    pub fn name(&self) -> Result<String> {
        asked(self.handle.name())
    }

    /// Its UUID (`nvmlDeviceGetUUID`).
    ///
    /// # Errors
    /// If NVML fails.
    pub fn uuid(&self) -> Result<String> {
        asked(self.handle.uuid())
    }

    /// Its place on the PCI bus (`nvmlDeviceGetPciInfo`).
    ///
    /// # Errors
    /// If NVML fails.
    pub fn pci(&self) -> Result<PciAddress> {
        asked(self.handle.pci_info()).map(|pci| PciAddress {
            domain: pci.domain,
            bus: pci.bus,
            device: pci.device,
        })
    }

    /// How fast it runs, and may run.
    ///
    /// # Errors
    /// If NVML fails.
    pub fn clocks(&self) -> Result<NvmlClocks> {
        let of = |clock: Clock| -> Result<NvmlClock> {
            let max = figure(self.handle.max_clock_info(clock))?;
            Ok(NvmlClock { now: figure(self.handle.clock_info(clock))?, max })
        };
        Ok(NvmlClocks {
            graphics: of(Clock::Graphics)?,
            sm: of(Clock::SM)?,
            memory: of(Clock::Memory)?,
            video: of(Clock::Video)?,
        })
    }

    /// Why its clocks are lower than they could be: heat, power, idleness (`nvmlDeviceGetCurrentClocksThrottleReasons`).
    /// `None` if the GPU does not report it.
    ///
    /// # Errors
    /// If NVML fails.
    pub fn throttle_reasons(&self) -> Result<Option<ThrottleReasons>> {
        figure(self.handle.current_throttle_reasons())
    }

    /// Its memory, including that of other programs.
    ///
    /// # Errors
    /// If NVML fails.
    pub fn memory(&self) -> Result<NvmlMemory> {
        let memory = asked(self.handle.memory_info())?;
        Ok(NvmlMemory { total: memory.total, used: memory.used, free: memory.free })
    }

    /// The speeds of its fans in per cent (`nvmlDeviceGetFanSpeed_v2`); none if it has none, as in servers.
    ///
    /// # Errors
    /// If NVML fails.
    pub fn fans(&self) -> Result<Vec<u32>> {
        let count = figure(self.handle.num_fans())?.unwrap_or(0);
        let speeds = (0..count).filter_map(|fan| figure(self.handle.fan_speed(fan)).transpose());
        speeds.collect()
    }

    /// The processes that use it. Inside of a container NVML may know them by the system's numbers, or not at all.
    ///
    /// # Errors
    /// If NVML fails.
    pub fn processes(&self) -> Result<Vec<NvmlProcess>> {
        let computing = figure(self.handle.running_compute_processes())?.unwrap_or_default();
        let drawing = figure(self.handle.running_graphics_processes())?.unwrap_or_default();
        let computing = computing.iter().map(|process| of_kind(process, NvmlProcessKind::Compute));
        let drawing = drawing.iter().map(|process| of_kind(process, NvmlProcessKind::Graphics));
        Ok(computing.chain(drawing).collect())
    }

    /// Its active NVLinks.
    ///
    /// # Errors
    /// If NVML fails.
    pub fn nvlinks(&self) -> Result<Vec<NvmlLink>> {
        let mut links = Vec::new();
        for link in 0..MOST_LINKS {
            let asked = self.handle.link_wrapper_for(link);
            let is_active = match asked.is_active() {
                Err(NvmlError::InvalidArg) => break, // it has no more
                is_active => figure(is_active)?.unwrap_or(false),
            };
            if !is_active {
                continue;
            }
            let peer = figure(asked.remote_pci_info())?;
            let peer = peer.map(|pci| PciAddress { domain: pci.domain, bus: pci.bus, device: pci.device });
            links.push(NvmlLink { link, version: figure(asked.version())?, peer });
        }
        Ok(links)
    }

    /// The common ancestor of the paths of this GPU and of `other` to the host (`nvmlDeviceGetTopologyCommonAncestor`): the
    /// nearer, the faster they reach each other. `None` if the GPUs do not report it. On Linux.
    ///
    /// # Errors
    /// If NVML fails.
    #[cfg(target_os = "linux")]
    pub fn topology(&self, other: &NvmlDevice) -> Result<Option<TopologyLevel>> {
        figure(library()?.topology_common_ancestor(&self.handle, &other.handle))
    }
}

fn asked<T>(found: Result<T, NvmlError>) -> Result<T> {
    found.map_err(|error| failed(&error))
}

fn of_kind(process: &ProcessInfo, kind: NvmlProcessKind) -> NvmlProcess {
    let memory = match process.used_gpu_memory {
        UsedGpuMemory::Used(bytes) => Some(bytes),
        UsedGpuMemory::Unavailable => None,
    };
    NvmlProcess { pid: process.pid, memory, kind }
}

debug_by_methods!(NvmlDevice { name });
