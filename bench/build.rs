//! Compiles the kernels that measure the roofs of a device.

fn main() {
    ferrogrid_build::compile()
}
