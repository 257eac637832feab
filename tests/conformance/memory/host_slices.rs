//! Host slices as arguments of a launch: the values that the kernel reads, the results that the host sees,
//! and refused calls.

use ferrogrid::prelude::*;
use ferrogrid::{GraphError, In, InOut, LaunchError, Out};

use crate::language::kernels::{elementwise, ranks};
use crate::memory::access::stride_kernels::planes;
use crate::memory::atomic_kernels::contended;
use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("slices_of_the_host_go_in_and_out", slices_of_the_host_go_in_and_out),
    ("unwritten_elements_of_an_out_are_zero", unwritten_elements_of_an_out_are_zero),
    ("unwritten_elements_of_an_inout_stay", unwritten_elements_of_an_inout_stay),
    ("slices_of_the_host_mix_with_buffers", slices_of_the_host_mix_with_buffers),
    ("slices_of_the_host_have_shapes", slices_of_the_host_have_shapes),
    ("slices_of_the_host_count_atomically", slices_of_the_host_count_atomically),
    ("empty_slices_of_the_host_are_allowed", empty_slices_of_the_host_are_allowed),
    ("a_refused_launch_leaves_slices_alone", a_refused_launch_leaves_slices_alone),
    ("a_graph_copies_the_slice_of_an_in", a_graph_copies_the_slice_of_an_in),
    ("a_graph_takes_no_slices_that_it_would_write", a_graph_takes_no_slices_that_it_would_write),
    ("a_graph_copies_for_its_kernels", a_graph_copies_for_its_kernels),
    ("copies_for_a_kernel_have_shapes", copies_for_a_kernel_have_shapes),
    ("a_graph_copies_for_kernels_that_count", a_graph_copies_for_kernels_that_count),
    ("a_refused_launch_leaves_no_copies", a_refused_launch_leaves_no_copies),
    ("an_update_takes_no_slices_of_the_host", an_update_takes_no_slices_of_the_host),
    ("the_buffers_of_slices_are_freed", the_buffers_of_slices_are_freed),
];

fn slices_of_the_host_go_in_and_out(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for n in [1_usize, 1000, 100_003] {
        let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
        let mut y = vec![1.0_f32; n];
        elementwise::saxpy(&stream, Grid::cover(n), 2.0, In(&x), InOut(&mut y))?;
        expect("y", y.iter().enumerate().all(|(i, &y)| y == 2.0 * i as f32 + 1.0), true)?;
        // Once more, on the result of the previous launch.
        elementwise::saxpy(&stream, Grid::cover(n), -2.0, In(&x), InOut(&mut y))?;
        expect("y again", y == vec![1.0; n], true)?;
    }
    let input = [3_u32, 1, 2];
    let mut output = [9_u32; 3];
    elementwise::copy(&stream, Grid::cover(3), In(&input), Out(&mut output))?;
    expect("a copy", output, input)
}

/// Leaves `count` words in memory that the next buffer of that size is likely to get.
fn soil(stream: &Stream, count: usize) -> Outcome {
    drop(stream.fill(0xDEAD_BEEF_u32, count)?);
    stream.synchronize()?;
    Ok(())
}

fn unwritten_elements_of_an_out_are_zero(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let input = vec![5_u32; 4096];
    for threads in [0, 1, 100, 4096] {
        soil(&stream, 4096)?;
        let mut output = vec![7_u32; 4096];
        elementwise::copy(&stream, Grid::cover(threads).with_block(1), In(&input), Out(&mut output))?;
        let expected: Vec<u32> = (0..4096).map(|i| if i < threads { 5 } else { 0 }).collect();
        expect(&format!("{threads} threads"), output == expected, true)?;
    }
    Ok(())
}

fn unwritten_elements_of_an_inout_stay(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    soil(&stream, 10)?;
    let mut data = [1_u32, 2, 3, 4, 5, 6, 7, 8, 9, 10];
    elementwise::increment(&stream, Grid::new(1, 4), InOut(&mut data))?;
    expect("the first four", data, [2, 3, 4, 5, 5, 6, 7, 8, 9, 10])?;
    elementwise::increment(&stream, Grid::new(1, 4), InOut(&mut data[8..]))?;
    expect("the last two", data, [2, 3, 4, 5, 5, 6, 7, 8, 10, 11])
}

