//! Faults that a GPU does not detect: missing threads at barriers, missing lanes, overflow. The CPU device
//! reports each as an error with its source location, and remains usable.

use ferrogrid::prelude::*;
use ferrogrid::{KernelError, LaneFault, SourcePlace, WaitingThreads};

use crate::failure::fault_kernels::faults;
use crate::table::not_for_this_device;
use crate::{Case, Outcome, expect};

pub(crate) const CASES: &[Case] = &[
    (
        "a_barrier_that_some_threads_skip_names_both_groups",
        a_barrier_that_some_threads_skip_names_both_groups,
    ),
    ("threads_at_different_barriers_are_distinguished", threads_at_different_barriers_are_distinguished),
    ("threads_that_return_before_a_barrier_are_named", threads_that_return_before_a_barrier_are_named),
    (
        "a_block_that_ends_before_a_barrier_of_the_grid_is_named",
        a_block_that_ends_before_a_barrier_of_the_grid_is_named,
    ),
    ("a_shuffle_with_an_exited_lane_names_it", a_shuffle_with_an_exited_lane_names_it),
    ("lanes_in_different_operations_are_distinguished", lanes_in_different_operations_are_distinguished),
    ("lanes_with_different_masks_are_distinguished", lanes_with_different_masks_are_distinguished),
    ("a_lane_at_a_barrier_is_named", a_lane_at_a_barrier_is_named),
    ("an_index_out_of_bounds_names_its_thread", an_index_out_of_bounds_names_its_thread),
    ("integer_overflow_is_an_error_in_debug_builds", integer_overflow_is_an_error_in_debug_builds),
    (
        "a_panic_between_barriers_is_the_error_and_not_the_wait",
        a_panic_between_barriers_is_the_error_and_not_the_wait,
    ),
    ("a_stack_that_is_used_up_is_an_error", a_stack_that_is_used_up_is_an_error),
    (
        "a_stack_that_is_used_up_by_a_kernel_that_never_waits_is_an_error",
        a_stack_that_is_used_up_by_a_kernel_that_never_waits_is_an_error,
    ),
];

const FILE: &str = "tests/conformance/failure/fault_kernels.rs";
const SOURCE: &str = include_str!("fault_kernels.rs");
const ON_A_GPU: &str = "a GPU hangs or computes nonsense";

/// Three blocks of two warps; block 1 has the fault.
fn grid() -> Grid<1> {
    Grid::new(3, 64)
}

/// The line that ends in `// name`.
fn line_of(name: &str) -> u32 {
    let mark = format!("; // {name}");
    let line = SOURCE.lines().position(|line| line.ends_with(&mark));
    line.expect("each fault has its line") as u32 + 1
}

/// Fails unless `place` is the line that ends in `// name`.
fn is_at(place: SourcePlace, name: &str) -> Outcome {
    expect("file", place.file, FILE)?;
    expect(name, place.line, line_of(name))
}

/// The places of the threads with these numbers.
fn places(numbers: impl Iterator<Item = u32>) -> Vec<[u32; 3]> {
    numbers.map(|number| [number, 0, 0]).collect()
}

type Launch<'a> = &'a dyn Fn(&Stream) -> ferrogrid::Result<()>;

/// The error of `launch` at the next synchronisation, the same each of three times; in between the stream and
/// another one work as usual.
fn fault(device: &Device, launch: Launch<'_>) -> Result<Error, Box<dyn std::error::Error>> {
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let mut first: Option<Error> = None;
    for _ in 0..3 {
        launch(&stream)?;
        let found = stream.synchronize().err().ok_or("no fault was found")?;
        expect("the same fault again", first.get_or_insert_with(|| found.clone()), &mut found.clone())?;
        expect("after it was reported", stream.synchronize(), Ok(()))?;
        for stream in [&stream, &other] {
            let mut counts = stream.zeros::<u32>(192)?;
            faults::sound(stream, grid(), &mut counts)?;
            expect("threads at a barrier", stream.download(&counts)?, vec![65; 192])?;
        }
    }
    first.ok_or_else(|| "no fault was found".into())
}

