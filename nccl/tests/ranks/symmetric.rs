//! Symmetric buffers: in operations and graphs, dropped in any order, and the agreement of the ranks that make them.

use std::time::{Duration, Instant};

use crate::world::{Ranks, on_threads, short};
use ferrogrid::nccl::{Communicator, Group, ReduceOp};
use ferrogrid::{DeviceBuffer, Error, NcclError, Stream};

/// A time-out that nothing reaches.
const LONG: Duration = Duration::from_secs(60);

const LENGTH: usize = 1 << 12;

/// A symmetric buffer of each rank, with `value` plus the number of the rank in all elements.
fn symmetric(ranks: &Ranks, value: u32) -> Vec<Option<DeviceBuffer<u32>>> {
    let mut buffers =
        Communicator::symmetric_zeros_all::<u32>(&ranks.communicators, ranks.first_streams(), LENGTH)
            .unwrap();
    for (rank, buffer) in buffers.iter_mut().enumerate() {
        assert_eq!(ranks.stream(rank).download(&*buffer).unwrap(), [0; LENGTH]);
        ranks.stream(rank).fill_into(value + rank as u32, buffer).unwrap();
    }
    buffers.into_iter().map(Some).collect()
}

/// Adds up what all ranks have, and checks the sums.
fn add(ranks: &Ranks, data: &mut [Option<DeviceBuffer<u32>>], value: u32) {
    let buffers = data.iter_mut().map(|data| data.as_mut().unwrap());
    let operations = ranks.communicators.iter().zip(buffers);
    ranks.run(operations.map(|(rank, data)| rank.all_reduce_in_place(ReduceOp::Sum, data))).unwrap();
    let size = ranks.len() as u32;
    let sum = size * value + (0..size).sum::<u32>();
    for (rank, data) in data.iter().enumerate() {
        let found = ranks.stream(rank).download(data.as_ref().unwrap()).unwrap();
        assert_eq!(found, [sum; LENGTH], "rank {rank}");
    }
}

#[test]
fn symmetric_buffers_are_buffers_of_operations_and_graphs() {
    let ranks = Ranks::with_timeout(LONG);
    let mut data = symmetric(&ranks, 5);
    add(&ranks, &mut data, 5);
    let mut data: Vec<_> = data.into_iter().flatten().collect();
    let (graphs, ()) = Stream::capture_all(ranks.first_streams(), |captures| {
        let mut held = Vec::new();
        for ((capture, rank), data) in captures.iter().zip(0..).zip(&mut data) {
            held.push(capture.write(data)?);
            capture.fill_into(7_u32 + rank, held.last_mut().unwrap())?;
        }
        let mut group = Group::new();
        for ((capture, rank), data) in captures.iter().zip(&ranks.communicators).zip(&mut held) {
            group.push(capture, rank.all_reduce_in_place(ReduceOp::Max, data));
        }
        group.run()
    })
    .unwrap();
    ranks.launch(graphs, 3);
    for (rank, data) in data.iter().enumerate() {
        assert_eq!(ranks.stream(rank).download(data).unwrap(), [6 + ranks.len() as u32; LENGTH]);
    }
}

/// The fake NCCL checks that a window has the same place on all ranks.
#[test]
fn ranks_drop_symmetric_buffers_in_any_order() {
    let ranks = Ranks::with_timeout(LONG);
    let (mut one, mut two) = (symmetric(&ranks, 10), symmetric(&ranks, 20));
    one[0] = None;
    let mut three = symmetric(&ranks, 30);
    two[1] = None;
    one.clear();
    let mut four = symmetric(&ranks, 40);
    two.reverse();
    two.clear();
    let mut five = symmetric(&ranks, 50);
    add(&ranks, &mut three, 30);
    add(&ranks, &mut four, 40);
    add(&ranks, &mut five, 50);
    std::mem::forget(four);
}

#[test]
fn symmetric_buffers_outlive_their_communicators() {
    let mut ranks = Ranks::with_timeout(LONG);
    let mut data = symmetric(&ranks, 1);
    add(&ranks, &mut data, 1);
    let first = data.remove(0);
    drop(first);
    drop(std::mem::take(&mut ranks.communicators));
    let stream = &ranks.streams[1][0];
    stream.fill_into(3, data[0].as_mut().unwrap()).unwrap();
    assert_eq!(stream.download(data[0].as_ref().unwrap()).unwrap(), [3; LENGTH]);
    ranks.streams.clear();
    drop(data);
}

