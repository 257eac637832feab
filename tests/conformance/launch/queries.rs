//! Queries of devices and kernels: properties, attributes and occupancy.

use ferrogrid::prelude::*;
use ferrogrid::{CacheConfig, CodeType, DeviceAttribute, Kernel, LaunchError};

use crate::block::block_kernels::shared;
use crate::language::kernels::{bounds, elementwise};
use crate::{Case, Outcome, expect, expect_error};

pub(crate) const CASES: &[Case] = &[
    ("a_device_reports_its_properties", a_device_reports_its_properties),
    ("a_kernel_reports_its_resources", a_kernel_reports_its_resources),
    ("occupancy_by_the_rules_is_that_of_the_driver", occupancy_by_the_rules_is_that_of_the_driver),
    ("a_suggested_block_fills_the_device_and_runs", a_suggested_block_fills_the_device_and_runs),
    ("a_kernel_answers_as_its_device_does", a_kernel_answers_as_its_device_does),
    #[cfg(feature = "nvml")]
    ("a_gpu_reports_its_state_by_nvml", a_gpu_reports_its_state_by_nvml),
];

fn a_device_reports_its_properties(device: &Device) -> Outcome {
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

fn a_kernel_reports_its_resources(device: &Device) -> Outcome {
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

/// Kernels with different resources, and the block sizes to query.
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
            // The driver's figure ignores launch limits of the kernel.
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
    expect_error("no block", none, |error| matches!(error, Error::Launch(LaunchError::NoBlockFits { .. })))?;
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

#[cfg(feature = "nvml")]
fn a_gpu_reports_its_state_by_nvml(device: &Device) -> Outcome {
    match device.nvml_figures() {
        Err(Error::Unsupported { .. }) => expect("a GPU", device.is_cuda(), false),
        Err(Error::Nvml { .. }) => expect("no NVML where there is a GPU", device.is_cuda(), true),
        figures => {
            let degrees = figures?.temperature.ok_or("no temperature")?;
            expect("a temperature that a chip survives", (1..120).contains(&degrees), true)
        }
    }
}
