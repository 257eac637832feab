//! Random work by many threads on many streams, compared with a model: order, ownership, and deliberate
//! failures. A kernel to launch, if any, is passed in.
//!
//! `FERROGRID_STRESS` sets the number of operations of each thread (default 1000), `FERROGRID_STRESS_SEED`
//! the sequence of operations (random by default, and printed): thread k does the same in each run with one
//! seed, whatever the others do, except for the buffers that it gets from others, whose contents are checked
//! all the same. `FERROGRID_STRESS_WITHOUT` names operations to leave out, as in `Replay,OwnStream`, to find
//! which of them a failure needs.
//!
//! `history` is the expected contents of a buffer, `failures` has deliberate failures, and `soak` runs for a given time.

mod failures;
mod history;
mod soak;

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use ferrogrid::{Device, DeviceBuffer, PinnedBuffer, Result, Stream, Transfer};

use super::{Case, Outcome};
pub(crate) use failures::Failing;
use failures::{Made, State};
use history::History;
pub(crate) use soak::soak;

pub(crate) const CASES: &[Case] =
    &[("random_work_of_many_threads_equals_the_model", |device| random_work(device, None))];

/// A kernel that makes each `y` of the second buffer `y * factor + x`, with the `x` of the first.
pub(crate) type Launch = fn(&Stream, &DeviceBuffer<u32>, &mut DeviceBuffer<u32>, u32) -> Result<()>;

const THREADS: u64 = 8;
const STREAMS: usize = 4;
pub(crate) const LENGTH: usize = 257;
/// The maximum number of buffers left for other threads.
const SHELF: usize = 16;

/// An error that is `Send`.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The duration of random work.
#[derive(Clone, Copy)]
enum Until {
    Steps(usize),
    Time(Instant),
}

/// The next operation of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Replace,
    Upload,
    FillPart,
    CopyFromShared,
    Copy,
    StartDownload,
    FinishDownload,
    DropDownload,
    Order,
    Check,
    Exchange,
    OwnStream,
    ThreadsStream,
    Replay,
    Launch,
    FailAlone,
}

/// The operations, repeated by their frequency.
const DICE: [Operation; 24] = {
    use Operation::*;
    [
        Replace,
        Upload,
        FillPart,
        FillPart,
        CopyFromShared,
        Copy,
        Copy,
        StartDownload,
        StartDownload,
        FinishDownload,
        Order,
        Check,
        DropDownload,
        Exchange,
        OwnStream,
        ThreadsStream,
        ThreadsStream,
        ThreadsStream,
        Replay,
        Launch,
        Launch,
        Launch,
        Launch,
        FailAlone,
    ]
};

/// A buffer, and its expected contents.
struct Checked {
    buffer: DeviceBuffer<u32>,
    model: History,
    state: State,
}

/// A pending copy to the host, and its expected contents.
struct Expected {
    transfer: Transfer<u32>,
    model: History,
    state: State,
}

impl Checked {
    fn new(buffer: DeviceBuffer<u32>, contents: Vec<u32>) -> Self {
        Checked { buffer, model: History::new(contents), state: State::default() }
    }
}

/// State shared by all threads: streams, a buffer to read, and a list of buffers left for others.
struct Common<'a> {
    device: &'a Device,
    streams: Vec<Stream>,
    shared: Checked,
    shelf: Mutex<Vec<Checked>>,
    launch: Option<Launch>,
    /// Launches that may fail, and the failures so far.
    failing: Option<Failing>,
    made: Made,
    without: Vec<Operation>,
}

/// The state of one thread.
struct Worker<'a> {
    common: &'a Common<'a>,
    /// Not used by other threads.
    own: Stream,
    random: fastrand::Rng,
    buffers: Vec<Checked>,
    host: Vec<PinnedBuffer<u32>>,
    under_way: Vec<Expected>,
}

impl<'a> Worker<'a> {
    fn new(common: &'a Common<'a>, seed: u64) -> Result<Self> {
        let (random, mut buffers, mut host) = (fastrand::Rng::with_seed(seed), Vec::new(), Vec::new());
        for (index, stream) in common.streams.iter().enumerate() {
            let buffer = stream.fill(index as u32, LENGTH)?;
            buffers.push(Checked::new(buffer, vec![index as u32; LENGTH]));
            host.push(common.device.pinned_zeros(LENGTH)?);
        }
        let own = common.device.new_stream()?;
        Ok(Worker { common, own, random, buffers, host, under_way: Vec::new() })
    }

