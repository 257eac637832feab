//! Safe writes at computed indices: scatters with claims, micro-tiles, double-buffered shared memory, and
//! claimed elements of shared memory.

use ferrogrid::GraphError;
use ferrogrid::LaunchError;
use ferrogrid::prelude::*;

use crate::memory::access::write_kernels::writing::{self, Triple};
use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("a_scatter_writes_elements_of_any_type", a_scatter_writes_elements_of_any_type),
    ("two_writers_of_one_element_are_reported", two_writers_of_one_element_are_reported),
    ("each_launch_has_claims_of_its_own", each_launch_has_claims_of_its_own),
    ("two_scatters_have_claims_of_their_own", two_scatters_have_claims_of_their_own),
    ("each_launch_of_a_graph_has_claims_of_its_own", each_launch_of_a_graph_has_claims_of_its_own),
    ("a_refused_scatter_leaves_nothing_in_a_recording", a_refused_scatter_leaves_nothing_in_a_recording),
    ("warps_and_tiles_of_threads_own_runs", warps_and_tiles_of_threads_own_runs),
    ("threads_own_micro_tiles", threads_own_micro_tiles),
    ("pairs_are_changed_in_place", pairs_are_changed_in_place),
    ("an_element_is_given_out_once_between_barriers", an_element_is_given_out_once_between_barriers),
];

fn a_scatter_writes_elements_of_any_type(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(71);
    for n in [1_usize, 31, 32, 33, 1000] {
        let mut places: Vec<u64> = (0..n as u64 + 5).collect();
        random.shuffle(&mut places);
        let device_places = stream.upload(&places[..n])?;
        macro_rules! scattered {
            ($ty:ty, $of:expr) => {{
                let x: Vec<$ty> = (0..n).map($of).collect();
                let old: Vec<$ty> = (0..n + 5).map(|i| $of(i + 7)).collect();
                let (device_x, mut y) = (stream.upload(&x)?, stream.upload(&old)?);
                writing::scatter::<$ty>(&stream, Grid::cover(n), &device_x, &device_places, &mut y)?;
                let mut expected = old;
                places.iter().zip(&x).for_each(|(&place, &x)| expected[place as usize] = x);
                expect(stringify!($ty), stream.download(&y)?, expected)?;
            }};
        }
        scattered!(u8, |i: usize| i as u8);
        scattered!(f64, |i: usize| i as f64 * 0.7);
        scattered!(Triple, |i: usize| Triple(i as u32, i as f32 * 0.5, -(i as i32)));
        let x: Vec<u32> = (0..n as u32).collect();
        let (device_x, mut y, mut count) =
            (stream.upload(&x)?, stream.zeros(n + 5)?, stream.zeros::<u64>(1)?);
        writing::scatter_wide(&stream, Grid::cover(n), &device_x, &device_places, &mut y, count.as_atomic())?;
        let found = stream.download(&y)?;
        expect("wide", (0..n).map(|i| found[places[i] as usize]).collect(), x)?;
        expect("length", stream.download(&count)?, vec![(n * (n + 5)) as u64])?;
    }
    Ok(())
}

fn two_writers_of_one_element_are_reported(device: &Device) -> Outcome {
    for (place, length, what) in [
        (2, 4, "element 2 of a `ScatterSlice` has been claimed before"),
        (4, 4, "has 4 elements, but the index is 4"),
        (0, 0, "has 0 elements, but the index is 0"),
    ] {
        let stream = device.new_stream()?;
        let places = stream.upload(&[2, place])?;
        let (x, mut y) = (stream.upload(&[1.5, 2.5])?, stream.zeros::<f64>(length)?);
        let (x, places) =
            if length == 0 { (x.slice(1..)?, places.slice(1..)?) } else { (x.view(), places.view()) };
        let launched = writing::scatter::<f64>(&stream, Grid::cover(2), x, places, &mut y);
        let launched = launched.and_then(|()| stream.synchronize());
        let text = expect_error(what, launched, |error| matches!(error, Error::KernelPanic { .. }))?;
        names(&text, &[what])?;
    }
    Ok(())
}

