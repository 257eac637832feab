//! 5.3 driver_calls: calls of CUDA's driver by the crate cudarc, combined with launches of Ferrogrid.
//!
//! Shows: a context, streams and kernels passed to other code by `as_raw`; memory, an event and a graph of
//! other code taken in by `from_raw`. Look at: from there on they are an ordinary buffer, event or graph, and
//! safe to use; each `unsafe` names what the other code must guarantee.
//!
//! The CPU device has no driver: there the program says so, and ends.
//!
//! `cargo ferrogrid run driver_calls`

use cudarc::driver::{result, sys};
use ferrogrid::prelude::*;
use ferrogrid::{DevicePtrMut, Event, ExecutableGraph};

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn increment(t: Thread<1>, mut x: DisjointSlice<u32>) {
        if let Some(x) = x.get_mut(t.index()) {
            *x += 1;
        }
    }
}

const LENGTH: usize = 1000;

/// Memory that this file allocates and frees by driver calls.
struct Theirs(sys::CUdeviceptr);

impl Drop for Theirs {
    fn drop(&mut self) {
        // SAFETY: allocated once, and dropped after all work that uses it.
        let freed = unsafe { result::free_sync(self.0) };
        freed.expect("the memory is freed");
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    println!("device  {}", device.name());
    let context = match device.context() {
        Err(error @ Error::Unsupported { .. }) => {
            println!("SKIPPED: {error}");
            return Ok(());
        }
        context => context?,
    };
    context.set_current()?; // for the calls of cudarc on this thread

    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let (raw, raw_other) = (handle(&stream)?, handle(&other)?);
    // SAFETY: the stream is live; the memory is as long as what is written, and initialised before it is a buffer.
    let mut x = unsafe {
        let theirs = Theirs(result::malloc_sync(LENGTH * size_of::<u32>())?);
        sys::cuMemsetD32Async(theirs.0, 41, LENGTH, raw).result()?;
        let start = DevicePtrMut::from_raw(std::ptr::with_exposed_provenance_mut(theirs.0 as usize));
        DeviceBuffer::<u32>::from_raw(&stream, start, LENGTH, theirs)?
    };
    kernels::increment(&stream, Grid::cover(LENGTH), &mut x)?; // after their fill
    expect(&stream.download(&x)?, 42)?;

    let kernel = kernels::increment::kernel();
    let function = kernel.as_raw(&device)?.ok_or("no function")?;
    let registers = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS;
    // SAFETY: the function stays loaded.
    let registers = unsafe { result::function::get_function_attribute(function.cast(), registers)? };
    println!("{} has {registers} registers, says the driver", kernel.name());
    if registers.unsigned_abs() != device.attributes(kernel)?.num_regs {
        return Err("Ferrogrid reports another number".into());
    }

    // An event that cudarc records on one of our streams; another stream waits for it.
    let theirs = result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)?;
    // SAFETY: event and stream are live, until the end of this function.
    let event = unsafe {
        result::event::record(theirs, raw_other)?;
        Event::from_raw(&device, theirs.cast())?
    };
    stream.wait(&event)?;

    // A graph that cudarc builds for our buffer, launched by Ferrogrid.
    let start = x.as_device_ptr_mut().as_raw().expose_provenance() as u64;
    let (definition, instance) = fill(start, 7, &context)?;
    // SAFETY: the instance lives longer, and `x`, which it writes, is used on this stream only.
    let mut graph = unsafe { ExecutableGraph::from_raw(&device, instance.cast())? };
    graph.launch(&stream)?;
    kernels::increment(&stream, Grid::cover(LENGTH), &mut x)?;
    expect(&stream.download(&x)?, 8)?;

    drop((graph, event));
    // SAFETY: all work has run, and nothing refers to them.
    unsafe {
        result::graph::exec_destroy(instance)?;
        result::graph::destroy(definition)?;
        result::event::destroy(theirs)?;
    }
    println!("PASS");
    Ok(())
}

fn handle(stream: &Stream) -> Result<sys::CUstream, &'static str> {
    stream.as_raw().map(|raw| raw.cast()).ok_or("no handle")
}

/// A graph of one node, which writes `value` to `LENGTH` numbers.
fn fill(
    start: sys::CUdeviceptr,
    value: u32,
    context: &ferrogrid::Context,
) -> Result<(sys::CUgraph, sys::CUgraphExec), result::DriverError> {
    let (mut graph, mut node, mut instance) =
        (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
    let params = sys::CUDA_MEMSET_NODE_PARAMS {
        dst: start,
        pitch: 0,
        value,
        elementSize: 4,
        width: LENGTH,
        height: 1,
    };
    // SAFETY: all are valid for the calls; the memory is used by launches only.
    unsafe {
        sys::cuGraphCreate(&mut graph, 0).result()?;
        let context = context.as_raw().cast();
        sys::cuGraphAddMemsetNode(&mut node, graph, std::ptr::null(), 0, &params, context).result()?;
        sys::cuGraphInstantiateWithFlags(&mut instance, graph, 0).result()?;
    }
    Ok((graph, instance))
}

fn expect(found: &[u32], value: u32) -> Result<(), String> {
    println!("{LENGTH} numbers, the first {}", found[0]);
    if found == [value; LENGTH] { Ok(()) } else { Err(format!("expected {value} everywhere")) }
}
