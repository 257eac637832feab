//! Buffers and events shared by two processes. The other process is this program, started for a single case.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

#[cfg(unix)]
use ferrogrid::PoolOptions;
use ferrogrid::prelude::*;
use ferrogrid::{EventOptions, IpcError, IpcEventHandle, IpcMemoryHandle};

use crate::language::kernels::elementwise;
use crate::own_process;
use crate::runtime::Gate;
use crate::table::not_for_this_device;
use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("two_processes_use_a_buffer_in_turns", two_processes_use_a_buffer_in_turns),
    ("an_event_orders_two_processes", an_event_orders_two_processes),
    ("wrong_ipc_handles_are_refused", wrong_ipc_handles_are_refused),
    ("two_processes_share_a_pool", two_processes_share_a_pool),
];

/// The cases of the other process.
pub(crate) const APART: &[Case] = &[(OTHER, other_process), (OPENS_A_POOL, opens_a_pool)];

const OPENS_A_POOL: &str = "opens_a_pool";

const OTHER: &str = "other_process";

/// The handles for the other process: of a buffer, and optionally of an event.
const HANDLES: &str = "FERROGRID_CONFORMANCE_IPC";

/// The other process's message when it has opened all handles.
const READY: &str = "ready";

/// Its message when it has enqueued its work.
const ENQUEUED: &str = "enqueued";

/// The time limit of the other process.
const PATIENCE: Duration = Duration::from_secs(30);

const LENGTH: usize = 100_000;

fn start_other(device: &Device, handles: &[Vec<u8>]) -> Result<Child, Box<dyn std::error::Error>> {
    let hex = |bytes: &Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let handles: Vec<String> = handles.iter().map(hex).collect();
    let mut command = own_process::command(device, OTHER)?;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok(command.env(HANDLES, handles.join(",")).spawn()?)
}

/// Adds one to all elements of the buffer that it gets, when it is told to; after the event, if it gets one.
fn other_process(device: &Device) -> Outcome {
    let handles = std::env::var(HANDLES)?;
    let bytes = |hex: &str| -> Result<Vec<u8>, std::num::ParseIntError> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16)).collect()
    };
    let mut handles = handles.split(',');
    let memory = IpcMemoryHandle::from_bytes(&bytes(handles.next().unwrap_or_default())?)?;
    let event = handles.next().map(bytes).transpose()?;
    let event = event.map(|bytes| IpcEventHandle::from_bytes(&bytes)).transpose()?;
    let event = event.map(|handle| device.ipc_open_event(&handle)).transpose()?;
    let stream = device.new_stream()?;
    // SAFETY: the elements are `u32`; the first process waits for this one before it uses or drops it.
    let mut buffer = unsafe { stream.ipc_open::<u32>(&memory)? };
    expect("the length", buffer.len(), LENGTH)?;
    // The first launch loads the kernels, which may wait for all work of the device: the first process's, too.
    elementwise::increment(&stream, Grid::new(1, 1), &mut stream.zeros(1)?)?;
    stream.synchronize()?;
    println!("{READY}");
    std::io::stdout().flush()?;
    std::io::stdin().read_line(&mut String::new())?;
    if let Some(event) = &event {
        stream.wait(event)?;
    }
    elementwise::increment(&stream, Grid::cover(LENGTH), &mut buffer)?;
    println!("{ENQUEUED}");
    std::io::stdout().flush()?;
    stream.synchronize()?;
    Ok(())
}

/// Waits until the other process is ready, calls `work`, keeps its result until the other process has
/// enqueued its own work, and waits for the end of that process.
fn with_other<T>(
    device: &Device,
    handles: &[Vec<u8>],
    work: impl FnOnce() -> Result<T, Box<dyn std::error::Error>>,
) -> Outcome {
    let mut other = start_other(device, handles)?;
    let (output, mut input) =
        (other.stdout.take().ok_or("no output")?, other.stdin.take().ok_or("no input")?);
    let (tell, told) = channel();
    // Until the other process ends, and `told` with it.
    std::thread::spawn(move || {
        BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| tell.send(line))
    });
    let ready = told.recv_timeout(PATIENCE);
    let worked = work();
    let asked = writeln!(input);
    let enqueued = told.recv_timeout(PATIENCE);
    // Work that does not wait runs meanwhile.
    std::thread::sleep(Duration::from_millis(100));
    let worked = worked.map(drop);
    let ended = told.recv_timeout(PATIENCE);
    if ended != Err(RecvTimeoutError::Disconnected) {
        other.kill()?;
    }
    let output = other.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    expect(&format!("what the other process says ({said})"), ready?.as_str(), READY)?;
    worked?;
    asked?;
    expect(&format!("what the other process says then ({said})"), enqueued?.as_str(), ENQUEUED)?;
    expect(&format!("the end of the other process ({said})"), output.status.success(), true)
}

fn two_processes_use_a_buffer_in_turns(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut buffer = stream.ipc_zeros::<u32>(LENGTH)?;
    expect("new", stream.download(&buffer)?, vec![0; LENGTH])?;
    for round in 1..=2 {
        with_other(device, &[buffer.ipc_handle().to_bytes()], || Ok(()))?;
        expect("after the other process", stream.download(&buffer)?, vec![2 * round - 1; LENGTH])?;
        elementwise::increment(&stream, Grid::cover(LENGTH), &mut buffer)?;
        stream.synchronize()?;
    }
    expect("at the end", stream.download(buffer.view())?, vec![4; LENGTH])
}

