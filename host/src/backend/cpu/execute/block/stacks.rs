//! The stacks of one executor: allocated when a thread first waits, kept for the next block.

use std::cell::{Cell, RefCell};
use std::sync::LazyLock;

use super::Failure;
use crate::backend::cpu::execute::budget::{Budget, Permits};
use crate::backend::cpu::execute::executors;
use crate::backend::cpu::execute::stack::{MAX_STACKS, ThreadStack};

/// The least size of the stack for kernels that never wait: that of std's threads.
const LARGE_BYTES: usize = 2 * 1024 * 1024;

/// The stacks of the process.
static BUDGET: LazyLock<Budget> = LazyLock::new(|| Budget::new(MAX_STACKS));

/// Whether a launch waits for stacks, so that idle executors should not keep any.
pub(crate) fn are_wanted() -> bool {
    BUDGET.is_wanted()
}

/// Leave to have stacks, to be given to executors by [`Stacks::grant`].
pub(crate) type Grant = Permits<'static>;

/// Takes `count` more stacks from the budget if no thread waits for some and enough are free.
pub(crate) fn try_more(count: usize) -> Option<Grant> {
    BUDGET.try_take(count).or_else(|| {
        executors::idle().clear();
        BUDGET.try_take(count)
    })
}

/// Leave to have `count` stacks, waited for if others have them; the caller has none. An error if there are
/// never so many.
pub(crate) fn wait_for(count: usize) -> Result<Grant, Failure> {
    BUDGET.take(count, || executors::idle().clear()).ok_or_else(|| {
        let reason = format!("{count} are needed, and a process has at most {MAX_STACKS}").into();
        Failure::NoStack { stacks: 0, reason }
    })
}

pub(super) struct Stacks {
    bytes: usize,
    idle: RefCell<Vec<ThreadStack>>,
    made: Cell<usize>,
    /// The one for kernels that never wait. It needs no leave: there is one for each CPU thread at most.
    large: RefCell<Option<ThreadStack>>,
    /// Dropped after the stacks, as fields are in this order.
    permits: RefCell<Grant>,
}

impl Default for Stacks {
    fn default() -> Self {
        let permits = RefCell::new(BUDGET.nothing());
        Stacks { bytes: 0, idle: RefCell::default(), made: Cell::new(0), large: RefCell::default(), permits }
    }
}

impl Stacks {
    /// None yet, of `bytes` each.
    pub(super) fn new(bytes: usize) -> Self {
        Stacks { bytes, ..Stacks::default() }
    }

    /// The size of each.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many it may have.
    pub(super) fn permitted(&self) -> usize {
        self.permits.borrow().count()
    }

    /// Sees to it that it may have `count`, all of them idle now. Waits for those that others have.
    #[inline]
    pub(super) fn reserve(&self, count: usize) -> Result<(), Failure> {
        if count <= self.permitted() { Ok(()) } else { self.reserve_more(count) }
    }

    #[cold]
    fn reserve_more(&self, count: usize) -> Result<(), Failure> {
        if let Some(more) = try_more(count - self.permitted()) {
            self.grant(more);
            return Ok(());
        }
        self.release();
        self.grant(wait_for(count)?);
        Ok(())
    }

    /// Lets it have more.
    pub(super) fn grant(&self, more: Grant) {
        self.permits.borrow_mut().join(more);
    }

    /// Gives up all stacks, which are idle.
    pub(super) fn release(&self) {
        self.idle.take();
        self.made.set(0);
        self.permits.replace(BUDGET.nothing());
    }

    /// A stack that was used before, or a fresh one.
    #[inline]
    pub(super) fn take(&self) -> Result<ThreadStack, Failure> {
        let idle = self.idle.borrow_mut().pop();
        idle.map_or_else(|| self.make(), Ok)
    }

    pub(super) fn keep(&self, stack: ThreadStack) {
        self.idle.borrow_mut().push(stack);
    }

    /// The stack for a kernel that never waits.
    pub(super) fn take_large(&self) -> Result<ThreadStack, Failure> {
        let kept = self.large.borrow_mut().take();
        kept.map_or_else(|| self.make_stack(self.large_bytes(), 0), Ok)
    }

    pub(super) fn keep_large(&self, stack: ThreadStack) {
        self.large.replace(Some(stack));
    }

    /// The size of the stack for kernels that never wait: that of a thread of the system, or more.
    pub(super) fn large_bytes(&self) -> usize {
        self.bytes.max(LARGE_BYTES)
    }

    #[cold]
    fn make(&self) -> Result<ThreadStack, Failure> {
        let number = self.made.get();
        debug_assert!(number < self.permitted(), "a stack without leave to have it");
        let stack = self.make_stack(self.bytes, number)?;
        self.made.set(number + 1);
        Ok(stack)
    }

    /// The system may refuse earlier than the budget does: others in the process have memory too.
    fn make_stack(&self, bytes: usize, number: usize) -> Result<ThreadStack, Failure> {
        let stack = ThreadStack::new(bytes, number).or_else(|_| {
            executors::idle().clear();
            ThreadStack::new(bytes, number)
        });
        stack.map_err(|error| Failure::NoStack { stacks: number, reason: error.to_string().into() })
    }
}
