//! A launch in clusters on the CPU: the blocks of a cluster are resident at the same time on one worker. So they can
//! wait for each other and access each other's shared memory. Clusters run in any order.

use std::ptr::NonNull;

use super::block::BlockExecutor;
use super::cooperative::{Meeting, executors_for, run_resident};
use super::first_failure::FirstFailure;
use super::{OwnedLaunch, share};
use crate::backend::cpu::device::CpuDevice;
use crate::error::divergence::BarrierReach;
use crate::error::{Error, Result};

/// Runs all blocks of `launch`, whose grid is made of whole clusters.
///
/// # Safety
/// As for [`OwnedLaunch::run`].
pub(crate) unsafe fn run(launch: &OwnedLaunch, device: &CpuDevice) -> Result<()> {
    let failure = FirstFailure::new();
    let clusters = launch.blocks() / u64::from(blocks_per_cluster(launch));
    match device.pool().filter(|_| clusters > 1) {
        Some(pool) => {
            let tasks = launch.tasks(pool.current_num_threads() as u64, true).min(clusters);
            share(&pool, tasks, |task| {
                let mine = (task..clusters).step_by(tasks as usize);
                // SAFETY: passed on; each cluster is one task's, once.
                unsafe { run_clusters(launch, device, mine, &failure) };
            });
        }
        // SAFETY: passed on.
        None => unsafe { run_clusters(launch, device, 0..clusters, &failure) },
    }
    failure.into_result()
}

/// Runs these clusters one after the other on this CPU thread.
///
/// # Safety
/// As for `run`; each cluster of the launch runs once.
unsafe fn run_clusters(
    launch: &OwnedLaunch,
    device: &CpuDevice,
    clusters: impl Iterator<Item = u64>,
    failure: &FirstFailure<Error>,
) {
    let fresh = || executors_for(launch, device, u64::from(blocks_per_cluster(launch)));
    let mut executors = Vec::new();
    for cluster in clusters {
        let blocks = blocks_of(launch, cluster);
        // The first is the lowest.
        if failure.before(blocks[0]) {
            continue;
        }
        // A stack that was used up spoils its executor. The others go first: who waits for stacks has none.
        if executors.is_empty() || executors.iter().any(BlockExecutor::is_spoiled) {
            executors.drain(..).for_each(|executor| device.keep_resident(executor));
            executors = match fresh() {
                Ok(executors) => executors,
                Err(error) => return failure.note(blocks[0], || error),
            };
        }
        let meeting = Meeting::new(1, BarrierReach::Cluster);
        let all = NonNull::from(&*executors);
        // SAFETY: the executors stay here until that ends below.
        executors.iter().for_each(|executor| unsafe { executor.set_cluster(Some(all)) });
        // SAFETY: passed on.
        unsafe { run_resident(launch, device, &blocks, &executors, &meeting) };
        // SAFETY: nothing is pointed at any more.
        executors.iter().for_each(|executor| unsafe { executor.set_cluster(None) });
        if let Some((block, error)) = meeting.into_failure() {
            failure.note(block, || error);
        }
    }
    executors.into_iter().for_each(|executor| device.keep_resident(executor));
}

fn blocks_per_cluster(launch: &OwnedLaunch) -> u32 {
    launch.shape.cluster.iter().product()
}

/// The numbers in the grid of the blocks of a cluster, by their rank.
fn blocks_of(launch: &OwnedLaunch, number: u64) -> Vec<u64> {
    let (grid, cluster) = (launch.shape.grid.map(u64::from), launch.shape.cluster.map(u64::from));
    let clusters: [u64; 3] = std::array::from_fn(|axis| grid[axis] / cluster[axis]);
    let place = |number: u64, shape: [u64; 3]| {
        [number % shape[0], number / shape[0] % shape[1], number / shape[0] / shape[1]]
    };
    let first = place(number, clusters);
    let block = |rank: u64| {
        let within = place(rank, cluster);
        let [x, y, z]: [u64; 3] = std::array::from_fn(|axis| first[axis] * cluster[axis] + within[axis]);
        x + grid[0] * (y + grid[1] * z)
    };
    (0..cluster.iter().product()).map(block).collect()
}
