//! Writes the failure record; only the first panicking thread of a launch claims it.

use core::arch::asm;
use core::arch::nvptx::*;
use core::panic::Location;
use core::ptr::with_exposed_provenance_mut;

use crate::failure::*;
use crate::message::{Arguments, Sink, each_word, send};

/// The failure record of a launch, written by the thread that claimed it.
///
/// It is written through raw pointers, each field by a volatile store: the host reads it, and other threads
/// of the device read its state.
pub(super) struct Record(*mut FailureRecord);

impl Record {
    /// The record of the launch, claimed or not.
    #[inline(always)]
    fn of_launch() -> Option<Record> {
        let address: u64;
        // SAFETY: reading a parameter has no precondition. Its name is [`RECORD_PARAMETER`]: the build step adds it to
        // every function that this ends up in.
        unsafe {
            asm!(
                "ld.param.b64 {address}, [__ferrogrid_record];",
                address = out(reg64) address,
                options(pure, nomem, nostack)
            );
        }
        (address != 0).then(|| Record(with_exposed_provenance_mut(address as usize)))
    }

    /// Claims the record, or ends the thread if another has claimed it. Without a record it traps.
    #[inline(always)]
    pub(super) fn claim() -> Record {
        let Some(record) = Record::of_launch() else {
            // SAFETY: `trap` ends the grid.
            unsafe { trap() }
        };
        record.raise_alarm();
        // SAFETY: the host keeps the record alive for the rest of the process. Looking first spares
        // the exchange, over the bus, when many threads panic.
        let state = unsafe { (&raw const (*record.0).state).read_volatile() };
        if state != FREE || !record.exchange() {
            exit()
        }
        record.place(block_index(), thread_index());
        record
    }

    /// Counts the calling thread among those that end early. Loops of graphs read the count: the record only
    /// has the first panic, and the host may free it at any time.
    #[inline(always)]
    fn raise_alarm(&self) {
        // SAFETY: the host keeps the record alive, and has written into it where the count is: an aligned word of
        // the device's memory that is never freed, and that threads change by such additions only.
        unsafe {
            let alarm = (&raw const (*self.0).alarm).read_volatile();
            asm!("red.relaxed.gpu.global.add.u64 [{alarm}], 1;", alarm = in(reg64) alarm, options(nostack));
        }
    }

    /// Changes the state from [`FREE`] to [`CLAIMED`]; returns whether it was `FREE`.
    #[inline(always)]
    fn exchange(&self) -> bool {
        let found: u32;
        // SAFETY: the state is an aligned word of live memory that the device may write to. Host memory has
        // the same address as a generic one and in the global window. Only threads of this device exchange
        // it, so device scope suffices; many machines have no atomic operations across the bus. The host
        // never exchanges: it stores `FREE` to a complete record, which no thread touches. The fence, with
        // the volatile read of `FREE` in `claim`, which is system-scope, orders the host's reads before this
        // thread's writes.
        unsafe {
            asm!(
                "atom.relaxed.gpu.global.cas.b32 {found}, [{state}], {free}, {claimed};",
                "fence.acq_rel.sys;",
                found = out(reg32) found,
                state = in(reg64) &raw mut (*self.0).state,
                free = const FREE,
                claimed = const CLAIMED,
                options(nostack)
            );
        }
        found == FREE
    }

    #[inline(always)]
    fn place(&self, block: [u32; 3], thread: [u32; 3]) {
        // SAFETY: the record is this thread's. One store for each number: an array would take a stack.
        unsafe {
            let block_words = (&raw mut (*self.0).block).cast::<u32>();
            let thread_words = (&raw mut (*self.0).thread).cast::<u32>();
            for axis in 0..3 {
                block_words.add(axis).write_volatile(block[axis]);
                thread_words.add(axis).write_volatile(thread[axis]);
            }
        }
    }

    /// Writes the source location of the panic.
    #[inline(always)]
    pub(super) fn locate(&self, location: &Location<'_>) {
        let file = location.file();
        self.locate_in(file.as_ptr(), file.len(), location.line(), location.column());
    }

