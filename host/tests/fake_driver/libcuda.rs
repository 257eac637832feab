//! A CUDA driver for tests, compiled by `tests/scenario/mod.rs` into a `libcuda.so.1`. Device
//! memory is host memory; work on a stream is put off until something waits for it, so that a
//! missing order shows as old data; with `alive=1`, streams run by themselves instead, in random order, and memory that
//! is freed has its next owner at once (`pool.rs`). It knows three kernels, `saxpy_*`, `mix_*` and `fail_*`. The variable FAKE_CUDA
//! sets what it is like and which calls fail (with `held=1`, callbacks run only at waits); FAKE_CUDA_LOG names a file that
//! gets the names of all calls.
//!
//! All its functions are `unsafe`: a caller must pass what the real driver requires. The host crate under test is the only
//! caller, and that it does so is part of what the tests show. `pointer.rs` says what follows for arguments, and `Work`
//! in `work.rs` what follows for memory that enqueued work uses.

#[path = "arrays.rs"]
mod arrays;
#[path = "feedback.rs"]
mod feedback;
#[path = "order.rs"]
mod order;
#[path = "pointer.rs"]
mod pointer;
#[path = "pool.rs"]
mod pool;
#[path = "work.rs"]
mod work;

use std::alloc::{Layout, alloc, dealloc};
use std::cell::Cell;
use std::collections::{HashSet, VecDeque};
use std::ffi::{CStr, c_char};
use std::io::Write;

