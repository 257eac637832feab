//! Cases that may leave a device's context unusable, so each runs in a process of its own. It must
//! not know how the others run.

use std::process::{Command, ExitCode};

use ferrogrid::prelude::*;

use super::kernels::ranks;
use super::{Case, Outcome, failures, label, names};

pub(crate) const CASES: &[Case] =
    &[("reading_where_nothing_is", |device| in_its_own_process(device, "reading_where_nothing_is"))];

/// The same, as they run in their processes.
const APART: &[Case] = &[("reading_where_nothing_is", reading_where_nothing_is)];

const REQUEST: &str = "FERROGRID_CONFORMANCE_SEPARATE";

/// The case that this process was started for, if it was.
pub(crate) fn requested() -> Option<String> {
    std::env::var(REQUEST).ok()
}

pub(crate) fn in_its_own_process(device: &Device, case: &str) -> Outcome {
    let output =
        Command::new(std::env::current_exe()?).env(REQUEST, format!("{}/{case}", label(device))).output()?;
    if output.status.success() {
        return Ok(());
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
    match find_and_run(request) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn find_and_run(request: &str) -> Outcome {
    let (wanted, name) = request.split_once('/').ok_or_else(|| format!("no request: {request:?}"))?;
    let devices = Device::all();
    let device = devices.iter().find(|device| label(device) == wanted).ok_or("no such device")?;
    let mut cases = APART.iter().chain(failures::APART);
    let (_, case) = cases.find(|(known, _)| *known == name).ok_or_else(|| format!("no case {name:?}"))?;
    case(device)
}

/// A read far beyond all memory of the device fails, and takes the context along.
fn reading_where_nothing_is(device: &Device) -> Outcome {
    if !device.is_cuda() {
        return Ok(()); // There it would end the process.
    }
    let stream = device.new_stream()?;
    let input = stream.upload(&[0_u16; 10])?;
    let mut output = stream.upload(&[0_u16; 10])?;
    let (from, to) = (input.as_device_ptr(), output.as_device_ptr_mut());
    // SAFETY: none, as the first thread reads gigabytes behind `input`: the case shows that this is
    // noticed, in a process that ends after it.
    unsafe { ranks::reverse(&stream, Grid::new(1, 1), u32::MAX, from, to)? };
    match stream.synchronize() {
        Err(error @ Error::LaunchFailed { .. }) => {
            names(&error.to_string(), &["reverse", "cannot be used again"])
        }
        other => Err(format!("expected a failed launch, found {other:?}").into()),
    }
}
