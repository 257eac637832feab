//! Programmatic dependent launch: launches that begin early see all earlier writes, and overwrite nothing
//! that is still read.

use ferrogrid::prelude::*;

use crate::block::clusters::ready;
use crate::launch::dependent_kernels::dependents;
use crate::{Case, Outcome, expect};

pub(crate) const CASES: &[Case] = &[
    ("dependent_launches_see_the_writes_of_earlier_work", dependent_launches_see_the_writes_of_earlier_work),
    ("dependent_launches_are_ordered_with_other_work", dependent_launches_are_ordered_with_other_work),
    ("dependent_launches_have_clusters", dependent_launches_have_clusters),
    ("nodes_of_dependent_kernels_run_in_order", nodes_of_dependent_kernels_run_in_order),
];

/// Elements, and rounds of the first block, enough on a GPU that other blocks run ahead of it; an even number.
fn sizes(device: &Device) -> (usize, [u32; 2]) {
    if device.is_cuda() { (1 << 16, [20_000, 0]) } else { (1 << 10, [10, 0]) }
}

/// The result of `step` and `plain` on `x`.
fn stepped(x: &[u32], shift: usize) -> Vec<u32> {
    let other = x.iter().cycle().skip(shift);
    x.iter().zip(other).map(|(own, other)| own.wrapping_mul(3).wrapping_add(*other).wrapping_add(1)).collect()
}

fn dependent_launches_see_the_writes_of_earlier_work(device: &Device) -> Outcome {
    let ((length, rounds), stream) = (sizes(device), device.new_stream()?);
    let mut model: Vec<u32> = (0..length as u32).collect();
    let mut buffers = [stream.upload(&model)?, stream.zeros::<u32>(length)?];
    for step in 0..100 {
        let shift = step * 331 % length;
        let [from, to] = &mut buffers;
        dependents::step(&stream, Grid::cover(length), shift, rounds, &*from, &mut *to)?;
        buffers.swap(0, 1);
        model = stepped(&model, shift);
    }
    expect("a hundred steps", stream.download(&buffers[0])? == model, true)
}

/// Of two streams, with copies, fills, and memory that is freed and allocated between launches.
fn dependent_launches_are_ordered_with_other_work(device: &Device) -> Outcome {
    let ((length, rounds), mut random) = (sizes(device), fastrand::Rng::with_seed(7));
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let mut model: Vec<u32> = (0..length as u32).collect();
    let (mut from, mut to) = (stream.upload(&model)?, stream.zeros::<u32>(length)?);
    for _ in 0..200 {
        let shift = random.usize(..length);
        match random.u32(..12) {
            0..6 => dependents::step(&stream, Grid::cover(length), shift, rounds, &from, &mut to)?,
            6 => dependents::plain(&stream, Grid::cover(length), shift, &from, &mut to)?,
            7 => dependents::step(&other, Grid::cover(length), shift, rounds, &from, &mut to)?,
            8 => {
                let value = random.u32(..);
                other.fill_into(value, from.slice_mut(..shift)?)?;
                model[..shift].fill(value);
                continue;
            }
            9 => {
                stream.copy(&from, &mut to)?;
                std::mem::swap(&mut from, &mut to);
                continue;
            }
            10 => {
                to = stream.zeros(length)?; // the previous buffer is freed after the launches that use it
                continue;
            }
            _ => {
                stream.record()?;
                continue;
            }
        }
        std::mem::swap(&mut from, &mut to);
        model = stepped(&model, shift);
    }
    expect("the result of all launches", other.download(&from)? == model, true)
}

fn dependent_launches_have_clusters(device: &Device) -> Outcome {
    ready(device, dependents::add_sums::kernel())?;
    let ((_, rounds), length) = (sizes(device), 64 * 16);
    let stream = device.new_stream()?;
    let mut model: Vec<u32> = (0..length as u32).collect();
    let (mut from, mut to) = (stream.upload(&model)?, stream.zeros::<u32>(length)?);
    let (mut sums, mut expected) = (stream.zeros::<u32>(8)?, vec![0_u32; 8]);
    for shift in 1..20 {
        dependents::step(&stream, Grid::cover(length), shift, rounds, &from, &mut to)?;
        dependents::add_sums(&stream, Grid::cover(length), &to, sums.as_atomic())?;
        std::mem::swap(&mut from, &mut to);
        model = stepped(&model, shift);
        for (sum, part) in expected.iter_mut().zip(model.chunks(128)) {
            *sum = part.iter().fold(*sum, |sum, x| sum.wrapping_add(*x));
        }
    }
    expect("sums", stream.download(&sums)?, expected)
}

fn nodes_of_dependent_kernels_run_in_order(device: &Device) -> Outcome {
    let ((length, rounds), stream) = (sizes(device), device.new_stream()?);
    let model: Vec<u32> = (0..length as u32).collect();
    let (mut a, mut b) = (stream.upload(&model)?, stream.zeros::<u32>(length)?);
    let (graph, key) = stream.capture(|capture| {
        let (mut a, mut b) = (capture.write(&mut a)?, capture.write(&mut b)?);
        dependents::step(capture, Grid::cover(length), 5, rounds, &a, &mut b)?;
        dependents::step(capture, Grid::cover(length), 9, rounds, &b, &mut a)?;
        Ok(a.key())
    })?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    graph.launch(&stream)?;
    let once = |x: &[u32]| stepped(&stepped(x, 5), 9);
    expect("twice", stream.download(graph.view(key)?)? == once(&once(&model)), true)
}
