//! Times collective operations of all GPUs beside the same NCCL called from C++ (benches/cuda/nccl.cu, compiled to a shared library that
//! `FERROGRID_BENCH_LIBRARY` names): alternating in one process, with a thread for each rank, on the same streams and buffers, with
//! results checked. Each rank prints one JSON line per figure, for benches/nccl.py.

mod cpp;
#[path = "../setting.rs"]
mod setting;
#[path = "../runtime/turns.rs"]
mod turns;

use std::cell::RefCell;
use std::sync::Barrier;
use std::time::Instant;

use cpp::{Buffers, Cpp, CppComm, CppId};
use ferrogrid::prelude::*;
use ferrogrid_nccl::{Communicator, Operation, ReduceOp, UniqueId};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// The bytes of the longer buffer: powers of two.
const SIZES: std::ops::RangeInclusive<u32> = 10..=30;

#[derive(Clone, Copy)]
enum Collective {
    AllReduce,
    AllGather,
    ReduceScatter,
}

const COLLECTIVES: [(&str, Collective); 3] = [
    ("all_reduce", Collective::AllReduce),
    ("all_gather", Collective::AllGather),
    ("reduce_scatter", Collective::ReduceScatter),
];

impl Collective {
    /// Elements of source and target, if the longer one has `count`.
    fn lengths(self, count: usize, ranks: usize) -> [usize; 2] {
        match self {
            Collective::AllReduce => [count, count],
            Collective::AllGather => [count / ranks, count],
            Collective::ReduceScatter => [count, count / ranks],
        }
    }
}

/// Operations in a row, and rounds, by the bytes.
fn repeats(bytes: usize) -> (u32, usize) {
    match bytes.ilog2() {
        0..=16 => (200, 101),
        17..=22 => (50, 51),
        23..=27 => (20, 21),
        _ => (5, 21),
    }
}

/// An element of the source of a rank. Sums are exact.
fn element(rank: usize, index: usize) -> f32 {
    (index % 997 + 1000 * rank) as f32
}

/// One rank: its side of both communicators, its stream and its buffers.
struct Rank<'b> {
    ours: Communicator,
    theirs: CppComm<'b>,
    stream: Stream,
    source: DeviceBuffer<f32>,
    target: RefCell<DeviceBuffer<f32>>,
    /// Rounds begin together.
    barrier: &'b Barrier,
}

/// What is timed: operations of so many elements, as often as that, and whether their end belongs to it.
#[derive(Clone, Copy)]
struct Round {
    collective: Collective,
    count: usize,
    repeats: u32,
    is_waited_for: bool,
}

impl<'b> Rank<'b> {
    fn new(
        device: &Device,
        (rank, size): (usize, usize),
        id: &UniqueId,
        (cpp, cpp_id): (&'b Cpp, &CppId),
        barrier: &'b Barrier,
    ) -> Outcome<Self> {
        // It gives the GPUs access to each other's buffers, which both sides need.
        let ours = Communicator::new(device, id, rank, size)?;
        let theirs = cpp.new_comm(cpp_id, rank, size)?;
        let stream = device.new_stream()?;
        let count = (1 << SIZES.end()) / size_of::<f32>();
        let elements: Vec<f32> = (0..count).map(|index| element(rank, index)).collect();
        // Only with our communicator: the other side shows what that brings.
        let registered = std::env::var("FERROGRID_BENCH_REGISTERED");
        let zeros = || match registered.as_deref() {
            Ok("symmetric") => ours.symmetric_zeros(&stream, count),
            Ok(_) => ours.registered_zeros(&stream, count),
            Err(_) => stream.zeros(count),
        };
        let (mut source, target) = (zeros()?, RefCell::new(zeros()?));
        stream.upload_into(&elements, &mut source)?;
        Ok(Rank { ours, theirs, stream, source, target, barrier })
    }

    /// Seconds of a round by Ferrogrid.
    fn ours(&self, round: Round) -> Outcome<f64> {
        let [from, to] = round.collective.lengths(round.count, self.ours.size());
        let mut target = self.target.borrow_mut();
        self.barrier.wait();
        let start = Instant::now();
        for _ in 0..round.repeats {
            let (source, target) = (self.source.slice(..from)?, target.slice_mut(..to)?);
            let operation: Operation<'_> = match round.collective {
                Collective::AllReduce => self.ours.all_reduce(ReduceOp::Sum, source, target),
                Collective::AllGather => self.ours.all_gather(source, target),
                Collective::ReduceScatter => self.ours.reduce_scatter(ReduceOp::Sum, source, target),
            };
            operation.enqueue(&self.stream)?;
        }
        let enqueued = start.elapsed();
        self.stream.synchronize()?;
        let seconds = if round.is_waited_for { start.elapsed() } else { enqueued };
        Ok(seconds.as_secs_f64())
    }

