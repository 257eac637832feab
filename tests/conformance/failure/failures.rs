//! Panics and printed text, as the host gets them. Text belongs to the device, so each case runs in a
//! separate process.

use std::sync::{Arc, Mutex};

use ferrogrid::prelude::*;
use ferrogrid::{In, InOut, KernelError};

use crate::failure::failure_kernels::{missed, panics, prints};
use crate::language::kernels::elementwise;
use crate::own_process::in_its_own_process;
use crate::{Case, Outcome, expect, expect_error, names};

macro_rules! apart {
    ($($case:ident)*) => {
        pub(crate) const CASES: &[Case] =
            &[$( (stringify!($case), |device| in_its_own_process(device, stringify!($case))) ),*];
        /// The cases, as they run in their processes.
        pub(crate) const APART: &[Case] = &[$( (stringify!($case), $case) ),*];
    };
}

apart! {
    a_panic_says_what_and_where
    a_panic_names_its_block_and_thread_along_each_axis
    debug_assertions_follow_the_profile
    a_panic_of_all_threads_is_reported_once
    a_panic_leaves_buffers_and_streams_as_they_were
    a_panicking_kernel_is_named_among_others
    a_panic_does_not_hang_those_who_wait
    lanes_that_are_not_there_are_an_error_at_the_line
    a_lane_that_panics_is_the_error_and_not_its_absence
    lanes_that_all_come_are_found_at_a_check
    printed_lines_arrive_whole
    printing_in_parts
    values_of_other_types_are_printed_if_they_can_be
    lines_that_do_not_fit_are_counted
    a_panic_is_told_where_a_slice_of_the_host_waits
    a_panic_says_where_its_kernel_was_launched
}

const SOURCE: &str = include_str!("failure_kernels.rs");

/// The line that ends in `// name`.
fn line_of(name: &str) -> u32 {
    let mark = format!("; // {name}");
    let line = SOURCE.lines().position(|line| line.ends_with(&mark));
    line.expect("each kernel has its line") as u32 + 1
}

/// Whether the last segment of a kernel's path is `name`.
fn is_called(path: &str, name: &str) -> bool {
    path.rsplit("::").next() == Some(name) && !path.contains(" or ")
}

type Launch = fn(&Stream, Grid<1>, u32, &DeviceBuffer<u32>, &mut DeviceBuffer<u32>) -> ferrogrid::Result<()>;

