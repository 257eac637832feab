//! [`UniqueId`]: what ranks of one communicator have in common.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use ferrogrid_host::{Device, Error, Result};

use crate::gpu;

/// The bytes of an id in NCCL (`NCCL_UNIQUE_ID_BYTES`).
pub(crate) const BYTES: usize = 128;

/// How ids of CPU devices begin; those of NCCL are numbers and addresses of sockets.
const OF_CPU: &[u8] = b"ferrogrid: CPU devices of process ";

/// How ids of CPU devices of several processes begin.
const OF_PROCESSES: &[u8] = b"ferrogrid: CPU devices at ";

/// The name of a communicator that is about to be made: one rank makes it, and all are given it, in whatever way the program
/// has (`ncclUniqueId`). One id is for one communicator.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::nccl::UniqueId;
///
/// let id = UniqueId::new(&Device::cpu())?;
/// let sent: [u8; 128] = id.to_bytes(); // by a file, a socket, MPI
/// assert_eq!(UniqueId::from_bytes(sent), id);
/// assert_ne!(UniqueId::new(&Device::cpu())?, id);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct UniqueId([u8; BYTES]);

impl UniqueId {
    /// A new id for ranks on devices of the kind of `device`.
    ///
    /// # Errors
    /// For GPUs if NCCL is missing or too old, or fails.
    pub fn new(device: &Device) -> Result<Self> {
        if device.is_cuda() { gpu::unique_id().map(UniqueId) } else { Ok(Self::of_cpu(std::process::id())) }
    }

    /// A new id for CPU devices of the process with that number.
    fn of_cpu(process: u32) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        UniqueId::of_text(OF_CPU, &format!("{process}, {number}, {}", now.as_nanos()))
    }

    /// A new id for CPU devices of several processes, which meet at `address`.
    pub(crate) fn of_address(address: SocketAddr) -> Self {
        // Only those that have read the id know it: the standard library's own source of randomness, which is the system's.
        let [first, second] = [0, 1].map(|number| RandomState::new().hash_one(number));
        UniqueId::of_text(OF_PROCESSES, &format!("{address} {first:016x}{second:016x}"))
    }

    /// Where the processes meet, if it is such an id.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        let rest = self.0.strip_prefix(OF_PROCESSES)?;
        let end = rest.iter().position(|&byte| byte == b' ')?;
        std::str::from_utf8(&rest[..end]).ok()?.parse().ok()
    }

    fn of_text(prefix: &[u8], text: &str) -> Self {
        let mut bytes = [0; BYTES];
        bytes[..prefix.len()].copy_from_slice(prefix);
        bytes[prefix.len()..][..text.len()].copy_from_slice(text.as_bytes());
        UniqueId(bytes)
    }

    /// Its bytes, for another process.
    pub fn to_bytes(self) -> [u8; BYTES] {
        self.0
    }

    /// The id with these bytes, from [`UniqueId::to_bytes`].
    pub fn from_bytes(bytes: [u8; BYTES]) -> Self {
        UniqueId(bytes)
    }

    /// That ranks of this process, on `device`, can have it.
    pub(crate) fn check(&self, device: &Device) -> Result<()> {
        let unsupported = |operation, reason| {
            Err(Error::Unsupported { operation, device: device.to_string().into(), reason })
        };
        let Some(rest) = self.0.strip_prefix(OF_CPU) else {
            return match device.is_cuda() {
                true => Ok(()),
                false => unsupported("a `UniqueId` of GPUs", "make it by `UniqueId::new` of a CPU device"),
            };
        };
        if device.is_cuda() {
            return unsupported("a `UniqueId` of CPU devices", "make it by `UniqueId::new` of a GPU");
        }
        let own = format!("{}, ", std::process::id());
        if rest.starts_with(own.as_bytes()) { Ok(()) } else { Err(several_processes(device)) }
    }
}

/// That CPU devices of several processes cannot communicate.
pub(crate) fn several_processes(device: &Device) -> Error {
    Error::Unsupported {
        operation: "communication among processes",
        device: device.to_string().into(),
        reason: "ranks on CPU devices are threads of one process, or processes of one machine that meet by the file FERROGRID_NCCL_FILE (`Communicator::from_env`, `cargo ferrogrid launch`)",
    }
}

impl fmt::Debug for UniqueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UniqueId(")?;
        self.0.iter().take(16).try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str("..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_processes_has_their_address_and_is_another_each_time() {
        let address: SocketAddr = "127.0.0.1:54321".parse().unwrap();
        let ids = [(); 2].map(|()| UniqueId::of_address(address));
        assert_eq!(ids.map(|id| id.address()), [Some(address); 2]);
        assert_ne!(ids[0], ids[1]);
        assert_eq!(UniqueId::new(&Device::cpu()).unwrap().address(), None);
    }

    #[test]
    fn an_id_is_for_devices_of_one_kind_and_cpu_devices_of_one_process() {
        let cpu = Device::cpu();
        let of_gpus = UniqueId::from_bytes([7; BYTES]);
        let other = UniqueId::of_cpu(std::process::id() ^ 1);
        assert_eq!(UniqueId::new(&cpu).unwrap().check(&cpu), Ok(()));
        let reason = |id: UniqueId| id.check(&cpu).unwrap_err().to_string();
        assert!(reason(of_gpus).starts_with("a `UniqueId` of GPUs is not supported on the CPU device"));
        assert!(
            reason(other).starts_with("communication among processes is not supported on the CPU device")
        );
    }
}