#[test]
fn ranks_of_several_threads_make_symmetric_buffers() {
    on_threads(LONG, |communicator, stream| {
        let (rank, size) = (communicator.rank() as u64, communicator.size() as u64);
        let mut kept = Vec::new();
        for round in 0..4 {
            let source = communicator.symmetric_zeros::<u64>(&stream, LENGTH).unwrap();
            let mut sum = communicator.symmetric_zeros(&stream, LENGTH).unwrap();
            let mut part = source;
            stream.fill_into(round + rank, &mut part).unwrap();
            // From the same place on all ranks.
            let operation = communicator.all_reduce(
                ReduceOp::Sum,
                part.slice(256..).unwrap(),
                sum.slice_mut(..LENGTH - 256).unwrap(),
            );
            operation.enqueue(&stream).unwrap();
            let found = stream.download(&sum).unwrap();
            assert_eq!(found[..LENGTH - 256], [size * round + (0..size).sum::<u64>(); LENGTH - 256]);
            assert_eq!(found[LENGTH - 256..], [0; 256]);
            // Another one on each rank.
            kept.push(if rank % 2 == 0 { sum } else { part });
        }
    });
}

#[test]
fn different_lengths_are_an_error_of_all_ranks_which_go_on() {
    on_threads(LONG, |communicator, stream| {
        let len = LENGTH + communicator.rank();
        let error = communicator.symmetric_zeros::<u8>(&stream, len).unwrap_err();
        let Error::Nccl(NcclError::Length { operation: "symmetric_zeros", length, expected, .. }) = error
        else {
            panic!("{error}")
        };
        let range = format!("{LENGTH} to {} bytes", LENGTH + communicator.size() - 1);
        assert!(length == len && expected.contains(&range), "{length} {expected}");
        let mut data = communicator.symmetric_zeros::<u8>(&stream, LENGTH).unwrap();
        communicator.all_reduce_in_place(ReduceOp::Sum, &mut data).enqueue(&stream).unwrap();
        stream.synchronize().unwrap();
        assert!(communicator.symmetric_zeros::<u8>(&stream, 0).unwrap().is_empty());
    });
}

/// `fake_gpus` runs it with a driver that has no memory for the second allocation of NCCL.
#[test]
fn a_rank_without_memory_is_an_error_of_all_ranks_which_go_on() {
    if !std::env::var("FAKE_CUDA").is_ok_and(|settings| settings.contains("fail=cuMemAlloc_v2")) {
        return;
    }
    on_threads(LONG, |communicator, stream| {
        let error = communicator.symmetric_zeros::<u8>(&stream, LENGTH).unwrap_err();
        let is_expected = matches!(error, Error::Nccl(NcclError::Call { function: "ncclMemAlloc", .. }));
        assert!(is_expected && error.to_string().contains("cannot allocate 4096 bytes"), "{error}");
        communicator.symmetric_zeros::<u8>(&stream, LENGTH).unwrap();
    });
}

#[test]
fn a_rank_that_makes_a_symmetric_buffer_alone_is_an_error_within_the_time_out() {
    let ranks = Ranks::with_timeout(short());
    let start = Instant::now();
    let error = ranks.communicators[0].symmetric_zeros::<u32>(ranks.stream(0), LENGTH).unwrap_err();
    assert!(start.elapsed() >= short(), "{:?}", start.elapsed());
    // Of the sum by which ranks agree on it.
    assert!(matches!(error, Error::Nccl(NcclError::TimedOut { rank: 0, .. })), "{error}");
    let again = ranks.communicators[0].symmetric_zeros::<u32>(ranks.stream(0), LENGTH).unwrap_err();
    assert_eq!(again, error);
}

#[test]
fn symmetric_buffers_outlive_the_failure_of_their_communicator() {
    let ranks = Ranks::with_timeout(LONG);
    let mut data = symmetric(&ranks, 1);
    add(&ranks, &mut data, 1);
    ranks.communicators[0].abort();
    // What had just run may have failed with it.
    let _settled = ranks.stream(0).synchronize();
    let first = data[0].as_mut().unwrap();
    ranks.stream(0).fill_into(7, &mut *first).unwrap();
    assert_eq!(ranks.stream(0).download(&*first).unwrap(), [7; LENGTH]);
    let refused = ranks.communicators[0].symmetric_zeros::<u32>(ranks.stream(0), 1).unwrap_err();
    assert_eq!(refused, NcclError::Aborted { rank: 0 }.into());
    drop(data);
}

#[test]
fn wrong_streams_and_lengths_of_symmetric_buffers_are_refused() {
    let ranks = Ranks::with_timeout(LONG);
    let it = &ranks.communicators[0];
    let huge = it.symmetric_zeros::<f64>(ranks.stream(0), usize::MAX / 8).unwrap_err();
    assert_eq!(huge, Error::SizeOverflow { length: usize::MAX / 8, element_size: 8 });
    let other = ranks.communicators[1].symmetric_zeros::<u8>(ranks.stream(0), 1);
    if ranks.stream(0).device() != ranks.communicators[1].device() {
        let is_refusal = matches!(other, Err(Error::Nccl(NcclError::StreamDevice { rank: 1, .. })));
        assert!(is_refusal, "{:?}", other.err());
    }
    let recorded = ranks.stream(0).capture(|capture| it.symmetric_zeros::<u8>(capture, 1).map(drop));
    assert!(matches!(recorded, Err(Error::Graph(_))), "{:?}", recorded.err());
}
