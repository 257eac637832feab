//! Cases that run in a separate process, because they may leave a device's context unusable or create
//! another.

use std::process::{Command, ExitCode};
use std::ptr::null_mut;

use cudarc::driver::sys;
use ferrogrid::prelude::*;

use crate::block::clusters;
use crate::devices::{self, label};
use crate::failure::failure_kernels::panics;
use crate::failure::{failures, outcomes};
use crate::graph::loops;
use crate::language::kernels::{elementwise, ranks};
use crate::launch::{ipc, several_devices, stress};
use crate::memory::access::strides;
use crate::memory::variables::constant_kernels::constants;
use crate::memory::zero_copy;
use crate::table::{self, Verdict, not_for_this_device};
use crate::{Case, Outcome, expect, expect_error, names, runtime};

pub(crate) const CASES: &[Case] = &[
    ("reading_where_nothing_is", |device| match device.is_cuda() {
        true => in_its_own_process(device, "reading_where_nothing_is"),
        false => not_for_this_device("it would end the process"),
    }),
    ("a_gpu_is_usable_after_a_reset", |device| match device.is_cuda() {
        true => in_its_own_process(device, "a_gpu_is_usable_after_a_reset"),
        false => not_for_this_device("it is not reset"),
    }),
    ("after_a_failure_a_reset_works_or_is_unsupported", |device| match device.is_cuda() {
        true => in_its_own_process(device, "after_a_failure_a_reset_works_or_is_unsupported"),
        false => not_for_this_device("no failure outlasts its work there"),
    }),
    ("a_stream_of_another_context_is_refused", |device| match device.is_cuda() {
        true => in_its_own_process(device, "a_stream_of_another_context_is_refused"),
        false => not_for_this_device("it has no contexts"),
    }),
    ("a_module_is_unloaded_and_loaded_again", |device| {
        in_its_own_process(device, "a_module_is_unloaded_and_loaded_again")
    }),
];

/// The cases, as they run in their processes.
const APART: &[Case] = &[
    ("reading_where_nothing_is", reading_where_nothing_is),
    ("a_gpu_is_usable_after_a_reset", a_gpu_is_usable_after_a_reset),
    ("after_a_failure_a_reset_works_or_is_unsupported", after_a_failure_a_reset_works_or_is_unsupported),
    ("a_stream_of_another_context_is_refused", a_stream_of_another_context_is_refused),
    ("a_module_is_unloaded_and_loaded_again", a_module_is_unloaded_and_loaded_again),
];

/// These change a GPU for the rest of the process: access to its peers stays enabled.
const CHANGING: [&str; 2] =
    ["kernels_use_the_memory_of_a_peer", "peer_access_lets_streams_use_other_buffers"];

/// Runs `case`: here, or in a separate process if it would affect others.
pub(crate) fn case(device: &Device, (name, case): Case) -> Outcome {
    if device.is_cuda() && CHANGING.contains(&name) { in_its_own_process(device, name) } else { case(device) }
}

const REQUEST: &str = "FERROGRID_CONFORMANCE_SEPARATE";

/// The exit code of a case that does not apply to its device, as in Automake's test suites.
const NOT_FOR_THIS_DEVICE: u8 = 77;

/// The case that this process was started for, if any.
pub(crate) fn requested() -> Option<String> {
    std::env::var(REQUEST).ok()
}

/// A process that runs `case` on `device`, and no other.
pub(crate) fn command(device: &Device, case: &str) -> std::io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.env(REQUEST, format!("{}/{case}", label(device)));
    Ok(command)
}

