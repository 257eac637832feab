fn main() {
    ferrogrid_build::compile()
}
