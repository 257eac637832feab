//! Divergence at barriers and warp operations in errors: source locations, the threads that wait there, and the state of
//! the others.

use std::fmt::{self, from_fn};
use std::panic::Location;

use super::display::coordinates;

/// A place in the source of a kernel.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// Waits for the whole grid, which is only there in a cooperative launch. For a GPU it does not build.
/// #[kernel]
/// pub fn wait_for_all(t: Thread<1>) {
///     t.sync_grid();
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::KernelError;
///
/// kernels::wait_for_all(&stream, Grid::new(1, 32))?;
/// let error = stream.synchronize().unwrap_err();
/// let Error::Kernel(KernelError::NotCooperative { place, .. }) = error else { panic!() };
/// assert_eq!(place.file, file!());
/// assert!(place.line < line!() && place.to_string().starts_with(file!())); // file:line:column
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourcePlace {
    /// The file, as the compiler names it.
    pub file: &'static str,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

impl From<&'static Location<'static>> for SourcePlace {
    fn from(location: &'static Location<'static>) -> Self {
        SourcePlace { file: location.file(), line: location.line(), column: location.column() }
    }
}

impl fmt::Display for SourcePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// Whom a barrier waits for.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// Block 1 does not reach the barrier. For a GPU it does not build.
/// #[kernel(cooperative)]
/// pub fn all_but_one(t: Thread<1>) {
///     if t.block_idx()[0] == 1 {
///         return;
///     }
///     t.sync_grid();
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::{BarrierReach, KernelError};
///
/// // Its words are those of errors, which name the barrier so.
/// assert_eq!(BarrierReach::Grid.to_string(), "grid barrier");
/// kernels::all_but_one(&stream, Grid::new(3, 32))?;
/// let error = stream.synchronize().unwrap_err();
/// assert!(error.to_string().contains("wait at the grid barrier at"), "{error}");
/// let Error::Kernel(KernelError::BlockDivergence { waiting_blocks, ended_blocks, .. }) = error else {
///     panic!()
/// };
/// assert_eq!((waiting_blocks, ended_blocks), (2, 1));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BarrierReach {
    /// The threads of a block.
    Block,
    /// The threads of a cluster of blocks.
    Cluster,
    /// All threads of the grid.
    Grid,
}

display_words!(BarrierReach {
    Block = "barrier",
    Cluster = "cluster barrier",
    Grid = "grid barrier",
});

/// Threads of one block that wait at the same barrier of the source.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// Most threads do not reach the barrier. For a GPU it does not build.
/// #[kernel]
/// pub fn some_wait(t: Thread<1>) {
///     if t.thread_rank() < 3 {
///         t.sync_threads();
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::{BarrierReach, KernelError};
///
/// kernels::some_wait(&stream, Grid::new(1, 64))?;
/// let error = stream.synchronize().unwrap_err();
/// let Error::Kernel(KernelError::BarrierDivergence { waiting, exited, .. }) = error else { panic!() };
/// assert_eq!((waiting.len(), waiting[0].reach), (1, BarrierReach::Block));
/// assert_eq!(waiting[0].threads, [[0, 0, 0], [1, 0, 0], [2, 0, 0]]);
/// assert_eq!(exited.len(), 61);
/// println!("{}", waiting[0]); // at the barrier at src/main.rs:14:9 wait 3 threads: (0, 0, 0), ...
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitingThreads {
    /// The barrier's place.
    pub place: SourcePlace,
    /// Whom it waits for.
    pub reach: BarrierReach,
    /// The threads' places in the block, x first.
    pub threads: Vec<[u32; 3]>,
}

impl WaitingThreads {
    pub(crate) fn new(place: SourcePlace, reach: BarrierReach, threads: Vec<[u32; 3]>) -> Self {
        WaitingThreads { place, reach, threads }
    }
}

impl fmt::Display for WaitingThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let barrier = self.reach;
        write!(f, "at the {barrier} at {} wait {}", self.place, threads(&self.threads))
    }
}

