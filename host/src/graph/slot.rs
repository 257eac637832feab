//! The buffers of a graph: borrowed for its lifetime, or owned by it.

use std::sync::Arc;

use crate::backend::recording::Adopted;
use crate::backend::writers::Effect;
use crate::error::Result;
use crate::error::graph::GraphError;
use crate::memory::Memory;
use crate::memory::constant::{ENQUEUERS, Enqueueing};
use crate::order::Use;
use crate::stream::StreamInner;

/// One buffer of a graph.
pub(crate) struct Slot<'b> {
    owner: Owner<'b>,
    /// [`Use::Read`] or [`Use::Write`].
    usage: Use,
}

enum Owner<'b> {
    /// Borrowed: its owner cannot move or drop it during `'b`, nor use it if the graph writes it.
    Borrowed(&'b Memory),
    /// A constant, which is static.
    Constant(&'static Memory),
    /// The graph's own. Not in place, because it is known by its address.
    Kept(Arc<Memory>),
}

/// All buffers of a graph, by number.
#[derive(Default)]
pub(crate) struct Slots<'b> {
    all: Vec<Slot<'b>>,
    /// The child graphs, by the numbers of the graphs, and what number here each of their buffers has.
    children: Vec<(u64, Vec<usize>)>,
}

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
            Adopted::Scratch(memory) => return Slot { owner: Owner::Kept(memory), usage: Use::Write },
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

    /// Whether nodes may write it where it becomes one of another graph's; a constant has no owner.
    pub(crate) fn may_be_written(&self) -> bool {
        self.may_write() || matches!(self.owner, Owner::Constant(_))
    }

    pub(crate) fn may_write(&self) -> bool {
        self.usage == Use::Write
    }
}

impl<'b> Slots<'b> {
    /// Adds a buffer; its number.
    pub(crate) fn push(&mut self, slot: Slot<'b>) -> usize {
        self.all.push(slot);
        self.all.len() - 1
    }

    pub(crate) fn get(&self, number: usize) -> &Slot<'b> {
        &self.all[number]
    }

    /// Takes over the buffers of a child graph, number `id`. `enter` gives each its number here, and says whether it is a
    /// new one.
    pub(crate) fn take_over(
        &mut self,
        id: u64,
        child: Slots<'b>,
        mut enter: impl FnMut(&Slot<'b>) -> Result<(usize, bool)>,
    ) -> Result<Vec<usize>> {
        let mut numbers = Vec::with_capacity(child.all.len());
        for slot in child.all {
            let (number, is_new) = enter(&slot)?;
            if is_new {
                self.all.push(slot);
            }
            numbers.push(number);
        }
        for (id, inner) in child.children {
            self.children.push((id, inner.into_iter().map(|number| numbers[number]).collect()));
        }
        self.children.push((id, numbers.clone()));
        Ok(numbers)
    }

    /// The number here of buffer `number` of the child graph `id`, if that is one.
    pub(crate) fn of_child(&self, id: u64, number: usize) -> Option<usize> {
        self.children.iter().find(|(child, _)| *child == id).map(|(_, numbers)| numbers[number])
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Slot<'b>> {
        self.all.iter()
    }

    /// Notes how the graph uses its constants, once that is known.
    pub(crate) fn settle_constants(&mut self, is_written: impl Fn(usize) -> bool) {
        for (number, slot) in self.all.iter_mut().enumerate() {
            if matches!(slot.owner, Owner::Constant(_)) {
                slot.usage = if is_written(number) { Use::Write } else { Use::Read };
            }
        }
    }

    /// What a launch has to hold until it is enqueued, if it uses constants.
    pub(crate) fn hold_constants(&self) -> Option<Enqueueing<'static>> {
        let constants = self.all.iter().filter(|slot| matches!(slot.owner, Owner::Constant(_)));
        ENQUEUERS.for_uses(constants.map(|slot| slot.usage))
    }

    /// Makes the next work on `stream`, which may use all of them, wait for the work that it must come
    /// after.
    pub(crate) fn begin(&self, stream: &Arc<StreamInner>) -> Result<()> {
        self.all.iter().try_for_each(|slot| slot.memory().begin_launch(stream, slot.usage))
    }

    /// How a launch of the graph uses them. A buffer that it may write counts as written as a whole. What nodes allocate is
    /// gone after the launch.
    pub(crate) fn effects(&self) -> impl Iterator<Item = Effect<'_>> + Clone {
        let lasting = self.all.iter().filter(|slot| !slot.memory().is_of_graph());
        lasting.map(|slot| (slot.memory().writers(), slot.usage, true))
    }

    /// The buffer with that number, to write.
    pub(crate) fn writable(&self, number: usize) -> Result<&Slot<'b>> {
        let slot = self.get(number);
        if slot.may_write() { Ok(slot) } else { Err(GraphError::ReadOnlyBuffer.into()) }
    }
}
