//! The memory that the CPU device uses in addition to the buffers, for a large grid whose threads wait: its peak
//! must not depend on the number of blocks. Linux only: it asks `/proc`.
//!
//! `cargo bench --bench cpu_memory`

#[path = "../host/tests/waiting/mod.rs"]
mod waiting;

use std::fs;

use ferrogrid_host::{Device, Grid};
use waiting::{enqueue, resources};

const BLOCKS: u32 = 1 << 20;
const THREADS: u32 = 256;
const LIMIT_KIB: u64 = 100 * 1024;

/// The peak of this process's resident memory in KiB.
fn peak_kib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

fn main() {
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let stream = Device::cpu().new_stream().unwrap();
    let mut out = stream.zeros::<u32>(BLOCKS as usize).unwrap();
    stream.fill_into(0, &mut out).unwrap();
    stream.synchronize().unwrap();
    let Some(before) = peak_kib() else {
        return println!("no VmHWM in /proc/self/status: nothing measured");
    };
    let grid = Grid::new([BLOCKS, 1, 1], [THREADS, 1, 1]);
    enqueue(&stream, grid, resources(4096, false), &mut out, |t| {
        let first = t.barrier_count(t.number % 2 == 0);
        let second = t.barrier_count(t.number < 3);
        if t.number == 0 {
            t.set(t.block_number as usize, first + second);
        }
    })
    .unwrap();
    let sums = stream.download(&out).unwrap();
    assert!(sums.iter().all(|&sum| sum == 131));
    // The download itself is a buffer of the host.
    let download = u64::from(BLOCKS) * 4 / 1024;
    let taken = peak_kib().unwrap_or(u64::MAX).saturating_sub(before + download);
    println!(
        "{BLOCKS} blocks of {THREADS} threads with 2 barriers: {taken} KiB over the buffers (bar: {LIMIT_KIB})"
    );
    assert!(taken <= LIMIT_KIB, "over the bar");
}
