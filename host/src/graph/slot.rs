//! The buffers of a graph: borrowed for its lifetime, or owned by it. It must not know which nodes use
//! them.

use std::sync::Arc;

use super::error::GraphError;
use super::recorder::Adopted;
use crate::constant::{Enqueueing, enqueue_alone, enqueue_with_others};
use crate::error::Result;
use crate::memory::Memory;
use crate::order::Use;
use crate::stream::StreamInner;
use crate::writers::Effect;

/// One buffer of a graph.
pub(crate) struct Slot<'b> {
    owner: Owner<'b>,
    /// [`Use::Read`] or [`Use::Write`].
    usage: Use,
}

enum Owner<'b> {
    /// Somebody else's, who cannot move or drop it during `'b`; nor use it, if the graph writes it.
    Borrowed(&'b Memory),
    /// A constant, which is there for ever.
    Constant(&'static Memory),
    /// The graph's own. Not in place, because it is known by its address.
    Kept(Arc<Memory>),
}

/// All buffers of a graph, by number.
#[derive(Default)]
pub(crate) struct Slots<'b>(Vec<Slot<'b>>);

impl<'b> Slot<'b> {
    pub(crate) fn borrowed(memory: &'b Memory, usage: Use) -> Self {
        Slot { owner: Owner::Borrowed(memory), usage }
    }

    pub(crate) fn kept(memory: Memory) -> Self {
        Slot { owner: Owner::Kept(Arc::new(memory)), usage: Use::Write }
    }

    /// What the recording has found without being given it; how it is used is not known yet.
    pub(crate) fn adopted(memory: Adopted) -> Self {
        let owner = match memory {
            Adopted::Constant(memory) => Owner::Constant(memory),
            Adopted::Value(memory) => Owner::Kept(memory),
        };
        Slot { owner, usage: Use::Read }
    }

    pub(crate) fn memory(&self) -> &Memory {
        match &self.owner {
            Owner::Constant(memory) => memory,
            Owner::Borrowed(memory) => memory,
            Owner::Kept(memory) => memory,
        }
    }

    pub(crate) fn may_write(&self) -> bool {
        self.usage == Use::Write
    }
}

impl<'b> Slots<'b> {
    /// Adds a buffer; its number.
    pub(crate) fn push(&mut self, slot: Slot<'b>) -> usize {
        self.0.push(slot);
        self.0.len() - 1
    }

    pub(crate) fn get(&self, number: usize) -> &Slot<'b> {
        &self.0[number]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Slot<'b>> {
        self.0.iter()
    }

    /// Notes how the graph uses its constants, once that is known.
    pub(crate) fn settle_constants(&mut self, is_written: impl Fn(usize) -> bool) {
        for (number, slot) in self.0.iter_mut().enumerate() {
            if matches!(slot.owner, Owner::Constant(_)) {
                slot.usage = if is_written(number) { Use::Write } else { Use::Read };
            }
        }
    }

    /// What a launch has to hold until it is enqueued, if it uses constants.
    pub(crate) fn hold_constants(&self) -> Option<Enqueueing> {
        let constants = self.0.iter().filter(|slot| matches!(slot.owner, Owner::Constant(_)));
        let usage = constants.map(|slot| slot.usage).reduce(|a, b| if a == Use::Read { b } else { a })?;
        Some(if usage == Use::Read { enqueue_with_others() } else { enqueue_alone() })
    }

    /// Makes what `stream` is about to be given, which may use all of them, wait for what it must come
    /// after.
    pub(crate) fn begin(&self, stream: &Arc<StreamInner>) -> Result<()> {
        self.0.iter().try_for_each(|slot| slot.memory().begin(stream, slot.usage))
    }

    /// How a launch of the graph uses them. A buffer that it may write counts as written as a whole.
    pub(crate) fn effects(&self) -> impl Iterator<Item = Effect<'_>> + Clone {
        self.0.iter().map(|slot| (slot.memory().writers(), slot.usage, true))
    }

    /// The buffer with that number, to write.
    pub(crate) fn writable(&self, number: usize) -> Result<&Slot<'b>> {
        let slot = self.get(number);
        if slot.may_write() { Ok(slot) } else { Err(GraphError::ReadOnlyBuffer.into()) }
    }
}
