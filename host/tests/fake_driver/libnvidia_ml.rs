//! NVML for tests, compiled by `tests/nvml.rs` into a `libnvidia-ml.so.1`: two GPUs with figures that tell them
//! apart, and few functions, so that what is missing shows.
//!
//! SAFETY, for every `unsafe` block here: the only caller is the host crate under test, which passes pointers that are
//! valid for the call, as the real library asks.

use std::ffi::{CStr, c_char};
use std::sync::Mutex;

const NOT_SUPPORTED: u32 = 3;
const INVALID_ARGUMENT: u32 = 2;
const NOT_FOUND: u32 = 6;
const INSUFFICIENT_SIZE: u32 = 7;
const GPU_IS_LOST: u32 = 15;

/// The UUID that GPU 1 was last asked for by.
static UUID: Mutex<String> = Mutex::new(String::new());

/// A GPU's handle is its number, from 1.
type Gpu = usize;

fn write(text: &str, to: *mut c_char, room: u32) -> u32 {
    if text.len() >= room as usize {
        return INSUFFICIENT_SIZE;
    }
    unsafe {
        to.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), text.len());
        *to.add(text.len()) = 0;
    }
    0
}

macro_rules! nvml {
    ($( fn $name:ident($($argument:ident : $ty:ty),*) $body:block )*) => { $(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $ty),*) -> u32 $body
    )* };
}

/// Functions that give a number of a GPU.
macro_rules! figures {
    ($( $name:ident: $ty:ty = $value:expr; )*) => { $(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(gpu: Gpu, value: *mut $ty) -> u32 {
            unsafe { *value = $value + gpu as $ty };
            0
        }
    )* };
}

nvml! {
    fn nvmlInit_v2() { 0 }
    fn nvmlShutdown() { 0 }
    fn nvmlSystemGetDriverVersion(version: *mut c_char, length: u32) { write("580.82.07", version, length) }
    fn nvmlDeviceGetCount_v2(count: *mut u32) {
        unsafe { *count = 2 };
        0
    }
    fn nvmlDeviceGetHandleByIndex_v2(index: u32, gpu: *mut Gpu) {
        if index >= 2 {
            return INVALID_ARGUMENT;
        }
        unsafe { *gpu = index as usize + 1 };
        0
    }
    fn nvmlDeviceGetHandleByUUID(uuid: *const c_char, gpu: *mut Gpu) {
        let uuid = unsafe { CStr::from_ptr(uuid) }.to_str().unwrap();
        if !uuid.starts_with("GPU-") {
            return NOT_FOUND;
        }
        uuid.clone_into(&mut UUID.lock().unwrap());
        unsafe { *gpu = 1 };
        0
    }
    fn nvmlDeviceGetIndex(gpu: Gpu, index: *mut u32) {
        unsafe { *index = gpu as u32 - 1 };
        0
    }
    fn nvmlDeviceGetName(gpu: Gpu, name: *mut c_char, length: u32) { write(&format!("Fake GPU {gpu}"), name, length) }
    fn nvmlDeviceGetUUID(_gpu: Gpu, uuid: *mut c_char, length: u32) { write(&UUID.lock().unwrap(), uuid, length) }
    fn nvmlDeviceGetTemperature(gpu: Gpu, sensor: u32, value: *mut u32) {
        assert_eq!(sensor, 0);
        unsafe { *value = 40 + gpu as u32 };
        0
    }
    fn nvmlDeviceGetTemperatureThreshold(_gpu: Gpu, kind: u32, value: *mut u32) {
        // Shutdown, slowdown.
        unsafe { *value = [95, 90][kind as usize] };
        0
    }
    fn nvmlDeviceGetPowerManagementLimitConstraints(_gpu: Gpu, least: *mut u32, most: *mut u32) {
        unsafe { (*least, *most) = (200_000, 700_000) };
        0
    }
    fn nvmlDeviceGetClockInfo(_gpu: Gpu, clock: u32, value: *mut u32) {
        if clock == 3 {
            return NOT_SUPPORTED;
        }
        unsafe { *value = 1000 + clock };
        0
    }
    fn nvmlDeviceGetMaxClockInfo(_gpu: Gpu, clock: u32, value: *mut u32) {
        unsafe { *value = 2000 + clock };
        0
    }
    fn nvmlDeviceGetMemoryInfo_v2(_gpu: Gpu, memory: *mut [u64; 5]) {
        unsafe {
            assert_eq!((*memory)[0] as u32, 40 | 2 << 24);
            // Total, reserved, free, used.
            *memory = [(*memory)[0], 1000, 100, 600, 300];
        }
        0
    }
    fn nvmlDeviceGetUtilizationRates(_gpu: Gpu, rates: *mut [u32; 2]) {
        unsafe { *rates = [70, 30] };
        0
    }
    fn nvmlDeviceGetEccMode(_gpu: Gpu, current: *mut u32, pending: *mut u32) {
        unsafe { (*current, *pending) = (1, 0) };
        0
    }
    fn nvmlDeviceGetTotalEccErrors(_gpu: Gpu, error: u32, counter: u32, count: *mut u64) {
        unsafe { *count = u64::from(10 * counter + error) };
        0
    }
    fn nvmlDeviceGetPcieThroughput(_gpu: Gpu, counter: u32, value: *mut u32) {
        unsafe { *value = 5000 + counter };
        0
    }
    fn nvmlDeviceGetNumFans(gpu: Gpu, count: *mut u32) {
        unsafe { *count = if gpu == 1 { 2 } else { 0 } };
        0
    }
    fn nvmlDeviceGetFanSpeed_v2(_gpu: Gpu, fan: u32, speed: *mut u32) {
        unsafe { *speed = 50 + fan };
        0
    }
    fn nvmlDeviceGetComputeRunningProcesses_v3(gpu: Gpu, count: *mut u32, processes: *mut [u64; 3]) {
        // What is lost is no missing feature.
        if gpu == 2 {
            return GPU_IS_LOST;
        }
        unsafe {
            if *count == 0 {
                *count = 2;
                return INSUFFICIENT_SIZE;
            }
            *count = 2;
            *processes = [77, 4096, u64::MAX];
            // The memory is not known.
            *processes.add(1) = [78, u64::MAX, u64::MAX];
        }
        0
    }
    fn nvmlDeviceGetNvLinkState(_gpu: Gpu, link: u32, state: *mut u32) {
        if link >= 4 {
            return INVALID_ARGUMENT;
        }
        unsafe { *state = u32::from(link != 1) };
        0
    }
    fn nvmlDeviceGetNvLinkVersion(_gpu: Gpu, link: u32, version: *mut u32) {
        unsafe { *version = 40 + link };
        0
    }
    fn nvmlDeviceGetTopologyCommonAncestor(gpu: Gpu, other: Gpu, level: *mut u32) {
        assert_eq!((gpu, other), (1, 2));
        unsafe { *level = 20 };
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
