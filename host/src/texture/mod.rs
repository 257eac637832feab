//! Texture arrays (`array`, with `limits`), and their forms as arguments: textures to read, with a
//! `sampler`, and surfaces to write (`view`). `argument` is what copies take.

mod argument;
mod array;
mod limits;
mod sampler;
mod view;

pub use argument::{ArrayInput, ArrayOutput};
pub use array::TextureArray;
pub use sampler::Sampler;
pub use view::{SurfaceViewMut, TextureView};
