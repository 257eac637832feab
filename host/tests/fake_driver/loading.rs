//! The part of the fake driver that answers about devices and functions, and loads and links foreign code.
//! Its one foreign kernel is again `saxpy_*`; it takes what the Rust one takes.
//!
//! SAFETY, for every `unsafe` block here: as in `libcuda.rs`.

use std::collections::HashMap;
use std::sync::Mutex;

use super::*;
use crate::feedback::OUTPUT;

/// The sizes of the parameters of `saxpy_*`.
#[cfg(not(without_param_info))]
const PARAMETERS: [usize; 5] = [4, 8, 8, 8, 8];

/// Attributes set on the function, by number.
static SET: Mutex<Option<HashMap<u32, i32>>> = Mutex::new(None);

/// The bytes of the variables `weights` and `odd`.
static WEIGHTS: Mutex<[u64; 5]> = Mutex::new([0; 5]);

/// What was given to the linker, and where it wants its error log.
#[derive(Default)]
struct Link {
    texts: Vec<String>,
    log: usize,
    cubin: Vec<u8>,
}

static LINK: Mutex<Option<Link>> = Mutex::new(None);

/// Device attributes that `libcuda.rs` does not know: those of an H200.
pub(crate) fn device_attribute(attribute: u32) -> Option<u64> {
    Some(match attribute {
        8 => 49_152,
        9 => 65_536,
        10 => 32,
        12 | 82 => 65_536,
        13 => 1_980_000,
        16 => 132,
        18 | 50 | 34 => 0,
        31 | 32 | 41 | 83 | 89 | 95 => 1,
        33 => 0x3b,
        36 => 3_201_000,
        37 => 6144,
        38 => 62_914_560,
        39 => 2048,
        40 => 3,
        81 => 233_472,
        97 => 232_448,
        106 => 32,
        108 => 39_321_600,
        109 => 134_213_632,
        111 => 1024,
        120 => u64::from(number("capability", 90) >= 90),
        _ => return None,
    })
}

/// Function attributes: 40 registers, 1 KiB of static shared memory.
pub(crate) fn function_attribute(attribute: u32) -> i32 {
    if let Some(value) = SET.lock().unwrap().get_or_insert_default().get(&attribute) {
        return *value;
    }
    match attribute {
        0 => 128,
        1 => 1024,
        3 => 16,
        4 => 40,
        5 => number("compiled_for", 75) as i32,
        6 => 90,
        8 => 48 * 1024,
        9 => -1,
        _ => 0,
    }
}

/// The texts of modules that were loaded as PTX.
static TEXTS: Mutex<Option<HashMap<usize, String>>> = Mutex::new(None);

pub(crate) fn note_text(module: usize, text: String) {
    TEXTS.lock().unwrap().get_or_insert_default().insert(module, text);
}

/// Whether the text of `module` defines such a variable. Machine code is not read here.
fn has_variable(module: usize, name: &str) -> bool {
    let definition = format!(".visible .global .align 8 .u64 {name} = 0;\n");
    TEXTS.lock().unwrap().get_or_insert_default().get(&module).is_none_or(|text| text.contains(&definition))
}

/// Whether the text of `module` says that the entry point takes a record.
pub(crate) fn takes_record(module: usize, entry: &str) -> bool {
    let texts = TEXTS.lock().unwrap();
    let text = texts.as_ref().and_then(|texts| texts.get(&module));
    let head = text.and_then(|text| text.split_once(&format!(".entry {entry}("))?.1.split(')').next());
    head.is_some_and(|head| head.contains(".param .u64 __ferrogrid_record"))
}

