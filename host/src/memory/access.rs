//! One use of one allocation, in one word; a launch gets one for each buffer.

use std::marker::PhantomData;
use std::num::NonZero;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::backend::writers::{Effect, Outcome};
use crate::error::Result;
use crate::memory::Memory;
use crate::order::Use;
use crate::stream::StreamInner;
use crate::stream::announcing::Announcing;

/// The bits of the address that encode the use; an allocation's record is aligned, so they are 0 there.
const USE: usize = 3;

/// The bit for `Use::WritePart`.
const PART: usize = 2;

/// The bit for uses of the whole allocation.
const WHOLE: usize = 4;

const _: () = assert!(align_of::<Memory>() > USE | WHOLE);

/// One use of one allocation by a launch: what, and how.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Access<'a> {
    /// The address of the allocation's record, with the use in its lowest bits.
    tagged: NonNull<Memory>,
    memory: PhantomData<&'a Memory>,
}

// SAFETY: it is a `&Memory` and a number.
unsafe impl Send for Access<'_> {}
// SAFETY: as above.
unsafe impl Sync for Access<'_> {}

impl<'a> Access<'a> {
    #[inline]
    pub(crate) fn new(memory: &'a Memory, usage: Use) -> Self {
        let tagged = NonNull::from(memory).map_addr(|address| address | usage as usize);
        Access { tagged, memory: PhantomData }
    }

    #[inline]
    pub(crate) fn memory(&self) -> &'a Memory {
        let untagged = self.tagged.as_ptr().map_addr(|address| address & !(USE | WHOLE));
        // SAFETY: made from a `&'a Memory`, whose address has none of these bits.
        unsafe { &*untagged }
    }

    #[inline]
    pub(crate) fn usage(&self) -> Use {
        match NonZero::get(self.tagged.addr()) & USE {
            0 => Use::Read,
            1 => Use::Write,
            _ => Use::WritePart,
        }
    }

    /// The same use, of the whole allocation.
    pub(crate) fn whole(self) -> Self {
        self.of_bytes(self.memory().bytes())
    }

    /// The same use, of the whole allocation if `bytes` are as many as that has.
    #[inline]
    pub(crate) fn of_bytes(self, bytes: usize) -> Self {
        let whole = if bytes == self.memory().bytes() { WHOLE } else { 0 };
        Access { tagged: self.tagged.map_addr(|address| address | whole), ..self }
    }

    /// Whether it is known to use the whole allocation.
    pub(crate) fn is_whole(&self) -> bool {
        NonZero::get(self.tagged.addr()) & WHOLE != 0
    }

    /// What a launch with it does to the results that the memory holds.
    pub(crate) fn effect(&self) -> Effect<'a> {
        (self.memory().writers(), self.usage(), self.is_whole())
    }

    /// Whether `begin` has nothing to do for the stream of that id, and a work of `current`, which may fail, leaves the names of
    /// writers as they are.
    #[inline]
    pub(crate) fn goes_on(&self, stream: u64, current: *const Outcome) -> bool {
        let (usage, memory) = (NonZero::get(self.tagged.addr()) & USE, self.memory());
        let writer = memory.writers().address();
        let is_named = writer == current.addr() || usage == Use::Read as usize && writer == 0;
        usage & PART == 0 && is_named && memory.is_alone_by(stream)
    }

    /// 0 if `begin` has nothing to do for the stream of that id, and nothing wrote the memory that may have failed. A launch
    /// joins the bits of all its arguments, and looks at them once.
    #[inline]
    pub(crate) fn concerns(&self, stream: u64) -> u64 {
        self.memory().concerns(stream) | (NonZero::get(self.tagged.addr()) & PART) as u64
    }

    /// To be called when the host's data, or a fill, have been enqueued for what is used.
    pub(crate) fn overwrite(&self, stream: &StreamInner) {
        if stream.recording().is_none() {
            self.memory().writers().overwrite(self.is_whole());
        }
    }

    /// To be called when a copy of `source` has been enqueued for what is used.
    pub(crate) fn receive(&self, source: &Memory, stream: &StreamInner) {
        if stream.recording().is_none() {
            self.memory().writers().receive(source.writers().sources(), self.is_whole());
        }
    }

    /// Makes the next work on `stream` wait for the work that it must come after.
    ///
    /// # Errors
    /// If the memory is another device's, or the device fails.
    #[inline]
    pub(crate) fn begin(&self, stream: &Arc<StreamInner>) -> Result<()> {
        if NonZero::get(self.tagged.addr()) & PART == 0 && self.memory().is_alone(stream) {
            return Ok(());
        }
        self.begin_slow(stream)
    }

    #[inline(never)]
    fn begin_slow(&self, stream: &Arc<StreamInner>) -> Result<()> {
        self.memory().begin(stream, self.usage())
    }

    /// The part of `begin` that also holds where nothing is launched.
    pub(crate) fn check_device(&self, stream: &Arc<StreamInner>) -> Result<()> {
        self.memory().check_device(stream)
    }
}

/// Enqueues `work` on `stream`, which moves `bytes` from `source` to `target`, in the order of their uses. Neither is named
/// where it is memory of the host, or a value. There is nothing to do for no bytes.
///
/// # Errors
/// If memory is another device's, or the device fails.
pub(crate) fn enqueue(
    stream: &Arc<StreamInner>,
    source: Option<Access<'_>>,
    target: Option<Access<'_>>,
    bytes: usize,
    work: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let _announcing = Announcing::on(stream);
    for access in source.iter().chain(&target) {
        access.begin(stream)?;
    }
    if bytes == 0 {
        return Ok(());
    }
    work()?;
    match (source, target) {
        (Some(source), Some(target)) => target.receive(source.memory(), stream),
        (None, Some(target)) => target.overwrite(stream),
        (_, None) => {}
    }
    Ok(())
}

debug_by_methods!(Access<'_> { memory, usage });
