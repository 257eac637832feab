//! What devices and kernels say of themselves, and code that this program did not compile: loaded, linked,
//! launched, refused. The CPU device answers questions, and takes no foreign code.

use ferrogrid::dlpack::DlpackTensor;
use ferrogrid::prelude::*;
use ferrogrid::{
    CacheConfig, CodeType, CompileOptions, DeviceAttribute, ForeignError, ForeignKernel, ForeignModule,
    InOut, JitOptions, Kernel, Linker, Nvrtc, Nvvm, Out, Slice, SliceMut,
};

use super::block_kernels::shared;
use super::kernels::{bounds, elementwise};
use super::table::not_for_this_device;
use super::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("a_device_says_what_it_is", a_device_says_what_it_is),
    ("a_kernel_says_what_it_needs", a_kernel_says_what_it_needs),
    ("occupancy_by_the_rules_is_that_of_the_driver", occupancy_by_the_rules_is_that_of_the_driver),
    ("a_suggested_block_fills_the_device_and_runs", a_suggested_block_fills_the_device_and_runs),
    ("a_kernel_answers_as_its_device_does", a_kernel_answers_as_its_device_does),
    ("a_foreign_kernel_has_the_same_questions", a_foreign_kernel_has_the_same_questions),
    ("foreign_ptx_runs_where_there_is_a_gpu", foreign_ptx_runs_where_there_is_a_gpu),
    ("a_rust_kernel_is_also_a_foreign_one", a_rust_kernel_is_also_a_foreign_one),
    ("foreign_arguments_are_checked", foreign_arguments_are_checked),
    ("foreign_shared_memory_is_opted_in_to", foreign_shared_memory_is_opted_in_to),
    ("foreign_launches_are_cooperative_if_asked", foreign_launches_are_cooperative_if_asked),
    ("foreign_launches_form_clusters", foreign_launches_form_clusters),
    ("foreign_launches_have_priorities", foreign_launches_have_priorities),
    ("foreign_kernels_are_nodes_of_graphs", foreign_kernels_are_nodes_of_graphs),
    ("foreign_variables_are_read_and_written", foreign_variables_are_read_and_written),
    ("ptx_that_does_not_load_is_explained", ptx_that_does_not_load_is_explained),
    ("linked_programs_run", linked_programs_run),
    ("cuda_cpp_compiles_and_runs", cuda_cpp_compiles_and_runs),
    ("cuda_cpp_templates_are_found_by_their_expressions", cuda_cpp_templates_are_found_by_their_expressions),
    ("files_of_nvcc_load_directly", files_of_nvcc_load_directly),
    ("nvvm_ir_compiles_and_runs", nvvm_ir_compiles_and_runs),
    #[cfg(feature = "nvml")]
    ("a_gpu_says_what_it_is_doing", a_gpu_says_what_it_is_doing),
    ("tensors_go_out_and_come_back", tensors_go_out_and_come_back),
];

const SCALE: &str = include_str!("foreign/scale.ptx");

/// Whether `device` takes foreign code; if not, that it says so.
fn takes_foreign_code(device: &Device) -> Result<bool, Box<dyn std::error::Error>> {
    if device.is_cuda() {
        return Ok(true);
    }
    let unsupported = |error: &Error| matches!(error, Error::Unsupported { .. });
    let text = expect_error("foreign code", device.load_ptx(SCALE), unsupported)?;
    names(&text, &["cuModuleLoadDataEx", &device.to_string()])?;
    expect_error("a link", Linker::new(device, &JitOptions::new()), unsupported)?;
    Ok(false)
}

fn a_device_says_what_it_is(device: &Device) -> Outcome {
    let properties = device.properties()?;
    expect("name", &*properties.name, device.name())?;
    expect("capability", properties.compute_capability, device.compute_capability())?;
    expect("threads", properties.max_threads_per_block, device.limits().max_threads_per_block)?;
    for (name, value) in [
        ("WARP_SIZE", properties.warp_size),
        ("CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT", properties.multiprocessor_count),
        ("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", properties.shared_memory_per_block_optin),
        ("MAX_BLOCK_DIM_Z", properties.max_block[2]),
    ] {
        expect(name, device.attribute(name.parse()?)?, value as i32)?;
    }
    if let Some(memory) = device.memory_info()? {
        let total = properties.total_memory.ok_or("no total memory")?;
        expect("all memory is at least what is free", total >= memory.free, true)?;
    }
    expect("a place on the bus", properties.pci.is_some(), device.is_cuda())?;
    expect("an identity", properties.uuid.is_some(), device.is_cuda())?;
    expect("driver", Device::driver_version().is_ok(), Device::cuda(0).is_ok())?;
    let future = device.attribute(DeviceAttribute::from_number(9999));
    expect_error("an attribute that is not there", future, |error| {
        matches!(error, Error::Driver { .. } | Error::Unsupported { .. })
    })?;
    Ok(())
}