fn each_launch_has_claims_of_its_own(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut y = stream.upload(&(0..100).collect::<Vec<u32>>())?;
    let mut got = stream.zeros::<u32>(1)?;
    for _ in 0..5 {
        writing::compete(&stream, Grid::new(4, 256), 70, y.slice_mut(10..90)?, got.as_atomic())?;
    }
    expect("how many got one", stream.download(&got)?, vec![5 * 70])?;
    let expected = (0..100).map(|i| if (10..80).contains(&i) { i + 5 } else { i }).collect();
    expect("elements", stream.download(&y)?, expected)
}

fn two_scatters_have_claims_of_their_own(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (mut a, mut b) = (stream.zeros::<u32>(500)?, stream.zeros::<u16>(500)?);
    writing::scatter_twice(&stream, Grid::cover(500), &mut a, &mut b)?;
    expect("a", stream.download(&a)?, (0..500).rev().collect())?;
    expect("b", stream.download(&b)?, (0..500).map(|i| i ^ 1).collect())
}

fn each_launch_of_a_graph_has_claims_of_its_own(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (y, got) = (stream.upload(&(0..100).collect::<Vec<u32>>())?, stream.zeros::<u32>(1)?);
    let grid = Grid::new(4, 256);
    let (graph, (y, got, node)) = stream.capture(|capture| {
        let (mut y, mut got) = (capture.keep(y)?, capture.keep(got)?);
        writing::compete(capture, grid, 70, y.slice_mut(10..90)?, got.as_atomic())?;
        let node = capture
            .node(&[], |line| writing::compete(line, grid, 70, y.slice_mut(10..90)?, got.as_atomic()))?;
        Ok((y.key(), got.key(), node))
    })?;
    expect("nodes: zeros and a kernel, twice", graph.len(), 4)?;
    let mut graph = graph.instantiate()?;
    for _ in 0..3 {
        graph.launch(&stream)?;
    }
    expect("how many got one", stream.download(graph.view(got)?)?, vec![6 * 70])?;
    let expected = (0..100).map(|i| if (10..80).contains(&i) { i + 6 } else { i }).collect();
    expect("elements", stream.download(graph.view(y)?)?, expected)?;
    let updated = graph.update_kernel(node, |update| {
        writing::compete(update, grid, 70, &mut update.buffer(y)?, update.buffer(got)?.as_atomic())
    });
    let is_refused = |error: &Error| matches!(error, Error::Graph(GraphError::NotRecordable { .. }));
    names(&expect_error("an update", updated, is_refused)?, &["in an update", "graph.update"])
}

fn a_refused_scatter_leaves_nothing_in_a_recording(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (mut y, mut got) = (stream.zeros::<u32>(100)?, stream.zeros::<u32>(1)?);
    let (graph, refused) = stream.capture(|capture| {
        let (mut y, mut got) = (capture.write(&mut y)?, capture.write(&mut got)?);
        writing::compete(capture, Grid::cover(0), 1, &mut y, got.as_atomic())?;
        Ok(writing::compete(capture, Grid::new(1, 1 << 20), 70, &mut y, got.as_atomic()))
    })?;
    expect_error("a wide block", refused, |error| {
        matches!(error, Error::Launch(LaunchError::BlockTooLarge { .. }))
    })?;
    let picture = graph.to_svg();
    expect(&picture, picture.contains(": fill"), false)
}

