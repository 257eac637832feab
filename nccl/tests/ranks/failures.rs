//! Lost, late and disagreeing ranks: each is an error of the others, within the time-out, and never a hang.

use std::time::{Duration, Instant};

use crate::world::{Ranks, on_gpus, short};
use ferrogrid::nccl::{Communicator, CommunicatorOptions, Group, ReduceOp, UniqueId};
use ferrogrid::{Device, Error, NcclError};

/// Far below the time-out of the ranks that are given it.
const LONG: Duration = Duration::from_secs(60);

/// What a GPU's operation may take beyond its time-out: NCCL ends its kernels.
const PATIENCE: Duration = Duration::from_secs(20);

fn milliseconds_of(timeout: Duration) -> u64 {
    timeout.as_millis().try_into().unwrap()
}

#[test]
fn a_rank_that_does_nothing_is_an_error_within_the_time_out() {
    let ranks = Ranks::with_timeout(short());
    let stream = ranks.stream(0);
    let mut data = stream.upload(&[1.0_f32, 2.0]).unwrap();
    let other = stream.upload(&[3.0_f32]).unwrap();
    let start = Instant::now();
    // On a GPU the first operation connects the ranks, which takes both: then enqueueing it fails.
    let enqueued = ranks.communicators[0].all_reduce_in_place(ReduceOp::Sum, &mut data).enqueue(stream);
    let error = enqueued.and_then(|()| stream.synchronize()).unwrap_err();
    assert!(start.elapsed() >= short() && start.elapsed() < short() + PATIENCE, "{:?}", start.elapsed());
    let Error::Nccl(NcclError::TimedOut { operation, rank, milliseconds, ref missing }) = error else {
        panic!("{error}")
    };
    assert_eq!((operation, rank, milliseconds), ("all_reduce", 0, milliseconds_of(short())));
    if !on_gpus() {
        assert_eq!(**missing, [1, 2]);
    }
    // The communicator is of no use any more; the device is.
    let again = ranks.communicators[0].all_reduce_in_place(ReduceOp::Sum, &mut data).enqueue(stream);
    assert_eq!(again, Err(error.clone()));
    assert_eq!(ranks.communicators[0].check(), Err(error));
    assert_eq!(stream.download(&other).unwrap(), [3.0]);
}

/// After a first operation NCCL is connected, so that the next one is enqueued and waits on the GPU.
#[test]
fn an_operation_that_waits_on_the_device_ends_and_its_result_is_none() {
    let ranks = Ranks::with_timeout(10 * short());
    let mut data: Vec<_> =
        (0..ranks.len()).map(|rank| ranks.stream(rank).upload(&[1_u32]).unwrap()).collect();
    let operations = ranks.communicators.iter().zip(&mut data);
    ranks.run(operations.map(|(rank, data)| rank.all_reduce_in_place(ReduceOp::Sum, data))).unwrap();
    for rank in 0..ranks.len() {
        ranks.stream(rank).synchronize().unwrap();
    }
    let start = Instant::now();
    let stream = ranks.stream(0);
    ranks.communicators[0].all_reduce_in_place(ReduceOp::Sum, &mut data[0]).enqueue(stream).unwrap();
    assert!(start.elapsed() < 5 * short(), "enqueueing does not wait");
    // What reads the result fails, too, on whichever stream.
    let mut copy = ranks.streams[0][1].zeros::<u32>(1).unwrap();
    ranks.streams[0][1].copy(&data[0], &mut copy).unwrap();
    let error = stream.synchronize().unwrap_err();
    assert!(matches!(error, Error::Nccl(NcclError::TimedOut { .. })), "{error}");
    assert!(start.elapsed() < 10 * short() + PATIENCE, "{:?}", start.elapsed());
    assert_eq!(stream.download(&data[0]), Err(error.clone()));
    assert_eq!(ranks.streams[0][1].download(&copy), Err(error));
    // Until it is written again.
    stream.upload_into(&[7], &mut data[0]).unwrap();
    assert_eq!(stream.download(&data[0]).unwrap(), [7]);
    assert_eq!(ranks.stream(1).download(&data[1]).unwrap(), [ranks.len() as u32]);
}

