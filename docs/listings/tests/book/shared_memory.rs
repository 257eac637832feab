//! Listings of the chapter "Shared memory without races".

use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;
    use ferrogrid::device::shared::{BoxStages, OutputTile, TileStages};

    // ANCHOR: reverse
    /// Reverses each block of 256 elements.
    #[kernel(block = 256)]
    pub fn reverse(t: Thread<1>, x: &[u32], mut y: DisjointSlice<u32>, mut tile: Shared<[u32; 256]>) {
        let i = t.index();
        // 1. Write: each thread reaches only its own element.
        if let Some(place) = tile.get_mut(&t) {
            *place = x.get(i.get()).copied().unwrap_or(0);
        }
        // 2. Barrier: all threads may now read what was written.
        let tile = t.publish(tile);
        // 3. Read: any element.
        if let Some(y) = y.get_mut(i) {
            *y = tile[255 - t.thread_rank() as usize];
        }
    }
    // ANCHOR_END: reverse

    // ANCHOR: tree
    /// The sum of each block of 256 elements, by halves.
    #[kernel(block = 256)]
    pub fn sums(t: Thread<1>, x: &[u32], mut sums: DisjointRows<u32>, mut tile: Shared<[u32; 256]>) {
        let rank = t.thread_rank() as usize;
        tile.fill_with(&t, |_| x.get(t.index().get()).copied().unwrap_or(0));
        let mut half = 128;
        while half > 0 {
            let read = t.publish(tile);
            let other = if rank < half { read[rank + half] } else { 0 };
            tile = t.reclaim(read); // another barrier: all have finished reading
            tile.iter_mut(&t).for_each(|(_, value)| *value += other);
            half /= 2;
        }
        let total = t.publish(tile)[0];
        sums.fill_with(&t, |_| total);
    }
    // ANCHOR_END: tree

    // ANCHOR: function
    /// The largest value of the threads of the block.
    fn block_max<const ID: usize>(t: &Thread<1>, tile: &mut Shared<[f32; 256], ID>, x: f32) -> f32 {
        tile.fill_with(t, |_| x);
        t.with_published(tile, |all| all.iter().copied().fold(f32::MIN, f32::max))
    }

    /// The largest value of each block of 256, and the distance of the others from it.
    #[kernel(block = 256)]
    pub fn below_maximum(
        t: Thread<1>,
        x: &[f32],
        mut largest: DisjointRows<f32>,
        mut below: DisjointSlice<f32>,
        mut tile: Shared<[f32; 256]>,
    ) {
        let own = x.get(t.index().get()).copied().unwrap_or(f32::MIN);
        let maximum = block_max(&t, &mut tile, own); // all threads of the block reach this call
        largest.fill_with(&t, |_| maximum);
        if let Some(below) = below.get_mut(t.index()) {
            *below = maximum - own;
        }
    }
    // ANCHOR_END: function

    // ANCHOR: block_reduce
    /// The same, by `block_reduce`.
    #[kernel(block = 256)]
    pub fn sums_by_block_reduce(
        t: Thread<1>,
        x: &[u32],
        mut sums: DisjointRows<u32>,
        mut scratch: Shared<Scratch<u32>>,
    ) {
        let own = x.get(t.index().get()).copied().unwrap_or(0);
        let total = t.block_reduce(&mut scratch, own, |a, b| a + b);
        sums.fill_with(&t, |_| total);
    }
    // ANCHOR_END: block_reduce

    // ANCHOR: transpose
    /// output[row][column] = input[column][row], by tiles of 32 x 32. One unused element after each row of the tile
    /// keeps a column's elements in different banks.
    #[kernel(block = [32, 8])]
    pub fn transpose(
        t: Thread<2>,
        input: &[f32],
        mut output: DisjointTiles<f32, 32, 32>,
        mut tile: Shared<Padded<f32, 32, 32, 1>>,
    ) {
        let (width, height) = (output.height(), output.width()); // of the input
        let [first_row, first_column] = t.block_idx().map(|block| block as usize * 32);
        tile.fill_with(&t, |[i, j]| {
            let (row, column) = (first_row + i, first_column + j);
            if row < height && column < width { input[row * width + column] } else { 0.0 }
        });
        let tile = t.publish(tile);
        output.fill_with(&t, |[row, column]| tile[column - first_row][row - first_column]);
    }
    // ANCHOR_END: transpose

    // ANCHOR: double
    /// Sums of `steps` tiles of 256 elements, each seen backwards: the next tile is loaded while this one is read.
    #[kernel(block = 256)]
    pub fn backwards(
        t: Thread<1>,
        steps: usize,
        x: &[f32],
        mut y: DisjointSlice<f32>,
        tiles: Shared<Stages<[f32; 256], 2>>,
    ) {
        let (rank, mut sum) = (t.thread_rank() as usize, 0.0);
        let mut tiles = tiles.into_stages();
        for step in 0..=steps {
            let (current, next) = tiles.both();
            if step < steps {
                next.fill_with(&t, |place| x[256 * step + place]);
            }
            if step > 0 {
                sum += current[255 - rank];
            }
            t.advance(&mut tiles); // the only barrier of the round
        }
        if let Some(y) = y.get_mut(t.index()) {
            *y = sum;
        }
    }
    // ANCHOR_END: double

    // ANCHOR: tiles
    /// y <- the sum of each element and those around it, of 3 x 3; 0 counts beyond the edges. A block goes down a strip of 64 columns.
    #[kernel(block = [64, 4])]
    pub fn sums_around(
        t: Thread<2>,
        x: TensorMap<f32, 72, 6>,
        mut y: DisjointSlice<f32, 2>,
        tiles: Shared<TileStages<f32, 72, 6, 3>>,
    ) {
        let [column, row] = t.thread_idx().map(|axis| axis as usize);
        let first = 64 * t.block_idx()[0] as isize;
        let (mut tiles, mut places) = (tiles.into_stages(), t.grid_stride(x.width(), x.height()));
        for step in 0..x.height().div_ceil(4) + 2 {
            tiles.copy(&t, x, [4 * step as isize - 1, first - 4]); // row and column of its first element
            if step >= 2 {
                let tile = tiles.current(); // of the step before the last one
                let around = (0..9).map(|k| tile[[row + k / 3, column + 3 + k % 3]]);
                let sum = around.sum();
                if let Some(y) = places.next().and_then(|place| y.get_mut(place)) {
                    *y = sum;
                }
            }
            t.advance(&mut tiles);
        }
    }
    // ANCHOR_END: tiles

    // ANCHOR: stored
    /// As `sums_around`, with no edges to think of: sums beyond them are not stored.
    #[kernel(block = [64, 4])]
    pub fn sums_by_tiles(
        t: Thread<2>,
        x: TensorMap<f32, 72, 6>,
        y: TensorMapMut<f32, 64, 4>,
        tiles: Shared<TileStages<f32, 72, 6, 3>>,
        mut sums: Shared<OutputTile<f32, 64, 4>>,
    ) {
        let (mut tiles, first) = (tiles.into_stages(), 64 * t.block_idx()[0] as usize);
        for step in 0..x.height().div_ceil(4) + 2 {
            tiles.copy(&t, x, [4 * step as isize - 1, first as isize - 4]);
            if step >= 2 {
                let tile = tiles.current();
                let around =
                    |[row, column]: [usize; 2]| (0..9).map(move |k| tile[[row + k / 3, column + 3 + k % 3]]);
                sums.fill_with(&t, |place| around(place).sum());
                let read = t.publish(sums);
                y.store(&t, &read, [4 * (step - 2), first]); // row and column of its first element
                sums = t.reclaim(read); // when all of it has been read
            }
            t.advance(&mut tiles);
        }
    }
    // ANCHOR_END: stored

    // ANCHOR: boxes
    /// y <- the sum of each element's six neighbours; 0 counts beyond the faces. A block has 4 layers of 8 x 8.
    #[kernel(block = [8, 8, 4])]
    pub fn neighbours(
        t: Thread<3>,
        x: BoxMap<[[[f32; 16]; 10]; 6]>,
        mut y: DisjointSlice<f32, 3>,
        boxes: Shared<BoxStages<[[[f32; 16]; 10]; 6], 2>>,
    ) {
        let [across, down, deep] = t.block_idx().map(|block| block as isize);
        let mut boxes = boxes.into_stages();
        boxes.copy(&t, x, [4 * deep - 1, 8 * down - 1, 8 * across - 4]); // layer, row and column of its first element
        t.advance(&mut boxes);
        let (x, [i, j, k]) = (boxes.current(), t.thread_idx().map(|axis| axis as usize));
        let [k, j, i] = [k + 1, j + 1, i + 4];
        if let Some(y) = y.get_mut(t.index()) {
            let in_layer = x[[k, j, i - 1]] + x[[k, j, i + 1]] + x[[k, j - 1, i]] + x[[k, j + 1, i]];
            *y = in_layer + x[[k - 1, j, i]] + x[[k + 1, j, i]];
        }
    }
    // ANCHOR_END: boxes

    // ANCHOR: claims
    /// The Walsh-Hadamard transform of each row of 512 elements, in place: a thread changes both elements of its pair.
    #[kernel(block = 256)]
    pub fn transform(
        t: Thread<1>,
        mut rows: DisjointRows<f32>,
        mut tile: Shared<[f32; 512]>,
        mut scratch: Shared<ClaimScratch<16>>,
    ) {
        let mut own = rows.iter_mut(&t);
        tile.fill_with(&t, |_| own.next().map_or(0.0, |(_, x)| *x));
        let pair = t.thread_rank() as usize;
        for stage in 0..9 {
            let distance = 1 << stage;
            let first = pair / distance * 2 * distance + pair % distance;
            t.with_claims(&mut tile, &mut scratch, |claims| {
                if let (Some(a), Some(b)) = (claims.claim(first), claims.claim(first + distance)) {
                    (*a, *b) = (*a + *b, *a - *b);
                }
            });
        }
        let tile = t.publish(tile);
        rows.fill_with(&t, |column| tile[column]);
    }
    // ANCHOR_END: claims

    // ANCHOR: merge_sort
    /// Sorts each 1024 numbers by their absolute value; the last block may have fewer.
    #[kernel(block = 256)]
    pub fn by_magnitude(
        t: Thread<1>,
        n: usize,
        mut x: DisjointSlice<[f32; 4]>,
        mut scratch: Shared<MergeSortScratch<f32, 256, 4>>,
    ) {
        let valid = (n - 1024 * t.block_idx()[0] as usize).min(1024) as u32;
        let mine = x.get_mut(t.index()).map_or([0.0; 4], |x| *x);
        let sorted = t.block_merge_sort_valid(&mut scratch, mine, valid, |a, b| a.abs() < b.abs());
        if let Some(x) = x.get_mut(t.index()) {
            *x = sorted;
        }
    }
    // ANCHOR_END: merge_sort

    // ANCHOR: groups
    /// Sums by key, where neighbours often have the same key: an atomic addition for each key of a warp.
    #[kernel(block = 256)]
    pub fn sums_by_key(t: Thread<1>, keys: &[u32], x: &[u32], sums: &[DeviceAtomic<u32>]) {
        let i = t.index().get();
        let (key, x) = (keys.get(i).copied().unwrap_or(0), x.get(i).copied().unwrap_or(0));
        let group = t.warp().labeled_partition(key);
        let sum = group.reduce_add(x);
        if group.elect() {
            sums[key as usize].fetch_add(sum, atomic::Ordering::Relaxed);
        }
    }
    // ANCHOR_END: groups

    // ANCHOR: warp
    /// The largest element that each warp of 32 threads reads, without shared memory.
    #[kernel(block = 32)]
    pub fn largest(t: Thread<1>, x: &[f32], mut largest: DisjointRows<f32>) {
        let own = x.get(t.index().get()).copied().unwrap_or(f32::NEG_INFINITY);
        let most = t.warp().reduce(own, f32::max);
        largest.fill_with(&t, |_| most);
    }
    // ANCHOR_END: warp

    // ANCHOR: dynamic
    /// y[i] = x[i] - the block's first element; for any number of threads.
    #[kernel]
    pub fn relative(t: Thread<1>, x: &[i32], mut y: DisjointSlice<i32>, mut tile: SharedSlice<i32>) {
        tile.fill_with(&t, |_| x.get(t.index().get()).copied().unwrap_or(0));
        let tile = t.publish(tile);
        if let Some(y) = y.get_mut(t.index()) {
            *y = tile[t.thread_rank() as usize] - tile[0];
        }
    }
    // ANCHOR_END: dynamic

    // ANCHOR: cooperative
    /// Every element of a ring becomes the mean of its neighbours, `steps` times, in one launch.
    #[kernel(cooperative)]
    pub fn spread(t: Thread<1>, steps: u32, a: &[DeviceAtomic<f32>], b: &[DeviceAtomic<f32>]) {
        use atomic::Ordering::Relaxed;
        let n = a.len();
        for step in 0..steps {
            let (from, to) = if step % 2 == 0 { (a, b) } else { (b, a) };
            for i in t.grid_stride(n) {
                let i = i.get();
                let sum = from[(i + 1) % n].load(Relaxed) + from[(i + n - 1) % n].load(Relaxed);
                to[i].store(0.5 * sum, Relaxed);
            }
            t.sync_grid(); // all blocks
        }
    }
    // ANCHOR_END: cooperative

    // ANCHOR: order
    /// Running sums of any number of elements in one launch; each is read once and written once.
    #[kernel(block = 256)]
    pub fn running_sums(
        t: Thread<1>,
        x: &[[u32; 4]],
        mut y: DisjointSlice<[u32; 4]>,
        order: BlockOrder<u32>,
        mut scratch: Shared<Scratch<u32>>,
    ) {
        let mut items = x.get(t.index().get()).copied().unwrap_or_default();
        for k in 1..4 {
            items[k] += items[k - 1];
        }
        let within = t.block_exclusive_scan(&mut scratch, items[3], 0, |a, b| a + b);
        let sum = t.block_reduce(&mut scratch, items[3], |a, b| a + b);
        let before = order.exclusive(&t, sum, |a, b| a + b).unwrap_or(0); // all earlier blocks
        if let Some(y) = y.get_mut(t.index()) {
            *y = items.map(|item| before + within + item);
        }
    }
    // ANCHOR_END: order
}