fn words(target: usize, text: &CStr) {
    let bytes = text.to_bytes_with_nul();
    unsafe { (target as *mut u8).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
}

/// Writes the options of a load to its information log, if it has one: `0=32 4=65536 ...`.
pub(crate) unsafe fn report_options(count: u32, options: *const u32, values: *const Pointer) {
    let pairs: Vec<(u32, usize)> =
        (0..count as usize).map(|at| unsafe { (*options.add(at), *values.add(at) as usize) }).collect();
    let Some((_, log)) = pairs.iter().find(|(option, _)| *option == 3) else { return };
    let plain = pairs.iter().filter(|(option, _)| !(3..=6).contains(option));
    let text: Vec<String> = plain.map(|(option, value)| format!("{option}={value}")).collect();
    words(*log, &std::ffi::CString::new(text.join(" ")).unwrap());
}

/// A cubin with one section, of 8 bytes.
pub(crate) fn cubin() -> Vec<u8> {
    let mut bytes = vec![0; 64 + 8 + 64];
    bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
    bytes[18] = 190;
    bytes[40] = 72;
    bytes[58..62].copy_from_slice(&[64, 0, 1, 0]);
    bytes[72 + 4] = 1;
    bytes[72 + 24] = 64;
    bytes[72 + 32] = 8;
    bytes
}

/// Logs a `CUlaunchAttribute`: its number, and the first three words of its value.
fn log_attribute(of: &str, address: usize) {
    let [number, _, value @ ..] = unsafe { *(address as *const [i32; 5]) };
    match number {
        1 => log(&format!("{of} attribute 1 = {}", unsafe { policy(address + 8) })),
        _ => log(&format!("{of} attribute {number} = {value:?}")),
    }
}

/// A `CUaccessPolicyWindow`, whose start is 16 bytes into an allocation.
pub(crate) unsafe fn policy(address: usize) -> String {
    let (start, bytes) = unsafe { *(address as *const (usize, usize)) };
    let (ratio, hit, miss) = unsafe { *((address + 16) as *const (f32, u32, u32)) };
    let known = start == 0 || with(|state| state.allocations.contains_key(&(start - 16)));
    assert!(known, "the window is that of the view");
    format!("{bytes} bytes, {ratio}, {hit}, {miss}")
}

call! {
    fn cuDeviceTotalMem_v2(bytes: *mut usize, _device: i32) {
        unsafe { *bytes = number("memory", 1 << 30) as usize };
        Ok(())
    }
    fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: i32) {
        unsafe { *uuid = [0xab + device as u8; 16] };
        Ok(())
    }
}

