//! Launch configurations: which elements a grid covers, and which launches are refused before anything runs.

use ferrogrid::prelude::*;
use ferrogrid::{
    AccessPolicyWindow, AccessProperty, DeviceAttribute, EventOptions, LaunchError, MemorySyncDomain,
};

use crate::language::kernels::{bounds, elementwise, ranks};
use crate::table::not_for_this_device;
use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("any_block_size_covers_all_elements", any_block_size_covers_all_elements),
    ("covering_nothing_launches_nothing", covering_nothing_launches_nothing),
    ("a_grid_larger_than_the_buffer_is_harmless", a_grid_larger_than_the_buffer_is_harmless),
    ("a_grid_smaller_than_the_buffer_leaves_the_rest", a_grid_smaller_than_the_buffer_leaves_the_rest),
    ("too_many_threads_in_a_block_are_refused", too_many_threads_in_a_block_are_refused),
    ("a_too_wide_block_axis_is_refused", a_too_wide_block_axis_is_refused),
    ("too_many_blocks_are_refused", too_many_blocks_are_refused),
    ("a_grid_with_more_threads_than_indices_is_refused", a_grid_with_more_threads_than_indices_is_refused),
    ("blocks_without_threads_are_refused", blocks_without_threads_are_refused),
    ("a_grid_without_blocks_launches_nothing", a_grid_without_blocks_launches_nothing),
    ("a_huge_cover_is_refused_without_overflow", a_huge_cover_is_refused_without_overflow),
    (
        "blocks_are_counted_by_any_usual_number_and_never_cut_off",
        blocks_are_counted_by_any_usual_number_and_never_cut_off,
    ),
    ("a_kernel_with_a_fixed_block_takes_no_other", a_kernel_with_a_fixed_block_takes_no_other),
    ("a_kernel_with_a_thread_limit_keeps_it", a_kernel_with_a_thread_limit_keeps_it),
    ("a_refused_launch_changes_nothing", a_refused_launch_changes_nothing),
    ("companions_know_name_and_ptx", companions_know_name_and_ptx),
    ("launches_have_priorities", launches_have_priorities),
    ("launches_have_domains_and_access_policies", launches_have_domains_and_access_policies),
    ("launches_record_events_when_they_have_begun", launches_record_events_when_they_have_begun),
];

/// These attributes change no result.
fn launches_have_domains_and_access_policies(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut data = stream.zeros::<u32>(1000)?;
    let part = data.slice(100..)?;
    let windows = [AccessProperty::Normal, AccessProperty::Streaming, AccessProperty::Persisting]
        .map(|hit| AccessPolicyWindow::new(part, hit));
    if device.is_cuda() {
        let most = device.attribute(DeviceAttribute::MAX_PERSISTING_L2_CACHE_SIZE)?;
        device.set_persisting_l2_cache_size(most.unsigned_abs() as usize / 4)?;
        if device.attribute(DeviceAttribute::MAX_ACCESS_POLICY_WINDOW_SIZE)? == 0 {
            return not_for_this_device("it has no access policies");
        }
    }
    for window in windows {
        let grid = Grid::cover(1000).with_access_policy_window(window.with_hit_ratio(0.6)?);
        elementwise::increment(&stream, grid, &mut data)?;
        stream.set_access_policy_window(Some(window.with_streaming_misses()))?;
        elementwise::increment(&stream, Grid::cover(1000), &mut data)?;
    }
    stream.set_access_policy_window(None)?;
    for domain in [MemorySyncDomain::Remote, MemorySyncDomain::Default] {
        stream.set_memory_sync_domain(domain)?;
        elementwise::increment(&stream, Grid::cover(1000), &mut data)?;
        let grid = Grid::cover(1000).with_memory_sync_domain(domain).with_access_policy_window(windows[0]);
        elementwise::increment(&stream, grid, &mut data)?;
        let (graph, key) = stream.capture(|capture| {
            let mut data = capture.write(&mut data)?;
            elementwise::increment(capture, grid, &mut data)?;
            Ok(data.key())
        })?;
        let mut graph = graph.instantiate()?;
        graph.launch(&stream)?;
        stream.download(graph.view(key)?)?;
    }
    device.reset_persisting_l2_cache()?;
    expect("increments", stream.download(&data)?, vec![6 + 2 * 3; 1000])
}