#[test]
fn phases_are_separated_by_barriers() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    let x = stream.upload(&(0..512).collect::<Vec<u32>>())?;
    let mut y = stream.zeros::<u32>(512)?;
    kernels::reverse(&stream, Grid::cover(512), &x, &mut y)?;
    let y = stream.download(&y)?;
    assert_eq!((y[0], y[255], y[256], y[511]), (255, 0, 511, 256));
    Ok(())
}

#[test]
fn functions_share_the_memory_of_the_block() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    let values: Vec<f32> = (0..512).map(|i| (i * 37 % 256) as f32 + (i / 256) as f32).collect();
    let (x, mut largest, mut below) =
        (stream.upload(&values)?, stream.zeros::<f32>(2)?, stream.zeros::<f32>(512)?);
    let rows = largest.view_2d_mut(1, 2)?;
    kernels::below_maximum(&stream, Grid::cover(x.len()), &x, rows, &mut below)?;
    assert_eq!(stream.download(&largest)?, [255.0, 256.0]);
    let expected: Vec<f32> = values.iter().zip(0..).map(|(x, i)| 255.0 + (i / 256) as f32 - x).collect();
    assert_eq!(stream.download(&below)?, expected);
    Ok(())
}

#[test]
fn blocks_add_the_values_of_earlier_ones() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    // ANCHOR: order_launch
    let x = stream.fill(3_u32, 100_000)?;
    let mut y = stream.zeros::<u32>(100_000)?;
    kernels::running_sums(
        &stream,
        Grid::cover(25_000),
        x.view().cast::<[u32; 4]>()?,
        y.view_mut().cast::<[u32; 4]>()?,
    )?;
    assert_eq!(stream.download(&y)?[99_999], 300_000);
    // ANCHOR_END: order_launch
    assert_eq!(stream.download(&y)?, (1..=100_000).map(|i| 3 * i).collect::<Vec<u32>>());
    Ok(())
}

