//! A constant belongs in the module of the kernels that read it.

use ferrogrid::device::Constant;

#[ferrogrid::constant]
static WEIGHTS: Constant<[f32; 3]> = Constant::new([0.0; 3]);

fn main() {}
