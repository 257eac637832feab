//! Exchanges between lanes of a warp on the CPU device, and the errors if lanes are missing.

#[path = "../waiting/mod.rs"]
mod waiting;

use ferrogrid_host::{Error, KernelError, LaneFault, Result};
use waiting::{run, text_without_site};

const ALL: u32 = u32::MAX;

#[test]
fn each_lane_sees_the_values_of_all_lanes() -> Result<()> {
    let right = run(3, 96, 288, |t| {
        let values = t.exchange(ALL, u128::from(t.number) << 64);
        let first = t.number / 32 * 32;
        let expected: [u128; 32] = std::array::from_fn(|lane| u128::from(first + lane as u32) << 64);
        t.set(t.global(), u32::from(values == expected));
    })?;
    assert_eq!(right, [1; 288]);
    Ok(())
}

#[test]
fn lanes_outside_the_mask_read_as_zero_and_need_not_come() -> Result<()> {
    let sums = run(2, 64, 128, |t| {
        let (lane, half) = (t.number % 32, if t.number % 32 < 20 { 0x000f_ffff } else { 0xfff0_0000 });
        if lane == 31 {
            return;
        }
        let values = t.exchange(half & !(1 << 31), u128::from(lane) + 1);
        t.set(t.global(), values.iter().sum::<u128>() as u32);
    })?;
    let expected = |lane: u32| if lane < 20 { (1..=20).sum() } else { (21..=31).sum() };
    for (thread, sum) in sums.into_iter().enumerate() {
        let lane = thread as u32 % 32;
        assert_eq!(sum, if lane == 31 { 0 } else { expected(lane) }, "thread {thread}");
    }
    Ok(())
}

#[test]
fn a_warp_of_fewer_lanes_works_among_these() -> Result<()> {
    let seen = run(1, 40, 40, |t| {
        let active = t.active_mask();
        let sum = t.exchange(active, 1).iter().sum::<u128>() as u32;
        t.set(t.global(), sum);
    })?;
    assert_eq!((&seen[..32], &seen[32..]), (&[32; 32][..], &[8; 8][..]));
    Ok(())
}

#[test]
fn lanes_that_run_ahead_do_not_disturb_those_that_read() -> Result<()> {
    // Lanes 0 and 1 exchange among themselves between rounds of the whole warp, so rounds overlap.
    let right = run(2, 32, 64, |t| {
        let right = (0..100_u32).all(|round| {
            let all = t.exchange(ALL, u128::from(round * 100 + t.number));
            let pairs = t.number >= 2
                || (0..3).all(|inner| {
                    let value = |lane: u32| u128::from(round * 1000 + inner * 10 + lane);
                    let values = t.exchange(0b11, value(t.number));
                    (values[0], values[1], values[2]) == (value(0), value(1), 0)
                });
            pairs && (0..32).all(|lane| all[lane as usize] == u128::from(round * 100 + lane))
        });
        t.set(t.global(), u32::from(right));
    })?;
    assert_eq!(right, [1; 64]);
    Ok(())
}

#[test]
fn warps_and_barriers_mix() -> Result<()> {
    let totals = run(20, 256, 20, |t| {
        let mut value = t.number;
        for _ in 0..5 {
            let sum = t.exchange(ALL, u128::from(value)).iter().sum::<u128>() as u32;
            t.barrier();
            value = sum % 1000 + t.barrier_count(sum.is_multiple_of(2));
        }
        if t.number == 0 {
            t.set(t.block_number as usize, value);
        }
    })?;
    let mut values: Vec<u32> = (0..256).collect();
    for _ in 0..5 {
        let sums: Vec<u32> = values.chunks(32).flat_map(|warp| [warp.iter().sum::<u32>(); 32]).collect();
        let even = sums.iter().filter(|sum| *sum % 2 == 0).count() as u32;
        values = sums.iter().map(|sum| sum % 1000 + even).collect();
    }
    assert_eq!(totals, vec![values[0]; 20]);
    Ok(())
}

/// Where lanes 30 and 31 meet.
fn meet_at_the_end(t: &waiting::Here<'_>) {
    t.exchange(1 << 30 | 1 << 31, 0);
}

#[test]
fn the_active_mask_has_the_lanes_that_are_there_together() -> Result<()> {
    let masks = run(1, 64, 64, |t| match (t.number / 32, t.number % 32) {
        (0, 5..) => {}
        (1, 0..4) => t.set(t.global(), t.active_mask()),
        (1, 30) => meet_at_the_end(t),
        _ => {
            let mask = t.active_mask();
            t.set(t.global(), mask);
            if t.number == 63 {
                meet_at_the_end(t);
            }
        }
    })?;
    let expected: Vec<u32> = (0..64)
        .map(|thread| match (thread / 32, thread % 32) {
            (0, 0..5) => 0b11111,
            (0, _) | (1, 30) => 0,
            (1, 0..4) => 0b1111,
            _ => 0xbfff_fff0,
        })
        .collect();
    assert_eq!(masks, expected);
    Ok(())
}

