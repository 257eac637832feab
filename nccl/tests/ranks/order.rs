//! Order with other work, lifetimes of what takes part, threads, and splits.

use std::fmt::Debug;
use std::time::Duration;

use crate::world::{Ranks, on_gpus, on_threads};
use ferrogrid::nccl::{Communicator, Element, Group, ReduceOp};
use ferrogrid::{Device, DeviceBuffer, Stream};

const LENGTH: usize = 1 << 16;

const LONG: Duration = Duration::from_secs(60);

/// That all elements are `value`.
fn assert_all<T: Element + PartialEq + Debug>(stream: &Stream, buffer: &DeviceBuffer<T>, value: T) {
    let data = stream.download(buffer).unwrap();
    assert_eq!(data.iter().find(|&&found| found != value), None, "of {value:?}");
}

/// Nothing waits between streams: the buffers order them.
#[test]
fn operations_are_ordered_with_work_on_other_streams() {
    let ranks = Ranks::with_timeout(LONG);
    let size = ranks.len() as u32;
    let mut data: Vec<DeviceBuffer<u32>> =
        (0..ranks.len()).map(|rank| ranks.stream(rank).zeros(LENGTH).unwrap()).collect();
    let mut copies: Vec<DeviceBuffer<u32>> =
        (0..ranks.len()).map(|rank| ranks.streams[rank][1].zeros(LENGTH).unwrap()).collect();
    for round in 1..=20_u32 {
        for (rank, data) in data.iter_mut().enumerate() {
            // Later work must not overtake it.
            ranks.streams[rank][1].fill_into(round + rank as u32, data).unwrap();
        }
        let operations = ranks.communicators.iter().zip(&mut data);
        ranks.run(operations.map(|(rank, data)| rank.all_reduce_in_place(ReduceOp::Sum, data))).unwrap();
        for (rank, (data, copy)) in data.iter_mut().zip(&mut copies).enumerate() {
            ranks.streams[rank][1].copy(&*data, copy).unwrap();
            ranks.streams[rank][0].fill_into(0, data).unwrap();
        }
        let sum = size * round + (0..size).sum::<u32>();
        for (rank, copy) in copies.iter().enumerate() {
            assert_all(&ranks.streams[rank][1], copy, sum);
        }
    }
}

#[test]
fn buffers_and_streams_may_be_dropped_when_an_operation_is_enqueued() {
    let ranks = Ranks::with_timeout(LONG);
    for round in 0..20 {
        let mut targets: Vec<DeviceBuffer<u64>> =
            (0..ranks.len()).map(|rank| ranks.stream(rank).zeros(LENGTH).unwrap()).collect();
        {
            let streams: Vec<_> =
                devices_of(&ranks).iter().map(|device| device.new_stream().unwrap()).collect();
            let sources: Vec<_> = streams.iter().map(|stream| stream.fill(round, LENGTH).unwrap()).collect();
            let mut group = Group::new();
            for (((rank, stream), source), target) in
                ranks.communicators.iter().zip(&streams).zip(&sources).zip(&mut targets)
            {
                group.push(stream, rank.all_reduce(ReduceOp::Sum, source, target));
            }
            group.run().unwrap();
        }
        // What is allocated now may get the memory of the sources.
        let _other: Vec<DeviceBuffer<u64>> =
            (0..ranks.len()).map(|rank| ranks.stream(rank).fill(u64::MAX, LENGTH).unwrap()).collect();
        for (rank, target) in targets.iter().enumerate() {
            assert_all(ranks.stream(rank), target, round * ranks.len() as u64);
        }
    }
}

fn devices_of(ranks: &Ranks) -> Vec<Device> {
    ranks.communicators.iter().map(|communicator| communicator.device().clone()).collect()
}

