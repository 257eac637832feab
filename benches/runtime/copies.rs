//! Copies between page-locked memory and the device, each with its wait, on the same memory.

use std::time::Instant;

use ferrogrid::PinnedBuffer;
use ferrogrid::prelude::*;

use crate::Outcome;
use crate::cpp::Cpp;
use crate::turns::duel;

/// Bytes, copies in a round, rounds.
const SIZES: [(usize, u32, usize); 3] = [(64 << 10, 50, 101), (8 << 20, 4, 51), (256 << 20, 1, 21)];

pub fn copies(device: &Device, cpp: &Cpp) -> Outcome<()> {
    let stream = device.new_stream()?;
    for (bytes, count, rounds) in SIZES {
        let mut buffer = stream.zeros::<u8>(bytes)?;
        let mut host = device.pinned_zeros::<u8>(bytes)?;
        fastrand::fill(&mut host);
        stream.synchronize()?;
        let (on_host, on_device) = (host.as_mut_ptr().cast(), buffer.as_device_ptr_mut().as_raw().cast());
        let mut host = Some(host);
        let name = |direction: &str| format!("pinned_{direction}_{}_KiB", bytes >> 10);

        let ours = || timed(&mut host, count, |host| stream.upload_async(host, &mut buffer)?.wait());
        // SAFETY: both have these bytes; no other code uses them between the rounds.
        let theirs = || unsafe { cpp.copies(on_device, on_host, bytes, &stream, count) };
        duel(&name("upload"), rounds, count.into(), ours, theirs)?;

        let ours = || timed(&mut host, count, |host| stream.download_async(&buffer, host)?.wait());
        // SAFETY: as above.
        let theirs = || unsafe { cpp.copies(on_host, on_device, bytes, &stream, count) };
        duel(&name("download"), rounds, count.into(), ours, theirs)?;

        // The same memory, lent to a scope rather than given away.
        let mut host = host.take().ok_or("the memory was lost in a failed copy")?;
        let ours = || {
            let start = Instant::now();
            (0..count).try_for_each(|_| stream.scope(|scope| scope.upload_into(&host, &mut buffer))?)?;
            Ok(start.elapsed().as_secs_f64())
        };
        // SAFETY: as above.
        let theirs = || unsafe { cpp.copies(on_device, on_host, bytes, &stream, count) };
        duel(&name("scoped_upload"), rounds, count.into(), ours, theirs)?;
        let ours = || {
            let start = Instant::now();
            (0..count).try_for_each(|_| stream.scope(|scope| scope.download_into(&buffer, &mut host))?)?;
            Ok(start.elapsed().as_secs_f64())
        };
        // SAFETY: as above.
        let theirs = || unsafe { cpp.copies(on_host, on_device, bytes, &stream, count) };
        duel(&name("scoped_download"), rounds, count.into(), ours, theirs)?;
    }
    Ok(())
}

/// Seconds for `count` copies, each of which takes and returns the host memory.
fn timed(
    host: &mut Option<PinnedBuffer<u8>>,
    count: u32,
    mut copy: impl FnMut(PinnedBuffer<u8>) -> ferrogrid::Result<PinnedBuffer<u8>>,
) -> Outcome<f64> {
    let start = Instant::now();
    for _ in 0..count {
        *host = Some(copy(host.take().ok_or("the memory was lost in a failed copy")?)?);
    }
    Ok(start.elapsed().as_secs_f64())
}
