#[ferrogrid::module(fast)]
mod kernels {}

fn main() {}