fn launches_record_events_when_they_have_begun(device: &Device) -> Outcome {
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let mut data = stream.zeros::<u32>(100_000)?;
    let begun = device.new_event(EventOptions::new().without_timing())?;
    let grid = Grid::cover(100_000).with_launch_completion_event(&begun);
    for round in 1..=20 {
        let refused = match elementwise::increment(&stream, grid, &mut data) {
            Err(Error::MissingSymbol { needed: (12, 3), .. }) => true,
            launched => launched.map(|()| false)?,
        };
        if refused {
            return not_for_this_device("its driver is older than CUDA 12.3");
        }
        other.wait(&begun)?;
        other.synchronize()?;
        expect("the blocks have begun", begun.is_complete()?, true)?;
        stream.synchronize()?;
        expect("round", stream.download(&data)?, vec![round; 100_000])?;
    }
    drop(begun);
    let gone = elementwise::increment(&stream, grid, &mut data);
    let text =
        expect_error("gone", gone, |error| matches!(error, Error::Launch(LaunchError::LaunchEvent { .. })))?;
    names(&text, &["increment", "dropped before the launch"])
}

fn any_block_size_covers_all_elements(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for block in [1, 32, 100, 256, 1024] {
        for n in [1_usize, 99, 1024, 10_007] {
            let input: Vec<u32> = (0..n as u32).collect();
            let mut data = stream.upload(&input)?;
            elementwise::increment(&stream, Grid::cover(n).with_block(block), &mut data)?;
            expect("elements", stream.download(&data)?, (1..=n as u32).collect())?;
        }
    }
    Ok(())
}

fn covering_nothing_launches_nothing(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut empty = stream.upload::<u32>(&[])?;
    elementwise::increment(&stream, Grid::cover(0), &mut empty)?;
    expect("elements", stream.download(&empty)?, vec![])?;
    let mut data = stream.upload(&[7_u32; 4])?;
    elementwise::copy(&stream, Grid::cover(0), &empty, &mut data)?;
    expect("elements", stream.download(&data)?, vec![7; 4])
}

fn a_grid_larger_than_the_buffer_is_harmless(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut empty = stream.upload::<u32>(&[])?;
    elementwise::increment(&stream, Grid::new(4, 64), &mut empty)?;
    let mut data = stream.upload(&[0_u32; 10])?;
    let (mut first, mut second) = data.split_at_mut(5)?;
    elementwise::increment(&stream, Grid::new(4, 64), first.reborrow())?;
    elementwise::increment(&stream, Grid::new(4, 64), first)?;
    elementwise::increment(&stream, Grid::new(4, 64), second.reborrow())?;
    expect("elements", stream.download(&data)?, vec![2, 2, 2, 2, 2, 1, 1, 1, 1, 1])
}

fn a_grid_smaller_than_the_buffer_leaves_the_rest(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut data = stream.upload(&[0_u32; 10])?;
    elementwise::increment(&stream, Grid::new(1, 4), &mut data)?;
    expect("elements", stream.download(&data)?, vec![1, 1, 1, 1, 0, 0, 0, 0, 0, 0])
}

fn too_many_threads_in_a_block_are_refused(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut output = stream.upload(&[[0_u32; 4]; 64])?;
    let limit = device.limits().max_threads_per_block;
    let grid = Grid::new([1, 1], [limit, 2]);
    let launched = ranks::coordinates_2d(&stream, grid, output.view_2d_mut(8, 8)?);
    let text = expect_error("block", launched, |error| {
        matches!(error, Error::Launch(LaunchError::TooManyThreads { .. }))
    })?;
    names(&text, &["coordinates_2d", &(2 * limit).to_string(), &limit.to_string()])
}

