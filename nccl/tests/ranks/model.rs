//! What operations give each rank: the model that tests compare with.

use std::fmt::Debug;

use ferrogrid::bytemuck::Pod;
use ferrogrid::nccl::{Element, ReduceOp};

/// An element type in the model.
pub(crate) trait Value: Element + Pod + PartialEq + Debug {
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

/// One operation of all ranks of a communicator, as drawn. A `ScaledSum` has a factor for each rank in place of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Drawn<T> {
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

/// Any operation among that many ranks.
pub(crate) fn draw<T: Value>(random: &mut fastrand::Rng, ranks: usize) -> Drawn<T> {
    let scaled = ReduceOp::ScaledSum(T::small(0));
    let ops = [ReduceOp::Sum, ReduceOp::Product, ReduceOp::Min, ReduceOp::Max, scaled, ReduceOp::Average];
    // NCCL does not document the average of integers below zero; a third of a float is not exact.
    let has_average = !T::WRAPS && ranks.is_power_of_two();
    let ops = &ops[..ops.len() - usize::from(!has_average)];
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
    /// Whether there is a form in one buffer.
    pub(crate) fn has_form_in_place(self) -> bool {
        match self {
            Drawn::AllReduce(_) | Drawn::Reduce(..) | Drawn::Broadcast(_) => true,
            Drawn::AllGather | Drawn::ReduceScatter(_) => true,
            Drawn::AllToAll | Drawn::Gather(_) | Drawn::Scatter(_) | Drawn::Message(..) => false,
        }
    }

    /// How many elements source and target have; 0 for none.
    pub(crate) fn lengths(self, rank: usize, ranks: usize, count: usize) -> (usize, usize) {
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
    pub(crate) fn model(self, factors: &[T], sources: &[Vec<T>], count: usize) -> Vec<Vec<T>> {
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
