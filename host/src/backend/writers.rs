//! The work that last wrote each part of memory, so that the output of a failed kernel is not taken for a result.
//!
//! Each launch on the CPU device has an [`Outcome`], and memory names those of the launches that wrote it. A copy
//! hands them on, and a launch that reads what failed work wrote fails with it. A read of memory on the host checks
//! them after the work has run. They are cleared when the host writes the memory again, or a launch overwrites
//! all of it, if the failure was reported to its thread: then it does not rely on the contents.
//!
//! On a GPU an outcome covers all launches of a stream between two waits that may panic (`cuda/stream/watch.rs`). Memory
//! names it as well. But a launch that cannot panic, and whose memory names none, pays nothing for it.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::backend::{Failure, Fault, Records};
use crate::error::Result;
use crate::order::Use;

/// How a piece of work ended, once it has.
#[derive(Default)]
pub(crate) struct Outcome {
    end: OnceLock<Option<Arc<Fault>>>,
    /// Of launches on a GPU: where their panics are found.
    records: Option<Records>,
    /// Of a library's work: the line that it is in, and its place there.
    turn: Option<(u64, u64)>,
}

/// Works of a library that fail together: if one does, so do those after it. So what rests on several of them rests on the last one.
pub(crate) struct Line {
    id: u64,
    next: AtomicU64,
}

impl Line {
    pub(crate) fn new() -> Self {
        static LINES: AtomicU64 = AtomicU64::new(0);
        Line { id: LINES.fetch_add(1, Ordering::Relaxed), next: AtomicU64::new(0) }
    }

    /// That of the next work.
    pub(crate) fn next(&self) -> Outcome {
        let place = self.next.fetch_add(1, Ordering::Relaxed);
        Outcome { turn: Some((self.id, place)), ..Outcome::default() }
    }
}

impl Outcome {
    /// That of launches which are given these.
    pub(crate) fn of_records(records: Records) -> Self {
        Outcome { records: Some(records), ..Outcome::default() }
    }

    pub(crate) fn records(&self) -> Option<&Records> {
        self.records.as_ref()
    }

    /// Finds out whether the work has panicked; as much of it as has run.
    pub(crate) fn look(&self) -> Result<()> {
        match &self.records {
            Some(records) if !self.is_settled() => records.look(self),
            _ => Ok(()),
        }
    }

    /// Settles how the work ended, if that is not known yet.
    pub(crate) fn settle(&self, fault: Option<Arc<Fault>>) {
        // The first thread has reported it.
        let _known = self.end.set(fault);
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.end.get().is_some()
    }

    /// Whether it fails wherever `earlier` does.
    fn covers(&self, earlier: &Outcome) -> bool {
        let (Some(own), Some(other)) = (self.turn, earlier.turn) else { return std::ptr::eq(self, earlier) };
        own.0 == other.0 && own.1 >= other.1
    }

    fn is_good(&self) -> bool {
        matches!(self.end.get(), Some(None))
    }

    pub(crate) fn fault(&self) -> Option<&Arc<Fault>> {
        self.end.get()?.as_ref()
    }

    /// Whether it is of no interest to a launch that this thread makes, and that is given all that it wrote.
    fn is_settled_here(&self) -> bool {
        match self.end.get() {
            None => false,
            Some(None) => true,
            Some(Some(fault)) => fault.is_known_here(),
        }
    }
}

/// The work that wrote what some memory holds, as far as it may have failed.
#[repr(C)] // What every launch reads is at the end, beside what it reads of the memory.
pub(crate) struct Writers {
    all: Mutex<Vec<Arc<Outcome>>>,
    /// Null if there are none, the address of the only one, or `SEVERAL`.
    only: AtomicPtr<Outcome>,
}

/// No outcome's address, since it is aligned to none.
const SEVERAL: *mut Outcome = std::ptr::without_provenance_mut(1);

const _: () = assert!(align_of::<Outcome>() > 1);

/// The list of writers, to be changed.
struct Change<'a> {
    all: MutexGuard<'a, Vec<Arc<Outcome>>>,
    only: &'a AtomicPtr<Outcome>,
}

/// The work on whose results something rests.
#[derive(Default, Clone)]
pub(crate) struct Sources(Vec<Arc<Outcome>>);

