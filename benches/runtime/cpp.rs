//! The C++ side, benches/cuda/runtime.cu, as functions.

use std::ffi::{CString, c_char, c_void};
use std::path::Path;

use ferrogrid::prelude::*;
use ferrogrid::{Event, Kernel};
use libloading::Library;

use crate::Outcome;
use crate::launches::Flat;

type Pointer = *mut c_void;

type Pipeline = unsafe extern "C" fn(
    Pointer,
    *const f32,
    *mut f32,
    *const Pointer,
    u32,
    usize,
    u32,
    *const Pointer,
    u32,
) -> f64;

/// The functions of the library, as declared there.
pub struct Cpp {
    load_function: unsafe extern "C" fn(*const c_char, *const c_char) -> Pointer,
    launches: unsafe extern "C" fn(Pointer, *const Pointer, *const *const Pointer, u32, u32) -> f64,
    launches_of_sixteen: unsafe extern "C" fn(Pointer, Pointer, *const f32, *const Flat, u32) -> f64,
    records: unsafe extern "C" fn(Pointer, Pointer, u32) -> f64,
    queries: unsafe extern "C" fn(Pointer, u32) -> f64,
    new_graph: unsafe extern "C" fn(u32) -> Pointer,
    replays: unsafe extern "C" fn(Pointer, Pointer, u32) -> f64,
    copies: unsafe extern "C" fn(Pointer, *const c_void, usize, Pointer, u32) -> f64,
    pipeline: Pipeline,
    /// Keeps the functions loaded.
    _library: Library,
}

/// A Ferrogrid kernel, loaded and launched by the driver's own calls.
pub struct RawKernel(Pointer);

/// A graph of empty kernels, created in C++.
pub struct CppGraph(Pointer);

impl Cpp {
    pub fn load(path: &Path) -> Outcome<Self> {
        // SAFETY: the library is that of benches/cuda/runtime.cu, and runs nothing when it is loaded except
        // the CUDA runtime's own initialisation; the types are those declared there.
        unsafe {
            let library = Library::new(path)?;
            Ok(Cpp {
                load_function: *library.get(b"load_function")?,
                launches: *library.get(b"launches")?,
                launches_of_sixteen: *library.get(b"launches_of_sixteen")?,
                records: *library.get(b"records")?,
                queries: *library.get(b"queries")?,
                new_graph: *library.get(b"new_graph")?,
                replays: *library.get(b"replays")?,
                copies: *library.get(b"copies")?,
                pipeline: *library.get(b"pipeline")?,
                _library: library,
            })
        }
    }

    pub fn kernel(&self, kernel: &Kernel) -> Outcome<RawKernel> {
        let (ptx, entry) = (CString::new(kernel.ptx().ok_or("no PTX")?)?, CString::new(kernel.entry())?);
        // SAFETY: both end in 0; the device's context is current on this thread, which has made a stream.
        let function = unsafe { (self.load_function)(ptx.as_ptr(), entry.as_ptr()) };
        if function.is_null() { Err("the kernel does not load".into()) } else { Ok(RawKernel(function)) }
    }

    /// Seconds for `count` launches of one block of 256 threads, alternating between the streams.
    ///
    /// # Safety
    /// `params` has for each stream the addresses of the kernel's flattened parameters, whose memory no other work uses.
    pub unsafe fn launches(
        &self,
        kernel: &RawKernel,
        streams: &[&Stream],
        params: &[&[*const c_void]],
        count: u32,
    ) -> Outcome<f64> {
        assert_eq!(streams.len(), params.len());
        let streams = streams.iter().map(|stream| raw(stream)).collect::<Outcome<Vec<_>>>()?;
        let params: Vec<_> = params.iter().map(|params| params.as_ptr().cast::<Pointer>()).collect();
        // SAFETY: the streams are live; the caller vouches for the rest.
        seconds(unsafe {
            (self.launches)(kernel.0, streams.as_ptr(), params.as_ptr(), streams.len() as u32, count)
        })
    }

