//! Collective operations and messages, against a model: of all element types, in place or not, in random groups and streams.

use std::fmt::Debug;
use std::time::Duration;

use crate::world::Ranks;
use ferrogrid::DeviceBuffer;
use ferrogrid::bytemuck::Pod;
use ferrogrid::nccl::{Element, Group, Operation, ReduceOp};

/// A time-out that nothing reaches.
const LONG: Duration = Duration::from_secs(60);

/// An element type in the model.
trait Value: Element + Pod + PartialEq + Debug {
    /// Whether arithmetic is exact whatever comes, because it wraps.
    const WRAPS: bool;

    fn small(value: u8) -> Self;
    fn add(self, other: Self) -> Self;
    fn multiply(self, other: Self) -> Self;
    fn less(self, other: Self) -> Self;
    fn more(self, other: Self) -> Self;
    fn divide(self, count: usize) -> Self;
}

macro_rules! integers {
    ($($type:ty)*) => { $(
        impl Value for $type {
            const WRAPS: bool = true;

            fn small(value: u8) -> Self {
                value as $type
            }
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            fn multiply(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            fn less(self, other: Self) -> Self {
                std::cmp::min(self, other)
            }
            fn more(self, other: Self) -> Self {
                std::cmp::max(self, other)
            }
            fn divide(self, count: usize) -> Self {
                self / count as $type
            }
        }
    )* };
}

integers! { i8 u8 i32 u32 i64 u64 }

macro_rules! floats {
    ($($(#[$attribute:meta])* $type:ty: $of:expr;)*) => { $(
        $(#[$attribute])*
        impl Value for $type {
            const WRAPS: bool = false;

            fn small(value: u8) -> Self {
                $of(f32::from(value))
            }
            fn add(self, other: Self) -> Self {
                self + other
            }
            fn multiply(self, other: Self) -> Self {
                self * other
            }
            fn less(self, other: Self) -> Self {
                if other < self { other } else { self }
            }
            fn more(self, other: Self) -> Self {
                if other > self { other } else { self }
            }
            fn divide(self, count: usize) -> Self {
                self / $of(count as f32)
            }
        }
    )* };
}

floats! {
    f32: f32::from;
    f64: f64::from;
    #[cfg(feature = "half")]
    ferrogrid::device::half::f16: ferrogrid::device::half::f16::from_f32;
    #[cfg(feature = "half")]
    ferrogrid::device::half::bf16: ferrogrid::device::half::bf16::from_f32;
}

/// What the model does with the elements of all ranks.
fn reduced<T: Value>(op: ReduceOp<T>, factors: &[T], sources: &[Vec<T>]) -> Vec<T> {
    let of = |index: usize| {
        let value = |rank: usize| match op {
            ReduceOp::ScaledSum(_) => sources[rank][index].multiply(factors[rank]),
            _ => sources[rank][index],
        };
        let combine = match op {
            ReduceOp::Product => T::multiply,
            ReduceOp::Min => T::less,
            ReduceOp::Max => T::more,
            _ => T::add,
        };
        let value = (0..sources.len()).map(value).reduce(combine).unwrap();
        if op == ReduceOp::Average { value.divide(sources.len()) } else { value }
    };
    (0..sources[0].len()).map(of).collect()
}

/// One operation of all ranks, as drawn.
#[derive(Debug, Clone, Copy)]
enum Drawn<T> {
    AllReduce(ReduceOp<T>),
    Reduce(ReduceOp<T>, usize),
    Broadcast(usize),
    AllGather,
    ReduceScatter(ReduceOp<T>),
    AllToAll,
    Gather(usize),
    Scatter(usize),
    Message(usize, usize),
}

fn draw<T: Value>(random: &mut fastrand::Rng, ranks: usize) -> Drawn<T> {
    // NCCL has no average of signed integers below zero that it documents: it is tested by itself.
    let ops =
        [ReduceOp::Sum, ReduceOp::Product, ReduceOp::Min, ReduceOp::Max, ReduceOp::ScaledSum(T::small(0))];
    let (op, root) = (ops[random.usize(..ops.len())], random.usize(..ranks));
    match random.u8(..9) {
        0 => Drawn::AllReduce(op),
        1 => Drawn::Reduce(op, root),
        2 => Drawn::Broadcast(root),
        3 => Drawn::AllGather,
        4 => Drawn::ReduceScatter(op),
        5 => Drawn::AllToAll,
        6 => Drawn::Gather(root),
        7 => Drawn::Scatter(root),
        _ => Drawn::Message(root, random.usize(..ranks)),
    }
}

impl<T: Value> Drawn<T> {
    /// How many elements source and target have; 0 for none.
    fn lengths(self, rank: usize, ranks: usize, count: usize) -> (usize, usize) {
        match self {
            Drawn::AllReduce(_) | Drawn::Broadcast(_) => (count, count),
            Drawn::Reduce(_, root) => (count, if rank == root { count } else { 0 }),
            Drawn::AllGather => (count, count * ranks),
            Drawn::ReduceScatter(_) => (count * ranks, count),
            Drawn::AllToAll => (count * ranks, count * ranks),
            Drawn::Gather(root) => (count, if rank == root { count * ranks } else { 0 }),
            Drawn::Scatter(root) => (if rank == root { count * ranks } else { 0 }, count),
            Drawn::Message(from, to) => {
                (if rank == from { count } else { 0 }, if rank == to { count } else { 0 })
            }
        }
    }

    /// What is in each rank's target afterwards.
    fn model(self, factors: &[T], sources: &[Vec<T>], count: usize) -> Vec<Vec<T>> {
        let ranks = sources.len();
        let part = |from: usize, index: usize| sources[from][index * count..][..count].to_vec();
        let gathered = || sources.concat();
        let only = |rank: usize, data: Vec<T>| {
            (0..ranks).map(|it| if it == rank { data.clone() } else { Vec::new() }).collect()
        };
        match self {
            Drawn::AllReduce(op) => vec![reduced(op, factors, sources); ranks],
            Drawn::Reduce(op, root) => only(root, reduced(op, factors, sources)),
            Drawn::Broadcast(root) => vec![sources[root].clone(); ranks],
            Drawn::AllGather => vec![gathered(); ranks],
            Drawn::ReduceScatter(op) => {
                let all = reduced(op, factors, sources);
                (0..ranks).map(|rank| all[rank * count..][..count].to_vec()).collect()
            }
            Drawn::AllToAll => {
                (0..ranks).map(|to| (0..ranks).flat_map(|from| part(from, to)).collect()).collect()
            }
            Drawn::Gather(root) => only(root, gathered()),
            Drawn::Scatter(root) => (0..ranks).map(|rank| part(root, rank)).collect(),
            Drawn::Message(from, to) => only(to, sources[from].clone()),
        }
    }
}

/// The source and the target of an operation on one rank, and what the model has for them.
struct Pair<T: Value> {
    source: DeviceBuffer<T>,
    target: DeviceBuffer<T>,
    values: [Vec<T>; 2],
}

/// How many elements each buffer has.
const LENGTH: usize = 96;

impl<T: Value> Pair<T> {
    fn new(ranks: &Ranks, rank: usize, random: &mut fastrand::Rng) -> Self {
        let values = [(); 2].map(|()| (0..LENGTH).map(|_| T::small(random.u8(1..3))).collect::<Vec<_>>());
        let [source, target] = [0, 1].map(|index| ranks.streams[rank][index].upload(&values[index]).unwrap());
        Pair { source, target, values }
    }

    /// The old target is the next source.
    fn swap(&mut self) {
        std::mem::swap(&mut self.source, &mut self.target);
        self.values.swap(0, 1);
    }
}

/// Operations on random parts of buffers, in groups of one to three, on random streams; nothing is waited for until the end.
fn random_groups<T: Value>(steps: usize) {
    let seed = std::env::var("FERROGRID_STRESS_SEED")
        .map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("FERROGRID_STRESS_SEED={seed} for {}", std::any::type_name::<T>());
    let mut random = fastrand::Rng::with_seed(seed);
    let ranks = Ranks::with_timeout(LONG);
    let size = ranks.len();
    let mut pairs: Vec<Vec<Pair<T>>> = Vec::new();
    for step in 0..steps {
        if step == 0 || !T::WRAPS {
            let of_rank = |rank| (0..3).map(|_| Pair::new(&ranks, rank, &mut random)).collect();
            pairs = (0..size).map(of_rank).collect();
        }
        let drawn: Vec<_> = (0..random.usize(1..4))
            .map(|_| {
                let count = random.usize(..=LENGTH / size / 2);
                let factors: Vec<T> = (0..size).map(|_| T::small(random.u8(..3))).collect();
                let places: Vec<(usize, usize)> =
                    (0..size).map(|_| (random.usize(..LENGTH / 2), random.usize(..LENGTH / 2))).collect();
                (draw::<T>(&mut random, size), count, factors, places)
            })
            .collect();
        expect(&mut pairs, &drawn);
        let mut group = Group::new();
        for (rank, pairs) in pairs.iter_mut().enumerate() {
            for (pair, (drawn, count, factors, places)) in pairs.iter_mut().zip(&drawn) {
                for (stream, operation) in
                    operations(&ranks, rank, pair, *drawn, *count, factors[rank], places[rank], &mut random)
                {
                    group.push(&ranks.streams[rank][stream], operation);
                }
            }
        }
        group.run().unwrap_or_else(|error| panic!("step {step}, {drawn:?}: {error}"));
        for pair in pairs.iter_mut().flatten() {
            if random.bool() {
                pair.swap();
            }
        }
        if step % 16 == 15 || step + 1 == steps || !T::WRAPS {
            compare(&ranks, &pairs, step);
        }
    }
}

type Step<T> = (Drawn<T>, usize, Vec<T>, Vec<(usize, usize)>);

/// Performs a group in the model.
fn expect<T: Value>(pairs: &mut [Vec<Pair<T>>], drawn: &[Step<T>]) {
    let size = pairs.len();
    for (index, (drawn, count, factors, places)) in drawn.iter().enumerate() {
        let source = |rank: usize| {
            let (length, _) = drawn.lengths(rank, size, *count);
            pairs[rank][index].values[0][places[rank].0..][..length].to_vec()
        };
        let targets = drawn.model(factors, &(0..size).map(source).collect::<Vec<_>>(), *count);
        for (rank, target) in targets.into_iter().enumerate() {
            if drawn.lengths(rank, size, *count).1 > 0 {
                pairs[rank][index].values[1][places[rank].1..][..target.len()].copy_from_slice(&target);
            }
        }
    }
}

/// The operations of a rank, each with the number of its stream.
#[allow(clippy::too_many_arguments, reason = "what was drawn for one operation")]
fn operations<'a, T: Value>(
    ranks: &'a Ranks,
    rank: usize,
    pair: &'a mut Pair<T>,
    drawn: Drawn<T>,
    count: usize,
    factor: T,
    (from, to): (usize, usize),
    random: &mut fastrand::Rng,
) -> Vec<(usize, Operation<'a>)> {
    let it = &ranks.communicators[rank];
    let (source_length, target_length) = drawn.lengths(rank, ranks.len(), count);
    let source = pair.source.slice(from..from + source_length).unwrap();
    let target = pair.target.slice_mut(to..to + target_length).unwrap();
    let own = |op| if let ReduceOp::ScaledSum(_) = op { ReduceOp::ScaledSum(factor) } else { op };
    let is_root = |root| rank == root;
    let stream = random.usize(..2);
    let operation = match drawn {
        Drawn::AllReduce(op) => it.all_reduce(own(op), source, target),
        Drawn::Reduce(op, root) => it.reduce(own(op), root, source, is_root(root).then_some(target)),
        Drawn::Broadcast(root) => it.broadcast(root, is_root(root).then_some(source), target),
        Drawn::AllGather => it.all_gather(source, target),
        Drawn::ReduceScatter(op) => it.reduce_scatter(own(op), source, target),
        Drawn::AllToAll => it.all_to_all(source, target),
        Drawn::Gather(root) => it.gather(root, source, is_root(root).then_some(target)),
        Drawn::Scatter(root) => it.scatter(root, is_root(root).then_some(source), target),
        Drawn::Message(from, to) => {
            let send = is_root(from).then(|| (stream, it.send(to, source)));
            let recv = is_root(to).then(|| (stream, it.recv(from, target)));
            return send.into_iter().chain(recv).collect();
        }
    };
    vec![(stream, operation)]
}

fn compare<T: Value>(ranks: &Ranks, pairs: &[Vec<Pair<T>>], step: usize) {
    for (rank, pairs) in pairs.iter().enumerate() {
        for pair in pairs {
            let found =
                [&pair.source, &pair.target].map(|buffer| ranks.stream(rank).download(buffer).unwrap());
            assert_eq!(found, pair.values, "rank {rank} after step {step}");
        }
    }
}

#[test]
fn random_groups_of_integers_match_a_model() {
    random_groups::<i8>(100);
    random_groups::<u8>(100);
    random_groups::<i32>(200);
    random_groups::<u32>(200);
    random_groups::<i64>(100);
    random_groups::<u64>(100);
}

#[test]
fn random_groups_of_floats_match_a_model() {
    random_groups::<f32>(60);
    random_groups::<f64>(60);
}

#[test]
#[cfg(feature = "half")]
fn random_groups_of_half_precision_match_a_model() {
    random_groups::<ferrogrid::device::half::f16>(60);
    random_groups::<ferrogrid::device::half::bf16>(60);
}

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
