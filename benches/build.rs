//! Compiles the kernels of the benches to PTX.

fn main() {
    ferrogrid_build::compile()
}
