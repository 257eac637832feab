//! A CUDA driver for tests, compiled by `tests/cuda.rs` into a `libcuda.so.1` of its own. Device
//! memory is host memory; work on a stream is put off until something waits for it, so that a
//! missing order shows as old data. It knows one kernel, `saxpy_*`. The variable FAKE_CUDA sets what
//! it is like and which calls fail; FAKE_CUDA_LOG names a file that gets the names of all calls.
//!
//! SAFETY, for every `unsafe` block here: the only caller is the host crate under test, which passes
//! pointers that are valid for the call, as the real driver asks, and memory that this file
//! allocated; that it does so is part of what the tests show.

use std::alloc::{Layout, alloc, dealloc};
use std::cell::Cell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::{CStr, c_char, c_void};
use std::io::Write;
use std::sync::{Mutex, MutexGuard};

type Code = u32;
const SUCCESS: Code = 0;
const OUT_OF_MEMORY: Code = 2;

enum Work {
    CopyBytes { target: usize, source: usize, bytes: usize },
    Fill { target: usize, pattern: Vec<u8>, count: usize },
    Saxpy { threads: u64, a: f32, x: usize, y: usize, len: usize },
    Free { pointer: usize },
    Record { event: usize, version: u64 },
    Wait { event: usize, version: u64 },
}

#[derive(Default)]
struct State {
    next: usize,
    streams: HashMap<usize, VecDeque<Work>>,
    /// Times recorded, and which of them have happened.
    events: HashMap<usize, (u64, HashSet<u64>)>,
    allocations: HashMap<usize, usize>,
    calls: HashMap<&'static str, u64>,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

thread_local! {
    static CONTEXT: Cell<usize> = const { Cell::new(0) };
}

fn with<T>(f: impl FnOnce(&mut State) -> T) -> T {
    let mut state: MutexGuard<'_, Option<State>> = STATE.lock().unwrap();
    f(state.get_or_insert_with(State::default))
}

/// The value of `key` in FAKE_CUDA, a list of `key=value` separated by commas.
fn setting(key: &str) -> Option<String> {
    let settings = std::env::var("FAKE_CUDA").ok()?;
    let pair = |pair: &str| pair.split_once('=').filter(|(k, _)| *k == key).map(|(_, v)| v.to_owned());
    settings.split(',').find_map(pair)
}

fn number(key: &str, default: u64) -> u64 {
    setting(key).and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Logs the call; fails it if `fail=NAME:CODE` or `fail=NAME:CODE:FROM` (the call to start at) says so.
fn enter(name: &'static str) -> Result<(), Code> {
    if let Ok(path) = std::env::var("FAKE_CUDA_LOG") {
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
        writeln!(file, "{name}").unwrap();
    }
    let count = with(|state| {
        let count = state.calls.entry(name).or_default();
        *count += 1;
        *count
    });
    let Some(failure) = setting("fail") else { return Ok(()) };
    let mut parts = failure.split(':');
    if parts.next() != Some(name) {
        return Ok(());
    }
    let code = parts.next().unwrap().parse().unwrap();
    let from: u64 = parts.next().map_or(1, |from| from.parse().unwrap());
    if count < from {
        return Ok(());
    }
    if name == "cuStreamSynchronize" {
        // A failed kernel ends the context, and all work in it.
        with(|state| state.streams.values_mut().for_each(VecDeque::clear));
    }
    Err(code)
}

/// As `enter`, for calls that need the right context on the thread.
fn enter_bound(name: &'static str) -> Result<(), Code> {
    enter(name)?;
    if CONTEXT.get() == 0 { Err(201) } else { Ok(()) }
}

impl State {
    fn id(&mut self) -> usize {
        self.next += 1;
        0x1000 + self.next
    }

    fn push(&mut self, stream: *mut c_void, work: Work) {
        self.streams.get_mut(&(stream as usize)).expect("a live stream").push_back(work);
    }

    /// Runs all work of `stream`, and what it waits for.
    fn drain(&mut self, stream: usize) {
        while let Some(work) = self.streams.get_mut(&stream).and_then(VecDeque::pop_front) {
            self.run(work);
        }
    }

    fn run(&mut self, work: Work) {
        match work {
            Work::CopyBytes { target, source, bytes } => unsafe {
                std::ptr::copy_nonoverlapping(source as *const u8, target as *mut u8, bytes);
            },
            Work::Fill { target, pattern, count } => unsafe {
                for index in 0..count {
                    let place = (target + index * pattern.len()) as *mut u8;
                    place.copy_from_nonoverlapping(pattern.as_ptr(), pattern.len());
                }
            },
            Work::Saxpy { threads, a, x, y, len } => unsafe {
                for index in 0..len.min(threads as usize) {
                    let y = (y as *mut f32).add(index);
                    *y += a * *(x as *const f32).add(index);
                }
            },
            Work::Free { pointer } => self.release(pointer),
            Work::Record { event, version } => {
                if let Some(event) = self.events.get_mut(&event) {
                    event.1.insert(version);
                }
            }
            Work::Wait { event, version } => self.wait(event, version),
        }
    }

    /// Runs whatever stream has the record that is waited for, up to it.
    fn wait(&mut self, event: usize, version: u64) {
        let happened = |state: &State| version == 0 || state.events[&event].1.contains(&version);
        while !happened(self) {
            let is_it = |work: &Work| matches!(work, Work::Record { event: e, version: v } if (*e, *v) == (event, version));
            let stream = self.streams.iter().find(|(_, queue)| queue.iter().any(is_it)).map(|(id, _)| *id);
            let stream = stream.expect("the record is in some stream");
            let work = self.streams.get_mut(&stream).unwrap().pop_front().unwrap();
            self.run(work);
        }
    }

    fn release(&mut self, pointer: usize) {
        let bytes = self.allocations.remove(&pointer).expect("freed once");
        unsafe {
            (pointer as *mut u8).write_bytes(0xdd, bytes);
            dealloc(pointer as *mut u8, Layout::from_size_align(bytes, 256).unwrap());
        }
    }

    fn used(&self) -> u64 {
        self.allocations.values().map(|&bytes| bytes as u64).sum()
    }
}

macro_rules! call {
    ($( fn $name:ident($($argument:ident : $ty:ty),*) $body:block )*) => { $(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $ty),*) -> Code {
            let run = || -> Result<(), Code> {
                enter(stringify!($name))?;
                $body
            };
            run().err().unwrap_or(SUCCESS)
        }
    )* };
    (bound: $( fn $name:ident($($argument:ident : $ty:ty),*) $body:block )*) => { $(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $ty),*) -> Code {
            let run = || -> Result<(), Code> {
                enter_bound(stringify!($name))?;
                $body
            };
            run().err().unwrap_or(SUCCESS)
        }
    )* };
}

