//! Compiles the kernels of the algorithms to PTX.

fn main() {
    ferrogrid_build::compile()
}
