//! An enum of which no variant is 0 cannot be zeroed.

use ferrogrid::prelude::*;

#[derive(Clone, Copy, DeviceCopy)]
#[repr(u8)]
enum Level {
    Low = 1,
    High,
}

fn main() -> ferrogrid::Result<()> {
    let stream = Device::cpu().new_stream()?;
    let _levels = stream.zeros::<Level>(8)?;
    let _ = (Level::Low, Level::High);
    Ok(())
}