fn a_kernel_says_what_it_needs(device: &Device) -> Outcome {
    let attributes = device.attributes(elementwise::saxpy::kernel())?;
    expect("registers", attributes.num_regs > 0, device.is_cuda())?;
    expect("architecture", attributes.binary_version, device.compute_capability())?;
    let code = elementwise::saxpy::kernel().code_type(device)?;
    expect("code", matches!(code, Some(CodeType::Ptx | CodeType::Cubin)), device.is_cuda())?;
    expect("static shared memory", attributes.shared_size_bytes, 0)?;
    let stencil = shared::stencil::kernel();
    let fixed = device.attributes(stencil)?.shared_size_bytes as usize;
    expect("shared memory of at least 130 f32", (fixed >= 520, fixed), (true, stencil.shared_size_bytes()))?;
    let limited = device.attributes(bounds::limited::kernel())?;
    expect("threads of a limited kernel", limited.max_threads_per_block, 96)
}

/// Kernels with different needs, and the block sizes to ask about.
fn subjects() -> ([&'static Kernel; 3], [u32; 8]) {
    let kernels = [elementwise::saxpy::kernel(), bounds::limited::kernel(), shared::tree_sum::kernel()];
    (kernels, [1, 32, 96, 100, 256, 512, 768, 1024])
}

fn occupancy_by_the_rules_is_that_of_the_driver(device: &Device) -> Outcome {
    let optin = device.properties()?.shared_memory_per_block_optin as usize;
    let (kernels, blocks) = subjects();
    for kernel in kernels {
        let most = device.attributes(kernel)?.max_threads_per_block;
        for threads in blocks {
            // The driver's figure does not know what a kernel cannot be launched with.
            if threads > most {
                expect("blocks that are too large", device.occupancy(kernel, threads, 0)?.active_blocks, 0)?;
                continue;
            }
            for bytes in [0, 1, 1000, 20_000, 48 << 10, 100_000, optin, optin + 1] {
                let rules = device.occupancy(kernel, threads, bytes)?;
                let driver = device.max_active_blocks_per_multiprocessor(kernel, threads, bytes)?;
                let what = format!("{} with {threads} threads and {bytes} bytes: {rules}", kernel.name());
                expect(&what, rules.active_blocks, driver)?;
            }
        }
    }
    Ok(())
}

fn a_suggested_block_fills_the_device_and_runs(device: &Device) -> Outcome {
    let kernel = elementwise::increment::kernel();
    let best = device.max_potential_block_size(kernel, |_| 0, None)?;
    let blocks = device.max_active_blocks_per_multiprocessor(kernel, best.block_size, 0)?;
    expect("blocks", best.min_grid_size, blocks * device.properties()?.multiprocessor_count)?;
    let available = device.available_dynamic_shared_memory_per_block(kernel, blocks, best.block_size)?;
    let with_it = device.max_active_blocks_per_multiprocessor(kernel, best.block_size, available)?;
    expect("blocks with the shared memory that is left", with_it, blocks)?;
    let small = device.max_potential_block_size(kernel, |_| 0, Some(100))?;
    expect("a limit is kept", small.block_size <= 100, true)?;
    let per_thread = |threads: u32| 100 * threads as usize;
    let growing = kernel.max_potential_block_size(device, per_thread, None)?;
    let shared = per_thread(growing.block_size);
    let fits = kernel.max_active_blocks_per_multiprocessor(device, growing.block_size, shared)?;
    expect(
        "blocks whose memory grows",
        growing.min_grid_size,
        fits * device.properties()?.multiprocessor_count,
    )?;
    let none = device.max_potential_block_size(kernel, |_| 1 << 30, None);
    expect_error("no block", none, |error| matches!(error, Error::NoBlockFits { .. }))?;
    let stream = device.new_stream()?;
    let mut data = stream.upload(&[1_u32; 10_000])?;
    elementwise::increment(&stream, Grid::cover(10_000).with_block(best.block_size), &mut data)?;
    expect("elements", stream.download(&data)?, vec![2; 10_000])
}

fn a_kernel_answers_as_its_device_does(device: &Device) -> Outcome {
    let (kernels, blocks) = subjects();
    for kernel in kernels {
        let name = kernel.name();
        expect(name, kernel.attributes(device)?, device.attributes(kernel)?)?;
        for threads in blocks {
            let of_device = device.max_active_blocks_per_multiprocessor(kernel, threads, 1000)?;
            expect(name, kernel.max_active_blocks_per_multiprocessor(device, threads, 1000)?, of_device)?;
            expect(name, kernel.occupancy(device, threads, 0)?, device.occupancy(kernel, threads, 0)?)?;
        }
        let available = kernel.available_dynamic_shared_memory_per_block(device, 1, 64)?;
        expect(name, available, device.available_dynamic_shared_memory_per_block(kernel, 1, 64)?)?;
    }
    let kernel = elementwise::increment::kernel();
    kernel.set_cache_config(device, CacheConfig::L1)?;
    kernel.set_preferred_shared_memory_carveout(device, Some(0))?;
    let most = device.properties()?.shared_memory_per_block_optin;
    kernel.set_max_dynamic_shared_size_bytes(device, most)?;
    expect("dynamic", kernel.attributes(device)?.max_dynamic_shared_size_bytes, most)?;
    let carveout = kernel.attributes(device)?.preferred_shared_memory_carveout;
    expect("carve-out", carveout, device.is_cuda().then_some(0))?;
    kernel.set_preferred_shared_memory_carveout(device, None)?;
    expect("carve-out", kernel.attributes(device)?.preferred_shared_memory_carveout, None)
}

fn a_foreign_kernel_has_the_same_questions(device: &Device) -> Outcome {
    if !takes_foreign_code(device)? {
        return not_for_this_device("it takes no code for GPUs");
    }
    let function = device.load_ptx(SCALE)?.function("scale")?;
    let best = function.max_potential_block_size(|_| 0, None)?;
    let blocks = function.max_active_blocks_per_multiprocessor(best.block_size)?;
    expect("blocks", best.min_grid_size, blocks * device.properties()?.multiprocessor_count)?;
    let available = function.available_dynamic_shared_memory_per_block(blocks, best.block_size)?;
    let with_it = function.with_dynamic_shared_memory(u32::try_from(available)?)?;
    expect(
        "blocks with the shared memory that is left",
        with_it.max_active_blocks_per_multiprocessor(best.block_size)?,
        blocks,
    )?;
    let none = function.max_potential_block_size(|_| 1 << 30, None);
    expect_error("no block", none, |error| matches!(error, Error::NoBlockFits { kernel: "scale", .. }))?;
    function.set_cache_config(CacheConfig::Shared)?;
    function.set_preferred_shared_memory_carveout(Some(50))?;
    expect("carve-out", function.attributes()?.preferred_shared_memory_carveout, Some(50))?;
    function.set_max_dynamic_shared_size_bytes(100_000)?;
    expect("dynamic", function.attributes()?.max_dynamic_shared_size_bytes >= 100_000, true)?;
    if device.compute_capability() < Some((9, 0)) {
        return Ok(());
    }
    let clustered = device.load_ptx(include_str!("foreign/clusters.ptx"))?.function("ranks")?;
    let most = clustered.max_potential_cluster_size(128)?;
    expect("clusters of 8", most >= 8, true)?;
    expect("clusters at a time", clustered.max_active_clusters(2, 128)? > 0, true)
}

type Scale = ForeignKernel<1, (SliceMut<f32>, u32)>;

fn foreign_ptx_runs_where_there_is_a_gpu(device: &Device) -> Outcome {
    if !takes_foreign_code(device)? {
        return not_for_this_device("it takes no code for GPUs");
    }
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let module = device.load_image(SCALE.as_bytes(), &JitOptions::new().with_verbose(true))?;
    expect("kernels", module.kernel_names(), Some(vec!["scale", "through_shared"]))?;
    let function = module.function("scale")?;
    let sizes = function.parameters().unwrap_or_default().iter().map(|parameter| parameter.size);
    expect("parameters", sizes.collect::<Vec<_>>(), vec![8, 8, 4])?;
    expect("registers", function.attributes()?.num_regs > 0, true)?;
    expect(
        "occupancy",
        function.occupancy(256)?.active_blocks,
        function.max_active_blocks_per_multiprocessor(256)?,
    )?;
    let mut data = stream.upload(&[1.0_f32; 1000])?;
    // SAFETY: these are its types, and it keeps to its first 900 elements.
    unsafe { function.launch(&stream, Grid::cover(1000), (&mut data, 900_u64, 1_u32))? };
    // SAFETY: these are its types; it keeps to the length, and to 4 factors.
    let scale: Scale = unsafe { function.typed()? };
    scale.launch(&other, Grid::cover(1000), (data.slice_mut(..500)?, 2))?;
    scale.launch(&stream, Grid::cover(1000), (&mut data, 3))?;
    let mut host = [1.0_f32, 2.0, 3.0];
    scale.launch(&stream, Grid::cover(3), (InOut(&mut host), 2))?;
    expect("a slice of the host", host, [3.0, 6.0, 9.0])?;
    // SAFETY: these are its types, and there are as many elements.
    unsafe { function.launch(&stream, Grid::cover(2), (InOut(&mut host[1..]), 2_u64, 1_u32))? };
    expect("two elements of it", host, [3.0, 12.0, 18.0])?;
    // SAFETY: as above.
    unsafe { function.launch(&stream, Grid::cover(3), (Out(&mut host), 3_u64, 1_u32))? };
    expect("what was not there", host, [0.0; 3])?;
    let expected: Vec<f32> = (0..1000)
        .map(|i| {
            4.0 * if i < 500 {
                6.0
            } else if i < 900 {
                2.0
            } else {
                1.0
            }
        })
        .collect();
    expect("elements", stream.download(&data)?, expected)
}

fn a_rust_kernel_is_also_a_foreign_one(device: &Device) -> Outcome {
    if !takes_foreign_code(device)? {
        return not_for_this_device("it takes no code for GPUs");
    }
    let kernel = elementwise::wide_saxpy::kernel();
    let module = device.load_ptx(kernel.ptx().ok_or("no PTX")?)?;
    let function = module.function(kernel.entry())?;
    // SAFETY: the signature of `elementwise::wide_saxpy`, whose body checks its indices.
    let saxpy: ForeignKernel<1, (f32, Slice<f32>, SliceMut<f32>)> = unsafe { function.typed()? };
    let stream = device.new_stream()?;
    let x = stream.upload(&[1.0_f32, 2.0, 3.0])?;
    let mut y = stream.upload(&[10.0_f32; 3])?;
    saxpy.launch(&stream, Grid::cover(3), (2.0, &x, &mut y))?;
    elementwise::saxpy(&stream, Grid::cover(3), 2.0, &x, &mut y)?;
    expect("elements", stream.download(&y)?, vec![14.0, 18.0, 22.0])?;
    saxpy.launch(&stream, Grid::cover(3), (2.0, x.slice(..1)?, &mut y))?;
    let panicked =
        expect_error("a short slice", stream.synchronize(), |it| matches!(it, Error::KernelPanic { .. }))?;
    names(&panicked, &["the len is 1 but the index is"])
}

fn foreign_arguments_are_checked(device: &Device) -> Outcome {
    if !takes_foreign_code(device)? {
        return not_for_this_device("it takes no code for GPUs");
    }
    let stream = device.new_stream()?;
    let module = device.load_ptx(SCALE)?;
    let function = module.function("scale")?;
    let mut data = stream.upload(&[1.0_f32; 4])?;
    // SAFETY: refused.
    let few = unsafe { function.launch(&stream, Grid::cover(4), (&mut data, 4_u64)) };
    let count = ForeignError::ParameterCount { kernel: "scale", expected: 3, found: 2 };
    expect("too few arguments", few, Err(Error::Foreign(count)))?;
    // SAFETY: refused.
    let large = unsafe { function.launch(&stream, Grid::cover(4), (&mut data, 4_u64, 1_u64)) };
    let size = |error: &Error| matches!(error, Error::Foreign(ForeignError::ParameterSize { number: 3, .. }));
    names(&expect_error("a large argument", large, size)?, &["scale_param_which", "4 bytes", "has 8"])?;
    // SAFETY: refused.
    let wide = unsafe { function.launch(&stream, Grid::new(1, 1025), (&mut data, 4_u64, 1_u32)) };
    expect_error("a wide block", wide, |error| {
        matches!(error, Error::BlockTooLarge { kernel: "scale", .. })
    })?;
    let missing = module.function("skale");
    let missing = expect_error("a wrong name", missing, |error| {
        matches!(error, Error::Foreign(ForeignError::NoFunction { .. }))
    })?;
    names(&missing, &["`skale`", "`scale`"])?;
    expect("elements", stream.download(&data)?, vec![1.0; 4])
}

fn foreign_launches_are_cooperative_if_asked(device: &Device) -> Outcome {
    if !takes_foreign_code(device)? {
        return not_for_this_device("it takes no code for GPUs");
    }
    let stream = device.new_stream()?;
    let function = device.load_ptx(SCALE)?.function("scale")?.with_cooperative_launch()?;
    // SAFETY: these are its types; it keeps to the length, and to 4 factors.
    let scale: Scale = unsafe { function.typed()? };
    let mut data = stream.upload(&[1.0_f32; 1000])?;
    scale.launch(&stream, Grid::new(4, 256), (&mut data, 2))?;
    expect("elements", stream.download(&data)?, vec![3.0; 1000])?;
    let most =
        function.max_active_blocks_per_multiprocessor(256)? * device.properties()?.multiprocessor_count;
    scale.launch(&stream, Grid::new(most, 256), (&mut data, 0))?;
    let large = scale.launch(&stream, Grid::new(most + 1, 256), (&mut data, 0));
    let text = expect_error(
        "a grid that is too large",
        large,
        |error| matches!(error, Error::TooManyResidentBlocks { limit, .. } if *limit == u64::from(most)),
    )?;
    names(&text, &["`scale`", &(most + 1).to_string(), &most.to_string()])?;
    expect("elements", stream.download(&data)?, vec![3.0; 1000])
}

fn foreign_launches_form_clusters(device: &Device) -> Outcome {
    if !takes_foreign_code(device)? {
        return not_for_this_device("it takes no code for GPUs");
    }
    let no_clusters = |error: &Error| matches!(error, Error::NoClusters { .. });
    if device.compute_capability() < Some((9, 0)) {
        let refused = device.load_ptx(SCALE)?.function("scale")?.with_clusters([2]).map(drop);
        expect_error("clusters", refused, no_clusters)?;
        return not_for_this_device("it has no clusters");
    }
    let stream = device.new_stream()?;
    let function = device.load_ptx(include_str!("foreign/clusters.ptx"))?.function("ranks")?;
    let mut ranks = stream.zeros::<u32>(16)?;
    for size in [1_u32, 2, 8, 16] {
        let clustered = function.with_clusters([size])?;
        // SAFETY: these are its types, and it keeps to the length.
        let launched = unsafe { clustered.launch(&stream, Grid::new(16, 32), (&mut ranks, 16_u64)) };
        if size == 16 && launched.is_err() {
            // Not every device has room for as many.
            expect_error("16 blocks", launched, |error| matches!(error, Error::ClusterTooLarge { .. }))?;
            continue;
        }
        launched?;
        let expected: Vec<u32> = (0..16).map(|block| block % size + (size << 8)).collect();
        expect(&format!("clusters of {size}"), stream.download(&ranks)?, expected)?;
    }
    let pairs = function.with_clusters([2, 1, 1])?;
    // SAFETY: refused.
    let odd = unsafe { pairs.launch(&stream, Grid::new(15, 32), (&mut ranks, 16_u64)) };
    let partial = |error: &Error| matches!(error, Error::PartialCluster { blocks: 15, cluster: 2, .. });
    names(&expect_error("an odd grid", odd, partial)?, &["`ranks`", "15 blocks along x"])?;
    let empty = Error::Foreign(ForeignError::ClusterSize { kernel: "ranks", cluster: [0, 1, 1] });
    expect("no blocks", function.with_clusters([0]).map(drop), Err(empty))?;
    let huge = function.with_clusters([4096])?;
    // SAFETY: refused.
    let huge = unsafe { huge.launch(&stream, Grid::new(4096, 32), (&mut ranks, 16_u64)) };
    expect("a huge cluster is refused", huge.is_err(), true)?;
    stream.synchronize()?;
    Ok(())
}

fn foreign_launches_have_priorities(device: &Device) -> Outcome {
    if !takes_foreign_code(device)? {
        return not_for_this_device("it takes no code for GPUs");
    }
    let stream = device.new_stream()?;
    let function = device.load_ptx(SCALE)?.function("scale")?;
    let (least, greatest) = device.stream_priority_range()?;
    let mut data = stream.upload(&[1.0_f32; 100])?;
    for priority in [least, greatest] {
        let function = function.with_priority(priority)?;
        // SAFETY: these are its types, and there are as many elements.
        unsafe { function.launch(&stream, Grid::cover(100), (&mut data, 100_u64, 1_u32))? };
    }
    expect("elements", stream.download(&data)?, vec![4.0; 100])?;
    let beyond = function.with_priority(greatest - 1).map(drop);
    let text = expect_error("a priority", beyond, |error| matches!(error, Error::PriorityOutOfRange { .. }))?;
    names(&text, &[&(greatest - 1).to_string()])
}

fn foreign_kernels_are_nodes_of_graphs(device: &Device) -> Outcome {
    if !takes_foreign_code(device)? {
        return not_for_this_device("it takes no code for GPUs");
    }
    let stream = device.new_stream()?;
    let (_, greatest) = device.stream_priority_range()?;
    let function = device.load_ptx(SCALE)?.function("scale")?.with_priority(greatest)?;
    // SAFETY: its types; it keeps to the length, and to 4 factors.
    let scale: Scale = unsafe { function.typed()? };
    let mut data = stream.upload(&[1.0_f32; 300])?;
    let (graph, (node, key)) = stream.capture(|capture| {
        let mut data = capture.write(&mut data)?;
        let node = capture.node(&[], |stream| scale.launch(stream, Grid::cover(300), (&mut data, 1)))?;
        Ok((node, data.key()))
    })?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    expect("twice", stream.download(graph.view(key)?)?, vec![2.0; 300])?;
    graph.update_kernel(node, |update| {
        scale.launch(update, Grid::cover(300), (&mut update.buffer(key)?, 2))
    })?;
    graph.launch(&stream)?;
    expect("three times more", stream.download(graph.view(key)?)?, vec![6.0; 300])
}

fn foreign_shared_memory_is_opted_in_to(device: &Device) -> Outcome {
    if !takes_foreign_code(device)? {
        return not_for_this_device("it takes no code for GPUs");
    }
    let stream = device.new_stream()?;
    let function = device.load_ptx(SCALE)?.function("through_shared")?;
    let most = device.properties()?.shared_memory_per_block_optin;
    let mut results = stream.zeros::<u32>(3)?;
    for bytes in [4, 48 << 10, most] {
        let function = function.with_dynamic_shared_memory(bytes)?;
        // SAFETY: these are its types; it keeps to the length, and to the bytes that it is told of.
        unsafe { function.launch(&stream, Grid::new(5, 64), (&mut results, 3_u64, bytes))? };
        expect("the last thread of each block", stream.download(&results)?, vec![63; 3])?;
        stream.copy(&stream.zeros::<u32>(3)?, &mut results)?;
    }
    let too_much = function.with_dynamic_shared_memory(most + 1);
    let refused = |error: &Error| matches!(error, Error::Foreign(ForeignError::SharedMemory { .. }));
    names(&expect_error("too much", too_much, refused)?, &["through_shared", &most.to_string()])
}

fn foreign_variables_are_read_and_written(device: &Device) -> Outcome {
    if !takes_foreign_code(device)? {
        return not_for_this_device("it takes no code for GPUs");
    }
    let stream = device.new_stream()?;
    let module = device.load_ptx(SCALE)?;
    let factors = module.global::<f32>("factors")?;
    expect("constants", factors.get(&stream)?, vec![1.0, 2.0, 3.0, 4.0])?;
    factors.set(&stream, &[10.0, 20.0, 30.0, 40.0])?;
    // SAFETY: its types; it keeps to the length, and to 4 factors.
    let scale: Scale = unsafe { module.function("scale")?.typed()? };
    let mut data = stream.upload(&[1.0_f32; 300])?;
    scale.launch(&stream, Grid::cover(300), (&mut data, 2))?;
    expect("elements", stream.download(&data)?, vec![30.0; 300])?;
    expect("threads counted", module.global::<u64>("launches")?.get(&stream)?, vec![300])?;
    let none = expect_error("no variable", module.global::<u8>("factor"), |error| {
        matches!(error, Error::Foreign(ForeignError::NoGlobal { .. }))
    })?;
    names(&none, &["`factor`"])
}

fn ptx_that_does_not_load_is_explained(device: &Device) -> Outcome {
    if !takes_foreign_code(device)? {
        return not_for_this_device("it takes no code for GPUs");
    }
    let load_error = |error: &Error| matches!(error, Error::Foreign(ForeignError::Load { kind: "PTX", .. }));
    let corrupt = SCALE.replace("mad.lo.s32", "mad.nonsense.s32");
    names(
        &expect_error("corrupt PTX", device.load_ptx(&corrupt), load_error)?,
        &["INVALID_PTX", "nonsense"],
    )?;
    let newer = SCALE.replace(".version 6.3", ".version 99.0");
    names(&expect_error("PTX of the future", device.load_ptx(&newer), load_error)?, &["99.0"])?;
    let cut = &b"\x7fELF\x02\x01\x01"[..];
    expect_error("half a cubin", device.load_cubin(cut), |error| {
        matches!(error, Error::Foreign(ForeignError::InvalidImage { .. }))
    })?;
    expect("a good module still loads", device.load_ptx(SCALE).is_ok(), true)
}

fn linked_programs_run(device: &Device) -> Outcome {
    if !takes_foreign_code(device)? {
        return not_for_this_device("it takes no code for GPUs");
    }
    let mut linker = Linker::new(device, &JitOptions::new())?;
    linker.add_ptx("caller.ptx", include_str!("foreign/caller.ptx"))?;
    // Some drivers find out only when the code is loaded.
    let half = linker.complete().and_then(|linked| device.load_cubin(&linked.cubin)?.function("add_offset"));
    expect_error("half a program", half, |error| matches!(error, Error::Foreign(_)))?;
    let mut linker = Linker::new(device, &JitOptions::new())?;
    linker.add_ptx("caller.ptx", include_str!("foreign/caller.ptx"))?;
    linker.add_ptx("offset.ptx", include_str!("foreign/offset.ptx"))?;
    let cubin = linker.complete()?.cubin;
    // SAFETY: its types; it keeps to the length.
    let function = device.load_cubin(&cubin)?.function("add_offset")?;
    let stream = device.new_stream()?;
    let mut data = stream.upload(&[5_u32; 4])?;
    if function.parameters().is_none() {
        return not_for_this_device("a driver before CUDA 12.4 does not tell what machine code takes");
    }
    // SAFETY: as above.
    let add: ForeignKernel<1, (SliceMut<u32>,)> = unsafe { function.typed()? };
    add.launch(&stream, Grid::cover(4), (&mut data,))?;
    expect("elements", stream.download(&data)?, vec![6, 106, 206, 306])?;
    let half = device.load_cubin(&cubin[..cubin.len() / 2]);
    expect_error("half a cubin", half, |error| {
        matches!(error, Error::Foreign(ForeignError::InvalidImage { kind: "cubin", .. }))
    })?;
    Ok(())
}

/// NVRTC, if it is installed.
fn nvrtc() -> ferrogrid::Result<Option<Nvrtc>> {
    match Nvrtc::load() {
        Err(Error::Foreign(ForeignError::LibraryMissing { .. })) => Ok(None),
        nvrtc => nvrtc.map(Some),
    }
}

fn cuda_cpp_compiles_and_runs(device: &Device) -> Outcome {
    if !takes_foreign_code(device)? {
        return not_for_this_device("it takes no code for GPUs");
    }
    let Some(nvrtc) = nvrtc()? else { return not_for_this_device("NVRTC is not installed") };
    let source = "extern \"C\" __global__ void square(int n, float* x) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) x[i] *= x[i];
    }";
    let program = nvrtc.compile(source, &CompileOptions::for_device(device))?;
    let square = device.load_ptx(&program.ptx)?.function("square")?;
    let stream = device.new_stream()?;
    let mut data = stream.upload(&[1.0_f32, 2.0, 3.0])?;
    // SAFETY: its types; there are 3 elements.
    unsafe { square.launch(&stream, Grid::cover(3), (3_i32, &mut data))? };
    expect("squares", stream.download(&data)?, vec![1.0, 4.0, 9.0])
}

