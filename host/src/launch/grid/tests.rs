//! Tests of which grids a kernel and a device accept, and of the errors for others.

use std::ffi::c_void;

use ferrogrid_device::native::Block;

use super::*;
use crate::kernel::KernelDescriptor;
use crate::kernel::image::ModuleImage;

pub(crate) fn kernel(block: Option<[u32; 3]>, max_threads: Option<u32>) -> Kernel {
    kernel_in_clusters(block, max_threads, None)
}

fn kernel_in_clusters(
    block: Option<[u32; 3]>,
    max_threads: Option<u32>,
    cluster: Option<[u32; 3]>,
) -> Kernel {
    kernel_of(block, max_threads, cluster, false)
}

fn kernel_of(
    block: Option<[u32; 3]>,
    max_threads: Option<u32>,
    cluster: Option<[u32; 3]>,
    cluster_at_launch: bool,
) -> Kernel {
    /// # Safety
    /// None: no launch gets so far.
    unsafe fn never(_: &Block, _: *const *const c_void) {}
    static IMAGE: ModuleImage = ModuleImage::host_only();
    Kernel::new(KernelDescriptor {
        name: "k",
        entry: "k",
        rank: 1,
        block,
        max_threads,
        cluster,
        cluster_at_launch,
        dependent_launch: false,
        in_order: false,
        shared_bytes: 0,
        uses_shared_memory: false,
        params: &[],
        image: &IMAGE,
        constants: &[],
        cpu: never,
        file: file!(),
        line: line!(),
    })
}

fn shape<const R: usize>(grid: Grid<R>) -> Result<Option<LaunchConfig>> {
    grid.resolve(&kernel(None, None), &Limits::CUDA)
}

#[test]
fn a_fixed_block_is_used_and_no_other_is_taken() {
    let fixed = kernel(Some([16, 16, 1]), None);
    let resolve = |grid: Grid<2>| grid.resolve(&fixed, &Limits::CUDA);
    let covered = resolve(Grid::cover([17, 16])).unwrap().unwrap();
    assert_eq!((covered.grid, covered.block), ([2, 1, 1], [16, 16, 1]));
    assert!(resolve(Grid::new([2, 2], [16, 16])).is_ok());
    let mismatch =
        |found| Error::Launch(LaunchError::BlockMismatch { kernel: "k", required: [16, 16, 1], found });
    assert_eq!(resolve(Grid::new([2, 2], [32, 8])), Err(mismatch([32, 8, 1])));
    // A foreign kernel's block may have more axes than the grid.
    let line = Grid::<1>::cover(17).resolve(&fixed, &Limits::CUDA);
    assert_eq!(line, Err(mismatch([16, 1, 1])));
}

#[test]
fn a_launch_chooses_its_cluster_where_the_kernel_lets_it() {
    let free = kernel_of(None, None, None, true);
    let resolve = |grid: Grid<2>| grid.resolve(&free, &Limits::CUDA).map(Option::unwrap);
    let shape = resolve(Grid::new([8, 4], [32, 1]).with_cluster([4, 2])).unwrap();
    assert_eq!(
        (shape.grid, shape.cluster, shape.stated_cluster(&free).unwrap()),
        ([8, 4, 1], [4, 2, 1], [4, 2, 1])
    );
    let shape = resolve(Grid::of_clusters([3, 5], [4, 2], [32, 1])).unwrap();
    assert_eq!((shape.grid, shape.cluster), ([12, 10, 1], [4, 2, 1]));
    assert_eq!(resolve(Grid::new([8, 4], [32, 1])).unwrap().cluster, [1; 3]);
    let too_many = Grid::cover(usize::MAX).with_block(1).with_cluster(2).resolve(&free, &Limits::CUDA);
    assert!(
        matches!(too_many, Err(Error::Launch(LaunchError::GridTooLarge { value: u64::MAX, .. }))),
        "{too_many:?}"
    );
    let whole = |blocks| resolve(Grid::new([blocks, 4], [32, 1]).with_cluster([16, 1])).map(drop);
    assert_eq!(whole(16), Ok(()));
    let partial = |blocks| {
        Err(Error::Launch(LaunchError::PartialCluster { kernel: "k", axis: Axis::X, blocks, cluster: 16 }))
    };
    assert_eq!((whole(15), whole(17)), (partial(15), partial(17)));
    for (cluster, value) in [(0, 0), (MAX_CLUSTER + 1, i64::from(MAX_CLUSTER) + 1)] {
        let limit = MAX_CLUSTER;
        let refused =
            Err(Error::Launch(LaunchError::ClusterSize { kernel: "k", axis: Axis::Y, value, limit }));
        assert_eq!(resolve(Grid::new([8, 4], [32, 1]).with_cluster([1, cluster])).map(drop), refused);
    }
    // Others have the cluster that they were compiled for, or none.
    let (fixed, none) = (kernel_in_clusters(None, None, Some([4, 2, 1])), kernel(None, None));
    let chosen = |kernel: &Kernel, cluster: [u32; 2]| {
        Grid::new([8, 4], [32, 1]).with_cluster(cluster).resolve(kernel, &Limits::CUDA).map(drop)
    };
    let mismatch = |required| {
        Err(Error::Launch(LaunchError::ClusterMismatch { kernel: "k", required, found: [2, 2, 1] }))
    };
    assert_eq!(chosen(&fixed, [4, 2]), Ok(()));
    assert_eq!(chosen(&fixed, [2, 2]), mismatch(Some([4, 2, 1])));
    assert_eq!(chosen(&none, [2, 2]), mismatch(None));
}

