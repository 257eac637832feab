//! The memory of a `BlockOrder<T>`: the counter of blocks and the values that they publish. A stream keeps it from one launch to
//! the next, because zeroing it takes as long as a small kernel.

use std::ffi::c_void;
use std::ptr::from_ref;
use std::sync::Mutex;

use ferrogrid_device::order::{MOST_LAUNCHES, OrderValue, words_for};

use crate::error::Result;
use crate::kernel::Kernel;
use crate::launch::grid::Grid;
use crate::launch::temporary::Temporary;
use crate::memory::access::Access;
use crate::order::Use;
use crate::stream::{Stream, StreamInner};
use crate::sync::lock;

/// The fewest words that are allocated to be kept.
const LEAST: usize = 1 << 11;
/// The most words that are kept: 1 MiB.
const MOST: usize = 1 << 17;

/// What a stream keeps for its next launch with an order.
#[derive(Debug, Default)]
pub(crate) struct KeptOrder(Mutex<Option<Words>>);

/// Words that were zeroed, and the launches that have used them since.
#[derive(Debug)]
struct Words {
    memory: Temporary<u64>,
    launches: u32,
}

impl KeptOrder {
    fn take(&self, words: usize) -> Option<Words> {
        lock(&self.0).take_if(|kept| kept.memory.len() >= words && kept.launches < MOST_LAUNCHES)
    }

    /// Keeps `words`, unless there are as many already that have served fewer launches.
    fn put(&self, words: Words) {
        let mut kept = lock(&self.0);
        let is_better =
            |kept: &Words| kept.memory.len() < words.memory.len() || kept.launches > words.launches;
        if kept.as_ref().is_none_or(is_better) {
            *kept = Some(words);
        }
    }

    /// Frees what is kept. The stream must still take work.
    pub(crate) fn clear(&self) {
        lock(&self.0).take();
    }
}

/// Memory for the order of one launch.
#[doc(hidden)]
pub struct OrderMemory<'s> {
    /// There until this is dropped.
    words: Option<Words>,
    start: *const u8,
    /// Where the words go after the launch.
    keeper: Option<&'s StreamInner>,
}

impl<'s> OrderMemory<'s> {
    /// A count and a slot for each block of `grid`.
    ///
    /// # Errors
    /// For a grid that cannot be launched; if there is no memory for so many blocks, and in the update of a graph.
    pub fn new<T: OrderValue, const R: usize>(
        kernel: &'static Kernel,
        grid: Grid<R>,
        stream: &'s Stream,
    ) -> Result<Self> {
        let config = grid.resolve(kernel, stream.device().limits())?;
        let blocks = config.map_or(0, |config| config.grid[0] as usize);
        // More than there is room for is an error of the allocation.
        let words = words_for::<T>(blocks).unwrap_or(usize::MAX / 8);
        if words > MOST || !stream.inner().backend().renews_orders() {
            return Ok(OrderMemory::of(Words::zeroed(stream, words)?, None));
        }
        let words = match stream.inner().kept_order().take(words) {
            Some(mut kept) => {
                // What an earlier launch left there is not read, so its failure is none of later ones.
                Access::new(kept.memory.memory(), Use::Write).whole().overwrite(stream.inner());
                kept.launches += 1;
                kept
            }
            None => Words::zeroed(stream, words.next_power_of_two().max(LEAST))?,
        };
        Ok(OrderMemory::of(words, Some(stream.inner())))
    }

    fn of(words: Words, keeper: Option<&'s StreamInner>) -> Self {
        OrderMemory { start: words.memory.memory().pointer(), words: Some(words), keeper }
    }

    /// The host address of the kernel parameter: a pointer.
    pub fn param(&self) -> *const c_void {
        from_ref(&self.start).cast()
    }

    /// The use by a launch.
    #[expect(clippy::missing_panics_doc, reason = "the words are there until this is dropped")]
    pub fn access(&self) -> Access<'_> {
        let words = self.words.as_ref().expect("they go back when this is dropped");
        Access::new(words.memory.memory(), Use::Write)
    }
}

impl Words {
    fn zeroed(stream: &Stream, words: usize) -> Result<Self> {
        Ok(Words { memory: Temporary::zeros(stream, words)?, launches: 1 })
    }
}

impl Drop for OrderMemory<'_> {
    fn drop(&mut self) {
        // The next launch that takes them is enqueued later on the same stream. If nothing was launched, they are unchanged.
        if let (Some(keeper), Some(words)) = (self.keeper, self.words.take()) {
            keeper.kept_order().put(words);
        }
    }
}