    fn step(&mut self) -> std::result::Result<(), Failure> {
        let stream = self.any_stream();
        let chosen = self.random.usize(..self.buffers.len());
        let operation = DICE[self.random.usize(..DICE.len())];
        if self.common.without.contains(&operation) {
            return Ok(());
        }
        if operation.writes() {
            self.repair(stream, chosen)?;
        }
        match operation {
            Operation::Replace => self.replace(stream, chosen)?,
            Operation::Upload => self.upload(stream, chosen)?,
            Operation::FillPart => self.fill_part(stream, chosen)?,
            Operation::CopyFromShared => self.copy_from_shared(stream, chosen)?,
            Operation::Copy => self.copy(stream, chosen)?,
            Operation::StartDownload => self.start_download(stream, chosen)?,
            Operation::FinishDownload => self.finish_download()?,
            Operation::DropDownload => self.drop_download()?,
            Operation::Order => self.order(stream)?,
            Operation::Check => self.check(stream, chosen)?,
            Operation::Exchange => self.exchange(chosen),
            Operation::OwnStream => self.on_a_stream_of_its_own(chosen)?,
            Operation::ThreadsStream => self.on_the_threads_stream(chosen)?,
            Operation::Replay => self.replay(stream, chosen)?,
            Operation::Launch => self.launch(stream, chosen)?,
            Operation::FailAlone => self.fail_alone()?,
        }
        Ok(())
    }

