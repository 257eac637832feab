//! Device and host memory. This file has [`Memory`], one allocation: its address, its owner, and the condition for
//! freeing it.
//!
//! `kind` has what all kinds share. Owners of elements: `buffer` (device memory), `growable` (a reserved range), `managed`, `pinned`
//! (page-locked) and `mapped` (zero-copy), `pitched` (rows), `ipc` (shared between processes); `uninit` makes
//! buffers without initial values. `constant` and `device_static` are variables of modules. `pool` allocates;
//! `access` is one use of memory, and enqueues what has some.

pub(crate) mod access;
pub(crate) mod buffer;
pub(crate) mod constant;
pub(crate) mod device_static;
pub(crate) mod growable;
pub(crate) mod ipc;
pub(crate) mod kind;
pub(crate) mod managed;
pub(crate) mod mapped;
pub(crate) mod pinned;
pub(crate) mod pitched;
pub(crate) mod pool;
pub(crate) mod uninit;

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
use std::mem::offset_of;
use std::sync::{Arc, Mutex};

use crate::backend::recording::refusal::not_recordable;
use crate::backend::retired::{drop_quietly, retire};
use crate::backend::writers::Writers;
use crate::backend::{ALIGNMENT, Account, Contents, Place, PoolKind};
use crate::device::Device;
use crate::error::graph::GraphError;
use crate::error::{Error, Result};
use crate::memory::pool::MemoryPool;
use crate::order::{Order, OrderedStream, Use};
use crate::profile::{self, Work};
use crate::stream::{Stream, StreamInner};
use crate::sync::lock;

/// The address of empty memory: dangling, but aligned.
const NOTHING: *mut u8 = std::ptr::without_provenance_mut(ALIGNMENT);

/// An allocation in stream order; dropping it frees it after all work that uses it. What a launch reads of it (the end
/// of the writers, the beginning of the order, and what is between) is in one line of the processor's cache.
#[repr(C, align(32))]
pub(crate) struct Memory {
    writers: Writers,
    bytes: usize,
    /// Never null; `NOTHING` if nothing was allocated, as `bytes` is 0.
    pointer: *mut u8,
    order: Order<StreamInner>,
    device: Device,
    origin: Origin,
    /// Dropped when nothing uses the memory any more.
    owner: Option<Box<dyn Send>>,
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
const _: () = assert!(offset_of!(Memory, bytes) == 40 && offset_of!(Memory, order) == 56);

/// Where memory is from, and so how it is freed.
pub(crate) enum Origin {
    /// Allocated in stream order: from that pool, or from the device's.
    Stream(Option<Box<MemoryPool>>),
    /// Managed memory.
    Managed,
    /// Another library's.
    Foreign,
    /// A CUDA array; the pointer is a handle, not an address.
    Array,
    /// Page-locked memory, by its address on the host; whether the device that it was made with can address it.
    Host { start: *mut u8, is_mapped: bool },
    /// Page-locked memory that a graph has, under one address for the host and the device.
    Pinned,
    /// What nodes of a graph allocate: there while that runs, and only then.
    Graph,
}

// SAFETY: the pointer is only an address on the host side; it is read and written by work on
// streams, which `order` orders, and freed once, by `drop`.
unsafe impl Send for Memory {}
// SAFETY: as above; all methods that take `&self` use atomics or a mutex, and none the owner.
unsafe impl Sync for Memory {}

impl Memory {
    /// From `pool`, or from that of the device.
    pub(crate) fn allocate(
        stream: &Arc<StreamInner>,
        pool: Option<&MemoryPool>,
        bytes: usize,
        contents: Contents,
    ) -> Result<Self> {
        let allocate = || {
            let allocate = || stream.backend().allocate(pool.and_then(MemoryPool::raw), bytes, contents);
            if contents == Contents::Zeroed && stream.backend().enqueues_host_copies() {
                return profile::observe(stream, Work::Fill { bytes }, allocate);
            }
            allocate()
        };
        let pointer = charged(account_of(stream, pool), stream, bytes, allocate)?;
        if bytes > 0 && pool.is_some_and(MemoryPool::is_of_host) {
            stream.device().backend().note_managed();
        }
        let origin = Origin::Stream(pool.cloned().map(Box::new));
        Ok(Memory::new(stream, pointer, bytes, origin, None))
    }