/// What keeps a warp operation from going on.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// Lane 5 has gone when the others shuffle.
/// #[kernel]
/// pub fn too_few(t: Thread<1>, mut y: DisjointSlice<u32>) {
///     if t.warp().lane() == 5 {
///         return;
///     }
///     let seen = t.warp().shuffle_xor(t.thread_rank(), 1);
///     if let Some(y) = y.get_mut(t.index()) {
///         *y = seen;
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::{KernelError, LaneFault};
///
/// let mut y = stream.zeros(32)?;
/// kernels::too_few(&stream, Grid::new(1, 32), &mut y)?;
/// let error = stream.synchronize().unwrap_err();
/// let Error::Kernel(KernelError::WarpDivergence { lane, fault, mask, .. }) = error else { panic!() };
/// assert_eq!((lane, fault, mask), (5, LaneFault::Exited, u32::MAX));
/// assert_eq!(fault.to_string(), "which has exited");
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LaneFault {
    /// The lane is the caller's own, and its mask does not name it.
    NotInMask,
    /// The block has no such thread.
    Missing,
    /// The lane's thread has exited.
    Exited,
    /// The lane is in a warp operation with another mask.
    OtherMask {
        /// That mask.
        mask: u32,
        /// Where.
        place: SourcePlace,
    },
    /// The lane is in another warp operation, with the same mask.
    OtherOperation {
        /// Where.
        place: SourcePlace,
    },
    /// The lane waits at a barrier.
    AtBarrier {
        /// Where.
        place: SourcePlace,
    },
}

impl fmt::Display for LaneFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LaneFault::NotInMask => f.write_str("which is its own and not in the mask"),
            LaneFault::Missing => f.write_str("which the block does not have"),
            LaneFault::Exited => f.write_str("which has exited"),
            LaneFault::OtherMask { mask, place } => {
                write!(f, "which came with the mask {mask:#010x} at {place}")
            }
            LaneFault::OtherOperation { place } => {
                write!(f, "which is in another operation with this mask, at {place}")
            }
            LaneFault::AtBarrier { place } => write!(f, "which waits at the barrier at {place}"),
        }
    }
}

/// A list of threads: how many, and the first few by name.
fn threads(threads: &[[u32; 3]]) -> impl fmt::Display {
    const NAMED: usize = 4;
    from_fn(move |f| {
        let count = threads.len();
        write!(f, "{count} thread{}: ", if count == 1 { "" } else { "s" })?;
        for (index, thread) in threads.iter().take(NAMED).enumerate() {
            write!(f, "{}{}", if index == 0 { "" } else { ", " }, coordinates(thread))?;
        }
        if count > NAMED { write!(f, " and {} more", count - NAMED) } else { Ok(()) }
    })
}

/// A sentence about threads that wait and threads that cannot come any more.
pub(super) fn stuck_block(waiting: &[WaitingThreads], exited: &[[u32; 3]]) -> impl fmt::Display {
    from_fn(move |f| {
        for (index, waiting) in waiting.iter().enumerate() {
            write!(f, "{}{waiting}", if index == 0 { "" } else { "; " })?;
        }
        if exited.is_empty() { Ok(()) } else { write!(f, "; exited have {}", threads(exited)) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn up_to_four_threads_are_named_and_the_rest_are_counted() {
        let text = |count: u32| threads(&(0..count).map(|x| [x, 0, 0]).collect::<Vec<_>>()).to_string();
        let named: Vec<String> = (0..4).map(|x| coordinates(&[x, 0, 0]).to_string()).collect();
        assert_eq!(text(1), format!("1 thread: {}", named[0]));
        assert_eq!(text(4), format!("4 threads: {}", named.join(", ")));
        assert_eq!(text(5), format!("5 threads: {} and 1 more", named.join(", ")));
        assert_eq!(text(64), format!("64 threads: {} and 60 more", named.join(", ")));
    }
}