#[test]
fn both_reductions_agree() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    // ANCHOR: sums_launch
    let x = stream.fill(1_u32, 1000)?;
    let mut sums = stream.zeros::<u32>(4)?;
    kernels::sums(&stream, Grid::cover(x.len()), &x, sums.view_2d_mut(1, 4)?)?; // a row for each block
    assert_eq!(stream.download(&sums)?, [256, 256, 256, 232]);
    // ANCHOR_END: sums_launch
    stream.fill_into(0, &mut sums)?;
    kernels::sums_by_block_reduce(&stream, Grid::cover(x.len()), &x, sums.view_2d_mut(1, 4)?)?;
    assert_eq!(stream.download(&sums)?, [256, 256, 256, 232]);
    Ok(())
}

#[test]
fn tiles_are_transposed() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    let (width, height) = (70_usize, 45_usize);
    let input: Vec<f32> = (0..width * height).map(|i| i as f32).collect();
    let x = stream.upload(&input)?;
    let mut y = stream.zeros::<f32>(input.len())?;
    // ANCHOR: transpose_launch
    // One block for each tile of the output, whose width is the input's height.
    let tiles = Grid::new([height.div_ceil(32) as u32, width.div_ceil(32) as u32], [32, 8]);
    kernels::transpose(&stream, tiles, &x, y.view_2d_mut(height, width)?)?;
    // ANCHOR_END: transpose_launch
    let y = stream.download(&y)?;
    for (row, column) in (0..height).flat_map(|row| (0..width).map(move |column| (row, column))) {
        assert_eq!(y[column * height + row], input[row * width + column]);
    }
    Ok(())
}

