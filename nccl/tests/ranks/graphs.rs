//! Operations in graphs: what launches give, their order, lifetimes, and lost ranks. `random` records some of its groups, too.

use std::time::{Duration, Instant};

use crate::world::{Ranks, devices, on_threads, short};
use ferrogrid::nccl::{Communicator, Group, ReduceOp};
use ferrogrid::{
    DeviceBuffer, Error, ExecutableGraph, Graph, GraphError, GraphKey, NcclError, Result, Stream,
};

/// A time-out that nothing reaches.
const LONG: Duration = Duration::from_secs(60);

/// What a GPU's operation may take beyond its time-out: NCCL ends its kernels.
const PATIENCE: Duration = Duration::from_secs(20);

const LENGTH: usize = 1 << 12;

/// A graph of a rank, and the buffer in it.
type Step = (ExecutableGraph<'static>, GraphKey<u32>);

fn ready<'b, K>(recorded: Result<(Vec<Graph<'b>>, Vec<K>)>) -> Vec<(ExecutableGraph<'b>, K)> {
    let (graphs, keys) = recorded.unwrap();
    graphs.into_iter().map(|graph| graph.instantiate().unwrap()).zip(keys).collect()
}

/// On each rank: adds up what all ranks have, between copies; the first element is then the number of the rank plus 1.
fn sums(ranks: &Ranks, values: impl Fn(usize) -> Vec<u32>) -> Vec<Step> {
    ready(Stream::capture_all(ranks.first_streams(), |captures| {
        let mut group = Group::new();
        let mut buffers = Vec::new();
        for (rank, capture) in captures.iter().enumerate() {
            let stream = ranks.stream(rank);
            let data = capture.keep(stream.upload(&values(rank))?)?;
            let mut sum = capture.keep(stream.zeros(data.len())?)?;
            capture.copy(&data, &mut sum)?;
            buffers.push((data, sum));
        }
        for ((capture, communicator), (_, sum)) in captures.iter().zip(&ranks.communicators).zip(&mut buffers)
        {
            group.push(capture, communicator.all_reduce_in_place(ReduceOp::Sum, sum));
        }
        group.run()?;
        for ((rank, capture), (data, sum)) in captures.iter().enumerate().zip(&mut buffers) {
            capture.copy(&*sum, &mut *data)?;
            capture.fill_into(rank as u32 + 1, data.slice_mut(..1)?)?;
        }
        Ok(buffers.iter().map(|(data, _)| data.key()).collect())
    }))
}

fn launch(ranks: &Ranks, steps: &mut [Step]) {
    for (rank, (graph, _)) in steps.iter_mut().enumerate() {
        graph.launch(ranks.stream(rank)).unwrap();
    }
}

/// That the buffers have `first` of their rank in the first element, and `rest` in all others.
fn assert_data(ranks: &Ranks, steps: &[Step], first: impl Fn(usize) -> u32, rest: u32) {
    for (rank, (graph, key)) in steps.iter().enumerate() {
        let data = ranks.stream(rank).download(graph.view(*key).unwrap()).unwrap();
        assert_eq!(data[0], first(rank), "rank {rank}");
        assert_eq!(data[1..].iter().find(|value| **value != rest), None, "rank {rank}, expected {rest}");
    }
}

fn sum_of_ranks(ranks: &Ranks) -> u32 {
    (1..=ranks.len() as u32).sum()
}

#[test]
fn a_recorded_sum_between_copies_repeats_a_hundred_times() {
    let ranks = Ranks::with_timeout(LONG);
    let mut steps = sums(&ranks, |rank| vec![rank as u32 + 1; LENGTH]);
    let mut expected = sum_of_ranks(&ranks);
    launch(&ranks, &mut steps);
    assert_data(&ranks, &steps, |rank| rank as u32 + 1, expected);
    for _ in 1..100 {
        launch(&ranks, &mut steps);
        expected = expected.wrapping_mul(ranks.len() as u32);
    }
    assert_data(&ranks, &steps, |rank| rank as u32 + 1, expected);
}

