#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::half::bf16;
    use ferrogrid::device::prelude::*;

    #[matmul(factors = f32, transpose_b)]
    pub fn singles(sum: f32) -> f32 {
        sum
    }

    #[matmul(factors = i8, transpose_b)]
    pub fn doubles(sum: i32) -> f64 {
        f64::from(sum)
    }

    #[matmul(factors = i8, transpose_b)]
    pub fn of_floats(sum: f32) -> f32 {
        sum
    }

    #[matmul(factors = i8)]
    pub fn by_columns(sum: i32) -> i32 {
        sum
    }

    #[matmul(factors = bf16, transpose_b)]
    pub fn unrounded(sum: f32) -> bf16 {
        sum
    }
}

fn main() {}
