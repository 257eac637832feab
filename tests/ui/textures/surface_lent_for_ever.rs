//! A launch lends its arguments for the launch only, also under another name.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude as device;

    type Surface<T> = device::Surface<'static, T>;

    #[kernel]
    pub fn lent(_t: device::Thread<1>, _x: Surface<f32>) {}
}

fn main() {}
