//! 5.9 distributed_sort: keys that several devices share are sorted, and each device ends with a range of them.
//!
//! Shows: messages of any length in `ferrogrid::nccl`. Ranks sort their keys, give all others a sample of them, by which all choose the
//! same splitters, where ranges begin, and send each other the keys of their ranges.
//! Look at: the keys, the same as those that one device alone has sorted, and how evenly the ranks share them.
//! The ranks are all GPUs, if there are several; else four CPU devices.
//!
//! `cargo ferrogrid run distributed_sort`

use ferrogrid::nccl::{Communicator, Group};
use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// A step of a bitonic sort: orders keys that are `distance` apart. Runs of `run` keys ascend and descend in turns.
    #[kernel]
    pub fn step(t: Thread<1>, run: usize, distance: usize, keys: &[u32], mut next: DisjointSlice<u32>) {
        let i = t.index();
        let Some(next) = next.get_mut(i) else { return };
        let (own, other) = (keys[i.get()], keys[i.get() ^ distance]);
        let (is_ascending, is_first) = (i.get() & run == 0, i.get() & distance == 0);
        *next = if is_ascending == is_first { own.min(other) } else { own.max(other) };
    }

    /// sample <- keys at even distances
    #[kernel]
    pub fn sample(t: Thread<1>, keys: &[u32], mut sample: DisjointSlice<u32>) {
        let (i, distance) = (t.index(), keys.len() / sample.len());
        let Some(sample) = sample.get_mut(i) else { return };
        *sample = keys[i.get() * distance];
    }

    /// starts <- how many keys are below each splitter, a sample at an even distance; rank 0 has the first keys, too
    #[kernel]
    pub fn count_below(t: Thread<1>, keys: &[u32], samples: &[u32], mut starts: DisjointSlice<u32>) {
        let (i, distance) = (t.index(), samples.len() / starts.len());
        let Some(start) = starts.get_mut(i) else { return };
        let splitter = if i.get() == 0 { 0 } else { samples[i.get() * distance] };
        *start = keys.partition_point(|&key| key < splitter) as u32;
    }
}

type Keys = DeviceBuffer<u32>;
const KEYS: usize = 1 << 14;
/// How many keys of each rank the others see.
const SAMPLE: usize = 64;

/// Sorts a power of two of keys.
fn sort(stream: &Stream, mut keys: Keys) -> ferrogrid::Result<Keys> {
    let (len, mut next) = (keys.len(), stream.zeros(keys.len())?);
    for run in 1..=len.ilog2() {
        for distance in (0..run).rev() {
            kernels::step(stream, Grid::cover(len), 1 << run, 1 << distance, &keys, &mut next)?;
            std::mem::swap(&mut keys, &mut next);
        }
    }
    Ok(keys)
}

/// A rank with its sorted keys.
struct Rank {
    communicator: Communicator,
    stream: Stream,
    keys: Keys,
}

/// Gives each rank a sample of the keys of all.
fn share_samples(ranks: &[Rank]) -> ferrogrid::Result<Vec<Keys>> {
    let (mut all, mut group) = (Vec::new(), Group::new());
    for (rank, Rank { stream, keys, .. }) in ranks.iter().enumerate() {
        let mut samples = stream.zeros(ranks.len() * SAMPLE)?;
        let own = rank * SAMPLE..(rank + 1) * SAMPLE;
        kernels::sample(stream, Grid::cover(SAMPLE), keys, samples.slice_mut(own)?)?;
        all.push(samples);
    }
    for (rank, all) in ranks.iter().zip(&mut all) {
        group.push(&rank.stream, rank.communicator.all_gather_in_place(all));
    }
    group.run()?;
    Ok(all)
}

/// Which keys of `rank` each one is to have, by the samples of all.
fn ranges(rank: &Rank, samples: Keys) -> ferrogrid::Result<Vec<std::ops::Range<usize>>> {
    let (stream, size) = (&rank.stream, rank.communicator.size());
    let (samples, mut starts) = (sort(stream, samples)?, stream.zeros(size)?);
    kernels::count_below(stream, Grid::cover(size), &rank.keys, &samples, &mut starts)?;
    let mut bounds: Vec<usize> = stream.download(&starts)?.iter().map(|&start| start as usize).collect();
    bounds.push(rank.keys.len());
    Ok(bounds.windows(2).map(|bounds| bounds[0]..bounds[1]).collect())
}

/// Gives each rank its keys of all others, and how many those are. Beyond them are some that stay the last, up to a power of two.
fn exchange(ranks: &[Rank], ranges: &[Vec<std::ops::Range<usize>>]) -> ferrogrid::Result<Vec<(Keys, usize)>> {
    let (mut received, mut messages) = (Vec::new(), Group::new());
    for (to, rank) in ranks.iter().enumerate() {
        let count = ranges.iter().map(|ranges| ranges[to].len()).sum::<usize>();
        received.push((rank.stream.fill(u32::MAX, count.next_power_of_two())?, count));
    }
    for (to, (target, (keys, _))) in ranks.iter().zip(&mut received).enumerate() {
        let mut rest = keys.view_mut();
        for (from, (source, ranges)) in ranks.iter().zip(ranges).enumerate() {
            let (own, others) = rest.split_at(ranges[to].len())?;
            rest = others;
            messages.push(&target.stream, target.communicator.recv(from, own));
            let keys = source.keys.slice(ranges[to].clone())?;
            messages.push(&source.stream, source.communicator.send(to, keys));
        }
    }
    messages.run()?;
    Ok(received)
}

/// The sorted keys of each rank: those of all ranks, one after the other, are in order.
fn sort_on(devices: &[Device], keys: &[u32]) -> ferrogrid::Result<Vec<Vec<u32>>> {
    let (mut ranks, shares) = (Vec::new(), keys.chunks(keys.len() / devices.len()));
    for (communicator, keys) in Communicator::all(devices)?.into_iter().zip(shares) {
        let stream = communicator.device().new_stream()?;
        ranks.push(Rank { keys: sort(&stream, stream.upload(keys)?)?, communicator, stream });
    }
    let ranges = ranks.iter().zip(share_samples(&ranks)?).map(|(rank, samples)| ranges(rank, samples));
    let ranges = ranges.collect::<Result<Vec<_>, _>>()?;
    let sorted = |(rank, (keys, count)): (&Rank, (Keys, usize))| {
        rank.stream.download(sort(&rank.stream, keys)?.slice(..count)?)
    };
    ranks.iter().zip(exchange(&ranks, &ranges)?).map(sorted).collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let gpus = if Device::best()?.is_cuda() { Device::count() } else { 0 };
    let devices = match gpus {
        2.. => (0..1 << gpus.ilog2()).map(Device::cuda).collect::<Result<_, _>>()?,
        _ => vec![Device::cpu(); 4],
    };
    let mut random = fastrand::Rng::with_seed(1);
    // Small keys are more frequent than large ones.
    let keys: Vec<u32> = (0..KEYS).map(|_| random.u32(..) >> random.u32(..16)).collect();
    let (together, alone) = (sort_on(&devices, &keys)?, sort_on(&devices[..1], &keys)?);
    let counts: Vec<usize> = together.iter().map(Vec::len).collect();

    println!("device     {}", devices[0].name());
    println!("ranks      {}, which have {counts:?} of {KEYS} keys", devices.len());
    if together.concat() != alone[0] || !alone[0].is_sorted() {
        return Err("the keys are not those of one device".into());
    }
    println!("PASS");
    Ok(())
}