fn slices_of_the_host_mix_with_buffers(device: &Device) -> Outcome {
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let mut y = other.upload(&[10.0_f32; 3])?;
    elementwise::saxpy(&stream, Grid::cover(3), 2.0, In(&[1.0, 2.0, 3.0]), &mut y)?;
    expect("a buffer", other.download(&y)?, vec![12.0, 14.0, 16.0])?;
    let mut host = vec![0.0_f32; 2];
    elementwise::saxpy(&other, Grid::cover(2), 1.0, y.slice(1..)?, InOut(&mut host))?;
    expect("a slice", host, vec![14.0, 16.0])
}

fn slices_of_the_host_have_shapes(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut places = vec![[9_u32; 4]; 7 * 5 + 2];
    ranks::coordinates_2d(&stream, Grid::cover([7, 5]), Out(&mut places).into_2d(7, 5))?;
    let mut buffer = stream.zeros::<[u32; 4]>(7 * 5 + 2)?;
    ranks::coordinates_2d(&stream, Grid::cover([7, 5]), buffer.view_2d_mut(7, 5)?)?;
    expect("as in a buffer", &places, &stream.download(&buffer)?)?;
    expect("the rest of an `Out`", &places[35..], &[[0; 4]; 2][..])?;

    let before = places.clone();
    let large = ranks::coordinates_2d(&stream, Grid::cover([7, 6]), InOut(&mut places).into_2d(7, 6));
    let text = expect_error("too large a shape", large, |error| matches!(error, Error::ViewTooLarge { .. }))?;
    names(&text, &["7 x 6", "37"])?;
    expect("a slice whose launch was refused", places, before)
}

fn slices_of_the_host_count_atomically(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let data: Vec<u8> = (0..10_000_u32).map(|i| (i % 251) as u8).collect();
    let mut counts = vec![0_u32; 256];
    for byte in &data {
        counts[usize::from(*byte)] += 1;
    }
    let mut found = vec![77_u32; 256];
    contended::histogram(&stream, Grid::cover(data.len()), In(&data), Out(&mut found))?;
    expect("counts from zero", &found, &counts)?;
    contended::histogram(&stream, Grid::cover(data.len()), In(&data), InOut(&mut found))?;
    expect("counts added", found.iter().zip(&counts).all(|(found, once)| *found == 2 * once), true)
}

fn empty_slices_of_the_host_are_allowed(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    elementwise::copy(&stream, Grid::new(2, 32), In(&[]), Out(&mut []))?;
    elementwise::copy(&stream, Grid::cover(0), In(&[]), InOut(&mut []))?;
    let mut output = [1_u32; 2];
    elementwise::copy(&stream, Grid::cover(0), In(&[]), Out(&mut output))?;
    expect("an `Out` that nothing has written", output, [0; 2])
}

fn a_refused_launch_leaves_slices_alone(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut data = [5_u32; 4];
    let too_wide = Grid::new(1, 1 << 20);
    let refused = elementwise::copy(&stream, too_wide, In(&[1; 4]), Out(&mut data));
    expect_error("a wide block", refused, |error| {
        matches!(error, Error::Launch(LaunchError::BlockTooLarge { .. }))
    })?;
    expect("an `Out`", data, [5; 4])?;
    let refused = elementwise::increment(&stream, too_wide, InOut(&mut data));
    expect_error("a wide block", refused, |error| {
        matches!(error, Error::Launch(LaunchError::BlockTooLarge { .. }))
    })?;
    expect("an `InOut`", data, [5; 4])
}

fn a_graph_copies_the_slice_of_an_in(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (y, z) = (stream.zeros::<u32>(1000)?, stream.zeros::<u32>(2)?);
    let mut input = vec![5_u32; 1000];
    let (graph, (y, z)) = stream.capture(|capture| {
        let (mut y, mut z) = (capture.keep(y)?, capture.keep(z)?);
        elementwise::copy(capture, Grid::cover(1000), In(&input), &mut y)?;
        let plane = In(&[1, 2, 3, 4, 5, 6]).into_2d(3, 2);
        planes::sums_of_rows(capture, Grid::cover(2), plane, &mut z)?;
        Ok((y.key(), z.key()))
    })?;
    input.fill(6);
    drop(input);
    let mut graph = graph.instantiate()?;
    for _ in 0..3 {
        stream.fill_into(0, graph.view_mut(y)?)?;
        graph.launch(&stream)?;
        expect("y", stream.download(graph.view(y)?)?, vec![5; 1000])?;
        expect("z", stream.download(graph.view(z)?)?, vec![6, 15])?;
    }
    Ok(())
}