impl Change<'_> {
    /// Forgets work that went well.
    fn forget_good(&mut self) {
        self.all.retain(|writer| !writer.is_good());
    }

    fn add(&mut self, writer: &Arc<Outcome>) {
        if !self.all.iter().any(|known| known.covers(writer)) {
            self.all.retain(|known| !writer.covers(known));
            self.all.push(writer.clone());
        }
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        let only = match self.all.as_slice() {
            [] => null_mut(),
            [one] => Arc::as_ptr(one).cast_mut(),
            _ => SEVERAL,
        };
        self.only.store(only, Ordering::Release);
    }
}

impl Default for Writers {
    fn default() -> Self {
        Writers { all: Mutex::default(), only: AtomicPtr::new(null_mut()) }
    }
}

impl Writers {
    /// Whether there are none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.address() == 0
    }

    /// 0 if there are none. Earlier writers are visible, because the memory was passed on by its earlier users.
    #[inline]
    pub(crate) fn address(&self) -> usize {
        self.only.load(Ordering::Relaxed).addr()
    }

    /// All of them so far.
    pub(crate) fn sources(&self) -> Sources {
        if self.is_empty() { Sources::default() } else { Sources(self.change().all.clone()) }
    }

    /// The host, or a fill, is about to write the memory: the `whole`, or a part.
    pub(crate) fn overwrite(&self, whole: bool) {
        if whole && !self.is_empty() {
            self.change().all.clear();
        }
    }

    /// What `sources` wrote is about to be copied here: into the `whole` memory, or a part.
    pub(crate) fn receive(&self, sources: Sources, whole: bool) {
        self.overwrite(whole);
        self.add(&sources.0);
    }

    fn add(&self, writers: &[Arc<Outcome>]) {
        if !writers.is_empty() {
            let mut change = self.change();
            change.forget_good();
            writers.iter().for_each(|writer| change.add(writer));
        }
    }

    fn change(&self) -> Change<'_> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        Change { all, only: &self.only }
    }
}

impl Sources {
    fn add(&mut self, writers: &Writers, is_of_interest: impl Fn(&Outcome) -> bool) {
        if writers.is_empty() {
            return;
        }
        let mut change = writers.change();
        change.forget_good();
        self.0.extend(change.all.iter().filter(|writer| is_of_interest(writer)).cloned());
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Outcome>> {
        self.0.iter()
    }

    fn fault(&self) -> Option<&Arc<Fault>> {
        self.0.iter().find_map(|outcome| outcome.fault())
    }

    /// # Errors
    /// The failure of one of them; all have run.
    pub(crate) fn check(&self) -> Result<()> {
        self.0.iter().try_for_each(|outcome| outcome.look())?;
        self.fault().map_or(Ok(()), |fault| Err(fault.tell()))
    }
}

/// What a launch on the CPU device rests on, and what rests on it.
#[derive(Default)]
pub(crate) struct Flow {
    sources: Sources,
    outcome: Arc<Outcome>,
}

/// How a launch uses some memory: as what, and whether all of it.
pub(crate) type Effect<'a> = (&'a Writers, Use, bool);

/// What a launch rests on.
pub(crate) fn sources_of<'a>(effects: impl Iterator<Item = Effect<'a>>) -> Sources {
    let mut sources = Sources::default();
    for (writers, usage, whole) in effects {
        let written_anew = whole && usage == Use::Write;
        sources.add(writers, |writer| !(written_anew && writer.is_settled_here()));
    }
    sources
}

/// Enters `writers` into the memory that a launch writes.
fn write<'a>(effects: impl Iterator<Item = Effect<'a>>, writers: &[Arc<Outcome>]) {
    for (memory, usage, whole) in effects.filter(|(_, usage, _)| *usage != Use::Read) {
        memory.overwrite(whole && usage == Use::Write);
        memory.add(writers);
    }
}

/// Whether a launch on a GPU leaves all names as they are. Its stream's work that may fail has the outcome `current`, or
/// is none; the launch itself may fail or not.
#[inline]
pub(crate) fn are_named<'a>(
    effects: impl Iterator<Item = Effect<'a>> + Clone,
    current: *const Outcome,
    may_fail: bool,
) -> bool {
    let mut rests_on_it = may_fail;
    for (writers, ..) in effects.clone() {
        let only = writers.only.load(Ordering::Relaxed).cast_const();
        if !only.is_null() && only != current {
            return false;
        }
        rests_on_it |= !only.is_null();
    }
    let mut written = effects.filter(|(_, usage, _)| *usage != Use::Read);
    !rests_on_it || written.all(|(writers, ..)| writers.only.load(Ordering::Relaxed).cast_const() == current)
}

