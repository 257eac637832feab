//! Compiles the kernels of the book's programs.

// ANCHOR: all
fn main() {
    ferrogrid_build::compile()
}
// ANCHOR_END: all