fn a_graph_takes_no_slices_that_it_would_write(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (mut data, input) = ([5_u32; 4], [7_u32; 4]);
    let refused = |error: &Error| matches!(error, Error::Graph(GraphError::NotRecordable { .. }));
    let recorded =
        stream.capture(|capture| elementwise::increment(capture, Grid::cover(4), InOut(&mut data)));
    let text = expect_error("InOut", recorded.map(drop), refused)?;
    names(&text, &["`InOut`", "capture.keep_pinned"])?;
    let recorded =
        stream.capture(|capture| elementwise::copy(capture, Grid::cover(4), In(&input), Out(&mut data)));
    let text = expect_error("Out", recorded.map(drop), refused)?;
    names(&text, &["`Out`", "capture.keep_pinned", "as_out"])?;
    expect("the slice", data, [5; 4])
}

fn a_graph_copies_for_its_kernels(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let n = 1000;
    let pinned = || device.pinned_zeros::<f32>(n);
    let (x, y, z) = (pinned()?, pinned()?, pinned()?);
    let (graph, (x, y, z)) = stream.capture(|capture| {
        let (x, mut y, mut z) = (capture.keep_pinned(x)?, capture.keep_pinned(y)?, capture.keep_pinned(z)?);
        elementwise::saxpy(capture, Grid::cover(n), 2.0, x.as_in(), y.as_in_out())?;
        // Starts from zeros, whatever the previous launch wrote.
        elementwise::saxpy(capture, Grid::new(3, 256), 10.0, y.as_in(), z.as_out())?;
        Ok((x.key(), y.key(), z.key()))
    })?;
    let mut graph = graph.instantiate()?;
    for round in 1..5 {
        let start = round as f32;
        graph.pinned_mut(x)?.fill(start);
        graph.pinned_mut(y)?.fill(1.0);
        graph.launch(&stream)?;
        expect("y", graph.pinned(y)?, &vec![2.0 * start + 1.0; n][..])?;
        let mut expected = vec![20.0 * start + 10.0; 768];
        expected.resize(n, 0.0);
        expect("z", graph.pinned(z)?, &expected[..])?;
        expect("x", graph.pinned(x)?, &vec![start; n][..])?;
    }
    // On the result of the previous launch, if the host does not write it.
    graph.launch(&stream)?;
    expect("y again", graph.pinned(y)?[0], 17.0)
}

fn copies_for_a_kernel_have_shapes(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (x, y) = (device.pinned_copy(&[1_u32, 2, 3, 4, 5, 6, 7])?, device.pinned_zeros::<u32>(2)?);
    let places = device.pinned_copy(&[[9_u32; 4]; 7 * 5 + 2])?;
    let (graph, (y, places, large)) = stream.capture(|capture| {
        let (x, mut y) = (capture.keep_pinned(x)?, capture.keep_pinned(y)?);
        let mut places = capture.keep_pinned(places)?;
        planes::sums_of_rows(capture, Grid::cover(2), x.as_in().into_2d(3, 2)?, y.as_out())?;
        ranks::coordinates_2d(capture, Grid::cover([7, 5]), places.as_in_out().into_2d(7, 5)?)?;
        let large = x.as_in().into_2d(4, 2).map(drop);
        Ok((y.key(), places.key(), large))
    })?;
    let text = expect_error("too large a shape", large, |error| matches!(error, Error::ViewTooLarge { .. }))?;
    names(&text, &["4 x 2", "7"])?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    expect("sums", graph.pinned(y)?, &[6, 15])?;
    let mut buffer = stream.zeros::<[u32; 4]>(7 * 5)?;
    ranks::coordinates_2d(&stream, Grid::cover([7, 5]), buffer.view_2d_mut(7, 5)?)?;
    expect("as in a buffer", &graph.pinned(places)?[..35], &stream.download(&buffer)?[..])?;
    expect("the rest stays", &graph.pinned(places)?[35..], &[[9; 4]; 2][..])
}

