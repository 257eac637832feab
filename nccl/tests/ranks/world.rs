//! The ranks under test: three on CPU devices, or all GPUs of the machine if `FERROGRID_TEST_RANKS` is `cuda`.

use std::time::Duration;

use ferrogrid::nccl::{Communicator, CommunicatorOptions, Group, Operation, UniqueId};
use ferrogrid::{CpuOptions, Device, Graph, Stream};

/// Communicators of one thread, each with three streams.
pub(crate) struct Ranks {
    pub(crate) communicators: Vec<Communicator>,
    pub(crate) streams: Vec<[Stream; 3]>,
}

pub(crate) fn on_gpus() -> bool {
    std::env::var_os("FERROGRID_TEST_RANKS").is_some_and(|choice| choice == "cuda")
}

/// The number that a variable of the environment has.
pub(crate) fn variable(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} is {value:?}; expected a number")))
}

/// A time-out that tests wait for. Real GPUs take seconds to meet.
pub(crate) fn short() -> Duration {
    let is_real = on_gpus() && std::env::var_os("FAKE_CUDA").is_none();
    if is_real { Duration::from_secs(10) } else { Duration::from_millis(300) }
}

pub(crate) fn devices() -> Vec<Device> {
    if on_gpus() {
        let gpus: Vec<_> = (0..Device::count()).map(|ordinal| Device::cuda(ordinal).unwrap()).collect();
        assert!(gpus.len() > 1, "two GPUs are needed");
        return gpus;
    }
    // Two ranks on one device, and another device.
    let other = Device::cpu_with(CpuOptions::new().workers(1)).unwrap();
    vec![Device::cpu(), other, Device::cpu()]
}

/// Calls `work` on a thread for each device, with its rank and a stream.
pub(crate) fn on_threads(timeout: Duration, work: impl Fn(Communicator, Stream) + Sync) {
    let (devices, work) = (devices(), &work);
    let id = UniqueId::new(&devices[0]).unwrap();
    let options = CommunicatorOptions::new().with_timeout(timeout);
    let (id, size) = (&id, devices.len());
    std::thread::scope(|scope| {
        for (rank, device) in devices.iter().enumerate() {
            scope.spawn(move || {
                let communicator = Communicator::new_with(device, id, rank, size, options).unwrap();
                work(communicator, device.new_stream().unwrap());
            });
        }
    });
}

impl Ranks {
    pub(crate) fn with_timeout(timeout: Duration) -> Self {
        let devices = devices();
        let options = CommunicatorOptions::new().with_timeout(timeout);
        let communicators = Communicator::all_with(&devices, options).unwrap();
        let streams = devices.iter().map(|device| [(); 3].map(|()| device.new_stream().unwrap())).collect();
        Ranks { communicators, streams }
    }

    pub(crate) fn len(&self) -> usize {
        self.communicators.len()
    }

    /// The first stream of a rank.
    pub(crate) fn stream(&self, rank: usize) -> &Stream {
        &self.streams[rank][0]
    }

    /// That of each rank.
    pub(crate) fn first_streams(&self) -> impl Iterator<Item = &Stream> {
        self.streams.iter().map(|streams| &streams[0])
    }

    /// Launches the graph of each rank on its first stream, so many times.
    pub(crate) fn launch(&self, graphs: Vec<Graph<'_>>, times: usize) {
        let mut graphs: Vec<_> = graphs.into_iter().map(|graph| graph.instantiate().unwrap()).collect();
        for _ in 0..times {
            for (graph, stream) in graphs.iter_mut().zip(self.first_streams()) {
                graph.launch(stream).unwrap();
            }
        }
    }

    /// Runs one operation of each rank, as a group on their first streams.
    pub(crate) fn run<'a>(
        &'a self,
        operations: impl IntoIterator<Item = Operation<'a>>,
    ) -> ferrogrid::Result<()> {
        let mut group = Group::new();
        for (rank, operation) in operations.into_iter().enumerate() {
            group.push(self.stream(rank), operation);
        }
        group.run()
    }
}
