//! NVML for tests, compiled by `tests/nvml.rs` into a `libnvidia-ml.so.1`: two GPUs with figures that tell them
//! apart, and few functions, so that what is missing shows.

// Part of it is for the driver.
#[allow(dead_code)]
mod pointer;

use std::ffi::c_char;
use std::sync::Mutex;

use pointer::{InOut, Out, Text};

const NOT_SUPPORTED: u32 = 3;
const INVALID_ARGUMENT: u32 = 2;
const NOT_FOUND: u32 = 6;
const INSUFFICIENT_SIZE: u32 = 7;
const GPU_IS_LOST: u32 = 15;

/// The UUID that GPU 1 was last asked for by.
static UUID: Mutex<String> = Mutex::new(String::new());

/// A GPU's handle is its number, from 1.
type Gpu = usize;

/// `nvmlMemory_v2_t`.
#[repr(C)]
pub struct Memory {
    version: u32,
    figures: [u64; 4],
}

/// # Safety
/// `to` is valid for writes of `room` bytes.
unsafe fn write(text: &str, to: *mut c_char, room: u32) -> u32 {
    if text.len() >= room as usize {
        return INSUFFICIENT_SIZE;
    }
    // SAFETY: the text and its zero byte are at most `room` bytes.
    unsafe {
        to.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), text.len());
        *to.add(text.len()) = 0;
    }
    0
}

macro_rules! nvml {
    ($( fn $name:ident($($argument:ident : $ty:ty),*) $body:block )*) => { $(
        /// # Safety
        /// As for the function of the real library.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $ty),*) -> u32 $body
    )* };
}

/// Functions that give a number of a GPU.
macro_rules! figures {
    ($( $name:ident: $ty:ty = $value:expr; )*) => { $(
        /// # Safety
        /// As for the function of the real library.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(gpu: Gpu, value: Out<$ty>) -> u32 {
            value.set($value + gpu as $ty);
            0
        }
    )* };
}