#[test]
fn work_runs_after_its_communicator_is_dropped() {
    for round in 0..5_u32 {
        let mut ranks = Ranks::with_timeout(LONG);
        let size = ranks.len() as u32;
        let mut data: Vec<_> =
            (0..ranks.len()).map(|rank| ranks.stream(rank).fill(round, LENGTH).unwrap()).collect();
        let operations = ranks.communicators.iter().zip(&mut data);
        ranks.run(operations.map(|(rank, data)| rank.all_reduce_in_place(ReduceOp::Sum, data))).unwrap();
        ranks.communicators.clear();
        for (rank, data) in data.iter().enumerate() {
            assert_all(ranks.stream(rank), data, round * size);
        }
    }
}

#[test]
fn a_group_that_is_dropped_or_forgotten_has_done_nothing() {
    let ranks = Ranks::with_timeout(LONG);
    let mut data: Vec<_> =
        (0..ranks.len()).map(|rank| ranks.stream(rank).upload(&[1_u32]).unwrap()).collect();
    for forget in [true, false] {
        let mut group = Group::new();
        group.push(ranks.stream(0), ranks.communicators[0].all_reduce_in_place(ReduceOp::Sum, &mut data[0]));
        assert_eq!((group.len(), group.is_empty()), (1, false));
        if forget { std::mem::forget(group) } else { drop(group) }
    }
    std::mem::forget(ranks.communicators[0].all_reduce_in_place(ReduceOp::Sum, &mut data[0]));
    assert_eq!(ranks.stream(0).download(&data[0]).unwrap(), [1]);
    // The ranks still agree on what comes next.
    let operations = ranks.communicators.iter().zip(&mut data);
    ranks.run(operations.map(|(rank, data)| rank.all_reduce_in_place(ReduceOp::Sum, data))).unwrap();
    assert_eq!(ranks.stream(0).download(&data[0]).unwrap(), [ranks.len() as u32]);
    Group::new().run().unwrap();
}

/// Each rank has a thread, enqueues without groups, and shares its communicator with another thread.
#[test]
fn ranks_of_several_threads() {
    on_threads(LONG, |communicator, stream| {
        let (rank, size) = (communicator.rank(), communicator.size());
        let mut data = stream.upload(&[0_u64]).unwrap();
        for round in 0..100 {
            stream.fill_into(round * rank as u64, &mut data).unwrap();
            communicator.all_reduce_in_place(ReduceOp::Sum, &mut data).enqueue(&stream).unwrap();
            let sum: usize = (0..size).sum();
            assert_eq!(stream.download(&data).unwrap(), [round * sum as u64]);
        }
        let parity = communicator.split(Some((rank % 2) as u32), 0).unwrap().unwrap();
        assert_eq!((parity.rank(), parity.size()), (rank / 2, (size + 1 - rank % 2) / 2));
        parity.broadcast_in_place(0, &mut data).enqueue(&stream).unwrap();
        stream.synchronize().unwrap();
    });
}

#[test]
fn splits_have_their_colors_and_the_order_of_their_keys() {
    let ranks = Ranks::with_timeout(LONG);
    let size = ranks.len();
    // All but rank 0, backwards; and rank 0 alone.
    let parts =
        Communicator::split_all(&ranks.communicators, |rank| (Some(u32::from(rank > 0)), -(rank as i32)))
            .unwrap();
    let mut data: Vec<_> = (0..size).map(|rank| ranks.stream(rank).upload(&[rank as u32]).unwrap()).collect();
    let mut group = Group::new();
    for (rank, (part, data)) in parts.iter().zip(&mut data).enumerate() {
        let part = part.as_ref().unwrap();
        let place = if rank == 0 { (0, 1) } else { (size - 1 - rank, size - 1) };
        assert_eq!((part.rank(), part.size()), place);
        assert_eq!(part.device(), ranks.communicators[rank].device());
        group.push(ranks.stream(rank), part.all_reduce_in_place(ReduceOp::Sum, data));
    }
    group.run().unwrap();
    let sum = (1..size as u32).sum::<u32>();
    for (rank, data) in data.iter().enumerate() {
        assert_eq!(ranks.stream(rank).download(data).unwrap(), [if rank == 0 { 0 } else { sum }]);
    }
    // Of a part there are parts, and some ranks are in none.
    let none = Communicator::split_all(&ranks.communicators, |rank| ((rank == 1).then_some(5), 0)).unwrap();
    let sizes: Vec<_> = none.iter().map(|part| part.as_ref().map(Communicator::size)).collect();
    assert_eq!(sizes, (0..size).map(|rank| (rank == 1).then_some(1)).collect::<Vec<_>>());
    let error = ranks.communicators[0].split(Some(u32::MAX), 0).unwrap_err().to_string();
    assert!(error.contains("color is 4294967295; expected at most 2147483647"), "{error}");
}

