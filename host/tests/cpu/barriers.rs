//! Barriers and shared memory of a block on the CPU device, and the errors if threads are missing.

#[path = "../waiting/mod.rs"]
mod waiting;

use std::sync::atomic::{AtomicU32, Ordering};

use ferrogrid_host::{BarrierReach, Device, Error, Grid, KernelError, Result, WaitingThreads};
use waiting::{
    Here, WORKERS, device, enqueue, enqueue_never_waiting, resources, run, run_with, text_without_site,
};

#[test]
fn writes_before_a_barrier_are_visible_after_it() -> Result<()> {
    for (blocks, threads) in [(1, 1), (1, 2), (3, 31), (5, 33), (200, 64), (7, 256), (2, 1024)] {
        let length = (blocks * threads) as usize;
        let rotated = run(blocks, threads, 2 * length, |t| {
            let half = t.out.len() / 2;
            t.set(t.global(), t.global() as u32 + 1);
            t.barrier();
            let next = t.global() - t.number as usize + (t.number + 1) as usize % t.threads as usize;
            let seen = t.get(next);
            t.barrier();
            t.set(half + t.global(), seen);
        })?;
        let block = threads as usize;
        let expected = |i: usize| (i / block * block + (i % block + 1) % block) as u32 + 1;
        assert!((0..length).all(|i| rotated[length + i] == expected(i)), "{blocks} x {threads}");
    }
    Ok(())
}

#[test]
fn threads_of_a_block_of_rank_3_all_meet() -> Result<()> {
    let counts = run_with(resources(0, false), 4, [5, 3, 2], 4 * 30, |t| {
        let votes = t.barrier_count(t.place[2] == 1 && t.place[1] == 2);
        t.set(t.global(), votes);
    })?;
    assert_eq!(counts, [5; 120]);
    Ok(())
}

#[test]
fn each_barrier_counts_its_own_votes() -> Result<()> {
    let ok = run(9, 100, 900, |t| {
        let right = (0..50).all(|round| t.barrier_count(t.number < round) == round);
        t.set(t.global(), u32::from(right));
    })?;
    assert_eq!(ok, [1; 900]);
    Ok(())
}

/// The sum of a block's thread numbers, by a tree in shared memory.
fn tree_sum(t: &Here<'_>) {
    let (start, bytes) = t.shared();
    assert!(bytes >= 4 * t.threads as usize && start.is_aligned() && start.addr().is_multiple_of(128));
    // SAFETY: aligned to 128, with room for as many, and initialised: the block's own shared memory.
    let sums = unsafe { std::slice::from_raw_parts(start.cast::<AtomicU32>(), t.threads as usize) };
    let at = |index: u32| &sums[index as usize];
    at(t.number).store(t.global() as u32, Ordering::Relaxed);
    let mut half = t.threads / 2;
    while half > 0 {
        t.barrier();
        if t.number < half {
            let other = at(t.number + half).load(Ordering::Relaxed);
            at(t.number).fetch_add(other, Ordering::Relaxed);
        }
        half /= 2;
    }
    if t.number == 0 {
        t.set(t.block_number as usize, at(0).load(Ordering::Relaxed));
    }
}

#[test]
fn blocks_reduce_in_their_own_shared_memory() -> Result<()> {
    let sums = run_with(resources(4 * 128, false), 300, [128, 1, 1], 300, tree_sum)?;
    let expected: Vec<u32> =
        (0..300).map(|block| (0..128).map(|thread| block * 128 + thread).sum()).collect();
    assert_eq!(sums, expected);
    Ok(())
}

#[test]
fn shared_memory_is_poisoned_before_each_block() -> Result<()> {
    let clean = run_with(resources(1000, false), 64, [32, 1, 1], 64, |t| {
        let (start, bytes) = t.shared();
        // SAFETY: the block's shared memory; only thread 0 reaches it.
        let memory = unsafe { std::slice::from_raw_parts_mut(start, if t.number == 0 { bytes } else { 0 }) };
        if t.number == 0 && bytes == 1000 {
            t.set(t.block_number as usize, u32::from(memory.iter().all(|&byte| byte == 0xA5)));
        }
        memory.fill(0);
    })?;
    assert_eq!(clean, [1; 64]);
    Ok(())
}

#[test]
fn without_shared_memory_the_region_is_empty_and_aligned() -> Result<()> {
    let seen = run(1, 1, 1, |t| {
        let (start, bytes) = t.shared();
        t.set(0, u32::from(!start.is_null() && start.addr().is_multiple_of(128) && bytes == 0));
    })?;
    assert_eq!(seen, [1]);
    Ok(())
}