    fn any_stream(&mut self) -> &'a Stream {
        &self.common.streams[self.random.usize(..STREAMS)]
    }

    fn replace(&mut self, stream: &Stream, chosen: usize) -> Result<()> {
        let value = self.random.u32(..);
        let replaced = &mut self.buffers[chosen];
        replaced.buffer = stream.fill(value, LENGTH)?;
        replaced.state = State::default();
        replaced.model.change(format_args!("replace on {}", stream.id())).fill(value);
        Ok(())
    }

    fn upload(&mut self, stream: &Stream, chosen: usize) -> Result<()> {
        let data: Vec<u32> = (0..LENGTH).map(|_| self.random.u32(..)).collect();
        let Checked { buffer, model, state } = &mut self.buffers[chosen];
        *state = State::default();
        // Dropped at once: the copy continues.
        drop(stream.upload_async(self.common.device.pinned_copy(&data)?, buffer)?);
        model.change(format_args!("upload on {}", stream.id())).copy_from_slice(&data);
        Ok(())
    }

    fn fill_part(&mut self, stream: &Stream, chosen: usize) -> Result<()> {
        let (value, middle) = (self.random.u32(..), self.random.usize(..LENGTH));
        let other = self.any_stream();
        let Checked { buffer, model, .. } = &mut self.buffers[chosen];
        let (left, right) = buffer.split_at_mut(middle)?;
        stream.fill_into(value, left)?;
        other.fill_into(!value, right)?;
        let (left, right) = (stream.id(), other.id());
        let model = model.change(format_args!("fill on {left} up to {middle}, then on {right}"));
        model[..middle].fill(value);
        model[middle..].fill(!value);
        Ok(())
    }

    fn copy_from_shared(&mut self, stream: &Stream, chosen: usize) -> Result<()> {
        let Checked { buffer, model, state } = &mut self.buffers[chosen];
        *state = State::default();
        stream.copy(&self.common.shared.buffer, buffer)?;
        let model = model.change(format_args!("copy of the shared one on {}", stream.id()));
        model.copy_from_slice(self.common.shared.model.now());
        Ok(())
    }

    fn copy(&mut self, stream: &Stream, chosen: usize) -> Result<()> {
        let other = (chosen + 1) % self.buffers.len();
        let [to, from] = self.buffers.get_disjoint_mut([chosen, other]).expect("two buffers");
        to.state.take_over(&from.state);
        let start = self.random.usize(..LENGTH / 2);
        let length = self.random.usize(1..LENGTH / 2);
        stream.copy(from.buffer.slice(start..start + length)?, to.buffer.slice_mut(..length)?)?;
        let model = to.model.change(format_args!("copy of {length} elements on {}", stream.id()));
        model[..length].copy_from_slice(&from.model.now()[start..start + length]);
        Ok(())
    }

    /// From the shared buffer or one of this thread's own, which other streams may have written just now.
    fn launch(&mut self, stream: &Stream, chosen: usize) -> Result<()> {
        let Some(launch) = self.common.launch else { return self.copy(stream, chosen) };
        let (factor, other) = (self.random.u32(..), (chosen + 1) % self.buffers.len());
        let from_shared = self.random.bool();
        let number = self.next_number();
        let [from, to] = self.buffers.get_disjoint_mut([other, chosen]).expect("two buffers");
        let from = if from_shared { &self.common.shared } else { from };
        to.state.take_over(&from.state);
        match (self.common.failing, number) {
            (Some(failing), Some(number)) => {
                (failing.launch)(stream, &from.buffer, &mut to.buffer, factor, number)?;
                to.state.launched(number, self.common.device);
            }
            _ => launch(stream, &from.buffer, &mut to.buffer, factor)?,
        }
        let what = if from_shared { "the shared one" } else { "another" };
        let model = to.model.change(format_args!("launch on {} with {what}", stream.id()));
        for (y, x) in model.iter_mut().zip(from.model.now()) {
            *y = y.wrapping_mul(factor).wrapping_add(*x);
        }
        Ok(())
    }

    fn start_download(&mut self, stream: &Stream, chosen: usize) -> std::result::Result<(), Failure> {
        let Some(host) = self.host.pop() else { return self.finish_download() };
        let Checked { buffer, model, state } = &self.buffers[chosen];
        let transfer = stream.download_async(buffer, host)?;
        self.under_way.push(Expected { transfer, model: model.clone(), state: state.clone() });
        Ok(())
    }

    fn finish_download(&mut self) -> std::result::Result<(), Failure> {
        if self.under_way.is_empty() {
            return Ok(());
        }
        let chosen = self.random.usize(..self.under_way.len());
        let Expected { transfer, model, state } = self.under_way.swap_remove(chosen);
        let host = match transfer.wait() {
            Ok(host) => {
                state.refuse_if_failed("a copy to the host")?;
                model.check("a copy to the host", &host)?;
                host
            }
            // A failure of the copied data, or of other work on the stream.
            Err(error) => {
                self.common.made.expect(error)?;
                self.common.device.pinned_zeros(LENGTH)?
            }
        };
        self.host.push(host);
        Ok(())
    }

    fn drop_download(&mut self) -> Result<()> {
        if let Some(expected) = self.under_way.pop() {
            drop(expected.transfer);
            self.host.push(self.common.device.pinned_zeros(LENGTH)?);
        }
        Ok(())
    }

    fn order(&mut self, stream: &Stream) -> Result<()> {
        let other = self.any_stream();
        match self.random.u32(..3) {
            0 => stream.wait_stream(other),
            1 => stream.wait(&other.record()?),
            _ => stream.launch_host_func(|| ()),
        }
    }

    /// Leaves a buffer with pending work for others, and takes one, or drops one that was not taken.
    fn exchange(&mut self, chosen: usize) {
        let place = self.random.usize(..);
        let mut shelf = self.common.shelf.lock().unwrap_or_else(PoisonError::into_inner);
        if shelf.is_empty() {
            return;
        }
        let place = place % shelf.len();
        std::mem::swap(&mut shelf[place], &mut self.buffers[chosen]);
    }

    /// On a stream that is dropped before its work has run.
    fn on_a_stream_of_its_own(&mut self, chosen: usize) -> Result<()> {
        let stream = self.common.device.new_stream()?;
        if self.random.bool() { self.launch(&stream, chosen) } else { self.replace(&stream, chosen) }
    }

    /// On the default stream of the thread, whose buffers go to other threads like all others. Failures are
    /// left to shared streams.
    fn on_the_threads_stream(&mut self, chosen: usize) -> std::result::Result<(), Failure> {
        let stream = self.common.device.per_thread_stream()?;
        match self.random.u32(..8) {
            0 => self.replace(&stream, chosen)?,
            1 => self.upload(&stream, chosen)?,
            2 => self.fill_part(&stream, chosen)?,
            3 => self.copy_from_shared(&stream, chosen)?,
            4 => self.copy(&stream, chosen)?,
            5 => self.replay(&stream, chosen)?,
            6 if self.common.failing.is_none() => self.launch(&stream, chosen)?,
            6 => self.start_download(&stream, chosen)?,
            _ => self.any_stream().wait_stream(&stream)?,
        }
        Ok(())
    }

    /// A graph that is dropped while it runs.
    fn replay(&mut self, stream: &Stream, chosen: usize) -> Result<()> {
        let (other, value) = (self.any_stream(), self.random.u32(..));
        // For the runtime the graph may use the earlier contents, so the state stays.
        let Checked { buffer, model, .. } = &mut self.buffers[chosen];
        let (graph, ()) = stream.capture(|capture| {
            let shared = capture.read(&self.common.shared.buffer)?;
            let mut target = capture.write(buffer)?;
            capture.copy(shared, &mut target)?;
            capture.fill_into(value, target.view_mut().slice(..7)?)
        })?;
        let mut graph = graph.instantiate()?;
        graph.launch(stream)?;
        graph.launch(other)?;
        drop(graph);
        let (first, second) = (stream.id(), other.id());
        let model = model.change(format_args!("graph on {first}, then on {second}"));
        model.copy_from_slice(self.common.shared.model.now());
        model[..7].fill(value);
        Ok(())
    }

    /// On `stream`; if that reports a failure, whichever it is, on a stream without failures.
    fn check(&mut self, stream: &Stream, chosen: usize) -> std::result::Result<(), Failure> {
        let checked = &mut self.buffers[chosen];
        let found = match stream.download(&checked.buffer) {
            Ok(found) => Ok(found),
            Err(error) => {
                self.common.made.expect(error)?;
                self.own.download(&checked.buffer)
            }
        };
        checked.judge(found, &self.common.made)
    }

    fn run(&mut self, until: Until) -> std::result::Result<usize, Failure> {
        let mut step = 0;
        while match until {
            Until::Steps(steps) => step < steps,
            Until::Time(end) => Instant::now() < end,
        } {
            self.step().map_err(|error| format!("operation {step}: {error}"))?;
            step += 1;
        }
        while !self.under_way.is_empty() {
            self.finish_download()?;
        }
        for chosen in 0..self.buffers.len() {
            self.check(&self.common.streams[chosen % STREAMS], chosen)?;
        }
        Ok(step)
    }
}