#[test]
fn grids_are_made_of_whole_clusters() {
    let clustered = kernel_in_clusters(None, None, Some([4, 2, 1]));
    let resolve = |grid: Grid<2>| grid.resolve(&clustered, &Limits::CUDA);
    let shape = resolve(Grid::cover([33, 25])).unwrap().unwrap();
    assert_eq!((shape.grid, shape.cluster), ([4, 4, 1], [4, 2, 1]));
    assert!(resolve(Grid::new([8, 2], [32, 1])).is_ok());
    let partial =
        Error::Launch(LaunchError::PartialCluster { kernel: "k", axis: Axis::Y, blocks: 3, cluster: 2 });
    assert_eq!(resolve(Grid::new([8, 3], [32, 1])), Err(partial));
    let too_many = resolve(Grid::cover([32, 65_535 * 8]));
    assert!(
        matches!(too_many, Err(Error::Launch(LaunchError::GridTooLarge { value: 65_536, .. }))),
        "{too_many:?}"
    );
}

#[test]
fn default_blocks_respect_the_most_threads_that_a_kernel_takes() {
    let limited = kernel(None, Some(100));
    let block = |shape: Result<Option<LaunchConfig>>| shape.unwrap().unwrap().block;
    assert_eq!(block(Grid::cover(1000).resolve(&limited, &Limits::CUDA)), [64, 1, 1]);
    assert_eq!(block(Grid::cover([99, 99]).resolve(&limited, &Limits::CUDA)), [32, 2, 1]);
    assert_eq!(block(Grid::cover([9, 9, 9]).resolve(&limited, &Limits::CUDA)), [8, 8, 1]);
    let error = Grid::new(1, 101).resolve(&limited, &Limits::CUDA).unwrap_err();
    let expected = Error::Launch(LaunchError::TooManyThreads {
        kernel: "k",
        block: [101, 1, 1],
        threads: 101,
        limit: 100,
    });
    assert_eq!(error, expected);
}

#[test]
fn cover_rounds_up_to_whole_blocks_of_the_default_shape() {
    let cases = [
        (shape(Grid::cover(1)), [1, 1, 1], [256, 1, 1]),
        (shape(Grid::cover(256)), [1, 1, 1], [256, 1, 1]),
        (shape(Grid::cover(257)), [2, 1, 1], [256, 1, 1]),
        (shape(Grid::cover([33, 8])), [2, 1, 1], [32, 8, 1]),
        (shape(Grid::cover([8, 9, 17])), [1, 2, 3], [8, 8, 8]),
        (shape(Grid::cover([100, 100]).with_block([16, 16])), [7, 7, 1], [16, 16, 1]),
    ];
    for (found, grid, block) in cases {
        let found = found.unwrap().unwrap();
        assert_eq!((found.grid, found.block), (grid, block));
    }
}

#[test]
fn covering_nothing_launches_nothing() {
    assert_eq!(shape(Grid::cover(0)), Ok(None));
    assert_eq!(shape(Grid::cover([0, 5])), Ok(None));
    assert_eq!(shape(Grid::cover([usize::MAX, 5, 0])), Ok(None));
}

#[test]
fn no_blocks_launch_nothing() {
    assert_eq!(shape(Grid::new(0, 32)), Ok(None));
    assert_eq!(shape(Grid::blocks([3, 0])), Ok(None));
    assert_eq!(shape(Grid::new([3, 0, 1], [8, 8, 8])), Ok(None));
    let empty = Err(Error::Launch(LaunchError::BlockEmpty { kernel: "k", axis: Axis::X, value: 0 }));
    assert_eq!(shape(Grid::new(0, 0)), empty);
    let clustered = kernel_in_clusters(None, None, Some([4, 1, 1]));
    assert_eq!(Grid::new(0, 32).resolve(&clustered, &Limits::CUDA), Ok(None));
    assert_eq!(Grid::of_clusters(0, 4, 32).resolve(&clustered, &Limits::CUDA), Ok(None));
}

