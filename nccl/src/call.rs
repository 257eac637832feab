//! One operation of one rank, without the types of its buffers.

use std::fmt;

use crate::element::ElementType;
use crate::reduce_op::Reduction;

/// What a rank does, and with which elements.
///
/// `count` is as in NCCL's functions: the elements of the whole message, and where each rank has a part, those of a part.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    pub(crate) kind: Kind,
    pub(crate) element: ElementType,
    pub(crate) count: usize,
    /// Null if this rank reads nothing.
    pub(crate) source: *const u8,
    /// Null if this rank writes nothing.
    pub(crate) target: *mut u8,
}

// SAFETY: the pointers are addresses in memory of a device; each access there states why it is valid.
unsafe impl Send for Call {}
// SAFETY: as above.
unsafe impl Sync for Call {}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    AllReduce(Reduction),
    Reduce(Reduction, usize),
    Broadcast(usize),
    AllGather,
    ReduceScatter(Reduction),
    AllToAll,
    Gather(usize),
    Scatter(usize),
    Send(usize),
    Recv(usize),
}

impl Kind {
    /// The number after those of operations: registering symmetric memory, which waits for other ranks, too.
    pub(crate) const SYMMETRIC_ZEROS: usize = 10;

    /// The names of the functions, by `number`.
    pub(crate) const NAMES: [&str; 11] = [
        "all_reduce",
        "reduce",
        "broadcast",
        "all_gather",
        "reduce_scatter",
        "all_to_all",
        "gather",
        "scatter",
        "send",
        "recv",
        "symmetric_zeros",
    ];

    /// The name of the function.
    pub(crate) fn name(self) -> &'static str {
        Kind::NAMES[self.number()]
    }

    pub(crate) fn number(self) -> usize {
        match self {
            Kind::AllReduce(_) => 0,
            Kind::Reduce(..) => 1,
            Kind::Broadcast(_) => 2,
            Kind::AllGather => 3,
            Kind::ReduceScatter(_) => 4,
            Kind::AllToAll => 5,
            Kind::Gather(_) => 6,
            Kind::Scatter(_) => 7,
            Kind::Send(_) => 8,
            Kind::Recv(_) => 9,
        }
    }

    /// Whether it is several calls to NCCL.
    pub(crate) fn is_several(self) -> bool {
        matches!(self, Kind::AllToAll | Kind::Gather(_) | Kind::Scatter(_))
    }

    pub(crate) fn reduction(self) -> Option<Reduction> {
        match self {
            Kind::AllReduce(reduction) | Kind::Reduce(reduction, _) | Kind::ReduceScatter(reduction) => {
                Some(reduction)
            }
            _ => None,
        }
    }

    /// The root, with what it is called in messages, or the peer.
    #[inline]
    pub(crate) fn named_rank(self) -> Option<(&'static str, usize)> {
        match self {
            Kind::Reduce(_, root) | Kind::Broadcast(root) | Kind::Gather(root) | Kind::Scatter(root) => {
                Some(("root", root))
            }
            Kind::Send(peer) | Kind::Recv(peer) => Some(("peer", peer)),
            _ => None,
        }
    }
}

impl Call {
    /// How many bytes the call of `rank` among `size` reads and writes.
    pub(crate) fn bytes(&self, rank: usize, size: usize) -> (usize, usize) {
        let part = self.count * self.element.size();
        let (whole, at) = (part * size, |root: usize, bytes: usize| if rank == root { bytes } else { 0 });
        match self.kind {
            Kind::AllReduce(_) => (part, part),
            Kind::Reduce(_, root) => (part, at(root, part)),
            Kind::Broadcast(root) => (at(root, part), part),
            Kind::AllGather => (part, whole),
            Kind::ReduceScatter(_) => (whole, part),
            Kind::AllToAll => (whole, whole),
            Kind::Gather(root) => (part, at(root, whole)),
            Kind::Scatter(root) => (at(root, whole), part),
            Kind::Send(_) => (part, 0),
            Kind::Recv(_) => (0, part),
        }
    }

    /// Whether another rank's call is the other part of this one. Factors may differ.
    pub(crate) fn fits(&self, other: &Call) -> bool {
        let alike = match (self.kind, other.kind) {
            (Kind::Send(_), Kind::Recv(_)) | (Kind::Recv(_), Kind::Send(_)) => true,
            (one, two) => {
                let reductions = [one, two].map(|kind| kind.reduction().map(Reduction::name));
                one.name() == two.name()
                    && one.named_rank() == two.named_rank()
                    && reductions[0] == reductions[1]
            }
        };
        alike && self.element == other.element && self.count == other.count
    }
}

impl fmt::Display for Call {
    /// As in `all_reduce (sum) of 4 f32`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        if let Some(reduction) = self.kind.reduction() {
            write!(f, " ({})", reduction.name())?;
        }
        if let Some((role, rank)) = self.kind.named_rank() {
            write!(f, " with {role} {rank}")?;
        }
        write!(f, " of {} {}", self.count, self.element)
    }
}
