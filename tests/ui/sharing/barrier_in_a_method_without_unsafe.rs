//! A function of the module with barriers is checked at its calls; those of a method cannot be told by name.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    struct Waiter;

    impl Waiter {
        fn wait(&self, t: &Thread<1>) {
            t.sync_threads();
        }
    }

    #[kernel]
    pub fn waits(t: Thread<1>) {
        Waiter.wait(&t);
    }
}

fn main() {}