#[test]
fn an_aborted_communicator_fails_what_waits() {
    let ranks = Ranks::with_timeout(LONG);
    let mut data: Vec<_> =
        (0..ranks.len()).map(|rank| ranks.stream(rank).upload(&[1_u32]).unwrap()).collect();
    let operations = ranks.communicators.iter().zip(&mut data);
    ranks.run(operations.map(|(rank, data)| rank.all_reduce_in_place(ReduceOp::Sum, data))).unwrap();
    let (stream, communicator) = (ranks.stream(0), &ranks.communicators[0]);
    stream.synchronize().unwrap();
    communicator.all_reduce_in_place(ReduceOp::Sum, &mut data[0]).enqueue(stream).unwrap();
    let start = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            communicator.abort();
        });
        assert_eq!(stream.synchronize(), Err(NcclError::Aborted { rank: 0 }.into()));
    });
    assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
    assert_eq!(communicator.check(), Err(NcclError::Aborted { rank: 0 }.into()));
    communicator.abort(); // changes nothing
}

#[test]
fn work_behind_an_operation_is_none_that_it_waits_for() {
    let ranks = Ranks::with_timeout(short());
    let mut data: Vec<_> =
        (0..ranks.len()).map(|rank| ranks.stream(rank).upload(&[1_u32]).unwrap()).collect();
    let operations = ranks.communicators.iter().zip(&mut data);
    ranks.run(operations.map(|(rank, data)| rank.all_reduce_in_place(ReduceOp::Sum, data))).unwrap();
    for rank in 0..ranks.len() {
        ranks.stream(rank).launch_host_func(|| std::thread::sleep(short() + short() / 2)).unwrap();
    }
    for (rank, data) in data.iter().enumerate() {
        assert_eq!(ranks.stream(rank).download(data).unwrap(), [ranks.len() as u32]);
        ranks.communicators[rank].check().unwrap();
    }
}

/// On a GPU the call itself waits, while it connects the ranks.
#[test]
fn an_abort_by_another_thread_ends_a_first_operation() {
    let ranks = Ranks::with_timeout(LONG);
    let (stream, communicator) = (ranks.stream(0), &ranks.communicators[0]);
    let mut data = stream.upload(&[1_u32]).unwrap();
    let start = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            communicator.abort();
        });
        let enqueued = communicator.all_reduce_in_place(ReduceOp::Sum, &mut data).enqueue(stream);
        let ended = enqueued.and_then(|()| stream.synchronize());
        assert_eq!(ended, Err(NcclError::Aborted { rank: 0 }.into()));
    });
    assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
}

#[test]
fn a_dropped_rank_is_lost_for_those_that_wait_for_more_than_it_has_enqueued() {
    if on_gpus() {
        return; // NCCL does not tell: it is a time-out there.
    }
    let mut ranks = Ranks::with_timeout(LONG);
    let mut data: Vec<_> = (0..3).map(|rank| ranks.stream(rank).upload(&[1_u32]).unwrap()).collect();
    let last = ranks.communicators.pop().unwrap();
    let stream = ranks.stream(2);
    last.all_reduce_in_place(ReduceOp::Sum, &mut data[2]).enqueue(stream).unwrap();
    // What it has enqueued still counts, on its side, too.
    drop(last);
    let [first, second, _] = &mut data[..] else { unreachable!() };
    let start = Instant::now();
    ranks.communicators[0].all_reduce_in_place(ReduceOp::Sum, &mut *first).enqueue(ranks.stream(0)).unwrap();
    ranks.communicators[1].all_reduce_in_place(ReduceOp::Sum, &mut *second).enqueue(ranks.stream(1)).unwrap();
    assert_eq!(ranks.stream(0).download(&*first).unwrap(), [3]);
    assert_eq!(ranks.stream(1).download(&*second).unwrap(), [3]);
    // And then it is lost, for both, and for a message.
    ranks.communicators[0].all_reduce_in_place(ReduceOp::Sum, &mut *first).enqueue(ranks.stream(0)).unwrap();
    let lost = |operation, rank| Err(NcclError::PeerLost { operation, rank, peer: 2 }.into());
    assert_eq!(ranks.stream(0).synchronize(), lost("all_reduce", 0));
    ranks.communicators[1].recv(2, &mut *second).enqueue(ranks.stream(1)).unwrap();
    assert_eq!(ranks.stream(1).synchronize(), lost("recv", 1));
    // The others still have each other.
    stream_of_messages(&ranks);
    assert_eq!(data.len(), 3);
    assert_eq!(ranks.stream(2).download(&data[2]).unwrap(), [3]);
    assert!(start.elapsed() < LONG / 4, "{:?}", start.elapsed());
}