#[test]
fn tiles_have_what_is_around() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    let [width, height] = [100, 13];
    let x = stream.fill(1.0_f32, width * height)?;
    let mut y = stream.zeros::<f32>(width * height)?;
    let (strips, y_plane) = (Grid::new([2, 1], [64, 4]), y.view_2d_mut(width, height)?);
    kernels::sums_around(&stream, strips, x.view_2d(width, height)?, y_plane)?;
    let within = |place: usize, end: usize| if place == 0 || place + 1 == end { 2.0 } else { 3.0 };
    let expected = |i: usize| within(i / width, height) * within(i % width, width);
    assert_eq!(stream.download(&y)?, (0..width * height).map(expected).collect::<Vec<f32>>());
    let mut y = stream.fill(7.0_f32, width * height)?;
    kernels::sums_by_tiles(&stream, strips, x.view_2d(width, height)?, y.view_2d_mut(width, height)?)?;
    assert_eq!(stream.download(&y)?, (0..width * height).map(expected).collect::<Vec<f32>>());
    Ok(())
}

#[test]
fn boxes_have_what_is_around() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    let [width, height, depth] = [20, 13, 6];
    let x = stream.fill(1.0_f32, width * height * depth)?;
    let mut y = stream.fill(7.0_f32, width * height * depth)?;
    let (grid, of_y) = (Grid::new([3, 2, 2], [8, 8, 4]), y.view_3d_mut(width, height, depth)?);
    kernels::neighbours(&stream, grid, x.view_3d(width, height, depth)?, of_y)?;
    let beside = |place: usize, end: usize| if place == 0 || place + 1 == end { 1.0 } else { 2.0 };
    let expected = |i: usize| {
        beside(i % width, width) + beside(i / width % height, height) + beside(i / width / height, depth)
    };
    assert_eq!(stream.download(&y)?, (0..width * height * depth).map(expected).collect::<Vec<f32>>());
    Ok(())
}

