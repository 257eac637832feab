//! The current state of a GPU: temperature, power, clocks and utilisation, from NVIDIA's management library
//! (NVML), with the cargo feature `nvml`. `device` has the calls.

mod device;

use std::sync::OnceLock;

use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;

use crate::device::Device;
use crate::error::{Error, Result};

pub use device::{
    NvmlClock, NvmlClocks, NvmlDevice, NvmlEcc, NvmlFigures, NvmlLink, NvmlMemory, NvmlPcie, NvmlPower,
    NvmlProcess, NvmlProcessKind, NvmlTemperatures, NvmlUtilization,
};

impl Device {
    /// The current figures of the GPU, from NVML.
    ///
    /// ```
    /// use ferrogrid_host::{Device, Error};
    ///
    /// let unsupported = Device::cpu().nvml_figures().unwrap_err();
    /// assert!(matches!(unsupported, Error::Unsupported { .. })); // NVML knows GPUs
    /// ```
    ///
    /// # Errors
    /// [`Error::Nvml`] if NVML is not installed or fails; [`Error::Unsupported`] on the CPU.
    pub fn nvml_figures(&self) -> Result<NvmlFigures> {
        self.nvml()?.figures()
    }
}

/// NVML, started at the first call; the answer is kept.
fn library() -> Result<&'static Nvml> {
    static LIBRARY: OnceLock<Result<Nvml>> = OnceLock::new();
    let start = || Nvml::init().map_err(|error| failed(&error));
    LIBRARY.get_or_init(start).as_ref().map_err(Error::clone)
}

/// `None` for figures that this GPU, or this driver, does not have.
fn figure<T>(found: Result<T, NvmlError>) -> Result<Option<T>> {
    match found {
        Ok(value) => Ok(Some(value)),
        Err(NvmlError::NotSupported | NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound) => {
            Ok(None)
        }
        Err(error) => Err(failed(&error)),
    }
}

fn failed(error: &NvmlError) -> Error {
    let source = std::error::Error::source(error).map(|source| format!(": {source}"));
    Error::Nvml { reason: format!("{error}{}", source.unwrap_or_default()).into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_that_a_gpu_lacks_are_none_and_failures_are_errors() {
        assert_eq!(figure::<u32>(Err(NvmlError::NotSupported)), Ok(None));
        assert_eq!(figure(Ok(7)), Ok(Some(7)));
        let lost = figure::<u32>(Err(NvmlError::GpuLost)).unwrap_err();
        assert!(matches!(&lost, Error::Nvml { reason } if !reason.is_empty()), "{lost}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn an_absent_library_is_named() {
        if std::path::Path::new("/proc/driver/nvidia").exists() {
            return;
        }
        let error = library().err().unwrap().to_string();
        assert!(error.contains("libnvidia-ml.so.1: cannot open"), "{error}");
    }
}