/// Ten messages from rank 0 to rank 1.
fn stream_of_messages(ranks: &Ranks) {
    let mut received = ranks.stream(1).zeros::<i64>(1).unwrap();
    for number in 0..10 {
        let sent = ranks.stream(0).upload(&[number]).unwrap();
        ranks.communicators[0].send(1, &sent).enqueue(ranks.stream(0)).unwrap();
        ranks.communicators[1].recv(0, &mut received).enqueue(ranks.stream(1)).unwrap();
        assert_eq!(ranks.stream(1).download(&received).unwrap(), [number]);
    }
}

#[test]
fn ranks_that_disagree_get_both_calls() {
    if on_gpus() {
        return; // NCCL does not compare.
    }
    let ranks = Ranks::with_timeout(LONG);
    let (two, three) = (ranks.stream(0).zeros::<u32>(2).unwrap(), ranks.stream(1).zeros::<u32>(3).unwrap());
    let mut other = ranks.stream(2).zeros::<u32>(2).unwrap();
    let mut targets: Vec<_> = (0..3).map(|rank| ranks.stream(rank).zeros::<u32>(3).unwrap()).collect();
    let mut sent: Vec<_> = (0..3).map(|rank| ranks.stream(rank).zeros::<i8>(1).unwrap()).collect();
    let [first, second, _] = &mut targets[..] else { unreachable!() };
    let of_length = |length: usize| format!("all_reduce (sum) of {length} u32").into();
    let mut group = Group::new();
    group.push(
        ranks.stream(0),
        ranks.communicators[0].all_reduce(ReduceOp::Sum, &two, first.slice_mut(..2).unwrap()),
    );
    group.push(ranks.stream(1), ranks.communicators[1].all_reduce(ReduceOp::Sum, &three, &mut *second));
    group.push(ranks.stream(2), ranks.communicators[2].all_reduce_in_place(ReduceOp::Sum, &mut other));
    for (rank, data) in sent.iter_mut().enumerate() {
        group.push(ranks.stream(rank), ranks.communicators[rank].broadcast_in_place(0, data));
    }
    group.run().unwrap();
    let mismatch = NcclError::Mismatch { one: (0, of_length(2)), other: (1, of_length(3)) };
    for rank in 0..3 {
        assert_eq!(ranks.stream(rank).synchronize(), Err(mismatch.clone().into()));
    }
    // All that the group was to write on a stream has no result.
    for (rank, target) in targets.iter().enumerate().take(2) {
        assert_eq!(ranks.stream(rank).download(target), Err(mismatch.clone().into()));
    }
    for (rank, target) in sent.iter().enumerate() {
        assert_eq!(ranks.stream(rank).download(target), Err(mismatch.clone().into()));
    }
    assert_eq!(
        mismatch.to_string(),
        "ranks disagree: rank 0 calls all_reduce (sum) of 2 u32, rank 1 all_reduce (sum) of 3 u32"
    );
}

