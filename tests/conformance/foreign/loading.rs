//! Kernels of foreign PTX: loaded, launched, refused. The CPU device supports no foreign code, and reports that.

use ferrogrid::prelude::*;
use ferrogrid::{
    CacheConfig, ForeignError, ForeignKernel, InOut, JitOptions, LaunchError, Linker, Out, Slice, SliceMut,
};

use crate::language::kernels::elementwise;
use crate::table::not_for_this_device;
use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("a_foreign_kernel_has_the_same_questions", a_foreign_kernel_has_the_same_questions),
    ("foreign_ptx_runs_on_gpus", foreign_ptx_runs_on_gpus),
    ("a_rust_kernel_is_also_a_foreign_one", a_rust_kernel_is_also_a_foreign_one),
    ("foreign_arguments_are_checked", foreign_arguments_are_checked),
    ("foreign_shared_memory_is_opted_in_to", foreign_shared_memory_is_opted_in_to),
    ("foreign_launches_are_cooperative_if_asked", foreign_launches_are_cooperative_if_asked),
    ("foreign_launches_form_clusters", foreign_launches_form_clusters),
    ("foreign_launches_have_priorities", foreign_launches_have_priorities),
    ("foreign_kernels_are_nodes_of_graphs", foreign_kernels_are_nodes_of_graphs),
    ("foreign_variables_are_read_and_written", foreign_variables_are_read_and_written),
    ("ptx_that_does_not_load_is_explained", ptx_that_does_not_load_is_explained),
];

const SCALE: &str = include_str!("scale.ptx");

/// Whether `device` supports foreign code; if not, checks that it reports that.
pub(crate) fn takes_foreign_code(device: &Device) -> Result<bool, Box<dyn std::error::Error>> {
    if device.is_cuda() {
        return Ok(true);
    }
    let unsupported = |error: &Error| matches!(error, Error::Unsupported { .. });
    let text = expect_error("foreign code", device.load_ptx(SCALE), unsupported)?;
    names(&text, &["cuModuleLoadDataEx", &device.to_string()])?;
    expect_error("a link", Linker::new(device, &JitOptions::new()), unsupported)?;
    Ok(false)
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
    expect_error("no block", none, |error| {
        matches!(error, Error::Launch(LaunchError::NoBlockFits { kernel: "scale", .. }))
    })?;
    function.set_cache_config(CacheConfig::Shared)?;
    function.set_preferred_shared_memory_carveout(Some(50))?;
    expect("carve-out", function.attributes()?.preferred_shared_memory_carveout, Some(50))?;
    function.set_max_dynamic_shared_size_bytes(100_000)?;
    expect("dynamic", function.attributes()?.max_dynamic_shared_size_bytes >= 100_000, true)?;
    if device.compute_capability() < Some((9, 0)) {
        return Ok(());
    }
    let clustered = device.load_ptx(include_str!("clusters.ptx"))?.function("ranks")?;
    let most = clustered.max_potential_cluster_size(128)?;
    expect("clusters of 8", most >= 8, true)?;
    expect("clusters at a time", clustered.max_active_clusters(2, 128)? > 0, true)
}

type Scale = ForeignKernel<1, (SliceMut<f32>, u32)>;

fn foreign_ptx_runs_on_gpus(device: &Device) -> Outcome {
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
        matches!(error, Error::Launch(LaunchError::BlockTooLarge { kernel: "scale", .. }))
    })?;
    let missing = module.function("skale");
    let missing = expect_error("a wrong name", missing, |error| {
        matches!(error, Error::Foreign(ForeignError::NoFunction { .. }))
    })?;
    names(&missing, &["`skale`", "`scale`"])?;
    expect("elements", stream.download(&data)?, vec![1.0; 4])
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
        // SAFETY: these are its types; it stays within the length, and within the bytes that are passed.
        unsafe { function.launch(&stream, Grid::new(5, 64), (&mut results, 3_u64, bytes))? };
        expect("the last thread of each block", stream.download(&results)?, vec![63; 3])?;
        stream.copy(&stream.zeros::<u32>(3)?, &mut results)?;
    }
    let too_much = function.with_dynamic_shared_memory(most + 1);
    let refused = |error: &Error| matches!(error, Error::Foreign(ForeignError::SharedMemory { .. }));
    names(&expect_error("too much", too_much, refused)?, &["through_shared", &most.to_string()])
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
        |error| matches!(error, Error::Launch(LaunchError::TooManyResidentBlocks { limit, .. }) if *limit == u64::from(most)),
    )?;
    names(&text, &["`scale`", &(most + 1).to_string(), &most.to_string()])?;
    expect("elements", stream.download(&data)?, vec![3.0; 1000])
}

fn foreign_launches_form_clusters(device: &Device) -> Outcome {
    if !takes_foreign_code(device)? {
        return not_for_this_device("it takes no code for GPUs");
    }
    let no_clusters = |error: &Error| matches!(error, Error::Launch(LaunchError::NoClusters { .. }));
    if device.compute_capability() < Some((9, 0)) {
        let refused = device.load_ptx(SCALE)?.function("scale")?.with_clusters([2]).map(drop);
        expect_error("clusters", refused, no_clusters)?;
        return not_for_this_device("it has no clusters");
    }
    let stream = device.new_stream()?;
    let function = device.load_ptx(include_str!("clusters.ptx"))?.function("ranks")?;
    let mut ranks = stream.zeros::<u32>(16)?;
    for size in [1_u32, 2, 8, 16] {
        let clustered = function.with_clusters([size])?;
        // SAFETY: these are its types, and it keeps to the length.
        let launched = unsafe { clustered.launch(&stream, Grid::new(16, 32), (&mut ranks, 16_u64)) };
        if size == 16 && launched.is_err() {
            // Not every device has room for as many.
            expect_error("16 blocks", launched, |error| {
                matches!(error, Error::Launch(LaunchError::ClusterTooLarge { .. }))
            })?;
            continue;
        }
        launched?;
        let expected: Vec<u32> = (0..16).map(|block| block % size + (size << 8)).collect();
        expect(&format!("clusters of {size}"), stream.download(&ranks)?, expected)?;
    }
    let pairs = function.with_clusters([2, 1, 1])?;
    // SAFETY: refused.
    let odd = unsafe { pairs.launch(&stream, Grid::new(15, 32), (&mut ranks, 16_u64)) };
    let partial = |error: &Error| {
        matches!(error, Error::Launch(LaunchError::PartialCluster { blocks: 15, cluster: 2, .. }))
    };
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
