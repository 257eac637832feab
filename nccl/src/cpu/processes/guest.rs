//! A rank whose world is in another process.

use std::collections::HashMap;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ferrogrid_host::NcclError;

use super::wire::{self, Answer, Demand, Hello, Reader};
use crate::call::Call;
use crate::cpu::key::Numbers;
use crate::options::{deadline, milliseconds};
use crate::unique_id::UniqueId;

/// How much later than its own time-out a guest gives up: the host knows which ranks are missing.
const GRACE: Duration = Duration::from_secs(2);

/// One rank of a world elsewhere. When it is dropped, all of its calls have been answered.
pub(crate) struct Guest {
    connection: Arc<Connection>,
    /// The number of the world, for the host.
    world: u64,
    rank: usize,
    size: usize,
    timeout: Duration,
    numbers: Mutex<Numbers>,
    failure: Mutex<Option<NcclError>>,
}

/// The connection to the process of rank 0. Dropping it ends it.
struct Connection {
    stream: Mutex<TcpStream>,
    inbox: Arc<Inbox>,
    next: Mutex<u64>,
}

/// The answers that no thread has taken yet.
#[derive(Default)]
struct Inbox {
    answers: Mutex<Answers>,
    changed: Condvar,
}

#[derive(Default)]
struct Answers {
    by_number: HashMap<u64, Answer>,
    closed: bool,
}

/// A call that has a number, and then its answer to wait for.
pub(in crate::cpu) struct Request {
    guest: Arc<Guest>,
    number: u64,
    call: Call,
    /// What it was sent as.
    sent: Option<u64>,
}

/// A split that has been asked for.
pub(in crate::cpu) struct PendingSplit {
    guest: Arc<Guest>,
    sent: Option<u64>,
}

/// Rank `rank` of `size`, when all have come.
pub(super) fn join(
    id: &UniqueId,
    rank: usize,
    size: usize,
    (start, timeout): (Instant, Duration),
) -> Result<Arc<Guest>, NcclError> {
    let lost = NcclError::PeerLost { operation: "Communicator::new", rank, peer: 0 };
    let connection = id.address().and_then(Connection::open).ok_or(lost)?;
    let hello = Hello { id: id.to_bytes(), rank, size }.write();
    let (world, numbers, failure) = Default::default();
    let guest = Guest { connection: Arc::new(connection), world, rank, size, timeout, numbers, failure };
    let sent = guest.connection.send(&hello);
    guest.answer(sent, "Communicator::new", start)?;
    Ok(Arc::new(guest))
}

impl Connection {
    fn open(address: std::net::SocketAddr) -> Option<Self> {
        let stream = TcpStream::connect(address).ok()?;
        stream.set_nodelay(true).ok()?;
        let (mut reading, inbox) = (stream.try_clone().ok()?, Arc::<Inbox>::default());
        let for_thread = inbox.clone();
        let read = move || {
            while let Ok((number, body)) = wire::receive(&mut reading) {
                let Some(answer) = Answer::read(Reader::new(&body)) else { break };
                lock(&for_thread.answers).by_number.insert(number, answer);
                for_thread.changed.notify_all();
            }
            lock(&for_thread.answers).closed = true;
            for_thread.changed.notify_all();
        };
        thread::Builder::new().name("ferrogrid-ranks".into()).spawn(read).ok()?;
        Some(Connection { stream: Mutex::new(stream), inbox, next: Mutex::new(0) })
    }

    /// Sends a message; its number, if the connection is not closed.
    fn send(&self, message: &wire::Writer) -> Option<u64> {
        let mut next = lock(&self.next);
        *next += 1;
        let number = *next;
        drop(next);
        wire::send(&mut *lock(&self.stream), number, message).ok()?;
        Some(number)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // If it is closed already, all is well.
        let _closed = lock(&self.stream).shutdown(Shutdown::Both);
    }
}

impl Guest {
    pub(in crate::cpu) fn rank(&self) -> usize {
        self.rank
    }

    pub(in crate::cpu) fn size(&self) -> usize {
        self.size
    }

    pub(in crate::cpu) fn check(&self) -> Result<(), NcclError> {
        lock(&self.failure).clone().map_or(Ok(()), Err)
    }

    pub(in crate::cpu) fn abort(&self, error: NcclError) {
        lock(&self.failure).get_or_insert(error);
        // A host that is gone need not know.
        let _sent = self.connection.send(&Demand::Abort { world: self.world }.write());
    }

