//! Listings of the chapter "Memory and streams".

use ferrogrid::dlpack::DlpackTensor;
use ferrogrid::prelude::*;
use ferrogrid::{PoolKind, PoolOptions};

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// x[i] <- x[i] + 1.
    #[kernel]
    pub fn increment(t: Thread<1>, mut x: DisjointSlice<u32>) {
        if let Some(x) = x.get_mut(t.index()) {
            *x += 1;
        }
    }

    /// y[i] = x[i].
    #[kernel]
    pub fn copy(t: Thread<1>, x: &[u32], mut y: DisjointSlice<u32>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y = x[i.get()];
        }
    }
}

#[test]
fn buffers_and_views() -> ferrogrid::Result<()> {
    // ANCHOR: buffers
    let stream = Device::best()?.new_stream()?;
    let mut a = stream.upload(&[1_u32, 2, 3, 4, 5, 6])?; // a copy of the host's data
    let mut b = stream.zeros::<u32>(6)?; // bytes of 0
    let c = stream.fill(7_u32, 3)?; // one value

    // Launches and copies take whole buffers or views of parts.
    kernels::increment(&stream, Grid::cover(3), a.slice_mut(..3)?)?;
    let (left, right) = b.split_at_mut(3)?;
    stream.copy(a.slice(..3)?, left)?;
    stream.copy(&c, right)?;
    assert_eq!(stream.download(&b)?, [2, 3, 4, 7, 7, 7]);
    // ANCHOR_END: buffers
    Ok(())
}

#[test]
fn streams_are_ordered_by_buffers() -> ferrogrid::Result<()> {
    // ANCHOR: streams
    let device = Device::best()?;
    let (first, second) = (device.new_stream()?, device.new_stream()?);
    let mut x = first.zeros::<u32>(1000)?;
    let mut y = second.zeros::<u32>(1000)?;

    kernels::increment(&first, Grid::cover(1000), &mut x)?;
    kernels::increment(&second, Grid::cover(1000), &mut y)?; // at the same time, if there is room
    kernels::copy(&second, Grid::cover(1000), &x, &mut y)?; // after both, because of `x`

    assert_eq!(first.download(&y)?, [1; 1000]); // after the copy
    drop(x); // freed when the last kernel that uses it has run; no wait here
    // ANCHOR_END: streams
    Ok(())
}

#[test]
fn copies_in_the_background() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    // ANCHOR: pinned
    let device = stream.device();
    let input = device.pinned_copy(&[1_u32, 2, 3])?; // page-locked: the device reads it directly
    let mut x = stream.zeros::<u32>(3)?;

    let upload = stream.upload_async(input, &mut x)?; // owns `input` until the copy has run
    kernels::increment(&stream, Grid::cover(3), &mut x)?;
    let output = upload.wait()?; // returns the memory
    let output = stream.download_async(&x, output)?.wait()?;
    assert_eq!(*output, [2, 3, 4]);
    // ANCHOR_END: pinned

    // ANCHOR: scope
    let input = device.pinned_copy(&[10_u32, 20, 30])?;
    let mut output = device.pinned_zeros::<u32>(3)?;
    stream.scope(|scope| {
        scope.upload_into(&input, &mut x)?; // borrows, until the end of the scope
        kernels::increment(&stream, Grid::cover(3), &mut x)?;
        scope.download_into(&x, &mut output)
    })??;
    assert_eq!(*output, [11, 21, 31]);
    // ANCHOR_END: scope
    Ok(())
}

#[test]
fn kernels_use_memory_of_the_host_in_place() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    let device = stream.device();
    // ANCHOR: zero_copy
    let mut x = device.pinned_copy(&[1_u32, 2, 3])?;
    kernels::increment(&stream, Grid::cover(3), &mut x)?; // over the bus, in place; returns at once
    assert_eq!(*x, [2, 3, 4]); // waits for the kernel
    x[0] = 10; // no kernel that uses `x` can be enqueued while the slice is borrowed
    kernels::increment(&stream, Grid::cover(2), x.slice_mut(..2)?)?;
    assert_eq!(x.read()?, [11, 4, 4]); // a failed kernel is an error here; the slice would panic

    let mut data = [7_u32; 1000]; // existing memory
    device.with_pinned(&mut data, |data| kernels::increment(&stream, Grid::cover(1000), data))??;
    assert_eq!(data, [8; 1000]);
    // ANCHOR_END: zero_copy
    Ok(())
}

