//! Textures and surfaces: `sampling` compares reads with a reference in `f64` (`reference`), `surfaces`
//! covers writes, and `arrays` copies, order and refused calls. The kernels are in `texture_kernels`.

pub(crate) mod arrays;
pub(crate) mod reference;
pub(crate) mod sampling;
pub(crate) mod surfaces;
pub(crate) mod texture_kernels;
