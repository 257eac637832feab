//! Handles of CUDA's driver, passed to other code (here the crate cudarc) and taken from it, and DLPack
//! tensors. The CPU device has no handles, and reports that.

use std::ffi::{CString, c_void};
use std::ptr::{null, null_mut, with_exposed_provenance_mut};

use cudarc::driver::{result, sys};
use ferrogrid::dlpack::DlpackTensor;
use ferrogrid::prelude::*;
use ferrogrid::{
    Context, DevicePtrMut, Event, EventOptions, ExecutableGraph, ForeignFunction, ForeignModule, MemoryPool,
};

use crate::language::kernels::elementwise;
use crate::table::not_for_this_device;
use crate::{Case, Outcome, expect, expect_error};

pub(crate) const CASES: &[Case] = &[
    ("other_libraries_use_the_context", other_libraries_use_the_context),
    ("memory_of_the_driver_is_a_buffer", memory_of_the_driver_is_a_buffer),
    ("events_of_the_driver_are_waited_for_and_timed", events_of_the_driver_are_waited_for_and_timed),
    ("modules_of_the_driver_are_launched", modules_of_the_driver_are_launched),
    ("functions_are_passed_out_and_launched", functions_are_passed_out_and_launched),
    ("graphs_of_the_driver_are_launched", graphs_of_the_driver_are_launched),
    ("pools_of_the_driver_are_asked", pools_of_the_driver_are_asked),
    ("tensors_are_exported_and_imported_again", tensors_are_exported_and_imported_again),
];

const SCALE: &str = include_str!("scale.ptx");

type Fault = Box<dyn std::error::Error>;

/// The context, current on this thread; `None` on a device without one, which must return an error.
fn context(device: &Device) -> std::result::Result<Option<Context>, Fault> {
    if device.is_cuda() {
        let context = device.context()?;
        context.set_current()?;
        return Ok(Some(context));
    }
    expect_error("a context", device.context(), |error| matches!(error, Error::Unsupported { .. }))?;
    Ok(None)
}

fn none_here() -> Outcome {
    not_for_this_device("it has no handles of CUDA's driver")
}

fn raw(stream: &Stream) -> std::result::Result<sys::CUstream, Fault> {
    Ok(stream.as_raw().ok_or("no handle")?.cast())
}

fn other_libraries_use_the_context(device: &Device) -> Outcome {
    let Some(context) = context(device)? else { return none_here() };
    let handle = device.as_raw().ok_or("no handle")?;
    // SAFETY: the device is one; what is retained is released below.
    let primary = unsafe { result::primary_ctx::retain(handle)? };
    expect("the primary context", context.as_raw(), primary.cast())?;
    expect("the current context", result::ctx::get_current()?, Some(primary))?;
    // SAFETY: no context is current in between, as on a new thread of other code.
    let found = unsafe {
        result::ctx::set_current(null_mut())?;
        Context::from_raw(primary.cast())?
    };
    expect("the device of the context", found.device(), device)?;
    expect("what was current still is", result::ctx::get_current()?, None)?;
    // SAFETY: retained above.
    unsafe { result::primary_ctx::release(handle)? };
    expect("the device by its handle", &Device::from_raw(handle)?, device)
}

/// Memory of `cuMemAlloc`, freed with the buffer.
struct Theirs {
    start: sys::CUdeviceptr,
    context: Context,
}

impl Drop for Theirs {
    fn drop(&mut self) {
        // On any thread.
        let current = self.context.set_current();
        // SAFETY: allocated once, and dropped after all work that uses it.
        let freed = unsafe { result::free_sync(self.start) };
        assert!(current.is_ok() && freed.is_ok());
    }
}

fn memory_of_the_driver_is_a_buffer(device: &Device) -> Outcome {
    let Some(context) = context(device)? else { return none_here() };
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let n = 10_000;
    // SAFETY: the memory is as long as what is written; it is initialised before it is a buffer.
    let mut x = unsafe {
        let start = result::malloc_sync(n * size_of::<u32>())?;
        sys::cuMemsetD32Async(start, 41, n, raw(&stream)?).result()?;
        let first = DevicePtrMut::<u32>::from_raw(with_exposed_provenance_mut(start as usize));
        DeviceBuffer::from_raw(&stream, first, n, Theirs { start, context })?
    };
    elementwise::increment(&other, Grid::cover(n), &mut x)?; // after their fill
    expect("elements", stream.download(&x)?, vec![42; n])?;
    let out = x.as_device_ptr().as_raw().expose_provenance() as u64;
    let mut host = vec![0_u32; n];
    // SAFETY: all work on it has run, and it has as many elements.
    unsafe { result::memcpy_dtoh_sync(&mut host, out)? };
    expect("elements, as the driver reads them", host, vec![42; n])
}