#[test]
fn threads_that_exit_before_a_barrier_are_named_with_those_that_wait() {
    let error = run(3, 64, 0, |t| {
        if t.block_number == 1 && t.number >= 61 {
            return;
        }
        t.barrier();
    })
    .unwrap_err();
    let text = text_without_site(&error);
    let Error::Kernel(KernelError::BarrierDivergence { kernel, block, waiting, exited, .. }) = error else {
        panic!("{text}")
    };
    assert_eq!((kernel, block), ("probe", [1, 0, 0]));
    assert_eq!(exited, [[61, 0, 0], [62, 0, 0], [63, 0, 0]]);
    let [WaitingThreads { place, reach: BarrierReach::Block, threads, .. }] = &waiting[..] else {
        panic!("{text}")
    };
    assert!(place.file.ends_with("barriers.rs") && place.line > 100, "{place}");
    assert_eq!(threads.len(), 61);
    let expected = format!(
        "kernel `probe`, block (1, 0, 0): its threads do not all reach the same barrier: at the barrier at {place} wait 61 threads: (0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 0) and 57 more; exited have 3 threads: (61, 0, 0), (62, 0, 0), (63, 0, 0)"
    );
    assert_eq!(text, expected);
}

#[test]
fn threads_at_different_barriers_are_distinguished() {
    let error = run(1, 40, 0, |t| match t.number % 2 {
        0 => t.barrier(),
        _ => t.barrier(),
    })
    .unwrap_err();
    let Error::Kernel(KernelError::BarrierDivergence { waiting, exited, .. }) = &error else {
        panic!("{error}")
    };
    let [even, odd] = &waiting[..] else { panic!("{error}") };
    assert_eq!((even.threads[..2].to_vec(), odd.threads[0]), (vec![[0, 0, 0], [2, 0, 0]], [1, 0, 0]));
    assert_eq!((even.place.line + 1, even.threads.len(), odd.threads.len()), (odd.place.line, 20, 20));
    assert!(exited.is_empty());
}

#[test]
fn a_stream_stays_usable_after_a_divergent_barrier() -> Result<()> {
    let stream = device(2).new_stream()?;
    let mut out = stream.zeros::<u32>(64)?;
    let grid = Grid::new([1, 1, 1], [64, 1, 1]);
    for round in 1..=20 {
        enqueue(&stream, grid, resources(0, false), &mut out, |t| {
            if t.number > 0 {
                t.barrier();
            }
        })?;
        assert!(matches!(stream.synchronize(), Err(Error::Kernel(KernelError::BarrierDivergence { .. }))));
        enqueue(&stream, grid, resources(0, false), &mut out, |t| {
            t.barrier();
            t.set(t.global(), t.get(t.global()) + 1);
        })?;
        assert_eq!(stream.download(&out)?, [round; 64]);
    }
    Ok(())
}

#[test]
fn threads_with_the_same_sequence_agree() -> Result<()> {
    let rounds = run(3, 40, 120, |t| {
        for round in 0..4_u64 {
            t.agree(round);
            t.agree(7);
            t.barrier();
        }
        t.agree(u64::from(t.block_number));
        t.set(t.global(), 1);
    })?;
    assert_eq!(rounds, [1; 120]);
    Ok(())
}