type Pointer = *mut c_void;

call! {
    fn cuDriverGetVersion(version: *mut i32) {
        unsafe { *version = number("version", 12_040) as i32 };
        Ok(())
    }
    fn cuInit(_flags: u32) { Ok(()) }
    fn cuDeviceGetCount(count: *mut i32) {
        unsafe { *count = number("devices", 1) as i32 };
        Ok(())
    }
    fn cuDeviceGet(device: *mut i32, ordinal: i32) {
        unsafe { *device = ordinal };
        Ok(())
    }
    fn cuDeviceGetName(name: *mut c_char, length: i32, _device: i32) {
        let text = c"Fake GPU".to_bytes_with_nul();
        assert!(text.len() <= length as usize);
        unsafe { name.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), text.len()) };
        Ok(())
    }
    fn cuDeviceGetAttribute(value: *mut i32, attribute: u32, _device: i32) {
        let capability = number("capability", 90);
        let answer = match attribute {
            1..=3 => 1024,
            4 => 64,
            5 => i32::MAX as u64,
            6 | 7 => 65_535,
            75 => capability / 10,
            76 => capability % 10,
            16 => 132,
            97 => 232_448,
            115 => number("pools", 1),
            _ => loading::device_attribute(attribute).ok_or(1_u32)?,
        };
        unsafe { *value = answer as i32 };
        Ok(())
    }
    fn cuDevicePrimaryCtxRetain(context: *mut usize, device: i32) {
        unsafe { *context = 0x100 + device as usize };
        Ok(())
    }
    fn cuCtxGetCurrent(context: *mut usize) {
        unsafe { *context = CONTEXT.get() };
        Ok(())
    }
    fn cuCtxSetCurrent(context: usize) {
        CONTEXT.set(context);
        Ok(())
    }
    fn cuGetErrorName(code: u32, name: *mut *const c_char) {
        let text = match code {
            2 => c"CUDA_ERROR_OUT_OF_MEMORY",
            218 => c"CUDA_ERROR_INVALID_PTX",
            222 => c"CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
            500 => c"CUDA_ERROR_NOT_FOUND",
            719 => c"CUDA_ERROR_LAUNCH_FAILED",
            _ => return Err(1),
        };
        unsafe { *name = text.as_ptr() };
        Ok(())
    }
    fn cuGetErrorString(code: u32, text: *mut *const c_char) {
        if code == 719 {
            unsafe { *text = c"unspecified launch failure".as_ptr() };
            return Ok(());
        }
        Err(1)
    }
}

