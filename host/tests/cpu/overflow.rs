//! Stack overflows of kernels on the CPU device.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

#[path = "../waiting/mod.rs"]
mod waiting;

use std::hint::black_box;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use ferrogrid_host::{Device, Error, Grid, KernelError, Result, Stream};
use waiting::{
    Here, device, enqueue, enqueue_never_waiting, enqueue_never_waiting_together, resources, run_with,
    text_without_site,
};

/// Uses up any stack.
#[inline(never)]
fn recurse(depth: u32) -> u32 {
    let frame = black_box([depth; 256]);
    if depth == u32::MAX { 0 } else { recurse(depth + 1) + frame[depth as usize % 256] }
}

/// The same in frames of 64 KiB, each larger than a guard page.
#[inline(never)]
fn recurse_in_large_frames(depth: u32) -> u32 {
    let frame = black_box([depth; 16 * 1024]);
    if depth == u32::MAX { 0 } else { recurse_in_large_frames(depth + 1) + frame[depth as usize % 256] }
}

/// What a launch of `blocks` blocks of 64 threads ends with, and after it one that must succeed on the same stream.
fn failure_of(stream: &Stream, blocks: u32, launch: impl FnOnce(&Stream, Grid<3>) -> Result<()>) -> Error {
    launch(stream, Grid::new([blocks, 1, 1], [64, 1, 1])).unwrap();
    let error = stream.synchronize().unwrap_err();
    let mut out = stream.zeros::<u32>(1).unwrap();
    enqueue(stream, Grid::new([9, 1, 1], [64, 1, 1]), resources(64, false), &mut out, |t| {
        t.barrier();
        t.out[0].fetch_add(1, Ordering::Relaxed);
    })
    .unwrap();
    assert_eq!(stream.download(&out).unwrap(), [9 * 64], "after {error}");
    error
}

#[test]
fn a_thread_that_may_wait_is_named_and_the_device_stays_usable() -> Result<()> {
    for round in 0..20 {
        let stream = device([1, 2, 16][round % 3]).new_stream()?;
        let mut out = stream.zeros::<u32>(64)?;
        let error = failure_of(&stream, 30, |stream, grid| {
            enqueue(stream, grid, resources(32, false), &mut out, |t| {
                t.barrier();
                let deep = t.block_number >= 7 && t.number == 33;
                t.set(t.number as usize, if deep { recurse(0) } else { 1 });
                t.barrier();
            })
        });
        let text = text_without_site(&error);
        let Error::Kernel(KernelError::KernelStackOverflow {
            kernel, file, line, block, thread, bytes, ..
        }) = error
        else {
            panic!("{text}")
        };
        assert_eq!((kernel, block, thread, bytes), ("probe", [7, 0, 0], Some([33, 0, 0]), 256 * 1024));
        assert!(file.ends_with("waiting/mod.rs") && line > 0);
        let expected = format!(
            "kernel `probe` at {file}:{line} has used up the stack of 256 KiB of thread (33, 0, 0) in block (7, 0, 0); FERROGRID_CPU_STACK sets another size (in KiB)"
        );
        assert_eq!(text, expected);
    }
    Ok(())
}

#[test]
fn a_thread_that_overflows_before_it_first_waits_is_named_too() {
    for body in
        [(|t: &Here<'_>| t.set(0, if t.number == 5 { recurse(0) } else { 0 })) as fn(&Here<'_>), |t| {
            t.set(0, if t.number == 5 { recurse_in_large_frames(0) } else { 0 })
        }]
    {
        let error = run_with(resources(0, false), 1, [8, 1, 1], 1, body).unwrap_err();
        assert!(
            matches!(error, Error::Kernel(KernelError::KernelStackOverflow { thread: Some([5, 0, 0]), .. })),
            "{error}"
        );
    }
}

/// A thread of a kernel that never waits, as errors name it: builds without debug assertions keep no account.
fn named(thread: [u32; 3]) -> Option<[u32; 3]> {
    cfg!(debug_assertions).then_some(thread)
}