#[test]
fn blocks_have_the_shape_that_cover_takes() {
    let fixed = kernel(Some([16, 16, 1]), None);
    let resolved = Grid::blocks([3, 2]).resolve(&fixed, &Limits::CUDA).unwrap().unwrap();
    assert_eq!((resolved.grid, resolved.block), ([3, 2, 1], [16, 16, 1]));
    let free = shape(Grid::blocks(5)).unwrap().unwrap();
    assert_eq!((free.grid, free.block), ([5, 1, 1], [256, 1, 1]));
    let too_many = shape(Grid::blocks(1_usize << 33));
    assert_eq!(too_many, shape(Grid::new(1_usize << 33, 256)));
    assert!(too_many.is_err());
}

#[test]
fn exact_grids_stay_exact() {
    let found = shape(Grid::new([3, 4], [5, 6])).unwrap().unwrap();
    assert_eq!((found.grid, found.block), ([3, 4, 1], [5, 6, 1]));
}

#[test]
fn sizes_over_the_limits_are_named() {
    assert_eq!(
        shape(Grid::cover(usize::MAX)),
        Err(Error::Launch(LaunchError::GridTooLarge {
            kernel: "k",
            axis: Axis::X,
            value: (usize::MAX as u64).div_ceil(256),
            limit: i32::MAX as u32
        }))
    );
    assert_eq!(
        shape(Grid::new([1, 65_536], [1, 1])),
        Err(Error::Launch(LaunchError::GridTooLarge {
            kernel: "k",
            axis: Axis::Y,
            value: 65_536,
            limit: 65_535
        }))
    );
    assert_eq!(
        shape(Grid::new([1, 1, 1], [1, 1, 65])),
        Err(Error::Launch(LaunchError::BlockTooLarge { kernel: "k", axis: Axis::Z, value: 65, limit: 64 }))
    );
    assert_eq!(
        shape(Grid::cover([9, 9]).with_block([64, 32])),
        Err(Error::Launch(LaunchError::TooManyThreads {
            kernel: "k",
            block: [64, 32, 1],
            threads: 2048,
            limit: 1024
        }))
    );
    assert_eq!(
        shape(Grid::cover(usize::MAX).with_block(u32::MAX)),
        Err(Error::Launch(LaunchError::BlockTooLarge {
            kernel: "k",
            axis: Axis::X,
            value: u32::MAX.into(),
            limit: 1024
        }))
    );
}

#[test]
fn blocks_and_threads_are_numbers_of_any_usual_type() {
    let grids = [Grid::new(4, 256), Grid::new(4_u32, 256_usize), Grid::new([4_usize], [256])];
    let resolved = grids.map(|grid| shape(grid).unwrap().unwrap());
    assert!(resolved.iter().all(|shape| (shape.grid, shape.block) == ([4, 1, 1], [256, 1, 1])));
    let elements = [1000_usize, 9];
    let plane = shape(Grid::new(elements.map(|n| n.div_ceil(8)), [8_u32, 8])).unwrap().unwrap();
    assert_eq!((plane.grid, plane.block), ([125, 2, 1], [8, 8, 1]));
    let literal = shape(Grid::cover([9, 9]).with_block([4, 4])).unwrap().unwrap();
    assert_eq!(literal.grid, [3, 3, 1]);
}

#[test]
fn numbers_of_more_than_32_bits_are_named_and_not_cut_off() {
    let kernel = "k";
    let blocks = |value| {
        Err(Error::Launch(LaunchError::GridTooLarge { kernel, axis: Axis::X, value, limit: i32::MAX as u32 }))
    };
    assert_eq!(shape(Grid::new((1_usize << 32) + 4, 256)), blocks((1 << 32) + 4));
    assert_eq!(shape(Grid::new(usize::MAX, 256)), blocks(u64::MAX));
    let threads =
        Error::Launch(LaunchError::BlockTooLarge { kernel, axis: Axis::Y, value: 1 << 32, limit: 1024 });
    assert_eq!(shape(Grid::new([1, 1], [1, 1_usize << 32])), Err(threads.clone()));
    assert_eq!(shape(Grid::cover([9, 9]).with_block([1, 1_usize << 32])), Err(threads));
    let mended = Grid::new(1, 1_usize << 32).with_block(32);
    assert_eq!(shape(mended).unwrap().unwrap().block, [32, 1, 1]);
    let both = Grid::new(1_usize << 32, 1_usize << 40).with_block(32);
    assert_eq!(shape(both), blocks(1 << 32));
}

