//! A launch lends its arguments for the launch only, also under another name.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude as device;

    type Texture<T> = device::Texture<'static, T>;

    #[kernel]
    pub fn lent(_t: device::Thread<1>, _x: Texture<f32>) {}
}

fn main() {}
