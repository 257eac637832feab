//! Compiles the kernels that measure what a device can do at most.

fn main() {
    ferrogrid_build::compile()
}
