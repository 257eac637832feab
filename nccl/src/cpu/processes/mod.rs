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
    let met = host.wait_for_all(start, timeout);
    meeting.end();
    met?;
    let hosting = Some(Arc::new(Hosting::new(host, timeout)));
    Ok(Member::Here { world, rank, hosting })
}
