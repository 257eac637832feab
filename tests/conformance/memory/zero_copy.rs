//! Kernels on page-locked memory of the host (zero-copy): as inputs and outputs of all kinds, and after
//! failures. `runtime/memory/zero_copy.rs` covers the order of host and devices.

use std::panic::{AssertUnwindSafe, catch_unwind};

use ferrogrid::PinnedBuffer;
use ferrogrid::prelude::*;

use crate::failure::outcome_kernels::work;
use crate::language::kernels::{elementwise, ranks};
use crate::memory::atomic_kernels::contended;
use crate::own_process::in_its_own_process;
use crate::{Case, Outcome, expect, expect_error};

pub(crate) const CASES: &[Case] = &[
    ("kernels_read_and_write_page_locked_memory", kernels_read_and_write_page_locked_memory),
    ("views_of_page_locked_memory_are_arguments", views_of_page_locked_memory_are_arguments),
    ("host_and_kernels_take_turns_in_place", host_and_kernels_take_turns_in_place),
    ("borrowed_page_locked_memory_is_an_argument", borrowed_page_locked_memory_is_an_argument),
    (FAILED, |device| in_its_own_process(device, FAILED)),
];
const FAILED: &str = "page_locked_memory_that_failed_work_wrote_cannot_be_read";
/// The cases, as they run in their processes.
pub(crate) const APART: &[Case] = &[(FAILED, page_locked_memory_that_failed_work_wrote_cannot_be_read)];

fn numbers(n: usize) -> Vec<u32> {
    (0..n as u32).collect()
}

fn kernels_read_and_write_page_locked_memory(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for n in [1, 1000, 100_003] {
        let inputs = [device.pinned_copy(&numbers(n))?, device.pin(numbers(n))?, write_combined(device, n)?];
        for x in &inputs {
            let (mut y, mut z) = (device.pinned_zeros(n)?, stream.zeros::<u32>(n)?);
            elementwise::copy(&stream, Grid::cover(n), x, &mut y)?;
            elementwise::increment(&stream, Grid::cover(n), &mut y)?;
            elementwise::copy(&stream, Grid::cover(n), &y, &mut z)?;
            elementwise::increment(&stream, Grid::cover(n), &mut y)?;
            expect("in place", y.iter().zip(0..).all(|(found, i)| *found == i + 2), true)?;
            expect("a buffer", stream.download(&z)?, numbers(n).iter().map(|x| x + 1).collect::<Vec<_>>())?;
        }
    }
    let mut none = device.pinned_zeros(0)?;
    elementwise::increment(&stream, Grid::cover(0), &mut none)?;
    elementwise::increment(&stream, Grid::new(1, 32), &mut none)?;
    expect("nothing", none.len(), 0)
}

fn write_combined(device: &Device, n: usize) -> ferrogrid::Result<PinnedBuffer<u32>> {
    let mut memory = device.pinned_zeros_write_combined(n)?;
    memory.copy_from_slice(&numbers(n));
    Ok(memory)
}

fn views_of_page_locked_memory_are_arguments(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (x, mut y) = (device.pinned_copy(&numbers(100))?, device.pinned_zeros(100)?);
    elementwise::copy(&stream, Grid::cover(10), x.slice(20..30)?, y.slice_mut(5..15)?)?;
    let mut expected = vec![0; 100];
    expected[5..15].copy_from_slice(&numbers(30)[20..]);
    expect("parts", y.to_vec(), expected)?;

    let mut plane = device.pinned_zeros::<[u32; 4]>(6)?;
    let mut in_buffer = stream.zeros::<[u32; 4]>(6)?;
    ranks::coordinates_2d(&stream, Grid::cover([3, 2]), plane.view_mut().into_2d(3, 2)?)?;
    ranks::coordinates_2d(&stream, Grid::cover([3, 2]), in_buffer.view_2d_mut(3, 2)?)?;
    expect("rank 2", plane.to_vec(), stream.download(&in_buffer)?)?;

    let (mut counter, mut taken) = (device.pinned_zeros::<u32>(1)?, device.pinned_zeros::<u32>(500)?);
    contended::tickets(&stream, Grid::cover(500), counter.view_mut().into_atomic(), &mut taken)?;
    expect("the counter", counter[0], 500)?;
    taken.sort_unstable();
    expect("the tickets", taken.to_vec(), numbers(500))
}

