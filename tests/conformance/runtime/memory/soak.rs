//! Many allocations, after which the device's memory use is the same as before.
//!
//! `FERROGRID_SOAK` sets how many (10000 without it).

use ferrogrid::{CpuOptions, Device, DeviceBuffer, Result, Stream};

use crate::runtime::{Case, Outcome};

pub(crate) const CASES: &[Case] =
    &[("after_many_allocations_there_is_as_much_memory_as_before", memory_is_as_before)];

const STREAMS: usize = 4;
/// The number of buffers alive at the same time.
const LIVE: usize = 64;
const MOST_BYTES: usize = 1 << 20;

/// Bytes that buffers use, that the pool holds, and that the device has free (if no other process uses the device).
#[derive(Debug, PartialEq, Eq)]
struct Memory {
    used: u64,
    reserved: u64,
    free: Option<u64>,
}

impl Memory {
    fn of(device: &Device) -> Result<Self> {
        device.synchronize()?;
        device.memory_pool().trim(0)?;
        let statistics = device.memory_pool().statistics()?;
        let free = if device.is_cuda() { device.memory_info()?.map(|memory| memory.free) } else { None };
        Ok(Memory { used: statistics.used, reserved: statistics.reserved, free })
    }
}

/// Allocates on any of the streams, uses each buffer on another than its own, and drops them in any order.
fn allocate(streams: &[Stream], count: usize) -> Result<()> {
    let mut random = fastrand::Rng::with_seed(count as u64);
    let mut live: Vec<DeviceBuffer<u8>> = Vec::new();
    for _ in 0..count {
        let [first, second] = [0; 2].map(|_| &streams[random.usize(..STREAMS)]);
        // Most are small.
        let most = MOST_BYTES >> random.u32(..20);
        let bytes = random.usize(1..=most);
        let mut buffer = first.zeros::<u8>(bytes)?;
        second.fill_into(7, &mut buffer)?;
        if live.len() == LIVE {
            live.swap_remove(random.usize(..LIVE));
        }
        live.push(buffer);
    }
    let Some(last) = live.last() else { return Ok(()) };
    assert!(streams[0].download(last)?.iter().all(|byte| *byte == 7));
    Ok(())
}

fn memory_is_as_before(device: &Device) -> Outcome {
    // A new device, because other cases use the shared one meanwhile.
    let own = if device.is_cuda() { device.clone() } else { Device::cpu_with(CpuOptions::new())? };
    let count = std::env::var("FERROGRID_SOAK").ok().and_then(|count| count.parse().ok()).unwrap_or(10_000);
    let streams = (0..STREAMS).map(|_| own.new_stream()).collect::<Result<Vec<_>>>()?;
    // After this the driver and the runtime have made their one-time allocations.
    allocate(&streams, 1000)?;
    let before = Memory::of(&own)?;
    allocate(&streams, count)?;
    let after = Memory::of(&own)?;
    assert_eq!(after, before, "after {count} allocations");
    Ok(())
}