/// A program is loaded as PTX, as machine code, and as LTO IR where nvJitLink is.
fn cuda_cpp_templates_are_found_by_their_expressions(device: &Device) -> Outcome {
    if !takes_foreign_code(device)? {
        return not_for_this_device("it takes no code for GPUs");
    }
    let Some(nvrtc) = nvrtc()? else { return not_for_this_device("NVRTC is not installed") };
    let source = "__constant__ int offset = 3;
    template <class T, int N> __global__ void add(size_t n, T* x) {
        size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
        if (i < n) x[i] += T(N + offset);
    }";
    let architecture = device.arch().ok_or("no architecture")?;
    let options = CompileOptions::for_device(device).with_name("add.cu");
    let options = options.with_name_expression("add<float, 7>").with_name_expression("&offset");
    for (options, kind) in [
        (options.clone(), CodeType::Ptx),
        (options.clone().with_architecture(architecture), CodeType::Cubin),
        (options.with_option("-dlto").with_option("-rdc=true"), CodeType::LtoIr),
    ] {
        let module = match device.load_program(&nvrtc.compile(source, &options)?) {
            Err(Error::Foreign(ForeignError::LibraryMissing { library: "nvJitLink", .. })) => continue,
            module => module?,
        };
        expect("the kind of code", (module.name(), module.code_type()), ("add.cu", Some(kind)))?;
        let add = module.function("add<float, 7>")?;
        if add.parameters().is_none() {
            continue; // a driver before CUDA 12.4 does not tell what machine code takes
        }
        let stream = device.new_stream()?;
        module.global::<i32>("&offset")?.set(&stream, &[10])?;
        let mut data = stream.upload(&[1.0_f32, 2.0, 3.0])?;
        // SAFETY: its types; there are 3 elements.
        unsafe { add.launch(&stream, Grid::cover(3), (3_u64, &mut data))? };
        expect("elements", stream.download(&data)?, vec![18.0, 19.0, 20.0])?;
        let missing = module.function("add<double, 7>");
        let text = expect_error("another instance", missing, |error| matches!(error, Error::Foreign(_)))?;
        names(&text, &["the module `add.cu`", "`add<float, 7>`"])?;
    }
    Ok(())
}

