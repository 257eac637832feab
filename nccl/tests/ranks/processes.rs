//! Ranks that are processes, as launchers start them: this program starts itself.

use std::env;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::world::{on_gpus, variable};
use ferrogrid::nccl::{Communicator, CommunicatorOptions, Group, Process, ReduceOp};
use ferrogrid::{Error, NcclError};

/// What a process is to do; without it, it is the one that starts the others.
const PART: &str = "FERROGRID_TEST_PART";

/// GPUs take seconds to meet. `FERROGRID_TEST_TIMEOUT` has other seconds.
fn timeout() -> Duration {
    let usual = if on_gpus() { 20 } else { 5 };
    Duration::from_secs(variable("FERROGRID_TEST_TIMEOUT").unwrap_or(usual))
}

/// How often a rank is killed in each test: `FERROGRID_TEST_KILLS` times.
fn kills() -> u64 {
    variable("FERROGRID_TEST_KILLS").unwrap_or(if on_gpus() { 1 } else { 2 })
}

/// What an error may take beyond the time-out: NCCL ends its kernels.
const PATIENCE: Duration = Duration::from_secs(5);

/// The part of one rank. It ends with a line that the test reads.
#[test]
fn rank() {
    let Ok(part) = env::var(PART) else { return };
    match rank_of(&part) {
        Ok(text) => println!("<{text}>"),
        Err(error) => println!("<{error}>"),
    }
}

fn rank_of(part: &str) -> ferrogrid::Result<String> {
    if part == "from_env" {
        let communicator = Communicator::from_env()?;
        return sum(&communicator);
    }
    let process = Process::from_env()?;
    let options = CommunicatorOptions::new().with_timeout(timeout());
    let communicator = Communicator::of_process(&process, &process.device()?, options)?;
    if part == "all" {
        return all_operations(&communicator).map(|()| "all".to_owned());
    }
    let start = Instant::now();
    let first = sum(&communicator);
    if part == "meet" {
        return first;
    }
    if communicator.rank() == usize::from(part == "kill") {
        first?;
        std::process::abort();
    }
    // The other rank may be gone before this one has the first result.
    match first.and_then(|_| sum(&communicator)) {
        Err(Error::Nccl(
            error @ (NcclError::TimedOut { .. } | NcclError::Call { .. } | NcclError::PeerLost { .. }),
        )) => Ok(format!("lost after {} ms: {error}", start.elapsed().as_millis())),
        other => Ok(format!("not expected: {other:?}")),
    }
}

/// The sum of the ranks, as text.
fn sum(communicator: &Communicator) -> ferrogrid::Result<String> {
    let stream = communicator.device().new_stream()?;
    let mut data = stream.upload(&[communicator.rank() as u32, 1])?;
    communicator.all_reduce_in_place(ReduceOp::Sum, &mut data).enqueue(&stream)?;
    Ok(format!("rank {} of {}: {:?}", communicator.rank(), communicator.size(), stream.download(&data)?))
}

