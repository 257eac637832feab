//! Tells a kernel thread that has used up its stack from other faults: the guard page stops it, and a
//! signal handler says whose fault it was before the process ends. It must not know how threads are run.
//!
//! The process cannot go on: the thread may have been inside an allocator or a lock.

pub(super) use platform::{install, running_kernel, running_on, running_on_own_stack};

#[cfg(unix)]
mod platform {
    use std::cell::Cell;
    use std::ffi::c_void;
    use std::mem::MaybeUninit;
    use std::ptr;
    use std::sync::OnceLock;

    use corosensei::trap::CoroutineTrapHandler;

    thread_local! {
        /// The stack of the kernel thread that this CPU thread runs; `None` outside of kernels that wait.
        static RUNNING: Cell<Option<CoroutineTrapHandler<()>>> = const { Cell::new(None) };
        static KERNEL: Cell<(&'static str, usize)> = const { Cell::new(("", 0)) };
    }

    /// What handled each of the two signals before.
    static PREVIOUS: OnceLock<[libc::sigaction; 2]> = OnceLock::new();

    const SIGNALS: [i32; 2] = [libc::SIGSEGV, libc::SIGBUS];

    #[inline]
    pub(in super::super) fn running_on(stack: CoroutineTrapHandler<()>) {
        RUNNING.set(Some(stack));
    }

    pub(in super::super) fn running_on_own_stack() {
        RUNNING.set(None);
    }

    /// Names the kernel whose threads run next, and the bytes of their stacks.
    pub(in super::super) fn running_kernel(kernel: &'static str, stack_bytes: usize) {
        KERNEL.set((kernel, stack_bytes));
    }

    /// Installs the handler, once.
    pub(in super::super) fn install() {
        PREVIOUS.get_or_init(|| SIGNALS.map(previous_of));
        static INSTALLED: OnceLock<()> = OnceLock::new();
        INSTALLED.get_or_init(|| SIGNALS.into_iter().for_each(replace));
    }

    fn previous_of(signal: i32) -> libc::sigaction {
        let mut previous = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: a null action only asks; all-zero is a valid `sigaction` if the call should fail.
        unsafe {
            libc::sigaction(signal, ptr::null(), previous.as_mut_ptr());
            previous.assume_init()
        }
    }

    fn replace(signal: i32) {
        // SAFETY: all-zero is a valid `sigaction`; `handle` has the form that `SA_SIGINFO` asks for and
        // does only what a handler may. `SA_ONSTACK` lets it run although the stack is used up: std
        // gives every thread that it starts an alternate one.
        unsafe {
            let mut action = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
            let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut c_void) = handle;
            action.sa_sigaction = handler as libc::sighandler_t;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(signal, &action, ptr::null_mut());
        }
    }

    extern "C" fn handle(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
        // SAFETY: the system passes valid information.
        let address = unsafe { (*info).si_addr() }.addr();
        // Only the guard page of a stack can fault inside of it.
        if RUNNING.get().is_some_and(|stack| stack.stack_ptr_in_bounds(address)) {
            let (kernel, bytes) = KERNEL.get();
            tell(kernel, bytes / 1024);
            // SAFETY: ends the process.
            unsafe { libc::abort() };
        }
        pass_on(signal, info, context);
    }

    /// Writes the message without allocating, as a signal handler must.
    fn tell(kernel: &str, kib: usize) {
        let mut digits = [0; 20];
        let number = decimal(kib, &mut digits);
        let parts: [&[u8]; 5] = [
            b"ferrogrid: a thread of kernel `",
            kernel.as_bytes(),
            b"` has used up its stack of ",
            number,
            b" KiB on the CPU device; FERROGRID_CPU_STACK sets another size (in KiB)\n",
        ];
        for part in parts {
            // SAFETY: `write` may be called in a handler; the bytes are valid.
            unsafe { libc::write(libc::STDERR_FILENO, part.as_ptr().cast(), part.len()) };
        }
    }

    fn decimal(mut number: usize, digits: &mut [u8; 20]) -> &[u8] {
        let mut start = digits.len();
        loop {
            start -= 1;
            digits[start] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                return &digits[start..];
            }
        }
    }

    /// Does what would have happened without this handler.
    fn pass_on(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
        let index = usize::from(signal == SIGNALS[1]);
        let Some(previous) = PREVIOUS.get().map(|previous| &previous[index]) else { return };
        if matches!(previous.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN) {
            // SAFETY: restores what was there; the fault repeats when this returns, and ends the process.
            unsafe { libc::sigaction(signal, previous, ptr::null_mut()) };
            return;
        }
        // SAFETY: it is the handler that was installed, of the form that its flags say.
        unsafe {
            if previous.sa_flags & libc::SA_SIGINFO != 0 {
                let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut c_void) =
                    std::mem::transmute(previous.sa_sigaction);
                handler(signal, info, context);
            } else {
                let handler: extern "C" fn(i32) = std::mem::transmute(previous.sa_sigaction);
                handler(signal);
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn numbers_are_written_without_allocating() {
            assert_eq!(decimal(0, &mut [0; 20]), b"0");
            assert_eq!(decimal(256, &mut [0; 20]), b"256");
            assert_eq!(decimal(usize::MAX, &mut [0; 20]), usize::MAX.to_string().as_bytes());
        }
    }
}

/// Elsewhere the system's own report of the fault at the guard page must do.
#[cfg(not(unix))]
mod platform {
    use corosensei::trap::CoroutineTrapHandler;

    pub(in super::super) fn running_on(_: CoroutineTrapHandler<()>) {}

    pub(in super::super) fn running_on_own_stack() {}

    pub(in super::super) fn running_kernel(_: &'static str, _: usize) {}

    pub(in super::super) fn install() {}
}
