//! Memory that a graph allocates cannot be read between launches, be a condition, or replace a buffer that the graph keeps.

use ferrogrid::prelude::*;

fn main() -> ferrogrid::Result<()> {
    let stream = Device::cpu().new_stream()?;
    let kept = stream.zeros::<u32>(4)?;
    let (graph, key) = stream.capture(|capture| {
        let buffer = capture.zeros::<u32>(4)?;
        capture.if_node(buffer.key(), |_| Ok(()))?;
        capture.free_node(&[], capture.keep(kept)?)?;
        Ok(buffer.key())
    })?;
    let graph = graph.instantiate()?;
    stream.download(graph.view(key)?)?;
    Ok(())
}