/// The threads that wait, by place, and those that have exited.
type Divergence = (Vec<WaitingThreads>, Vec<[u32; 3]>);

/// The threads that wait at a barrier, and those that have exited, of block 1 of `name`.
fn divergence(
    device: &Device,
    name: &str,
    launch: Launch<'_>,
) -> Result<Divergence, Box<dyn std::error::Error>> {
    match fault(device, launch)? {
        Error::Kernel(KernelError::BarrierDivergence {
            kernel, block: [1, 0, 0], waiting, exited, ..
        }) if kernel.ends_with(name) => Ok((waiting, exited)),
        other => Err(format!("another error: {other}").into()),
    }
}

fn a_barrier_that_some_threads_skip_names_both_groups(device: &Device) -> Outcome {
    if device.is_cuda() {
        return not_for_this_device(ON_A_GPU);
    }
    let launch = |stream: &Stream| faults::barrier_for_some(stream, grid());
    let (waiting, exited) = divergence(device, "barrier_for_some", &launch)?;
    let [even] = &waiting[..] else { return Err(format!("{waiting:?}").into()) };
    is_at(even.place, "barrier_for_some")?;
    expect("those that wait", &even.threads, &places((0..64).step_by(2)))?;
    expect("those that exited", exited, places((1..64).step_by(2)))
}

fn threads_at_different_barriers_are_distinguished(device: &Device) -> Outcome {
    if device.is_cuda() {
        return not_for_this_device(ON_A_GPU);
    }
    let launch = |stream: &Stream| faults::two_barriers(stream, grid());
    let (waiting, exited) = divergence(device, "two_barriers", &launch)?;
    let [even, odd] = &waiting[..] else { return Err(format!("{waiting:?}").into()) };
    is_at(even.place, "two_barriers, even")?;
    is_at(odd.place, "two_barriers, odd")?;
    expect("those at the first", &even.threads, &places((0..64).step_by(2)))?;
    expect("those at the second", &odd.threads, &places((1..64).step_by(2)))?;
    expect("those that exited", exited, vec![])
}

fn threads_that_return_before_a_barrier_are_named(device: &Device) -> Outcome {
    if device.is_cuda() {
        return not_for_this_device(ON_A_GPU);
    }
    let launch = |stream: &Stream| faults::early_return(stream, grid());
    let (waiting, exited) = divergence(device, "early_return", &launch)?;
    let [rest] = &waiting[..] else { return Err(format!("{waiting:?}").into()) };
    is_at(rest.place, "early_return")?;
    expect("those that wait", &rest.threads, &places(0..40))?;
    expect("those that exited", exited, places(40..64))
}

fn a_block_that_ends_before_a_barrier_of_the_grid_is_named(device: &Device) -> Outcome {
    if device.is_cuda() {
        return not_for_this_device(ON_A_GPU);
    }
    let launch = |stream: &Stream| faults::missing_block(stream, grid());
    match fault(device, &launch)? {
        Error::Kernel(KernelError::BlockDivergence {
            place,
            waiting,
            waiting_blocks,
            ended,
            ended_blocks,
            ..
        }) => {
            is_at(place, "missing_block")?;
            expect("those that wait", (waiting, waiting_blocks), ([0, 0, 0], 2))?;
            expect("those that ended", (ended, ended_blocks), ([1, 0, 0], 1))
        }
        other => Err(format!("another error: {other}").into()),
    }
}

/// The missing lanes that lanes of block 1 wait for.
struct Lane {
    thread: [u32; 3],
    mask: u32,
    place: SourcePlace,
    lane: u32,
    fault: LaneFault,
}

fn lane(device: &Device, name: &str, launch: Launch<'_>) -> Result<Lane, Box<dyn std::error::Error>> {
    match fault(device, launch)? {
        Error::Kernel(KernelError::WarpDivergence {
            kernel,
            block: [1, 0, 0],
            thread,
            mask,
            place,
            lane,
            fault,
            ..
        }) if kernel.ends_with(name) => Ok(Lane { thread, mask, place, lane, fault }),
        other => Err(format!("another error: {other}").into()),
    }
}

