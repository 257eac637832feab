//! Replays of a graph of 100 empty kernels, one after the other, per node.

use std::time::Instant;

use ferrogrid::prelude::*;

use crate::Outcome;
use crate::cpp::Cpp;
use crate::kernels::device as kernels;
use crate::turns::duel;

const NODES: u32 = 100;
const REPLAYS: u32 = 50;
const ROUNDS: usize = 101;

pub fn graphs(device: &Device, cpp: &Cpp) -> Outcome<()> {
    let stream = device.new_stream()?;
    let (graph, ()) =
        stream.capture(|capture| (0..NODES).try_for_each(|_| kernels::empty(capture, Grid::new(1, 1))))?;
    let mut graph = graph.instantiate()?;
    let mut other = cpp.graph(NODES)?;
    let ours = || {
        let start = Instant::now();
        (0..REPLAYS).try_for_each(|_| graph.launch(&stream))?;
        stream.synchronize()?;
        Ok(start.elapsed().as_secs_f64())
    };
    let theirs = || cpp.replays(&mut other, &stream, REPLAYS);
    duel("graph_node", ROUNDS, f64::from(NODES * REPLAYS), ours, theirs)
}
