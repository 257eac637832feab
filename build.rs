//! Compiles the kernels of this package (library, tests and benches) to PTX.

fn main() {
    ferrogrid_build::compile()
}