call! { bound:
    fn cuFuncSetAttribute(_function: usize, attribute: u32, value: i32) {
        if attribute == 8 && value > 232_448 - 1024 {
            return Err(1);
        }
        log(&format!("function attribute {attribute} = {value}"));
        SET.lock().unwrap().get_or_insert_default().insert(attribute, value);
        Ok(())
    }
    fn cuFuncSetCacheConfig(_function: usize, preference: u32) {
        assert!(preference <= 3);
        Ok(())
    }
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks: *mut i32, _function: usize, block: i32, shared: usize) {
        let fits = shared <= function_attribute(8) as usize;
        let by_threads = 2048 / block;
        let by_shared = 233_472 / (shared as i32 + 2048);
        unsafe { *blocks = if fits { by_threads.min(by_shared) } else { 0 } };
        Ok(())
    }
    fn cuOccupancyAvailableDynamicSMemPerBlock(shared: *mut usize, _function: usize, blocks: i32, _block: i32) {
        unsafe { *shared = 233_472 / blocks as usize - 2048 };
        Ok(())
    }
    fn cuOccupancyMaxActiveClusters(clusters: *mut i32, _function: usize, config: *const [u64; 7]) {
        // Grid and block (six u32), then shared memory, a stream, the attributes and their number.
        let [grid, grid_z_and_block, _, shared, stream, attributes, count] = unsafe { *config };
        assert_eq!((grid & 0xffff_ffff, grid_z_and_block & 0xffff_ffff, stream, count & 0xffff_ffff), (4, 1, 0, 1));
        assert_eq!(shared & 0xffff_ffff, 2000);
        let attribute = unsafe { *(attributes as *const [u32; 5]) };
        assert_eq!(attribute, [4, 0, 4, 1, 1], "the shape of a cluster");
        unsafe { *clusters = 33 };
        Ok(())
    }
    fn cuOccupancyMaxPotentialClusterSize(size: *mut i32, _function: usize, config: *const [u64; 7]) {
        assert_eq!(unsafe { *config }[6] & 0xffff_ffff, 0, "no attributes");
        unsafe { *size = 8 };
        Ok(())
    }
    fn cuModuleUnload(_module: usize) { Ok(()) }
    fn cuStreamSetAttribute(stream: Pointer, attribute: u32, value: *const u32) {
        assert!(is_live(stream));
        match attribute {
            1 => log(&format!("stream attribute 1 = {}", unsafe { policy(value as usize) })),
            _ => log(&format!("stream attribute {attribute} = {}", unsafe { *value })),
        }
        Ok(())
    }
    fn cuCtxSetLimit(limit: u32, value: usize) {
        log(&format!("limit {limit} = {value}"));
        if value > 39_321_600 { Err(1) } else { Ok(()) }
    }
    fn cuCtxResetPersistingL2Cache() { Ok(()) }
    fn cuLaunchKernelEx(config: *const [u64; 7], function: usize, params: *mut Pointer, _extra: Pointer) {
        // As for `cuOccupancyMaxActiveClusters`.
        let [a, b, c, _shared, stream, attributes, count] = unsafe { *config };
        let shape: Vec<u32> = [a, b, c].into_iter().flat_map(|two| [two as u32, (two >> 32) as u32]).collect();
        for index in 0..count as u32 as usize {
            let attribute = attributes as usize + index * 72;
            match unsafe { *(attribute as *const u32) } {
                2 if shape[0] > 1056 => return Err(720),
                12 => {
                    let (event, flags) = unsafe { *((attribute + 8) as *const (usize, u32)) };
                    log(&format!("launch attribute 12 = event, {flags}"));
                    // All blocks begin at the same time, before they do anything.
                    with(|state| {
                        let record = state.events.get_mut(&event).expect("a live event");
                        record.0 += 1;
                        let version = record.0;
                        state.push(stream as Pointer, Work::Record { event, version });
                    });
                }
                _ => log_attribute("launch", attribute),
            }
        }
        let work = launch(function, shape.try_into().unwrap(), params);
        with(|state| state.push(stream as Pointer, work));
        Ok(())
    }
    fn cuModuleGetGlobal_v2(pointer: *mut u64, bytes: *mut usize, module: usize, name: *const c_char) {
        let weights = || WEIGHTS.lock().unwrap().as_mut_ptr() as u64;
        let name = unsafe { CStr::from_ptr(name) }.to_str().unwrap();
        let variable = match name {
            "weights" => {
                log("weights");
                (weights(), 40)
            }
            "odd" => (weights(), 7),
            "__ferrogrid_output" if has_variable(module, name) => (OUTPUT.as_ptr() as u64, 8),
            _ => {
                log(&format!("refused symbol {name}"));
                return Err(500);
            }
        };
        unsafe { (*pointer, *bytes) = variable };
        Ok(())
    }
    fn cuLinkCreate_v2(count: u32, options: *mut u32, values: *mut usize, state: *mut usize) {
        let options = unsafe { std::slice::from_raw_parts(options, count as usize) };
        let log = options.iter().position(|&option| option == 5).expect("an error log");
        *LINK.lock().unwrap() = Some(Link { log: unsafe { *values.add(log) }, ..Link::default() });
        unsafe { *state = 0x77 };
        Ok(())
    }
    fn cuLinkAddData_v2(state: usize, kind: u32, data: *const u8, bytes: usize, name: *const c_char, _count: u32, _options: Pointer, _values: Pointer) {
        assert_eq!(state, 0x77);
        let name = unsafe { CStr::from_ptr(name) }.to_str().unwrap();
        log(&format!("link {name} of kind {kind}"));
        let data = unsafe { std::slice::from_raw_parts(data, bytes) };
        let mut link = LINK.lock().unwrap();
        let link = link.as_mut().expect("a live link");
        if kind == 1 {
            assert_eq!(data.last(), Some(&0), "the driver counts the final 0 of a text");
        }
        link.texts.push(format!("{name}:{kind}:{}", String::from_utf8_lossy(data)));
        if name == "broken.ptx" {
            words(link.log, c"ptxas broken.ptx, line 1; fatal : Parsing error");
            return Err(218);
        }
        Ok(())
    }
    fn cuLinkComplete(_state: usize, result: *mut *mut u8, bytes: *mut usize) {
        let mut link = LINK.lock().unwrap();
        let link = link.as_mut().expect("a live link");
        if link.texts.iter().any(|text| text.contains("undefined")) {
            words(link.log, c"error   : Undefined reference to 'helper'");
            return Err(300);
        }
        link.cubin = cubin();
        unsafe { (*result, *bytes) = (link.cubin.as_mut_ptr(), link.cubin.len()) };
        Ok(())
    }
    fn cuLinkDestroy(_state: usize) {
        assert!(LINK.lock().unwrap().take().is_some(), "a link is destroyed once");
        Ok(())
    }
}

#[cfg(not(without_param_info))]
call! { bound:
    fn cuModuleGetFunctionCount(count: *mut u32, _module: usize) {
        unsafe { *count = 1 };
        Ok(())
    }
    fn cuModuleEnumerateFunctions(functions: *mut usize, count: u32, _module: usize) {
        assert_eq!(count, 1);
        unsafe { *functions = SAXPY };
        Ok(())
    }
    fn cuFuncGetName(name: *mut *const c_char, function: usize) {
        assert_eq!(function, SAXPY);
        unsafe { *name = c"saxpy_cu".as_ptr() };
        Ok(())
    }
    fn cuFuncGetParamInfo(_function: usize, index: usize, offset: *mut usize, size: *mut usize) {
        let Some(&found) = PARAMETERS.get(index) else { return Err(1) };
        unsafe { (*offset, *size) = (8 * index, found) };
        Ok(())
    }
}
