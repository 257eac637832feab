//! A slice is lent for one launch: kept in a static, it would be read after its buffer was dropped.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    static KEPT: std::sync::OnceLock<&'static [u32]> = std::sync::OnceLock::new();

    #[kernel]
    pub fn keep(_t: Thread<1>, x: &'static [u32]) {
        let _ = KEPT.set(x);
    }
}

fn main() {}
