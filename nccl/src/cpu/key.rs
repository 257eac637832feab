//! The numbers of calls: those that have the same key on all ranks meet.

use std::collections::HashMap;

use crate::call::Kind;

/// Calls that are numbered together.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Channel {
    /// Of all ranks.
    All,
    /// Messages in one direction.
    Pair { from: usize, to: usize },
}

/// A rank in one of its roles: a rank that sends to itself is both ends of a pair.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Party {
    pub(super) rank: usize,
    receives: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) channel: Channel,
    pub(super) number: u64,
}

/// How many calls have been numbered, of each rank in each of its roles.
#[derive(Default)]
pub(super) struct Numbers(HashMap<(Channel, Party), u64>);

impl Party {
    /// The role of `rank` in a call, and with which others that is numbered.
    pub(super) fn of(rank: usize, kind: Kind) -> (Channel, Party) {
        let (channel, receives) = match kind {
            Kind::Send(peer) => (Channel::Pair { from: rank, to: peer }, false),
            Kind::Recv(peer) => (Channel::Pair { from: peer, to: rank }, true),
            _ => (Channel::All, false),
        };
        (channel, Party { rank, receives })
    }
}

impl Channel {
    /// Whose calls meet, among `size` ranks.
    pub(super) fn parties(self, size: usize) -> Vec<Party> {
        match self {
            Channel::All => (0..size).map(|rank| Party { rank, receives: false }).collect(),
            Channel::Pair { from, to } => {
                vec![Party { rank: from, receives: false }, Party { rank: to, receives: true }]
            }
        }
    }
}

impl Numbers {
    /// Numbers a call of `rank`.
    pub(super) fn next(&mut self, rank: usize, kind: Kind) -> u64 {
        let issued = self.0.entry(Party::of(rank, kind)).or_default();
        *issued += 1;
        *issued - 1
    }

    /// How many calls `party` has numbered.
    pub(super) fn issued(&self, channel: Channel, party: Party) -> u64 {
        self.0.get(&(channel, party)).copied().unwrap_or(0)
    }
}
