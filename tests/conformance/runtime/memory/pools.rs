//! A program's own memory pools.

use ferrogrid::{CpuOptions, Device, Error, GraphError, MemoryPool, PoolKind, PoolOptions};

use crate::runtime::{Case, Gate, Outcome};

pub(crate) const CASES: &[Case] = &[
    ("buffers_of_a_pool_are_like_all_others", buffers_of_a_pool_are_like_all_others),
    ("a_pool_counts_its_own_buffers", a_pool_counts_its_own_buffers),
    ("a_pool_has_a_size", a_pool_has_a_size),
    ("buffers_outlive_the_handle_of_their_pool", buffers_outlive_the_handle_of_their_pool),
    ("a_pool_is_for_streams_of_its_device", a_pool_is_for_streams_of_its_device),
    ("the_host_uses_memory_of_a_pool", the_host_uses_memory_of_a_pool),
    ("the_pool_of_a_device_gives_buffers_too", the_pool_of_a_device_gives_buffers_too),
];

/// `None` on a GPU without pools.
fn pool(device: &Device, options: PoolOptions) -> Result<Option<MemoryPool>, Error> {
    match device.new_memory_pool(options) {
        Err(Error::Unsupported { operation: "memory pools", .. }) if device.is_cuda() => Ok(None),
        pool => pool.map(Some),
    }
}

fn buffers_of_a_pool_are_like_all_others(device: &Device) -> Outcome {
    let options = PoolOptions::new()
        .with_release_threshold(1 << 20)
        .with_reuse_follow_event_dependencies(false)
        .with_reuse_allow_opportunistic(false)
        .with_reuse_allow_internal_dependencies(false);
    let Some(pool) = pool(device, options)? else { return Ok(()) };
    let (first, second) = (device.new_stream()?, device.new_stream()?);
    let mut numbers = pool.upload(&first, &[1_u32, 2, 3])?;
    let zeros = pool.zeros::<u64>(&second, 1000)?;
    assert_eq!(second.download(&zeros)?, [0; 1000]);
    assert_eq!(first.download(&pool.fill(&first, 1.5_f32, 3)?)?, [1.5; 3]);
    for round in 0..20 {
        let gate = Gate::close(&first)?;
        first.fill_into(round, &mut numbers)?;
        let copy = second.duplicate(&numbers)?;
        gate.open();
        assert_eq!(second.download(&copy)?, [round; 3]);
        // Memory that is still in use is not given out again.
        let gate = Gate::close(&first)?;
        let old = pool.fill(&first, round, 1000)?;
        let mut kept = pool.zeros::<u32>(&first, 1000)?;
        first.copy(&old, &mut kept)?;
        drop(old);
        let new = pool.fill(&second, u32::MAX, 1000)?;
        gate.open();
        assert_eq!(
            (first.download(&kept)?, second.download(&new)?),
            (vec![round; 1000], vec![u32::MAX; 1000])
        );
    }
    assert!(pool.upload::<u8>(&first, &[])?.is_empty());
    Ok(())
}

fn a_pool_counts_its_own_buffers(device: &Device) -> Outcome {
    let Some(pool) = pool(device, PoolOptions::new())? else { return Ok(()) };
    let Some(other) = self::pool(device, PoolOptions::new())? else { return Ok(()) };
    let stream = device.new_stream()?;
    assert_eq!(pool.statistics()?.used, 0);
    let (small, large) = (pool.zeros::<u8>(&stream, 1000)?, pool.zeros::<u8>(&stream, 100_000)?);
    let used = pool.statistics()?.used;
    assert!((101_000..200_000).contains(&used), "{used}");
    assert_eq!(other.statistics()?.used, 0, "another pool");
    assert!(device.memory_pool().statistics().is_ok());
    drop(large);
    stream.synchronize()?;
    let after = pool.statistics()?;
    assert!((1000..50_000).contains(&after.used) && after.used_high >= used, "{after:?}");
    pool.reset_statistics()?;
    assert!(pool.statistics()?.used_high < used);
    pool.set_release_threshold(0)?;
    pool.trim(0)?;
    assert!(pool.statistics()?.reserved >= 1000);
    drop(small);
    Ok(())
}