/// Each pair of calls that differ in one thing.
#[test]
fn types_operations_roots_and_messages_are_compared() {
    if on_gpus() {
        return; // NCCL does not compare.
    }
    let devices = [Device::cpu(), Device::cpu()];
    let streams = [devices[0].new_stream().unwrap(), devices[1].new_stream().unwrap()];
    let options = CommunicatorOptions::new().with_timeout(LONG);
    let texts =
        |differ: fn(&mut Group<'_>, &[Communicator], [&ferrogrid::Stream; 2]) -> ferrogrid::Result<()>| {
            let ranks = Communicator::all_with(&devices, options).unwrap();
            let mut group = Group::new();
            differ(&mut group, &ranks, [&streams[0], &streams[1]]).unwrap();
            let errors = [&streams[0], &streams[1]].map(|stream| stream.synchronize().unwrap_err());
            assert_eq!(errors[0], errors[1]);
            errors[0].to_string()
        };
    let types = texts(|_, ranks, streams| {
        let (mut x, mut y) = (streams[0].zeros::<u32>(2)?, streams[1].zeros::<f32>(2)?);
        ranks[0].all_reduce_in_place(ReduceOp::Sum, &mut x).enqueue(streams[0])?;
        ranks[1].all_reduce_in_place(ReduceOp::Sum, &mut y).enqueue(streams[1])
    });
    assert_eq!(
        types,
        "ranks disagree: rank 0 calls all_reduce (sum) of 2 u32, rank 1 all_reduce (sum) of 2 f32"
    );
    let operations = texts(|_, ranks, streams| {
        let (mut x, mut y) = (streams[0].zeros::<u32>(2)?, streams[1].zeros::<u32>(2)?);
        ranks[0].all_reduce_in_place(ReduceOp::Max, &mut x).enqueue(streams[0])?;
        ranks[1].all_reduce_in_place(ReduceOp::Min, &mut y).enqueue(streams[1])
    });
    assert_eq!(
        operations,
        "ranks disagree: rank 0 calls all_reduce (max) of 2 u32, rank 1 all_reduce (min) of 2 u32"
    );
    let roots = texts(|_, ranks, streams| {
        let (mut x, mut y) = (streams[0].zeros::<u32>(1)?, streams[1].zeros::<u32>(1)?);
        ranks[0].broadcast_in_place(0, &mut x).enqueue(streams[0])?;
        ranks[1].broadcast_in_place(1, &mut y).enqueue(streams[1])
    });
    assert_eq!(
        roots,
        "ranks disagree: rank 0 calls broadcast with root 0 of 1 u32, rank 1 broadcast with root 1 of 1 u32"
    );
    let kinds = texts(|_, ranks, streams| {
        let (mut x, mut y) = (streams[0].zeros::<u32>(2)?, streams[1].zeros::<u32>(2)?);
        ranks[0].broadcast_in_place(0, &mut x).enqueue(streams[0])?;
        ranks[1].all_gather_in_place(&mut y).enqueue(streams[1])
    });
    assert_eq!(
        kinds,
        "ranks disagree: rank 0 calls broadcast with root 0 of 2 u32, rank 1 all_gather of 1 u32"
    );
    let messages = texts(|_, ranks, streams| {
        let (x, mut y) = (streams[0].zeros::<u32>(2)?, streams[1].zeros::<u32>(3)?);
        ranks[0].send(1, &x).enqueue(streams[0])?;
        ranks[1].recv(0, &mut y).enqueue(streams[1])
    });
    assert_eq!(
        messages,
        "ranks disagree: rank 0 calls send with peer 1 of 2 u32, rank 1 recv with peer 0 of 3 u32"
    );
}

#[test]
fn wrong_lengths_ranks_and_streams_are_refused_at_once() {
    let ranks = Ranks::with_timeout(LONG);
    let size = ranks.len();
    let (it, stream) = (&ranks.communicators[0], ranks.stream(0));
    let (x, mut y) = (stream.zeros::<u32>(size + 1).unwrap(), stream.zeros::<u32>(size + 1).unwrap());
    let text = |result: ferrogrid::Result<()>| result.unwrap_err().to_string();

    let uneven = text(it.all_to_all(&x, &mut y).enqueue(stream));
    let parts = format!("expected a multiple of {size}, the same for each rank");
    assert_eq!(
        uneven,
        format!("all_to_all among {size} ranks: the source has {} elements; {parts}", size + 1)
    );
    let short = text(it.all_gather(&x, &mut y).enqueue(stream));
    let expected = format!("expected {}, {size} times the source's {}", size * (size + 1), size + 1);
    assert_eq!(
        short,
        format!("all_gather among {size} ranks: the target has {} elements; {expected}", size + 1)
    );
    let long = text(it.reduce_scatter(ReduceOp::Sum, x.slice(..size).unwrap(), &mut y).enqueue(stream));
    let expected = format!("expected 1, one part of the source's {size}");
    assert_eq!(
        long,
        format!("reduce_scatter among {size} ranks: the target has {} elements; {expected}", size + 1)
    );

    let root = text(it.broadcast_in_place(size, &mut y).enqueue(stream));
    assert_eq!(root, format!("broadcast: the root is {size}, but there are {size} ranks, numbered from 0"));
    let peer = text(it.send(9, &x).enqueue(stream));
    assert_eq!(peer, format!("send: the peer is 9, but there are {size} ranks, numbered from 0"));
    let target = text(it.gather(0, &x, None).enqueue(stream));
    assert_eq!(target, "gather: rank 0 is the root and has no target; only other ranks may leave it out");
    let source = text(it.scatter(0, None, &mut y).enqueue(stream));
    assert_eq!(source, "scatter: rank 0 is the root and has no source; only other ranks may leave it out");

    let other = text(it.send(1, &x).enqueue(ranks.stream(1)));
    let devices = [0, 1].map(|rank| ranks.communicators[rank].device().to_string());
    assert_eq!(
        other,
        format!("rank 0 is {}, but send was to be enqueued on a stream of {}", devices[0], devices[1])
    );

    // Nothing of a group is enqueued if a part is wrong: rank 1 would wait.
    let mut z = ranks.stream(1).zeros::<u32>(1).unwrap();
    let mut group = Group::new();
    group.push(ranks.stream(1), ranks.communicators[1].recv(0, &mut z));
    group.push(stream, it.send(size, &x));
    assert!(group.run().is_err());
    ranks.stream(1).synchronize().unwrap();
}