fn a_graph_copies_for_kernels_that_count(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (bytes, once) = (device.pinned_zeros::<u8>(5000)?, device.pinned_zeros::<u32>(256)?);
    let sum = device.pinned_zeros::<u32>(256)?;
    let (graph, (bytes, once, sum)) = stream.capture(|capture| {
        let (bytes, grid) = (capture.keep_pinned(bytes)?, Grid::cover(5000));
        let (mut once, mut sum) = (capture.keep_pinned(once)?, capture.keep_pinned(sum)?);
        contended::histogram(capture, grid, bytes.as_in(), once.as_out())?;
        contended::histogram(capture, grid, bytes.as_in(), sum.as_in_out())?;
        Ok((bytes.key(), once.key(), sum.key()))
    })?;
    let mut graph = graph.instantiate()?;
    for value in [3_u8, 200, 3] {
        graph.pinned_mut(bytes)?.fill(value);
        graph.launch(&stream)?;
        expect("of this launch", graph.pinned(once)?[usize::from(value)], 5000)?;
    }
    expect("of all launches", (graph.pinned(sum)?[3], graph.pinned(sum)?[200]), (10_000, 5000))?;
    expect("of the last launch", graph.pinned(once)?[200], 0)
}

fn a_refused_launch_leaves_no_copies(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (x, y) = (device.pinned_zeros::<u32>(4)?, device.pinned_zeros::<u32>(4)?);
    let (graph, (refused, elsewhere)) = stream.capture(|capture| {
        let (x, mut y) = (capture.keep_pinned(x)?, capture.keep_pinned(y)?);
        let refused = elementwise::copy(capture, Grid::new(1, 1 << 20), x.as_in(), y.as_in_out());
        Ok((refused, elementwise::copy(&stream, Grid::cover(4), x.as_in(), y.as_out())))
    })?;
    expect_error("a wide block", refused, |error| {
        matches!(error, Error::Launch(LaunchError::BlockTooLarge { .. }))
    })?;
    let is_other = |error: &Error| *error == GraphError::OtherGraph { what: "buffer" }.into();
    expect_error("a stream that records nothing", elsewhere, is_other)?;
    let picture = graph.to_svg();
    expect(&picture, [": upload", ": copy"].iter().any(|node| picture.contains(node)), false)
}

fn an_update_takes_no_slices_of_the_host(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let y = stream.zeros::<u32>(4)?;
    let (graph, (node, y)) = stream.capture(|capture| {
        let mut y = capture.keep(y)?;
        let copy = |line: &Stream| elementwise::copy(line, Grid::cover(4), In(&[1, 2, 3, 4]), &mut y);
        Ok((capture.node(&[], copy)?, y.key()))
    })?;
    let mut graph = graph.instantiate()?;
    let updated = graph.update_kernel(node, |update| {
        elementwise::copy(update, Grid::cover(4), In(&[5, 6, 7, 8]), &mut update.buffer(y)?)
    });
    let refused = |error: &Error| matches!(error, Error::Graph(GraphError::NotRecordable { .. }));
    names(&expect_error("an update", updated, refused)?, &["in an update"])?;
    graph.launch(&stream)?;
    expect("as recorded", stream.download(graph.view(y)?)?, vec![1, 2, 3, 4])
}

fn the_buffers_of_slices_are_freed(device: &Device) -> Outcome {
    // No other case allocates on a new device; GPUs run one case at a time.
    let device = if device.is_cuda() { device.clone() } else { Device::cpu_with(Default::default())? };
    let stream = device.new_stream()?;
    let pool = device.memory_pool();
    stream.synchronize()?;
    let before = pool.statistics()?.used;
    let mut data = vec![0_u32; 1 << 12];
    for round in 0..100 {
        elementwise::increment(&stream, Grid::cover(data.len()), InOut(&mut data))?;
        let refused = elementwise::increment(&stream, Grid::new(1, 1 << 20), InOut(&mut data));
        expect(&format!("refused in round {round}"), refused.is_err(), true)?;
    }
    stream.synchronize()?;
    expect("sum", data.iter().all(|&value| value == 100), true)?;
    expect("bytes in use", pool.statistics()?.used, before)
}