#[test]
fn a_kernel_that_never_waits_is_stopped_as_well() -> Result<()> {
    for _ in 0..20 {
        let stream = device(2).new_stream()?;
        let mut out = stream.zeros::<u32>(1)?;
        let error = failure_of(&stream, 30, |stream, grid| {
            enqueue_never_waiting(stream, grid, &mut out, |t| {
                let deep = t.block_number >= 11 && t.number >= 33;
                t.set(0, if deep { recurse(0) } else { 1 });
            })
        });
        let Error::Kernel(KernelError::KernelStackOverflow { block, thread, bytes, .. }) = error else {
            panic!("{error}")
        };
        assert_eq!((block, thread, bytes), ([11, 0, 0], named([33, 0, 0]), 2 * 1024 * 1024));
    }
    Ok(())
}

#[test]
fn so_are_the_blocks_of_a_cooperative_launch() -> Result<()> {
    let stream = device(2).new_stream()?;
    let mut out = stream.zeros::<u32>(64)?;
    let error = failure_of(&stream, 3, |stream, grid| {
        enqueue_never_waiting_together(stream, grid, &mut out, |t| {
            t.set(0, if t.global() == 69 { recurse(0) } else { 1 });
        })
    });
    let Error::Kernel(KernelError::KernelStackOverflow { block, thread, .. }) = error else {
        panic!("{error}")
    };
    assert_eq!((block, thread), ([1, 0, 0], named([5, 0, 0])));
    let error = failure_of(&stream, 3, |stream, grid| {
        enqueue(stream, grid, resources(0, true), &mut out, |t| {
            t.grid_barrier();
            t.set(t.number as usize, if t.global() == 70 { recurse(0) } else { 1 });
            t.grid_barrier();
        })
    });
    let Error::Kernel(KernelError::KernelStackOverflow { block, thread, .. }) = error else {
        panic!("{error}")
    };
    assert_eq!((block, thread), ([1, 0, 0], Some([6, 0, 0])));
    Ok(())
}

#[test]
fn a_panic_after_an_overflow_is_caught_and_a_panic_outside_of_kernels_is_printed() -> Result<()> {
    let stream = device(1).new_stream()?;
    let mut out = stream.zeros::<u32>(1)?;
    failure_of(&stream, 1, |stream, grid| {
        enqueue_never_waiting(stream, grid, &mut out, |t| t.set(0, recurse(0)))
    });
    let error = failure_of(&stream, 1, |stream, grid| {
        enqueue_never_waiting(stream, grid, &mut out, |t| assert!(t.number != 3, "three"))
    });
    assert!(matches!(error, Error::KernelPanic { thread: [3, 0, 0], .. }), "{error}");
    let output = run_apart("a_host_function_panics_after_an_overflow", "");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("the host function's own"), "{text}");
    Ok(())
}

#[test]
#[ignore = "its output is looked at; another test runs it in a separate process"]
fn a_host_function_panics_after_an_overflow() -> Result<()> {
    let stream = device(1).new_stream()?;
    let mut out = stream.zeros::<u32>(1)?;
    failure_of(&stream, 1, |stream, grid| {
        enqueue_never_waiting(stream, grid, &mut out, |t| t.set(0, recurse(0)))
    });
    stream.launch_host_func(|| panic!("the host function's own"))?;
    assert!(stream.synchronize().is_err());
    Ok(())
}

/// Counts how many of it are alive.
struct Counted;

static ALIVE: AtomicU32 = AtomicU32::new(0);

impl Counted {
    fn new() -> Self {
        ALIVE.fetch_add(1, Ordering::SeqCst);
        Counted
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Ordering::SeqCst);
    }
}

#[test]
fn only_values_of_the_thread_itself_are_leaked() -> Result<()> {
    let stream = device(1).new_stream()?;
    let mut out = stream.zeros::<u32>(64)?;
    failure_of(&stream, 1, |stream, grid| {
        enqueue(stream, grid, resources(0, false), &mut out, |t| {
            let _alive = Counted::new();
            t.barrier();
            t.set(t.number as usize, if t.number == 9 { recurse(0) } else { 1 });
            t.barrier();
        })
    });
    assert_eq!(ALIVE.load(Ordering::SeqCst), 1);
    Ok(())
}

