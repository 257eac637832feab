//! Copies and computation at the same time: chunks go to the device, through a kernel, and back, on three
//! streams; and on one stream, to show the gain from overlap.

use std::time::Instant;

use ferrogrid::StreamScope;
use ferrogrid::prelude::*;

use crate::Outcome;
use crate::cpp::Cpp;
use crate::kernels::device as kernels;
use crate::turns::duel;

const CHUNKS: usize = 16;
/// Elements of a chunk: 16 MiB.
const LENGTH: usize = 4 << 20;
/// About as long on an H200 as the copy of a chunk takes in one direction.
const KERNEL_ROUNDS: u32 = 2000;
const ROUNDS: usize = 21;
const INITIAL: f32 = 3.0;

pub fn pipeline(device: &Device, cpp: &Cpp) -> Outcome<()> {
    let streams = [device.new_stream()?, device.new_stream()?, device.new_stream()?];
    let input = device.pinned_copy(&vec![INITIAL; CHUNKS * LENGTH])?;
    let mut output = device.pinned_zeros::<f32>(CHUNKS * LENGTH)?;
    let mut theirs_output = device.pinned_zeros::<f32>(CHUNKS * LENGTH)?;
    let buffers =
        || (0..CHUNKS).map(|_| streams[0].zeros::<f32>(LENGTH)).collect::<ferrogrid::Result<Vec<_>>>();
    let (mut own, mut others) = (buffers()?, buffers()?);
    let kernel = cpp.kernel(kernels::chain::kernel())?;
    streams[0].synchronize()?;
    for (name, lanes) in [("pipeline_3_streams", [0, 1, 2]), ("pipeline_1_stream", [0, 0, 0])] {
        let lanes = lanes.map(|lane| &streams[lane]);
        output.fill(f32::NAN);
        theirs_output.fill(f32::NAN);
        let ours = || {
            let start = Instant::now();
            overlapped(lanes, &input, &mut output, &mut own)?;
            Ok(start.elapsed().as_secs_f64())
        };
        // SAFETY: `chain` is such a kernel.
        let theirs = || unsafe {
            cpp.pipeline(&kernel, &input, &mut theirs_output, &mut others, KERNEL_ROUNDS, &lanes)
        };
        duel(name, ROUNDS, 1.0, ours, theirs)?;
        check(&output)?;
        check(&theirs_output)?;
    }
    Ok(())
}

/// Returns when all chunks are back.
fn overlapped(
    [a, b, c]: [&Stream; 3],
    input: &[f32],
    output: &mut [f32],
    buffers: &mut [DeviceBuffer<f32>],
) -> ferrogrid::Result<()> {
    a.scope(|a| {
        b.scope(|b| {
            c.scope(|c| {
                let chunks = input.chunks(LENGTH).zip(output.chunks_mut(LENGTH)).zip(buffers);
                for (index, ((from, to), buffer)) in chunks.enumerate() {
                    match index % 3 {
                        0 => stage(a, from, to, buffer)?,
                        1 => stage(b, from, to, buffer)?,
                        _ => stage(c, from, to, buffer)?,
                    }
                }
                Ok(())
            })?
        })?
    })?
}

fn stage<'scope>(
    scope: &'scope StreamScope<'scope, '_>,
    from: &'scope [f32],
    to: &'scope mut [f32],
    buffer: &mut DeviceBuffer<f32>,
) -> ferrogrid::Result<()> {
    scope.upload_into(from, &mut *buffer)?;
    kernels::chain(scope.stream(), Grid::cover(LENGTH), KERNEL_ROUNDS, 0.999, 0.001, &mut *buffer)?;
    scope.download_into(&*buffer, to)
}

/// All elements went through the kernel once.
fn check(output: &[f32]) -> Outcome<()> {
    let expected = (0..KERNEL_ROUNDS).fold(INITIAL, |value, _| value.mul_add(0.999, 0.001));
    match output.iter().position(|value| *value != expected) {
        None => Ok(()),
        Some(place) => Err(format!("element {place} is {}, not {expected}", output[place]).into()),
    }
}
