//! Compiles the kernels of the book's programs.

fn main() {
    ferrogrid_build::compile()
}
