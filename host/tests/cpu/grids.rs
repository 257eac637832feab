//! The grid barrier of cooperative launches on the CPU device, and the errors if blocks are missing.

#[path = "../waiting/mod.rs"]
mod waiting;

use ferrogrid_host::{BarrierReach, Error, Grid, KernelError, LaunchError, Result};
use waiting::{WORKERS, device, enqueue, resources, run, run_with, text_without_site};

#[test]
fn writes_before_the_barrier_are_visible_to_all_after_it() -> Result<()> {
    for (blocks, threads) in [(1, 1), (1, 64), (2, 1), (7, 33), (40, 64), (300, 2)] {
        let length = (blocks * threads) as usize;
        let ok = run_with(resources(0, true), blocks, [threads, 1, 1], 2 * length, |t| {
            let length = t.out.len() / 2;
            let right = (1..20).all(|round| {
                t.set(t.global(), round);
                t.grid_barrier();
                let seen = (0..length).step_by(1 + length / 50).all(|thread| t.get(thread) == round);
                t.grid_barrier();
                seen
            });
            t.set(length + t.global(), u32::from(right));
        })?;
        assert_eq!(ok[length..], vec![1; length], "{blocks} x {threads}");
    }
    Ok(())
}

#[test]
fn barriers_of_block_and_grid_mix_with_shared_memory() -> Result<()> {
    let totals = run_with(resources(4, true), 24, [48, 1, 1], 25, |t| {
        let (start, bytes) = t.shared();
        assert_eq!(bytes, 4);
        // SAFETY: aligned, initialised, four bytes, and the block's own.
        let sum = unsafe { &*start.cast::<std::sync::atomic::AtomicU32>() };
        use std::sync::atomic::Ordering::Relaxed;
        if t.number == 0 {
            sum.store(0, Relaxed);
        }
        t.barrier();
        sum.fetch_add(t.number, Relaxed);
        t.barrier();
        if t.number == 0 {
            t.set(t.block_number as usize, sum.load(Relaxed));
        }
        t.grid_barrier();
        if t.global() == 0 {
            t.set(24, (0..24).map(|block| t.get(block)).sum());
        }
    })?;
    assert_eq!(totals[24], 24 * (0..48).sum::<u32>());
    Ok(())
}

#[test]
fn a_launch_that_is_not_cooperative_cannot_wait_for_the_grid() {
    let error = run(1, 1, 0, |t| t.grid_barrier()).unwrap_err();
    let Error::Kernel(KernelError::NotCooperative { kernel: "probe", place, .. }) = &error else {
        panic!("{error}")
    };
    assert!(place.file.ends_with("grids.rs"));
    assert!(error.to_string().ends_with("but was not launched as a cooperative kernel"), "{error}");
    assert!(matches!(
        run(5, 64, 0, |t| t.grid_barrier()),
        Err(Error::Kernel(KernelError::NotCooperative { .. }))
    ));
}

#[test]
fn blocks_that_end_before_others_wait_for_the_grid_are_named() {
    let error = run_with(resources(0, true), 10, [32, 1, 1], 0, |t| {
        t.grid_barrier();
        if t.block_number % 4 == 2 {
            return;
        }
        t.grid_barrier();
    })
    .unwrap_err();
    let text = text_without_site(&error);
    let Error::Kernel(KernelError::BlockDivergence {
        waiting,
        waiting_blocks,
        ended,
        ended_blocks,
        place,
        ..
    }) = error
    else {
        panic!("{text}")
    };
    assert_eq!((waiting, waiting_blocks, ended, ended_blocks), ([0, 0, 0], 8, [2, 0, 0], 2));
    let expected = format!(
        "kernel `probe`: 8 blocks, the first (0, 0, 0), wait at the grid barrier at {place}, but 2 blocks, the first (2, 0, 0), have ended"
    );
    assert_eq!(text, expected);
}

#[test]
fn threads_that_exit_before_their_block_waits_for_the_grid_are_named() {
    let error = run_with(resources(0, true), 4, [32, 1, 1], 0, |t| {
        if t.block_number == 1 && t.number == 3 {
            return;
        }
        t.grid_barrier();
    })
    .unwrap_err();
    let Error::Kernel(KernelError::BarrierDivergence { block: [1, 0, 0], waiting, exited, .. }) = &error
    else {
        panic!("{error}")
    };
    assert_eq!((waiting.len(), waiting[0].reach, waiting[0].threads.len()), (1, BarrierReach::Grid, 31));
    assert_eq!(*exited, [[3, 0, 0]]);
    assert!(error.to_string().contains("at the grid barrier at"), "{error}");
}

#[test]
fn a_panic_ends_blocks_that_wait_for_the_grid_and_is_the_first_of_its_phase() {
    let error = run_with(resources(0, true), 20, [40, 1, 1], 0, |t| {
        t.grid_barrier();
        t.barrier();
        assert!(t.block_number < 5 || t.number < 30, "late");
        t.grid_barrier();
    })
    .unwrap_err();
    let Error::KernelPanic { block: [5, 0, 0], thread: [30, 0, 0], .. } = &error else { panic!("{error}") };
}

#[test]
fn more_blocks_than_can_be_resident_are_refused_before_anything_runs() -> Result<()> {
    for workers in WORKERS {
        let stream = device(workers).new_stream()?;
        let mut out = stream.zeros::<u32>(1)?;
        let grid = |blocks| Grid::new([blocks, 1, 1], [1023, 1, 1]);
        let error = enqueue(&stream, grid(17), resources(0, true), &mut out, |t| t.set(0, 1)).unwrap_err();
        let Error::Launch(LaunchError::TooManyResidentBlocks {
            blocks: 17, threads: 1023, limit: 16, ..
        }) = &error
        else {
            panic!("{error}")
        };
        enqueue(&stream, grid(16), resources(0, true), &mut out, |t| {
            t.grid_barrier();
            t.out[0].fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        })?;
        assert_eq!(stream.download(&out)?, [16 * 1023]);
    }
    Ok(())
}

#[test]
fn cooperative_launches_of_several_streams_do_not_wait_for_each_other() {
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let stream = device(2).new_stream().unwrap();
                let mut out = stream.zeros::<u32>(1).unwrap();
                for _ in 0..5 {
                    enqueue(&stream, Grid::new([12, 1, 1], [32, 1, 1]), resources(0, true), &mut out, |t| {
                        t.out[0].fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        t.grid_barrier();
                        let all = t.get(0);
                        assert_eq!(all % (12 * 32), 0);
                        t.grid_barrier();
                    })
                    .unwrap();
                }
                assert_eq!(stream.download(&out).unwrap(), [5 * 12 * 32]);
            });
        }
    });
}