/// Each operation, among any number of ranks.
fn all_operations(it: &Communicator) -> ferrogrid::Result<()> {
    let (rank, size) = (it.rank() as u32, it.size() as u32);
    let all = || 0..size;
    let stream = it.device().new_stream()?;
    let own = stream.upload(&[rank, 10 * rank])?;
    let wide = stream.upload(&all().map(|part| 100 * rank + part).collect::<Vec<_>>())?;
    let (mut two, mut whole) = (stream.zeros::<u32>(2)?, stream.zeros::<u32>(2 * it.size())?);
    let (mut one, mut each) = (stream.zeros::<u32>(1)?, stream.zeros::<u32>(it.size())?);
    let sum: u32 = all().sum();

    it.all_reduce(ReduceOp::ScaledSum(2), &own, &mut two).enqueue(&stream)?;
    assert_eq!(stream.download(&two)?, [2 * sum, 20 * sum]);
    it.reduce(ReduceOp::Max, 1, &own, Some(two.view_mut())).enqueue(&stream)?;
    let greatest = [size - 1, 10 * (size - 1)];
    assert_eq!(stream.download(&two)?, if rank == 1 { greatest } else { [2 * sum, 20 * sum] });
    it.broadcast(1, (rank == 1).then_some(own.view()), &mut two).enqueue(&stream)?;
    assert_eq!(stream.download(&two)?, [1, 10]);
    it.all_gather(&own, &mut whole).enqueue(&stream)?;
    let gathered: Vec<u32> = all().flat_map(|rank| [rank, 10 * rank]).collect();
    assert_eq!(stream.download(&whole)?, gathered);
    it.reduce_scatter(ReduceOp::Min, &wide, &mut one).enqueue(&stream)?;
    assert_eq!(stream.download(&one)?, [rank]);
    it.all_to_all(&wide, &mut each).enqueue(&stream)?;
    assert_eq!(stream.download(&each)?, all().map(|from| 100 * from + rank).collect::<Vec<_>>());
    stream.fill_into(0, &mut whole)?;
    let root = it.size() - 1;
    let is_root = it.rank() == root;
    it.gather(root, &own, is_root.then_some(whole.view_mut())).enqueue(&stream)?;
    it.scatter(root, is_root.then_some(wide.view()), &mut one).enqueue(&stream)?;
    let at_root = if is_root { gathered } else { vec![0; 2 * it.size()] };
    assert_eq!((stream.download(&whole)?, stream.download(&one)?), (at_root, vec![100 * (size - 1) + rank]));

    // In a ring, by two messages at a time; and in place.
    let (next, last) = ((rank + 1) % size, (rank + size - 1) % size);
    let mut exchange = Group::new();
    exchange.push(&stream, it.send(next as usize, &own));
    exchange.push(&stream, it.recv(last as usize, &mut two));
    exchange.run()?;
    assert_eq!(stream.download(&two)?, [last, 10 * last]);
    it.reduce_scatter_in_place(ReduceOp::Sum, &mut each).enqueue(&stream)?;
    it.all_gather_in_place(&mut each).enqueue(&stream)?;
    let of_part = |part: u32| all().map(|to| 100 * part + to).sum::<u32>();
    assert_eq!(stream.download(&each)?, all().map(of_part).collect::<Vec<_>>());

    // Even and odd ranks; and what disagrees is an error of all, which leaves the communicator as it is.
    let part = it.split(Some(rank % 2), 0)?.expect("each has a color");
    assert_eq!((part.rank() as u32, part.size() as u32), (rank / 2, (size + 1 - rank % 2) / 2));
    let mut sum_of_part = stream.upload(&[rank])?;
    part.all_reduce_in_place(ReduceOp::Sum, &mut sum_of_part).enqueue(&stream)?;
    let expected: u32 = all().filter(|other| other % 2 == rank % 2).sum();
    assert_eq!(stream.download(&sum_of_part)?, [expected]);
    if !it.device().is_cuda() {
        // A part that a rank drops: the others of it know, and it still has the whole.
        if rank == 0 {
            part.recv(1, &mut sum_of_part).enqueue(&stream)?;
            let lost = NcclError::PeerLost { operation: "recv", rank: 0, peer: 1 };
            assert_eq!(stream.synchronize(), Err(lost.into()));
        }
        drop(part);
        it.broadcast_in_place(0, whole.slice_mut(..1 + it.rank())?).enqueue(&stream)?;
        let error = stream.synchronize().unwrap_err();
        assert!(matches!(error, Error::Nccl(NcclError::Mismatch { one: (0, _), other: (1, _) })), "{error}");
    }
    it.all_reduce_in_place(ReduceOp::Average, &mut two).enqueue(&stream)?;
    assert_eq!(stream.download(&two)?, [sum / size, 10 * sum / size]);
    Ok(())
}

/// Starts ranks 0 to `N`, with these variables for all.
fn start<const N: usize>(part: &str, variables: &[(&str, &str)]) -> [Child; N] {
    std::array::from_fn(|rank| start_rank(part, rank, N, variables))
}

fn start_rank(part: &str, rank: usize, size: usize, variables: &[(&str, &str)]) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "processes::rank", "--nocapture"]).env(PART, part).stdout(Stdio::piped());
    command.env("RANK", rank.to_string()).env("LOCAL_RANK", rank.to_string());
    command.env("WORLD_SIZE", size.to_string()).env_remove("FERROGRID_NCCL_FILE");
    if !on_gpus() {
        command.env("FERROGRID_DEVICE", "cpu");
    }
    command.envs(variables.iter().copied()).stderr(Stdio::piped()).spawn().unwrap()
}

