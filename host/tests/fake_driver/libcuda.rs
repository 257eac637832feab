//! A CUDA driver for tests, compiled by `tests/cuda.rs` into a `libcuda.so.1`. Device
//! memory is host memory; work on a stream is put off until something waits for it, so that a
//! missing order shows as old data; with `alive=1`, streams run by themselves instead, in random order, and memory that
//! is freed has its next owner at once (`pool.rs`). It knows three kernels, `saxpy_*`, `mix_*` and `fail_*`. The variable FAKE_CUDA
//! sets what it is like and which calls fail (with `held=1`, callbacks run only at waits); FAKE_CUDA_LOG names a file that
//! gets the names of all calls.
//!
//! SAFETY, for every `unsafe` block here: the only caller is the host crate under test, which passes
//! pointers that are valid for the call, as the real driver asks, and memory that this file
//! allocated; that it does so is part of what the tests show.

#[path = "arrays.rs"]
mod arrays;
#[path = "feedback.rs"]
mod feedback;
#[path = "graph.rs"]
mod graph;
#[path = "order.rs"]
mod order;
#[path = "pool.rs"]
mod pool;
#[path = "work.rs"]
mod work;

use std::alloc::{Layout, alloc, dealloc};
use std::cell::Cell;
use std::collections::{HashSet, VecDeque};
use std::ffi::{CStr, c_char};
use std::io::Write;

use work::{
    Callback, Code, Pointer, SUCCESS, State, Step, Work, drain, drain_later, end, is_default, real, wait, with,
};

const OUT_OF_MEMORY: Code = 2;
/// `CU_MEMHOSTALLOC_WRITECOMBINED`.
const WRITE_COMBINED: u32 = 4;
/// In the addresses at which devices find write-combined memory, which are not those of the host.
const ALIAS: usize = 1 << 60;

/// Where memory is that a device finds at `address`, or by a texture or surface object.
fn found_at(address: u64) -> usize {
    if let Some(start) = with(|state| state.arrays.start_of(address)) {
        return start;
    }
    let (address, found) = (address as usize, address as usize & !ALIAS);
    let differs = with(|state| state.is_write_combined(found));
    assert_eq!(address != found, differs, "write-combined memory has other addresses on devices");
    found
}

thread_local! {
    static CONTEXT: Cell<usize> = const { Cell::new(0) };
}

/// The value of `key` in FAKE_CUDA, a list of `key=value` separated by commas.
pub(crate) fn setting(key: &str) -> Option<String> {
    let settings = std::env::var("FAKE_CUDA").ok()?;
    let pair = |pair: &str| pair.split_once('=').filter(|(k, _)| *k == key).map(|(_, v)| v.to_owned());
    settings.split(',').find_map(pair)
}