fn a_too_wide_block_axis_is_refused(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let limit = device.limits().max_block[2];
    let mut output = stream.upload(&[0_u64; 1])?;
    let pointer = output.as_device_ptr_mut();
    // SAFETY: the launch is refused; nothing runs.
    let launched = unsafe {
        ranks::coordinates_3d(&stream, Grid::new([1, 1, 1], [1, 1, limit + 1]), [1, 1, 1], pointer)
    };
    let text = expect_error("block", launched, |error| {
        matches!(error, Error::Launch(LaunchError::BlockTooLarge { .. }))
    })?;
    names(&text, &["coordinates_3d", "z", &(limit + 1).to_string(), &limit.to_string()])
}

fn too_many_blocks_are_refused(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let limit = device.limits().max_grid[1];
    let mut output = stream.upload(&[[0_u32; 4]; 1])?;
    let launched =
        ranks::coordinates_2d(&stream, Grid::new([1, limit + 1], [1, 1]), output.view_2d_mut(1, 1)?);
    let text = expect_error("grid", launched, |error| {
        matches!(error, Error::Launch(LaunchError::GridTooLarge { .. }))
    })?;
    names(&text, &["coordinates_2d", "y", &(limit + 1).to_string(), &limit.to_string()])
}

fn a_grid_with_more_threads_than_indices_is_refused(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut data = stream.upload(&[0_u32; 4])?;
    let launched = elementwise::increment(&stream, Grid::new(1 << 22, 1024), &mut data);
    let text = expect_error("grid", launched, |error| {
        matches!(error, Error::Launch(LaunchError::GridTooWide { .. }))
    })?;
    names(&text, &["increment", "x", "4294967296", "4294967295", "grid_stride"])
}

fn blocks_without_threads_are_refused(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut data = stream.upload(&[0_u32; 4])?;
    for grid in [Grid::new(1, 0), Grid::cover(4).with_block(0)] {
        let launched = elementwise::increment(&stream, grid, &mut data);
        expect_error("no threads", launched, |error| {
            matches!(error, Error::Launch(LaunchError::BlockEmpty { .. }))
        })?;
    }
    Ok(())
}

fn a_grid_without_blocks_launches_nothing(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut data = stream.upload(&[7_u32; 4])?;
    for grid in [Grid::new(0, 32), Grid::blocks(0), Grid::cover(0)] {
        elementwise::increment(&stream, grid, &mut data)?;
    }
    bounds::fixed(&stream, Grid::blocks([0, 3]), stream.upload(&[[9_u32; 2]])?.view_2d_mut(1, 1)?)?;
    expect("untouched", stream.download(&data)?, vec![7; 4])
}

fn a_huge_cover_is_refused_without_overflow(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut data = stream.upload(&[0_u32; 4])?;
    let launched = elementwise::increment(&stream, Grid::cover(usize::MAX), &mut data);
    let text = expect_error("huge grid", launched, |error| {
        matches!(error, Error::Launch(LaunchError::GridTooLarge { .. }))
    })?;
    names(&text, &["increment", &device.limits().max_grid[0].to_string()])
}

fn blocks_are_counted_by_any_usual_number_and_never_cut_off(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut data = stream.upload(&[0_u32; 600])?;
    let blocks: usize = data.len().div_ceil(256);
    elementwise::increment(&stream, Grid::new(blocks, 256), &mut data)?;
    elementwise::increment(&stream, Grid::new(3_u32, 256_usize), &mut data)?;
    expect("incremented", stream.download(&data)?, vec![2; 600])?;
    // In 32 bits these would be 3 blocks.
    let launched = elementwise::increment(&stream, Grid::new((1_usize << 32) + 3, 256), &mut data);
    let text = expect_error("2^32 + 3", launched, |error| {
        matches!(error, Error::Launch(LaunchError::GridTooLarge { .. }))
    })?;
    names(&text, &["increment", "4294967299", &device.limits().max_grid[0].to_string()])?;
    let launched = elementwise::increment(&stream, Grid::new(-3, 256), &mut data);
    let text = expect_error("-3", launched, |error| {
        matches!(error, Error::Launch(LaunchError::GridNegative { .. }))
    })?;
    names(&text, &["increment", "-3 blocks", "0 or more"])
}