fn warps_and_tiles_of_threads_own_runs(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let x: Vec<u32> = (0..1000).map(|i| i * i % 97).collect();
    let device_x = stream.upload(&x)?;
    for (blocks, threads) in [(1_usize, 1_usize), (3, 64), (4, 40), (2, 256)] {
        for (run, n) in [(1, 32), (2, 32), (40, 32), (1, 4), (2, 4), (40, 4)] {
            let tiles = threads.div_ceil(n);
            let all = blocks * tiles * run;
            // The exact number, fewer, and more.
            for len in [all, all - all / 3, all + 5] {
                let mut y = stream.upload(&vec![[u32::MAX; 2]; len])?;
                let grid = Grid::new(blocks as u32, threads as u32);
                match (run, n) {
                    (1, 32) => writing::of_tiles::<1, 32>(&stream, grid, &device_x, &mut y)?,
                    (2, 32) => writing::of_tiles::<2, 32>(&stream, grid, &device_x, &mut y)?,
                    (40, 32) => writing::of_tiles::<40, 32>(&stream, grid, &device_x, &mut y)?,
                    (1, 4) => writing::of_tiles::<1, 4>(&stream, grid, &device_x, &mut y)?,
                    (2, 4) => writing::of_tiles::<2, 4>(&stream, grid, &device_x, &mut y)?,
                    _ => writing::of_tiles::<40, 4>(&stream, grid, &device_x, &mut y)?,
                }
                let expected = |place: usize| {
                    let tile = place / run;
                    if tile >= blocks * tiles {
                        return [u32::MAX; 2];
                    }
                    let first = tile % tiles * n;
                    let (start, count) = (tile / tiles * threads + first, n.min(threads - first));
                    [x[start..start + count].iter().sum::<u32>() + (place % run) as u32, count as u32]
                };
                let what = format!("{blocks} x {threads} threads, {run} for each {n}, of {len}");
                expect(&what, stream.download(&y)?, (0..len).map(expected).collect())?;
            }
        }
    }
    Ok(())
}

fn threads_own_micro_tiles(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let run = |[width, height]: [usize; 2], [x, y]: [u32; 2], mw: usize, mh: usize, how: u32| -> Outcome {
        let what = format!("{width} x {height} by {x} x {y} threads with {mw} x {mh} each, {how}");
        let (mut plane, mut first) =
            (stream.zeros::<u32>(width * height)?, stream.upload(&vec![[u32::MAX; 2]; 16 * 16])?);
        let grid = Grid::new([width.div_ceil(16) as u32, height.div_ceil(8) as u32], [x, y]);
        let blocks = [width.div_ceil(16), height.div_ceil(8)];
        let views = (plane.view_2d_mut(width, height)?, first.view_2d_mut(16, 16)?);
        macro_rules! launch {
            ($($mw:literal $mh:literal),*) => {
                match (mw, mh) {
                    $(($mw, $mh) => writing::micro::<$mw, $mh>(&stream, grid, how, views.0, views.1)?,)*
                    _ => unreachable!(),
                }
            };
        }
        launch!(1 1, 2 1, 4 1, 1 4, 2 4, 4 4);
        expect(&what, stream.download(&plane)?, (0..(width * height) as u32).collect())?;
        if blocks == [1, 1] {
            let first = stream.download(&first)?;
            let expected = |thread: usize| {
                let place = [thread / (16 / mw) * mh, thread % (16 / mw) * mw];
                let is_there = place[0] < height.min(8) && place[1] < width.min(16);
                if is_there { place.map(|it| it as u32) } else { [u32::MAX; 2] }
            };
            for thread in 0..(x * y) as usize {
                let at = thread / x as usize * 16 + thread % x as usize;
                expect(&format!("{what}: thread {thread}"), first[at], expected(thread))?;
            }
        }
        Ok(())
    };
    for shape in [[16, 8], [13, 7], [50, 30], [1, 1]] {
        for block in [[16, 8], [8, 1], [4, 2], [16, 16], [7, 3]] {
            for (mw, mh) in [(1, 1), (2, 1), (4, 1), (1, 4), (2, 4), (4, 4)] {
                for how in 0..3 {
                    run(shape, block, mw, mh, how)?;
                }
            }
        }
    }
    Ok(())
}

fn pairs_are_changed_in_place(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(72);
    let x: Vec<u32> = (0..5 * 128).map(|_| random.u32(..1000)).collect();
    let mut found = stream.upload(&x)?;
    writing::bitonic(&stream, Grid::new(5, 64), found.view_2d_mut(128, 5)?)?;
    let mut expected = x;
    expected.chunks_mut(128).for_each(<[u32]>::sort_unstable);
    expect("rows", stream.download(&found)?, expected)
}

fn an_element_is_given_out_once_between_barriers(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (mut y, mut got) = (stream.zeros::<u32>(2 * 35)?, stream.zeros::<u32>(1)?);
    writing::all_claim(&stream, Grid::new(2, 32), y.view_2d_mut(35, 2)?, got.as_atomic())?;
    expect("elements", stream.download(&y)?, vec![103; 70])?;
    expect("claims", stream.download(&got)?, vec![2 * 3 * 35])
}