pub(crate) fn number(key: &str, default: u64) -> u64 {
    setting(key).and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Logs more than the name of a call. A line is written at once: two threads append to one file.
fn log(text: &str) {
    if let Ok(path) = std::env::var("FAKE_CUDA_LOG") {
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
        file.write_all(format!("{text}\n").as_bytes()).unwrap();
    }
}

/// Logs the call; fails it if `fail=NAME:CODE` or `fail=NAME:CODE:FROM:TO` (the calls that fail, from 1) says so.
fn enter(name: &'static str) -> Result<(), Code> {
    log(name);
    let count = with(|state| {
        let count = state.calls.entry(name).or_default();
        *count += 1;
        *count
    });
    let Some(failure) = setting("fail") else { return Ok(()) };
    // A new context has not failed.
    if with(|state| state.resets) > 0 && name == "cuStreamSynchronize" {
        return Ok(());
    }
    let mut parts = failure.split(':');
    if parts.next() != Some(name) {
        return Ok(());
    }
    let code = parts.next().unwrap().parse().unwrap();
    let from: u64 = parts.next().map_or(1, |from| from.parse().unwrap());
    let to: u64 = parts.next().map_or(u64::MAX, |to| to.parse().unwrap());
    if !(from..=to).contains(&count) {
        return Ok(());
    }
    if name == "cuStreamSynchronize" || code == 719 {
        // A failed kernel ends the context, and all work in it.
        with(|state| state.streams.values_mut().for_each(|queue| end(queue, code)));
    }
    Err(code)
}

/// As `enter`, for calls that take their context from a stream or event; with `context=needed` the thread must have
/// one nevertheless, as some drivers may ask.
fn enter_own(name: &'static str) -> Result<(), Code> {
    enter(name)?;
    if CONTEXT.get() == 0 && setting("context").is_some_and(|value| value == "needed") { Err(201) } else { Ok(()) }
}

/// Default streams are those of the thread's context.
fn check_default(stream: Pointer) {
    assert!(!is_default(stream) || CONTEXT.get() != 0, "a default stream of no context");
}

fn is_live(stream: Pointer) -> bool {
    is_default(stream) || with(|state| state.streams.contains_key(&(stream as usize)))
}

/// As `enter`, for calls that need the right context on the thread.
fn enter_bound(name: &'static str) -> Result<(), Code> {
    enter(name)?;
    if CONTEXT.get() == 0 { Err(201) } else { Ok(()) }
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
    (own: $( fn $name:ident($($argument:ident : $ty:ty),*) $body:block )*) => { $(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $ty),*) -> Code {
            let run = || -> Result<(), Code> {
                enter_own(stringify!($name))?;
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

fn allocate(pointer: *mut u64, bytes: usize) -> Result<(), Code> {
    with(|state| {
        if state.used() + bytes as u64 > number("memory", 1 << 30) {
            return Err(OUT_OF_MEMORY);
        }
        let memory = unsafe { alloc(Layout::from_size_align(bytes, 256).unwrap()) };
        unsafe { memory.write_bytes(0xaa, bytes) };
        state.allocations.insert(memory as usize, bytes);
        state.owners.insert(memory as usize, CONTEXT.get());
        unsafe { *pointer = memory as u64 };
        Ok(())
    })
}

fn fill(target: u64, pattern: &[u8], count: usize, stream: Pointer) -> Result<(), Code> {
    let work = Work::Fill { target: found_at(target), pattern: pattern.to_vec(), count };
    with(|state| state.push(stream, work));
    Ok(())
}

fn copy(target: usize, source: usize, bytes: usize, stream: Pointer) -> Result<(), Code> {
    with(|state| state.push(stream, Work::CopyBytes { target, source, bytes }));
    Ok(())
}

/// The kernels' functions.
const SAXPY: usize = 0x5a;
const MIX: usize = 0x5b;
const FAIL: usize = 0x5c;
/// The bit of those that are given a record.
const RECORD: usize = 0x100;

/// A launch of one of the kernels, which take a number and two slices.
fn launch(function: usize, shape: [u32; 6], params: *mut Pointer) -> Work {
    let threads: u64 = shape.iter().map(|&n| u64::from(n)).product();
    let param = |index: usize| unsafe { *params.add(index) };
    let record = |own: usize| if function & RECORD == 0 { 0 } else { found_at(unsafe { *param(own).cast::<u64>() }) };
    let function = function & !RECORD;
    if function == FAIL {
        let (factor, number): (u32, u32) = unsafe { (*param(0).cast(), *param(1).cast()) };
        let (x, y, len): (usize, usize, usize) =
            unsafe { (*param(2).cast(), *param(4).cast(), *param(5).cast()) };
        let (x, y) = (found_at(x as u64), found_at(y as u64));
        return Work::Mix { factor, x, y, len, failure: number, record: record(6) };
    }
    let (x, y, len): (usize, usize, usize) =
        unsafe { (*param(1).cast(), *param(3).cast(), *param(4).cast()) };
    let (x, y) = (found_at(x as u64), found_at(y as u64));
    let len = len.min(threads as usize);
    match function {
        SAXPY => Work::Saxpy { a: unsafe { *param(0).cast() }, x, y, len, record: record(5) },
        MIX => Work::Mix { factor: unsafe { *param(0).cast() }, x, y, len, failure: 0, record: record(5) },
        other => panic!("function {other:#x}"),
    }
}

call! { bound:
    fn cuStreamCreateWithPriority(stream: *mut usize, flags: u32, priority: i32) {
        log(&format!("stream flags={flags} priority={priority}"));
        with(|state| {
            let id = state.id();
            state.streams.insert(id, VecDeque::new());
            state.made_in.insert(id, CONTEXT.get());
            unsafe { *stream = id };
        });
        Ok(())
    }
    fn cuStreamDestroy_v2(stream: Pointer) {
        // The handle is gone at once, the work runs to its end.
        let (stream, gone) = (stream as usize, with(State::id));
        with(|state| {
            let queue = state.streams.remove(&stream).expect("destroyed once");
            state.streams.insert(gone, queue);
            state.orders.rename(stream, gone);
            if state.calling.remove(&stream) {
                state.calling.insert(gone);
            }
        });
        drain_later(gone, move || with(|state| {
            state.streams.remove(&gone);
            state.pool.end(stream);
            state.orders.end(gone);
        }));
        Ok(())
    }
    fn cuStreamGetPriority(stream: Pointer, priority: *mut i32) {
        assert!(is_live(stream));
        unsafe { *priority = -1 };
        Ok(())
    }
    fn cuStreamGetFlags(stream: Pointer, flags: *mut u32) {
        assert!(is_live(stream));
        unsafe { *flags = u32::from(!is_default(stream)) };
        Ok(())
    }
    fn cuStreamIsCapturing(stream: Pointer, status: *mut u32) {
        assert!(is_live(stream));
        unsafe { *status = number("capturing", 0) as u32 };
        Ok(())
    }
    fn cuStreamGetCtx(stream: Pointer, context: *mut usize) {
        if !is_live(stream) {
            return Err(400);
        }
        unsafe { *context = number("foreign_context", CONTEXT.get() as u64) as usize };
        Ok(())
    }
    fn cuStreamAddCallback(stream: Pointer, callback: Callback, data: Pointer, _flags: u32) {
        with(|state| state.push(stream, Work::Call { function: callback, data: data as usize }));
        // A thread that waits for a callback makes no call that would let work run.
        if number("held", 0) == 0 {
            drain_later(real(stream) as usize, || ());
        }
        Ok(())
    }
    fn cuEventCreate(event: *mut usize, flags: u32) {
        log(&format!("event flags={flags}"));
        with(|state| {
            let id = state.id();
            state.events.insert(id, (0, HashSet::new()));
            state.made_in.insert(id, CONTEXT.get());
            unsafe { *event = id };
        });
        Ok(())
    }
    fn cuEventDestroy_v2(event: Pointer) {
        with(|state| {
            let event = event as usize;
            let version = state.events[&event].0;
            state.pool.forget(event, version);
        });
        Ok(())
    }
    fn cuMemAlloc_v2(pointer: *mut u64, bytes: usize) { allocate(pointer, bytes) }
    fn cuMemFree_v2(pointer: u64) {
        with(|state| {
            let pointer = pointer as usize;
            let Some(place) = state.opened.iter().position(|opened| *opened == pointer) else {
                return state.release(pointer);
            };
            state.opened.swap_remove(place);
            assert!(!state.is_in_use(pointer, state.allocations[&pointer]), "closed while it is used");
        });
        Ok(())
    }
    fn cuMemFreeAsync(pointer: u64, stream: Pointer) {
        let owner = with(|state| state.owners[&(pointer as usize)]);
        assert_eq!(owner, CONTEXT.get(), "freed on a stream of another device");
        let pointer = pointer as usize;
        with(|state| {
            let (number, bytes) = (state.id(), state.allocations[&pointer]);
            let work = if pool::reuses() { Work::GiveBack { pointer, number, bytes, owner } } else { Work::Free { pointer } };
            state.push(stream, work);
        });
        Ok(())
    }
    fn cuMemAllocManaged(pointer: *mut u64, bytes: usize, flags: u32) {
        assert_eq!(flags, 1, "attached to all streams");
        allocate(pointer, bytes)
    }
    fn cuMemPrefetchAsync(start: u64, bytes: usize, device: i32, _stream: Pointer) {
        assert_eq!(with(|state| state.allocations[&(start as usize)]), bytes);
        log(&format!("prefetch to {device}"));
        Ok(())
    }
    fn cuMemAdvise(start: u64, bytes: usize, advice: u32, device: i32) {
        assert_eq!(with(|state| state.allocations[&(start as usize)]), bytes);
        log(&format!("advice {advice} for {device}"));
        Ok(())
    }
    fn cuMemHostAlloc(pointer: *mut usize, bytes: usize, flags: u32) {
        log(&format!("pinned flags={flags}"));
        if bytes as u64 > number("memory", 1 << 30) {
            return Err(OUT_OF_MEMORY);
        }
        // Separate pages.
        let pages = Layout::from_size_align(bytes.next_multiple_of(4096), 4096).unwrap();
        let memory = unsafe { alloc(pages) } as usize;
        with(|state| {
            state.made_in.insert(memory, CONTEXT.get());
            state.pinned.insert(memory, (bytes, false));
            if flags & WRITE_COMBINED != 0 {
                state.write_combined.insert(memory);
            }
        });
        unsafe { *pointer = memory };
        Ok(())
    }
    fn cuMemFreeHost(pointer: usize) {
        let (bytes, registered) = with(|state| state.pinned.remove(&pointer)).expect("freed once");
        assert!(!registered);
        assert!(!with(|state| state.is_in_use(pointer, bytes)), "freed while it is used");
        with(|state| state.write_combined.remove(&pointer));
        unsafe {
            (pointer as *mut u8).write_bytes(0xdd, bytes);
            dealloc(pointer as *mut u8, Layout::from_size_align(bytes.next_multiple_of(4096), 4096).unwrap());
        }
        Ok(())
    }
    fn cuMemHostRegister_v2(pointer: usize, bytes: usize, flags: u32) {
        assert_eq!(flags, 3, "page-locked for all contexts, and mapped");
        let before = with(|state| state.pinned.insert(pointer, (bytes, true)));
        if before.is_some() { Err(712) } else { Ok(()) }
    }
    fn cuMemHostUnregister(pointer: usize) {
        let (bytes, registered) = with(|state| state.pinned.remove(&pointer)).expect("unregistered once");
        assert!(registered);
        assert!(!with(|state| state.is_in_use(pointer, bytes)), "unregistered while it is used");
        Ok(())
    }
    fn cuMemcpy2DAsync_v2(copy: *const [usize; 16], stream: Pointer) {
        let [0, 0, source_type, source_host, source_device, 0, source_pitch, 0, 0, target_type, target_host, target_device, 0, target_pitch, width, height] = (unsafe { *copy }) else {
            panic!("an offset or an array");
        };
        // The types are 32-bit numbers, followed by padding.
        let place = |kind: usize, host: usize, device: usize| match kind as u32 {
            1 => host,
            4 => found_at(device as u64),
            other => panic!("memory type {other}"),
        };
        let (source, target) = (place(source_type, source_host, source_device), place(target_type, target_host, target_device));
        let work = Work::CopyRows { target, source, target_pitch, source_pitch, width, height };
        with(|state| state.push(stream, work));
        Ok(())
    }
    fn cuMemcpy3DAsync_v2(copy: *const arrays::Copy, stream: Pointer) {
        arrays::copy(unsafe { &*copy }, stream);
        Ok(())
    }
    fn cuArray3DCreate_v2(array: *mut usize, description: *const arrays::Description) {
        arrays::create(array, unsafe { &*description })
    }
    fn cuArrayDestroy(array: usize) {
        arrays::destroy(array);
        Ok(())
    }
    fn cuTexObjectCreate(texture: *mut u64, resource: *const arrays::Resource, sampler: *const arrays::Sampler, view: Pointer) {
        assert!(view.is_null());
        arrays::texture(texture, unsafe { &*resource }, unsafe { &*sampler });
        Ok(())
    }
    fn cuTexObjectDestroy(texture: u64) {
        arrays::destroy_object(texture);
        Ok(())
    }
    fn cuSurfObjectCreate(surface: *mut u64, resource: *const arrays::Resource) {
        arrays::surface(surface, unsafe { &*resource });
        Ok(())
    }
    fn cuSurfObjectDestroy(surface: u64) {
        arrays::destroy_object(surface);
        Ok(())
    }
    fn cuMemcpyPeerAsync(target: u64, to: usize, source: u64, from: usize, bytes: usize, stream: Pointer) {
        assert!([to, from].contains(&CONTEXT.get()), "on a stream of neither device");
        copy(found_at(target), found_at(source), bytes, stream)
    }
    fn cuMemcpyAsync(target: u64, source: u64, bytes: usize, stream: Pointer) {
        // Either address of write-combined memory will do.
        let found = |address: u64| address as usize & !ALIAS;
        copy(found(target), found(source), bytes, stream)
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
    fn cuStreamWriteValue32_v2(stream: Pointer, target: u64, value: u32, flags: u32) {
        assert_eq!(flags, 0, "after a barrier");
        if with(|state| state.takes_numbers(target)) { fill(target, &value.to_ne_bytes(), 1, stream) } else { Err(1) }
    }
    fn cuStreamWriteValue64_v2(stream: Pointer, target: u64, value: u64, flags: u32) {
        assert_eq!(flags, 0, "after a barrier");
        fill(target, &value.to_ne_bytes(), 1, stream)
    }
    fn cuStreamWaitValue32_v2(_stream: Pointer, _source: u64, value: u32, flags: u32) {
        log(&format!("waits for {value} of 32 bits, kind {flags}"));
        if flags == 3 { Err(801) } else { Ok(()) }
    }
    fn cuStreamWaitValue64_v2(_stream: Pointer, _source: u64, value: u64, flags: u32) {
        log(&format!("waits for {value} of 64 bits, kind {flags}"));
        Ok(())
    }
    fn cuModuleLoadDataEx(module: *mut usize, image: *const c_char, count: u32, options: *mut u32, values: *mut Pointer) {
        let refused = setting("refuse").unwrap_or_default();
        if unsafe { CStr::from_ptr(image) }.to_bytes().starts_with(b"\x7fELF") {
            // The tests' cubins have their architecture behind the file's header.
            let arch = unsafe { CStr::from_ptr(image.add(64)) }.to_str().unwrap();
            log(&format!("machine code for {arch}"));
            if refused.split('+').any(|refused| refused == "cubin") {
                return Err(209);
            }
            unsafe { loading::report_options(count, options, values) };
            unsafe { *module = with(State::id) };
            return Ok(());
        }
        let text = unsafe { CStr::from_ptr(image) }.to_str().unwrap().to_owned();
        if refused.split('+').any(|arch| !arch.is_empty() && text.contains(&format!(".target {arch}\n"))) {
            let options = unsafe { std::slice::from_raw_parts(options, count as usize) };
            let log = options.iter().position(|&option| option == 5).expect("an error log");
            let words = c"ptxas fatal: this driver is too old".to_bytes_with_nul();
            unsafe { (*values.add(log)).cast::<u8>().copy_from_nonoverlapping(words.as_ptr(), words.len()) };
            return Err(222);
        }
        unsafe { loading::report_options(count, options, values) };
        unsafe { *module = with(State::id) };
        loading::note_text(unsafe { *module }, text);
        Ok(())
    }
    fn cuModuleGetFunction(function: *mut usize, module: usize, name: *const c_char) {
        let name = unsafe { CStr::from_ptr(name) }.to_str().unwrap();
        let known = match name.split_once('_') {
            Some(("saxpy", _)) => SAXPY,
            Some(("mix", _)) => MIX,
            Some(("fail", _)) => FAIL,
            _ => return Err(500),
        };
        let record = if loading::takes_record(module, name) { RECORD } else { 0 };
        unsafe { *function = known | record };
        Ok(())
    }
    fn cuMemcpyHtoD_v2(target: u64, source: *const u8, bytes: usize) {
        unsafe { std::ptr::copy_nonoverlapping(source, target as *mut u8, bytes) };
        Ok(())
    }
    fn cuMemcpyDtoH_v2(target: *mut u8, source: u64, bytes: usize) {
        unsafe { std::ptr::copy_nonoverlapping(source as *const u8, target, bytes) };
        Ok(())
    }
    fn cuMemHostGetDevicePointer_v2(address: *mut u64, pointer: Pointer, _flags: u32) {
        let differs = with(|state| state.write_combined.contains(&(pointer as usize)));
        unsafe { *address = pointer as u64 | if differs { ALIAS as u64 } else { 0 } };
        Ok(())
    }
    fn cuFuncGetAttribute(value: *mut i32, attribute: u32, _function: usize) {
        unsafe { *value = loading::function_attribute(attribute) };
        Ok(())
    }
}

call! { own:
    fn cuStreamSynchronize(stream: Pointer) {
        check_default(stream);
        drain(real(stream) as usize);
        Ok(())
    }
    fn cuStreamQuery(stream: Pointer) {
        // Each query lets one operation run; callbacks are called by others.
        check_default(stream);
        let stream = real(stream) as usize;
        let busy = with(|state| {
            let next = state.streams.get(&stream).and_then(VecDeque::front);
            let is_call = matches!(next, Some(Work::Call { .. }));
            is_call || !matches!(state.step(stream), Step::Empty)
        });
        if busy { Err(600) } else { Ok(()) }
    }
    fn cuStreamWaitEvent(stream: Pointer, event: Pointer, _flags: u32) {
        check_default(stream);
        with(|state| {
            // As the real driver does at times: see benches/cuda/lost_waits.cu.
            if state.launching.contains(&(real(stream) as usize)) {
                return;
            }
            let version = state.events[&(event as usize)].0;
            state.push(stream, Work::Wait { event: event as usize, version });
        });
        Ok(())
    }
    fn cuEventRecord(event: Pointer, stream: Pointer) {
        check_default(stream);
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
        let version = with(|state| state.events[&(event as usize)].0);
        wait(event as usize, version);
        Ok(())
    }
    fn cuEventElapsedTime(milliseconds: *mut f32, _start: Pointer, _end: Pointer) {
        unsafe { *milliseconds = 1.5 };
        Ok(())
    }
    fn cuLaunchKernel(function: usize, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, _shared: u32, stream: Pointer, params: *mut Pointer, _extra: Pointer) {
        check_default(stream);
        let work = launch(function, [gx, gy, gz, bx, by, bz], params);
        with(|state| state.push(stream, work));
        Ok(())
    }
}

#[cfg(not(without_batches))]
call! { bound:
    fn cuMemcpyBatchAsync_v2(targets: *const u64, sources: *const u64, sizes: *const usize, count: usize, attributes: *const u32, indices: *const usize, kinds: usize, stream: Pointer) {
        // SAFETY: there is one of each.
        let (target, source, bytes) = unsafe { (*targets, *sources, *sizes) };
        // SAFETY: as above.
        assert_eq!((count, kinds, unsafe { (*attributes, *indices) }), (1, 1, (1, 0)), "in stream order");
        assert!(stream as usize > 1, "the legacy stream takes none");
        copy(found_at(target), found_at(source), bytes, stream)
    }
}

mod device;
mod graph_memory;
mod loading;
#[cfg(not(without_pools))]
mod memory_pools;
#[cfg(not(without_virtual_memory))]
mod virtual_memory;
