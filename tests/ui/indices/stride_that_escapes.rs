use ferrogrid::device::prelude::*;

fn places(t: Thread<1>) -> Vec<Index<'static, 1>> {
    t.grid_stride(10).collect()
}

fn main() {
    let _ = places;
}