/// As in a library that a program loads whose `main` is not Rust's: std gives its threads no stack for signals.
#[test]
fn a_cpu_thread_without_a_stack_for_signals_gets_one() -> Result<()> {
    let stream = device(1).new_stream()?;
    let mut out = stream.zeros::<u32>(1)?;
    stream.launch_host_func(|| {
        let none = libc::stack_t { ss_sp: std::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 65536 };
        // SAFETY: takes this CPU thread's stack for signals away; none is handled on it now.
        assert_eq!(unsafe { libc::sigaltstack(&none, std::ptr::null_mut()) }, 0);
    })?;
    let error = failure_of(&stream, 1, |stream, grid| {
        enqueue_never_waiting(stream, grid, &mut out, |t| t.set(0, recurse(0)))
    });
    assert!(matches!(error, Error::Kernel(KernelError::KernelStackOverflow { .. })), "{error}");
    Ok(())
}

/// Uses up the stack while it is being dropped.
struct DeepDrop;

impl Drop for DeepDrop {
    fn drop(&mut self) {
        black_box(recurse(0));
    }
}

#[test]
#[ignore = "ends the process; another test runs it in a separate one"]
fn overflow_in_a_panic() -> Result<()> {
    let stream = device(1).new_stream()?;
    let mut out = stream.zeros::<u32>(1)?;
    enqueue_never_waiting(&stream, Grid::new([1, 1, 1], [1, 1, 1]), &mut out, |t| {
        let _deep = DeepDrop;
        assert!(t.number == 1, "zero");
    })?;
    stream.synchronize()
}

#[test]
#[ignore = "ends the process; another test runs it in a separate one"]
fn overflow_in_another_library() -> Result<()> {
    let stream = device(1).new_stream()?;
    let mut out = stream.zeros::<u32>(64)?;
    enqueue_never_waiting(&stream, Grid::new([1, 1, 1], [1, 1, 1]), &mut out, |_| {
        extern "C" fn deep(_: *const libc::c_void, _: *const libc::c_void) -> i32 {
            let mut numbers = [2_u32, 1];
            // SAFETY: two elements of four bytes, and a comparison that never returns.
            unsafe { libc::qsort(numbers.as_mut_ptr().cast(), 2, 4, Some(deep)) };
            0
        }
        deep(std::ptr::null(), std::ptr::null());
    })?;
    stream.synchronize()
}

#[test]
#[ignore = "ends the process; another test runs it in a separate one"]
fn fault_outside_of_kernels() {
    device(1).new_stream().unwrap().synchronize().unwrap();
    // SAFETY: none: this is the fault that is meant to end the process.
    unsafe { black_box(std::ptr::without_provenance_mut::<u32>(16)).write_volatile(1) };
}

/// Runs `test` of this program in a separate process, with `FERROGRID_CPU_STACK` set.
fn run_apart(test: &str, stack: &str) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--include-ignored", "--nocapture", test])
        .env("FERROGRID_CPU_STACK", stack)
        .output()
        .unwrap()
}

#[test]
fn if_a_thread_cannot_be_ended_the_process_aborts_with_a_message() {
    let output = run_apart("overflow_in_a_panic", "");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("kernel `probe` has used up its stack"), "{text}");
}

#[test]
fn an_overflow_in_another_library_is_never_silent() {
    let output = run_apart("overflow_in_another_library", "");
    let text = String::from_utf8_lossy(&output.stderr);
    // Whichever of the two functions gets to the end of the stack first.
    let told = text.contains("kernel `probe` has used up its stack");
    assert!(!output.status.success() && (told || text.contains("has used up the stack of")), "{text}");
}

#[test]
fn other_faults_are_left_to_others() {
    let output = run_apart("fault_outside_of_kernels", "");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && !text.contains("has used up its stack"), "{text}");
}

#[test]
fn the_size_of_the_stack_is_that_of_the_variable() {
    let output = run_apart("overflow_of_a_thread", "64");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("the stack of 64 KiB of thread (0, 0, 0)"), "{text}");
}

#[test]
#[ignore = "fails; another test runs it in a separate process"]
fn overflow_of_a_thread() -> Result<()> {
    let stream = Device::cpu().new_stream()?;
    let mut out = stream.zeros::<u32>(8)?;
    enqueue(&stream, Grid::new([1, 1, 1], [8, 1, 1]), resources(0, false), &mut out, |t| {
        t.barrier();
        t.set(t.global(), recurse(0));
    })?;
    stream.synchronize()
}
