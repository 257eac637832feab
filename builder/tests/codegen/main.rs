//! Facts about the PTX of packages of one file, by the options of builds and kernels. It uses the device
//! toolchain of this machine.

mod arithmetic;
mod mathematics;
mod panics;
mod pointers;
#[path = "../single/mod.rs"]
mod single;
