#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    use std::cell::Cell;

    thread_local! {
        static STOLEN: Cell<Option<Index<'static, 1>>> = const { Cell::new(None) };
    }

    #[kernel]
    pub fn k(t: Thread<1>) {
        STOLEN.set(Some(t.index()));
    }
}

fn main() {}
