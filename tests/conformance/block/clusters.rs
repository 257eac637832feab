//! Clusters: indices, barriers, the shared memory of other blocks, and errors for unsupported launches.
//! Devices and images without clusters must report that.

use ferrogrid::prelude::*;
use ferrogrid::{Axis, Kernel, KernelError, LaunchError};

use crate::block::cluster_kernels::{clusters, faulty};
use crate::own_process::in_its_own_process;
use crate::table::not_for_this_device;
use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("blocks_know_their_place_in_their_cluster", blocks_know_their_place_in_their_cluster),
    ("ranks_in_a_cluster_count_along_x_y_and_z", ranks_in_a_cluster_count_along_x_y_and_z),
    ("without_clusters_a_block_is_alone_in_its_own", without_clusters_a_block_is_alone_in_its_own),
    ("blocks_read_the_shared_memory_of_their_cluster", blocks_read_the_shared_memory_of_their_cluster),
    ("slices_of_other_blocks_are_read", slices_of_other_blocks_are_read),
    ("atomics_in_the_shared_memory_of_other_blocks_count", atomics_in_other_blocks_count),
    ("a_cluster_barrier_makes_writes_visible", a_cluster_barrier_makes_writes_visible),
    // In a process of its own, as all cases that panic: compute-sanitizer's memcheck does not allow the atomic
    // operation on the host's memory by which a panicking thread claims the record.
    ("a_block_that_the_cluster_has_not_is_a_panic", |device| {
        in_its_own_process(device, "a_block_that_the_cluster_has_not_is_a_panic")
    }),
    ("partial_clusters_are_refused", partial_clusters_are_refused),
    ("clusters_run_in_graphs", clusters_run_in_graphs),
    ("a_launch_sets_the_cluster_size", a_launch_sets_the_cluster_size),
    ("a_launch_asks_for_clusters_that_the_kernel_takes", a_launch_asks_for_clusters_that_the_kernel_takes),
    ("clusters_of_a_launch_run_in_graphs", clusters_of_a_launch_run_in_graphs),
    ("clusters_of_sixteen_blocks_run_or_are_refused", clusters_of_sixteen_blocks_run_or_are_refused),
    ("a_device_reports_its_number_of_active_clusters", a_device_reports_its_number_of_active_clusters),
    ("a_cluster_barrier_that_a_block_never_reaches_is_found", half_a_cluster_waits),
    ("clusters_are_unsupported_on_older_devices", clusters_are_unsupported_on_older_devices),
];

/// Cases that run in a separate process.
pub(crate) const APART: &[Case] =
    &[("a_block_that_the_cluster_has_not_is_a_panic", a_block_that_the_cluster_has_not_is_a_panic)];

/// Whether `kernel` can run on `device`; if not, the case is skipped.
pub(crate) fn ready(device: &Device, kernel: &'static Kernel) -> Outcome {
    if !device.is_cuda() {
        return Ok(());
    }
    if device.compute_capability().is_some_and(|capability| capability < (9, 0)) {
        return not_for_this_device("it has no clusters");
    }
    if !kernel.architectures().iter().any(|architecture| has_clusters(architecture)) {
        return not_for_this_device("the kernels were built for architectures without clusters");
    }
    Ok(())
}

fn has_clusters(architecture: &str) -> bool {
    let digits = architecture.trim_start_matches("sm_").trim_end_matches(char::is_alphabetic);
    digits.parse::<u32>().is_ok_and(|number| number >= 90)
}

fn blocks_know_their_place_in_their_cluster(device: &Device) -> Outcome {
    ready(device, clusters::places::kernel())?;
    let stream = device.new_stream()?;
    // 7 x 3 blocks cover it, rounded up to 9 x 4.
    let (width, height) = (9 * 8, 4 * 2);
    let mut out = stream.zeros::<[u32; 8]>(width * height)?;
    clusters::places(&stream, Grid::cover([7 * 8 - 3, 3 * 2 - 1]), out.view_2d_mut(width, height)?)?;
    let expected = |i: usize| {
        let (x, y) = ((i % width / 8) as u32, (i / width / 2) as u32);
        [x / 3, y / 2, x % 3, y % 2, 3, 2, x % 3 + y % 2 * 3, 6]
    };
    expect("places", stream.download(&out)?, (0..width * height).map(expected).collect())
}