/// In the folder that FERROGRID_TEST_NVCC_FILES names, made of the two files of `foreign/pair` for this GPU:
/// `nvcc -fatbin -arch=sm_90 -o helper.fatbin helper.cu`, `nvcc -lib -rdc=true -arch=sm_90 -o libpair.a kernel.cu helper.cu`,
/// `nvcc -dlto -ltoir -rdc=true -arch=sm_90 -o helper.ltoir helper.cu`.
fn files_of_nvcc_load_directly(device: &Device) -> Outcome {
    let Some(folder) = std::env::var_os("FERROGRID_TEST_NVCC_FILES").map(std::path::PathBuf::from) else {
        return not_for_this_device("FERROGRID_TEST_NVCC_FILES names no files of nvcc");
    };
    if !takes_foreign_code(device)? {
        return not_for_this_device("it takes no code for GPUs");
    }
    let stream = device.new_stream()?;
    let run = |module: &ForeignModule, name: &str| -> Outcome {
        let mut data = stream.upload(&[1_u32, 2, 3])?;
        // SAFETY: its types; there are 3 elements.
        unsafe { module.function(name)?.launch(&stream, Grid::cover(3), (&mut data, 3_u64))? };
        expect(name, stream.download(&data)?, vec![4, 7, 10])
    };
    let fatbin = device.load_fatbin(&std::fs::read(folder.join("helper.fatbin"))?)?;
    expect("a fatbin", fatbin.code_type(), Some(CodeType::Fatbin))?;
    run(&fatbin, "alone")?;
    let library = device.load_file(folder.join("libpair.a"))?;
    expect("a library", (library.name(), library.code_type()), ("libpair.a", Some(CodeType::Library)))?;
    run(&library, "apply")?;
    run(&library, "alone")?;
    match device.load_lto_ir(&std::fs::read(folder.join("helper.ltoir"))?) {
        Err(Error::Foreign(ForeignError::LibraryMissing { .. })) => Ok(()),
        module => run(&module?, "alone"),
    }
}

