//! Listings of the chapter "Performance".

use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    // ANCHOR: l2_policy
    /// Gathers elements of a small table by a long list: the table stays in L2, list and result stream through.
    #[kernel]
    pub fn look_up(t: Thread<1>, list: &[u32], table: &[f32], mut y: DisjointSlice<f32>) {
        use cache::{L2Policy, PrimaryPriority, SecondaryPriority::EvictUnchanged};
        let stays = L2Policy::fractional(PrimaryPriority::EvictLast, 1.0, EvictUnchanged);
        let passes = L2Policy::fractional(PrimaryPriority::EvictFirst, 1.0, EvictUnchanged);
        let i = t.index();
        if let (Some(y), Some(place)) = (y.get_mut(i), list.get(i.get())) {
            let place = cache::load_cache_hint(place, passes) as usize;
            cache::store_cache_hint(y, cache::load_cache_hint(&table[place], stays), passes);
        }
    }
    // ANCHOR_END: l2_policy

    // ANCHOR: wide
    /// y <- a*x + y, four elements per thread: loads and stores of 16 bytes.
    #[kernel]
    pub fn saxpy_wide(
        t: Thread<1>,
        a: f32,
        x: &[Aligned16<[f32; 4]>],
        mut y: DisjointSlice<Aligned16<[f32; 4]>>,
    ) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            let x = x[i.get()];
            for k in 0..4 {
                y[k] += a * x[k];
            }
        }
    }
    // ANCHOR_END: wide

    // ANCHOR: guarded
    /// The sum of the 2 R + 1 elements around each.
    #[kernel]
    pub fn window(t: Thread<1>, x: &[f32], mut y: DisjointSlice<f32>) {
        const R: usize = 4;
        let i = t.index();
        let Some(y) = y.get_mut(i) else { return };
        let mut sum = 0.0;
        for k in 0..2 * R + 1 {
            // A load under a predicate: `x[..]` would be a branch, which later loads cannot move across.
            sum += x.get((i.get() + k).wrapping_sub(R)).copied().unwrap_or(0.0);
        }
        *y = sum;
    }
    // ANCHOR_END: guarded

    // ANCHOR: local_counts
    /// Counts bytes in shared memory first, then adds each block's counts to the whole.
    #[kernel(block = 256)]
    pub fn histogram(
        t: Thread<1>,
        x: &[u8],
        counts: &[DeviceAtomic<u32>],
        mut local: Shared<[DeviceAtomic<u32>; 256]>,
    ) {
        use atomic::Ordering::Relaxed;
        local.fill_with(&t, |_| DeviceAtomic::new(0));
        let read = t.publish(local);
        for i in t.grid_stride(x.len()) {
            read[x[i.get()] as usize].fetch_add(1, Relaxed);
        }
        local = t.reclaim(read); // all have counted
        for (byte, count) in local.iter_mut(&t) {
            counts[byte].fetch_add(count.load(Relaxed), Relaxed);
        }
    }
    // ANCHOR_END: local_counts
}

#[test]
fn sixteen_bytes_at_once() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    // ANCHOR: wide_launch
    let x = stream.fill(1.0_f32, 4096)?;
    let mut y = stream.fill(2.0_f32, 4096)?;
    let (wide_x, wide_y) = (x.view().as_aligned16::<4>()?, y.view_mut().as_aligned16::<4>()?);
    kernels::saxpy_wide(&stream, Grid::cover(wide_y.len()), 3.0, wide_x, wide_y)?;
    assert_eq!(stream.download(&y)?, [5.0; 4096]);
    // ANCHOR_END: wide_launch
    Ok(())
}

#[test]
fn windows_are_summed() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    let x = stream.fill(1.0_f32, 100)?;
    let mut y = stream.zeros::<f32>(100)?;
    kernels::window(&stream, Grid::cover(100), &x, &mut y)?;
    let y = stream.download(&y)?;
    assert_eq!((y[0], y[1], y[50], y[99]), (5.0, 6.0, 9.0, 5.0));
    Ok(())
}

#[test]
fn counts_of_blocks_are_added() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    let x: Vec<u8> = (0..10_000).map(|i| (i * i % 251) as u8).collect();
    let bytes = stream.upload(&x)?;
    let mut counts = stream.zeros::<u32>(256)?;
    kernels::histogram(&stream, Grid::new(4, 256), &bytes, counts.as_atomic())?;
    let counts = stream.download(&counts)?;
    for byte in 0..=255_u8 {
        let expected = x.iter().filter(|x| **x == byte).count();
        assert_eq!(counts[usize::from(byte)] as usize, expected);
    }
    Ok(())
}

#[test]
fn the_block_is_suggested() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    let x = stream.fill(1.0_f32, 4096)?;
    let mut y = stream.zeros::<f32>(4096)?;
    // ANCHOR: occupancy
    let device = stream.device();
    let kernel = kernels::window::kernel();
    let best = device.max_potential_block_size(kernel, |_threads| 0, None)?;
    kernels::window(&stream, Grid::cover(4096_usize).with_block(best.block_size), &x, &mut y)?;
    println!("{}", device.occupancy(kernel, best.block_size, 0)?); // and what limits it
    // ANCHOR_END: occupancy
    assert_eq!(stream.download(&y)?[50], 9.0);
    Ok(())
}

#[test]
fn policies_change_no_result() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    let (list, table) = (stream.upload(&[2, 0, 2])?, stream.upload(&[1.0, 2.0, 3.0])?);
    let mut y = stream.zeros::<f32>(3)?;
    kernels::look_up(&stream, Grid::cover(3), &list, &table, &mut y)?;
    assert_eq!(stream.download(&y)?, [3.0, 1.0, 3.0]);
    Ok(())
}
