//! The queue of threads that can continue, in FIFO order.

use std::cell::Cell;

use super::MAX_THREADS;

/// A queue with room for every thread of a block; none is in it twice.
pub(super) struct ReadyQueue {
    threads: Box<[Cell<u16>; MAX_THREADS]>,
    /// How many were ever taken out and put in; their threads are at these modulo the length.
    taken: Cell<u32>,
    put: Cell<u32>,
}

impl Default for ReadyQueue {
    fn default() -> Self {
        let threads = Box::new([const { Cell::new(0) }; MAX_THREADS]);
        ReadyQueue { threads, taken: Cell::new(0), put: Cell::new(0) }
    }
}

impl ReadyQueue {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.taken.get() == self.put.get()
    }

    #[inline]
    pub(super) fn push(&self, thread: u16) {
        let put = self.put.get();
        debug_assert!(put.wrapping_sub(self.taken.get()) < MAX_THREADS as u32, "a thread is ready twice");
        self.threads[put as usize % MAX_THREADS].set(thread);
        self.put.set(put.wrapping_add(1));
    }

    #[inline]
    pub(super) fn pop(&self) -> Option<u16> {
        if self.is_empty() {
            return None;
        }
        let taken = self.taken.get();
        self.taken.set(taken.wrapping_add(1));
        Some(self.threads[taken as usize % MAX_THREADS].get())
    }

    pub(super) fn clear(&self) {
        self.taken.set(0);
        self.put.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_is_fifo_also_across_the_end_of_its_memory() {
        let queue = ReadyQueue::default();
        for round in 0..5_u16 {
            (0..700).for_each(|number| queue.push(number + round));
            (0..700).for_each(|number| assert_eq!(queue.pop(), Some(number + round)));
            assert!(queue.is_empty() && queue.pop().is_none());
        }
    }
}