fn a_pool_has_a_size(device: &Device) -> Outcome {
    let Some(pool) = pool(device, PoolOptions::new().with_max_size(10_000))? else { return Ok(()) };
    let stream = device.new_stream()?;
    assert_eq!(pool.limit(), Some(10_000));
    let most = pool.zeros::<u8>(&stream, 9_000)?;
    let error = pool.zeros::<u8>(&stream, 1_001).unwrap_err();
    let Error::MemoryLimit { requested: 1_001, used: 9_000, limit: 10_000, .. } = error else {
        return Err(format!("another error: {error}").into());
    };
    assert_eq!(stream.zeros::<u8>(20_000)?.len(), 20_000, "the device's own pool is another");
    drop(most);
    stream.synchronize()?;
    let again = pool.zeros::<u8>(&stream, 10_000)?;
    pool.set_limit(Some(30_000));
    assert_eq!((again.len(), pool.zeros::<u8>(&stream, 20_000)?.len()), (10_000, 20_000));
    Ok(())
}

fn buffers_outlive_the_handle_of_their_pool(device: &Device) -> Outcome {
    for _ in 0..20 {
        let Some(pool) = pool(device, PoolOptions::new())? else { return Ok(()) };
        let (stream, other) = (device.new_stream()?, device.new_stream()?);
        let mut buffer = pool.clone().fill(&stream, 1_u32, 1000)?;
        drop(pool);
        stream.fill_into(2, buffer.slice_mut(1..)?)?;
        let copy = other.duplicate(&buffer)?;
        drop((buffer, stream));
        let copied = other.download(&copy)?;
        assert_eq!((copied[0], &copied[1..]), (1, &[2; 999][..]));
    }
    Ok(())
}

fn a_pool_is_for_streams_of_its_device(device: &Device) -> Outcome {
    let Some(pool) = pool(device, PoolOptions::new())? else { return Ok(()) };
    let other = Device::cpu_with(CpuOptions::new())?.new_stream()?;
    let error = pool.zeros::<u8>(&other, 4).unwrap_err();
    assert!(matches!(error, Error::DeviceMismatch { .. }), "{error}");
    let stream = device.new_stream()?;
    let refused = stream.capture(|capture| pool.zeros::<u8>(capture, 4).map(|_| ())).map(|_| ()).unwrap_err();
    assert!(matches!(refused, Error::Graph(GraphError::NotRecordable { .. })), "{refused}");
    assert_eq!(stream.download(&pool.zeros::<u8>(&stream, 4)?)?, [0; 4]);
    Ok(())
}

fn the_pool_of_a_device_gives_buffers_too(device: &Device) -> Outcome {
    let (stream, pool) = (device.new_stream()?, device.memory_pool());
    assert_eq!(stream.download(&pool.upload(&stream, &[1_u16, 2, 3])?)?, [1, 2, 3]);
    Ok(())
}

fn the_host_uses_memory_of_a_pool(device: &Device) -> Outcome {
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    for kind in [PoolKind::Managed, PoolKind::Host, PoolKind::HostNuma(0)] {
        let pool = match device.new_memory_pool(PoolOptions::new().with_kind(kind)) {
            Err(Error::Unsupported { .. }) if device.is_cuda() => continue,
            pool => pool?,
        };
        assert_eq!(pool.kind(), kind);
        for round in 0..10_u32 {
            let mut numbers = pool.managed_copy(&stream, &[1_u32, 2, 3, 4])?;
            let gate = Gate::close(&stream)?;
            stream.fill_into(round, numbers.slice_mut(..1)?)?;
            other.fill_into(100 + round, numbers.slice_mut(3..)?)?;
            let copy = stream.duplicate(&numbers)?;
            gate.open_soon();
            assert_eq!(numbers.read()?, [round, 2, 3, 100 + round], "after the work of both");
            numbers.write()?[1] = 7;
            assert_eq!(other.download(&numbers)?, [round, 7, 3, 100 + round]);
            assert_eq!(other.download(&copy)?, [round, 2, 3, 100 + round]);
            // Freed in order, and possibly reused.
            let gate = Gate::close(&stream)?;
            let old = pool.managed_zeros::<u32>(&stream, 4)?;
            let kept = stream.duplicate(&old)?;
            drop(old);
            let new = pool.fill(&other, u32::MAX, 4)?;
            gate.open_soon();
            assert_eq!((stream.download(&kept)?, other.download(&new)?), (vec![0; 4], vec![u32::MAX; 4]));
        }
        assert!(pool.managed_zeros::<u8>(&stream, 0)?.read()?.is_empty());
        stream.synchronize()?;
        other.synchronize()?;
    }
    let Some(plain) = pool(device, PoolOptions::new())? else { return Ok(()) };
    let refused = plain.managed_zeros::<u8>(&stream, 1);
    assert!(matches!(refused, Err(Error::Unsupported { .. })), "{refused:?}");
    Ok(())
}
