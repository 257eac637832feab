//! Arithmetic on signals, images and matrices.
//!
//! `filters` and `transforms` are for signals, and `images` for pixels. `matrices` reduces rows and columns, `products` multiplies, `rows` has softmax
//! and normalisations, `attention` both together with its gradients, and `sparse` products of sparse matrices.

pub(crate) mod attention;
pub(crate) mod attention_gradients;
pub(crate) mod attention_sequences;
mod attention_tensors;
pub(crate) mod filters;
pub(crate) mod images;
pub(crate) mod matrices;
pub(crate) mod products;
pub(crate) mod rows;
pub(crate) mod sparse;
pub(crate) mod transforms;