fn events_of_the_driver_are_waited_for_and_timed(device: &Device) -> Outcome {
    let Some(_context) = context(device)? else { return none_here() };
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let timed = || result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT);
    let (start, end) = (timed()?, timed()?);
    // SAFETY: they live until the end of this function.
    let (first, second) =
        unsafe { (Event::from_raw(device, start.cast())?, Event::from_raw(device, end.cast())?) };
    // SAFETY: event and stream are live.
    unsafe { result::event::record(start, raw(&stream)?)? };
    let mut x = stream.upload(&vec![1_u32; 1 << 20])?;
    elementwise::increment(&stream, Grid::cover(1 << 20), &mut x)?;
    stream.record_into(&second)?;
    other.wait(&second)?;
    other.synchronize()?;
    // SAFETY: the event is live.
    unsafe { result::event::query(end)? };
    let ours = second.elapsed_since(&first)?.as_secs_f64() * 1e3;
    // SAFETY: both have happened.
    let theirs = f64::from(unsafe { result::event::elapsed(start, end)? });
    expect("the same time", (ours - theirs).abs() < 1e-3, true)?;
    drop((first, second));
    // SAFETY: nothing refers to them any more.
    unsafe {
        result::event::destroy(start)?;
        result::event::destroy(end)?;
    }
    // Ours, out.
    let event = device.new_event(EventOptions::new().without_timing())?;
    stream.record_into(&event)?;
    // SAFETY: the event is live.
    unsafe { result::event::synchronize(event.as_raw().ok_or("no handle")?.cast())? };
    expect("complete", event.is_complete()?, true)
}

fn modules_of_the_driver_are_launched(device: &Device) -> Outcome {
    let Some(_context) = context(device)? else { return none_here() };
    let stream = device.new_stream()?;
    let text = CString::new(SCALE)?;
    // SAFETY: the text ends in 0; the module is unloaded at the end, when nothing uses it.
    let loaded = unsafe { result::module::load_data(text.as_ptr().cast())? };
    // SAFETY: as above.
    let module = unsafe { ForeignModule::from_raw(device, loaded.cast())? };
    expect("the handle", module.as_raw(), loaded.cast())?;
    // SAFETY: the module is loaded.
    let found = unsafe { result::module::get_function(loaded, CString::new("scale")?)? };
    // SAFETY: as above.
    let function = unsafe { ForeignFunction::from_raw(device, found.cast())? };
    let sizes = |function: ForeignFunction| {
        function.parameters().map(|all| all.iter().map(|one| one.size).collect::<Vec<_>>())
    };
    expect("parameters", sizes(function), sizes(module.function("scale")?))?;
    if Device::driver_version()? >= (12, 4) {
        expect("the name", function.name(), "scale")?;
        expect("parameters", sizes(function), Some(vec![8, 8, 4]))?;
        let mut data = stream.upload(&[1.0_f32; 100])?;
        // SAFETY: these are its types, and it keeps to its first 100 elements.
        unsafe { function.launch(&stream, Grid::cover(100), (&mut data, 100_u64, 1_u32))? };
        expect("scaled", stream.download(&data)?[0] != 1.0, true)?;
    }
    // SAFETY: all work has run, and nothing of it is used again.
    unsafe { result::module::unload(loaded)? };
    Ok(())
}

fn functions_are_passed_out_and_launched(device: &Device) -> Outcome {
    let Some(_context) = context(device)? else { return none_here() };
    let stream = device.new_stream()?;
    let kernel = elementwise::increment::kernel();
    let function: sys::CUfunction = kernel.as_raw(device)?.ok_or("no handle")?.cast();
    let registers = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS;
    // SAFETY: the function stays loaded.
    let registers = unsafe { result::function::get_function_attribute(function, registers)? };
    expect("registers", registers.unsigned_abs(), device.attributes(kernel)?.num_regs)?;

    let scale = device.load_ptx(SCALE)?.function("scale")?;
    let mut ours = stream.upload(&[1.0_f32; 100])?;
    // SAFETY: these are its types, and it keeps to its first 100 elements.
    unsafe { scale.launch(&stream, Grid::cover(100), (&mut ours, 100_u64, 1_u32))? };
    let mut theirs = stream.upload(&[1.0_f32; 100])?;
    let (mut start, mut n, mut which) = (theirs.as_device_ptr_mut().as_raw(), 100_u64, 1_u32);
    let mut params: [*mut c_void; 3] =
        [(&raw mut start).cast(), (&raw mut n).cast(), (&raw mut which).cast()];
    // SAFETY: as above, on the stream that has used the memory so far.
    unsafe {
        let (grid, block) = ((1, 1, 1), (128, 1, 1));
        result::launch_kernel(scale.as_raw().cast(), grid, block, 0, raw(&stream)?, &mut params)?;
    }
    expect("elements", stream.download(&theirs)?, stream.download(&ours)?)
}

