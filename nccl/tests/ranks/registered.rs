//! Buffers that are registered with a communicator: in operations, in graphs, and dropped in any order.

use std::time::Duration;

use crate::world::Ranks;
use ferrogrid::nccl::{Group, ReduceOp};
use ferrogrid::{DeviceBuffer, Error, NcclError, Stream};

/// A time-out that nothing reaches.
const LONG: Duration = Duration::from_secs(60);

const LENGTH: usize = 1 << 12;

/// A registered buffer of each rank, with the number of the rank plus 1 in all elements.
fn registered(ranks: &Ranks) -> Vec<DeviceBuffer<u32>> {
    let of = |rank: usize| {
        let stream = ranks.stream(rank);
        let mut buffer = ranks.communicators[rank].registered_zeros(stream, LENGTH).unwrap();
        assert_eq!(stream.download(&buffer).unwrap(), [0; LENGTH]);
        stream.fill_into(rank as u32 + 1, &mut buffer).unwrap();
        buffer
    };
    (0..ranks.len()).map(of).collect()
}

fn add(ranks: &Ranks, data: &mut [DeviceBuffer<u32>]) {
    let operations = ranks.communicators.iter().zip(data);
    ranks.run(operations.map(|(rank, data)| rank.all_reduce_in_place(ReduceOp::Sum, data))).unwrap();
}

fn assert_all(ranks: &Ranks, data: &[DeviceBuffer<u32>], value: u32) {
    for (rank, data) in data.iter().enumerate() {
        assert_eq!(ranks.stream(rank).download(data).unwrap(), [value; LENGTH], "rank {rank}");
    }
}

#[test]
fn registered_buffers_are_buffers_of_operations_and_graphs() {
    let ranks = Ranks::with_timeout(LONG);
    let mut data = registered(&ranks);
    add(&ranks, &mut data);
    let (sum, size) = ((1..=ranks.len() as u32).sum::<u32>(), ranks.len() as u32);
    assert_all(&ranks, &data, sum);
    let (graphs, ()) = Stream::capture_all(ranks.first_streams(), |captures| {
        let mut held = Vec::new();
        for (capture, data) in captures.iter().zip(&mut data) {
            held.push(capture.write(data)?);
        }
        let mut group = Group::new();
        for ((capture, rank), data) in captures.iter().zip(&ranks.communicators).zip(&mut held) {
            group.push(capture, rank.all_reduce_in_place(ReduceOp::Sum, data));
        }
        group.run()
    })
    .unwrap();
    ranks.launch(graphs, 3);
    assert_all(&ranks, &data, sum * size.pow(3));
}

#[test]
fn a_registered_buffer_may_be_dropped_before_and_after_its_communicator() {
    for buffers_first in [true, false] {
        let mut ranks = Ranks::with_timeout(LONG);
        let mut data = registered(&ranks);
        add(&ranks, &mut data); // which still runs
        if buffers_first {
            drop(data);
            drop(std::mem::take(&mut ranks.communicators));
        } else {
            drop(std::mem::take(&mut ranks.communicators));
            assert_all(&ranks, &data, (1..=ranks.streams.len() as u32).sum());
            ranks.streams.clear();
            drop(data);
        }
    }
}

#[test]
fn a_registered_buffer_outlives_the_failure_of_its_communicator() {
    let ranks = Ranks::with_timeout(LONG);
    let mut data = registered(&ranks);
    add(&ranks, &mut data);
    assert_all(&ranks, &data, (1..=ranks.len() as u32).sum());
    ranks.communicators[0].abort();
    // What had just run may have failed with it.
    let _settled = ranks.stream(0).synchronize();
    ranks.stream(0).fill_into(7, &mut data[0]).unwrap();
    assert_eq!(ranks.stream(0).download(&data[0]).unwrap(), [7; LENGTH]);
    let refused = ranks.communicators[0].registered_zeros::<u32>(ranks.stream(0), 1).unwrap_err();
    assert_eq!(refused, NcclError::Aborted { rank: 0 }.into());
    drop(data);
}

#[test]
fn wrong_streams_and_lengths_of_registered_buffers_are_refused() {
    let ranks = Ranks::with_timeout(LONG);
    let it = &ranks.communicators[0];
    assert!(it.registered_zeros::<f64>(ranks.stream(0), 0).unwrap().is_empty());
    let huge = it.registered_zeros::<f64>(ranks.stream(0), usize::MAX / 8).unwrap_err();
    assert_eq!(huge, Error::SizeOverflow { length: usize::MAX / 8, element_size: 8 });
    let other = ranks.communicators[1].registered_zeros::<u8>(ranks.stream(0), 1);
    if ranks.stream(0).device() != ranks.communicators[1].device() {
        let is_refusal = matches!(other, Err(Error::Nccl(NcclError::StreamDevice { rank: 1, .. })));
        assert!(is_refusal, "{:?}", other.err());
    }
    let recorded = ranks.stream(0).capture(|capture| it.registered_zeros::<u8>(capture, 1).map(drop));
    assert!(matches!(recorded, Err(Error::Graph(_))), "{:?}", recorded.err());
}