    /// Seconds for `count` launches of `sixteen`, one block of 256 threads each, with these values.
    ///
    /// # Safety
    /// `kernel` is `sixteen`, and no other work uses the memory of the slices.
    pub unsafe fn launches_of_sixteen(
        &self,
        kernel: &RawKernel,
        stream: &Stream,
        scalars: &[f32; 4],
        slices: &[Flat; 8],
        count: u32,
    ) -> Outcome<f64> {
        let (scalars, slices) = (scalars.as_ptr(), slices.as_ptr());
        // SAFETY: the stream is live, and the library reads as many values; the caller vouches for the rest.
        seconds(unsafe { (self.launches_of_sixteen)(kernel.0, raw(stream)?, scalars, slices, count) })
    }

    /// Seconds for `count` records of an event of the stream's device.
    pub fn records(&self, event: &Event, stream: &Stream, count: u32) -> Outcome<f64> {
        // SAFETY: both handles are live.
        seconds(unsafe { (self.records)(event.as_raw().ok_or("no GPU")?, raw(stream)?, count) })
    }

    /// Seconds for `count` queries of an event that is complete.
    pub fn queries(&self, event: &Event, count: u32) -> Outcome<f64> {
        // SAFETY: the handle is live.
        seconds(unsafe { (self.queries)(event.as_raw().ok_or("no GPU")?, count) })
    }

    pub fn graph(&self, nodes: u32) -> Outcome<CppGraph> {
        // SAFETY: the device's context is current on this thread, which has made a stream.
        let graph = unsafe { (self.new_graph)(nodes) };
        if graph.is_null() { Err("no graph in C++".into()) } else { Ok(CppGraph(graph)) }
    }

    /// Seconds for `count` replays, including the final wait.
    pub fn replays(&self, graph: &mut CppGraph, stream: &Stream, count: u32) -> Outcome<f64> {
        // SAFETY: both handles are live.
        seconds(unsafe { (self.replays)(graph.0, raw(stream)?, count) })
    }

    /// Seconds for `count` copies, each with its wait.
    ///
    /// # Safety
    /// Both are `bytes` of the host or the device that no other work uses.
    pub unsafe fn copies(
        &self,
        to: *mut c_void,
        from: *const c_void,
        bytes: usize,
        stream: &Stream,
        count: u32,
    ) -> Outcome<f64> {
        // SAFETY: the stream is live; the caller vouches for the memory.
        seconds(unsafe { (self.copies)(to, from, bytes, raw(stream)?, count) })
    }

    /// Seconds for all chunks to the device, through the kernel, and back.
    ///
    /// # Safety
    /// The kernel takes rounds, two numbers and a slice, and nothing else.
    pub unsafe fn pipeline(
        &self,
        kernel: &RawKernel,
        input: &[f32],
        output: &mut [f32],
        buffers: &mut [DeviceBuffer<f32>],
        rounds: u32,
        streams: &[&Stream],
    ) -> Outcome<f64> {
        let (chunks, length) = (buffers.len(), buffers[0].len());
        assert!(input.len() == chunks * length && output.len() == chunks * length);
        let streams = streams.iter().map(|stream| raw(stream)).collect::<Outcome<Vec<_>>>()?;
        let buffers: Vec<Pointer> =
            buffers.iter_mut().map(|buffer| buffer.as_device_ptr_mut().as_raw().cast()).collect();
        // SAFETY: all memory is borrowed until the function has waited for the streams, and of these lengths; work on
        // the buffers before was waited for; the caller vouches for the kernel.
        seconds(unsafe {
            (self.pipeline)(
                kernel.0,
                input.as_ptr(),
                output.as_mut_ptr(),
                buffers.as_ptr(),
                chunks as u32,
                length,
                rounds,
                streams.as_ptr(),
                streams.len() as u32,
            )
        })
    }
}

fn raw(stream: &Stream) -> Outcome<Pointer> {
    Ok(stream.as_raw().ok_or("no GPU")?)
}

/// What a function returned: seconds, or a code of CUDA, negated.
fn seconds(result: f64) -> Outcome<f64> {
    if result >= 0.0 { Ok(result) } else { Err(format!("C++ fails with CUDA's code {}", -result).into()) }
}