fn graphs_of_the_driver_are_launched(device: &Device) -> Outcome {
    let Some(context) = context(device)? else { return none_here() };
    let stream = device.new_stream()?;
    let mut x = stream.zeros::<u32>(1000)?;
    let dst = x.as_device_ptr_mut().as_raw().expose_provenance() as u64;
    let params =
        sys::CUDA_MEMSET_NODE_PARAMS { dst, pitch: 0, value: 7, elementSize: 4, width: 1000, height: 1 };
    let (mut definition, mut node, mut instance) = (null_mut(), null_mut(), null_mut());
    // SAFETY: all are valid for the calls; the memory is used by launches only.
    unsafe {
        sys::cuGraphCreate(&mut definition, 0).result()?;
        let context = context.as_raw().cast();
        sys::cuGraphAddMemsetNode(&mut node, definition, null(), 0, &params, context).result()?;
        sys::cuGraphInstantiateWithFlags(&mut instance, definition, 0).result()?;
    }
    // SAFETY: it is destroyed below, after the last use; `x` is used on this stream only.
    let mut graph = unsafe { ExecutableGraph::from_raw(device, instance.cast())? };
    graph.upload(&stream)?;
    for _ in 0..3 {
        graph.launch(&stream)?;
        elementwise::increment(&stream, Grid::cover(1000), &mut x)?;
    }
    expect("elements", stream.download(&x)?, vec![8; 1000])?;
    drop(graph);
    // SAFETY: all launches have run.
    unsafe {
        result::graph::exec_destroy(instance)?;
        result::graph::destroy(definition)?;
    }
    our_graph_in_their_hands(&stream)
}

fn our_graph_in_their_hands(stream: &Stream) -> Outcome {
    let y = stream.zeros::<u32>(100)?;
    let (graph, y) = stream.capture(|capture| {
        let mut y = capture.keep(y)?;
        capture.fill_into(3, &mut y)?;
        Ok(y.key())
    })?;
    let graph = graph.instantiate()?;
    let definition = graph.definition_as_raw().ok_or("no handle")?;
    let mut nodes = 0;
    // SAFETY: the graph is live, `nodes` is valid for the call, and the launch is on the stream that the buffer is on.
    unsafe {
        sys::cuGraphGetNodes(definition.cast(), null_mut(), &mut nodes).result()?;
        result::graph::launch(graph.as_raw().ok_or("no handle")?.cast(), raw(stream)?)?;
    }
    expect("nodes", nodes, 1)?;
    expect("elements", stream.download(graph.view(y)?)?, vec![3; 100])
}

fn pools_of_the_driver_are_asked(device: &Device) -> Outcome {
    let Some(_context) = context(device)? else { return none_here() };
    if !device.properties()?.memory_pools_supported {
        return expect("a pool", device.memory_pool().as_raw()?, None);
    }
    let stream = device.new_stream()?;
    // SAFETY: the device is one.
    let raw_pool = unsafe { result::device::get_default_mem_pool(device.as_raw().ok_or("no handle")?)? };
    // SAFETY: the default pool stays until the process ends.
    let pool = unsafe { MemoryPool::from_raw(device, raw_pool.cast())? };
    let before = pool.statistics()?.used;
    // SAFETY: the stream is live; the memory is freed at once.
    let used = unsafe {
        let memory = result::malloc_async(raw(&stream)?, 1 << 20)?;
        let used = pool.statistics()?.used;
        result::free_async(memory, raw(&stream)?)?;
        used
    };
    expect("a megabyte more", used - before, 1 << 20)?;
    stream.synchronize()?;
    pool.trim(0)?;
    expect("pools", device.memory_pool().as_raw()? == Some(raw_pool.cast()), false)
}

fn tensors_are_exported_and_imported_again(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut data = stream.upload(&[1_u32, 2, 3, 4, 5, 6])?;
    elementwise::increment(&stream, Grid::cover(6), &mut data)?;
    let raw = DlpackTensor::from_buffer(&stream, data)?.with_shape(&[2, 3])?.into_raw();
    // SAFETY: it was just given away, and nothing else uses it.
    let tensor = unsafe { DlpackTensor::from_raw(raw)? };
    expect("shape", tensor.shape(), &[2, 3][..])?;
    let other = device.new_stream()?;
    let mut data = tensor.into_buffer::<u32>(&other)?;
    elementwise::increment(&other, Grid::cover(6), &mut data)?;
    expect("elements", other.download(&data)?, vec![3, 4, 5, 6, 7, 8])
}
