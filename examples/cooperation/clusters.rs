//! 2.8 clusters: a histogram with more bins than one block can hold, spread over the blocks of a cluster.
//!
//! Shows: blocks that form clusters (`#[kernel(cluster = 4)]`), and that read each other's shared memory
//! between two barriers of the cluster (`t.publish_cluster(..)`, `bins.block(&t, rank)`).
//! Look at: the time beside that of counting in global memory. Most pairs of bytes are rare: every block adds
//! to all 65536 counters, so counting in shared memory first saves most of the traffic. GPUs have clusters
//! from compute capability 9.0 on; before that, the launch is an error that says so, and only the second
//! method runs.
//!
//! `cargo ferrogrid run clusters`

use ferrogrid::LaunchError;
use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// One bin for each pair of neighbouring bytes.
    fn bin(data: &[u8], i: usize) -> usize {
        usize::from(data[i]) * 256 + usize::from(data[i + 1])
    }

    /// Block r of each cluster counts the bins from r * 16384 on, in 32-bit words of two counters.
    #[kernel(block = 1024, cluster = 4)]
    pub fn spread(
        t: Thread<1>,
        data: &[u8],
        counts: &[DeviceAtomic<u32>],
        mut bins: Shared<[DeviceAtomic<u32>; 8192]>,
    ) {
        bins.fill_with(&t, |_| DeviceAtomic::new(0));
        let bins = t.publish_cluster(bins);
        for i in t.grid_stride(data.len() - 1) {
            let bin = bin(data, i.get());
            let place = bin % 16384;
            bins.block(&t, (bin / 16384) as u32)[place / 2]
                .fetch_add(1 << (place % 2 * 16), atomic::Ordering::Relaxed);
        }
        t.sync_cluster();
        let first = t.cluster_rank() as usize * 16384;
        let mut place = t.thread_rank() as usize;
        while place < 8192 {
            let word = bins[place].load(atomic::Ordering::Relaxed);
            for (half, count) in [word & 0xFFFF, word >> 16].into_iter().enumerate() {
                if count > 0 {
                    counts[first + place * 2 + half].fetch_add(count, atomic::Ordering::Relaxed);
                }
            }
            place += t.block_threads() as usize;
        }
    }

    /// The same in global memory alone.
    #[kernel]
    pub fn global(t: Thread<1>, data: &[u8], counts: &[DeviceAtomic<u32>]) {
        for i in t.grid_stride(data.len() - 1) {
            counts[bin(data, i.get())].fetch_add(1, atomic::Ordering::Relaxed);
        }
    }
}

const BINS: usize = 65536;
/// So that no 16-bit counter of a cluster overflows: a cluster sees fewer bytes than it can count.
const BYTES_PER_CLUSTER: usize = 60_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    let stream = device.new_stream()?;
    let clusters = if device.is_cuda() { 2000 } else { 10 };
    // Like text: small numbers are frequent.
    let random = || fastrand::u8(..) & fastrand::u8(..);
    let data: Vec<u8> = (0..clusters * BYTES_PER_CLUSTER).map(|_| random()).collect();
    let mut expected = vec![0_u32; BINS];
    data.windows(2).for_each(|pair| expected[usize::from(pair[0]) * 256 + usize::from(pair[1])] += 1);
    let data = stream.upload(&data)?;

    println!("device    {}", device.name());
    let grid = Grid::new(clusters * 4, 1024);
    let measure = |name: &str, spread: bool| -> ferrogrid::Result<()> {
        let mut counts = stream.zeros::<u32>(BINS)?;
        let launch = |counts: &mut DeviceBuffer<u32>| match spread {
            true => kernels::spread(&stream, grid, &data, counts.as_atomic()),
            false => kernels::global(&stream, grid, &data, counts.as_atomic()),
        };
        launch(&mut counts)?; // The first launch loads the kernel.
        stream.fill_into(0, &mut counts)?;
        let start = stream.record()?;
        launch(&mut counts)?;
        let time = stream.record()?.elapsed_since(&start)?;
        println!("{name:9} {:.3} ms", time.as_secs_f64() * 1e3);
        assert_eq!(stream.download(&counts)?, expected, "{name}");
        Ok(())
    };
    measure("global", false)?;
    match measure("clusters", true) {
        Ok(()) => {}
        Err(error @ Error::Launch(LaunchError::NoClusters { .. } | LaunchError::NoClusterCode { .. })) => {
            println!("clusters  {error}")
        }
        Err(error) => return Err(error.into()),
    }
    println!("PASS");
    Ok(())
}
