//! The process of rank 0: for each other rank a connection, and a thread that brings its calls to the world.

use std::collections::HashMap;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ferrogrid_host::NcclError;

use super::wire::{self, Answer, Demand, Hello, Reader};
use crate::call::Call;
use crate::cpu::Member;
use crate::cpu::world::{Ticket, World};
use crate::options::{deadline, milliseconds};
use crate::unique_id::UniqueId;

/// How often it looks for new connections.
const PERIOD: Duration = Duration::from_millis(5);

/// How long a connection may take to say whose it is.
const GREETING: Duration = Duration::from_secs(5);

/// The connections of a world to other processes.
pub(super) struct Host {
    guests: Mutex<Guests>,
    changed: Condvar,
}

/// Kept by the ranks of this process: they end after those of the others, whose calls this process carries out.
pub(crate) struct Hosting {
    host: Arc<Host>,
    timeout: Duration,
}

impl Hosting {
    pub(super) fn new(host: Arc<Host>, timeout: Duration) -> Self {
        Hosting { host, timeout }
    }
}

impl Drop for Hosting {
    fn drop(&mut self) {
        self.host.wait_for_guests(self.timeout);
    }
}

struct Guests {
    /// The ranks that have come, this process's among them.
    joined: Vec<bool>,
    /// How many other ranks are there.
    open: usize,
    /// Why no more may come.
    failure: Option<NcclError>,
}

/// What the connection of a guest needs.
struct Connection {
    stream: Mutex<TcpStream>,
    /// Those that it is in, with its rank there.
    worlds: Mutex<HashMap<u64, (Arc<World>, usize)>>,
}

impl Host {
    /// Takes connections of the other ranks from now on.
    pub(super) fn start(
        listener: TcpListener,
        id: UniqueId,
        world: &Arc<World>,
        size: usize,
    ) -> io::Result<Arc<Self>> {
        listener.set_nonblocking(true)?;
        let mut joined = vec![false; size];
        joined[0] = true;
        let guests = Mutex::new(Guests { joined, open: 0, failure: None });
        let host = Arc::new(Host { guests, changed: Condvar::new() });
        let (for_thread, world) = (host.clone(), world.clone());
        spawn(move || for_thread.accept(&listener, id, &world))?;
        Ok(host)
    }

    /// Waits until all ranks have come; if they do not, until those that have are told.
    pub(super) fn meet(&self, start: Instant, timeout: Duration) -> Result<(), NcclError> {
        self.wait_for_all(start, timeout).inspect_err(|_| self.wait_for_guests(GREETING))
    }

    fn wait_for_all(&self, start: Instant, timeout: Duration) -> Result<(), NcclError> {
        let end = deadline(start, timeout);
        let mut guests = self.lock();
        while !guests.are_all_here() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let missing = guests.missing();
                let milliseconds = milliseconds(timeout);
                let error =
                    NcclError::TimedOut { operation: "Communicator::new", rank: 0, milliseconds, missing };
                guests.failure = Some(error.clone());
                self.changed.notify_all();
                return Err(error);
            }
            guests = self.wait(guests, left);
        }
        Ok(())
    }

    /// Waits until the other processes have let go of their communicators.
    fn wait_for_guests(&self, timeout: Duration) {
        let end = deadline(Instant::now(), timeout);
        let mut guests = self.lock();
        while guests.open > 0 {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            guests = self.wait(guests, left);
        }
    }

    fn accept(self: Arc<Self>, listener: &TcpListener, id: UniqueId, world: &Arc<World>) {
        loop {
            let guests = self.lock();
            if guests.are_all_here() || guests.failure.is_some() {
                return;
            }
            drop(guests);
            let Ok((stream, _)) = listener.accept() else {
                thread::sleep(PERIOD);
                continue;
            };
            let (host, world) = (self.clone(), world.clone());
            // A connection without a thread is closed; the other end finds that.
            let _thread = spawn(move || {
                if let Some((connection, _seat)) = host.greet(stream, id, world) {
                    serve(&Arc::new(connection));
                }
            });
        }
    }

    /// Lets a guest in, and tells it when all have come.
    fn greet(
        &self,
        mut stream: TcpStream,
        id: UniqueId,
        world: Arc<World>,
    ) -> Option<(Connection, Option<Seat<'_>>)> {
        stream.set_nonblocking(false).and_then(|()| stream.set_nodelay(true)).ok()?;
        stream.set_read_timeout(Some(GREETING)).ok()?;
        let (number, body) = wire::receive(&mut stream).ok()?;
        let Hello { id: named, rank, size } = Hello::read(Reader::new(&body))?;
        if named != id.to_bytes() {
            return None;
        }
        let seat = self.join(rank, size);
        let answer = match &seat {
            Ok(_) => self.wait_for_others().map_or_else(Answer::Failed, Answer::Done),
            Err(error) => Answer::Failed(error.clone()),
        };
        wire::send(&mut stream, number, &answer.write()).ok()?;
        stream.set_read_timeout(None).ok()?;
        if matches!(answer, Answer::Failed(_)) {
            return None;
        }
        let worlds = Mutex::new(HashMap::from([(0, (world, rank))]));
        Some((Connection { stream: Mutex::new(stream), worlds }, seat.ok()))
    }

    fn join(&self, rank: usize, size: usize) -> Result<Seat<'_>, NcclError> {
        let mut guests = self.lock();
        let own = guests.joined.len();
        if size != own {
            return Err(NcclError::Size { rank, size, other: own });
        }
        if rank >= size || std::mem::replace(&mut guests.joined[rank], true) {
            return Err(NcclError::RankTaken { rank, size });
        }
        guests.open += 1;
        self.changed.notify_all();
        Ok(Seat(self))
    }

    /// Waits as `wait_for_all`, with the time of that.
    fn wait_for_others(&self) -> Result<Vec<u8>, NcclError> {
        let mut guests = self.lock();
        loop {
            match &guests.failure {
                Some(error) => return Err(error.clone()),
                None if guests.are_all_here() => return Ok(Vec::new()),
                None => guests = self.changed.wait(guests).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Guests> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'g>(&self, guests: MutexGuard<'g, Guests>, left: Duration) -> MutexGuard<'g, Guests> {
        self.changed.wait_timeout(guests, left).unwrap_or_else(PoisonError::into_inner).0
    }
}

