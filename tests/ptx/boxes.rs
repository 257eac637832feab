//! Facts about tiles and boxes: copies and stores by tensor maps for `sm_90a`.

use crate::{code, count};

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;
    use ferrogrid::device::shared::{BoxStages, OutputBox, OutputTile, TileStages};

    /// y <- the sums of `steps` tiles.
    #[kernel(block = [32, 8])]
    pub fn sum_tiles(
        t: Thread<2>,
        steps: usize,
        x: TensorMap<f32, 36, 8>,
        mut y: DisjointSlice<f32, 2>,
        tiles: Shared<TileStages<f32, 36, 8, 3>>,
    ) {
        let ([column, row], mut tiles, mut sum) =
            (t.thread_idx().map(|axis| axis as usize), tiles.into_stages(), 0.0);
        for step in 0..steps {
            tiles.copy(&t, x, [step as isize, -4]);
            sum += tiles.current()[[row, column]];
            t.advance(&mut tiles);
        }
        if let Some(y) = y.get_mut(t.index()) {
            *y = sum;
        }
    }

    /// y <- sums of elements of two tiles, which have fewer elements than there are threads: all threads make both copies, in which only
    /// some of them have a part where there are no tensor maps.
    #[kernel(block = 64)]
    pub fn sum_two_tiles(
        t: Thread<1>,
        a: TensorMap<u32, 4, 4>,
        b: TensorMap<u32, 4, 4>,
        mut y: DisjointSlice<u32>,
        of_a: Shared<TileStages<u32, 4, 4, 3>>,
        of_b: Shared<TileStages<u32, 4, 4, 3>>,
    ) {
        let (mut of_a, mut of_b, mut sum) = (of_a.into_stages(), of_b.into_stages(), 0);
        for step in 0..10 {
            of_a.copy(&t, a, [0, step * 4]);
            of_b.copy(&t, b, [0, step * 4]);
            t.advance((&mut of_a, &mut of_b));
            sum += of_a.current()[[1, 1]] + of_b.current()[[1, 2]];
        }
        if let Some(y) = y.get_mut(t.index()) {
            *y = sum;
        }
    }

    /// Stores a tile of numbers, and adds it to what is beside that.
    #[kernel(block = [32, 8])]
    pub fn store_tiles(
        t: Thread<2>,
        x: TensorMap<f32, 32, 8>,
        y: TensorMapMut<f32, 32, 8>,
        mut tile: Shared<OutputTile<f32, 32, 8>>,
    ) {
        x.prefetch(&t, [8, 0]);
        tile.fill_with(&t, |[row, column]| (row * column) as f32);
        let read = t.publish(tile);
        y.store(&t, &read, [8, 0]);
        y.add(&t, &read, [8, 32]);
        t.reclaim(read);
    }

    /// Copies a box and stores it, and adds it to what is beside that.
    #[kernel(block = 64)]
    pub fn store_boxes(
        t: Thread<1>,
        x: BoxMap<[[[f32; 8]; 4]; 2]>,
        y: BoxMapMut<[[[f32; 8]; 4]; 2]>,
        boxes: Shared<BoxStages<[[[f32; 8]; 4]; 2], 2>>,
        mut out: Shared<OutputBox<[[[f32; 8]; 4]; 2]>>,
    ) {
        let mut boxes = boxes.into_stages();
        x.prefetch(&t, [0, 0, 8]);
        boxes.copy(&t, x, [-1, 0, -4]);
        t.advance(&mut boxes);
        let x = boxes.current();
        out.fill_with(&t, |place| x[place]);
        let read = t.publish(out);
        y.store(&t, &read, [1, 0, 8]);
        y.add(&t, &read, [0, 0, 8]);
        t.reclaim(read);
    }

    /// As `store_boxes`, of one axis, with fewer elements than threads.
    #[kernel(block = 48)]
    pub fn store_lines(
        t: Thread<1>,
        x: BoxMap<[u32; 32]>,
        y: BoxMapMut<[u32; 32]>,
        boxes: Shared<BoxStages<[u32; 32], 2>>,
        mut out: Shared<OutputBox<[u32; 32]>>,
    ) {
        let mut boxes = boxes.into_stages();
        x.prefetch(&t, 32);
        boxes.copy(&t, x, -4);
        t.advance(&mut boxes);
        let x = boxes.current();
        out.fill_with(&t, |place| x[place]);
        let read = t.publish(out);
        y.store(&t, &read, 8);
        y.add(&t, &read, 40);
        t.reclaim(read);
    }

    /// As `store_boxes`, of five axes.
    #[kernel(block = 64)]
    pub fn copy_of_five_axes(
        t: Thread<1>,
        x: BoxMap<[[[[[u32; 4]; 2]; 2]; 2]; 2]>,
        y: BoxMapMut<[[[[[u32; 4]; 2]; 2]; 2]; 2]>,
        boxes: Shared<BoxStages<[[[[[u32; 4]; 2]; 2]; 2]; 2], 2>>,
        mut out: Shared<OutputBox<[[[[[u32; 4]; 2]; 2]; 2]; 2]>>,
    ) {
        let mut boxes = boxes.into_stages();
        x.prefetch(&t, [0, 0, 0, 0, 8]);
        boxes.copy(&t, x, [0, 0, 0, 0, 4]);
        t.advance(&mut boxes);
        let x = boxes.current();
        out.fill_with(&t, |place| x[place]);
        let read = t.publish(out);
        y.store(&t, &read, [0, 0, 0, 0, 4]);
        y.add(&t, &read, [0, 0, 0, 0, 8]);
        t.reclaim(read);
    }
}

