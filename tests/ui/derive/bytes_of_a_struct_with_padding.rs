//! Padding has no value, so a struct with padding cannot be viewed as bytes.

use ferrogrid::prelude::*;

#[derive(Clone, Copy, DeviceCopy)]
#[repr(C)]
struct Tagged {
    value: f32,
    tag: u8,
}

fn main() -> ferrogrid::Result<()> {
    let stream = Device::cpu().new_stream()?;
    let tagged = stream.zeros::<Tagged>(8)?;
    let _bytes = tagged.view().cast::<u8>()?;
    Ok(())
}
