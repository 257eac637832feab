//! Order: within a stream, between streams that share buffers, and at drop.

use ferrogrid::prelude::*;

use crate::language::kernels::elementwise;
use crate::{Case, Outcome, expect};

pub(crate) const CASES: &[Case] = &[
    ("a_stream_runs_in_order", a_stream_runs_in_order),
    ("a_buffer_used_on_two_streams_is_ordered", a_buffer_used_on_two_streams_is_ordered),
    ("readers_on_many_streams_finish_before_a_writer", readers_on_many_streams_finish_before_a_writer),
    ("buffers_may_be_dropped_while_in_use", buffers_may_be_dropped_while_in_use),
    ("streams_may_be_dropped_before_their_buffers", streams_may_be_dropped_before_their_buffers),
    ("buffers_may_be_dropped_on_another_thread", buffers_may_be_dropped_on_another_thread),
    ("many_threads_may_launch_at_once", many_threads_may_launch_at_once),
];

/// Enough elements that a missing wait reads old values. Without optimised kernels, fewer take as long.
fn large(device: &Device) -> usize {
    if cfg!(debug_assertions) && !device.is_cuda() { 1 << 15 } else { 1 << 20 }
}

fn a_stream_runs_in_order(device: &Device) -> Outcome {
    let large = large(device);
    let stream = device.new_stream()?;
    let mut data = stream.upload(&vec![0_u32; large])?;
    for _ in 0..100 {
        elementwise::increment(&stream, Grid::cover(large), &mut data)?;
    }
    expect("all equal 100", stream.download(&data)?.iter().all(|&value| value == 100), true)
}

fn a_buffer_used_on_two_streams_is_ordered(device: &Device) -> Outcome {
    let large = large(device);
    let streams = [device.new_stream()?, device.new_stream()?];
    let mut a = streams[0].upload(&vec![0_u32; large])?;
    let mut b = streams[1].upload(&vec![0_u32; large])?;
    for round in 0..50 {
        elementwise::increment(&streams[round % 2], Grid::cover(large), &mut a)?;
        elementwise::copy(&streams[(round + 1) % 2], Grid::cover(large), &a, &mut b)?;
        elementwise::increment(&streams[round % 2], Grid::cover(large), &mut b)?;
    }
    expect("a", streams[1].download(&a)?.iter().all(|&value| value == 50), true)?;
    expect("b", streams[1].download(&b)?.iter().all(|&value| value == 51), true)
}

fn readers_on_many_streams_finish_before_a_writer(device: &Device) -> Outcome {
    let large = large(device);
    let writer = device.new_stream()?;
    let mut source = writer.upload(&vec![7_u32; large])?;
    let mut results = Vec::new();
    for round in 0..4_u32 {
        for _ in 0..4 {
            let reader = device.new_stream()?;
            let mut result = reader.upload(&vec![0_u32; large])?;
            elementwise::copy(&reader, Grid::cover(large), &source, &mut result)?;
            results.push((reader, result, 7 + round));
        }
        elementwise::increment(&writer, Grid::cover(large), &mut source)?;
    }
    for (reader, result, expected) in &results {
        expect("what was read", reader.download(result)?.iter().all(|value| value == expected), true)?;
    }
    Ok(())
}

fn buffers_may_be_dropped_while_in_use(device: &Device) -> Outcome {
    let large = large(device);
    let stream = device.new_stream()?;
    let mut result = stream.upload(&vec![0_u32; large])?;
    for round in 0..20_u32 {
        let source = stream.upload(&vec![round; large])?;
        elementwise::copy(&stream, Grid::cover(large), &source, &mut result)?;
        drop(source);
        let poison = stream.upload(&vec![u32::MAX; large])?;
        drop(poison);
        expect("copied", stream.download(&result)?.iter().all(|&value| value == round), true)?;
    }
    Ok(())
}

fn streams_may_be_dropped_before_their_buffers(device: &Device) -> Outcome {
    let large = large(device);
    let first = device.new_stream()?;
    let mut data = first.upload(&vec![1_u32; large])?;
    for _ in 0..10 {
        elementwise::increment(&first, Grid::cover(large), &mut data)?;
    }
    drop(first);
    let second = device.new_stream()?;
    elementwise::increment(&second, Grid::cover(large), &mut data)?;
    expect("all equal 12", second.download(&data)?.iter().all(|&value| value == 12), true)
}

fn buffers_may_be_dropped_on_another_thread(device: &Device) -> Outcome {
    let large = large(device);
    let stream = device.new_stream()?;
    let mut result = stream.upload(&vec![0_u32; large])?;
    let source = stream.upload(&vec![3_u32; large])?;
    elementwise::copy(&stream, Grid::cover(large), &source, &mut result)?;
    std::thread::spawn(move || drop(source)).join().map_err(|_| "the dropping thread panicked")?;
    expect("copied", stream.download(&result)?.iter().all(|&value| value == 3), true)
}

fn many_threads_may_launch_at_once(device: &Device) -> Outcome {
    let shared = device.new_stream()?;
    let source = shared.upload(&vec![11_u32; 4096])?;
    let wrong = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..8)
            .map(|worker| {
                let (shared, source) = (&shared, &source);
                scope.spawn(move || -> ferrogrid::Result<bool> {
                    let own = device.new_stream()?;
                    let stream = if worker % 2 == 0 { shared } else { &own };
                    let mut data = stream.upload(&vec![0_u32; 4096])?;
                    for _ in 0..50 {
                        elementwise::copy(stream, Grid::cover(4096), source, &mut data)?;
                        elementwise::increment(stream, Grid::cover(4096), &mut data)?;
                    }
                    Ok(stream.download(&data)?.iter().any(|&value| value != 12))
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().expect("a worker panicked"))
            .collect::<Result<Vec<_>, _>>()
    })?;
    expect("wrong results", wrong.contains(&true), false)
}
