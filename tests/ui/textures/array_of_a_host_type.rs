//! Texture arrays have no elements of 64 bits.

use ferrogrid::prelude::*;

fn main() -> ferrogrid::Result<()> {
    let stream = Device::cpu().new_stream()?;
    stream.upload_array(&[1.0_f64; 4], [4])?;
    Ok(())
}