use pointer::{In, List, Out, Text};
use work::{
    Callback, Code, Pointer, Prepare, SUCCESS, State, Step, Work, drain, drain_later, end, is_default, real, wait, with,
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
        /// # Safety
        /// As for the function of the real driver.
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
        /// # Safety
        /// As for the function of the real driver.
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
        /// # Safety
        /// As for the function of the real driver.
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

fn allocate(bytes: usize) -> Result<usize, Code> {
    assert!(bytes > 0, "the driver refuses to allocate nothing");
    with(|state| {
        if state.used() + bytes as u64 > number("memory", 1 << 30) {
            return Err(OUT_OF_MEMORY);
        }
        // SAFETY: `bytes` is not 0.
        let memory = unsafe { alloc(Layout::from_size_align(bytes, 256).unwrap()) };
        // SAFETY: it has so many bytes, which nothing else knows yet.
        unsafe { memory.write_bytes(0xaa, bytes) };
        state.allocations.insert(memory as usize, bytes);
        state.owners.insert(memory as usize, CONTEXT.get());
        Ok(memory as usize)
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

/// A side of `CUDA_MEMCPY2D`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Rows {
    origin: [usize; 2],
    kind: u32,
    host: usize,
    device: u64,
    array: usize,
    pitch: usize,
}

impl Rows {
    fn place(&self) -> usize {
        assert_eq!((self.origin, self.array), ([0; 2], 0), "no offset and no array");
        match self.kind {
            1 => self.host,
            4 => found_at(self.device),
            other => panic!("memory type {other}"),
        }
    }
}

/// `CUDA_MEMCPY2D`.
#[derive(Clone, Copy)]
#[repr(C)]
struct CopyOfRows {
    source: Rows,
    target: Rows,
    width: usize,
    height: usize,
}

/// The kernels' functions.
const SAXPY: usize = 0x5a;
const MIX: usize = 0x5b;
const FAIL: usize = 0x5c;
/// The bit of those that are given a record.
const RECORD: usize = 0x100;

/// A launch of one of the kernels, which take a number (`fail_*` two), two slices, and their record if they may panic.
///
/// # Safety
/// `params` has the address of each parameter of `function`: numbers have 4 bytes; a slice is an address and a length, each of
/// 8 bytes, and so is a record's address.
unsafe fn launch(function: usize, shape: [u32; 6], params: *mut Pointer) -> Work {
    let threads: u64 = shape.iter().map(|&n| u64::from(n)).product();
    // SAFETY: the parameter of this index is a number, as stated above.
    let number = |index: usize| unsafe { *(*params.add(index)).cast::<u32>() };
    // SAFETY: the parameter of this index is an address or a length, as stated above.
    let word = |index: usize| unsafe { *(*params.add(index)).cast::<u64>() };
    let record = |own: usize| if function & RECORD == 0 { 0 } else { found_at(word(own)) };
    let function = function & !RECORD;
    if function == FAIL {
        let (x, y, len) = (found_at(word(2)), found_at(word(4)), word(5) as usize);
        return Work::Mix { factor: number(0), x, y, len, failure: number(1), record: record(6) };
    }
    let (x, y) = (found_at(word(1)), found_at(word(3)));
    let len = (word(4) as usize).min(threads as usize);
    match function {
        SAXPY => Work::Saxpy { a: f32::from_bits(number(0)), x, y, len, record: record(5) },
        MIX => Work::Mix { factor: number(0), x, y, len, failure: 0, record: record(5) },
        other => panic!("function {other:#x}"),
    }
}

call! { bound:
    fn cuMemAlloc_v2(pointer: Out<u64>, bytes: usize) {
        pointer.set(allocate(bytes)? as u64);
        Ok(())
    }
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
    fn cuMemAllocManaged(pointer: Out<u64>, bytes: usize, flags: u32) {
        assert_eq!(flags, 1, "attached to all streams");
        pointer.set(allocate(bytes)? as u64);
        Ok(())
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
    fn cuMemHostAlloc(pointer: Out<usize>, bytes: usize, flags: u32) {
        log(&format!("pinned flags={flags}"));
        if bytes as u64 > number("memory", 1 << 30) {
            return Err(OUT_OF_MEMORY);
        }
        // Separate pages.
        let pages = Layout::from_size_align(bytes.next_multiple_of(4096), 4096).unwrap();
        assert!(bytes > 0, "the driver refuses to allocate nothing");
        // SAFETY: the size is not 0.
        let memory = unsafe { alloc(pages) } as usize;
        with(|state| {
            state.made_in.insert(memory, CONTEXT.get());
            state.pinned.insert(memory, (bytes, false));
            if flags & WRITE_COMBINED != 0 {
                state.write_combined.insert(memory);
            }
        });
        pointer.set(memory);
        Ok(())
    }
    fn cuMemFreeHost(pointer: usize) {
        let (bytes, registered) = with(|state| state.pinned.remove(&pointer)).expect("freed once");
        assert!(!registered);
        assert!(!with(|state| state.is_in_use(pointer, bytes)), "freed while it is used");
        with(|state| state.write_combined.remove(&pointer));
        // SAFETY: `cuMemHostAlloc` allocated it with this layout: what the host registered is told apart. It was removed, so this
        // happens once, and no work uses it.
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
    fn cuMemcpy2DAsync_v2(copy: In<CopyOfRows>, stream: Pointer) {
        let CopyOfRows { source, target, width, height } = *copy.get();
        let (target_pitch, source_pitch) = (target.pitch, source.pitch);
        let (source, target) = (source.place(), target.place());
        let work = Work::CopyRows { target, source, target_pitch, source_pitch, width, height };
        with(|state| state.push(stream, work));
        Ok(())
    }
    fn cuMemcpy3DAsync_v2(description: In<arrays::Copy>, stream: Pointer) {
        arrays::copy(description.get(), stream);
        Ok(())
    }
    fn cuArray3DCreate_v2(array: Out<usize>, description: In<arrays::Description>) {
        arrays::create(array, description.get())
    }
    fn cuArrayDestroy(array: usize) {
        arrays::destroy(array);
        Ok(())
    }
    fn cuTexObjectCreate(texture: Out<u64>, resource: In<arrays::Resource>, sampler: In<arrays::Sampler>, view: Pointer) {
        assert!(view.is_null());
        arrays::texture(texture, resource.get(), sampler.get());
        Ok(())
    }
    fn cuTexObjectDestroy(texture: u64) {
        arrays::destroy_object(texture);
        Ok(())
    }
    fn cuSurfObjectCreate(surface: Out<u64>, resource: In<arrays::Resource>) {
        arrays::surface(surface, resource.get());
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
    fn cuModuleLoadDataEx(module: Out<usize>, image: *const c_char, count: u32, options: List<u32>, values: List<Pointer>) {
        // SAFETY: the caller passes `count` of both.
        let (options, values) = unsafe { (options.get(count as usize), values.get(count as usize)) };
        let refused = setting("refuse").unwrap_or_default();
        // SAFETY: PTX is a text that ends with a zero byte, and machine code has one in its header.
        let start = unsafe { CStr::from_ptr(image) };
        if start.to_bytes().starts_with(b"\x7fELF") {
            // The tests' cubins have their architecture behind the file's header.
            // SAFETY: the header has 64 bytes, and a text with a zero byte follows.
            let arch = unsafe { CStr::from_ptr(image.add(64)) }.to_str().unwrap();
            log(&format!("machine code for {arch}"));
            if refused.split('+').any(|refused| refused == "cubin") {
                return Err(209);
            }
            // SAFETY: they are those of this call.
            unsafe { loading::report_options(options, values) };
            module.set(with(State::id));
            return Ok(());
        }
        let text = start.to_str().unwrap().to_owned();
        if refused.split('+').any(|arch| !arch.is_empty() && text.contains(&format!(".target {arch}\n"))) {
            let log = options.iter().position(|&option| option == 5).expect("an error log");
            let words = c"ptxas fatal: this driver is too old".to_bytes_with_nul();
            // SAFETY: option 5 is the address of the error log, which has room for the words: the host crate's have 64 KiB.
            unsafe { values[log].cast::<u8>().copy_from_nonoverlapping(words.as_ptr(), words.len()) };
            return Err(222);
        }
        // SAFETY: they are those of this call.
        unsafe { loading::report_options(options, values) };
        let made = with(State::id);
        module.set(made);
        loading::note_text(made, text);
        Ok(())
    }
    fn cuModuleGetFunction(function: Out<usize>, module: usize, name: Text) {
        let name = name.str();
        let known = match name.split_once('_') {
            Some(("saxpy", _)) => SAXPY,
            Some(("mix", _)) => MIX,
            Some(("fail", _)) => FAIL,
            _ => return Err(500),
        };
        let record = if loading::takes_record(module, name) { RECORD } else { 0 };
        function.set(known | record);
        Ok(())
    }
    fn cuMemcpyHtoD_v2(target: u64, source: *const u8, bytes: usize) {
        // SAFETY: the caller passes so many bytes of the host, and so many of a variable or allocation of this driver.
        unsafe { std::ptr::copy_nonoverlapping(source, target as *mut u8, bytes) };
        Ok(())
    }
    fn cuMemcpyDtoH_v2(target: *mut u8, source: u64, bytes: usize) {
        // SAFETY: as for `cuMemcpyHtoD_v2`.
        unsafe { std::ptr::copy_nonoverlapping(source as *const u8, target, bytes) };
        Ok(())
    }
    fn cuMemHostGetDevicePointer_v2(address: Out<u64>, pointer: Pointer, _flags: u32) {
        let differs = with(|state| state.write_combined.contains(&(pointer as usize)));
        address.set(pointer as u64 | if differs { ALIAS as u64 } else { 0 });
        Ok(())
    }
    fn cuFuncGetAttribute(value: Out<i32>, attribute: u32, _function: usize) {
        value.set(loading::function_attribute(attribute));
        Ok(())
    }
}

#[cfg(not(without_batches))]
call! { bound:
    fn cuMemcpyBatchAsync_v2(targets: In<u64>, sources: In<u64>, sizes: In<usize>, count: usize, attributes: In<u32>, indices: In<usize>, kinds: usize, stream: Pointer) {
        // `CUmemcpyAttributes` begin with the order of accesses.
        assert_eq!((count, kinds, *attributes.get(), *indices.get()), (1, 1, 1, 0), "in stream order");
        let (target, source, bytes) = (*targets.get(), *sources.get(), *sizes.get());
        assert!(stream as usize > 1, "the legacy stream takes none");
        copy(found_at(target), found_at(source), bytes, stream)
    }
}

mod cudarc;
mod device;
mod graph;
mod loading;
#[cfg(not(without_pools))]
mod memory_pools;
mod streams;
#[cfg(not(without_virtual_memory))]
mod virtual_memory;