/// A launch takes its turn among the communicator's operations and its place in the stream at once: else two would wait for each other.
/// (NCCL does not promise anything if threads launch in different orders on different ranks.)
#[test]
fn threads_launch_graphs_of_the_same_ranks_on_the_same_streams() {
    if devices()[0].is_cuda() {
        return;
    }
    let ranks = Ranks::with_timeout(Duration::from_secs(20));
    let work = || {
        let recorded = Stream::capture_all(ranks.first_streams(), |captures| {
            let mut buffers = Vec::new();
            for (rank, capture) in captures.iter().enumerate() {
                buffers.push(capture.keep(ranks.stream(rank).zeros::<u32>(LENGTH)?)?);
            }
            let mut group = Group::new();
            for ((capture, rank), data) in captures.iter().zip(&ranks.communicators).zip(&mut buffers) {
                group.push(capture, rank.all_reduce_in_place(ReduceOp::Sum, data));
            }
            group.run()?;
            Ok(buffers.iter().map(|data| data.key()).collect())
        });
        let mut steps: Vec<Step> = ready(recorded);
        (0..200).for_each(|_| launch(&ranks, &mut steps));
        assert_data(&ranks, &steps, |_| 0, 0);
    };
    std::thread::scope(|scope| (0..3).for_each(|_| drop(scope.spawn(work))));
}

#[test]
fn two_graphs_of_a_communicator_and_operations_on_streams_take_turns() {
    let ranks = Ranks::with_timeout(LONG);
    let mut first = sums(&ranks, |_| vec![1; LENGTH]);
    let mut second = sums(&ranks, |_| vec![2; LENGTH]);
    let mut data: Vec<DeviceBuffer<u32>> =
        (0..ranks.len()).map(|rank| ranks.streams[rank][1].fill(3, LENGTH).unwrap()).collect();
    let mut power = 1_u32;
    for _ in 0..20 {
        launch(&ranks, &mut first);
        let mut group = Group::new();
        for ((streams, rank), data) in ranks.streams.iter().zip(&ranks.communicators).zip(&mut data) {
            group.push(&streams[1], rank.all_reduce_in_place(ReduceOp::Sum, data));
        }
        group.run().unwrap();
        for (rank, (graph, _)) in second.iter_mut().enumerate() {
            graph.launch(&ranks.streams[rank][2]).unwrap();
        }
        power = power.wrapping_mul(ranks.len() as u32);
    }
    assert_data(&ranks, &first, |rank| rank as u32 + 1, power);
    assert_data(&ranks, &second, |rank| rank as u32 + 1, power.wrapping_mul(2));
    for (streams, data) in ranks.streams.iter().zip(&data) {
        assert_eq!(streams[1].download(data).unwrap(), [power.wrapping_mul(3); LENGTH]);
    }
}

/// Messages to and from the neighbours in a ring, and a broadcast in the two halves, on forked streams of each recording.
#[test]
fn one_graph_has_messages_and_operations_of_several_communicators() {
    let ranks = Ranks::with_timeout(LONG);
    let size = ranks.len();
    let halves =
        Communicator::split_all(&ranks.communicators, |rank| (Some(u32::from(2 * rank >= size)), 0)).unwrap();
    let mut steps = ready(Stream::capture_all(ranks.first_streams(), |captures| {
        let mut buffers = Vec::new();
        let mut forks = Vec::new();
        for (rank, capture) in captures.iter().enumerate() {
            let stream = ranks.stream(rank);
            let sent = capture.keep(stream.upload(&[rank as u32])?)?;
            buffers.push((sent, capture.keep(stream.zeros::<u32>(1)?)?));
            forks.push((capture.fork()?, capture.fork()?));
        }
        let mut ring = Group::new();
        for ((rank, it), ((sent, received), (one, other))) in
            ranks.communicators.iter().enumerate().zip(buffers.iter_mut().zip(&forks))
        {
            ring.push(one, it.send((rank + 1) % size, &*sent));
            ring.push(other, it.recv((rank + size - 1) % size, received));
        }
        ring.run()?;
        let mut broadcasts = Group::new();
        for ((half, (_, received)), (one, _)) in halves.iter().zip(&mut buffers).zip(&forks) {
            let half = half.as_ref().unwrap();
            broadcasts.push(one, half.broadcast_in_place(0, received));
        }
        broadcasts.run()?;
        Ok(buffers.iter().map(|(sent, received)| (sent.key(), received.key())).collect())
    }));
    for round in 0..3_u32 {
        for (rank, (graph, (sent, _))) in steps.iter_mut().enumerate() {
            let stream = ranks.stream(rank);
            stream.fill_into(10 * round + rank as u32, graph.view_mut(*sent).unwrap()).unwrap();
            graph.launch(stream).unwrap();
        }
        for (rank, (graph, (_, received))) in steps.iter().enumerate() {
            let root = if 2 * rank >= size { size.div_ceil(2) } else { 0 };
            let expected = 10 * round + ((root + size - 1) % size) as u32;
            assert_eq!(ranks.stream(rank).download(graph.view(*received).unwrap()).unwrap(), [expected]);
        }
    }
}