/// Names what a launch on a GPU rests on in all that it writes, and its own outcome if it may fail. Gives what it rests
/// on.
pub(crate) fn name<'a>(
    effects: impl Iterator<Item = Effect<'a>> + Clone,
    own: Option<Arc<Outcome>>,
) -> Sources {
    let mut sources = sources_of(effects.clone());
    if let Some(own) = &own {
        sources.0.retain(|source| !own.covers(source));
    }
    let writers: Vec<_> = sources.iter().cloned().chain(own).collect();
    write(effects, &writers);
    sources
}

impl Flow {
    /// That of a launch which is about to be enqueued. What each access tells is how the memory is used, and whether all
    /// of it is.
    pub(crate) fn of<'a>(effects: impl Iterator<Item = Effect<'a>> + Clone) -> Self {
        let flow = Flow { sources: sources_of(effects.clone()), outcome: Arc::default() };
        write(effects, std::slice::from_ref(&flow.outcome));
        flow
    }

    /// The launch has run, and may have failed itself; `failures` are those of its stream.
    pub(crate) fn end(self, own: Option<Arc<Fault>>, failures: &Failure) {
        let inherited = self.sources.fault();
        if let Some(fault) = inherited {
            failures.note_shared(fault);
        }
        self.outcome.settle(own.or_else(|| inherited.cloned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written_by(writers: &[&Arc<Outcome>]) -> Writers {
        let memory = Writers::default();
        memory.add(&writers.iter().map(|&writer| writer.clone()).collect::<Vec<_>>());
        memory
    }

    /// What a launch on a GPU must name is what it did not know before: else a failure would be lost, or a fast path.
    #[test]
    fn a_launch_keeps_complete_names() {
        let [own, other] = [(); 2].map(|()| Arc::new(Outcome::default()));
        let [none, ours, theirs, both] = [&[][..], &[&own], &[&other], &[&own, &other]].map(written_by);
        let named = |effects: &[(&Writers, Use)], may_fail| {
            are_named(
                effects.iter().map(|(memory, usage)| (*memory, *usage, false)),
                Arc::as_ptr(&own),
                may_fail,
            )
        };
        assert!(named(&[(&none, Use::Read), (&none, Use::Write)], false), "nothing has failed, nor can it");
        assert!(!named(&[(&none, Use::Write)], true), "its own outcome is to be named");
        assert!(!named(&[(&ours, Use::Write), (&none, Use::WritePart)], true), "in all that it writes");
        assert!(named(&[(&none, Use::Read)], true), "it writes nothing");
        assert!(named(&[(&ours, Use::Write)], true) && named(&[(&ours, Use::Write)], false));
        assert!(!named(&[(&ours, Use::Read), (&none, Use::Write)], false), "it rests on earlier work");
        assert!(named(&[(&ours, Use::Read), (&ours, Use::Write)], false));
        for foreign in [&theirs, &both] {
            for usage in [Use::Read, Use::Write] {
                assert!(
                    !named(&[(foreign, usage)], false)
                        && !named(&[(&ours, Use::Write), (foreign, usage)], true)
                );
            }
        }
    }

    #[test]
    fn of_works_in_a_line_memory_names_the_last() {
        let (line, other) = (Line::new(), Arc::new(Line::new().next()));
        let works = [(); 3].map(|()| Arc::new(line.next()));
        let memory = written_by(&[&works[0], &other, &works[1], &works[0]]);
        let names = |sources: Sources| sources.iter().map(Arc::as_ptr).collect::<Vec<_>>();
        assert_eq!(names(memory.sources()), [&other, &works[1]].map(Arc::as_ptr));
        let target = Writers::default();
        let rests_on = name(
            [(&memory, Use::Read, true), (&target, Use::Write, false)].into_iter(),
            Some(works[2].clone()),
        );
        assert_eq!(names(rests_on), [Arc::as_ptr(&other)]);
        assert_eq!(names(target.sources()), [&other, &works[2]].map(Arc::as_ptr));
    }

    #[test]
    fn an_outcome_is_settled_once_and_by_the_first() {
        let outcome = Outcome::default();
        assert!(!outcome.is_settled() && !outcome.is_good() && outcome.fault().is_none());
        outcome.settle(None);
        assert!(outcome.is_settled() && outcome.is_good());
        let memory = written_by(&[&Arc::new(outcome)]);
        assert_eq!(memory.sources().iter().count(), 1);
        // Successful work is forgotten at the next write.
        let next = Arc::new(Outcome::default());
        memory.add(std::slice::from_ref(&next));
        assert!(memory.sources().iter().all(|writer| Arc::ptr_eq(writer, &next)));
        assert_eq!(memory.sources().iter().count(), 1);
    }
}
