//! Items that only the device's compiler needs: marks that the build step reads in the PTX (`mark`), and
//! `memcmp`, which LLVM calls implicitly.

pub(crate) mod mark;
mod memcmp;
pub(crate) mod threading;