/// Each rank has a thread, and records without groups; a factor is there after the recording.
#[test]
fn ranks_of_several_threads_record_alone() {
    on_threads(LONG, |communicator, stream| {
        let (rank, size) = (communicator.rank(), communicator.size());
        let (x, mut y) = (stream.upload(&[rank as u32 + 1]).unwrap(), stream.zeros::<u32>(1).unwrap());
        let (graph, key) = stream
            .capture(|capture| {
                let (x, mut y) = (capture.read(&x)?, capture.write(&mut y)?);
                let op = ReduceOp::ScaledSum(10 * (rank as u32 + 1));
                communicator.all_reduce(op, x, &mut y).enqueue(capture)?;
                Ok(y.key())
            })
            .unwrap();
        assert_eq!(graph.len(), 1);
        let mut graph = graph.instantiate().unwrap();
        let expected: u32 = (1..=size as u32).map(|it| 10 * it * it).sum();
        for _ in 0..30 {
            stream.fill_into(0, graph.view_mut(key).unwrap()).unwrap();
            graph.launch(&stream).unwrap();
            assert_eq!(stream.download(graph.view(key).unwrap()).unwrap(), [expected]);
        }
    });
}

#[test]
fn a_graph_outlives_its_communicator() {
    let mut ranks = Ranks::with_timeout(LONG);
    let mut steps = sums(&ranks, |_| vec![1; LENGTH]);
    let communicators = std::mem::take(&mut ranks.communicators);
    let size = communicators.len() as u32;
    let other = sums_of(&communicators, &ranks);
    drop(communicators);
    for _ in 0..3 {
        launch(&ranks, &mut steps);
    }
    assert_data(&ranks, &steps, |rank| rank as u32 + 1, size.pow(3));
    // Also one that was never launched, nor instantiated.
    drop(other);
    launch(&ranks, &mut steps);
    drop(steps); // while it runs
    ranks.streams.iter().for_each(|streams| streams[0].synchronize().unwrap());
}

/// A recorded graph of each rank.
fn sums_of(communicators: &[Communicator], ranks: &Ranks) -> Vec<Graph<'static>> {
    let recorded = Stream::capture_all(ranks.first_streams(), |captures| {
        let mut data = Vec::new();
        for (rank, capture) in captures.iter().enumerate() {
            data.push(capture.keep(ranks.stream(rank).zeros::<f32>(2)?)?);
        }
        let mut group = Group::new();
        for ((capture, communicator), data) in captures.iter().zip(communicators).zip(&mut data) {
            group.push(capture, communicator.all_reduce_in_place(ReduceOp::Average, data));
        }
        group.run()
    });
    recorded.unwrap().0
}

#[test]
fn a_graph_that_is_forgotten_keeps_its_communicator() {
    let ranks = Ranks::with_timeout(LONG);
    let mut steps = sums(&ranks, |_| vec![1; LENGTH]);
    launch(&ranks, &mut steps);
    ranks.streams.iter().for_each(|streams| streams[0].synchronize().unwrap());
    std::mem::forget(steps);
    drop(ranks); // returns
}

#[test]
fn a_launch_by_one_rank_alone_is_an_error_within_the_time_out() {
    let ranks = Ranks::with_timeout(4 * short());
    let mut steps = sums(&ranks, |_| vec![1; LENGTH]);
    launch(&ranks, &mut steps);
    assert_data(&ranks, &steps, |rank| rank as u32 + 1, ranks.len() as u32);
    let (start, stream) = (Instant::now(), ranks.stream(0));
    let (graph, key) = &mut steps[0];
    graph.launch(stream).unwrap();
    assert!(start.elapsed() < 2 * short(), "a launch does not wait");
    let error = stream.synchronize().unwrap_err();
    assert!(matches!(error, Error::Nccl(NcclError::TimedOut { rank: 0, .. })), "{error}");
    assert!(start.elapsed() < 4 * short() + PATIENCE, "{:?}", start.elapsed());
    // It has no result, and no further launch begins.
    assert_eq!(stream.download(graph.view(*key).unwrap()), Err(error.clone()));
    assert_eq!(graph.launch(stream), Err(error.clone()));
    assert_eq!(ranks.communicators[0].check(), Err(error.clone()));
    // The others are told: at once on CPU devices, and by their own time-outs on GPUs, where the first launch may have got all that it
    // needs.
    let (other, of_other) = (&mut steps[1].0, ranks.stream(1));
    let launched = (0..2).try_for_each(|_| other.launch(of_other));
    let told = launched.and_then(|()| of_other.synchronize());
    assert!(matches!(told, Err(Error::Nccl(NcclError::TimedOut { .. }))), "{told:?}");
    // The device remains usable.
    assert_eq!(stream.download(&stream.upload(&[1_u32]).unwrap()).unwrap(), [1]);
}

