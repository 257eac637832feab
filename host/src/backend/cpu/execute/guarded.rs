//! Runs work on a guarded stack, so that using it up ends the work and not the process.

use corosensei::{Coroutine, Yielder};

use super::overflow;
use super::panic;
use super::stack::ThreadStack;

/// The work has used up the stack. It was left in the middle.
pub(crate) struct UsedUp;

/// Runs `work` on `stack`; gives that back.
pub(crate) fn run(stack: ThreadStack, work: impl FnOnce()) -> (ThreadStack, Result<(), UsedUp>) {
    let in_kernel = panic::in_kernel();
    let body = |_: &Yielder<(), ()>, ()| work();
    // SAFETY: what `work` borrows is alive until this returns, and by then the coroutine has ended: it never
    // gives up its turn. If its stack was used up it is as if it hung forever, but no thread waits for it.
    let mut coroutine = unsafe { Coroutine::<(), (), (), ThreadStack>::with_stack_unchecked(stack, body) };
    let own = overflow::running_on(Some(coroutine.trap_handler()));
    coroutine.resume(());
    overflow::running_on(own);
    if overflow::happened() {
        panic::restore(in_kernel);
        return (coroutine.into_stack(), Err(UsedUp));
    }
    (coroutine.into_stack(), Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_and_the_stack_comes_back() -> std::io::Result<()> {
        let mut stack = ThreadStack::new(64 * 1024, 0)?;
        let mut sum = 0;
        for number in 0..3 {
            let (same, result) = run(stack, || sum += number);
            stack = same;
            assert!(result.is_ok());
        }
        assert_eq!(sum, 3);
        Ok(())
    }
}
