//! Operations in place, and averages. `random` has all operations.

use std::time::Duration;

use crate::model::Value;
use crate::world::Ranks;
use ferrogrid::DeviceBuffer;
use ferrogrid::nccl::{Operation, ReduceOp};

/// A time-out that nothing reaches.
const LONG: Duration = Duration::from_secs(60);

/// The data of all ranks after an operation on them in place.
fn in_place<T: Value>(
    ranks: &Ranks,
    data: impl Fn(usize) -> Vec<T>,
    operation: impl for<'a> Fn(usize, &'a Ranks, &'a mut DeviceBuffer<T>) -> Operation<'a>,
) -> Vec<Vec<T>> {
    let mut buffers: Vec<_> =
        (0..ranks.len()).map(|rank| ranks.stream(rank).upload(&data(rank)).unwrap()).collect();
    ranks.run(buffers.iter_mut().enumerate().map(|(rank, data)| operation(rank, ranks, data))).unwrap();
    (0..ranks.len()).map(|rank| ranks.stream(rank).download(&buffers[rank]).unwrap()).collect()
}

#[test]
fn operations_in_place_match_those_that_are_not() {
    let ranks = Ranks::with_timeout(LONG);
    let size = ranks.len();
    let own = |rank: usize| vec![rank as u32 + 1, 10 * rank as u32];
    let sums = [(1..=size as u32).sum::<u32>(), (0..size as u32).map(|rank| 10 * rank).sum()];
    let reduced = in_place(&ranks, own, |rank, ranks, data| {
        ranks.communicators[rank].all_reduce_in_place(ReduceOp::Sum, data)
    });
    assert_eq!(reduced, vec![sums; size]);

    let at_root = in_place(&ranks, own, |rank, ranks, data| {
        ranks.communicators[rank].reduce_in_place(ReduceOp::Sum, 1, data)
    });
    let expected: Vec<_> = (0..size).map(|rank| if rank == 1 { sums.to_vec() } else { own(rank) }).collect();
    assert_eq!(at_root, expected);

    let sent =
        in_place(&ranks, own, |rank, ranks, data| ranks.communicators[rank].broadcast_in_place(1, data));
    assert_eq!(sent, vec![own(1); size]);

    let parts = |rank: usize| (0..size).map(|part| if part == rank { part as u32 + 7 } else { 0 }).collect();
    let gathered =
        in_place(&ranks, parts, |rank, ranks, data| ranks.communicators[rank].all_gather_in_place(data));
    assert_eq!(gathered, vec![(0..size).map(|part| part as u32 + 7).collect::<Vec<_>>(); size]);

    let shares = |rank: usize| (0..size).map(|part| (100 * part + rank) as u32).collect();
    let scattered = in_place(&ranks, shares, |rank, ranks, data| {
        ranks.communicators[rank].reduce_scatter_in_place(ReduceOp::Max, data)
    });
    for (rank, data) in scattered.iter().enumerate() {
        assert_eq!(data[rank], (100 * rank + size - 1) as u32);
    }
}

#[test]
fn an_average_divides_by_the_number_of_ranks() {
    let ranks = Ranks::with_timeout(LONG);
    let size = ranks.len();
    let average = in_place(
        &ranks,
        |rank| vec![(size * rank) as f32, 8.0],
        |rank, ranks, data| ranks.communicators[rank].all_reduce_in_place(ReduceOp::Average, data),
    );
    let sum: usize = (0..size).sum();
    assert_eq!(average, vec![vec![sum as f32, 8.0]; size]);
    let average = in_place(
        &ranks,
        |rank| vec![10 + rank as u32],
        |rank, ranks, data| ranks.communicators[rank].all_reduce_in_place(ReduceOp::Average, data),
    );
    assert_eq!(average, vec![vec![10 + (sum / size) as u32]; size]);
}
