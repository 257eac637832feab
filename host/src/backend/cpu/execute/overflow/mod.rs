//! Ends a kernel thread that has used up its stack. The guard page stops it; a signal handler ends its coroutine, and
//! reports that to the code that resumed it.
//!
//! The thread's frames are abandoned: what they hold is leaked, not dropped. So the process ends instead where the thread
//! may hold what others need. That is in another library (the allocator, the unwinder, the loader), in a panic, or while
//! printed text is being delivered. It always ends on platforms without `leave`.
//!
//! `code` finds the code of a library, and `alternate` is the stack of the signal handler.

pub(crate) use platform::holding;
pub(crate) use platform::{Stack, go_on, happened, install, run_kernel, running_on};

#[cfg(unix)]
mod platform {
    use std::cell::Cell;
    use std::ffi::c_void;
    use std::mem::MaybeUninit;
    use std::ptr;
    use std::sync::OnceLock;
    use std::thread::panicking;

    use corosensei::trap::CoroutineTrapHandler;

    use super::alternate;
    use super::code::Code;

    /// The stack of a coroutine, and its way out.
    pub(crate) type Stack = CoroutineTrapHandler<()>;

    /// What runs on this CPU thread.
    #[derive(Clone, Copy)]
    struct Kernel {
        name: &'static str,
        code: Code,
    }

    thread_local! {
        /// The stack that a kernel runs on here; `None` outside of kernels.
        static RUNNING: Cell<Option<Stack>> = const { Cell::new(None) };
        static KERNEL: Cell<Kernel> = const { Cell::new(Kernel { name: "", code: Code::NONE }) };
        /// Whether the thread may hold what others need.
        static HOLDS: Cell<bool> = const { Cell::new(false) };
        static HAPPENED: Cell<bool> = const { Cell::new(false) };
    }

    /// What handled each of the two signals before.
    static PREVIOUS: OnceLock<[libc::sigaction; 2]> = OnceLock::new();

    const SIGNALS: [i32; 2] = [libc::SIGSEGV, libc::SIGBUS];

    /// Notes the stack that the kernel runs on from now on; returns the one before.
    #[inline]
    pub(crate) fn running_on(stack: Option<Stack>) -> Option<Stack> {
        RUNNING.replace(stack)
    }

    /// Notes that the kernel runs on `stack` from now on, as one does here already.
    #[inline]
    pub(crate) fn go_on(stack: Stack) {
        RUNNING.set(Some(stack));
    }

    /// Whether a coroutine that has ended here did so by using up its stack; asked once.
    #[inline]
    pub(crate) fn happened() -> bool {
        HAPPENED.take()
    }

    /// Runs `work`, which may hold what others need, so that it must not be left in the middle.
    pub(crate) fn holding<R>(work: impl FnOnce() -> R) -> R {
        struct Restore(bool);
        impl Drop for Restore {
            fn drop(&mut self) {
                HOLDS.set(self.0);
            }
        }
        let _restore = Restore(HOLDS.replace(true));
        work()
    }

    /// Names the kernel that runs here next, and an address in its code.
    pub(crate) fn run_kernel(name: &'static str, code: usize) {
        alternate::ensure();
        let Kernel { code: known, .. } = KERNEL.get();
        let code = if known.contains(code) { known } else { Code::around(code) };
        KERNEL.set(Kernel { name, code });
    }

    /// Installs the handler, once.
    pub(crate) fn install() {
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
        // does only what a handler may. `SA_ONSTACK` lets it run although the stack is used up:
        // `alternate` sees to it that there is another.
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
        let Some(stack) = RUNNING.get().filter(|stack| stack.stack_ptr_in_bounds(address)) else {
            return pass_on(signal, info, context);
        };
        let Kernel { name, code } = KERNEL.get();
        // SAFETY: the context is that of the fault, which a thread on `stack` had. That stack is noted when its coroutine is
        // resumed; another one, or none, is noted when the coroutine suspends or ends.
        let left = !HOLDS.get() && !panicking() && unsafe { leave(&stack, code, context) };
        if !left {
            tell(name);
            // SAFETY: ends the process.
            unsafe { libc::abort() };
        }
    }

    /// Makes the coroutine on `stack` end when the handler returns, if it was in `code`.
    ///
    /// # Safety
    /// The context is that of a fault of this coroutine, which runs on this CPU thread.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    unsafe fn leave(stack: &Stack, code: Code, context: *mut c_void) -> bool {
        // SAFETY: that is what the system passes to handlers with `SA_SIGINFO`.
        let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
        let registers = &mut context.uc_mcontext.gregs;
        let at = |register: i32| registers[register as usize] as usize;
        if !stack.stack_ptr_in_bounds(at(libc::REG_RSP)) || !code.contains(at(libc::REG_RIP)) {
            return false;
        }
        // SAFETY: the stack pointer lies in the stack, and all registers are set as required. What the coroutine has written
        // to other memory is the output of a failed kernel, which is plain data of any value. Or it is state of its
        // executor, which is dropped and not used again.
        let new = unsafe { stack.setup_trap_handler(|| HAPPENED.set(true)) };
        let new = [
            (libc::REG_RIP, new.rip),
            (libc::REG_RSP, new.rsp),
            (libc::REG_RBP, new.rbp),
            (libc::REG_RDI, new.rdi),
            (libc::REG_RSI, new.rsi),
        ];
        new.into_iter().for_each(|(register, value)| registers[register as usize] = value as i64);
        true
    }

    /// Not implemented for this system.
    ///
    /// # Safety
    /// None: it changes nothing.
    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    unsafe fn leave(_: &Stack, _: Code, _: *mut c_void) -> bool {
        false
    }

    /// Writes the message without allocating, as a signal handler must.
    fn tell(kernel: &str) {
        let parts: [&[u8]; 3] = [
            b"ferrogrid: a thread of kernel `",
            kernel.as_bytes(),
            b"` has used up its stack on the CPU device, at a place where it cannot be ended alone; \
              FERROGRID_CPU_STACK sets another size (in KiB)\n",
        ];
        for part in parts {
            // SAFETY: `write` may be called in a handler; the bytes are valid.
            unsafe { libc::write(libc::STDERR_FILENO, part.as_ptr().cast(), part.len()) };
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
}

#[cfg(unix)]
mod alternate;
#[cfg(unix)]
mod code;

/// Elsewhere the system's own report of the fault at the guard page must do.
#[cfg(not(unix))]
mod platform {
    use corosensei::trap::CoroutineTrapHandler;

    pub(crate) type Stack = CoroutineTrapHandler<()>;

    pub(crate) fn running_on(_: Option<Stack>) -> Option<Stack> {
        None
    }

    pub(crate) fn go_on(_: Stack) {}

    pub(crate) fn happened() -> bool {
        false
    }

    pub(crate) fn holding<R>(work: impl FnOnce() -> R) -> R {
        work()
    }

    pub(crate) fn run_kernel(_: &'static str, _: usize) {}

    pub(crate) fn install() {}
}
