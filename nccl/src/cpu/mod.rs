//! Ranks on CPU devices of one process. Operations run where they are in their streams: each waits until the calls of all ranks
//! have come, and the last one moves the elements of all.
//!
//! `world` is what ranks share, and where their calls meet; `exchange` moves the elements, and `number` combines them.
//! `joining` brings the ranks of one `UniqueId` together, and `splitting` makes new worlds of an old one.

mod exchange;
mod joining;
mod number;
mod splitting;
mod world;

use std::sync::Arc;
use std::time::{Duration, Instant};

use ferrogrid_host::__private::ExternalWork;
use ferrogrid_host::{NcclError, Result};

use crate::communicator::Backend;
use crate::group::Ready;

pub(crate) use joining::join;
pub(crate) use splitting::split;
use world::{Arrived, Ticket, World};

/// One rank of a world.
pub(crate) struct Member {
    world: Arc<World>,
    rank: usize,
}

impl Member {
    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    pub(crate) fn size(&self) -> usize {
        self.world.size()
    }

    /// No more calls come from it.
    pub(crate) fn leave(&self) {
        self.world.leave(self.rank);
    }

    pub(crate) fn abort(&self, error: NcclError) {
        self.world.fail(error);
    }

    pub(crate) fn check(&self) -> Result<()> {
        Ok(self.world.check()?)
    }
}

/// All ranks of a new world.
pub(crate) fn all(size: usize, timeout: Duration) -> Vec<Member> {
    let world = Arc::new(World::new(size, timeout));
    (0..size).map(|rank| Member { world: world.clone(), rank }).collect()
}

/// The calls of a group on one stream: they wait together.
struct OnStream<'a> {
    work: Vec<ExternalWork<'a>>,
    tickets: Vec<Ticket>,
}

/// Enqueues calls whose memory is ordered.
pub(crate) fn enqueue(ready: Vec<Ready<'_>>) -> Result<()> {
    let mut streams: Vec<OnStream<'_>> = Vec::new();
    for Ready { communicator, call, work } in ready {
        let Backend::Cpu(member) = communicator.backend() else {
            unreachable!("they are ranks on CPU devices")
        };
        let ticket = member.world.clone().ticket(member.rank, call);
        let same = |on_stream: &&mut OnStream<'_>| on_stream.work[0].stream().id() == work.stream().id();
        match streams.iter_mut().find(same) {
            Some(on_stream) => {
                on_stream.work.push(work);
                on_stream.tickets.push(ticket);
            }
            None => streams.push(OnStream { work: vec![work], tickets: vec![ticket] }),
        }
    }
    streams.into_iter().try_for_each(|OnStream { work, tickets }| {
        // SAFETY: the accesses of the calls name the memory that they use; a call is carried out while its ticket is in `run`
        // (see `Arrived`).
        unsafe { ExternalWork::join(work).run(Box::new(move || run(tickets))) }
    })
}

/// Waits, on the thread of a stream, until the calls have been carried out.
fn run(tickets: Vec<Ticket>) -> Result<()> {
    let start = Instant::now();
    // All arrive before one waits.
    let arrived: Vec<Arrived> = tickets.into_iter().map(Ticket::arrive).collect();
    let results: Vec<Result<(), NcclError>> = arrived.into_iter().map(|it| it.wait(start)).collect();
    results.into_iter().collect::<Result<(), NcclError>>()?;
    Ok(())
}