fn nvvm_ir_compiles_and_runs(device: &Device) -> Outcome {
    if !takes_foreign_code(device)? {
        return not_for_this_device("it takes no code for GPUs");
    }
    let nvvm = match Nvvm::load() {
        Err(Error::Foreign(ForeignError::LibraryMissing { .. })) => {
            return not_for_this_device("libNVVM is not installed");
        }
        nvvm => nvvm?,
    };
    let (major, minor) = device.compute_capability().ok_or("no capability")?;
    let options = format!("-arch=compute_{major}{minor}");
    let program = nvvm.compile(&[("twice.ll", include_bytes!("foreign/twice.ll"))], &[&options])?;
    let twice = device.load_program(&program)?.function("twice")?;
    let stream = device.new_stream()?;
    let mut data = stream.upload(&[21.0_f32, 1.0])?;
    // SAFETY: its type; it keeps to the first element.
    unsafe { twice.launch(&stream, Grid::new(1, 1), (&mut data,))? };
    expect("elements", stream.download(&data)?, vec![42.0, 1.0])
}

fn tensors_go_out_and_come_back(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut data = stream.upload(&[1_u32, 2, 3, 4, 5, 6])?;
    elementwise::increment(&stream, Grid::cover(6), &mut data)?;
    let raw = DlpackTensor::from_buffer(&stream, data)?.with_shape(&[2, 3])?.into_raw();
    // SAFETY: it was just given away, and nobody else uses it.
    let tensor = unsafe { DlpackTensor::from_raw(raw)? };
    expect("shape", tensor.shape(), &[2, 3][..])?;
    let other = device.new_stream()?;
    let mut data = tensor.into_buffer::<u32>(&other)?;
    elementwise::increment(&other, Grid::cover(6), &mut data)?;
    expect("elements", other.download(&data)?, vec![3, 4, 5, 6, 7, 8])
}

#[cfg(feature = "nvml")]
fn a_gpu_says_what_it_is_doing(device: &Device) -> Outcome {
    match device.nvml_figures() {
        Err(Error::Unsupported { .. }) => expect("a GPU", device.is_cuda(), false),
        Err(Error::Nvml { .. }) => expect("no NVML where there is a GPU", device.is_cuda(), true),
        figures => {
            let degrees = figures?.temperature.ok_or("no temperature")?;
            expect("a temperature that a chip survives", (1..120).contains(&degrees), true)
        }
    }
}