    /// The same by C++.
    fn theirs(&self, round: Round) -> Outcome<f64> {
        let [from, to] = round.collective.lengths(round.count, self.ours.size());
        let mut target = self.target.borrow_mut();
        let buffers = Buffers {
            source: self.source.view().as_device_ptr().as_raw(),
            target: target.as_device_ptr_mut().as_raw(),
            count: from.min(to),
        };
        self.stream.synchronize()?;
        self.barrier.wait();
        // SAFETY: the buffers are those of this rank, at least as long, and borrowed until the function has waited for the stream; work
        // on them before has been waited for, too.
        unsafe {
            self.theirs.run(round.collective, buffers, &self.stream, round.repeats, round.is_waited_for)
        }
    }

    /// Times both sides, after one operation of each whose result is checked.
    fn duel(&self, name: &str, round: Round, rounds: usize) -> Outcome<()> {
        let once = Round { repeats: 1, ..round };
        self.poison(round)?;
        self.ours(once)?;
        self.check(name, "Rust", round)?;
        self.poison(round)?;
        self.theirs(once)?;
        self.check(name, "C++", round)?;
        let per = f64::from(round.repeats);
        turns::duel(name, rounds, per, || self.ours(round), || self.theirs(round))
    }

    fn poison(&self, round: Round) -> Outcome<()> {
        let [_, to] = round.collective.lengths(round.count, self.ours.size());
        Ok(self.stream.fill_into(f32::NAN, self.target.borrow_mut().slice_mut(..to)?)?)
    }

    /// Compares the target: all of a short one, and parts of a long one.
    fn check(&self, name: &str, side: &str, round: Round) -> Outcome<()> {
        const PART: usize = 1 << 20;
        let [_, to] = round.collective.lengths(round.count, self.ours.size());
        let anywhere = fastrand::usize(..=to.saturating_sub(PART));
        let target = self.target.borrow();
        for start in [0, to.saturating_sub(PART), anywhere] {
            let found = self.stream.download(target.slice(start..to.min(start + PART))?)?;
            for (index, found) in (start..).zip(found) {
                let expected = self.expected(round, index);
                if found != expected {
                    let rank = self.ours.rank();
                    let text = format!("{found} at {index} of rank {rank}, expected {expected}");
                    return Err(format!("{name}, {side}: {text}").into());
                }
            }
            if to <= PART {
                break;
            }
        }
        Ok(())
    }

    /// What is at `index` of the target.
    fn expected(&self, round: Round, index: usize) -> f32 {
        let (rank, size) = (self.ours.rank(), self.ours.size());
        let part = round.count / size;
        let sum = |index: usize| (0..size).map(|rank| element(rank, index)).sum();
        match round.collective {
            Collective::AllReduce => sum(index),
            Collective::AllGather => element(index / part, index % part),
            Collective::ReduceScatter => sum(rank * part + index),
        }
    }

    fn measure(&self) -> Outcome<()> {
        for (name, collective) in COLLECTIVES {
            for bytes in SIZES.map(|exponent| 1 << exponent) {
                let (repeats, rounds) = repeats(bytes);
                let count = bytes / size_of::<f32>();
                let round = Round { collective, count, repeats, is_waited_for: true };
                self.duel(&format!("{name}_{bytes}"), round, rounds)?;
                if bytes == 1 << SIZES.start() {
                    let round = Round { is_waited_for: false, ..round };
                    self.duel(&format!("enqueue_{name}"), round, rounds)?;
                }
            }
        }
        Ok(())
    }
}

fn main() -> Outcome<()> {
    let Some((_, library)) = setting::gpu_and_file("FERROGRID_BENCH_LIBRARY", "NCCL from C++") else {
        return Ok(());
    };
    // Of two, four or eight ranks all have parts of the same length.
    let size = 1 << Device::count().ilog2();
    if size < 2 {
        println!("one GPU alone has nothing to exchange");
        return Ok(());
    }
    let (major, minor, patch) = ferrogrid_nccl::version()?;
    println!("{{\"name\": \"version\", \"nccl\": \"{major}.{minor}.{patch}\", \"ranks\": {size}}}");
    let devices = (0..size).map(Device::cuda).collect::<Result<Vec<_>, _>>()?;
    let (cpp, id) = (Cpp::load(&library)?, UniqueId::new(&devices[0])?);
    let (cpp_id, barrier) = (cpp.new_id()?, Barrier::new(size));
    std::thread::scope(|scope| {
        for (rank, device) in devices.iter().enumerate() {
            let (id, cpp, barrier) = (&id, (&cpp, &cpp_id), &barrier);
            scope.spawn(move || {
                let measured = Rank::new(device, (rank, size), id, cpp, barrier);
                if let Err(error) = measured.and_then(|rank| rank.measure()) {
                    eprintln!("rank {rank}: {error}");
                    // The others wait for this one.
                    std::process::exit(1);
                }
            });
        }
    });
    Ok(())
}
