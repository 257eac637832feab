//! The types that a bench uses: the device, cases, and the launches of a case.

use std::cell::RefCell;

use ferrogrid::{Device, Grid, Stream};

use crate::measure::Effort;
use crate::options::Options;
use crate::report::{CaseReport, RunReport};
use crate::{Outcome, measure};

/// A device, on which the cases of a bench are run.
#[derive(Debug)]
pub struct Bench {
    stream: Stream,
    quick: bool,
    no_sweep: bool,
    filter: Option<String>,
    /// The measured cases; in a cell, since cases and their data borrow the bench together.
    cases: RefCell<Vec<CaseReport>>,
}

impl Bench {
    pub(crate) fn new(stream: Stream, options: &Options) -> Self {
        Bench {
            stream,
            quick: options.quick,
            no_sweep: options.no_sweep,
            filter: options.filter.clone(),
            cases: RefCell::default(),
        }
    }

    /// The stream of all cases.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The device.
    pub fn device(&self) -> &Device {
        self.stream.device()
    }

    /// The size for this device: `on_gpu` on a GPU, which requires more work, else `on_cpu`. Where cases are
    /// only tried, a 64th of it, at least 1.
    pub fn size(&self, on_gpu: usize, on_cpu: usize) -> usize {
        let size = if self.device().is_cuda() { on_gpu } else { on_cpu };
        if self.quick { (size / 64).max(1) } else { size }
    }

    /// Begins a case; [`Case::run`] runs it.
    pub fn case(&self, name: &str) -> Case<'_> {
        Case { bench: self, name: name.to_owned(), bytes: 0, flops: 0, blocks: Vec::new() }
    }

    pub(crate) fn into_cases(self) -> Vec<CaseReport> {
        self.cases.into_inner()
    }
}

/// A case to measure.
#[derive(Debug)]
#[must_use = "a case is measured by `run`"]
pub struct Case<'b> {
    bench: &'b Bench,
    name: String,
    bytes: u64,
    flops: u64,
    blocks: Vec<u32>,
}

impl Case<'_> {
    /// The bytes that a run must read from and write to the device's memory at least; the bandwidth is
    /// computed from them.
    pub fn bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes as u64;
        self
    }

    /// The floating-point operations of a run; a fused multiply-add counts as two.
    pub fn flops(mut self, flops: usize) -> Self {
        self.flops = flops as u64;
        self
    }

    /// Measures the case with each of these block sizes as well: [`Launch::cover`] uses them, and
    /// [`Launch::threads`] returns them. Sizes that the device does not support are left out.
    pub fn sweep(mut self, threads: &[u32]) -> Self {
        self.blocks = threads.to_vec();
        self
    }

    /// Runs `work` and measures it: once to warm up, then in several samples, each of as many calls as the
    /// device's clock needs. `work` enqueues, and does not wait.
    ///
    /// # Errors
    /// The first error of `work` or of the device.
    pub fn run(self, mut work: impl FnMut(&Launch<'_>) -> ferrogrid::Result<()>) -> Outcome {
        let bench = self.bench;
        if bench.filter.as_ref().is_some_and(|part| !self.name.contains(part.as_str())) {
            return Ok(());
        }
        let most = bench.device().limits().max_threads_per_block;
        let swept = self.blocks.iter().filter(|_| !bench.no_sweep && !bench.quick).filter(|&&it| it <= most);
        let effort = Effort::new(bench.quick, bench.device().is_cuda());
        let mut runs = Vec::new();
        for threads in [None].into_iter().chain(swept.copied().map(Some)) {
            let launch = Launch { stream: &bench.stream, threads };
            let sample = measure::sample(&bench.stream, effort, || work(&launch))
                .map_err(|error| format!("{}: {error}", self.name))?;
            runs.push(RunReport { threads, sample });
        }
        bench.cases.borrow_mut().push(CaseReport {
            name: self.name,
            bytes: self.bytes,
            flops: self.flops,
            runs,
        });
        Ok(())
    }
}

/// One launch of a case.
#[derive(Debug)]
pub struct Launch<'s> {
    stream: &'s Stream,
    threads: Option<u32>,
}

impl Launch<'_> {
    /// The stream to launch on.
    pub fn stream(&self) -> &Stream {
        self.stream
    }

    /// The block size of the sweep; `None` outside of one.
    pub fn threads(&self) -> Option<u32> {
        self.threads
    }

    /// `Grid::cover(n)`, with the block size of the sweep.
    pub fn cover(&self, n: usize) -> Grid<1> {
        match self.threads {
            Some(threads) => Grid::cover(n).with_block(threads),
            None => Grid::cover(n),
        }
    }
}