fn an_event_orders_two_processes(device: &Device) -> Outcome {
    let event = device.new_event(EventOptions::new().interprocess());
    if !device.is_cuda() {
        let text = expect_error("an event", event, |error| matches!(error, Error::Unsupported { .. }))?;
        names(&text, &["several processes", &device.to_string()])?;
        return not_for_this_device("its events live in one process");
    }
    let event = event?;
    let stream = device.new_stream()?;
    let mut buffer = stream.ipc_zeros::<u32>(LENGTH)?;
    let handles = [buffer.ipc_handle().to_bytes(), event.ipc_handle()?.to_bytes()];
    with_other(device, &handles, || {
        // Opened once the other process has enqueued its work, which would not wait by itself.
        let gate = Gate::close(&stream)?;
        stream.fill_into(10, &mut buffer)?;
        stream.record_into(&event)?;
        Ok(gate)
    })?;
    let found = stream.download(&buffer)?;
    expect("elements", found == vec![11; LENGTH], true)
}

fn wrong_ipc_handles_are_refused(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let empty = stream.ipc_zeros::<u32>(0).map(drop);
    expect("an empty buffer", empty, Err(Error::Ipc(IpcError::Empty)))?;
    let huge = stream.ipc_zeros::<u64>(usize::MAX / 4).map(drop);
    expect_error("a huge buffer", huge, |error| matches!(error, Error::SizeOverflow { .. }))?;

    let buffer = stream.ipc_zeros::<u8>(1000)?;
    // SAFETY: refused.
    let odd = unsafe { stream.ipc_open::<[u8; 3]>(buffer.ipc_handle()) }.map(drop);
    let text = expect_error("other elements", odd, |error| {
        matches!(error, Error::Ipc(IpcError::Elements { bytes: 1000, element_size: 3, .. }))
    })?;
    names(&text, &["1000 bytes", "[u8; 3]"])?;

    // A handle of the other kind of device: the bytes name no memory, but state their kind.
    let other_kind = match device.is_cuda() {
        true => Device::cpu().new_stream()?.ipc_zeros::<u8>(8)?.ipc_handle().clone(),
        false => IpcMemoryHandle::from_bytes(&[&b"FGm1\x08\0\0\0\0\0\0\0"[..], &[0; 64]].concat())?,
    };
    // SAFETY: refused.
    let opened = unsafe { stream.ipc_open::<u8>(&other_kind) }.map(drop);
    let text = expect_error("another kind", opened, |error| {
        matches!(error, Error::Ipc(IpcError::OtherKind { .. }))
    })?;
    names(&text, &[&device.to_string()])?;

    let gone = buffer.ipc_handle().clone();
    drop(buffer);
    stream.synchronize()?;
    // SAFETY: refused.
    let opened = unsafe { stream.ipc_open::<u8>(&gone) }.map(drop);
    expect_error("a buffer that is gone", opened, |error| {
        matches!(
            error,
            Error::Ipc(IpcError::Gone { .. }) | Error::Driver { operation: "cuIpcOpenMemHandle", .. }
        )
    })?;

    let private = device.new_event(EventOptions::new().without_timing())?.ipc_handle();
    expect_error("an event for one process", private, |error| {
        matches!(error, Error::Ipc(IpcError::NotInterprocess) | Error::Unsupported { .. })
    })?;
    Ok(())
}

/// The pool is passed as the standard input, its buffers as bytes.
#[cfg(unix)]
fn two_processes_share_a_pool(device: &Device) -> Outcome {
    let pool = match device.new_memory_pool(PoolOptions::new().shareable()) {
        Err(Error::Unsupported { .. }) => return not_for_this_device("it shares no pools"),
        pool => pool?,
    };
    let stream = device.new_stream()?;
    let mut buffers = [pool.fill(&stream, 1_u32, LENGTH)?, pool.fill(&stream, 5_u32, LENGTH)?];
    for round in 1..=2 {
        stream.synchronize()?;
        let handles = [pool.ipc_handle(&buffers[0])?, pool.ipc_handle(&buffers[1])?];
        let hex = handles
            .map(|handle| handle.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        let mut command = own_process::command(device, OPENS_A_POOL)?;
        let output = command.env(HANDLES, hex.join(",")).stdin(Stdio::from(pool.share()?)).output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        expect(&format!("the end of the other process ({said})"), output.status.success(), true)?;
        for (buffer, first) in buffers.iter_mut().zip([1, 5]) {
            expect(
                "what the other process wrote",
                stream.download(&*buffer)?,
                vec![first + 2 * round - 1; LENGTH],
            )?;
            elementwise::increment(&stream, Grid::cover(LENGTH), buffer)?;
        }
    }
    Ok(())
}

/// Adds one to all elements of the given buffers.
#[cfg(unix)]
fn opens_a_pool(device: &Device) -> Outcome {
    let pool = device.open_memory_pool(std::io::stdin())?;
    let stream = device.new_stream()?;
    for hex in std::env::var(HANDLES)?.split(',') {
        let bytes: Result<Vec<u8>, _> =
            (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16)).collect();
        // SAFETY: the elements are `u32`, and written; the first process waits for this one.
        let mut buffer = unsafe { pool.open::<u32>(&stream, &IpcMemoryHandle::from_bytes(&bytes?)?)? };
        elementwise::increment(&stream, Grid::cover(LENGTH), &mut buffer)?;
    }
    drop(pool);
    stream.synchronize()?;
    Ok(())
}

#[cfg(not(unix))]
fn two_processes_share_a_pool(_: &Device) -> Outcome {
    not_for_this_device("pools are shared by file descriptors")
}

#[cfg(not(unix))]
fn opens_a_pool(_: &Device) -> Outcome {
    not_for_this_device("pools are shared by file descriptors")
}
