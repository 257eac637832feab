//! Launches of other modules would not order a constant that a public function reads.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[constant]
    static WEIGHTS: Constant<[f32; 3]> = Constant::new([0.0; 3]);

    fn weight(i: usize) -> f32 {
        WEIGHTS[i]
    }

    pub fn half_of_weight(i: usize) -> f32 {
        weight(i) / 2.0
    }
}

fn main() {}
