//! The host runtime without kernels of its own: streams, events, host functions, and all kinds of memory.
//! The tests of the host crate run these cases as well, on the CPU device and on a driver that is not
//! there. They must not need anything but the public API.

mod awaiting;
mod buffers;
mod events;
mod graphs;
mod host_memory;
mod legacy;
mod peers;
mod pitched;
mod streams;
mod stress;

use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use ferrogrid::{Device, Result, Stream};

/// What a case returns: `?` works on every error.
pub(crate) type Outcome = std::result::Result<(), Box<dyn std::error::Error>>;

/// A behaviour: its name, and the function that demands it of a device.
pub(crate) type Case = (&'static str, fn(&Device) -> Outcome);

/// What holds on every device.
pub(crate) const CASES: &[&[Case]] = &[
    streams::CASES,
    events::CASES,
    graphs::CASES,
    host_memory::CASES,
    buffers::CASES,
    pitched::CASES,
    awaiting::CASES,
    peers::CASES,
    stress::CASES,
];

/// What needs a device whose streams run by themselves.
pub(crate) const LIVE_CASES: &[&[Case]] = &[legacy::CASES];

/// Work on a stream that does not end before the gate is opened (or dropped).
struct Gate(Sender<()>);

impl Gate {
    fn close(stream: &Stream) -> Result<Gate> {
        let (sender, receiver) = channel::<()>();
        stream.host_fn(move || {
            let _opened = receiver.recv();
        })?;
        Ok(Gate(sender))
    }

    fn open(self) {
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