    /// Memory that the host can use, too.
    pub(crate) fn managed(stream: &Arc<StreamInner>, bytes: usize, contents: Contents) -> Result<Self> {
        let allocate = || stream.backend().allocate_managed(bytes, contents);
        let pointer = charged(stream.account(), stream, bytes, allocate)?;
        Ok(Memory::new(stream, pointer, bytes, Origin::Managed, None))
    }

    /// Memory that `owner` keeps: of another library, an array, or a graph's.
    ///
    /// # Safety
    /// `pointer` leads to `bytes` that the stream's device can use, until `owner` is dropped, or is the handle of an array;
    /// what uses them already comes before what the stream holds. It may be null if there are none.
    pub(crate) unsafe fn owned(
        stream: &Arc<StreamInner>,
        origin: Origin,
        pointer: *mut u8,
        bytes: usize,
        owner: Box<dyn Send>,
    ) -> Self {
        let pointer = if pointer.is_null() { NOTHING } else { pointer };
        Memory::new(stream, pointer, bytes, origin, Some(owner))
    }

    /// Memory of the host that no device uses yet.
    ///
    /// # Safety
    /// `start` leads to `bytes` that nothing else uses as long as this exists. If `device` is a GPU they are page-locked,
    /// and stay so until no device uses them any more.
    pub(crate) unsafe fn of_host(device: &Device, start: *mut u8, bytes: usize) -> Result<Self> {
        let mapped = match bytes {
            0 => Some(NOTHING),
            // SAFETY: passed on.
            _ => unsafe { device.backend().mapped_address(start)? },
        };
        let origin = Origin::Host { start, is_mapped: mapped.is_some() };
        let (writers, order, device) = (Writers::default(), Order::unused(), device.clone());
        Ok(Memory { writers, bytes, pointer: mapped.unwrap_or(start), order, device, origin, owner: None })
    }

    fn new(
        stream: &Arc<StreamInner>,
        pointer: *mut u8,
        bytes: usize,
        origin: Origin,
        owner: Option<Box<dyn Send>>,
    ) -> Self {
        // A recording must be told of each use, and all uses outside a graph are refused.
        let is_guest = stream.recording().is_some() || matches!(origin, Origin::Graph);
        let of = if is_guest { Order::of_guest } else { Order::new };
        let (writers, device) = (Writers::default(), stream.device().clone());
        Memory { writers, bytes, pointer, order: of(stream.clone()), device, origin, owner }
    }

    /// Drops `owner` when no work uses this memory of the host any more, after this itself is dropped.
    pub(crate) fn keep(&mut self, owner: Box<dyn Send>) {
        self.owner = Some(owner);
    }

    /// Whether the host may have it in use as managed memory.
    fn is_managed(&self) -> bool {
        match &self.origin {
            Origin::Managed => true,
            Origin::Stream(pool) => pool.as_deref().is_some_and(MemoryPool::is_of_host),
            _ => false,
        }
    }

    /// The pool of users that it is of.
    #[cfg(unix)]
    pub(crate) fn pool(&self) -> Option<&MemoryPool> {
        match &self.origin {
            Origin::Stream(pool) => pool.as_deref(),
            _ => None,
        }
    }

    /// Whether nodes of a graph allocate it.
    pub(crate) fn is_of_graph(&self) -> bool {
        matches!(self.origin, Origin::Graph)
    }

    /// Checks that it exists without a running graph.
    fn check_outside_graphs(&self) -> Result<()> {
        if self.is_of_graph() { Err(GraphError::OutsideGraph.into()) } else { Ok(()) }
    }

    pub(crate) fn is_of_host(&self) -> bool {
        matches!(self.origin, Origin::Host { .. })
    }

    /// Makes `stream` wait for the work that a use there must come after, but does not enter that use.
    pub(crate) fn follow(&self, stream: &StreamInner, usage: Use) -> Result<()> {
        if stream.recording().is_some() {
            return Ok(());
        }
        let earlier = self.order.earlier(usage);
        let mut others = earlier.iter().filter(|earlier| earlier.id() != stream.id());
        others.try_for_each(|earlier| stream.run_after(earlier))
    }

