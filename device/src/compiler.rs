//! What only the device's compiler sees: the marks that the build step reads in the PTX (`mark`), and the
//! function that LLVM calls without being asked (`memcmp`).

pub(crate) mod mark;
mod memcmp;
