//! 1.5 element_wise: many quadratic equations, each solved for itself.
//!
//! Shows: `#[elementwise]`, which needs the operation on one element only; the kernel that one would write by hand;
//! several inputs, a struct of results (`#[derive(DeviceCopy)]`), and branches that differ between threads.
//! Look at: the launch of the first takes no grid. The struct is one element of a buffer, the same on both sides. The
//! derive refuses fields that cannot be copied to a device, such as references.
//!
//! `cargo ferrogrid run element_wise`

use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// The real solutions of an equation; the first `count` of `x` are valid, in ascending order.
    #[derive(Clone, Copy, DeviceCopy, Debug)]
    #[repr(C)]
    pub struct Roots {
        /// The solutions; NaN beyond the first `count`.
        pub x: [f64; 2],
        /// The number of solutions.
        pub count: u64,
    }

    /// Solves a x^2 + b x + c = 0; a is not 0.
    #[elementwise]
    pub fn solve(a: &f64, b: &f64, c: &f64) -> Roots {
        roots_of(*a, *b, *c)
    }

    /// The same by hand: an equation for each thread.
    #[kernel(same_shape(roots, a, b, c))]
    pub fn solve_by_hand(t: Thread<1>, a: &[f64], b: &[f64], c: &[f64], mut roots: DisjointSlice<Roots>) {
        let i = t.index();
        if let Some(roots) = roots.get_mut(i) {
            *roots = roots_of(a[i.get()], b[i.get()], c[i.get()]);
        }
    }

    fn roots_of(a: f64, b: f64, c: f64) -> Roots {
        let discriminant = b * b - 4.0 * a * c;
        if discriminant < 0.0 {
            return Roots { x: [f64::NAN; 2], count: 0 };
        }
        // The sum of two numbers of the same sign: -b + sqrt(..) would cancel for large b.
        let q = -0.5 * (b + discriminant.sqrt().copysign(b));
        let (first, second) = if q == 0.0 { (0.0, 0.0) } else { (q / a, c / q) };
        Roots { x: [first.min(second), first.max(second)], count: 2 }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    let stream = device.new_stream()?;
    let n = if device.is_cuda() { 1 << 22 } else { 200_000 };
    let mut random = fastrand::Rng::with_seed(1);
    let mut numbers = || -> Vec<f64> { (0..n).map(|_| 0.5 + random.f64()).collect() };
    let (a, c) = (numbers(), numbers());
    // About one in ten is large enough for roots.
    let b: Vec<f64> = numbers().iter().map(|b| 4.0 * b - 4.0).collect();

    let device_inputs = [stream.upload(&a)?, stream.upload(&b)?, stream.upload(&c)?];
    let [device_a, device_b, device_c] = &device_inputs;
    let poison = kernels::Roots { x: [7.0; 2], count: 7 };
    let mut device_roots = stream.upload(&vec![poison; n])?;
    kernels::solve(&stream, device_a, device_b, device_c, &mut device_roots)?;
    let roots = stream.download(&device_roots)?;
    let mut device_roots = stream.upload(&vec![poison; n])?;
    kernels::solve_by_hand(&stream, Grid::cover(n), device_a, device_b, device_c, &mut device_roots)?;
    let bits = |roots: &kernels::Roots| (roots.x.map(f64::to_bits), roots.count);
    if !stream.download(&device_roots)?.iter().map(bits).eq(roots.iter().map(bits)) {
        return Err("the kernel written by hand has other results".into());
    }

    let mut with_roots = 0;
    let mut largest_residue = 0.0_f64;
    for i in 0..n {
        let expected = if b[i] * b[i] < 4.0 * a[i] * c[i] { 0 } else { 2 };
        if roots[i].count != expected {
            return Err(format!("equation {i} has {expected} roots, not {:?}", roots[i]).into());
        }
        if expected == 0 {
            continue;
        }
        with_roots += 1;
        // Checks that the solutions satisfy the equations, not their values.
        for x in roots[i].x {
            let residue = ((a[i] * x + b[i]) * x + c[i]).abs() / (a[i] * x * x + (b[i] * x).abs() + c[i]);
            if residue.is_nan() || residue > 8.0 * f64::EPSILON {
                return Err(format!("equation {i} is not solved by {:?}", roots[i]).into());
            }
            largest_residue = largest_residue.max(residue);
        }
        if roots[i].x[0] > roots[i].x[1] {
            return Err(format!("the roots of equation {i} are in the wrong order: {:?}", roots[i]).into());
        }
    }
    println!("device        {}", device.name());
    println!("equations     {n}");
    println!("with 2 roots  {with_roots}");
    println!("residue       {largest_residue:.1e} of the terms at most");
    println!("PASS");
    Ok(())
}
