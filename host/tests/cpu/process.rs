//! Effects on the whole process: its panic hook, and threads that end.

#[path = "../kernels/mod.rs"]
mod kernels;

use std::panic::Location;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use ferrogrid_host::{Device, Error, Grid, Result, Stream};
use kernels::unlucky;

/// Line and column of a kernel's panic.
fn place(stream: &Stream) -> Result<(u32, u32)> {
    let mut buffer = stream.upload(&[13_u32])?;
    unlucky(stream, Grid::cover(1), &mut buffer)?;
    match stream.synchronize() {
        Err(Error::KernelPanic { line, column, message, .. }) if message.contains("13") => Ok((line, column)),
        other => panic!("no failure of a kernel: {other:?}"),
    }
}

/// The first failure after a program has set a hook has the place of the kernel, later ones that of the panic.
#[test]
fn a_panic_hook_of_the_program_hides_the_place_of_a_panic_once() -> Result<()> {
    let stream = Device::cpu().new_stream()?;
    let panicked = place(&stream)?;
    assert_ne!(panicked.1, 0);
    for _ in 0..2 {
        let calls = Arc::new(AtomicUsize::new(0));
        let (counted, here) = (calls.clone(), Location::caller().file());
        std::panic::set_hook(Box::new(move |info| {
            counted.fetch_add(1, Ordering::Relaxed);
            assert!(info.location().is_some_and(|at| at.file() != here));
        }));
        assert_eq!(place(&stream)?.1, 0);
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        assert_eq!(place(&stream)?, panicked);
        assert_eq!(place(&stream)?, panicked);
        assert_eq!(calls.load(Ordering::Relaxed), 1);
    }
    Ok(())
}

#[test]
fn a_thread_that_ends_has_no_default_stream_any_more() {
    struct AtExit(mpsc::Sender<Result<()>>);
    impl Drop for AtExit {
        fn drop(&mut self) {
            let stream = Device::cpu().per_thread_stream();
            let worked = stream.and_then(|stream| stream.synchronize());
            self.0.send(worked).unwrap();
        }
    }
    thread_local! {
        static AT_EXIT: std::cell::RefCell<Option<AtExit>> = const { std::cell::RefCell::new(None) };
    }
    let (sender, results) = mpsc::channel();
    // Destroyed in the order in which they were registered, or the other way round: both come to be.
    for first in [true, false] {
        let sender = sender.clone();
        let thread = std::thread::spawn(move || {
            let stream = || Device::cpu().per_thread_stream().unwrap();
            let exit = || AT_EXIT.set(Some(AtExit(sender)));
            if first {
                exit();
                stream().synchronize().unwrap();
            } else {
                stream().synchronize().unwrap();
                exit();
            }
        });
        thread.join().unwrap();
    }
    let results: Vec<_> = results.iter().take(2).collect();
    let refused = |result: &&Result<()>| {
        matches!(result, Err(Error::Unsupported { operation: "Device::per_thread_stream", .. }))
    };
    assert_eq!(results.iter().filter(refused).count(), 1, "{results:?}");
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
}
