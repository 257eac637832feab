//! Ranks that are processes, as launchers start them: this program starts itself.

use std::env;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::world::on_gpus;
use ferrogrid::nccl::{Communicator, CommunicatorOptions, Process, ReduceOp};
use ferrogrid::{Error, NcclError};

/// What a process is to do; without it, it is the one that starts the others.
const PART: &str = "FERROGRID_TEST_PART";

const TIMEOUT: Duration = Duration::from_secs(5);

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
    let options = CommunicatorOptions::new().with_timeout(TIMEOUT);
    let communicator = Communicator::of_process(&process, &process.device()?, options)?;
    let text = sum(&communicator)?;
    if part == "meet" {
        return Ok(text);
    }
    if communicator.rank() == 1 {
        std::process::abort();
    }
    let start = Instant::now();
    match sum(&communicator) {
        Err(Error::Nccl(NcclError::TimedOut { .. } | NcclError::Call { .. })) => {
            Ok(format!("lost after {} s", start.elapsed().as_secs()))
        }
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

/// Starts ranks 0 and 1, with these variables for both.
fn start(part: &str, variables: &[(&str, &str)]) -> [Child; 2] {
    [0, 1].map(|rank: usize| {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "processes::rank", "--nocapture"]).env(PART, part).stdout(Stdio::piped());
        command.env("RANK", rank.to_string()).env("LOCAL_RANK", rank.to_string()).env("WORLD_SIZE", "2");
        command.envs(variables.iter().copied()).stderr(Stdio::piped()).spawn().unwrap()
    })
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

#[test]
fn cpu_devices_of_several_processes_are_refused() {
    for child in start("from_env", &[("FERROGRID_DEVICE", "cpu")]) {
        let text = text(child);
        assert!(
            text.starts_with("communication among processes is not supported on the CPU device"),
            "{text}"
        );
    }
}

#[test]
fn processes_meet_by_an_address_or_a_file() {
    if !on_gpus() {
        return; // NCCL is what they meet by.
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("id").display().to_string();
    for variable in [("NCCL_COMM_ID", &*address()), ("FERROGRID_NCCL_FILE", &*file)] {
        for (rank, child) in start("meet", &[variable]).into_iter().enumerate() {
            assert_eq!(text(child), format!("rank {rank} of 2: [1, 2]"), "{variable:?}");
        }
    }
    let [first, second] = start("meet", &[]).map(text);
    assert!(first == second && first.starts_with("2 processes need a place to meet"), "{first}");
}

#[test]
fn a_killed_process_is_an_error_of_the_other() {
    if !on_gpus() {
        return;
    }
    for _ in 0..2 {
        let [first, mut second] = start("kill", &[("NCCL_COMM_ID", &address())]);
        let text = text(first);
        let seconds =
            text.strip_prefix("lost after ").and_then(|rest| rest.strip_suffix(" s")?.parse::<u64>().ok());
        assert!(seconds.is_some_and(|seconds| seconds < 20), "{text}");
        assert!(!second.wait().unwrap().success());
    }
}
