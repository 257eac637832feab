//! The oracle of order: work that uses the same memory, some of it to write, must come after what was given to other streams
//! before, by waits for events or because that has run. It judges each call as it is made, so a wait that is missing is found whatever
//! order the work happens to run in. `unordered=1` in FAKE_CUDA turns it off.

use std::collections::HashMap;
use std::ops::Range;

use crate::number;
use crate::work::{LEGACY, State, Work};

/// How much of each stream's work something comes after.
type Clock = HashMap<usize, u64>;

#[derive(Default)]
pub(crate) struct Orders {
    /// What the next work of each stream comes after; of itself, how much it was given.
    clocks: HashMap<usize, Clock>,
    /// What the latest records of events came after.
    records: HashMap<(usize, u64), Clock>,
    /// The handles that streams had whose own are gone.
    before: HashMap<usize, usize>,
    /// How much of each stream's work has run.
    ran: HashMap<usize, u64>,
    /// What work that has not run uses.
    uses: Vec<Use>,
}

/// A piece of memory that work uses.
struct Use {
    stream: usize,
    position: u64,
    range: Range<usize>,
    writes: bool,
    what: &'static str,
}

impl Orders {
    /// Judges what `stream` is given now.
    pub(crate) fn note(&mut self, stream: usize, work: &Work, bytes_of: impl Fn(usize) -> usize) {
        let mut clock = self.clocks.remove(&stream).unwrap_or_default();
        // The legacy stream waits for all others, and they for it.
        if stream == LEGACY {
            for (&other, theirs) in &self.clocks {
                clock.insert(other, theirs.get(&other).copied().unwrap_or(0));
            }
        } else if let Some(theirs) = self.clocks.get(&LEGACY) {
            merge(&mut clock, theirs);
        }
        let position = clock.get(&stream).copied().unwrap_or(0) + 1;
        clock.insert(stream, position);
        match *work {
            Work::Record { event, version } => {
                self.records.insert((event, version), clock.clone());
                self.records.remove(&(event, version.wrapping_sub(2)));
            }
            Work::Wait { event, version } => {
                if let Some(record) = self.records.get(&(event, version)) {
                    merge(&mut clock, record);
                }
            }
            _ => {}
        }
        let (what, own) = uses(work, bytes_of);
        for (range, writes) in &own {
            let conflicts = |other: &&Use| {
                (other.writes || *writes)
                    && other.stream != stream
                    && other.range.start < range.end
                    && range.start < other.range.end
                    && clock.get(&other.stream) < Some(&other.position)
            };
            if let Some(other) = self.uses.iter().find(conflicts).filter(|_| number("unordered", 0) == 0) {
                eprintln!(
                    "no order: {what} on stream {stream:#x} does not come after work {} of stream {:#x}, {}, and both use {:#x}",
                    other.position,
                    other.stream,
                    other.what,
                    range.start.max(other.range.start),
                );
                std::process::abort();
            }
        }
        self.uses.extend(own.into_iter().map(|(range, writes)| Use { stream, position, range, writes, what }));
        self.clocks.insert(stream, clock);
    }

    /// What is left of `stream` runs under another handle.
    pub(crate) fn rename(&mut self, stream: usize, gone: usize) {
        self.before.insert(gone, stream);
    }

    /// The next work of `stream` has run.
    pub(crate) fn has_run(&mut self, stream: usize) {
        let stream = self.before.get(&stream).copied().unwrap_or(stream);
        let ran = self.ran.entry(stream).or_default();
        *ran += 1;
        let ran = *ran;
        self.uses.retain(|it| it.stream != stream || it.position > ran);
    }

    /// All of a stream that was renamed has run.
    pub(crate) fn end(&mut self, gone: usize) {
        let Some(stream) = self.before.remove(&gone) else { return };
        self.uses.retain(|it| it.stream != stream);
    }
}

fn merge(clock: &mut Clock, earlier: &Clock) {
    for (&stream, &theirs) in earlier {
        let ours = clock.entry(stream).or_default();
        *ours = theirs.max(*ours);
    }
}

/// The name of work, and the memory that it uses, each piece with whether it is written.
pub(crate) fn uses(work: &Work, bytes_of: impl Fn(usize) -> usize) -> (&'static str, Vec<(Range<usize>, bool)>) {
    let rows = |start: usize, pitch: usize, width: usize, height: usize, writes: bool| {
        (0..height).map(move |row| (start + row * pitch..start + row * pitch + width, writes))
    };
    match *work {
        Work::CopyBytes { target, source, bytes } => {
            ("a copy", vec![(source..source + bytes, false), (target..target + bytes, true)])
        }
        Work::CopyRows { target, source, target_pitch, source_pitch, width, height } => {
            let from = rows(source, source_pitch, width, height, false);
            ("a copy of rows", from.chain(rows(target, target_pitch, width, height, true)).collect())
        }
        Work::Fill { target, ref pattern, count } => ("a fill", vec![(target..target + pattern.len() * count, true)]),
        Work::FillRows { target, ref pattern, width, height, pitch } => {
            ("a fill of rows", rows(target, pitch, pattern.len() * width, height, true).collect())
        }
        Work::Saxpy { x, y, len, .. } | Work::Mix { x, y, len, .. } => {
            ("a launch", vec![(x..x + 4 * len, false), (y..y + 4 * len, true)])
        }
        Work::Map { start, bytes } => ("an allocation of a graph", vec![(start..start + bytes, true)]),
        Work::Unmap { start, bytes } => ("a free of a graph", vec![(start..start + bytes, true)]),
        Work::Begin { pointer, bytes } => ("an allocation", vec![(pointer..pointer + bytes, true)]),
        Work::GiveBack { pointer, bytes, .. } => ("a free", vec![(pointer..pointer + bytes, true)]),
        Work::Free { pointer } => ("a free", vec![(pointer..pointer + bytes_of(pointer), true)]),
        Work::Call { .. } | Work::Prepare { .. } | Work::LetGo { .. } | Work::Record { .. } | Work::Wait { .. } => {
            ("no memory", Vec::new())
        }
    }
}

impl State {
    /// Judges what `stream` is given now.
    pub(crate) fn note_order(&mut self, stream: usize, work: &Work) {
        let State { orders, allocations, .. } = self;
        orders.note(stream, work, |start| allocations.get(&start).copied().unwrap_or(0));
    }
}
