//! The host runtime without kernels of its own: streams, events, host functions, and all kinds of memory.
//! The tests of the host crate run these cases as well, on the CPU device and on a driver that is not
//! there. They must not need anything but the public API.

mod awaiting;
mod buffers;
mod child_graphs;
mod dlpack;
mod events;
mod graph_arrays;
mod graph_events;
mod graph_memory;
mod graphs;
mod growable;
mod host_memory;
mod legacy;
mod peers;
mod pinned_graphs;
mod pitched;
mod pools;
mod recording;
mod soak;
mod streams;
pub(crate) mod stress;
mod values;
mod zero_copy;

use std::fmt;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use ferrogrid::{Device, Stream};

/// What a case returns: `?` works on every error.
pub(crate) type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A behaviour: its name, and the function that demands it of a device.
pub(crate) type Case = (&'static str, fn(&Device) -> Outcome);

/// What holds on every device.
pub(crate) const CASES: &[&[Case]] = &[
    streams::CASES,
    events::CASES,
    graphs::CASES,
    recording::CASES,
    pinned_graphs::CASES,
    child_graphs::CASES,
    graph_events::CASES,
    graph_memory::CASES,
    graph_arrays::CASES,
    host_memory::CASES,
    zero_copy::CASES,
    buffers::CASES,
    dlpack::CASES,
    pitched::CASES,
    pools::CASES,
    growable::CASES,
    awaiting::CASES,
    peers::CASES,
    stress::CASES,
    soak::CASES,
];

/// What needs a device whose streams run by themselves.
pub(crate) const LIVE_CASES: &[&[Case]] = &[legacy::CASES, recording::LIVE_CASES, values::LIVE_CASES];

/// Set to 1 where every launch and copy waits for its end, as under compute-sanitizer's initcheck. A case that
/// holds a stream would then wait for itself.
const SYNCHRONOUS: &str = "FERROGRID_CONFORMANCE_SYNCHRONOUS";

/// Why a case that holds a stream does not run.
#[derive(Debug)]
pub(crate) struct HoldsAStream;

impl fmt::Display for HoldsAStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it holds a stream, and {SYNCHRONOUS} says that launches wait for their end")
    }
}

impl std::error::Error for HoldsAStream {}

/// Work on a stream that does not end before the gate is opened (or dropped).
pub(crate) struct Gate(Sender<()>);

impl Gate {
    /// Fails with [`HoldsAStream`] where a case may not.
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

    /// Opens it from another thread, a little later.
    fn open_soon(self) {
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(30));
            self.open();
        });
    }
}