#[test]
fn a_split_waits_for_all_ranks_and_no_longer_than_the_time_out() {
    let ranks = Ranks::with_timeout(short());
    let start = Instant::now();
    let error = ranks.communicators[0].split(Some(0), 0).unwrap_err();
    assert!(start.elapsed() >= short() && start.elapsed() < short() + PATIENCE, "{:?}", start.elapsed());
    let Error::Nccl(NcclError::TimedOut { operation: "split", rank: 0, milliseconds, ref missing }) = error
    else {
        panic!("{error}")
    };
    assert_eq!(milliseconds, milliseconds_of(short()));
    assert_eq!(**missing, if on_gpus() { vec![] } else { vec![1, 2] });
    assert_eq!(ranks.communicators[0].check(), Err(error));
}

#[test]
fn a_split_without_a_dropped_rank_fails() {
    if on_gpus() {
        return; // NCCL does not tell: it is a time-out there.
    }
    let mut ranks = Ranks::with_timeout(LONG);
    drop(ranks.communicators.remove(1));
    let error = Communicator::split_all(&ranks.communicators, |_| (Some(0), 0)).unwrap_err();
    assert_eq!(error, NcclError::PeerLost { operation: "split", rank: 0, peer: 1 }.into());
}

#[test]
fn ranks_that_do_not_come_and_ranks_that_come_twice() {
    // Whichever comes first: then the other one has another number of ranks, and both wait.
    let first_comes_first = (0..20).any(|_| joins_of_one_rank());
    assert!(first_comes_first);
}

/// A rank that waits for two others, and what they do wrong; whether it came first.
fn joins_of_one_rank() -> bool {
    let device = Device::cpu();
    let options = CommunicatorOptions::new().with_timeout(short());
    let id = UniqueId::new(&device).unwrap();
    let join = move |rank, size| Communicator::new_with(&Device::cpu(), &id, rank, size, options).map(drop);
    let over = NcclError::Rank { operation: "Communicator::new", role: "rank", rank: 3, size: 3 };
    assert_eq!(join(3, 3), Err(over.into()));
    let thread = std::thread::spawn(move || join(1, 3));
    std::thread::sleep(short() / 10);
    if join(0, 2) != Err(NcclError::Size { rank: 0, size: 2, other: 3 }.into()) {
        thread.join().unwrap().unwrap_err();
        return false;
    }
    assert_eq!(join(1, 3), Err(NcclError::RankTaken { rank: 1, size: 3 }.into()));
    let missing = Box::new([0, 2]);
    let late = NcclError::TimedOut {
        operation: "Communicator::new",
        rank: 1,
        milliseconds: milliseconds_of(short()),
        missing,
    };
    assert_eq!(thread.join().unwrap(), Err(late.into()));
    // Nothing is left of it.
    let alone = NcclError::TimedOut {
        operation: "Communicator::new",
        rank: 0,
        milliseconds: milliseconds_of(short()),
        missing: Box::new([1]),
    };
    assert_eq!(join(0, 2), Err(alone.into()));
    true
}

#[test]
fn devices_of_two_kinds_or_one_gpu_twice_are_refused() {
    let Ok(gpu) = Device::cuda(0) else { return };
    let reason = |devices: &[Device]| match Communicator::all(devices).unwrap_err() {
        Error::Nccl(NcclError::Device { rank: 1, reason, .. }) => reason,
        other => panic!("{other}"),
    };
    assert!(reason(&[Device::cpu(), gpu.clone()]).contains("another kind"));
    assert!(reason(&[gpu.clone(), gpu]).contains("an earlier rank"));
}
