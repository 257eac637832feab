//! Shared memory starts with arbitrary bits.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn flags(t: Thread<1>, mut tile: Shared<[bool; 64]>) {
        tile.fill_with(&t, |_| false);
    }

    #[kernel]
    pub fn characters(t: Thread<1>, mut line: SharedSlice<char>) {
        line.fill_with(&t, |_| ' ');
    }
}

fn main() {}
