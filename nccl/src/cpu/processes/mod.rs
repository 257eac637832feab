//! Ranks on CPU devices of several processes of one machine. The process of rank 0 has the world, and carries out all calls; the
//! others send it their elements, and get back what is to be written.
//!
//! `host` is in the process of rank 0, with a connection to each other rank; `guest` is at the other end. `wire` has what they send.

mod guest;
mod host;
mod wire;

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ferrogrid_host::{NcclError, Result};

use super::Member;
use super::world::World;
use crate::meeting::Meeting;
use crate::unique_id::UniqueId;

pub(super) use guest::{Guest, PendingSplit, Request};
use host::Host;
pub(super) use host::Hosting;

/// Rank `rank` of `size` processes, which meet by the file at `path`. Returns when all have come.
pub(crate) fn join(path: &Path, rank: usize, size: usize, timeout: Duration) -> Result<Member> {
    let start = Instant::now();
    if rank > 0 {
        let id = Meeting::by_file(path, rank, || unreachable!("rank 0 makes it"), timeout)?;
        return Ok(Member::Guest(guest::join(id.id(), rank, size, (start, timeout))?));
    }
    let failed = |error: std::io::Error| NcclError::File {
        path: path.display().to_string().into(),
        reason: format!("no port for other processes: {error}").into(),
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let (id, world) = (UniqueId::of_address(address), Arc::new(World::new(size, timeout)));
    let host = Host::start(listener, id, &world, size).map_err(failed)?;
    let meeting = Meeting::by_file(path, 0, || Ok(id), timeout)?;
    let met = host.meet(start, timeout);
    meeting.end();
    met?;
    let hosting = Some(Arc::new(Hosting::new(host, timeout)));
    Ok(Member::Here { world, rank, hosting })
}

#[cfg(test)]
mod tests {
    use std::thread;

    use ferrogrid_host::Error;

    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    /// In one process: that makes no difference to those that join.
    #[test]
    fn ranks_join_once_with_the_id_and_the_right_size() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("id");
        let of_rank = |rank, size| {
            let file = file.clone();
            thread::spawn(move || join(&file, rank, size, LONG).map(|member| (member.rank(), member.size())))
        };
        let [first, second] = [0, 1].map(|rank| of_rank(rank, 3));
        let id = *Meeting::by_file(&file, 1, || unreachable!(), LONG).unwrap().id();

        let size = of_rank(2, 4).join().unwrap().unwrap_err();
        assert_eq!(size, Error::from(NcclError::Size { rank: 2, size: 4, other: 3 }));
        let mut other = id.to_bytes();
        *other.last_mut().unwrap() ^= 1;
        let start = (Instant::now(), LONG);
        let stranger = guest::join(&UniqueId::from_bytes(other), 2, 3, start).err();
        let refused = NcclError::PeerLost { operation: "Communicator::new", rank: 2, peer: 0 };
        assert_eq!(stranger, Some(refused));
        // The one of the two that comes later.
        let third = of_rank(1, 3);
        while !second.is_finished() && !third.is_finished() {
            thread::sleep(Duration::from_millis(1));
        }
        let (taken, waiting) = if second.is_finished() { (second, third) } else { (third, second) };
        assert_eq!(taken.join().unwrap(), Err(NcclError::RankTaken { rank: 1, size: 3 }.into()));

        let last = of_rank(2, 3);
        let places = [first, waiting, last].map(|rank| rank.join().unwrap().unwrap());
        assert_eq!(places, [(0, 3), (1, 3), (2, 3)]);
    }
}