/// What a rank has ended with.
fn text(child: Child) -> String {
    let Output { stdout, stderr, .. } = child.wait_with_output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    let line = stdout.split_once('<').and_then(|(_, rest)| rest.split_once('>'));
    line.map_or_else(|| panic!("{stdout}\n{stderr}"), |(line, _)| line.to_owned())
}

/// A port that is free now.
fn address() -> String {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// A file that does not exist, in a folder that does.
fn file() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("id").display().to_string();
    (folder, file)
}

#[test]
fn processes_without_a_place_to_meet_are_refused() {
    let [first, second] = start("from_env", &[]).map(text);
    let expected = match on_gpus() {
        true => "2 processes need a place to meet: set NCCL_COMM_ID=",
        false => "communication among processes is not supported on the CPU device",
    };
    assert!(first == second && first.starts_with(expected), "{first}");
}

#[test]
fn processes_meet_by_an_address_or_a_file() {
    let (folder, file) = file();
    let (of_file, of_address) = (("FERROGRID_NCCL_FILE", &*file), ("NCCL_COMM_ID", &*address()));
    for variable in [of_file, of_address] {
        if variable == of_address && !on_gpus() {
            continue; // It is read by NCCL.
        }
        for (rank, child) in start::<2>("meet", &[variable]).into_iter().enumerate() {
            assert_eq!(text(child), format!("rank {rank} of 2: [1, 2]"), "{variable:?}");
        }
    }
    assert_eq!(folder.path().read_dir().unwrap().count(), 0, "the file is removed");
}

#[test]
fn processes_have_all_operations() {
    let (_folder, file) = file();
    let variables = [("FERROGRID_NCCL_FILE", &*file)];
    let texts = match on_gpus() {
        true => start::<2>("all", &variables).map(text).to_vec(),
        false => start::<5>("all", &variables).map(text).to_vec(),
    };
    assert!(texts.iter().all(|text| text == "all"), "{texts:?}");
}

/// How long the other process took to find out, if what it has ended with says so.
fn time_until_lost(text: &str) -> Option<Duration> {
    let (milliseconds, _) = text.strip_prefix("lost after ")?.split_once(" ms: ")?;
    milliseconds.parse().ok().map(Duration::from_millis)
}

#[test]
fn a_killed_process_is_an_error_of_the_other() {
    for turn in 1..=kills() {
        let (_folder, file) = file();
        let [first, mut second] = start("kill", &[("FERROGRID_NCCL_FILE", &*file)]);
        let text = text(first);
        println!("rank 1 killed, turn {turn}: {text}");
        assert!(time_until_lost(&text).is_some_and(|time| time < timeout() + PATIENCE), "{text}");
        assert!(!second.wait().unwrap().success());
    }
}

/// Rank 0 has the world of ranks on CPU devices.
#[test]
fn a_killed_first_process_is_an_error_of_the_other() {
    for turn in 1..=kills() {
        let (_folder, file) = file();
        let [mut first, second] = start("kill_first", &[("FERROGRID_NCCL_FILE", &*file)]);
        let text = text(second);
        println!("rank 0 killed, turn {turn}: {text}");
        // The end of a connection is known at once.
        let most = if on_gpus() { timeout() + PATIENCE } else { timeout() / 2 };
        assert!(time_until_lost(&text).is_some_and(|time| time < most), "{text}");
        assert!(!first.wait().unwrap().success());
    }
}

#[test]
fn a_process_that_does_not_come_is_an_error_in_time() {
    let (_folder, file) = file();
    let [first, third] = [0, 2].map(|rank| start_rank("meet", rank, 3, &[("FERROGRID_NCCL_FILE", &*file)]));
    for text in [text(first), text(third)] {
        assert!(text.contains("has waited for"), "{text}");
        let milliseconds = timeout().as_millis();
        let expected = format!(
            "rank 0 has waited for {milliseconds} ms for rank 1; a rank may be lost, or calls another operation"
        );
        assert!(on_gpus() || text.ends_with(&expected), "{text}");
    }
}