fn host_and_kernels_take_turns_in_place(device: &Device) -> Outcome {
    let streams = [device.new_stream()?, device.new_stream()?];
    let n = 10_000;
    let mut data = device.pinned_zeros::<u32>(n)?;
    for round in 0..50 {
        elementwise::increment(&streams[round % 2], Grid::cover(n), &mut data)?;
        elementwise::increment(&streams[(round + 1) % 2], Grid::cover(n), &mut data)?;
        let expected = 3 * round as u32 + 2;
        expect("after the kernels", data.iter().all(|value| *value == expected), true)?;
        data.iter_mut().for_each(|value| *value += 1);
    }
    Ok(())
}

fn borrowed_page_locked_memory_is_an_argument(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (mut x, mut y) = (numbers(1000), vec![0; 1000]);
    device.with_pinned(&mut x, |x| {
        device.with_pinned(&mut y, |y| {
            elementwise::copy(&stream, Grid::cover(1000), &*x, &mut *y)?;
            elementwise::increment(&stream, Grid::cover(500), y.slice_mut(..500)?)
        })
    })???;
    let expected: Vec<u32> = numbers(1000).iter().map(|x| if *x < 500 { x + 1 } else { *x }).collect();
    expect("the slice", y, expected)
}

fn page_locked_memory_that_failed_work_wrote_cannot_be_read(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let is_it = |error: &Error| matches!(error, Error::KernelPanic { message, .. } if &**message == "element 3 is 13");
    let broken = || -> ferrogrid::Result<_> {
        let mut memory = device.pinned_copy(&[1, 2, 3, 13, 5, 6, 7, 8])?;
        work::unlucky(&stream, Grid::cover(8), &mut memory)?;
        Ok(memory)
    };
    let mut memory = broken()?;
    expect_error("to read", memory.read().map(|_| ()), is_it)?;
    expect_error("to write", memory.write().map(|_| ()), is_it)?;
    expect_error("the stream", stream.synchronize(), is_it)?;
    let payload = catch_unwind(AssertUnwindSafe(|| memory[0])).err().ok_or("the slice was given")?;
    let text = payload.downcast_ref::<String>().ok_or("another payload")?;
    expect("what the panic says", text.contains("element 3 is 13"), true)?;

    let mut copied = stream.zeros::<u32>(8)?;
    let memory = stream.upload_async(memory, &mut copied)?.wait()?;
    expect_error("what was copied from it", stream.download(&copied), is_it)?;
    let mut derived = stream.zeros::<u32>(8)?;
    work::add(&stream, Grid::cover(8), &memory, &mut derived)?;
    expect_error("what was derived from it", stream.download(&derived), is_it)?;

    let good = stream.fill(7_u32, 8)?;
    let memory = stream.download_async(&good, memory)?.wait()?;
    expect("written anew by a copy", memory.to_vec(), vec![7; 8])?;
    let mut memory = broken()?;
    expect_error("the stream", stream.synchronize(), is_it)?;
    stream.fill_into(9, &mut memory)?;
    expect("written anew by a fill", memory.into_vec(), vec![9; 8])?;

    let mut borrowed = [1, 2, 3, 13, 5, 6, 7, 8];
    let scope = device.with_pinned(&mut borrowed, |memory| work::unlucky(&stream, Grid::cover(8), memory));
    expect_error("borrowed memory", scope.map(|_| ()), is_it)?;
    expect_error("the stream", stream.synchronize(), is_it).map(drop)
}
