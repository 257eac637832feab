#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[matmul]
    pub fn without_factors(sum: f32) -> f32 {
        sum
    }

    #[matmul(factors = i8, transpose_b)]
    pub fn without_a_sum(x: &i32) -> i32 {
        *x
    }

    #[matmul(factors = i8, transpose_b)]
    pub fn without_a_result(sum: i32) {}

    #[matmul(factors = i8, transpose_b)]
    pub fn with_an_output(sum: i32, y: &mut i32) -> i32 {
        sum
    }

    #[matmul(factors = i8, transpose_b)]
    pub fn with_an_index(sum: i32, #[index] i: usize) -> i32 {
        sum
    }

    #[matmul(factors = i8, transpose_b)]
    pub fn with_a_short_row(sum: i32, #[row] i: u32) -> i32 {
        sum
    }

    #[matmul(factors = i8, transpose_b)]
    pub fn taken(sum: i32, out: i32) -> i32 {
        sum + out
    }

    #[matmul(factors = T)]
    pub fn generic<T: DeviceCopy>(sum: f32) -> T {
        sum
    }

    #[matmul(factors = i8, transposed)]
    pub fn with_an_unknown_option(sum: i32) -> i32 {
        sum
    }

    #[matmul(factors = i8, transpose_b, batches, groups)]
    pub fn with_batches_and_groups(sum: i32) -> i32 {
        sum
    }

    #[matmul(factors = f16, transpose_a, groups)]
    pub fn with_columns_of_groups(sum: f32) -> f32 {
        sum
    }

    #[matmul(factors = i8, transpose_b, groups)]
    pub fn with_a_batch(sum: i32, #[batch] i: usize) -> i32 {
        sum
    }

    #[matmul(factors = i8, transpose_b, groups)]
    pub fn with_a_short_group(sum: i32, #[group] i: u32) -> i32 {
        sum
    }

    #[matmul(factors = i8, transpose_b, batches)]
    pub fn with_a_taken_name(sum: i32, batches: i32) -> i32 {
        sum * batches
    }

    #[elementwise]
    pub fn with_a_row(#[row] i: usize, x: &f32) -> f32 {
        *x
    }
}

fn main() {}