fn ranks_in_a_cluster_count_along_x_y_and_z(device: &Device) -> Outcome {
    ready(device, clusters::ranks::kernel())?;
    let stream = device.new_stream()?;
    let [width, height, depth] = [4, 3, 4];
    let mut out = stream.zeros::<u32>(width * height * depth)?;
    let grid = Grid::new([4, 3, 4], [1, 1, 1]);
    clusters::ranks(&stream, grid, out.view_3d_mut(width, height, depth)?)?;
    let expected = |i: usize| {
        let [x, y, z] = [i % width, i / width % height, i / width / height];
        (x % 2 + 2 * (y + 3 * (z % 2))) as u32
    };
    expect("ranks", stream.download(&out)?, (0..width * height * depth).map(expected).collect())
}

fn without_clusters_a_block_is_alone_in_its_own(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut out = stream.zeros::<[u32; 5]>(96)?;
    clusters::places_without(&stream, Grid::new(3, 32), &mut out)?;
    expect("places", stream.download(&out)?, (0..96).map(|i| [i / 32, 0, 1, 0, 1]).collect())
}

/// The expected result of `clusters::ring` for one cluster.
fn ring(steps: u32) -> Vec<u32> {
    let mut values: Vec<u32> = (0..4 * 64).map(|i| i / 64 * 100 + i % 64).collect();
    for _ in 0..steps {
        let before = values.clone();
        for (i, value) in values.iter_mut().enumerate() {
            *value += before[(i / 64 + 1) % 4 * 64 + (i + 1) % 64];
        }
    }
    values
}

fn blocks_read_the_shared_memory_of_their_cluster(device: &Device) -> Outcome {
    ready(device, clusters::ring::kernel())?;
    let stream = device.new_stream()?;
    for (blocks, steps) in [(4_u32, 1), (4, 5), (64, 3), (400, 2)] {
        let mut out = stream.zeros::<u32>(blocks as usize * 64)?;
        clusters::ring(&stream, Grid::new(blocks, 64), steps, &mut out)?;
        let expected = ring(steps).repeat(blocks as usize / 4);
        expect(&format!("{blocks} blocks, {steps} steps"), stream.download(&out)?, expected)?;
    }
    Ok(())
}

fn slices_of_other_blocks_are_read(device: &Device) -> Outcome {
    ready(device, clusters::slices::kernel())?;
    let stream = device.new_stream()?;
    for length in [0_u32, 1, 50, 300] {
        let mut out = stream.zeros::<u32>(4 * 32)?;
        clusters::slices(&stream, Grid::new(4, 32), &mut out, length as usize)?;
        let sum = (0..length).map(|i| 1000 + 2 * i).sum::<u32>() + 7 + 8;
        expect(&format!("length {length}"), stream.download(&out)?, vec![sum; 4 * 32])?;
    }
    Ok(())
}

fn atomics_in_other_blocks_count(device: &Device) -> Outcome {
    ready(device, clusters::histogram::kernel())?;
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(11);
    let data: Vec<u8> = (0..50_001).map(|_| random.u8(..) & random.u8(..)).collect();
    let mut expected = vec![0_u32; 256];
    data.iter().for_each(|&byte| expected[usize::from(byte)] += 1);
    let data = stream.upload(&data)?;
    let mut counts = stream.zeros::<u32>(256)?;
    clusters::histogram(&stream, Grid::new(12, 128), &data, counts.as_atomic())?;
    expect("counts", stream.download(&counts)?, expected)
}

fn a_cluster_barrier_makes_writes_visible(device: &Device) -> Outcome {
    ready(device, clusters::tell::kernel())?;
    let stream = device.new_stream()?;
    let (width, height) = (5_u32, 6_u32);
    let mut told = stream.zeros::<u32>((width * height) as usize)?;
    let mut out = stream.zeros::<u32>((width * 32 * height) as usize)?;
    let view = out.view_2d_mut((width * 32) as usize, height as usize)?;
    clusters::tell(&stream, Grid::new([width, height], [32, 1]), told.as_atomic(), view)?;
    let expected = |i: u32| {
        let (x, y) = (i % (width * 32) / 32, i / (width * 32));
        x * 10 + (y ^ 1) + 1
    };
    expect("numbers", stream.download(&out)?, (0..width * 32 * height).map(expected).collect())
}

