//! Threads exchange items as often as each of them says.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel(block = 128)]
    pub fn often(
        t: Thread<1>,
        x: &[u32],
        mut y: DisjointSlice<u32>,
        mut scratch: Shared<ExchangeScratch<u32, 128, 2>>,
    ) {
        let i = t.index();
        let mut items = [x[i.get()]; 2];
        for _ in 0..items[0] {
            items = t.block_blocked_to_striped(&mut scratch, items);
        }
        if let Some(y) = y.get_mut(i) {
            *y = items[1];
        }
    }
}

fn main() {}
