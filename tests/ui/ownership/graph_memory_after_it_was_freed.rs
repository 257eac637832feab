//! Memory that a graph allocates ends with its recording, and when it is freed, which is once and not while it is viewed.

use ferrogrid::prelude::*;

fn main() -> ferrogrid::Result<()> {
    let stream = Device::cpu().new_stream()?;
    let (_graph, ()) = stream.capture(|capture| {
        let mut buffer = capture.zeros::<u32>(4)?;
        capture.free_node(&[], buffer)?;
        capture.fill_into(1, &mut buffer)?;
        let twice = capture.zeros::<u32>(4)?;
        capture.free_node(&[], twice)?;
        capture.free_node(&[], twice)?;
        let mut viewed = capture.zeros::<u32>(4)?;
        let view = viewed.view_mut();
        drop(viewed);
        capture.fill_into(1, view)
    })?;
    let (_graph, _kept) = stream.capture(|capture| capture.zeros::<u32>(4))?;
    Ok(())
}