fn a_block_that_the_cluster_has_not_is_a_panic(device: &Device) -> Outcome {
    ready(device, clusters::of_rank::kernel())?;
    let stream = device.new_stream()?;
    let mut out = stream.zeros::<u32>(64)?;
    clusters::of_rank(&stream, Grid::new(2, 32), 1, &mut out)?;
    expect("the second", stream.download(&out)?, vec![1; 64])?;
    clusters::of_rank(&stream, Grid::new(2, 32), 2, &mut out)?;
    let text =
        expect_error("a third", stream.synchronize(), |error| matches!(error, Error::KernelPanic { .. }))?;
    names(&text, &["of_rank", "cluster_kernels.rs", "no block of this rank"])?;
    clusters::of_rank(&stream, Grid::new(2, 32), 0, &mut out)?;
    expect("the first", stream.download(&out)?, vec![0; 64])
}

fn partial_clusters_are_refused(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut out = stream.zeros::<u32>(6 * 64)?;
    let text = expect_error("six blocks", clusters::ring(&stream, Grid::new(6, 64), 1, &mut out), |error| {
        matches!(
            error,
            Error::Launch(LaunchError::PartialCluster { axis: Axis::X, blocks: 6, cluster: 4, .. })
        )
    })?;
    names(&text, &["ring", "6 blocks along x", "no multiple of the 4 blocks"])
}

fn clusters_run_in_graphs(device: &Device) -> Outcome {
    ready(device, clusters::ring::kernel())?;
    let stream = device.new_stream()?;
    let mut out = stream.zeros::<u32>(8 * 64)?;
    let (graph, ()) = stream.capture(|capture| {
        let mut out = capture.write(&mut out)?;
        clusters::ring(capture, Grid::new(8, 64), 2, &mut out)
    })?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    graph.launch(&stream)?;
    drop(graph);
    expect("values", stream.download(&out)?, ring(2).repeat(2))
}

fn clusters_of_sixteen_blocks_run_or_are_refused(device: &Device) -> Outcome {
    ready(device, clusters::large::kernel())?;
    let stream = device.new_stream()?;
    let mut out = stream.zeros::<u32>(32 * 64)?;
    match clusters::large(&stream, Grid::new(32, 64), &mut out) {
        Ok(()) => expect("sums", stream.download(&out)?, vec![120; 32 * 64]),
        Err(Error::Launch(LaunchError::ClusterTooLarge { cluster: [16, 1, 1], limit, .. })) => {
            expect("a limit of at least what is portable", (8..16).contains(&limit), true)
        }
        Err(other) => Err(other.into()),
    }
}

fn a_launch_sets_the_cluster_size(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let x: Vec<u32> = (0..16 * 32).collect();
    let (input, mut out) = (stream.upload(&x)?, stream.zeros::<u32>(x.len())?);
    let expected = |cluster: usize| -> Vec<u32> {
        x.chunks(32 * cluster).flat_map(|part| vec![part.iter().sum::<u32>(); part.len()]).collect()
    };
    clusters::sums(&stream, Grid::cover(x.len()), &input, &mut out)?;
    expect("each block by itself", stream.download(&out)?, expected(1))?;
    ready(device, clusters::sums::kernel())?;
    for cluster in [1_usize, 2, 4, 8] {
        clusters::sums(&stream, Grid::cover(x.len()).with_cluster(cluster), &input, &mut out)?;
        expect(&format!("clusters of {cluster}"), stream.download(&out)?, expected(cluster))?;
        clusters::sums(&stream, Grid::of_clusters(16 / cluster, cluster, 32), &input, &mut out)?;
        expect(&format!("{} clusters", 16 / cluster), stream.download(&out)?, expected(cluster))?;
    }
    // 3 x 5 blocks cover it, rounded up to 4 x 6.
    let mut places = stream.zeros::<[u32; 8]>(4 * 6)?;
    let grid = Grid::cover([3, 5]).with_block([1, 1]).with_cluster([2, 3]);
    clusters::places_of_launch(&stream, grid, places.view_2d_mut(4, 6)?)?;
    let place = |i: u32| {
        let (x, y) = (i % 4, i / 4);
        [x / 2, y / 3, x % 2, y % 3, 2, 3, x % 2 + y % 3 * 2, 6]
    };
    expect("places", stream.download(&places)?, (0..24).map(place).collect())
}