/// The turn's barrier of the block is the only one. Threads wait for a tile once in a turn, and the one that copies for each stage again
/// in the end.
#[test]
fn a_tile_is_one_copy() {
    for (architecture, lines) in code(kernels::sum_tiles::kernel()) {
        let words = ["cp.async.bulk.tensor.2d", "mbarrier.init", "bar.sync", "cp.async.ca.shared", ".local"];
        let found = words.map(|word| count(&lines, word));
        let is_copied = found[3] > 0;
        let expected = match architecture {
            "sm_90a" => [1, 3, 1, 0, 0],
            "sm_75" => [0, 0, 1, 0, 0],
            _ => [0, 0, 1, found[3], 0],
        };
        assert_eq!(found, expected, "{architecture}: {lines:#?}");
        assert_eq!(is_copied, !matches!(architecture, "sm_75" | "sm_90a"), "{architecture}");
    }
}

/// Threads wait for what is stored to have been read before they reclaim it, and the first one again in the end.
#[test]
fn a_tile_is_stored_at_once() {
    for (architecture, lines) in code(kernels::store_tiles::kernel()) {
        let words = [
            "cp.async.bulk.prefetch.tensor.2d",
            "cp.async.bulk.tensor.2d.global",
            "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add",
            "cp.async.bulk.wait_group.read",
            "fence.proxy.async",
            "bar.sync",
            ".local",
        ];
        let found = words.map(|word| count(&lines, word));
        let expected = if architecture == "sm_90a" { [1, 1, 1, 2, 1, 2, 0] } else { [0, 0, 0, 0, 0, 2, 0] };
        assert_eq!(found, expected, "{architecture}: {lines:#?}");
    }
}

/// One branch for each, where threads copy: LLVM has joined none, or the second call would be refused.
#[test]
fn copies_of_two_small_tiles_are_apart() {
    for (architecture, lines) in code(kernels::sum_two_tiles::kernel()) {
        let found = ["cp.async.bulk.tensor", "ld.global"].map(|word| count(&lines, word) > 0);
        let has_maps = architecture == "sm_90a";
        assert_eq!(found, [has_maps, architecture == "sm_75"], "{architecture}: {lines:#?}");
    }
}

/// One instruction each, that of the rank, whatever the length.
#[test]
fn boxes_are_copied_and_stored_at_once() {
    let kernels = [
        (kernels::store_lines::kernel(), 1),
        (kernels::store_boxes::kernel(), 3),
        (kernels::copy_of_five_axes::kernel(), 5),
    ];
    for (kernel, rank) in kernels {
        for (architecture, lines) in code(kernel) {
            let words = [
                &format!("cp.async.bulk.prefetch.tensor.{rank}d"),
                &format!("cp.async.bulk.tensor.{rank}d.shared"),
                &format!("cp.async.bulk.tensor.{rank}d.global"),
                &format!("cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.add"),
                ".local",
                "div",
            ];
            let found = words.map(|word| count(&lines, word));
            let each = usize::from(architecture == "sm_90a");
            assert_eq!(found, [each, each, each, each, 0, 0], "{architecture}, rank {rank}: {lines:#?}");
        }
    }
}
