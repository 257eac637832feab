//! Which work wrote what memory holds, so that nobody takes for a result what a failed kernel has left there.
//!
//! Each launch on the CPU device has an [`Outcome`], and memory names those of the launches that wrote it. A copy
//! hands them on, and a launch that reads what failed work wrote fails with it. Whoever reads memory on the host asks
//! them when the work has run. What is written anew by the host forgets them, and so does memory that a launch is given
//! as a whole: if its thread knows of the failure, and so does not mean to work on with what is there.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::access::Access;
use crate::backend::{Failure, Fault};
use crate::error::Result;
use crate::order::Use;

/// How a piece of work ended, once it has.
#[derive(Default)]
pub(crate) struct Outcome(OnceLock<Option<Arc<Fault>>>);

impl Outcome {
    fn fault(&self) -> Option<&Arc<Fault>> {
        self.0.get()?.as_ref()
    }

    /// Whether it is of no interest to a launch that this thread makes, and that is given all that it wrote.
    fn is_settled_here(&self) -> bool {
        match self.0.get() {
            None => false,
            Some(None) => true,
            Some(Some(fault)) => fault.is_known_here(),
        }
    }
}

/// The work that wrote what some memory holds, as far as it may have failed.
#[derive(Default)]
pub(crate) struct Writers(Mutex<Vec<Arc<Outcome>>>);

/// The work on whose results something rests.
#[derive(Default, Clone)]
pub(crate) struct Sources(Vec<Arc<Outcome>>);

impl Writers {
    /// All of them so far.
    pub(crate) fn sources(&self) -> Sources {
        Sources(self.lock().clone())
    }

    /// The host, or a fill, is about to write the memory: the `whole`, or a part.
    pub(crate) fn overwrite(&self, whole: bool) {
        if whole {
            self.lock().clear();
        }
    }

    /// What `sources` wrote is about to be copied here: into the `whole` memory, or a part.
    pub(crate) fn receive(&self, sources: Sources, whole: bool) {
        self.overwrite(whole);
        self.lock().extend(sources.0);
    }

    /// Work with `outcome` is about to write.
    fn write(&self, outcome: &Arc<Outcome>, whole: bool) {
        let mut writers = self.lock();
        if whole {
            writers.clear();
        } else {
            writers.retain(|writer| !matches!(writer.0.get(), Some(None)));
        }
        writers.push(outcome.clone());
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Outcome>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sources {
    fn add(&mut self, writers: &Writers, is_of_interest: impl Fn(&Outcome) -> bool) {
        self.0.extend(writers.lock().iter().filter(|writer| is_of_interest(writer)).cloned());
    }

    fn fault(&self) -> Option<&Arc<Fault>> {
        self.0.iter().find_map(|outcome| outcome.fault())
    }

    /// # Errors
    /// The failure of one of them; all have run.
    pub(crate) fn check(&self) -> Result<()> {
        self.fault().map_or(Ok(()), |fault| Err(fault.tell()))
    }
}

/// What a launch on the CPU device rests on, and what rests on it.
#[derive(Default)]
pub(crate) struct Flow {
    sources: Sources,
    outcome: Arc<Outcome>,
}

/// How a launch uses some memory.
pub(crate) type Effect<'a> = (&'a Writers, Use, bool);

impl Flow {
    /// That of a launch which is about to be enqueued. What each access tells is how the memory is used, and whether all
    /// of it is.
    pub(crate) fn of<'a>(effects: impl Iterator<Item = Effect<'a>> + Clone) -> Self {
        let mut flow = Flow::default();
        for (writers, usage, whole) in effects.clone() {
            let written_anew = whole && usage == Use::Write;
            flow.sources.add(writers, |writer| !(written_anew && writer.is_settled_here()));
        }
        for (writers, usage, whole) in effects {
            if usage != Use::Read {
                writers.write(&flow.outcome, whole && usage == Use::Write);
            }
        }
        flow
    }

    pub(crate) fn of_accesses(accesses: &[Access<'_>]) -> Self {
        Flow::of(accesses.iter().map(Access::effect))
    }

    /// Adds what the launch only reads.
    pub(crate) fn reading(mut self, writers: &Writers) -> Self {
        self.sources.add(writers, |_| true);
        self
    }

    /// The launch has run, with a failure of its own or not; `failures` are those of its stream.
    pub(crate) fn end(self, own: Option<Arc<Fault>>, failures: &Failure) {
        let inherited = self.sources.fault();
        if let Some(fault) = inherited {
            failures.note_shared(fault);
        }
        let _once = self.outcome.0.set(own.or_else(|| inherited.cloned()));
    }
}