/// What the exchange of the first faulty thread failed with: thread, mask, lane, fault, and the text.
fn fault_of(threads: u32, body: waiting::Body) -> ([u32; 3], u32, u32, LaneFault, String) {
    let error = run(1, threads, 0, body).unwrap_err();
    let text = text_without_site(&error);
    let Error::Kernel(KernelError::WarpDivergence { kernel, thread, mask, place, lane, fault, .. }) = error
    else {
        panic!("{text}")
    };
    assert!(kernel == "probe" && place.file.ends_with("warps.rs"), "{text}");
    assert!(text.starts_with(&format!("kernel `probe`, block (0, 0, 0), thread ({}, 0, 0)", thread[0])));
    (thread, mask, lane, fault, text)
}

#[test]
fn a_mask_must_name_its_own_lane() {
    let (thread, mask, lane, fault, text) = fault_of(64, |t| {
        t.exchange(ALL << 1, 0);
    });
    assert_eq!((thread, mask, lane, fault), ([0, 0, 0], ALL << 1, 0, LaneFault::NotInMask));
    assert!(
        text.ends_with("with mask 0xfffffffe needs lane 0, which is its own and not in the mask"),
        "{text}"
    );
}

#[test]
fn a_mask_must_name_lanes_of_the_block() {
    let (thread, _, lane, fault, _) = fault_of(40, |t| {
        t.exchange(ALL, 0);
    });
    assert_eq!((thread, lane, fault), ([32, 0, 0], 8, LaneFault::Missing));
}

#[test]
fn a_lane_that_has_exited_before_or_after_others_arrived_is_named() {
    let (thread, _, lane, fault, text) = fault_of(32, |t| {
        if t.number != 4 {
            t.exchange(ALL, 0);
        }
    });
    assert_eq!((thread, lane, fault), ([5, 0, 0], 4, LaneFault::Exited));
    assert!(text.ends_with("with mask 0xffffffff needs lane 4, which has exited"), "{text}");
    let (thread, _, lane, fault, _) = fault_of(32, |t| {
        if t.number != 31 {
            t.exchange(ALL, 0);
        }
    });
    assert_eq!((thread, lane, fault), ([0, 0, 0], 31, LaneFault::Exited));
}

#[test]
fn lanes_with_different_masks_do_not_meet() {
    let (thread, mask, lane, fault, text) = fault_of(32, |t| {
        t.exchange(if t.number == 7 { 0xff } else { ALL }, 0);
    });
    assert_eq!((thread, mask, lane), ([0, 0, 0], ALL, 7));
    let LaneFault::OtherMask { mask: 0xff, place } = fault else { panic!("{text}") };
    assert!(text.ends_with(&format!("lane 7, which came with the mask 0x000000ff at {place}")), "{text}");
}

#[test]
fn a_lane_may_exchange_with_some_before_it_exchanges_with_all() -> Result<()> {
    let sums = run(1, 32, 32, |t| {
        if t.number >= 16 {
            t.exchange(0xffff_0000, 0);
        }
        let sum = t.exchange(ALL, u128::from(t.number)).iter().sum::<u128>();
        t.set(t.global(), sum as u32);
    })?;
    assert_eq!(sums, [496; 32]);
    Ok(())
}

#[test]
fn lanes_in_different_operations_do_not_read_each_other() {
    let (thread, _, lane, fault, text) = fault_of(32, |t| {
        if t.number < 16 {
            t.exchange(ALL, 0);
        } else {
            t.exchange(ALL, 1);
        }
    });
    assert_eq!((thread, lane), ([31, 0, 0], 0));
    assert!(matches!(fault, LaneFault::OtherOperation { .. }), "{text}");
}

#[test]
fn a_lane_at_a_barrier_is_named() {
    let (thread, _, lane, fault, text) = fault_of(64, |t| {
        if t.number == 9 {
            t.barrier();
        }
        t.exchange(ALL, 0);
    });
    assert_eq!((thread, lane), ([0, 0, 0], 9));
    let LaneFault::AtBarrier { place } = fault else { panic!("{text}") };
    assert!(text.ends_with(&format!("needs lane 9, which waits at the barrier at {place}")), "{text}");
}