/// A rank alone does not wait; one stream can have all ranks of CPU devices, in one group.
#[test]
fn one_stream_for_all_ranks_of_cpu_devices() {
    if on_gpus() {
        return; // A stream has one device, and each rank another one.
    }
    let device = Device::cpu();
    let ranks = Communicator::all(&[device.clone(), device.clone(), device.clone()]).unwrap();
    let stream = device.new_stream().unwrap();
    let mut data: Vec<_> = (0..3_u32).map(|rank| stream.upload(&[rank]).unwrap()).collect();
    for _ in 0..10 {
        let mut group = Group::new();
        for (rank, data) in ranks.iter().zip(&mut data) {
            group.push(&stream, rank.all_reduce_in_place(ReduceOp::Max, data));
        }
        group.run().unwrap();
    }
    assert_eq!(stream.download(&data[0]).unwrap(), [2]);
}

/// Its handle means another stream on each thread of NCCL.
#[test]
fn a_default_stream_of_a_gpu_is_refused() {
    if !on_gpus() {
        return; // On the CPU device each is a stream like others.
    }
    let ranks = Ranks::with_timeout(LONG);
    let it = &ranks.communicators[0];
    let stream = it.device().per_thread_stream().unwrap();
    let mut data = ranks.stream(0).zeros::<u32>(1).unwrap();
    let error = it.all_reduce_in_place(ReduceOp::Sum, &mut data).enqueue(&stream).unwrap_err().to_string();
    assert!(error.starts_with("communication on a default stream is not supported"), "{error}");
    it.check().unwrap(); // nothing was given to NCCL
}

/// NCCL's kernels read the buffers of other ranks of the process.
#[test]
fn gpus_of_one_process_have_access_to_each_other() {
    if !on_gpus() {
        return; // Ranks on CPU devices have one memory.
    }
    let ranks = Ranks::with_timeout(LONG);
    let data = ranks.stream(0).upload(&[1_u32, 2]).unwrap();
    let (device, peer) = (ranks.communicators[1].device(), ranks.communicators[0].device());
    if device.can_access_peer(peer).unwrap() {
        assert_eq!(ranks.stream(1).download(&data).unwrap(), [1, 2]);
    }
}

/// Calls have one order in all streams, whichever thread they are from.
#[test]
fn threads_share_communicators_and_streams() {
    let ranks = Ranks::with_timeout(Duration::from_secs(20));
    let size = ranks.len() as u64;
    let work = |thread: u64| {
        let upload = |rank: usize| ranks.stream(rank).upload(&[thread]).unwrap();
        let mut data: Vec<_> = (0..ranks.len()).map(upload).collect();
        for _ in 0..50 {
            let operations = ranks.communicators.iter().zip(&mut data);
            ranks.run(operations.map(|(rank, data)| rank.all_reduce_in_place(ReduceOp::Sum, data))).unwrap();
        }
        let expected = thread.wrapping_mul((0..50).fold(1, |product: u64, _| product.wrapping_mul(size)));
        for (rank, data) in data.iter().enumerate() {
            assert_eq!(ranks.stream(rank).download(data).unwrap(), [expected]);
        }
    };
    std::thread::scope(|scope| {
        for thread in 1..4 {
            scope.spawn(move || work(thread));
        }
    });
}