/// A guest that is there.
struct Seat<'a>(&'a Host);

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.0.lock().open -= 1;
        self.0.changed.notify_all();
    }
}

impl Guests {
    fn are_all_here(&self) -> bool {
        self.joined.iter().all(|&joined| joined)
    }

    fn missing(&self) -> Box<[usize]> {
        (0..self.joined.len()).filter(|&rank| !self.joined[rank]).collect()
    }
}

/// Brings the calls of a guest to their worlds until it is gone.
fn serve(connection: &Arc<Connection>) {
    let stream = connection.lock_stream().try_clone();
    if let Ok(mut stream) = stream {
        while let Ok((number, body)) = wire::receive(&mut stream) {
            let Some(demand) = Demand::read(Reader::new(&body)) else { break };
            if connection.begin(number, demand).is_err() {
                break;
            }
        }
    }
    for (world, rank) in lock(&connection.worlds).values() {
        world.leave(*rank);
    }
}

impl Connection {
    /// Begins what the guest asks for; what waits has a thread.
    fn begin(self: &Arc<Self>, number: u64, demand: Demand) -> io::Result<()> {
        let world_of = |world| lock(&self.worlds).get(&world).cloned().ok_or(io::ErrorKind::NotFound);
        match demand {
            Demand::Call { world, number: of_call, kind, element, count, source, target } => {
                let (world, rank) = world_of(world)?;
                let connection = self.clone();
                spawn(move || {
                    let (source, mut written) = (Aligned::of(&source), Aligned::zeros(target));
                    let (source, target) = (source.start(), written.start_mut());
                    let call = Call { kind, element, count, source, target };
                    let done = Ticket::new(world, rank, of_call, call).arrive().wait(Instant::now());
                    let answer = done.map_or_else(Answer::Failed, |()| Answer::Done(written.into_bytes()));
                    connection.answer(number, &answer);
                })
            }
            Demand::Split { world, color, key } => {
                let (world, rank) = world_of(world)?;
                let connection = self.clone();
                spawn(move || {
                    let member = Member::Here { world, rank, hosting: None };
                    let part = member.choose((color, key)).wait(Instant::now());
                    let answer = part.map_or_else(Answer::Failed, |part| connection.enter(part));
                    connection.answer(number, &answer);
                })
            }
            Demand::Abort { world } => {
                let (world, rank) = world_of(world)?;
                world.fail(NcclError::Aborted { rank });
                Ok(())
            }
            Demand::Leave { world } => {
                let (world, rank) = lock(&self.worlds).remove(&world).ok_or(io::ErrorKind::NotFound)?;
                world.leave(rank);
                Ok(())
            }
        }
    }

    /// Notes a world that a split has made.
    fn enter(&self, part: Option<Member>) -> Answer {
        let Some(Member::Here { world, rank, .. }) = part else { return Answer::Part(None) };
        let mut worlds = lock(&self.worlds);
        let number = worlds.keys().max().map_or(0, |last| last + 1);
        let size = world.size();
        worlds.insert(number, (world, rank));
        Answer::Part(Some((number, rank, size)))
    }

    /// Sends an answer; a guest that is gone does not get it.
    fn answer(&self, number: u64, answer: &Answer) {
        let _sent = wire::send(&mut *self.lock_stream(), number, &answer.write());
    }

    fn lock_stream(&self) -> MutexGuard<'_, TcpStream> {
        lock(&self.stream)
    }
}

/// Bytes that are aligned for all elements.
struct Aligned {
    words: Vec<u64>,
    bytes: usize,
}

impl Aligned {
    fn zeros(bytes: usize) -> Self {
        Aligned { words: vec![0; bytes.div_ceil(8)], bytes }
    }

    fn of(data: &[u8]) -> Self {
        let mut copy = Aligned::zeros(data.len());
        // SAFETY: there are as many bytes in the words.
        unsafe { copy.words.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(data.as_ptr(), data.len()) };
        copy
    }

    /// Null if there are none: then the rank reads nothing.
    fn start(&self) -> *const u8 {
        if self.bytes == 0 { std::ptr::null() } else { self.words.as_ptr().cast() }
    }

    /// Null if there are none: then the rank writes nothing.
    fn start_mut(&mut self) -> *mut u8 {
        if self.bytes == 0 { std::ptr::null_mut() } else { self.words.as_mut_ptr().cast() }
    }

    fn into_bytes(self) -> Vec<u8> {
        self.words.into_iter().flat_map(u64::to_ne_bytes).take(self.bytes).collect()
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name("ferrogrid-ranks".into()).spawn(work).map(drop)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