#[test]
fn warps_reduce() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    let x = stream.upload(&(0..50).map(|i| i as f32).collect::<Vec<f32>>())?;
    let mut largest = stream.zeros::<f32>(2)?;
    kernels::largest(&stream, Grid::cover(50), &x, largest.view_2d_mut(1, 2)?)?;
    assert_eq!(stream.download(&largest)?, [31.0, 49.0]);
    Ok(())
}

#[test]
fn shared_memory_is_sized_at_the_launch() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    let x = stream.upload(&(5..133).collect::<Vec<i32>>())?;
    let mut y = stream.zeros::<i32>(128)?;
    // ANCHOR: dynamic_launch
    kernels::relative(&stream, Grid::new(2, 64), &x, &mut y, 64)?; // 64 elements for each block
    // ANCHOR_END: dynamic_launch
    let y = stream.download(&y)?;
    assert_eq!((y[0], y[63], y[64], y[127]), (0, 63, 0, 63));
    Ok(())
}

#[test]
fn blocks_wait_for_each_other() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    let mut a = stream.upload(&[8.0_f32, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])?;
    let mut b = stream.zeros::<f32>(8)?;
    kernels::spread(&stream, Grid::new(2, 32), 2, a.as_atomic(), b.as_atomic())?;
    assert_eq!(stream.download(&a)?, [4.0, 0.0, 2.0, 0.0, 0.0, 0.0, 2.0, 0.0]);
    Ok(())
}