#[test]
fn negative_numbers_are_named() {
    let (kernel, axis) = ("k", Axis::X);
    assert_eq!(
        shape(Grid::new(-1, 32)),
        Err(Error::Launch(LaunchError::GridNegative { kernel, axis, value: -1 }))
    );
    assert_eq!(
        shape(Grid::new(1, i32::MIN)),
        Err(Error::Launch(LaunchError::BlockEmpty { kernel, axis, value: i32::MIN.into() }))
    );
}

#[test]
fn the_largest_grid_is_allowed() {
    let blocks = i32::MAX as usize;
    assert_eq!(shape(Grid::cover(blocks * 256)).unwrap().unwrap().grid[0] as usize, blocks);
    assert!(shape(Grid::cover(blocks * 256 + 1)).is_err());
}

/// Along each axis the limit itself is allowed, and one more is named, whatever the other axes have.
#[test]
fn each_limit_of_a_launch_is_the_last_that_is_allowed() {
    // Those of every GPU that CUDA knows.
    let (max_grid, max_block) = ([i32::MAX as u32, 65_535, 65_535], [1024, 1024, 64]);
    for axis in 0..3 {
        let with = |value: u32| {
            let mut sizes = [1_u32; 3];
            sizes[axis] = value;
            sizes
        };
        let (blocks, threads) = (max_grid[axis], max_block[axis]);
        assert_eq!(shape(Grid::new(with(blocks), with(threads))).unwrap().unwrap().grid, with(blocks));
        let more = shape(Grid::new(with(blocks + 1), with(threads))).unwrap_err();
        assert!(
            matches!(more, Error::Launch(LaunchError::GridTooLarge { value, limit, .. }) if value == u64::from(blocks) + 1 && limit == blocks),
            "{more}"
        );
        let more = shape(Grid::new(with(blocks), with(threads + 1))).unwrap_err();
        assert!(
            matches!(more, Error::Launch(LaunchError::BlockTooLarge { value, limit, .. }) if value == u64::from(threads) + 1 && limit == threads),
            "{more}"
        );
    }
}

/// A block has at most 1024 threads, whatever its shape.
#[test]
fn blocks_of_any_shape_have_their_threads_counted() {
    let mut random = fastrand::Rng::with_seed(22);
    let of_any_shape = std::iter::repeat_with(|| {
        let [x, y, z] = Limits::CUDA.max_block.map(|most| 1 << random.u32(0..=most.ilog2()));
        // Some just below a power of two.
        [x - u32::from(x > 1 && random.bool()), y, z]
    });
    for block in
        of_any_shape.take(2000).chain([[1024, 1, 1], [1, 1024, 1], [16, 1, 64], [32, 32, 1], [5, 41, 5]])
    {
        let threads: u32 = block.iter().product();
        match shape(Grid::new([1_u32; 3], block)) {
            Ok(found) => assert!(threads <= 1024 && found.unwrap().block == block, "{block:?}"),
            Err(error) => {
                let expected = Error::Launch(LaunchError::TooManyThreads {
                    kernel: "k",
                    block,
                    threads: threads.into(),
                    limit: 1024,
                });
                assert!(threads > 1024 && error == expected, "{block:?}: {error}");
            }
        }
    }
}

/// Lengths around multiples of the block, and around 2^32.
#[test]
fn a_cover_has_exactly_the_needed_blocks() {
    let mut random = fastrand::Rng::with_seed(22);
    for _ in 0..2000 {
        let block = random.u32(1..=1024);
        let near = if random.bool() { 1_u64 << 32 } else { u64::from(block) * random.u64(1..=1 << 20) };
        let length = near + random.u64(0..=2) - 1;
        let blocks = shape(Grid::cover(length as usize).with_block(block))
            .map(|found| found.map_or(0, |found| u64::from(found.grid[0])));
        let expected = length.div_ceil(block.into());
        match blocks {
            Ok(blocks) => assert_eq!(blocks, expected, "{length} in blocks of {block}"),
            Err(_) => assert!(expected > i32::MAX as u64, "{length} in blocks of {block}"),
        }
    }
}

#[test]
fn zero_sizes_are_named() {
    assert_eq!(
        shape(Grid::new([1, 1], [1, 0])),
        Err(Error::Launch(LaunchError::BlockEmpty { kernel: "k", axis: Axis::Y, value: 0 }))
    );
    assert_eq!(
        shape(Grid::cover(0).with_block(0)),
        Err(Error::Launch(LaunchError::BlockEmpty { kernel: "k", axis: Axis::X, value: 0 }))
    );
}
