#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[reduction(identity = 0.0, combine = |a: f64, b: f64| a + b)]
    pub fn combined_as_f64(x: &f32) -> f32 {
        *x
    }

    #[reduction(identity = 0, combine = |a, b| a + b)]
    pub fn with_an_integer(x: &f32) -> f32 {
        *x
    }

    #[reduction(identity = 0.0, combine = |a, b| a + b, finish = |sum| sum as u32)]
    pub fn finished_as_u32(x: &f32) -> f32 {
        *x
    }

    #[reduction(identity = true, combine = |a, b| a && b)]
    pub fn flags(x: &f32) -> bool {
        *x > 0.0
    }

    #[elementwise]
    pub fn host_types(x: &String, y: &mut f32) {}

    #[elementwise]
    pub fn sums(x: &f32) -> f64 {
        *x + 1.0
    }
}

fn main() {}
