//! Generic mathematics is for floating-point types.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    fn norm<T: Float>(x: T, y: T) -> T {
        x.hypot(y)
    }

    #[kernel]
    pub fn norms(t: Thread<1>, x: i32, mut out: DisjointSlice<i32>) {
        if let Some(out) = out.get_mut(t.index()) {
            *out = norm(x, 1);
        }
    }
}

fn main() {}
