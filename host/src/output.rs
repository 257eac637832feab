//! Where text that kernels print goes: to standard output, or to a function that the user sets. It must
//! not know how the text comes from a device.

use std::fmt;
use std::io::Write;
use std::sync::{Arc, PoisonError, RwLock};

use crate::backend::cpu;

/// What is called with each printed text.
pub(crate) type Sink = Arc<dyn Fn(&str) + Send + Sync>;

/// The target of one device's text.
pub(crate) struct Output {
    sink: RwLock<Option<Sink>>,
}

/// The target of the CPU device's text.
pub(crate) static CPU: Output = Output::new();

/// Leads what kernels print natively to [`CPU`].
pub(crate) fn connect_cpu() {
    // What is written to, and memory, must not be left in the middle if the kernel's stack is used up here.
    ferrogrid_device::output::connect(|text| cpu::holding(|| CPU.deliver(&fmt::format(text))));
}

impl Output {
    pub(crate) const fn new() -> Self {
        Output { sink: RwLock::new(None) }
    }

    /// From now on text goes to `sink`; with `None`, to standard output.
    pub(crate) fn set(&self, sink: Option<Sink>) {
        *self.sink.write().unwrap_or_else(PoisonError::into_inner) = sink;
    }

    /// Hands on one text. No lock is held meanwhile: the function may use the device.
    pub(crate) fn deliver(&self, text: &str) {
        let sink = self.sink.read().unwrap_or_else(PoisonError::into_inner).clone();
        match sink {
            Some(sink) => sink(text),
            // As with a program's own output that nobody reads any more, there is nothing to be done.
            None => drop(std::io::stdout().lock().write_all(text.as_bytes())),
        }
    }
}
