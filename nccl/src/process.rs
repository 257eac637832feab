//! [`Process`]: this process among those that a launcher has started.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use ferrogrid_host::{Device, Error, NcclError, Result};

use crate::cpu;
use crate::meeting::Meeting;
use crate::unique_id::{UniqueId, several_processes};

/// This process's place among those that a launcher has started on one machine or several, from environment variables.
///
/// | launcher | rank, size, rank on the machine |
/// |---|---|
/// | torchrun, Kubernetes jobs of Kubeflow | `RANK`, `WORLD_SIZE`, `LOCAL_RANK` if there; `MASTER_ADDR` |
/// | mpirun of Open MPI | `OMPI_COMM_WORLD_RANK`, `OMPI_COMM_WORLD_SIZE`, `OMPI_COMM_WORLD_LOCAL_RANK` |
/// | mpirun of MPICH, Intel MPI | `PMI_RANK`, `PMI_SIZE`, `MPI_LOCALRANKID` if there |
/// | srun | `SLURM_PROCID`, `SLURM_STEP_NUM_TASKS`, `SLURM_LOCALID`; `SLURM_STEP_NODELIST` |
///
/// `cargo ferrogrid launch` sets torchrun's variables, for one machine.
///
/// Processes meet by NCCL's own protocol at `NCCL_COMM_ID=HOST:PORT`, a free port of the host of rank 0; or by a file
/// that all can read, `FERROGRID_NCCL_FILE`, which must not exist yet. One of the two variables is set to the same value for all.
/// Processes with CPU devices are on one machine, and meet by the file.
///
/// ```sh
/// NCCL_COMM_ID=127.0.0.1:29501 torchrun --no-python --nproc-per-node 2 target/release/train
/// FERROGRID_NCCL_FILE=/shared/job-$SLURM_JOB_ID srun target/release/train
/// ```
///
/// ```
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::nccl::Process;
///
/// let process = Process::from_env()?;
/// if process.rank() == 0 {
///     println!("{} processes", process.size()); // 1 without a launcher
/// }
/// assert_eq!((process.launcher(), process.local_rank()), (None, 0));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    rank: usize,
    size: usize,
    local_rank: usize,
    /// That of rank 0, if the launcher names it.
    host: Option<Box<str>>,
    launcher: Option<&'static str>,
}

/// The variables that a launcher sets.
struct Launcher {
    name: &'static str,
    rank: &'static str,
    size: &'static str,
    local_rank: &'static str,
    /// The variable with the host of rank 0, or with a list that begins with it.
    host: Option<&'static str>,
}

/// In the order in which they are asked: one may have been started by a later one.
const LAUNCHERS: [Launcher; 4] = [
    Launcher {
        name: "torchrun",
        rank: "RANK",
        size: "WORLD_SIZE",
        local_rank: "LOCAL_RANK",
        host: Some("MASTER_ADDR"),
    },
    Launcher {
        name: "mpirun (Open MPI)",
        rank: "OMPI_COMM_WORLD_RANK",
        size: "OMPI_COMM_WORLD_SIZE",
        local_rank: "OMPI_COMM_WORLD_LOCAL_RANK",
        host: None,
    },
    Launcher {
        name: "mpirun (MPICH)",
        rank: "PMI_RANK",
        size: "PMI_SIZE",
        local_rank: "MPI_LOCALRANKID",
        host: None,
    },
    Launcher {
        // Not SLURM_NTASKS: that is there in batch scripts, too, where one process runs.
        name: "srun",
        rank: "SLURM_PROCID",
        size: "SLURM_STEP_NUM_TASKS",
        local_rank: "SLURM_LOCALID",
        host: Some("SLURM_STEP_NODELIST"),
    },
];