nvml! {
    fn nvmlInit_v2() { 0 }
    fn nvmlShutdown() { 0 }
    fn nvmlSystemGetDriverVersion(version: *mut c_char, length: u32) {
        // SAFETY: the caller passes so many bytes.
        unsafe { write("580.82.07", version, length) }
    }
    fn nvmlDeviceGetCount_v2(count: Out<u32>) {
        count.set(2);
        0
    }
    fn nvmlDeviceGetHandleByIndex_v2(index: u32, gpu: Out<Gpu>) {
        if index >= 2 {
            return INVALID_ARGUMENT;
        }
        gpu.set(index as usize + 1);
        0
    }
    fn nvmlDeviceGetHandleByUUID(uuid: Text, gpu: Out<Gpu>) {
        let uuid = uuid.str();
        if !uuid.starts_with("GPU-") {
            return NOT_FOUND;
        }
        uuid.clone_into(&mut UUID.lock().unwrap());
        gpu.set(1);
        0
    }
    fn nvmlDeviceGetIndex(gpu: Gpu, index: Out<u32>) {
        index.set(gpu as u32 - 1);
        0
    }
    fn nvmlDeviceGetName(gpu: Gpu, name: *mut c_char, length: u32) {
        // SAFETY: the caller passes so many bytes.
        unsafe { write(&format!("Fake GPU {gpu}"), name, length) }
    }
    fn nvmlDeviceGetUUID(_gpu: Gpu, uuid: *mut c_char, length: u32) {
        // SAFETY: the caller passes so many bytes.
        unsafe { write(&UUID.lock().unwrap(), uuid, length) }
    }
    fn nvmlDeviceGetTemperature(gpu: Gpu, sensor: u32, value: Out<u32>) {
        assert_eq!(sensor, 0);
        value.set(40 + gpu as u32);
        0
    }
    fn nvmlDeviceGetTemperatureThreshold(_gpu: Gpu, kind: u32, value: Out<u32>) {
        // Shutdown, slowdown.
        value.set([95, 90][kind as usize]);
        0
    }
    fn nvmlDeviceGetPowerManagementLimitConstraints(_gpu: Gpu, least: Out<u32>, most: Out<u32>) {
        least.set(200_000);
        most.set(700_000);
        0
    }
    fn nvmlDeviceGetClockInfo(_gpu: Gpu, clock: u32, value: Out<u32>) {
        if clock == 3 {
            return NOT_SUPPORTED;
        }
        value.set(1000 + clock);
        0
    }
    fn nvmlDeviceGetMaxClockInfo(_gpu: Gpu, clock: u32, value: Out<u32>) {
        value.set(2000 + clock);
        0
    }
    fn nvmlDeviceGetMemoryInfo_v2(_gpu: Gpu, memory: InOut<Memory>) {
        memory.change(|memory| {
            assert_eq!(memory.version, 40 | 2 << 24);
            // Total, reserved, free, used.
            memory.figures = [1000, 100, 600, 300];
        });
        0
    }
    fn nvmlDeviceGetUtilizationRates(_gpu: Gpu, rates: Out<[u32; 2]>) {
        rates.set([70, 30]);
        0
    }
    fn nvmlDeviceGetEccMode(_gpu: Gpu, current: Out<u32>, pending: Out<u32>) {
        current.set(1);
        pending.set(0);
        0
    }
    fn nvmlDeviceGetTotalEccErrors(_gpu: Gpu, error: u32, counter: u32, count: Out<u64>) {
        count.set(u64::from(10 * counter + error));
        0
    }
    fn nvmlDeviceGetPcieThroughput(_gpu: Gpu, counter: u32, value: Out<u32>) {
        value.set(5000 + counter);
        0
    }
    fn nvmlDeviceGetNumFans(gpu: Gpu, count: Out<u32>) {
        count.set(if gpu == 1 { 2 } else { 0 });
        0
    }
    fn nvmlDeviceGetFanSpeed_v2(_gpu: Gpu, fan: u32, speed: Out<u32>) {
        speed.set(50 + fan);
        0
    }
    fn nvmlDeviceGetComputeRunningProcesses_v3(gpu: Gpu, count: InOut<u32>, processes: *mut [u64; 3]) {
        // What is lost is no missing feature.
        if gpu == 2 {
            return GPU_IS_LOST;
        }
        if count.change(|count| std::mem::replace(count, 2)) == 0 {
            return INSUFFICIENT_SIZE;
        }
        // SAFETY: the caller has room for at least two, because that is what the first call asks for.
        unsafe {
            *processes = [77, 4096, u64::MAX];
            // The memory is not known.
            *processes.add(1) = [78, u64::MAX, u64::MAX];
        }
        0
    }
    fn nvmlDeviceGetNvLinkState(_gpu: Gpu, link: u32, state: Out<u32>) {
        if link >= 4 {
            return INVALID_ARGUMENT;
        }
        state.set(u32::from(link != 1));
        0
    }
    fn nvmlDeviceGetNvLinkVersion(_gpu: Gpu, link: u32, version: Out<u32>) {
        version.set(40 + link);
        0
    }
    fn nvmlDeviceGetTopologyCommonAncestor(gpu: Gpu, other: Gpu, level: Out<u32>) {
        assert_eq!((gpu, other), (1, 2));
        level.set(20);
        0
    }
}

figures! {
    nvmlDeviceGetPowerUsage: u32 = 100_000;
    nvmlDeviceGetEnforcedPowerLimit: u32 = 600_000;
    nvmlDeviceGetPowerManagementLimit: u32 = 650_000;
    nvmlDeviceGetPowerManagementDefaultLimit: u32 = 700_000;
    nvmlDeviceGetTotalEnergyConsumption: u64 = 1 << 40;
    nvmlDeviceGetCurrPcieLinkGeneration: u32 = 3;
    nvmlDeviceGetMaxPcieLinkGeneration: u32 = 4;
    nvmlDeviceGetCurrPcieLinkWidth: u32 = 7;
    nvmlDeviceGetMaxPcieLinkWidth: u32 = 15;
    nvmlDeviceGetCurrentClocksThrottleReasons: u64 = 3;
}
