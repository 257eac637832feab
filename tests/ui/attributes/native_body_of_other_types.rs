#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel(native = super::scaled_natively)]
    pub fn scale(t: Thread<1>, factor: f32, x: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y = factor * x[i.get()];
        }
    }
}

fn scaled_natively(_blocks: [u32; 1], factor: f64, x: &[f32], y: &mut [u32]) {
    y[0] = (factor * f64::from(x[0])) as u32;
}

fn main() {}