fn allocate(pointer: *mut u64, bytes: usize) -> Result<(), Code> {
    with(|state| {
        if state.used() + bytes as u64 > number("memory", 1 << 30) {
            return Err(OUT_OF_MEMORY);
        }
        let memory = unsafe { alloc(Layout::from_size_align(bytes, 256).unwrap()) };
        unsafe { memory.write_bytes(0xaa, bytes) };
        state.allocations.insert(memory as usize, bytes);
        unsafe { *pointer = memory as u64 };
        Ok(())
    })
}

fn fill(target: u64, pattern: &[u8], count: usize, stream: Pointer) -> Result<(), Code> {
    let work = Work::Fill { target: target as usize, pattern: pattern.to_vec(), count };
    with(|state| state.push(stream, work));
    Ok(())
}

fn copy(target: usize, source: usize, bytes: usize, stream: Pointer) -> Result<(), Code> {
    with(|state| state.push(stream, Work::CopyBytes { target, source, bytes }));
    Ok(())
}

call! { bound:
    fn cuCtxSynchronize() {
        with(|state| {
            let streams: Vec<usize> = state.streams.keys().copied().collect();
            streams.into_iter().for_each(|stream| state.drain(stream));
        });
        Ok(())
    }
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) {
        let all = number("memory", 1 << 30);
        unsafe { (*free, *total) = (with(|state| all - state.used()) as usize, all as usize) };
        Ok(())
    }
    fn cuStreamCreate(stream: *mut usize, flags: u32) {
        assert_eq!(flags, 1, "streams are non-blocking");
        with(|state| {
            let id = state.id();
            state.streams.insert(id, VecDeque::new());
            unsafe { *stream = id };
        });
        Ok(())
    }
    fn cuStreamDestroy_v2(stream: Pointer) {
        with(|state| {
            state.drain(stream as usize);
            state.streams.remove(&(stream as usize));
        });
        Ok(())
    }
    fn cuStreamSynchronize(stream: Pointer) {
        with(|state| state.drain(stream as usize));
        Ok(())
    }
    fn cuStreamWaitEvent(stream: Pointer, event: Pointer, _flags: u32) {
        with(|state| {
            let version = state.events[&(event as usize)].0;
            state.push(stream, Work::Wait { event: event as usize, version });
        });
        Ok(())
    }
    fn cuEventCreate(event: *mut usize, _flags: u32) {
        with(|state| {
            let id = state.id();
            state.events.insert(id, (0, HashSet::new()));
            unsafe { *event = id };
        });
        Ok(())
    }
    fn cuEventDestroy_v2(_event: Pointer) { Ok(()) }
    fn cuEventRecord(event: Pointer, stream: Pointer) {
        with(|state| {
            let record = state.events.get_mut(&(event as usize)).unwrap();
            record.0 += 1;
            let version = record.0;
            state.push(stream, Work::Record { event: event as usize, version });
        });
        Ok(())
    }
    fn cuEventQuery(event: Pointer) {
        let complete = with(|state| {
            let (recorded, happened) = &state.events[&(event as usize)];
            *recorded == 0 || happened.contains(recorded)
        });
        if complete { Ok(()) } else { Err(600) }
    }
    fn cuEventSynchronize(event: Pointer) {
        with(|state| {
            let version = state.events[&(event as usize)].0;
            state.wait(event as usize, version);
        });
        Ok(())
    }
    fn cuEventElapsedTime(milliseconds: *mut f32, _start: Pointer, _end: Pointer) {
        unsafe { *milliseconds = 1.5 };
        Ok(())
    }
    fn cuMemAlloc_v2(pointer: *mut u64, bytes: usize) { allocate(pointer, bytes) }
    fn cuMemFree_v2(pointer: u64) {
        with(|state| state.release(pointer as usize));
        Ok(())
    }
    fn cuMemFreeAsync(pointer: u64, stream: Pointer) {
        with(|state| state.push(stream, Work::Free { pointer: pointer as usize }));
        Ok(())
    }
    fn cuMemcpyHtoDAsync_v2(target: u64, source: Pointer, bytes: usize, stream: Pointer) {
        copy(target as usize, source as usize, bytes, stream)
    }
    fn cuMemcpyDtoHAsync_v2(target: Pointer, source: u64, bytes: usize, stream: Pointer) {
        copy(target as usize, source as usize, bytes, stream)
    }
    fn cuMemcpyDtoDAsync_v2(target: u64, source: u64, bytes: usize, stream: Pointer) {
        copy(target as usize, source as usize, bytes, stream)
    }
    fn cuMemsetD8Async(target: u64, value: u8, count: usize, stream: Pointer) {
        fill(target, &[value], count, stream)
    }
    fn cuMemsetD16Async(target: u64, value: u16, count: usize, stream: Pointer) {
        fill(target, &value.to_ne_bytes(), count, stream)
    }
    fn cuMemsetD32Async(target: u64, value: u32, count: usize, stream: Pointer) {
        fill(target, &value.to_ne_bytes(), count, stream)
    }
    fn cuModuleLoadDataEx(module: *mut usize, image: *const c_char, count: u32, options: *mut u32, values: *mut Pointer) {
        let text = unsafe { CStr::from_ptr(image) }.to_str().unwrap().to_owned();
        let refused = setting("refuse").unwrap_or_default();
        if refused.split('+').any(|arch| !arch.is_empty() && text.contains(&format!(".target {arch}\n"))) {
            let options = unsafe { std::slice::from_raw_parts(options, count as usize) };
            let log = options.iter().position(|&option| option == 5).expect("an error log");
            let words = c"ptxas fatal: this driver is too old".to_bytes_with_nul();
            unsafe { (*values.add(log)).cast::<u8>().copy_from_nonoverlapping(words.as_ptr(), words.len()) };
            return Err(222);
        }
        unsafe { loading::report_options(count, options, values) };
        unsafe { *module = with(State::id) };
        Ok(())
    }
    fn cuModuleGetFunction(function: *mut usize, _module: usize, name: *const c_char) {
        let name = unsafe { CStr::from_ptr(name) }.to_str().unwrap();
        if !name.starts_with("saxpy_") {
            return Err(500);
        }
        unsafe { *function = 0x5a };
        Ok(())
    }
    fn cuFuncGetAttribute(value: *mut i32, attribute: u32, _function: usize) {
        unsafe { *value = loading::function_attribute(attribute) };
        Ok(())
    }
    fn cuLaunchCooperativeKernel(_function: usize, _gx: u32, _gy: u32, _gz: u32, _bx: u32, _by: u32, _bz: u32, _shared: u32, _stream: Pointer, _params: *mut Pointer) {
        Err(720)
    }
    fn cuLaunchKernel(function: usize, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, _shared: u32, stream: Pointer, params: *mut Pointer, _extra: Pointer) {
        assert_eq!(function, 0x5a);
        let threads = [gx, gy, gz, bx, by, bz].iter().map(|&n| u64::from(n)).product();
        let param = |index: usize| unsafe { *params.add(index) };
        let work = unsafe {
            Work::Saxpy {
                threads,
                a: *param(0).cast(),
                x: *param(1).cast(),
                y: *param(3).cast(),
                len: *param(4).cast(),
            }
        };
        with(|state| state.push(stream, work));
        Ok(())
    }
}

#[cfg(not(without_pools))]
call! { bound:
    fn cuMemPoolCreate(pool: *mut usize, properties: *const [u32; 4]) {
        assert_eq!(unsafe { *properties }, [1, 0, 1, 0], "pinned, not shared, on device 0");
        unsafe { *pool = 0x900 };
        Ok(())
    }
    fn cuMemPoolSetAttribute(pool: usize, attribute: u32, value: *mut u64) {
        assert_eq!((pool, attribute, unsafe { *value }), (0x900, 4, u64::MAX), "freed memory is kept");
        Ok(())
    }
    fn cuMemPoolTrimTo(pool: usize, _keep: usize) {
        assert_eq!(pool, 0x900);
        Ok(())
    }
    fn cuMemAllocFromPoolAsync(pointer: *mut u64, bytes: usize, pool: usize, stream: Pointer) {
        assert_eq!(pool, 0x900);
        assert!(with(|state| state.streams.contains_key(&(stream as usize))));
        allocate(pointer, bytes)
    }
}

mod loading;