impl Process {
    /// The place that the environment names; that of the only process if it names none.
    ///
    /// # Errors
    /// [`NcclError::Launcher`] if a variable is missing; [`Error::Environment`] for values that are no numbers;
    /// [`NcclError::Rank`] if the rank is not below the size.
    pub fn from_env() -> Result<Self> {
        Self::from_variables(|name| env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self> {
        for launcher in &LAUNCHERS {
            match (variable(launcher.rank), variable(launcher.size)) {
                (Some(rank), Some(size)) => return launcher.place(&rank, &size, &variable),
                (None, None) => {}
                // A batch script of Slurm has the number of its own process.
                (Some(_), None) if launcher.name == "srun" => {}
                (Some(_), None) => return Err(launcher.lacks(launcher.rank, launcher.size)),
                (None, Some(_)) => return Err(launcher.lacks(launcher.size, launcher.rank)),
            }
        }
        Ok(Process { rank: 0, size: 1, local_rank: 0, host: None, launcher: None })
    }

    /// Its rank.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many processes there are.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Its rank among those of its machine; if the launcher does not say, its rank among all.
    pub fn local_rank(&self) -> usize {
        self.local_rank
    }

    /// The launcher.
    pub fn launcher(&self) -> Option<&'static str> {
        self.launcher
    }

    /// Its device: what `FERROGRID_DEVICE` names; else the GPU whose number is [`local_rank`](Process::local_rank), counted around
    /// if the process sees fewer; else the CPU device.
    ///
    /// # Errors
    /// As for [`Device::best`] and [`Device::cuda`].
    pub fn device(&self) -> Result<Device> {
        match (env::var_os("FERROGRID_DEVICE").filter(|choice| !choice.is_empty()), Device::count()) {
            (Some(_), _) | (None, 0) => Device::best(),
            (None, count) => Device::cuda(self.local_rank % count),
        }
    }

    /// The rank on a CPU device, if there are several processes.
    pub(crate) fn join_on_cpu(&self, device: &Device, timeout: Duration) -> Result<Option<cpu::Member>> {
        if self.size == 1 || device.is_cuda() {
            return Ok(None);
        }
        let file = file().ok_or_else(|| several_processes(device))?;
        cpu::join_processes(&file, self.rank, self.size, timeout).map(Some)
    }

    /// What all processes agree on.
    pub(crate) fn meet(&self, device: &Device, timeout: Duration) -> Result<Meeting> {
        if self.size == 1 {
            return Ok(Meeting::alone(UniqueId::new(device)?));
        }
        if let Some(file) = file() {
            return Meeting::by_file(&file, self.rank, || UniqueId::new(device), timeout);
        }
        if env::var_os("NCCL_COMM_ID").is_some_and(|place| !place.is_empty()) {
            // NCCL reads it, and makes the same id in each process.
            return Ok(Meeting::alone(UniqueId::new(device)?));
        }
        Err(NcclError::NoMeetingPoint { size: self.size, host: self.host.clone() }.into())
    }
}

impl Launcher {
    fn place(&self, rank: &str, size: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Process> {
        let (rank, size) = (number(self.rank, rank)?, number(self.size, size)?);
        if rank >= size {
            return Err(NcclError::Rank { operation: self.name, role: self.rank, rank, size }.into());
        }
        let local_rank =
            variable(self.local_rank).map_or(Ok(rank), |local| number(self.local_rank, &local))?;
        let host = self.host.and_then(variable).map(|hosts| first_host(&hosts));
        Ok(Process { rank, size, local_rank, host, launcher: Some(self.name) })
    }

    fn lacks(&self, present: &'static str, missing: &'static str) -> Error {
        NcclError::Launcher { launcher: self.name, present, missing }.into()
    }
}

/// The file by which processes meet.
fn file() -> Option<PathBuf> {
    env::var_os("FERROGRID_NCCL_FILE").filter(|file| !file.is_empty()).map(PathBuf::from)
}

fn number(variable: &'static str, value: &str) -> Result<usize> {
    value.trim().parse().map_err(|_| Error::Environment {
        variable,
        value: value.into(),
        expected: "a number, from 0",
    })
}

/// The first host of a list like `gpu[07-12,20],login`.
fn first_host(hosts: &str) -> Box<str> {
    let end = hosts.find([',', '[']).unwrap_or(hosts.len());
    let Some(numbers) = hosts[end..].strip_prefix('[') else { return hosts[..end].into() };
    let first = numbers.split([',', '-', ']']).next().unwrap_or_default();
    format!("{}{first}", &hosts[..end]).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)]) -> Result<Process> {
        let value = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Process::from_variables(value)
    }

    fn place(variables: &[(&str, &str)]) -> (usize, usize, usize, Option<&'static str>) {
        let process = with(variables).unwrap();
        (process.rank(), process.size(), process.local_rank(), process.launcher())
    }

    #[test]
    fn each_launcher_is_understood() {
        let torchrun = [("RANK", "5"), ("WORLD_SIZE", "8"), ("LOCAL_RANK", "1"), ("MASTER_ADDR", "node7")];
        assert_eq!(place(&torchrun), (5, 8, 1, Some("torchrun")));
        assert_eq!(with(&torchrun).unwrap().host.as_deref(), Some("node7"));
        let kubernetes = [("RANK", "1"), ("WORLD_SIZE", "2")];
        assert_eq!(place(&kubernetes), (1, 2, 1, Some("torchrun")));
        let open_mpi = [
            ("OMPI_COMM_WORLD_RANK", "3"),
            ("OMPI_COMM_WORLD_SIZE", "4"),
            ("OMPI_COMM_WORLD_LOCAL_RANK", "2"),
            // Started below srun.
            ("SLURM_PROCID", "0"),
            ("SLURM_STEP_NUM_TASKS", "1"),
        ];
        assert_eq!(place(&open_mpi), (3, 4, 2, Some("mpirun (Open MPI)")));
        let mpich = [("PMI_RANK", "1"), ("PMI_SIZE", "3"), ("MPI_LOCALRANKID", "0")];
        assert_eq!(place(&mpich), (1, 3, 0, Some("mpirun (MPICH)")));
        let srun = [
            ("SLURM_PROCID", "9"),
            ("SLURM_STEP_NUM_TASKS", "16"),
            ("SLURM_LOCALID", "1"),
            ("SLURM_STEP_NODELIST", "gpu[07-12,20]"),
        ];
        assert_eq!(place(&srun), (9, 16, 1, Some("srun")));
        assert_eq!(with(&srun).unwrap().host.as_deref(), Some("gpu07"));
    }

    #[test]
    fn without_a_launcher_there_is_one_process() {
        assert_eq!(place(&[]), (0, 1, 0, None));
        // A batch script, not below srun.
        assert_eq!(place(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "8")]), (0, 1, 0, None));
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let text = |variables: &[(&str, &str)]| with(variables).unwrap_err().to_string();
        let missing = "the environment has RANK, as torchrun sets, but no WORLD_SIZE";
        assert_eq!(text(&[("RANK", "0")]), missing);
        let missing = "the environment has PMI_SIZE, as mpirun (MPICH) sets, but no PMI_RANK";
        assert_eq!(text(&[("PMI_SIZE", "2")]), missing);
        let wrong = "the environment variable WORLD_SIZE is \"two\"; expected a number, from 0";
        assert_eq!(text(&[("RANK", "0"), ("WORLD_SIZE", "two")]), wrong);
        let over = "torchrun: the RANK is 2, but there are 2 ranks, numbered from 0";
        assert_eq!(text(&[("RANK", "2"), ("WORLD_SIZE", "2")]), over);
    }

    #[test]
    fn processes_without_a_place_to_meet_are_told_how_to_name_one() {
        let host = Some("node7".into());
        let error = NcclError::NoMeetingPoint { size: 2, host }.to_string();
        assert!(
            error.starts_with("2 processes need a place to meet: set NCCL_COMM_ID=node7:29501 (a free port"),
            "{error}"
        );
        let two = with(&[("RANK", "0"), ("WORLD_SIZE", "2")]).unwrap();
        let error = two.join_on_cpu(&Device::cpu(), Duration::ZERO).err().unwrap();
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    }

    #[test]
    fn the_first_of_slurms_hosts() {
        for (hosts, first) in
            [("a", "a"), ("a,b", "a"), ("n[3,5]", "n3"), ("n[10-12],m1", "n10"), ("x1,n[2-3]", "x1")]
        {
            assert_eq!(*first_host(hosts), *first, "{hosts}");
        }
    }
}
