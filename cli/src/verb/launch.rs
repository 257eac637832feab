//! `cargo ferrogrid launch`: starts a program several times, as ranks of one machine that communicate by `ferrogrid::nccl`.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ferrogrid_host::Device;

use crate::{Failure, cargo};

/// How often it looks for processes that have ended.
const PERIOD: Duration = Duration::from_millis(20);

/// The arguments of `launch`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The number of processes: by default one for each GPU.
    #[arg(short = 'n', long, value_name = "COUNT")]
    processes: Option<NonZeroUsize>,

    /// The program, and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// Processes, which are ended if they are left.
struct Processes(Vec<Child>);

/// Starts the processes, and waits for them.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Failure> {
    let size = options.processes.map_or_else(|| Device::count().max(1), NonZeroUsize::get);
    let file = meeting_file();
    let mut processes = Processes(Vec::with_capacity(size));
    for rank in 0..size {
        processes.0.push(start(options, rank, size, &file)?);
    }
    let failed = processes.wait()?;
    drop(processes);
    // Rank 0 removes it, unless it has failed before.
    let _removed = std::fs::remove_file(file);
    match failed {
        None => Ok(ExitCode::SUCCESS),
        Some((rank, status)) => {
            eprintln!("error: rank {rank} of {size} has failed: {status}; the others have been ended");
            Ok(cargo::exit_code(status))
        }
    }
}

/// The file by which the processes meet, which does not exist.
fn meeting_file() -> PathBuf {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    std::env::temp_dir().join(format!("ferrogrid-launch-{}-{now}", std::process::id()))
}

/// Starts a rank, with torchrun's variables.
fn start(options: &Options, rank: usize, size: usize, file: &PathBuf) -> Result<Child, Failure> {
    let mut command = Command::new(&options.program[0]);
    command.args(&options.program[1..]);
    for (name, value) in
        [("RANK", rank), ("LOCAL_RANK", rank), ("WORLD_SIZE", size), ("LOCAL_WORLD_SIZE", size)]
    {
        command.env(name, value.to_string());
    }
    command.env("MASTER_ADDR", "127.0.0.1");
    if std::env::var_os("NCCL_COMM_ID").is_none() {
        command.env("FERROGRID_NCCL_FILE", file);
    }
    command.spawn().map_err(|error| cargo::start_failure(&command, &error))
}

impl Processes {
    /// Waits until all have ended, or one has failed: then the number of that, and how it has ended.
    fn wait(&mut self) -> Result<Option<(usize, ExitStatus)>, Failure> {
        loop {
            let mut running = false;
            for (rank, process) in self.0.iter_mut().enumerate() {
                match process.try_wait()? {
                    Some(status) if !status.success() => return Ok(Some((rank, status))),
                    Some(_) => {}
                    None => running = true,
                }
            }
            if !running {
                return Ok(None);
            }
            thread::sleep(PERIOD);
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for process in &mut self.0 {
            // One that has ended by itself is no failure.
            let _ended = process.kill();
            let _status = process.wait();
        }
    }
}
