#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[elementwise]
    pub fn without_elements(a: f32, b: &[f32]) {}

    #[elementwise]
    pub fn without_effect(x: &f32) {}

    #[elementwise]
    pub fn whole_output(x: &f32, y: &mut [f32]) {}

    #[elementwise]
    pub fn with_a_thread(t: Thread<1>, y: &mut f32) {}

    #[elementwise(block = 64)]
    pub fn with_a_block(y: &mut f32) {}

    #[elementwise]
    pub fn short_index(#[index] i: u32, y: &mut f32) {}

    #[elementwise]
    pub unsafe fn unchecked(y: &mut f32) {}

    #[elementwise]
    pub fn generic<T: DeviceCopy>(y: &mut T) {}

    #[elementwise]
    pub fn taken(out: &f32) -> f32 {
        *out
    }

    #[kernel]
    #[elementwise]
    pub fn both(y: &mut f32) {}

    #[reduction(identity = 0.0)]
    pub fn without_combine(x: &f32) -> f32 {
        *x
    }

    #[reduction]
    pub fn without_identity(x: &f32) -> f32 {
        *x
    }

    #[reduction(identity = 0.0, combine = f32::max)]
    pub fn without_a_value(x: &f32) {}

    #[reduction(identity = 0.0, combine = f32::max)]
    pub fn with_an_output(x: &f32, y: &mut f32) -> f32 {
        *x
    }

    #[reduction(identity = 0.0, combine = f32::max)]
    pub fn of_nothing(a: f32) -> f32 {
        a
    }

    #[scan(inclusive, identity = 0.0, combine = f32::max)]
    pub fn inclusive(x: &f32) -> f32 {
        *x
    }

    #[scan(exclusive, identity = 0.0)]
    pub fn without_a_combination(x: &f32) -> f32 {
        *x
    }

    #[scan(identity = 0.0, combine = f32::max)]
    pub fn in_place(x: &mut f32) -> f32 {
        *x
    }

    #[comparison]
    pub fn of_two_types(a: &f32, b: &f64) -> bool {
        f64::from(*a) < *b
    }

    #[comparison]
    pub fn of_any<T: PartialOrd>(a: &T, b: &T) -> bool {
        a < b
    }

    #[comparison(stable_sort)]
    pub fn with_an_unknown_function(a: &f32, b: &f32) -> bool {
        a < b
    }
}

fn main() {}