#[test]
fn events_and_futures() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    let mut x = stream.zeros::<u32>(1000)?;
    // ANCHOR: events
    let start = stream.record()?;
    kernels::increment(&stream, Grid::cover(1000), &mut x)?;
    let end = stream.record()?;
    println!("the kernel took {:?}", end.elapsed_since(&start)?); // waits for both

    let other = stream.device().new_stream()?;
    other.wait(&end)?; // what is enqueued on `other` from now on comes after `end`
    // ANCHOR_END: events
    // ANCHOR: await
    let work = async {
        kernels::increment(&stream, Grid::cover(1000), &mut x)?;
        stream.completed()?.await?; // no thread waits; works on any executor
        stream.download(&x)
    };
    assert_eq!(pollster::block_on(work)?, [2; 1000]);
    // ANCHOR_END: await
    Ok(())
}

#[test]
fn pools() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    // ANCHOR: pool
    let pool = stream.device().new_memory_pool(PoolOptions::new().with_max_size(64 << 20))?;
    let mut x = pool.zeros::<u32>(&stream, 1000)?; // a buffer like any other
    kernels::increment(&stream, Grid::cover(1000), &mut x)?;
    assert_eq!(pool.statistics()?.used, pool.statistics()?.used_high);
    let too_much = pool.zeros::<u8>(&stream, 64 << 20);
    assert!(matches!(too_much, Err(Error::MemoryLimit { limit: 0x400_0000, .. })));
    // ANCHOR_END: pool
    Ok(())
}

#[test]
fn pools_of_the_host() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    // ANCHOR: host_pool
    let options = PoolOptions::new().with_kind(PoolKind::Host); // or `Managed`
    let pool = match stream.device().new_memory_pool(options) {
        Err(Error::Unsupported { .. }) => return Ok(()), // with an older driver
        pool => pool?,
    };
    let mut x = pool.managed_copy(&stream, &[1_u32, 2, 3])?;
    kernels::increment(&stream, Grid::cover(3), &mut x)?;
    assert_eq!(x.read()?, [2, 3, 4]); // waits for the kernel, copies nothing
    // ANCHOR_END: host_pool
    Ok(())
}

#[cfg(unix)]
#[test]
fn growable() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    // ANCHOR: growable
    // Room for 4 GiB; no memory yet.
    let mut found = match stream.growable::<u32>(1 << 30) {
        Err(Error::Unsupported { .. }) => return Ok(()), // on some systems
        found => found?,
    };
    found.extend_from_slice(&stream, &[1, 2, 3])?;
    found.resize(&stream, 1_000_000, 0)?; // elements stay where they are
    kernels::increment(&stream, Grid::cover(found.len()), &mut found)?;
    assert_eq!(stream.download(found.slice(..4)?)?, [2, 3, 4, 1]);
    // ANCHOR_END: growable
    Ok(())
}

#[test]
fn managed_memory() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    // ANCHOR: managed
    let mut x = match stream.managed_zeros::<u32>(3) {
        Err(Error::Unsupported { .. }) => return Ok(()), // on some systems
        x => x?,
    };
    x.write()?[1] = 41; // one address on both sides
    kernels::increment(&stream, Grid::cover(3), &mut x)?;
    assert_eq!(x.read()?, [1, 42, 1]); // waits for the kernel
    // ANCHOR_END: managed
    Ok(())
}

#[test]
fn tensors_of_other_libraries() -> ferrogrid::Result<()> {
    let device = Device::best()?;
    let stream = device.new_stream()?;
    // ANCHOR: dlpack
    let consumer = device.new_stream()?; // as if made by another library: `unsafe Stream::from_raw(&device, s)`
    let mut x = stream.zeros::<u32>(1000)?;
    kernels::increment(&stream, Grid::cover(1000), &mut x)?;
    let raw = DlpackTensor::from_buffer_async(&consumer, x)?.into_raw(); // `consumer` waits for the kernel, the host does not

    // The other direction, on the side that requested the tensor.
    // SAFETY: a live tensor with no other owner; work on it comes before later work on `consumer`.
    let tensor = unsafe { DlpackTensor::from_raw_async(&consumer, raw)? };
    let mut x = tensor.into_buffer::<u32>(&stream)?; // ordered on any stream from here on
    kernels::increment(&stream, Grid::cover(1000), &mut x)?;
    assert_eq!(stream.download(&x)?, [2; 1000]);
    // ANCHOR_END: dlpack
    Ok(())
}

#[test]
fn several_devices() -> ferrogrid::Result<()> {
    // ANCHOR: devices
    for device in Device::all() {
        let stream = device.new_stream()?;
        let mut x = stream.zeros::<u32>(10)?;
        kernels::increment(&stream, Grid::cover(10), &mut x)?;
        println!("{device}: {:?}", stream.download(&x)?);
    }
    // ANCHOR_END: devices
    Ok(())
}