fn with_output(
    kernel: impl Fn(&Stream, &mut DeviceBuffer<u32>) -> ferrogrid::Result<()>,
) -> impl Fn(&Stream) -> ferrogrid::Result<()> {
    move |stream| kernel(stream, &mut stream.zeros::<u32>(192)?)
}

fn a_shuffle_with_an_exited_lane_names_it(device: &Device) -> Outcome {
    if device.is_cuda() {
        return not_for_this_device(ON_A_GPU);
    }
    let launch = with_output(|stream, y| faults::exited_lane(stream, grid(), y));
    let found = lane(device, "exited_lane", &launch)?;
    is_at(found.place, "exited_lane")?;
    expect("lane", (found.lane, found.fault, found.mask), (5, LaneFault::Exited, u32::MAX))?;
    // The first thread that arrives after lane 5 has exited.
    expect("thread", found.thread, [6, 0, 0])
}

fn lanes_in_different_operations_are_distinguished(device: &Device) -> Outcome {
    if device.is_cuda() {
        return not_for_this_device(ON_A_GPU);
    }
    let launch = with_output(|stream, y| faults::other_operation(stream, grid(), y));
    let found = lane(device, "other_operation", &launch)?;
    let LaneFault::OtherOperation { place } = found.fault else {
        return Err(format!("another fault: {}", found.fault).into());
    };
    // The last lane detects that the first waits at another place.
    is_at(found.place, "other_operation, high")?;
    is_at(place, "other_operation, low")?;
    expect("lanes", (found.thread, found.lane), ([31, 0, 0], 0))
}

fn lanes_with_different_masks_are_distinguished(device: &Device) -> Outcome {
    if device.is_cuda() {
        return not_for_this_device(ON_A_GPU);
    }
    let launch = with_output(|stream, y| faults::other_mask(stream, grid(), y));
    let found = lane(device, "other_mask", &launch)?;
    let LaneFault::OtherMask { mask, place } = found.fault else {
        return Err(format!("another fault: {}", found.fault).into());
    };
    is_at(found.place, "other_mask, tile")?;
    is_at(place, "other_mask, warp")?;
    expect("lanes", (found.thread, found.mask, found.lane, mask), ([0, 0, 0], 0xff, 3, u32::MAX))
}

fn a_lane_at_a_barrier_is_named(device: &Device) -> Outcome {
    if device.is_cuda() {
        return not_for_this_device(ON_A_GPU);
    }
    let launch = |stream: &Stream| faults::lane_at_a_barrier(stream, grid());
    let found = lane(device, "lane_at_a_barrier", &launch)?;
    let LaneFault::AtBarrier { place } = found.fault else {
        return Err(format!("another fault: {}", found.fault).into());
    };
    is_at(found.place, "lane_at_a_barrier, warp")?;
    is_at(place, "lane_at_a_barrier, barrier")?;
    expect("lanes", (found.thread, found.lane), ([0, 0, 0], 3))
}

/// Fails unless `launch` panics in thread 21 of block 1 at the line called `name`.
fn panics_in_21(device: &Device, name: &str, text: &str, launch: Launch<'_>) -> Outcome {
    match fault(device, launch)? {
        Error::KernelPanic { kernel, message, file, line, block, thread, .. } => {
            expect("message", &*message, text)?;
            expect("place", (&*file, line), (FILE, line_of(name)))?;
            expect("kernel", kernel.rsplit("::").next(), Some(name))?;
            expect("thread", (block, thread), ([1, 0, 0], [21, 0, 0]))
        }
        other => Err(format!("another error: {other}").into()),
    }
}

fn an_index_out_of_bounds_names_its_thread(device: &Device) -> Outcome {
    if device.is_cuda() {
        return not_for_this_device("a panic belongs to the whole GPU: `a_panic_says_what_and_where`");
    }
    let launch = |stream: &Stream| {
        let (x, mut y) = (stream.upload(&[7_u32; 5])?, stream.zeros::<u32>(192)?);
        faults::out_of_bounds(stream, grid(), &x, &mut y)
    };
    panics_in_21(device, "out_of_bounds", "index out of bounds: the len is 5 but the index is 5", &launch)
}

