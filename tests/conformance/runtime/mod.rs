//! The host runtime without kernels: streams, events, host functions, and all kinds of memory. The host
//! crate's tests run these cases as well, on the CPU device and on a fake driver, so they only use the public
//! API.
//!
//! `stream`, `memory` and `graph` have the cases by subject, and `stress` random work.

mod graph;
mod memory;
pub(crate) mod stream;
pub(crate) mod stress;

use std::fmt;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use ferrogrid::{Device, Stream};

/// The result of a case: `?` works on every error.
pub(crate) type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A behaviour: its name, and the function that checks it on a device.
pub(crate) type Case = (&'static str, fn(&Device) -> Outcome);

/// Cases for every device.
pub(crate) const CASES: &[&[Case]] = &[
    stream::streams::CASES,
    stream::events::CASES,
    stream::sharing::CASES,
    graph::graphs::CASES,
    graph::recording::CASES,
    graph::pinned_graphs::CASES,
    graph::child_graphs::CASES,
    graph::graph_events::CASES,
    graph::graph_memory::CASES,
    graph::graph_arrays::CASES,
    memory::host_memory::CASES,
    memory::zero_copy::CASES,
    memory::buffers::CASES,
    memory::dlpack::CASES,
    memory::pitched::CASES,
    memory::pools::CASES,
    memory::growable::CASES,
    stream::awaiting::CASES,
    memory::peers::CASES,
    stress::CASES,
    memory::soak::CASES,
];

/// Cases that need a device whose streams run on their own.
pub(crate) const LIVE_CASES: &[&[Case]] =
    &[stream::legacy::CASES, graph::recording::LIVE_CASES, stream::values::LIVE_CASES];

/// Set to 1 if every launch and copy waits for its end, as under compute-sanitizer's initcheck. A case that
/// blocks a stream would then deadlock.
const SYNCHRONOUS: &str = "FERROGRID_CONFORMANCE_SYNCHRONOUS";

/// The reason why a case that blocks a stream is skipped.
#[derive(Debug)]
pub(crate) struct HoldsAStream;

impl fmt::Display for HoldsAStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it holds a stream, and {SYNCHRONOUS} says that launches wait for their end")
    }
}

impl std::error::Error for HoldsAStream {}

/// How long cases wait for what has to happen. Long, because only a failure takes it: a busy machine may not run a
/// thread for seconds, and the backtrace of an expected panic takes seconds, too.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Work on a stream that does not end before the gate is opened (or dropped).
pub(crate) struct Gate(Sender<()>);

impl Gate {
    /// Fails with [`HoldsAStream`] if cases may not block streams.
    fn allowed() -> Result<(), HoldsAStream> {
        if std::env::var(SYNCHRONOUS).is_ok_and(|value| value == "1") { Err(HoldsAStream) } else { Ok(()) }
    }

    pub(crate) fn close(stream: &Stream) -> Result<Gate, Box<dyn std::error::Error>> {
        Gate::allowed()?;
        let (sender, receiver) = channel::<()>();
        stream.launch_host_func(move || {
            let _opened = receiver.recv();
        })?;
        Ok(Gate(sender))
    }

    pub(crate) fn open(self) {
        drop(self.0);
    }

    /// Calls `work`, which must not wait for the gate's stream, and opens the gate afterwards. If `work` does wait,
    /// the gate opens in the end, and the case fails.
    fn while_closed<R>(self, work: impl FnOnce() -> ferrogrid::Result<R>) -> ferrogrid::Result<R> {
        let (done, is_done) = channel();
        let opener = std::thread::spawn(move || {
            let in_time = is_done.recv_timeout(PATIENCE).is_ok();
            self.open();
            in_time
        });
        let result = work();
        let _ = done.send(());
        assert!(opener.join().unwrap(), "it waited for the blocked stream");
        result
    }

    /// Opens it from another thread, a little later.
    fn open_soon(self) {
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(30));
            self.open();
        });
    }
}
