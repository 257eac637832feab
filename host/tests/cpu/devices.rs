//! CPU devices with separate limits: several in one process, little memory, little shared memory, any
//! number of workers.

#[path = "../waiting/mod.rs"]
mod waiting;

use ferrogrid_host::{CpuOptions, Device, DeviceKind, Error, Grid, LaunchError, Result};
use waiting::{enqueue, resources};

#[test]
fn devices_are_distinct_and_each_has_its_own_buffers() -> Result<()> {
    let [a, b] = [(); 2].map(|()| Device::cpu_with(CpuOptions::new().workers(1)));
    let (a, b) = (a?, b?);
    assert!(a != b && a != Device::cpu() && a == a.clone() && a.kind() == DeviceKind::Cpu);
    assert!(a.to_string().starts_with("virtual CPU device ") && a.to_string() != b.to_string());
    let (on_a, on_b) = (a.new_stream()?, b.new_stream()?);
    let mut buffer = on_a.zeros::<u32>(1)?;
    let grid = Grid::new([1, 1, 1], [1, 1, 1]);
    let error = enqueue(&on_b, grid, resources(0, false), &mut buffer, |_| ());
    assert!(matches!(error, Err(Error::DeviceMismatch { .. })), "{error:?}");
    enqueue(&on_a, grid, resources(0, false), &mut buffer, |t| t.set(0, 7))?;
    assert_eq!(on_a.download(&buffer)?, [7]);
    Ok(())
}

/// Nothing runs, but a program is wrong or right whatever the number of elements is.
#[test]
fn an_empty_launch_refuses_a_buffer_of_another_device() -> Result<()> {
    let (a, b) = (Device::cpu_with(CpuOptions::new())?, Device::cpu_with(CpuOptions::new())?);
    let mut buffer = a.new_stream()?.zeros::<u32>(1)?;
    let nothing = Grid::cover([0, 1, 1]);
    let refused = enqueue(&b.new_stream()?, nothing, resources(0, false), &mut buffer, |_| ());
    assert!(matches!(refused, Err(Error::DeviceMismatch { .. })), "{refused:?}");
    enqueue(&a.new_stream()?, nothing, resources(0, false), &mut buffer, |_| ())
}

#[test]
fn memory_runs_out_at_the_limit_and_comes_back() -> Result<()> {
    let device = Device::cpu_with(CpuOptions::new().memory(4096))?;
    let stream = device.new_stream()?;
    let mut buffers = Vec::new();
    for _ in 0..4 {
        buffers.push(stream.zeros::<u8>(1024)?);
    }
    let Err(Error::OutOfMemory { device: name, requested: 1, free: Some(0), total: Some(4096) }) =
        stream.zeros::<u8>(1)
    else {
        panic!("there was more memory")
    };
    assert_eq!(*name, *device.to_string());
    stream.fill_into(1, &mut buffers[3])?;
    buffers.truncate(2);
    stream.synchronize()?;
    assert_eq!(device.memory_info()?.map(|memory| (memory.free, memory.total)), Some((2048, 4096)));
    assert!(stream.zeros::<u8>(2049).is_err());
    assert_eq!(stream.download(&stream.zeros::<u8>(2048)?)?, [0; 2048]);
    assert!(matches!(stream.zeros::<u8>(isize::MAX as usize), Err(Error::OutOfMemory { .. })));
    Ok(())
}

#[test]
fn shared_memory_has_the_requested_limit() -> Result<()> {
    for (options, limit) in
        [(CpuOptions::new(), 232_448), (CpuOptions::new().shared_memory_per_block(1000), 1000)]
    {
        let device = Device::cpu_with(options)?;
        let stream = device.new_stream()?;
        let mut out = stream.zeros::<u32>(1)?;
        let mut launch = |bytes| {
            let grid = Grid::new([2, 1, 1], [2, 1, 1]);
            enqueue(&stream, grid, resources(bytes, false), &mut out, |t| t.set(0, t.shared().1 as u32))
        };
        let expected = Error::Launch(LaunchError::SharedMemoryTooLarge {
            kernel: "probe",
            device: device.to_string().into(),
            bytes: limit + 1,
            limit,
        });
        assert_eq!(launch(limit + 1), Err(expected));
        launch(limit)?;
        assert_eq!(stream.download(&out)?, [limit as u32]);
    }
    Ok(())
}

#[test]
fn a_device_answers_with_the_limits_that_it_was_given() -> Result<()> {
    let options = CpuOptions::new().workers(3).shared_memory_per_block(1000).memory(1 << 20);
    let device = Device::cpu_with(options)?;
    let properties = device.properties()?;
    assert_eq!((properties.multiprocessor_count, properties.total_memory), (3, Some(1 << 20)));
    assert_eq!(properties.shared_memory_per_block, 1000);
    assert_eq!(properties.shared_memory_per_block_optin, 1000);
    assert_eq!(properties.shared_memory_per_multiprocessor, 1000);
    assert_eq!(device.shared_memory_per_block(), 1000);
    let large = Device::cpu_with(CpuOptions::new())?.properties()?;
    assert_eq!((large.shared_memory_per_block, large.shared_memory_per_block_optin), (49_152, 232_448));
    Ok(())
}

#[test]
fn attributes_are_the_properties_by_number() -> Result<()> {
    use ferrogrid_host::DeviceAttribute as A;
    let device = Device::cpu_with(CpuOptions::new().workers(3))?;
    let properties = device.properties()?;
    for (attribute, value) in [
        (A::GLOBAL_MEMORY_BUS_WIDTH, properties.memory_bus_width),
        (A::ASYNC_ENGINE_COUNT, properties.async_engine_count),
        (A::CLUSTER_LAUNCH, u32::from(properties.cluster_launch)),
        (A::COOPERATIVE_LAUNCH, 1),
        (A::MULTIPROCESSOR_COUNT, 3),
        (A::MAX_GRID_DIM_Z, 65_535),
        (A::WARP_SIZE, 32),
    ] {
        assert_eq!(i64::from(device.attribute(attribute)?), i64::from(value), "{attribute:?}");
    }
    Ok(())
}

#[test]
fn a_device_supports_cooperative_launches_and_reports_it() -> Result<()> {
    let device = Device::cpu_with(CpuOptions::new().workers(4))?;
    let properties = device.properties()?;
    assert!(properties.cooperative_launch);
    let blocks = properties.multiprocessor_count * properties.max_blocks_per_multiprocessor;
    let stream = device.new_stream()?;
    let mut out = stream.zeros::<u32>(1)?;
    let grid = Grid::new([blocks, 1, 1], [properties.max_threads_per_block, 1, 1]);
    enqueue(&stream, grid, resources(0, true), &mut out, |t| {
        t.grid_barrier();
        t.out[0].fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    })?;
    assert_eq!(stream.download(&out)?, [4 * 1024]);
    Ok(())
}

#[test]
fn options_that_no_device_can_have_are_named() {
    let text = |options| Device::cpu_with(options).unwrap_err().to_string();
    for workers in [0, 65_536] {
        assert_eq!(
            text(CpuOptions::new().workers(workers)),
            format!("a CPU device cannot have {workers} as `workers`; expected 1 to 65535 threads")
        );
    }
    assert_eq!(
        text(CpuOptions::new().shared_memory_per_block(232_449)),
        "a CPU device cannot have 232449 as `shared_memory_per_block`; expected at most 232448 bytes"
    );
}
