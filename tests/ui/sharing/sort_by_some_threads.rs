//! Some threads of a block sort: the others would not come to its barriers.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel(block = 256)]
    pub fn some(
        t: Thread<1>,
        x: &[u32],
        mut y: DisjointSlice<u32>,
        mut scratch: Shared<SortScratch<u32, 256, 1>>,
    ) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            let [key] = t.block_radix_sort(&mut scratch, [x[i.get()]], sort::Ascending);
            *y = key;
        }
    }
}

fn main() {}