impl Operation {
    /// Whether it writes the chosen buffer.
    fn writes(self) -> bool {
        use Operation::*;
        match self {
            Replace | Upload | FillPart | CopyFromShared | Copy | OwnStream | ThreadsStream | Replay
            | Launch => true,
            StartDownload | FinishDownload | DropDownload | Order | Check | Exchange | FailAlone => false,
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// The operations to leave out.
fn left_out() -> std::result::Result<Vec<Operation>, String> {
    let names = std::env::var("FERROGRID_STRESS_WITHOUT").unwrap_or_default();
    let names = names.split(',').filter(|name| !name.is_empty());
    let named = |name| DICE.into_iter().find(|operation| format!("{operation:?}") == name);
    names
        .map(|name| named(name).ok_or(format!("FERROGRID_STRESS_WITHOUT: no operation is called {name}")))
        .collect()
}

/// Random work, with launches if there is a kernel.
pub(crate) fn random_work(device: &Device, launch: Option<Launch>) -> Outcome {
    let steps = number("FERROGRID_STRESS").unwrap_or(1000) as usize;
    let seed = number("FERROGRID_STRESS_SEED").unwrap_or_else(|| fastrand::u64(..));
    let run = format!("FERROGRID_STRESS={steps} FERROGRID_STRESS_SEED={seed} on {}", device.name());
    eprintln!("{run}");
    let common = Common::new(device, launch, None).map_err(|error| error.to_string())?;
    for result in common.work(seed, Until::Steps(steps)) {
        result.map_err(|error| format!("{run}: {error}"))?;
    }
    Ok(common.end().map_err(|error| error.to_string())?)
}

impl<'a> Common<'a> {
    fn new(
        device: &'a Device,
        launch: Option<Launch>,
        failing: Option<Failing>,
    ) -> std::result::Result<Self, Failure> {
        let streams = (0..STREAMS).map(|_| device.new_stream()).collect::<Result<Vec<_>>>()?;
        let model: Vec<u32> = (0..LENGTH as u32).collect();
        let shared = Checked::new(streams[0].upload(&model)?, model);
        let spare = |value| Ok(Checked::new(streams[0].fill(value, LENGTH)?, vec![value; LENGTH]));
        let shelf = (0..SHELF as u32).map(spare).collect::<Result<Vec<_>>>()?;
        let (shelf, made, without) = (Mutex::new(shelf), Made::default(), left_out()?);
        Ok(Common { device, streams, shared, shelf, launch, failing, made, without })
    }

    /// Runs all threads; returns the number of operations of each, or the error.
    fn work(&self, seed: u64, until: Until) -> Vec<std::result::Result<usize, String>> {
        std::thread::scope(|scope| {
            let work = |thread: u64| {
                let work = move || {
                    let mut worker = Worker::new(self, seed.wrapping_add(thread))?;
                    worker.run(until)
                };
                scope.spawn(move || work().map_err(|error: Failure| format!("thread {thread}, {error}")))
            };
            let workers: Vec<_> = (0..THREADS).map(work).collect();
            workers.into_iter().map(|worker| worker.join().expect("no worker panics")).collect()
        })
    }

    /// Checks the buffers that no thread has.
    fn end(&self) -> std::result::Result<(), Failure> {
        let stream = self.device.new_stream()?;
        let mut shelf = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
        for checked in shelf.iter_mut() {
            let found = stream.download(&checked.buffer);
            checked.judge(found, &self.made)?;
        }
        self.shared.model.check("a buffer that all used", &stream.download(&self.shared.buffer)?)?;
        for stream in &self.streams {
            // Each reports the failures not reported so far, and then no more.
            stream.synchronize().or_else(|error| self.made.expect(error))?;
            stream.synchronize()?;
        }
        Ok(())
    }
}