pub(crate) fn in_its_own_process(device: &Device, case: &str) -> Outcome {
    let output = command(device, case)?.output()?;
    if output.status.success() {
        return Ok(());
    }
    if output.status.code() == Some(NOT_FOR_THIS_DEVICE.into()) {
        return not_for_this_device(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    Err(format!(
        "{}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
    .into())
}

/// Runs the case that `request` names, `device/case`.
pub(crate) fn run(request: &str) -> ExitCode {
    let outcome = find_and_run(request);
    match (table::verdict(&outcome), outcome) {
        (Verdict::NotHere(reason), _) => {
            println!("{reason}");
            ExitCode::from(NOT_FOR_THIS_DEVICE)
        }
        (_, Err(error)) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
        (_, Ok(())) => ExitCode::SUCCESS,
    }
}

fn find_and_run(request: &str) -> Outcome {
    let (wanted, name) = request.split_once('/').ok_or_else(|| format!("no request: {request:?}"))?;
    let known = devices::all().iter().find(|(label, _)| label == wanted);
    let (_, device) = known.ok_or("no such device")?;
    let apart = [
        APART,
        failures::APART,
        clusters::APART,
        ipc::APART,
        loops::APART,
        outcomes::APART,
        stress::APART,
        strides::APART,
        several_devices::CASES,
        zero_copy::APART,
    ];
    let (_, case) = apart
        .iter()
        .chain(runtime::CASES)
        .copied()
        .flatten()
        .find(|(known, _)| *known == name)
        .ok_or_else(|| format!("no case {name:?}"))?;
    case(device)
}

/// A read far beyond all memory of the device fails, and takes the context along.
fn reading_where_nothing_is(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let input = stream.upload(&[0_u16; 10])?;
    let mut output = stream.upload(&[0_u16; 10])?;
    let (from, to) = (input.as_device_ptr(), output.as_device_ptr_mut());
    // SAFETY: none, as the first thread reads gigabytes beyond `input`: the case checks that this is
    // detected, in a process that ends after it.
    unsafe { ranks::reverse(&stream, Grid::new(1, 1), u32::MAX, from, to)? };
    let launched = format!("`{}` at {}:{}:", ranks::reverse::kernel().name(), file!(), line!() - 1);
    match stream.synchronize() {
        Err(error @ Error::LaunchFailed { .. }) => {
            names(&error.to_string(), &[&launched, "cannot be used again"])
        }
        other => Err(format!("expected a failed launch, found {other:?}").into()),
    }
}

/// Kernels, constants and print buffers from before are loaded again.
fn a_gpu_is_usable_after_a_reset(device: &Device) -> Outcome {
    let mut device = device.clone();
    for _ in 0..3 {
        let stream = device.new_stream()?;
        let mut data = stream.upload(&[1_u32, 2, 3])?;
        elementwise::increment(&stream, Grid::cover(3), &mut data)?;
        let mut weights = stream.zeros::<f32>(5)?;
        constants::weights(&stream, Grid::cover(5), &mut weights)?;
        expect("constants", stream.download(&weights)?, vec![1.0, 2.0, 4.0, 8.0, 16.0])?;
        constants::WEIGHTS.set(&stream, &[7.0; 5])?;
        expect("elements", stream.download(&data)?, vec![2, 3, 4])?;
        let (pinned, event) = (device.pinned_zeros::<u32>(3)?, stream.record()?);
        // SAFETY: this process has one thread that uses the device, and no other library does.
        let reset = |device: &Device| unsafe { device.reset() };
        let refused = |error: &Error| matches!(error, Error::HostMemoryInUse { pinned: 1, managed: 0, .. });
        expect_error("a reset", reset(&device), refused)?;
        drop(pinned);
        let fresh = reset(&device)?;
        let is_reset = |error: &Error| matches!(error, Error::DeviceReset { .. });
        expect_error("an old stream", stream.fill(1_u32, 3), is_reset)?;
        expect_error("an old event", event.synchronize(), is_reset)?;
        let launch = elementwise::increment(&fresh.new_stream()?, Grid::cover(3), &mut data);
        expect_error("an old buffer", launch, is_reset)?;
        drop((stream, data, weights, event));
        device = fresh;
    }
    let stream = device.new_stream()?;
    let (values, mut output) = (stream.fill(100_u32, 4)?, stream.zeros::<u32>(32)?);
    panics::formatted(&stream, Grid::new(1, 32), 0, &values, &mut output)?;
    let failed = stream.synchronize();
    expect_error("a panic", failed, |error| matches!(error, Error::KernelPanic { .. })).map(drop)
}

/// Driver 580 creates no new context after an illegal address, by any call.
fn after_a_failure_a_reset_works_or_is_unsupported(device: &Device) -> Outcome {
    reading_where_nothing_is(device)?;
    // SAFETY: this process has one thread that uses the device, and no other library does.
    let reset = || unsafe { device.reset() };
    match reset() {
        Ok(fresh) => expect("after a reset", fresh.new_stream()?.fill(1_u32, 3).is_ok(), true),
        Err(Error::Unsupported { .. }) => {
            expect_error("a second reset", reset(), |error| matches!(error, Error::Unsupported { .. }))?;
            let is_reset = |error: &Error| matches!(error, Error::DeviceReset { .. });
            expect_error("the old device", device.new_stream(), is_reset).map(drop)
        }
        Err(other) => Err(other.into()),
    }
}

/// Kernels that never panic, kernels that have, and constants; on the CPU device nothing is unloaded.
fn a_module_is_unloaded_and_loaded_again(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut data = stream.upload(&[1_u32, 2, 3])?;
    for round in 0..3_u32 {
        elementwise::increment(&stream, Grid::cover(3), &mut data)?;
        let mut weights = stream.zeros::<f32>(5)?;
        constants::weights(&stream, Grid::cover(5), &mut weights)?;
        let expected = if round > 0 && !device.is_cuda() { [7.0; 5] } else { [1.0, 2.0, 4.0, 8.0, 16.0] };
        expect("constants", stream.download(&weights)?, expected.to_vec())?;
        constants::WEIGHTS.set(&stream, &[7.0; 5])?;
        expect("constants", constants::WEIGHTS.get(&stream)?, [7.0; 5])?;
        let (values, mut output) = (stream.fill(100 + round, 4)?, stream.zeros::<u32>(32)?);
        panics::formatted(&stream, Grid::new(1, 32), 0, &values, &mut output)?;
        let failed = stream.synchronize();
        let text = expect_error("a panic", failed, |error| matches!(error, Error::KernelPanic { .. }))?;
        names(&text, &[&format!("{} ", 100 + round), "wörd"])?;
        // SAFETY: this process has one thread that launches kernels, and no graph.
        unsafe { elementwise::increment::kernel().unload(device)? };
    }
    expect("elements", stream.download(&data)?, vec![4, 5, 6])
}

/// A second context of the same GPU, as some libraries create one (`cuCtxCreate`), current while it is used.
fn a_stream_of_another_context_is_refused(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let ordinal = i32::try_from(device.ordinal().ok_or("no GPU")?)?;
    let (mut handle, mut context, mut raw) = (0, null_mut(), null_mut());
    // SAFETY: all three are valid for their calls, which are made with a driver that is initialised.
    unsafe {
        sys::cuDeviceGet(&mut handle, ordinal).result()?;
        sys::cuCtxCreate_v2(&mut context, 0, handle).result()?;
        sys::cuStreamCreate(&mut raw, 0).result()?;
    }
    // SAFETY: it is a stream, and stays so until the end of this function.
    let refused = unsafe { Stream::from_raw(device, raw.cast()) };
    let is_foreign = |error: &Error| matches!(error, Error::ForeignContext { .. });
    names(&expect_error("a stream of another context", refused, is_foreign)?, &["primary context"])?;
    // The device is used as before, in a thread to which the other context is current.
    // SAFETY: the context is live.
    unsafe { sys::cuCtxSetCurrent(context).result()? };
    let mut data = stream.upload(&[1_u32, 2, 3])?;
    // SAFETY: as above.
    unsafe { sys::cuCtxSetCurrent(context).result()? };
    elementwise::increment(&stream, Grid::cover(3), &mut data)?;
    let event = stream.record()?;
    event.synchronize()?;
    expect("complete", event.is_complete()?, true)?;
    expect("data", stream.download(&data)?, vec![2, 3, 4])?;
    // SAFETY: nothing of it is used any more.
    unsafe {
        sys::cuStreamDestroy_v2(raw).result()?;
        sys::cuCtxDestroy_v2(context).result()?;
    }
    Ok(())
}