#[test]
fn halves_take_turns() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    let x = stream.upload(&(0..768).map(|i| i as f32).collect::<Vec<f32>>())?;
    let mut y = stream.zeros::<f32>(256)?;
    kernels::backwards(&stream, Grid::cover(256), 3, &x, &mut y)?;
    let y = stream.download(&y)?;
    assert_eq!((y[0], y[255]), (255.0 + 511.0 + 767.0, 256.0 + 512.0));
    Ok(())
}

#[test]
fn pairs_are_changed_in_place() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    let mut x = stream.upload(&(0..512).map(|i| (i % 2) as f32).collect::<Vec<f32>>())?;
    kernels::transform(&stream, Grid::new(1, 256), x.view_2d_mut(512, 1)?)?;
    assert_eq!(stream.download(&x)?[..3], [256.0, -256.0, 0.0]);
    Ok(())
}

#[test]
fn blocks_sort_by_comparison() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    let numbers: Vec<[f32; 4]> =
        (0..300).map(|i| [0, 1, 2, 3].map(|k| ((i * 4 + k) * 7 % 1200) as f32 - 600.0)).collect();
    let mut x = stream.upload(&numbers)?;
    kernels::by_magnitude(&stream, Grid::cover(300), 1200, &mut x)?;
    let x = stream.download(&x)?.concat();
    assert!(x[..1024].is_sorted_by_key(|x| x.abs()) && x[1024..].is_sorted_by_key(|x| x.abs()));
    Ok(())
}

#[test]
fn groups_add_up() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    let keys = stream.upload(&(0..1000).map(|i| i / 100).collect::<Vec<u32>>())?;
    let (x, mut sums) = (stream.fill(2_u32, 1000)?, stream.zeros::<u32>(10)?);
    kernels::sums_by_key(&stream, Grid::cover(1000), &keys, &x, sums.as_atomic())?;
    assert_eq!(stream.download(&sums)?, [200; 10]);
    Ok(())
}