fn a_launch_asks_for_clusters_that_the_kernel_takes(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut out = stream.zeros::<u32>(64)?;
    let expected = Error::Launch(LaunchError::ClusterMismatch {
        kernel: clusters::of_rank::kernel().name(),
        required: Some([2, 1, 1]),
        found: [4, 1, 1],
    });
    let refused = clusters::of_rank(&stream, Grid::new(4, 32).with_cluster(4), 1, &mut out);
    expect("another size", refused, Err(expected))?;
    let mut places = stream.zeros::<[u32; 5]>(64)?;
    let refused = clusters::places_without(&stream, Grid::new(2, 32).with_cluster(2), &mut places);
    let named = matches!(
        refused,
        Err(Error::Launch(LaunchError::ClusterMismatch { required: None, found: [2, 1, 1], .. }))
    );
    expect("a kernel without clusters", named, true)?;
    ready(device, clusters::of_rank::kernel())?;
    clusters::of_rank(&stream, Grid::of_clusters(1, 2, 32), 1, &mut out)?;
    expect("its own size", stream.download(&out)?, vec![1; 64])?;
    let mut plane = stream.zeros::<[u32; 8]>(32)?;
    let grid = Grid::new([8, 4], [1, 1]).with_cluster([8, 4]);
    let text = expect_error(
        "too many blocks",
        clusters::places_of_launch(&stream, grid, plane.view_2d_mut(8, 4)?),
        |error| {
            matches!(
                error,
                Error::Launch(LaunchError::ClusterTooLarge { cluster: [8, 4, 1], limit: 8..=16, .. })
            )
        },
    )?;
    names(&text, &["places_of_launch", "8 x 4 x 1"])
}

fn clusters_of_a_launch_run_in_graphs(device: &Device) -> Outcome {
    ready(device, clusters::sums::kernel())?;
    let stream = device.new_stream()?;
    let (x, mut out) = (stream.fill(1_u32, 256)?, stream.zeros::<u32>(256)?);
    let (graph, key) = stream.capture(|capture| {
        let (x, mut out) = (capture.read(&x)?, capture.write(&mut out)?);
        clusters::sums(capture, Grid::cover(256).with_cluster(4), x, &mut out)?;
        Ok(out.key())
    })?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    expect("in clusters of four", stream.download(graph.view(key)?)?, vec![128; 256])
}

fn a_device_reports_its_number_of_active_clusters(device: &Device) -> Outcome {
    ready(device, clusters::ring::kernel())?;
    let ring = clusters::ring::kernel();
    expect("the kernel's cluster", ring.cluster(), Some([4, 1, 1]))?;
    let most = device.max_active_clusters(ring, 4, 64, 0)?;
    expect("some", most >= 1, true)?;
    let size = device.max_potential_cluster_size(clusters::places_without::kernel(), 64, 0)?;
    expect("a size", (8..=16).contains(&size), true)
}

fn half_a_cluster_waits(device: &Device) -> Outcome {
    if device.is_cuda() {
        return not_for_this_device("a GPU does not notice");
    }
    let stream = device.new_stream()?;
    faulty::half_waits(&stream, Grid::new(6, 3))?;
    let text = expect_error("half a cluster", stream.synchronize(), |error| {
        let Error::Kernel(KernelError::BlockDivergence {
            waiting,
            ended,
            waiting_blocks: 1,
            ended_blocks: 1,
            ..
        }) = error
        else {
            return false;
        };
        (*waiting, *ended) == ([0; 3], [1, 0, 0])
    })?;
    names(&text, &["half_waits", "wait at the cluster barrier at", "cluster_kernels.rs", "have ended"])?;
    let mut out = stream.zeros::<u32>(64)?;
    clusters::of_rank(&stream, Grid::new(2, 32), 1, &mut out)?;
    expect("afterwards", stream.download(&out)?, vec![1; 64])
}

fn clusters_are_unsupported_on_older_devices(device: &Device) -> Outcome {
    if ready(device, clusters::of_rank::kernel()).is_ok() {
        return not_for_this_device("it has clusters");
    }
    let stream = device.new_stream()?;
    let mut out = stream.zeros::<u32>(64)?;
    let text =
        expect_error("clusters", clusters::of_rank(&stream, Grid::new(2, 32), 1, &mut out), |error| {
            matches!(error, Error::Launch(LaunchError::NoClusters { .. } | LaunchError::NoClusterCode { .. }))
        })?;
    names(&text, &["of_rank", "cluster"])
}