    /// Numbers a call that is about to be enqueued.
    pub(in crate::cpu) fn request(self: &Arc<Self>, call: Call) -> Request {
        let number = lock(&self.numbers).next(self.rank, call.kind);
        Request { guest: self.clone(), number, call, sent: None }
    }

    /// Asks for a split.
    pub(in crate::cpu) fn choose(self: &Arc<Self>, (color, key): (Option<i32>, i32)) -> PendingSplit {
        let sent = self.connection.send(&Demand::Split { world: self.world, color, key }.write());
        PendingSplit { guest: self.clone(), sent }
    }

    /// Waits for the answer to a message that was sent.
    fn answer(
        &self,
        sent: Option<u64>,
        operation: &'static str,
        start: Instant,
    ) -> Result<Answer, NcclError> {
        let (rank, inbox) = (self.rank, &self.connection.inbox);
        let lost = NcclError::PeerLost { operation, rank, peer: 0 };
        let Some(number) = sent else { return Err(self.fail(lost)) };
        let end = deadline(start, self.timeout.saturating_add(GRACE));
        let mut answers = lock(&inbox.answers);
        loop {
            match answers.by_number.remove(&number) {
                Some(Answer::Failed(error)) => return Err(self.note(error)),
                Some(answer) => return Ok(answer),
                None if answers.closed => return Err(self.fail(lost)),
                None => {}
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let milliseconds = milliseconds(self.timeout);
                let missing = Box::new([0]);
                return Err(self.fail(NcclError::TimedOut { operation, rank, milliseconds, missing }));
            }
            answers = inbox.changed.wait_timeout(answers, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Notes errors after which a world fails all calls.
    fn note(&self, error: NcclError) -> NcclError {
        match error {
            NcclError::TimedOut { .. } | NcclError::Aborted { .. } => self.fail(error),
            error => error,
        }
    }

    fn fail(&self, error: NcclError) -> NcclError {
        lock(&self.failure).get_or_insert(error).clone()
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // A host that is gone need not know.
        let _sent = self.connection.send(&Demand::Leave { world: self.world }.write());
    }
}

impl Request {
    /// Sends the call, with its elements. To be called where the call is in its stream.
    pub(in crate::cpu) fn arrive(mut self) -> Self {
        let (guest, call) = (&self.guest, &self.call);
        if guest.check().is_err() {
            return self;
        }
        let (source, target) = call.bytes(guest.rank, guest.size);
        let source = match source {
            0 => Vec::new(),
            // SAFETY: the call has so many bytes of elements, whose bytes all have values; the stream is at the call, so that
            // nothing writes them.
            bytes => unsafe { std::slice::from_raw_parts(call.source, bytes) }.to_vec(),
        };
        let (world, number, kind, count) = (guest.world, self.number, call.kind, call.count);
        let demand = Demand::Call { world, number, kind, element: call.element, count, source, target };
        self.sent = guest.connection.send(&demand.write());
        self
    }

    /// Waits for the answer, and writes the elements that it has. To be called where the call is in its stream.
    pub(in crate::cpu) fn wait(self, start: Instant) -> Result<(), NcclError> {
        let Request { guest, call, sent, .. } = self;
        if sent.is_none() {
            guest.check()?;
        }
        let Answer::Done(bytes) = guest.answer(sent, call.kind.name(), start)? else { return Ok(()) };
        let (_, target) = call.bytes(guest.rank, guest.size);
        assert_eq!(bytes.len(), target, "bytes of {call}");
        // SAFETY: the call has room for so many bytes, and the stream is at the call, so that nothing else uses them.
        unsafe { call.target.copy_from_nonoverlapping(bytes.as_ptr(), target) };
        Ok(())
    }
}

impl PendingSplit {
    /// The rank in its part, when all have chosen.
    pub(in crate::cpu) fn wait(self, start: Instant) -> Result<Option<Arc<Guest>>, NcclError> {
        let guest = &self.guest;
        let Answer::Part(Some((world, rank, size))) = guest.answer(self.sent, "split", start)? else {
            return Ok(None);
        };
        let (numbers, failure) = Default::default();
        let (connection, timeout) = (guest.connection.clone(), guest.timeout);
        Ok(Some(Arc::new(Guest { connection, world, rank, size, timeout, numbers, failure })))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
