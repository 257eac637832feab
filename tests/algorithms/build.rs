//! Compiles the kernels of the tests to PTX.

fn main() {
    ferrogrid_build::compile()
}