    /// The same, for a file whose name is these bytes.
    #[inline(always)]
    pub(super) fn locate_in(&self, file: *const u8, length: usize, line: u32, column: u32) {
        // SAFETY: the record is this thread's.
        unsafe {
            (&raw mut (*self.0).file).write_volatile(file.addr() as u64);
            (&raw mut (*self.0).file_length).write_volatile(length as u64);
            (&raw mut (*self.0).line).write_volatile(line);
            (&raw mut (*self.0).column).write_volatile(column);
        }
    }

    /// Writes as much of a message as fits, for the host to format; returns its whole length in bytes.
    pub(super) fn write_message(&self, message: Arguments) -> u64 {
        // SAFETY: the record is this thread's.
        let mut body = Body { start: unsafe { (&raw mut (*self.0).message).cast() }, written: 0 };
        send(message, &mut body);
        body.written
    }

    /// Passes the record to the host, and ends this thread.
    #[inline(always)]
    pub(super) fn complete(self, kind: u32, first: u64, second: u64) -> ! {
        // SAFETY: the record is this thread's; the fence makes all of it visible to the host before the
        // state is.
        unsafe {
            (&raw mut (*self.0).kind).write_volatile(kind);
            (&raw mut (*self.0).first).write_volatile(first);
            (&raw mut (*self.0).second).write_volatile(second);
            asm!("fence.acq_rel.sys;", options(nostack));
            (&raw mut (*self.0).state).write_volatile(COMPLETE);
        }
        exit()
    }
}

/// The message of a record, filled from its beginning.
struct Body {
    start: *mut u64,
    /// Bytes, a multiple of 8.
    written: u64,
}

impl Sink for Body {
    fn word(&mut self, word: u64) {
        if self.written < MESSAGE_BYTES as u64 {
            // SAFETY: inside the message, which is this thread's and whose length is a multiple of 8.
            unsafe { self.start.add((self.written / 8) as usize).write_volatile(word) };
        }
        self.written += 8;
    }

    unsafe fn bytes(&mut self, start: *const u8, length: u64) {
        // SAFETY: the caller vouches for the bytes.
        unsafe { each_word(start, length, |word| self.word(word)) }
    }
}

/// Whether a thread of this launch has panicked, or one of another launch with the same record.
pub(crate) fn is_reported() -> bool {
    // SAFETY: the record lives for the rest of the process.
    Record::of_launch()
        .is_some_and(|record| unsafe { (&raw const (*record.0).state).read_volatile() } != FREE)
}

/// Ends the calling thread, which waits for one that has panicked.
pub(crate) fn give_up() -> ! {
    wait_for_tiles();
    give_up_at_once()
}

/// As [`give_up`], without a call, behind which ptxas has no registers for `wgmma`: of a thread that has no tiles in flight which the
/// kernel reads, or that has waited for long.
#[inline(always)]
pub(crate) fn give_up_at_once() -> ! {
    if let Some(record) = Record::of_launch() {
        record.raise_alarm();
    }
    exit_at_once()
}

/// Ends the calling thread, after its copies of tiles have arrived. Threads that wait for it at a barrier, or in a warp
/// operation that names it, continue: the hardware does not wait for threads that have exited.
#[inline(always)]
fn exit() -> ! {
    wait_for_tiles();
    exit_at_once()
}

/// Waits for the tiles that the thread copies.
#[inline(always)]
fn wait_for_tiles() {
    #[cfg(target_feature = "sm_90a")]
    crate::shared::__ferrogrid_end_tiles();
}

#[inline(always)]
fn exit_at_once() -> ! {
    // SAFETY: no other thread relies on this thread's destructors: what threads share (memory that kernels
    // are given) has none.
    unsafe { asm!("exit;", options(noreturn, nostack)) }
}

#[inline(always)]
fn block_index() -> [u32; 3] {
    // SAFETY: reading a special register has no precondition.
    unsafe { [_block_idx_x() as u32, _block_idx_y() as u32, _block_idx_z() as u32] }
}

#[inline(always)]
fn thread_index() -> [u32; 3] {
    // SAFETY: reading a special register has no precondition.
    unsafe { [_thread_idx_x() as u32, _thread_idx_y() as u32, _thread_idx_z() as u32] }
}