    /// Waits for what the host's own use must come after.
    ///
    /// # Errors
    /// If the device fails.
    pub(crate) fn wait_on_host(&self, usage: Use) -> Result<()> {
        self.check_outside_graphs()?;
        for stream in self.order.earlier(usage) {
            stream.tail()?.synchronize()?;
        }
        Ok(())
    }

    /// As `wait_on_host`, and shows what kernels have printed.
    ///
    /// # Errors
    /// The failure of a kernel that was to write the memory; or if the device fails.
    pub(crate) fn begin_on_host(&self, usage: Use) -> Result<()> {
        self.wait_on_host(usage)?;
        self.device.deliver_output();
        self.writers.sources().check()
    }

    /// The work that wrote what it holds.
    pub(crate) fn writers(&self) -> &Writers {
        &self.writers
    }

    /// The first byte; if there is none, an address that is aligned and not null.
    #[inline]
    pub(crate) fn pointer(&self) -> *mut u8 {
        self.pointer
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Sets how much of it is in use, for memory that is not freed by its length. It never has none, so that it is ordered
    /// and its owner dropped.
    pub(crate) fn set_bytes(&mut self, bytes: usize) {
        debug_assert!(matches!(self.origin, Origin::Foreign), "it is freed by its owner");
        self.bytes = bytes.max(1);
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// The bytes after `pointer` that have addresses: 0 for an array.
    pub(crate) fn addressed_bytes(&self) -> usize {
        if matches!(self.origin, Origin::Array) { 0 } else { self.bytes }
    }

    /// Where it is. Managed memory moves, and counts as the device's.
    pub(crate) fn place(&self) -> Place {
        match &self.origin {
            Origin::Host { .. } | Origin::Pinned => Place::Host,
            Origin::Stream(Some(pool)) if matches!(pool.kind(), PoolKind::Host | PoolKind::HostNuma(_)) => {
                Place::Host
            }
            _ => Place::Device,
        }
    }

    /// Whether a use by `stream`, not of a part, has nothing to wait for or to be entered.
    #[inline]
    pub(crate) fn is_alone(&self, stream: &StreamInner) -> bool {
        self.order.is_alone(stream, Use::Read)
    }

    /// As `is_alone`, for the stream of that id.
    #[inline]
    pub(crate) fn is_alone_by(&self, stream: u64) -> bool {
        self.order.owner() == stream
    }

    /// 0 if a use by the stream of that id, not of a part, has nothing to wait for or to be entered, and nothing wrote the memory
    /// that may have failed.
    #[inline]
    pub(crate) fn concerns(&self, stream: u64) -> u64 {
        (self.order.owner() ^ stream) | self.writers.address() as u64
    }

    /// Makes the next work on `stream` wait for the work that it must come after.
    ///
    /// # Errors
    /// If the memory is another device's, or the device fails.
    #[inline]
    pub(crate) fn begin(&self, stream: &Arc<StreamInner>, usage: Use) -> Result<()> {
        // Its device was checked at an earlier use, and it is no recording: those are guests, which are never alone.
        if self.order.is_alone(stream, usage) {
            return Ok(());
        }
        self.begin_checked(stream, usage)
    }

    #[inline(never)]
    fn begin_checked(&self, stream: &Arc<StreamInner>, usage: Use) -> Result<()> {
        self.check_device(stream)?;
        if self.bytes == 0 {
            return Ok(());
        }
        match stream.recording() {
            None => {
                self.check_outside_graphs()?;
                self.order.begin(stream, usage)
            }
            Some(_) if self.is_of_host() => Err(not_recordable(
                "the use of page-locked memory in place",
                "give it to the graph by `capture.keep_pinned`",
            )),
            // Nothing runs yet: the graph enters its launches into the order.
            Some(recording) => recording.note_use(self, usage),
        }
    }

    /// As `begin`, for the launch of the graph that it is of.
    pub(crate) fn begin_launch(&self, stream: &Arc<StreamInner>, usage: Use) -> Result<()> {
        match self.is_of_graph() {
            // Never alone there: a use that begins on another stream is refused.
            true => self.order.begin_as_guest(stream, usage),
            false => self.begin(stream, usage),
        }
    }

    /// As `begin`, for a stream of whatever device, which records nothing.
    pub(crate) fn begin_on_any_device(&self, stream: &Arc<StreamInner>, usage: Use) -> Result<()> {
        if self.bytes == 0 {
            return Ok(());
        }
        self.check_outside_graphs()?;
        self.order.begin_as_guest(stream, usage)
    }

    /// All GPUs can use page-locked memory that has one address for them all, and all CPU devices that of the host. Other
    /// memory is for its device and that device's peers.
    pub(crate) fn check_device(&self, stream: &Arc<StreamInner>) -> Result<()> {
        let (own, other) = (self.device.backend(), stream.device().backend());
        let is_reached = match &self.origin {
            Origin::Host { is_mapped: false, .. } => {
                let reason = "it cannot map memory of the host (CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY)";
                return Err(Error::unsupported("page-locked memory in place", &self.device, reason));
            }
            // SAFETY: page-locked as long as this exists.
            Origin::Host { start, .. } => unsafe { own.maps_alike(other, *start, self.pointer, self.bytes)? },
            _ => self.device == *stream.device() || other.has_peer(own),
        };
        if is_reached { Ok(()) } else { Err(self.mismatch(stream)) }
    }

    #[cold]
    pub(crate) fn mismatch(&self, stream: &Arc<StreamInner>) -> Error {
        Error::device_mismatch(&self.device, stream.device())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.bytes == 0 || self.is_of_host() && self.owner.is_none() {
            return;
        }
        // That of a GPU is the driver's graph's, and goes with that.
        if self.is_of_graph() && self.device.is_cuda() {
            return;
        }
        if self.is_managed() {
            self.device.backend().forget_managed();
        }
        // If the device is so broken that streams cannot wait for each other, the memory is given up
        // rather than freed under running work.
        let own = &self.device;
        let ended = self.order.end(
            |stream| stream.device() == own && stream.backend().is_usable_here(),
            // Of late it was used on streams of other devices only, or of other threads.
            || fallback_stream(own),
        );
        match (&self.origin, ended) {
            // SAFETY: `pointer` is from `allocate` on this device, this is the only free of it, and
            // `stream` has been made to run after every use.
            (Origin::Stream(pool), Ok(stream)) => unsafe {
                let account = account_of(&stream, pool.as_deref());
                stream.backend().free(self.pointer, self.bytes, account);
            },
            // SAFETY: as above, from `allocate_managed`.
            (Origin::Managed, Ok(stream)) => unsafe {
                stream.backend().free_managed(self.pointer, self.bytes, stream.account());
            },
            (_, ended) => release(self.owner.take(), ended),
        }
    }
}

fn account_of<'a>(stream: &'a StreamInner, pool: Option<&'a MemoryPool>) -> &'a Arc<Account> {
    pool.map_or(stream.account(), MemoryPool::account)
}

/// What `allocate` gives for `bytes`, which are entered in `account`; no address of anything for none.
fn charged(
    account: &Account,
    stream: &StreamInner,
    bytes: usize,
    allocate: impl FnOnce() -> Result<*mut u8>,
) -> Result<*mut u8> {
    if bytes == 0 {
        return Ok(NOTHING);
    }
    account.take(bytes, stream.device().backend())?;
    allocate().inspect_err(|_| account.give_back(bytes))
}

/// A stream of `device` that frees what was used on none that the calling thread can use. That of a GPU stays.
fn fallback_stream(device: &Device) -> Result<Arc<StreamInner>> {
    static FALLBACKS: Mutex<Vec<Stream>> = Mutex::new(Vec::new());
    let fallbacks = || lock(&FALLBACKS);
    if let Some(found) = fallbacks().iter().find(|stream| stream.device() == device) {
        return Ok(found.inner().clone());
    }
    let stream = device.new_stream()?;
    let inner = stream.inner().clone();
    if device.is_cuda() {
        fallbacks().push(stream);
    }
    Ok(inner)
}

/// Drops `owner` after all that `stream` holds; or never, if that cannot be observed.
fn release(owner: Option<Box<dyn Send>>, stream: Result<Arc<StreamInner>>) {
    let Some(owner) = owner else { return };
    match stream.and_then(|stream| stream.tail()) {
        Ok(event) => retire(event, owner),
        Err(error) if error.ends_all_work() => drop_quietly(owner),
        Err(_) => std::mem::forget(owner),
    }
}

debug_by_methods!(Memory { pointer, bytes, device });
