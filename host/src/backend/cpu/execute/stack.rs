//! The stacks of a block's threads: guarded, reused, of a size that the user may set.

use std::env::var_os;
use std::io;
use std::ops::RangeInclusive;

use corosensei::stack::{DefaultStack, Stack, StackPointer};

use crate::error::{Error, Result};

/// The environment variable that sets the size of a stack.
const VARIABLE: &str = "FERROGRID_CPU_STACK";

/// The size of a stack in KiB unless the variable says otherwise.
const DEFAULT_KIB: usize = 256;

/// Neighbouring stacks start at different places of their first page. Otherwise the hot ends of all stacks of a block
/// would compete for the same few sets of the cache.
const COLOURS: usize = 16;
const COLOUR_BYTES: usize = 256;

/// The most stacks of the process at a time. Each is two mappings, of which Linux gives a process 65530
/// unless told otherwise; others in the process, and new threads, must get some too.
pub(crate) const MAX_STACKS: usize = 24_576;

/// The size of a thread's stack in bytes.
pub(crate) fn stack_size() -> Result<usize> {
    let expected = "the size of a kernel thread's stack in KiB, from 16 to 1048576";
    let kib = environment(VARIABLE, 16..=1_048_576, expected)?;
    Ok(kib.unwrap_or(DEFAULT_KIB) * 1024)
}

/// The number in the environment variable of this name, unless that is empty or not set.
pub(crate) fn environment(
    variable: &'static str,
    range: RangeInclusive<usize>,
    expected: &'static str,
) -> Result<Option<usize>> {
    let Some(value) = var_os(variable).filter(|value| !value.is_empty()) else { return Ok(None) };
    let value = value.to_string_lossy();
    let number = value.parse().ok().filter(|number| range.contains(number));
    number.map_or_else(
        || Err(Error::Environment { variable, value: value.into(), expected }),
        |it| Ok(Some(it)),
    )
}

/// A stack with a guard page below it.
pub(crate) struct ThreadStack {
    memory: DefaultStack,
    base: StackPointer,
}

impl ThreadStack {
    /// Fresh memory for `bytes` of stack; `number` distinguishes neighbours.
    pub(crate) fn new(bytes: usize, number: usize) -> io::Result<Self> {
        let memory = DefaultStack::new(bytes + COLOURS * COLOUR_BYTES)?;
        let base = memory.base().get() - number % COLOURS * COLOUR_BYTES;
        let base = StackPointer::new(base).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(ThreadStack { memory, base })
    }
}

// SAFETY: the memory is that of `DefaultStack`, which has a guard page at its limit. The base lies at most 15 * 256 bytes
// below that of `DefaultStack`, a multiple of the alignment. `new` allocates as many bytes more, so at least `bytes` are
// usable.
unsafe impl Stack for ThreadStack {
    #[inline]
    fn base(&self) -> StackPointer {
        self.base
    }

    #[inline]
    fn limit(&self) -> StackPointer {
        self.memory.limit()
    }

    #[cfg(windows)]
    fn teb_fields(&self) -> corosensei::stack::StackTebFields {
        corosensei::stack::StackTebFields { StackBase: self.base.get(), ..self.memory.teb_fields() }
    }

    #[cfg(windows)]
    fn update_teb_fields(&mut self, stack_limit: usize, guaranteed_stack_bytes: usize) {
        self.memory.update_teb_fields(stack_limit, guaranteed_stack_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_colour_leaves_the_whole_stack_usable() -> io::Result<()> {
        for number in 0..2 * COLOURS {
            let stack = ThreadStack::new(64 * 1024, number)?;
            assert_eq!(stack.base().get() % corosensei::stack::STACK_ALIGNMENT, 0);
            assert!(stack.base().get() - stack.limit().get() > 64 * 1024, "stack {number}");
        }
        Ok(())
    }

    #[test]
    fn a_stack_too_large_for_memory_is_an_error() {
        assert!(ThreadStack::new(1 << 60, 0).is_err());
    }
}