fn a_kernel_with_a_fixed_block_takes_no_other(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut output = stream.upload(&[[0_u32; 2]; 33 * 5])?;
    bounds::fixed(&stream, Grid::cover([33, 5]), output.view_2d_mut(33, 5)?)?;
    expect("shapes", stream.download(&output)?, vec![[16, 4]; 33 * 5])?;
    bounds::fixed(&stream, Grid::new([3, 2], [16, 4]), output.view_2d_mut(33, 5)?)?;
    let launched = bounds::fixed(&stream, Grid::new([3, 2], [4, 16]), output.view_2d_mut(33, 5)?);
    let text = expect_error("block", launched, |error| {
        matches!(error, Error::Launch(LaunchError::BlockMismatch { .. }))
    })?;
    names(&text, &["fixed", "16 x 4", "4 x 16"])?;
    expect("what the kernel says of itself", bounds::fixed::kernel().block(), Some([16, 4, 1]))
}

fn a_kernel_with_a_thread_limit_keeps_it(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut output = stream.upload(&[0_u32; 500])?;
    bounds::limited(&stream, Grid::cover(500), &mut output)?;
    expect("threads in a block", stream.download(&output)?, vec![64; 500])?;
    bounds::limited(&stream, Grid::new(6, 96), &mut output)?;
    expect("threads in a block", stream.download(&output)?, vec![96; 500])?;
    let launched = bounds::limited(&stream, Grid::new(5, 97), &mut output);
    let text = expect_error("block", launched, |error| {
        matches!(error, Error::Launch(LaunchError::TooManyThreads { .. }))
    })?;
    names(&text, &["limited", "97", "96"])
}

fn a_refused_launch_changes_nothing(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut data = stream.upload(&[5_u32; 4])?;
    let refused = elementwise::increment(&stream, Grid::new(1, 1 << 20), &mut data);
    expect_error("block", refused, |error| {
        matches!(error, Error::Launch(LaunchError::BlockTooLarge { .. }))
    })?;
    elementwise::increment(&stream, Grid::cover(4), &mut data)?;
    expect("elements", stream.download(&data)?, vec![6; 4])
}

fn companions_know_name_and_ptx(_: &Device) -> Outcome {
    let kernel = elementwise::saxpy::kernel();
    names(kernel.name(), &["kernels::elementwise::saxpy"])?;
    let ptx = kernel.ptx().ok_or("no PTX")?;
    names(ptx, &[".visible .entry saxpy_"])
}

fn launches_have_priorities(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (least, greatest) = device.stream_priority_range()?;
    let mut data = stream.zeros::<u32>(100)?;
    for priority in [least, 0, greatest] {
        elementwise::increment(&stream, Grid::cover(100).with_priority(priority), &mut data)?;
    }
    let (graph, key) = stream.capture(|capture| {
        let mut data = capture.write(&mut data)?;
        elementwise::increment(capture, Grid::cover(100).with_priority(greatest), &mut data)?;
        Ok(data.key())
    })?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    expect("elements", stream.download(graph.view(key)?)?, vec![4; 100])?;
    drop(graph);
    let beyond = elementwise::increment(&stream, Grid::cover(100).with_priority(greatest - 1), &mut data);
    let text = expect_error("beyond", beyond, |error| matches!(error, Error::PriorityOutOfRange { .. }))?;
    names(&text, &[&(greatest - 1).to_string(), &least.to_string()])
}