fn a_panic_says_what_and_where(device: &Device) -> Outcome {
    let third = 7_f32 / 3.0;
    let formatted = format!("7 {third:>8.3} {third:?} true \"wörd\" 0x0007 'c'");
    let kernels: [(&'static str, Launch, &str); 14] = [
        (
            "bounds",
            |s, g, at, x, y| panics::bounds(s, g, at, x, y),
            "index out of bounds: the len is 5 but the index is 5",
        ),
        (
            "array_bounds",
            |s, g, at, x, y| panics::array_bounds(s, g, at, x, y),
            "index out of bounds: the len is 4 but the index is 5",
        ),
        ("constant", |s, g, at, x, y| panics::constant(s, g, at, x, y), "a plain message"),
        ("formatted", |s, g, at, x, y| panics::formatted(s, g, at, x, y), &formatted),
        (
            "assertion",
            |s, g, at, x, y| panics::assertion(s, g, at, x, y),
            "assertion failed: !is_chosen(&t, at)",
        ),
        (
            "equality",
            |s, g, at, x, y| panics::equality(s, g, at, x, y),
            "assertion `left == right` failed\n  left: 7\n right: 9",
        ),
        (
            "arrays",
            |s, g, at, x, y| panics::arrays(s, g, at, x, y),
            "assertion `left == right` failed: [8, 9, 10] [\n    true,\n]\n  left: [7.0, 0.5]\n right: [1.0, 0.5]",
        ),
        (
            "inequality",
            |s, g, at, x, y| panics::inequality(s, g, at, x, y),
            "assertion `left != right` failed: in thread 77\n  left: 7.0\n right: 7.0",
        ),
        (
            "unreached",
            |s, g, at, x, y| panics::unreached(s, g, at, x, y),
            "internal error: entered unreachable code: with 7",
        ),
        (
            "unwrapped",
            |s, g, at, x, y| panics::unwrapped(s, g, at, x, y),
            "called `Option::unwrap()` on a `None` value",
        ),
        ("expected", |s, g, at, x, y| panics::expected(s, g, at, x, y), "enough is there"),
        ("expected_result", |s, g, at, x, y| panics::expected_result(s, g, at, x, y), "a number: 77"),
        (
            "range",
            |s, g, at, x, y| panics::range(s, g, at, x, y),
            "range end index 8 out of range for slice of length 5",
        ),
        ("division", |s, g, at, x, y| panics::division(s, g, at, x, y), "attempt to divide by zero"),
    ];
    let stream = device.new_stream()?;
    let input = stream.upload(&[7_u32, 8, 9, 10, 11])?;
    for (name, launch, message) in kernels {
        let mut output = stream.upload(&[0_u32; 100])?;
        launch(&stream, Grid::cover(100).with_block(32), 77, &input, &mut output)?;
        let found = stream.synchronize().err().ok_or_else(|| format!("`{name}` did not panic"))?;
        let Error::KernelPanic { kernel, launched, column, .. } = &found else {
            return Err(format!("`{name}`: another error: {found}").into());
        };
        let expected = Error::KernelPanic {
            kernel,
            launched: launched.clone(),
            message: message.into(),
            file: "tests/conformance/failure/failure_kernels.rs".into(),
            line: line_of(name),
            column: *column,
            block: [2, 0, 0],
            thread: [13, 0, 0],
        };
        if !(1..110).contains(column) || !is_called(kernel, name) {
            return Err(format!("`{name}`: the place is column {column} of `{kernel}`").into());
        }
        expect("panic", found, expected)?;
        still_usable(&stream)?;
    }
    Ok(())
}

fn a_panic_names_its_block_and_thread_along_each_axis(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let expected = ([1, 2, 3], [3, 2, 1]);
    panics::in_a_volume(&stream, Grid::new([2, 3, 4], [4, 3, 2]), expected.0, expected.1)?;
    match stream.synchronize() {
        Err(Error::KernelPanic { block, thread, .. }) => {
            expect("block and thread", (block, thread), expected)
        }
        other => Err(format!("no panic: {other:?}").into()),
    }
}

/// Another kernel is launched after it, from another line; the one that panics from two.
fn a_panic_says_where_its_kernel_was_launched(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let input = stream.upload(&[7_u32; 4])?;
    let mut output = stream.upload(&[0_u32; 100])?;
    let grid = Grid::cover(100).with_block(32);
    let line = line!() + 1;
    panics::bounds(&stream, grid, u32::MAX, &input, &mut output)?;
    panics::bounds(&stream, grid, 77, &input, &mut output)?;
    elementwise::increment(&stream, Grid::cover(100), &mut output)?;
    let error = stream.synchronize().err().ok_or("no panic was reported")?;
    let Error::KernelPanic { launched, .. } = &error else {
        return Err(format!("another error: {error}").into());
    };
    let places: Vec<_> = launched.iter().map(|site| (site.file(), site.line())).collect();
    // The CPU device knows which launch it was; a GPU knows the kernel.
    let lines = if device.is_cuda() { &[line, line + 1][..] } else { &[line + 1] };
    let expected: Vec<_> = lines.iter().map(|line| (file!(), *line)).collect();
    expect("the places of the launches", places, expected)?;
    let text = format!("(launched at {}:{line}:", file!());
    expect("the text", error.to_string().contains(&text), device.is_cuda())?;

    let (graph, line) = stream.capture(|capture| {
        let (input, mut output) = (capture.read(&input)?, capture.write(&mut output)?);
        panics::bounds(capture, grid, 77, input, &mut output)?;
        Ok(line!() - 1)
    })?;
    graph.instantiate()?.launch(&stream)?;
    let error = stream.synchronize().err().ok_or("no panic in the graph was reported")?;
    names(&error.to_string(), &[&format!("(launched at {}:{line}:", file!())])?;
    still_usable(&stream)
}

fn debug_assertions_follow_the_profile(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let input = stream.upload(&[7_u32])?;
    let mut output = stream.upload(&[0_u32; 100])?;
    panics::debug_assertion(&stream, Grid::cover(100), 77, &input, &mut output)?;
    let panicked = matches!(stream.synchronize(), Err(Error::KernelPanic { .. }));
    expect("a panic", panicked, cfg!(debug_assertions))
}

fn a_panic_of_all_threads_is_reported_once(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let input = stream.upload(&[7_u32])?;
    let mut output = stream.zeros::<u32>(1 << 20)?;
    for _ in 0..3 {
        panics::everywhere(&stream, Grid::cover(1 << 20), &input, &mut output)?;
        let Err(Error::KernelPanic { kernel, line, .. }) = stream.synchronize() else {
            return Err("no panic was reported".into());
        };
        expect("line", line, line_of("everywhere"))?;
        expect("kernel", is_called(kernel, "everywhere"), true)?;
        stream.synchronize()?;
    }
    still_usable(&stream)
}

fn a_panic_leaves_buffers_and_streams_as_they_were(device: &Device) -> Outcome {
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let input = stream.upload(&[7_u32; 4])?;
    let kept = other.upload(&[1_u32, 2, 3])?;
    let mut output = stream.upload(&[0_u32; 100])?;
    panics::bounds(&stream, Grid::cover(100).with_block(32), 77, &input, &mut output)?;
    let error = stream.synchronize();
    expect("a panic", matches!(error, Err(Error::KernelPanic { .. })), true)?;
    expect("another buffer", other.download(&kept)?, vec![1, 2, 3])?;
    expect("the input", stream.download(&input)?, vec![7; 4])?;
    let result = stream.download(&output);
    expect("an output that is no result", matches!(result, Err(Error::KernelPanic { .. })), true)?;
    stream.fill_into(1, &mut output)?;
    expect("the output, written anew", stream.download(&output)?, vec![1; 100])?;
    still_usable(&stream)?;
    still_usable(&other)
}

fn a_panicking_kernel_is_named_among_others(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let input = stream.upload(&[7_u32; 5])?;
    let mut output = stream.upload(&[0_u32; 100])?;
    for _ in 0..20 {
        elementwise::increment(&stream, Grid::cover(100), &mut output)?;
        panics::constant(&stream, Grid::cover(100), u32::MAX, &input, &mut output)?;
    }
    panics::equality(&stream, Grid::cover(100), 3, &input, &mut output)?;
    for _ in 0..20 {
        elementwise::increment(&stream, Grid::cover(100), &mut output)?;
        panics::constant(&stream, Grid::cover(100), u32::MAX, &input, &mut output)?;
    }
    match stream.synchronize() {
        Err(Error::KernelPanic { kernel, .. }) => expect(kernel, is_called(kernel, "equality"), true),
        other => Err(format!("no panic: {other:?}").into()),
    }
}

fn a_panic_is_told_where_a_slice_of_the_host_waits(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut output = [0_u32; 100];
    for at in [77, 3] {
        let launched = panics::constant(&stream, Grid::cover(100), at, In(&[7; 5]), InOut(&mut output));
        match launched {
            Err(Error::KernelPanic { kernel, .. }) => expect(kernel, is_called(kernel, "constant"), true)?,
            other => return Err(format!("no panic: {other:?}").into()),
        }
        still_usable(&stream)?;
    }
    Ok(())
}

fn still_usable(stream: &Stream) -> Outcome {
    let mut data = stream.upload(&[1_u32; 10])?;
    elementwise::increment(stream, Grid::cover(10), &mut data)?;
    expect("elements", stream.download(&data)?, vec![2; 10])
}

/// Collects what `device` prints.
fn collect(device: &Device) -> Arc<Mutex<Vec<String>>> {
    let texts = Arc::new(Mutex::new(Vec::new()));
    let kept = texts.clone();
    device.set_output(move |text| kept.lock().unwrap().push(text.to_owned()));
    texts
}

fn printed_lines_arrive_whole(device: &Device) -> Outcome {
    let texts = collect(device);
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::new();
    for round in 0..5 {
        let values: Vec<f32> = (0..2000).map(|_| (random.f32() - 0.5) * 1e4).collect();
        let input = stream.upload(&values)?;
        prints::lines(&stream, Grid::cover(2000), 2000, &input)?;
        stream.synchronize()?;
        let mut found = std::mem::take(&mut *texts.lock().unwrap());
        found.sort();
        let expected: Vec<String> = values
            .iter()
            .enumerate()
            .map(|(i, value)| format!("{i:>6}: {value:8.3} {value:?} {value:+e} {} 'ß' tëxt\n", *value < 0.0))
            .collect();
        expect(&format!("lines of round {round}"), found, expected)?;
    }
    Ok(())
}

fn printing_in_parts(device: &Device) -> Outcome {
    let texts = collect(device);
    let stream = device.new_stream()?;
    prints::parts(&stream, Grid::cover(64))?;
    stream.synchronize()?;
    expect("text", texts.lock().unwrap().concat(), "a1\nconstant\n".to_owned())
}

fn values_of_other_types_are_printed_if_they_can_be(device: &Device) -> Outcome {
    let texts = collect(device);
    let stream = device.new_stream()?;
    prints::own_type(&stream, Grid::cover(64), prints::Point { x: 1.0 })?;
    stream.synchronize()?;
    let text = texts.lock().unwrap().concat();
    if !device.is_cuda() {
        return expect("text", text, "Point { x: 1.0 }\n".to_owned());
    }
    expect("text", text.starts_with('<') && text.ends_with("Point>\n"), true)
}

fn lines_that_do_not_fit_are_counted(device: &Device) -> Outcome {
    device.set_output_capacity(1 << 16)?;
    let texts = collect(device);
    let stream = device.new_stream()?;
    let input = stream.upload(&vec![1.0_f32; 100_000])?;
    for _ in 0..3 {
        prints::lines(&stream, Grid::cover(100_000), 100_000, &input)?;
        stream.synchronize()?;
        let mut found = std::mem::take(&mut *texts.lock().unwrap());
        let last = found.pop().ok_or("nothing was printed")?;
        let lost = last.strip_prefix('[').and_then(|rest| rest.split(' ').next()).unwrap_or_default();
        let lost: usize = lost.parse().map_err(|_| format!("the last text is {last:?}"))?;
        expect("lines printed and lost", found.len() + lost, 100_000)?;
        expect("some lines arrived", found.len() > 100, true)?;
        expect("whole lines", found.iter().all(|line| line.ends_with("tëxt\n")), true)?;
    }
    Ok(())
}

fn lanes_that_are_not_there_are_an_error_at_the_line(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut y = stream.zeros::<u32>(64)?;
    panics::half_a_warp(&stream, Grid::new(2, 32), &mut y)?;
    let (file, line) = match stream.synchronize() {
        Err(Error::KernelPanic { message, file, line, .. }) if device.is_cuda() => {
            let expected = "the warp operation with mask 0xffffffff needs lane 16, which is not there";
            expect("message", &*message, expected)?;
            (file.into_string(), line)
        }
        Err(Error::Kernel(KernelError::WarpDivergence { lane: 16, place, .. })) if !device.is_cuda() => {
            (place.file.to_owned(), place.line)
        }
        other => return Err(format!("another outcome: {other:?}").into()),
    };
    expect("file", file.ends_with("tests/conformance/failure/failure_kernels.rs"), true)?;
    expect("line", line, line_of("half_a_warp"))
}

fn a_lane_that_panics_is_the_error_and_not_its_absence(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut y = stream.zeros::<u32>(64)?;
    for _ in 0..20 {
        panics::half_a_warp_panics(&stream, Grid::new(1, 64), &mut y)?;
        let is_panic =
            |error: &Error| matches!(error, Error::KernelPanic { message, .. } if &**message == "not coming");
        expect_error("a panic", stream.synchronize(), is_panic)?;
    }
    Ok(())
}

fn lanes_that_all_come_are_found_at_a_check(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut zero = stream.zeros::<u32>(1)?;
    for threads in [32, 40, 33, 96, 7] {
        let mut y = stream.upload(&vec![[0_u32; 2]; threads as usize])?;
        panics::all_come(&stream, Grid::new(1, threads), zero.as_atomic(), &mut y)?;
        let of_warp = |rank: u32| rank / 32 * 32..(rank / 32 * 32 + 32).min(threads);
        let alike = |rank: u32| of_warp(rank).filter(|other| other % 3 == rank % 3).count() as u32;
        let expected: Vec<[u32; 2]> =
            (0..threads).map(|rank| [of_warp(rank).len() as u32, alike(rank)]).collect();
        expect("lanes", stream.download(&y)?, expected)?;
    }
    Ok(())
}

fn a_panic_does_not_hang_those_who_wait(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (x, empty) = (stream.upload(&[1_u32])?, stream.zeros::<u32>(0)?);
    let mut counts = stream.zeros::<u32>(128)?;
    let mut arrived = stream.zeros::<u32>(1)?;
    let is_panic =
        |error: &Error| matches!(error, Error::KernelPanic { message, .. } if &**message == "not coming");
    for at in [0, 5, 63] {
        missed::at_a_barrier(&stream, Grid::new(2, 64), at, &x, &mut counts)?;
        expect_error("a panic before a barrier", stream.synchronize(), is_panic)?;
        missed::at_a_grid_barrier(&stream, Grid::new(3, 64), at, &x, arrived.as_atomic())?;
        expect_error("a panic before a grid barrier", stream.synchronize(), is_panic)?;
        // The next launches work as usual.
        stream.fill_into(0, &mut arrived)?;
        missed::at_a_barrier(&stream, Grid::new(2, 64), at, &empty, &mut counts)?;
        missed::at_a_grid_barrier(&stream, Grid::new(3, 64), at, &empty, arrived.as_atomic())?;
        expect("threads at the barrier", stream.download(&counts)?, vec![64; 128])?;
        expect("threads at the end", stream.download(&arrived)?, vec![192])?;
    }
    Ok(())
}