/// On a GPU the recording waits, as the first operation connects the ranks; elsewhere the launch does.
#[test]
fn a_recording_by_one_rank_alone_is_an_error_within_the_time_out() {
    let ranks = Ranks::with_timeout(short());
    let (start, stream, it) = (Instant::now(), ranks.stream(0), &ranks.communicators[0]);
    let recorded = stream.capture(|capture| {
        let mut data = capture.keep(stream.zeros::<u32>(1)?)?;
        it.all_reduce_in_place(ReduceOp::Sum, &mut data).enqueue(capture)
    });
    let launched = recorded.and_then(|(graph, ())| {
        let mut graph = graph.instantiate()?;
        graph.launch(stream)?;
        stream.synchronize()
    });
    assert!(matches!(launched, Err(Error::Nccl(NcclError::TimedOut { rank: 0, .. }))), "{launched:?}");
    assert!(start.elapsed() < 2 * short() + PATIENCE, "{:?}", start.elapsed());
}

#[test]
fn an_aborted_communicator_ends_launches_and_refuses_others() {
    let ranks = Ranks::with_timeout(LONG);
    let mut steps = sums(&ranks, |_| vec![1; LENGTH]);
    launch(&ranks, &mut steps);
    let stream = ranks.stream(0);
    stream.synchronize().unwrap();
    steps[0].0.launch(stream).unwrap();
    let start = Instant::now();
    let aborted = Err(NcclError::Aborted { rank: 0 }.into());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            ranks.communicators[0].abort();
        });
        assert_eq!(stream.synchronize(), aborted);
    });
    assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
    assert_eq!(steps[0].0.launch(stream), aborted);
    ranks.communicators[0].abort(); // changes nothing
}

#[test]
fn what_graphs_cannot_hold_is_refused() {
    let ranks = Ranks::with_timeout(LONG);
    let (stream, it) = (ranks.stream(0), &ranks.communicators[0]);
    let refused = |result: Result<()>| match result {
        Err(Error::Graph(GraphError::NotRecordable { operation, .. })) => operation,
        other => panic!("{other:?}"),
    };
    let mut on_stream = stream.zeros::<u32>(1).unwrap();
    let mixed = stream.capture(|capture| {
        let mut data = capture.keep(stream.zeros::<u32>(1)?)?;
        let mut group = Group::new();
        group.push(capture, it.all_reduce_in_place(ReduceOp::Sum, &mut data));
        group.push(stream, it.all_reduce_in_place(ReduceOp::Sum, &mut on_stream));
        group.run()
    });
    assert_eq!(refused(mixed.map(drop)), "a group with operations on ordinary streams");

    let two_graphs = Stream::capture_all([stream, stream], |captures| {
        let mut one = captures[0].keep(stream.zeros::<u32>(1)?)?;
        let mut other = captures[1].keep(stream.zeros::<u32>(1)?)?;
        let mut group = Group::new();
        group.push(&captures[0], it.all_reduce_in_place(ReduceOp::Sum, &mut one));
        group.push(&captures[1], it.all_reduce_in_place(ReduceOp::Sum, &mut other));
        group.run()
    });
    assert_eq!(refused(two_graphs.map(drop)), "a group with one communicator in two graphs");

    let of_graph = stream.capture(|capture| {
        let mut data = capture.zeros::<u32>(1)?;
        it.all_reduce_in_place(ReduceOp::Sum, &mut data).enqueue(capture)
    });
    assert_eq!(refused(of_graph.map(drop)), "communication with memory that a node allocates");

    let unknown =
        stream.capture(|capture| it.all_reduce_in_place(ReduceOp::Sum, &mut on_stream).enqueue(capture));
    assert_eq!(unknown.map(drop), Err(GraphError::UnknownBuffer.into()));
    it.check().unwrap(); // nothing was given to NCCL

    let [first, second] = [(); 2].map(|()| sums_of(&ranks.communicators, &ranks));
    let mut first = first.into_iter().next().unwrap().instantiate().unwrap();
    let update = first.update(second.into_iter().next().unwrap());
    let Err(Error::Graph(GraphError::UpdateRefused { reason })) = update else { panic!("{update:?}") };
    assert_eq!(*reason, *"node 0 is the communication of one graph");
}
