//! `#[device]` statics: additions by kernels and values set by the host, in stream order.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ferrogrid::CpuOptions;
use ferrogrid::prelude::*;

use crate::memory::variables::static_kernels::statics::{self, COUNTS, GREATEST, TOTAL};
use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("statics_start_from_the_source_and_kernels_add", statics_start_from_the_source_and_kernels_add),
    ("statics_are_ordered_across_streams", statics_are_ordered_across_streams),
    ("each_device_has_statics_of_its_own", each_device_has_statics_of_its_own),
    ("graphs_change_statics_at_each_launch", graphs_change_statics_at_each_launch),
    ("threads_launch_kernels_that_share_a_static", threads_launch_kernels_that_share_a_static),
    ("a_static_that_a_failed_kernel_changed_is_an_error", a_static_that_a_failed_kernel_changed_is_an_error),
];

/// Cases run at the same time, and a device has each static once.
fn alone(device: &Device) -> Result<MutexGuard<'static, ()>, Error> {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let stream = device.new_stream()?;
    TOTAL.set(&stream, &7)?;
    COUNTS.set(&stream, &[[0; 2]; 3])?;
    GREATEST.set(&stream, &-1.5)?;
    stream.synchronize()?;
    Ok(alone)
}

fn statics_start_from_the_source_and_kernels_add(device: &Device) -> Outcome {
    let fresh = if device.is_cuda() { device.clone() } else { Device::cpu_with(CpuOptions::new())? };
    if !device.is_cuda() {
        let stream = fresh.new_stream()?;
        expect("at first", (TOTAL.get(&stream)?, GREATEST.get(&stream)?), (7, -1.5))?;
        expect("counts at first", COUNTS.get(&stream)?, [[0; 2]; 3])?;
    }
    let _alone = alone(&fresh)?;
    let stream = fresh.new_stream()?;
    let x = stream.upload(&(0..1000).collect::<Vec<u32>>())?;
    statics::add(&stream, Grid::cover(1000), &x)?;
    statics::add_twice(&stream, Grid::cover(1000), &x, u64::MAX)?;
    expect("total", TOTAL.get(&stream)?, 7 + 3 * 499_500)?;
    expect("greatest", GREATEST.get(&stream)?, 499.5)?;
    // Each six in a row are one of each remainder and parity.
    expect("counts", COUNTS.get(&stream)?, [[167, 167], [166, 167], [167, 166]])?;
    COUNTS.set(&stream, &[[1, 2], [3, 4], [5, 6]])?;
    statics::add(&stream, Grid::cover(6), x.slice(..6)?)?;
    expect("counts from then on", COUNTS.get(&stream)?, [[2, 3], [4, 5], [6, 7]])?;
    names(TOTAL.name(), &["static_kernels::statics::TOTAL"])
}

fn statics_are_ordered_across_streams(device: &Device) -> Outcome {
    let _alone = alone(device)?;
    let (first, second) = (device.new_stream()?, device.new_stream()?);
    let x = first.fill(3_u32, 5000)?;
    let mut total = 7;
    for round in 0..20 {
        let (one, other) = if round % 2 == 0 { (&first, &second) } else { (&second, &first) };
        let mut y = other.zeros::<u64>(10)?;
        statics::add(one, Grid::cover(5000), &x)?;
        statics::look(other, Grid::cover(10), &mut y)?;
        statics::add_twice(one, Grid::cover(5000), &x, u64::MAX)?;
        expect("between the two", other.download(&y)?, vec![total + 15_000; 10])?;
        expect("after both", TOTAL.get(other)?, total + 45_000)?;
        total = round;
        TOTAL.set(one, &total)?;
    }
    let many = first.upload(&[5_u64, 6, 7])?;
    TOTAL.copy_from(&second, many.slice(1..2)?)?;
    expect("from a buffer", TOTAL.get(&first)?, 6)
}

fn each_device_has_statics_of_its_own(device: &Device) -> Outcome {
    let _alone = alone(device)?;
    let other = Device::cpu_with(CpuOptions::new())?;
    let (here, there) = (device.new_stream()?, other.new_stream()?);
    TOTAL.set(&here, &100)?;
    let x = there.upload(&[1_u32, 2])?;
    statics::add(&there, Grid::cover(2), &x)?;
    expect("here and there", (TOTAL.get(&here)?, TOTAL.get(&there)?), (100, 10))
}

fn graphs_change_statics_at_each_launch(device: &Device) -> Outcome {
    let _alone = alone(device)?;
    let stream = device.new_stream()?;
    let x = stream.upload(&[1_u32, 2, 3])?;
    let mut y = stream.zeros::<u64>(1)?;
    let (graph, nodes) = stream.capture(|capture| {
        let (x, mut y) = (capture.read(&x)?, capture.write(&mut y)?);
        // Ordered by the static alone.
        let add = capture.node(&[], |line| statics::add(line, Grid::cover(3), x))?;
        let look = capture.node(&[], |line| statics::look(line, Grid::cover(1), &mut y))?;
        let set = capture.node(&[], |line| TOTAL.set(line, &50))?;
        let twice = capture.node(&[], |line| statics::add_twice(line, Grid::cover(3), x, u64::MAX))?;
        Ok([add, look, set, twice])
    })?;
    for pair in nodes.windows(2) {
        expect("what comes before", graph.dependencies(pair[1])?, vec![pair[0]])?;
    }
    let mut graph = graph.instantiate()?;
    for _ in 0..3 {
        graph.launch(&stream)?;
        expect("after a launch", TOTAL.get(&stream)?, 62)?;
    }
    statics::add(&stream, Grid::cover(3), &x)?;
    expect("beside the graph", TOTAL.get(&stream)?, 68)?;
    drop(graph);
    expect("the value at the last launch", stream.download(&y)?, vec![62 + 6])
}

fn threads_launch_kernels_that_share_a_static(device: &Device) -> Outcome {
    let _alone = alone(device)?;
    std::thread::scope(|scope| {
        let launch = || -> ferrogrid::Result<()> {
            let stream = device.new_stream()?;
            let x = stream.fill(1_u32, 300)?;
            for _ in 0..20 {
                statics::add(&stream, Grid::cover(300), &x)?;
                statics::add_twice(&stream, Grid::cover(300), &x, u64::MAX)?;
            }
            stream.synchronize()
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(launch)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("a launch panics"))
    })?;
    let stream = device.new_stream()?;
    expect("total", TOTAL.get(&stream)?, 7 + 4 * 20 * 900)?;
    expect("counts", COUNTS.get(&stream)?[1], [0, 4 * 20 * 300])
}

fn a_static_that_a_failed_kernel_changed_is_an_error(device: &Device) -> Outcome {
    let _alone = alone(device)?;
    let (failing, stream) = (device.new_stream()?, device.new_stream()?);
    let x = failing.fill(10_u32, 100)?;
    statics::add_twice(&failing, Grid::cover(100), &x, 500)?;
    let text =
        expect_error("what it left", TOTAL.get(&stream), |error| matches!(error, Error::KernelPanic { .. }))?;
    names(&text, &["the total is too great"])?;
    let _ = failing.synchronize();
    TOTAL.set(&stream, &5)?;
    expect("set anew", TOTAL.get(&stream)?, 5)
}
