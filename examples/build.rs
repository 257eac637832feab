//! Compiles the kernels of the examples to PTX.

fn main() {
    ferrogrid_build::compile()
}
