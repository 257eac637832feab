//! Compiles the kernels of this package (library, examples, tests and benches) to PTX.

fn main() {
    ferrogrid_build::compile()
}
