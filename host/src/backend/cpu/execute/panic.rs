//! Panics of kernels on the CPU: caught, located, silenced, and converted to errors.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::backend::host_fn;
use crate::error::{Error, KernelError, LaunchSites};
use crate::kernel::Kernel;
use crate::kernel::extern_function::NoNativeFunction;

/// What is known of a kernel's panic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caught {
    pub(crate) message: Box<str>,
    /// File, line and column; `None` if the panic hook was replaced.
    pub(crate) location: Option<(Box<str>, u32, u32)>,
    /// The function that was called and is not there, if that is what happened.
    pub(crate) missing: Option<NoNativeFunction>,
}

impl Caught {
    /// The error of `kernel`, whose thread at `thread` of the block at `block` panicked.
    pub(crate) fn into_error(self, kernel: &Kernel, block: [u32; 3], thread: [u32; 3]) -> Error {
        let launched = LaunchSites::default();
        if let Some(NoNativeFunction(function)) = self.missing {
            return Error::Kernel(KernelError::NoNativeFunction {
                kernel: kernel.name(),
                launched,
                function,
            });
        }
        let (file, line) = kernel.location();
        let (file, line, column) = self.location.unwrap_or_else(|| (file.into(), line, 0));
        let (kernel, message) = (kernel.name(), self.message);
        Error::KernelPanic { kernel, launched, message, file, line, column, block, thread }
    }
}

thread_local! {
    /// Whether this thread is running a kernel, whose panic is to be quiet.
    static IN_KERNEL: Cell<bool> = const { Cell::new(false) };
    static LOCATION: RefCell<Option<(Box<str>, u32, u32)>> = const { RefCell::new(None) };
}

/// Sees to it that panics of kernels are located and not printed; all others go to the hook that was
/// there. Without unwinding a kernel's panic ends the process, so then it is printed as ever.
pub(crate) fn install_hook() {
    static INSTALL: Once = Once::new();
    if cfg!(not(panic = "unwind")) {
        return;
    }
    INSTALL.call_once(wrap_hook);
}

/// Puts ours around the hook that is there.
fn wrap_hook() {
    let previous = take_hook();
    set_hook(Box::new(move |info| {
        if !note(info) {
            previous(info)
        }
    }));
}

/// After a panic of a kernel that our hook has not seen: the program has set another, which ours has to go around, too.
/// What was thrown by `resume_unwind` is seen by no hook, so there is a limit.
fn wrap_hook_again() {
    static AGAIN: AtomicU32 = AtomicU32::new(0);
    const MOST: u32 = 16;
    if AGAIN
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| (count < MOST).then_some(count + 1))
        .is_ok()
    {
        wrap_hook();
    }
}

/// Keeps the place of a kernel's panic; `false` if this is no kernel.
fn note(info: &PanicHookInfo<'_>) -> bool {
    if !IN_KERNEL.get() {
        return false;
    }
    if let Some(location) = info.location() {
        let place = (location.file().into(), location.line(), location.column());
        LOCATION.set(Some(place));
    }
    true
}

/// Runs `kernel` and catches its panic.
pub(crate) fn catch(kernel: impl FnOnce()) -> Result<(), Caught> {
    let outer = IN_KERNEL.replace(true);
    let result = catch_unwind(AssertUnwindSafe(kernel));
    IN_KERNEL.set(outer);
    result.map_err(|payload| {
        let location = LOCATION.take();
        if location.is_none() {
            wrap_hook_again();
        }
        let missing = payload.downcast_ref::<NoNativeFunction>().copied();
        Caught { message: host_fn::text(payload), location, missing }
    })
}

/// Whether this thread is running a kernel; [`restore`] goes back to it where a kernel was left without
/// unwinding.
pub(crate) fn in_kernel() -> bool {
    IN_KERNEL.get()
}

pub(crate) fn restore(in_kernel: bool) {
    IN_KERNEL.set(in_kernel);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_caught_with_its_message_and_location() {
        install_hook();
        let line = line!() + 1;
        let caught = catch(|| panic!("no element {}", 7)).unwrap_err();
        assert_eq!(&*caught.message, "no element 7");
        let (file, at, column) = caught.location.unwrap();
        assert!(file.ends_with("panic.rs"), "{file}");
        assert_eq!(at, line);
        assert!(column > 1);
    }

    #[test]
    fn a_payload_that_is_no_text_is_caught_too() {
        // Else `catch` would replace the hook while another test relies on it.
        install_hook();
        let caught = catch(|| std::panic::panic_any(5_i32)).unwrap_err();
        assert_eq!(&*caught.message, "a panic whose payload is no text");
    }

    #[test]
    fn kernels_that_cannot_panic_are_unchanged() {
        let mut ran = false;
        assert_eq!(catch(|| ran = true), Ok(()));
        assert!(ran);
        assert!(!IN_KERNEL.get());
    }
}
