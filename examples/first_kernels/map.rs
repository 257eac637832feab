//! 1.4 map: one function over every element, for two types from one kernel.
//!
//! Shows: a generic kernel with its instances listed (`T = [f32, f64]`), mathematics under std's names
//! (`Float`), an ordinary Rust function called from a kernel, and an output that is also the input.
//! Look at: the launch does not name the type: rustc infers it from the buffer. With a buffer of `u32` this
//! does not compile, and the error names the listed types.
//!
//! `cargo ferrogrid run map`

use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// The logistic function, 1 / (1 + e^-x).
    fn sigmoid<T: Float>(x: T) -> T {
        (T::ONE + (-x).exp()).recip()
    }

    /// x[i] <- sigmoid(x[i]).
    #[kernel(T = [f32, f64])]
    pub fn map_sigmoid<T: Float + DeviceCopy>(t: Thread<1>, mut x: DisjointSlice<T>) {
        if let Some(x) = x.get_mut(t.index()) {
            *x = sigmoid(*x);
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    let stream = device.new_stream()?;
    let n: usize = if device.is_cuda() { 1 << 22 } else { 1 << 18 };
    println!("device    {}", device.name());
    println!("elements  {n}");

    // From -8 to 8.
    let double: Vec<f64> = (0..n).map(|i| 16.0 * i as f64 / n as f64 - 8.0).collect();
    let single: Vec<f32> = double.iter().map(|&x| x as f32).collect();

    let mut x = stream.upload(&single)?;
    kernels::map_sigmoid(&stream, Grid::cover(n), &mut x)?;
    let single_errors =
        single.iter().zip(stream.download(&x)?).map(|(&x, y)| relative_error(x.into(), y.into()));
    report("f32", single_errors, 4.0 * f64::from(f32::EPSILON))?;

    let mut x = stream.upload(&double)?;
    kernels::map_sigmoid(&stream, Grid::cover(n), &mut x)?;
    let double_errors = double.iter().zip(stream.download(&x)?).map(|(&x, y)| relative_error(x, y));
    report("f64", double_errors, 4.0 * f64::EPSILON)?;
    println!("PASS");
    Ok(())
}

/// The error of `y` as the logistic function of `x`, which is computed here in another form, and in double
/// precision.
fn relative_error(x: f64, y: f64) -> f64 {
    let expected = x.exp() / (x.exp() + 1.0);
    (y - expected).abs() / expected
}

fn report(
    name: &str,
    errors: impl Iterator<Item = f64>,
    limit: f64,
) -> Result<(), Box<dyn std::error::Error>> {
    // By this order a NaN is the largest; `f64::max` would ignore it.
    let error = errors.max_by(f64::total_cmp).unwrap_or(0.0);
    println!("{name}       max relative error {error:.1e}, allowed {limit:.1e}");
    if error.is_nan() || error > limit {
        return Err(format!("the {name} results are wrong").into());
    }
    Ok(())
}