#[test]
fn the_first_thread_that_disagrees_is_named() {
    let said = |body| match run(1, 40, 0, body).unwrap_err() {
        Error::Kernel(KernelError::Disagreement { thread, place, .. }) => {
            assert!(place.file.ends_with("barriers.rs"), "{place:?}");
            thread
        }
        other => panic!("{other}"),
    };
    // At once, without a barrier.
    assert_eq!(said(|t| t.agree(u64::from(t.number >= 30))), [30, 0, 0]);
    assert_eq!(
        said(|t| {
            t.agree(1);
            t.agree(2 + u64::from(t.number == 5));
            t.barrier();
        }),
        [5, 0, 0]
    );
    // Who says less is known when all have met.
    assert_eq!(
        said(|t| {
            (0..2 - u32::from(t.number == 39)).for_each(|_| t.agree(1));
            t.barrier();
        }),
        [39, 0, 0]
    );
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
fn a_panic_drops_what_the_waiting_threads_hold_and_is_the_first_in_the_grid() {
    let error = run(40, 96, 0, |t| {
        let _alive = Counted::new();
        t.barrier();
        assert!(t.block_number < 17 || t.number < 50, "thread {} of {}", t.number, t.block_number);
        t.barrier();
    })
    .unwrap_err();
    let Error::KernelPanic { message, file, block, thread, .. } = &error else { panic!("{error}") };
    assert_eq!((&**message, *block, *thread), ("thread 50 of 17", [17, 0, 0], [50, 0, 0]));
    assert!(file.ends_with("barriers.rs"));
    assert_eq!(ALIVE.load(Ordering::SeqCst), 0);
}

#[test]
fn a_panic_is_reported_instead_of_the_barrier_that_it_blocks() {
    let error = run(1, 8, 0, |t| {
        assert!(t.number != 5, "five");
        t.barrier();
    });
    assert!(matches!(error, Err(Error::KernelPanic { thread: [5, 0, 0], .. })), "{error:?}");
}

#[test]
fn a_kernel_run_as_one_that_never_waits_panics_where_it_waits() -> Result<()> {
    let stream = Device::cpu().new_stream()?;
    let mut out = stream.zeros::<u32>(1)?;
    enqueue_never_waiting(&stream, Grid::new([1, 1, 1], [1, 1, 1]), &mut out, |t| t.barrier())?;
    let error = stream.synchronize().unwrap_err();
    let Error::KernelPanic { message, file, .. } = &error else { panic!("{error}") };
    assert!(message.contains("never waits") && file.ends_with("barriers.rs"), "{error}");
    Ok(())
}

#[test]
fn threads_run_in_the_order_of_their_numbers_between_barriers() -> Result<()> {
    let orders = run(1, 50, 101, |t| {
        for _ in 0..2 {
            let turn = t.out[100].fetch_add(1, Ordering::Relaxed);
            t.set(turn as usize, t.number);
            t.barrier();
        }
    })?;
    let ascending: Vec<u32> = (0..50).chain(0..50).chain([100]).collect();
    assert_eq!(orders, ascending);
    Ok(())
}

#[test]
fn many_streams_run_waiting_kernels_at_the_same_time() {
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let stream = device(WORKERS[1]).new_stream().unwrap();
                let mut out = stream.zeros::<u32>(200).unwrap();
                let grid = Grid::new([200, 1, 1], [64, 1, 1]);
                for _ in 0..5 {
                    enqueue(&stream, grid, resources(256, false), &mut out, tree_sum).unwrap();
                }
                let sums = stream.download(&out).unwrap();
                assert!((0..200).all(|block| sums[block as usize] == 64 * 64 * block + 2016));
            });
        }
    });
}

/// Runs `test` of this program in a separate process, with `FERROGRID_CPU_STACK` set.
fn run_apart(test: &str, stack: &str) -> std::process::Output {
    std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--include-ignored", test])
        .env("FERROGRID_CPU_STACK", stack)
        .output()
        .unwrap()
}

#[test]
fn a_size_of_stacks_that_means_nothing_is_an_error() {
    for stack in ["0", "15", "much"] {
        let output = run_apart("each_barrier_counts_its_own_votes", stack);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(!output.status.success() && text.contains("FERROGRID_CPU_STACK"), "{stack}:\n{text}");
    }
    assert!(run_apart("each_barrier_counts_its_own_votes", "32").status.success());
}

#[test]
fn blocks_need_no_more_stacks_than_a_process_can_have() -> Result<()> {
    let stream = device(64).new_stream()?;
    let mut out = stream.zeros::<u32>(1)?;
    enqueue(&stream, Grid::new([512, 1, 1], [1024, 1, 1]), resources(0, false), &mut out, |t| {
        t.barrier();
        t.out[0].fetch_add(1, Ordering::Relaxed);
    })?;
    assert_eq!(stream.download(&out)?, [512 * 1024]);
    Ok(())
}

/// Together these want four times the stacks that the process can have: each waits for its turn.
#[test]
fn launches_wait_for_the_stacks_of_others() {
    let (blocks, together) = (Grid::new([64, 1, 1], [1024, 1, 1]), Grid::new([15, 1, 1], [1024, 1, 1]));
    std::thread::scope(|scope| {
        for number in 0..4 {
            scope.spawn(move || {
                let stream = device(64).new_stream().unwrap();
                let mut out = stream.zeros::<u32>(1).unwrap();
                let cooperative = number % 2 == 1;
                let grid = if cooperative { together } else { blocks };
                for _ in 0..2 {
                    enqueue(&stream, grid, resources(0, cooperative), &mut out, |t| {
                        t.barrier();
                        t.out[0].fetch_add(1, Ordering::Relaxed);
                    })
                    .unwrap();
                }
                let each = if cooperative { 15 } else { 64 };
                assert_eq!(stream.download(&out).unwrap(), [2 * 1024 * each]);
            });
        }
    });
}
