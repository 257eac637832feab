//! Text that kernels print: each device keeps it until a thread waits, and that thread then writes it to
//! standard output or passes it to a function that the user sets.
//!
//! `kept` is the queue, `message` formats what device code sends.

mod kept;
pub(crate) mod message;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io::Write;
use std::ptr::{from_ref, null};
use std::sync::{Arc, PoisonError, RwLock};

use kept::Kept;

pub(crate) type Sink = Arc<dyn Fn(&str) + Send + Sync>;

/// The sink for the text of a device, and the pending text.
pub(crate) struct Output {
    sink: RwLock<Option<Sink>>,
    /// Text of the CPU device. A GPU's is in a buffer of the device.
    kept: Kept,
}

/// The bytes that the CPU device keeps by default.
const DEFAULT_CAPACITY: usize = 64 << 20;

thread_local! {
    /// The device whose kernel runs on this thread, by its output; null if none does.
    static PRINTING: Cell<*const Output> = const { Cell::new(null()) };
    /// The devices whose text this thread is handing on.
    static DELIVERING: RefCell<Vec<*const Output>> = const { RefCell::new(Vec::new()) };
}

/// Keeps text of the kernel that runs on this thread.
pub(crate) fn print(text: fmt::Arguments<'_>) {
    // SAFETY: `Printing` holds a borrow of it while it is there.
    match unsafe { PRINTING.get().as_ref() } {
        Some(output) => output.kept.keep(fmt::format(text)),
        // Device code that the host calls itself.
        None => std::print!("{text}"),
    }
}

/// While it exists, a device keeps the text that kernels print on this thread.
pub(crate) struct Printing<'a> {
    before: *const Output,
    _output: &'a Output,
}

impl<'a> Printing<'a> {
    pub(crate) fn to(output: &'a Output) -> Self {
        Printing { before: PRINTING.replace(output), _output: output }
    }
}

impl Drop for Printing<'_> {
    fn drop(&mut self) {
        PRINTING.set(self.before);
    }
}

impl Output {
    pub(crate) fn new() -> Self {
        Output { sink: RwLock::new(None), kept: Kept::new(DEFAULT_CAPACITY) }
    }

    pub(crate) fn set(&self, sink: Option<Sink>) {
        let mut place = self.sink.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *place, sink);
        drop(place);
        // Without the lock: what a sink does when it is dropped is its business.
        drop(before);
    }

    /// Sets how many bytes are kept until a thread waits.
    pub(crate) fn set_capacity(&self, bytes: usize) {
        self.kept.set_capacity(bytes);
    }

    /// Passes the kept text on, on a thread that waits for the device. No lock is held meanwhile, so the sink may
    /// do anything; if it waits itself, that wait passes on no more text of this device.
    pub(crate) fn deliver_kept(&self) {
        if self.kept.is_empty() {
            return;
        }
        let Some(_delivering) = Delivering::begin(self) else { return };
        self.kept.deliver(|text| self.deliver(text));
    }

    /// Hands on `text`, by a thread that waits for the device.
    pub(crate) fn deliver(&self, text: &str) {
        let sink = self.sink.read().unwrap_or_else(PoisonError::into_inner).clone();
        match sink {
            Some(sink) => sink(text),
            // As with a closed pipe of the program's own output, the text is lost.
            None => drop(std::io::stdout().lock().write_all(text.as_bytes())),
        }
    }
}

/// While it exists, this thread passes on text of a device.
struct Delivering(*const Output);

impl Delivering {
    /// `None` if it does so already, further out, or is about to end.
    fn begin(output: &Output) -> Option<Self> {
        let output = from_ref(output);
        let is_first = DELIVERING.try_with(|delivering| {
            let mut delivering = delivering.borrow_mut();
            let is_first = !delivering.contains(&output);
            delivering.extend(is_first.then_some(output));
            is_first
        });
        is_first.unwrap_or(false).then(|| Delivering(output))
    }
}

impl Drop for Delivering {
    fn drop(&mut self) {
        // If the thread is ending, there is no list any more.
        let _ = DELIVERING.try_with(|delivering| delivering.borrow_mut().retain(|output| *output != self.0));
    }
}
