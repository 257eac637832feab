//! Ranks on CPU devices. Operations run where they are in their streams: each waits until the calls of all ranks have come, and the
//! last one moves the elements of all.
//!
//! `world` is what ranks share, and where their calls meet by the numbers of `key`; `exchange` moves the elements, and `number`
//! combines them. `joining` brings the ranks of one `UniqueId` together, and `splitting` makes new worlds of an old one. `processes`
//! lets ranks of other processes take part.

mod exchange;
mod joining;
mod key;
mod number;
mod processes;
mod splitting;
mod world;

use std::ops::Deref;
use std::ptr::from_ref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ferrogrid_host::__private::{ExternalWork, Participant};
use ferrogrid_host::{NcclError, Result};

use crate::communicator::{Backend, Communicator};
use crate::group::{Ready, Recorded};

use crate::call::Call;
pub(crate) use joining::join;
pub(crate) use processes::join as join_processes;
use processes::{Guest, Hosting, Request};
pub(crate) use splitting::split;
use world::{Arrived, Ticket, World};

/// One rank of a world.
pub(crate) enum Member {
    /// The world is in this process.
    Here {
        world: Arc<World>,
        rank: usize,
        /// If other processes take part.
        hosting: Option<Arc<Hosting>>,
    },
    /// It is in the process of rank 0.
    Guest(Arc<Guest>),
}

/// A call with its number, not yet with the others.
enum Numbered {
    Here(Ticket),
    Guest(Request),
}

/// A call that is with the others.
enum Waiting {
    Here(Arrived),
    Guest(Request),
}

impl Member {
    pub(crate) fn rank(&self) -> usize {
        match self {
            Member::Here { rank, .. } => *rank,
            Member::Guest(guest) => guest.rank(),
        }
    }

    pub(crate) fn size(&self) -> usize {
        match self {
            Member::Here { world, .. } => world.size(),
            Member::Guest(guest) => guest.size(),
        }
    }

    pub(crate) fn abort(&self, error: NcclError) {
        match self {
            Member::Here { world, .. } => world.fail(error),
            Member::Guest(guest) => guest.abort(error),
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Member::Here { world, .. } => Ok(world.check()?),
            Member::Guest(guest) => Ok(guest.check()?),
        }
    }

    /// Numbers a call that is about to be enqueued.
    fn number(&self, call: Call) -> Numbered {
        match self {
            Member::Here { world, rank, .. } => Numbered::Here(world.clone().ticket(*rank, call)),
            Member::Guest(guest) => Numbered::Guest(guest.request(call)),
        }
    }
}

/// A communicator's rank, shared with the graphs that have its calls. It leaves its world with the last of them.
pub(crate) struct Membership(Member);

impl Membership {
    pub(crate) fn new(member: Member) -> Arc<Self> {
        Arc::new(Membership(member))
    }
}

impl Deref for Membership {
    type Target = Member;

    fn deref(&self) -> &Member {
        &self.0
    }
}

impl Drop for Membership {
    /// No more calls come from it.
    fn drop(&mut self) {
        match &self.0 {
            Member::Here { world, rank, .. } => world.leave(*rank),
            // Once its last call has been answered, it leaves by itself.
            Member::Guest(_) => {}
        }
    }
}

impl Participant for Membership {
    fn id(&self) -> usize {
        from_ref(self).addr()
    }

    fn check(&self) -> Result<()> {
        self.0.check()
    }
}

impl Numbered {
    fn arrive(self) -> Waiting {
        match self {
            Numbered::Here(ticket) => Waiting::Here(ticket.arrive()),
            Numbered::Guest(request) => Waiting::Guest(request.arrive()),
        }
    }
}

impl Waiting {
    fn wait(self, start: Instant) -> Result<(), NcclError> {
        match self {
            Waiting::Here(arrived) => arrived.wait(start),
            Waiting::Guest(request) => request.wait(start),
        }
    }
}

/// All ranks of a new world.
pub(crate) fn all(size: usize, timeout: Duration) -> Vec<Member> {
    let world = Arc::new(World::new(size, timeout));
    (0..size).map(|rank| Member::Here { world: world.clone(), rank, hosting: None }).collect()
}

/// The calls of a group on one stream: they wait together.
struct OnStream<'a> {
    work: Vec<ExternalWork<'a>>,
    calls: Vec<Numbered>,
}

/// Enqueues calls whose memory is ordered.
pub(crate) fn enqueue(ready: Vec<Ready<'_>>) -> Result<()> {
    // Held from a group's first number until its last call is in a stream: so streams have calls in the order of their numbers. In
    // another order, a stream could wait for a call that is behind the one that another rank's stream waits for.
    let _in_order = ExternalWork::in_order();
    let mut streams: Vec<OnStream<'_>> = Vec::new();
    for Ready { communicator, call, work } in ready {
        let call = member_of(communicator).number(call);
        let same = |on_stream: &&mut OnStream<'_>| on_stream.work[0].stream().id() == work.stream().id();
        match streams.iter_mut().find(same) {
            Some(on_stream) => {
                on_stream.work.push(work);
                on_stream.calls.push(call);
            }
            None => streams.push(OnStream { work: vec![work], calls: vec![call] }),
        }
    }
    streams.into_iter().try_for_each(|OnStream { work, calls }| {
        // SAFETY: the accesses of the calls name the memory that they use; that is used while `run` waits (see `Arrived` and
        // `Request`).
        unsafe { ExternalWork::join(work).run(Box::new(move || run(calls))) }
    })
}

/// Adds calls to graphs, those of each graph as one node. They are numbered anew for each launch.
pub(crate) fn record(recorded: Vec<Recorded<'_>>) -> Result<()> {
    recorded.into_iter().try_for_each(|recorded| {
        let label = recorded.label();
        let calls: Vec<(Arc<Membership>, Call)> = recorded
            .calls
            .iter()
            .map(|(communicator, call)| (member_of(communicator).clone(), *call))
            .collect();
        let participants =
            calls.iter().map(|(member, _)| Arc::clone(member) as Arc<dyn Participant>).collect();
        let make = move || -> Box<dyn FnOnce() -> Result<()> + Send> {
            let calls: Vec<Numbered> = calls.iter().map(|(member, call)| member.number(*call)).collect();
            Box::new(move || run(calls))
        };
        // SAFETY: as in `enqueue`, for each launch.
        unsafe { recorded.work.record(label, participants, make) }
    })
}

fn member_of(communicator: &Communicator) -> &Arc<Membership> {
    match communicator.backend() {
        Backend::Cpu(member) => member,
        Backend::Gpu(_) => unreachable!("they are ranks on CPU devices"),
    }
}

/// Waits, on the thread of a stream, until the calls have been carried out.
fn run(calls: Vec<Numbered>) -> Result<()> {
    let start = Instant::now();
    // All arrive before one waits.
    let waiting: Vec<Waiting> = calls.into_iter().map(Numbered::arrive).collect();
    let results: Vec<Result<(), NcclError>> = waiting.into_iter().map(|it| it.wait(start)).collect();
    results.into_iter().collect::<Result<(), NcclError>>()?;
    Ok(())
}
