//! Compiles the kernels of the operation to PTX.

fn main() {
    ferrogrid_build::compile()
}
