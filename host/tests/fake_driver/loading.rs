//! The part of the fake driver that answers about devices and functions, and loads and links foreign code.
//! Its one foreign kernel is again `saxpy_*`; it takes what the Rust one takes.

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

/// # Safety
/// `target` is the address of a log that a caller passed, which has room for the text: the host crate's have 64 KiB.
unsafe fn words(target: usize, text: &CStr) {
    let bytes = text.to_bytes_with_nul();
    // SAFETY: as the caller promises.
    unsafe { (target as *mut u8).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
}

/// Writes the options of a load to its information log, if it has one: `0=32 4=65536 ...`.
///
/// # Safety
/// `options` and `values` are those of one call, so the information log (option 3) is the address of one.
pub(crate) unsafe fn report_options(options: &[u32], values: &[Pointer]) {
    let pairs = options.iter().zip(values.iter().map(|value| *value as usize));
    let Some((_, log)) = pairs.clone().find(|(option, _)| **option == 3) else { return };
    let plain = pairs.filter(|(option, _)| !(3..=6).contains(*option));
    let text: Vec<String> = plain.map(|(option, value)| format!("{option}={value}")).collect();
    // SAFETY: it is the log of the call; the text is short.
    unsafe { words(log, &std::ffi::CString::new(text.join(" ")).unwrap()) };
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

/// `CUlaunchConfig`: grid and block, shared memory, a stream, the attributes and their number.
#[repr(C)]
struct LaunchConfig {
    shape: [u32; 6],
    shared: u32,
    stream: usize,
    attributes: usize,
    count: u32,
}

/// Logs a `CUlaunchAttribute`: its number, and the first three words of its value.
///
/// # Safety
/// It is at `address`.
unsafe fn log_attribute(of: &str, address: usize) {
    // SAFETY: it has 72 bytes: a number, padding, and a union of 64 bytes.
    let [number, _, value @ ..] = unsafe { *(address as *const [i32; 5]) };
    match number {
        // SAFETY: 1 is the attribute whose value is such a window.
        1 => log(&format!("{of} attribute 1 = {}", unsafe { policy(address + 8) })),
        _ => log(&format!("{of} attribute {number} = {value:?}")),
    }
}

/// A `CUaccessPolicyWindow`, whose start is 16 bytes into an allocation.
///
/// # Safety
/// It is at `address`.
pub(crate) unsafe fn policy(address: usize) -> String {
    // SAFETY: it begins with an address and a size.
    let (start, bytes) = unsafe { *(address as *const (usize, usize)) };
    // SAFETY: then come the ratio and two properties, of 4 bytes each.
    let (ratio, hit, miss) = unsafe { *((address + 16) as *const (f32, u32, u32)) };
    let known = start == 0 || with(|state| state.allocations.contains_key(&(start - 16)));
    assert!(known, "the window is that of the view");
    format!("{bytes} bytes, {ratio}, {hit}, {miss}")
}

call! {
    fn cuDeviceTotalMem_v2(bytes: Out<usize>, _device: i32) {
        bytes.set(number("memory", 1 << 30) as usize);
        Ok(())
    }
    fn cuDeviceGetUuid_v2(uuid: Out<[u8; 16]>, device: i32) {
        uuid.set([0xab + device as u8; 16]);
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
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks: Out<i32>, _function: usize, block: i32, shared: usize) {
        let fits = shared <= function_attribute(8) as usize;
        let by_threads = 2048 / block;
        let by_shared = 233_472 / (shared as i32 + 2048);
        blocks.set(if fits { by_threads.min(by_shared) } else { 0 });
        Ok(())
    }
    fn cuOccupancyAvailableDynamicSMemPerBlock(shared: Out<usize>, _function: usize, blocks: i32, _block: i32) {
        shared.set(233_472 / blocks as usize - 2048);
        Ok(())
    }
    fn cuOccupancyMaxActiveClusters(clusters: Out<i32>, _function: usize, config: In<LaunchConfig>) {
        let LaunchConfig { shape, shared, stream, attributes, count } = config.get();
        assert_eq!((shape[0], shape[2], *stream, *count, *shared), (4, 1, 0, 1, 2000));
        // SAFETY: the configuration has one attribute, of more bytes.
        let attribute = unsafe { *(*attributes as *const [u32; 5]) };
        assert_eq!(attribute, [4, 0, 4, 1, 1], "the shape of a cluster");
        clusters.set(33);
        Ok(())
    }
    fn cuOccupancyMaxPotentialClusterSize(size: Out<i32>, _function: usize, config: In<LaunchConfig>) {
        assert_eq!(config.get().count, 0, "no attributes");
        size.set(8);
        Ok(())
    }
    fn cuModuleUnload(_module: usize) { Ok(()) }
    fn cuStreamSetAttribute(stream: Pointer, attribute: u32, value: *const u32) {
        assert!(is_live(stream));
        match attribute {
            // SAFETY: 1 is the attribute whose value is such a window.
            1 => log(&format!("stream attribute 1 = {}", unsafe { policy(value as usize) })),
            // SAFETY: the value is a union of 64 bytes.
            _ => log(&format!("stream attribute {attribute} = {}", unsafe { *value })),
        }
        Ok(())
    }
    fn cuCtxSetLimit(limit: u32, value: usize) {
        log(&format!("limit {limit} = {value}"));
        if value > 39_321_600 { Err(1) } else { Ok(()) }
    }
    fn cuCtxResetPersistingL2Cache() { Ok(()) }
    fn cuLaunchKernelEx(config: In<LaunchConfig>, function: usize, params: *mut Pointer, _extra: Pointer) {
        let LaunchConfig { shape, stream, attributes, count, .. } = *config.get();
        for index in 0..count as usize {
            let attribute = attributes + index * 72;
            // SAFETY: it is one of the `count` attributes of the configuration, which have 72 bytes and begin with their number.
            match unsafe { *(attribute as *const u32) } {
                2 if shape[0] > 1056 => return Err(720),
                12 => {
                    // SAFETY: 12 is the attribute whose value begins with an event and its flags.
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
                // SAFETY: as above.
                _ => unsafe { log_attribute("launch", attribute) },
            }
        }
        // SAFETY: the caller passes the parameters of `function`.
        let work = unsafe { launch(function, shape, params) };
        with(|state| state.push(stream as Pointer, work));
        Ok(())
    }
    fn cuModuleGetGlobal_v2(pointer: Out<u64>, bytes: Out<usize>, module: usize, name: Text) {
        let weights = || WEIGHTS.lock().unwrap().as_mut_ptr() as u64;
        let name = name.str();
        let (address, size) = match name {
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
        pointer.set(address);
        bytes.set(size);
        Ok(())
    }
    fn cuLinkCreate_v2(count: u32, options: List<u32>, values: List<usize>, state: Out<usize>) {
        // SAFETY: the caller passes `count` of both.
        let (options, values) = unsafe { (options.get(count as usize), values.get(count as usize)) };
        let log = options.iter().position(|&option| option == 5).expect("an error log");
        *LINK.lock().unwrap() = Some(Link { log: values[log], ..Link::default() });
        state.set(0x77);
        Ok(())
    }
    fn cuLinkAddData_v2(state: usize, kind: u32, data: List<u8>, bytes: usize, name: Text, _count: u32, _options: Pointer, _values: Pointer) {
        assert_eq!(state, 0x77);
        let name = name.str();
        log(&format!("link {name} of kind {kind}"));
        // SAFETY: the caller passes so many bytes.
        let data = unsafe { data.get(bytes) };
        let mut link = LINK.lock().unwrap();
        let link = link.as_mut().expect("a live link");
        if kind == 1 {
            assert_eq!(data.last(), Some(&0), "the driver counts the final 0 of a text");
        }
        link.texts.push(format!("{name}:{kind}:{}", String::from_utf8_lossy(data)));
        if name == "broken.ptx" {
            // SAFETY: a caller keeps the log until it destroys the link.
            unsafe { words(link.log, c"ptxas broken.ptx, line 1; fatal : Parsing error") };
            return Err(218);
        }
        Ok(())
    }
    fn cuLinkComplete(_state: usize, result: Out<*mut u8>, bytes: Out<usize>) {
        let mut link = LINK.lock().unwrap();
        let link = link.as_mut().expect("a live link");
        if link.texts.iter().any(|text| text.contains("undefined")) {
            // SAFETY: a caller keeps the log until it destroys the link.
            unsafe { words(link.log, c"error   : Undefined reference to 'helper'") };
            return Err(300);
        }
        link.cubin = cubin();
        result.set(link.cubin.as_mut_ptr());
        bytes.set(link.cubin.len());
        Ok(())
    }
    fn cuLinkDestroy(_state: usize) {
        assert!(LINK.lock().unwrap().take().is_some(), "a link is destroyed once");
        Ok(())
    }
}

#[cfg(not(without_param_info))]
call! { bound:
    fn cuModuleGetFunctionCount(count: Out<u32>, _module: usize) {
        count.set(1);
        Ok(())
    }
    fn cuModuleEnumerateFunctions(functions: Out<usize>, count: u32, _module: usize) {
        assert_eq!(count, 1);
        functions.set(SAXPY);
        Ok(())
    }
    fn cuFuncGetName(name: Out<*const c_char>, function: usize) {
        assert_eq!(function, SAXPY);
        name.set(c"saxpy_cu".as_ptr());
        Ok(())
    }
    fn cuFuncGetParamInfo(_function: usize, index: usize, offset: Out<usize>, size: Out<usize>) {
        let Some(&found) = PARAMETERS.get(index) else { return Err(1) };
        offset.set(8 * index);
        size.set(found);
        Ok(())
    }
}
