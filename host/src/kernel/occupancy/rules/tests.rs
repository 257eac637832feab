//! The rules against figures that NVIDIA's own calculator gave: the program `cuda_occupancy.h` of CUDA
//! 12.9, run on random blocks (`published.csv`), and cases that its documentation explains.

use super::*;

/// The bits of `cudaOccLimitingFactor`.
const FACTORS: [(u32, OccupancyLimiter); 5] = [
    (1, OccupancyLimiter::Warps),
    (2, OccupancyLimiter::Registers),
    (4, OccupancyLimiter::SharedMemory),
    (8, OccupancyLimiter::Blocks),
    (16, OccupancyLimiter::Barriers),
];

fn check(line: &str) {
    let figures: Vec<u32> = line.split(',').map(|figure| figure.parse().unwrap()).collect();
    let [capability, threads, registers, fixed, dynamic, barriers, blocks, factors, regs, shared] =
        figures[..]
    else {
        panic!("{line}");
    };
    let limits = MultiprocessorLimits::for_compute_capability((capability / 10, capability % 10)).unwrap();
    let block = BlockResources::new(threads)
        .with_registers(registers)
        .with_shared_memory(fixed, dynamic as usize)
        .with_barriers(barriers);
    let found = limits.occupancy(&block);
    assert_eq!(found.active_blocks, blocks, "{line}: {found}");
    // Where barriers allow fewer blocks than all else, the calculator still lists what else was least.
    let only_barriers = found.limited_by() == [OccupancyLimiter::Barriers];
    let factors = if only_barriers { factors & 16 } else { factors };
    for (bit, limiter) in FACTORS {
        assert_eq!(found.limited_by().contains(&limiter), factors & bit != 0, "{line}: {limiter} in {found}");
    }
    assert_eq!(found.allocated_registers_per_block, regs, "{line}");
    assert_eq!(found.allocated_shared_memory_per_block, shared, "{line}");
}

#[test]
fn the_figures_are_those_of_the_published_calculator() {
    let lines = include_str!("published.csv").lines().filter(|line| !line.starts_with('#'));
    assert!(lines.clone().count() > 50);
    lines.for_each(check);
}

fn hopper() -> MultiprocessorLimits {
    MultiprocessorLimits::for_architecture("sm_90a").unwrap()
}

#[test]
fn a_kernel_with_few_needs_fills_the_multiprocessor() {
    let occupancy = hopper().occupancy(&BlockResources::new(256).with_registers(32));
    assert_eq!((occupancy.active_blocks, occupancy.active_warps, occupancy.max_warps), (8, 64, 64));
    assert_eq!(occupancy.limited_by(), [OccupancyLimiter::Warps, OccupancyLimiter::Registers]);
    assert_eq!(occupancy.to_string(), "8 blocks, 64 of 64 warps (100 %), limited by warps, registers");
}

#[test]
fn a_block_that_cannot_be_launched_has_no_occupancy_and_a_reason() {
    let blocked = |block: BlockResources| {
        let occupancy = hopper().occupancy(&block);
        assert_eq!((occupancy.active_blocks, occupancy.fraction()), (0, 0.0), "{block:?}");
        occupancy.limited_by()
    };
    assert_eq!(blocked(BlockResources::new(0)), [OccupancyLimiter::Warps]);
    assert_eq!(blocked(BlockResources::new(1025)), [OccupancyLimiter::Warps]);
    assert_eq!(blocked(BlockResources::new(128).with_max_threads(96)), [OccupancyLimiter::Warps]);
    assert_eq!(blocked(BlockResources::new(1024).with_registers(65)), [OccupancyLimiter::Registers]);
    assert_eq!(blocked(BlockResources::new(32).with_registers(256)), [OccupancyLimiter::Registers]);
    let shared = BlockResources::new(32).with_shared_memory(0, 227 * 1024 + 1);
    assert_eq!(blocked(shared), [OccupancyLimiter::SharedMemory]);
    assert_eq!(blocked(BlockResources::new(32).with_barriers(65)), [OccupancyLimiter::Barriers]);
}

#[test]
fn absurd_needs_do_not_overflow() {
    let block = BlockResources::new(u32::MAX)
        .with_registers(u32::MAX)
        .with_shared_memory(u32::MAX, usize::MAX)
        .with_barriers(u32::MAX);
    for architecture in ["sm_75", "sm_90"] {
        let limits = MultiprocessorLimits::for_architecture(architecture).unwrap();
        assert_eq!(limits.occupancy(&block).active_blocks, 0);
    }
}

#[test]
fn the_largest_block_that_may_opt_in_is_alone() {
    let block = BlockResources::new(1024).with_shared_memory(0, 227 * 1024);
    assert_eq!(hopper().occupancy(&block).active_blocks, 1);
}

#[test]
fn architectures_go_by_every_name_that_the_tools_use() {
    let of = MultiprocessorLimits::for_architecture;
    assert_eq!(of("sm_90"), of("sm_90a"));
    assert_eq!(of("compute_100f"), of("sm_100"));
    assert_eq!(of("sm_120").unwrap().max_threads_per_multiprocessor, 1536);
    for unknown in ["sm_20", "sm_999", "gfx90a", "sm_", "sm_x", ""] {
        assert_eq!(of(unknown), None, "{unknown}");
    }
}

/// 65,536 registers: a block that takes them all, and one that takes more.
#[test]
fn a_block_may_take_all_registers() {
    let with = |threads, registers| {
        hopper().occupancy(&BlockResources::new(threads).with_registers(registers)).active_blocks
    };
    assert_eq!((with(1024, 64), with(512, 128), with(256, 255)), (1, 1, 1));
    assert_eq!((with(1024, 65), with(512, 129)), (0, 0));
}

/// Two barriers for each block that there may be, but one on 10.1 and from 11 on.
#[test]
fn barriers_are_fewer_on_some() {
    for (capability, barriers, blocks) in [
        ((9, 0), 16, 4),
        ((10, 0), 16, 4),
        ((10, 1), 16, 1),
        ((11, 0), 8, 3),
        ((12, 0), 8, 3),
        ((8, 6), 16, 16),
    ] {
        let limits = MultiprocessorLimits::for_compute_capability(capability).unwrap();
        let found = limits.occupancy(&BlockResources::new(32).with_barriers(barriers)).active_blocks;
        assert_eq!(found, blocks, "{capability:?}");
    }
}
