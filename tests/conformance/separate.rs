//! Cases that may leave a device's context unusable, so each runs in a process of its own. It must
//! not know how the others run.

use std::process::{Command, ExitCode};

use ferrogrid::prelude::*;

use super::kernels::elementwise;
use super::{Case, Outcome, expect, label, names};

pub(crate) const CASES: &[Case] =
    &[("reading_out_of_bounds_is_an_error", |device| in_its_own_process(device, "reading_out_of_bounds"))];

const REQUEST: &str = "FERROGRID_CONFORMANCE_SEPARATE";

/// The case that this process was started for, if it was.
pub(crate) fn requested() -> Option<String> {
    std::env::var(REQUEST).ok()
}

fn in_its_own_process(device: &Device, case: &str) -> Outcome {
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
    let outcome = match request.split_once('/') {
        Some((wanted, "reading_out_of_bounds")) => Device::all()
            .iter()
            .find(|device| label(device) == wanted)
            .map_or_else(|| Err("no such device".into()), reading_out_of_bounds),
        _ => Err(format!("no case {request:?}").into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn reading_out_of_bounds(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let input = stream.upload(&[1_u32; 10])?;
    let mut output = stream.upload(&[0_u32; 1000])?;
    elementwise::read_beyond_the_end(&stream, Grid::cover(1000).with_block(64), 777, &input, &mut output)?;
    let error = match stream.synchronize() {
        Ok(()) => return Err("the kernel read beyond the end and nobody noticed".into()),
        Err(error) => error,
    };
    let text = error.to_string();
    names(&text, &["read_beyond_the_end"])?;
    match error {
        Error::KernelPanic { .. } if !device.is_cuda() => {
            names(
                &text,
                &["kernels.rs", "len is 10", "index is 10", "block (12, 0, 0)", "thread (9, 0, 0)"],
            )?;
            still_usable(&stream)
        }
        Error::LaunchFailed { .. } if device.is_cuda() => Ok(()),
        other => Err(format!("another error: {other:?}").into()),
    }
}

/// On the CPU a failed kernel leaves the device as it was.
fn still_usable(stream: &Stream) -> Outcome {
    let mut data = stream.upload(&[1_u32; 10])?;
    elementwise::increment(stream, Grid::cover(10), &mut data)?;
    expect("elements", stream.download(&data)?, vec![2; 10])
}
