use ferrogrid::device::prelude::*;

#[ferrogrid::kernel]
fn k(_t: Thread<1>) {}

fn main() {}