fn integer_overflow_is_an_error_in_debug_builds(device: &Device) -> Outcome {
    if device.is_cuda() {
        return not_for_this_device("integers wrap on a GPU unless the build step is told otherwise");
    }
    let launch = |stream: &Stream| {
        let (x, mut y) = (stream.upload(&[2_u32])?, stream.zeros::<u32>(192)?);
        faults::overflow(stream, grid(), &x, &mut y)
    };
    if cfg!(debug_assertions) {
        return panics_in_21(device, "overflow", "attempt to add with overflow", &launch);
    }
    let stream = device.new_stream()?;
    let (x, mut y) = (stream.upload(&[2_u32])?, stream.zeros::<u32>(192)?);
    faults::overflow(&stream, grid(), &x, &mut y)?;
    let expected = (0..192).map(|thread| if thread == 64 + 21 { 1 } else { 4 }).collect();
    expect("sums that wrap", stream.download(&y)?, expected)
}

fn a_panic_between_barriers_is_the_error_and_not_the_wait(device: &Device) -> Outcome {
    if device.is_cuda() {
        return not_for_this_device(
            "a panic belongs to the whole GPU: `a_panic_does_not_hang_those_who_wait`",
        );
    }
    let launch = |stream: &Stream| {
        let (x, mut y) = (stream.upload(&[64_u32])?, stream.zeros::<u32>(192)?);
        faults::panic_between_barriers(stream, grid(), &x, &mut y)
    };
    panics_in_21(device, "panic_between_barriers", "32 of 64 are odd", &launch)
}

/// The block and the thread that used up a stack, and its size.
type UsedUp = ([u32; 3], Option<[u32; 3]>, usize);

/// The stack overflow of kernel `name`.
fn used_up(device: &Device, name: &str, launch: Launch<'_>) -> Result<UsedUp, Box<dyn std::error::Error>> {
    match fault(device, launch)? {
        Error::Kernel(KernelError::KernelStackOverflow { kernel, file, block, thread, bytes, .. })
            if kernel.ends_with(name) =>
        {
            expect("file", file, FILE)?;
            Ok((block, thread, bytes))
        }
        other => Err(format!("another error: {other}").into()),
    }
}

const ONLY_LINUX: &str = "the process ends, with a message, on other systems than x86-64 Linux";
const LEAVES_OVERFLOWS: bool = cfg!(all(target_os = "linux", target_arch = "x86_64"));

fn a_stack_that_is_used_up_is_an_error(device: &Device) -> Outcome {
    if device.is_cuda() || !LEAVES_OVERFLOWS {
        return not_for_this_device(if device.is_cuda() { ON_A_GPU } else { ONLY_LINUX });
    }
    let launch = |stream: &Stream| {
        let (x, mut y) = (stream.upload(&[u32::MAX])?, stream.zeros::<u32>(192)?);
        faults::deep_between_barriers(stream, grid(), &x, &mut y)
    };
    let found = used_up(device, "deep_between_barriers", &launch)?;
    expect("block, thread and size", found, ([1, 0, 0], Some([21, 0, 0]), 256 * 1024))
}

fn a_stack_that_is_used_up_by_a_kernel_that_never_waits_is_an_error(device: &Device) -> Outcome {
    if device.is_cuda() || !LEAVES_OVERFLOWS {
        return not_for_this_device(if device.is_cuda() { ON_A_GPU } else { ONLY_LINUX });
    }
    let launch = |stream: &Stream| {
        let (x, mut y) = (stream.upload(&[u32::MAX])?, stream.zeros::<u32>(192)?);
        faults::deep_alone(stream, grid(), &x, &mut y)
    };
    let found = used_up(device, "deep_alone", &launch)?;
    // Without debug assertions the running thread of such a kernel is not recorded.
    let thread = cfg!(debug_assertions).then_some([21, 0, 0]);
    expect("block, thread and size", found, ([1, 0, 0], thread, 2 * 1024 * 1024))
}
